"""Working memory that kernels take for a call.

Numba compiles the allocation of arrays anew for each type and number of dimensions, which takes as long as a small kernel. So
kernels take numbers of two types in one dimension, and change the shape.
"""

import numpy as np

from distboost.kernels._jit import compiled


@compiled
def floats(n):
    """Return an array (n,) float64 of zeros."""
    return np.zeros(n)


@compiled
def integers(n):
    """Return an array (n,) int64 of zeros."""
    return np.zeros(n, np.int64)
