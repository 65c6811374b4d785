"""As `warm`, for programs that compile kernels: Numba is imported and has compiled something, and distboost is not imported."""

import numba
import numpy as np


@numba.njit
def _any_function(x):
    return np.rint(x[0])


_any_function(np.zeros(1))
