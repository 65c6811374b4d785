"""How the kernels are compiled."""

from typing import Any

from numba import njit

# No fastmath: the compiler may not reorder a row's arithmetic, so a row's result does not depend on where the row lies.
kernel: Any = njit(nogil=True, cache=True, error_model="numpy")

# Small functions that live inside kernels.
inlined: Any = njit(nogil=True, inline="always", error_model="numpy")
