"""Functions of arrays that give the same bits on all processors.

NumPy and SciPy choose an implementation of exponentials and logarithms by the processor, and its last bit may differ. What a
worker computes of its rows must not depend on which worker it is.
"""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.exponential import LOWEST
from distboost.kernels.simd_exp import WIDE, exp_rows, log1p_rows


def exp(x: np.ndarray) -> np.ndarray:
    """Return e^x, (n, K) float64, of x up to 709; below -700 it is 0."""
    padded = _padded(x)
    _exp(padded, len(x))
    found = padded[: len(x)]
    found[x < LOWEST] = 0.0
    return found


def log1p(x: np.ndarray) -> np.ndarray:
    """Return ln(1 + x), (n, K) float64, of x from 0 to 1e300."""
    found = _padded(x)
    _log1p(found, len(x))
    return found[: len(x)]


def softmax(F: np.ndarray) -> np.ndarray:
    """Return e^F divided by its sum over classes, (n, K) float64."""
    E = exp(F - F.max(axis=1, keepdims=True))
    E /= E.sum(axis=1, keepdims=True)
    return E


def log_sigmoid(x: np.ndarray) -> np.ndarray:
    """Return ln(1 / (1 + e^-x)), (n, K) float64."""
    found: np.ndarray = np.minimum(x, 0.0) - log1p(exp(-np.abs(x)))
    return found


def tanh(x: np.ndarray) -> np.ndarray:
    """Return the hyperbolic tangent of x, (n, K) float64."""
    t = exp(-2 * np.abs(x))
    found: np.ndarray = np.copysign((1 - t) / (1 + t), x)
    return found


def log_losses(p: np.ndarray) -> np.ndarray:
    """Return -ln p, (n,) float64, of probabilities above 0."""
    p = p.astype(np.float64)
    return log1p(((1 - p) / p)[:, None])[:, 0]


def _padded(x: np.ndarray) -> np.ndarray:
    """Return a copy of x, (n, K) float64, followed by rows for the lanes that reach beyond it."""
    n, width = x.shape
    padded = np.empty((n + 1 + WIDE // width, width))
    padded[:n], padded[n:] = x, 0.0
    return padded


@kernel
def _exp(x, n):
    """Set x[i, k] = e^x[i, k] for i < n; below -700, e^-700."""
    # IN, OUT: x (n or more, K) float64: of `_padded`
    exp_rows(x, n)


@kernel
def _log1p(x, n):
    """Set x[i, k] = ln(1 + x[i, k]) for i < n."""
    # IN, OUT: x (n or more, K) float64: of `_padded`
    log1p_rows(x, n)
