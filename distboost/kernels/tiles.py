"""Weights of the rows of a tile from their margins: see `margin`."""

from distboost.kernels._jit import compiled, inlined
from distboost.kernels.exponential import exp
from distboost.kernels.memory import floats
from distboost.kernels.simd import prefetch_row
from distboost.kernels.simd_exp import WIDE, divide_row, exp_rows, logistic_rows, subtract_row

# The links, in this order: u = e; u = e / (1 + e); u = e / (1 + sum_k e).
EXPONENTIAL, LOGISTIC, SOFTMAX = 0, 1, 2

# A tile is a few rows whose weights are computed together, so many that they fill the lanes of `exp_rows` and fit in the cache.
TILE_ROWS = 32
TILE_SIZE = 2048


@inlined
def tile_of(n_classes):
    """Return an array for the weights of a tile, and the tile's number of rows. The array has more rows: lanes reach beyond."""
    n = min(max(TILE_SIZE // n_classes, 1), TILE_ROWS)
    n_rows = n + 1 + WIDE // n_classes
    return floats(n_rows * n_classes).reshape(n_rows, n_classes), n


@compiled
def weigh(scores, labels, order, first, n, s, link, shift, u):
    """Set u[t] to the weights of row order[first + t] by the link, t < n; that of the row's own class is 0.

    With the exponential link, the weights are divided by e^shift. The scores of the next rows are brought into the cache: rows in
    the order of a tree's leaves lie anywhere.
    """
    # IN: scores (n_rows, K) float; labels (n_rows,) int32; order (r,) int32
    # OUT: u (n or more, K) float64: of `tile_of`
    n_classes = scores.shape[1]
    rows, following = order[first : first + n], order[first + n :]
    shift = shift if link == EXPONENTIAL else 0.0
    for t in range(n):
        i = rows[t]
        other = scores[i, labels[i]]
        if link == SOFTMAX:  # no exponential exceeds 1
            for k in range(n_classes):
                other = max(other, scores[i, k])
        subtract_row(scores, i, other, s, shift, u, t)
        if t < following.shape[0]:
            prefetch_row(scores, following[t])
    if link == LOGISTIC:
        logistic_rows(u, n)
    else:
        exp_rows(u, n)
    for t in range(n):
        if link == SOFTMAX:
            total = 0.0
            for k in range(n_classes):
                total += u[t, k]
            divide_row(u, t, total)
        u[t, labels[rows[t]]] = 0.0


@inlined
def unit_of(link, shift, factor):
    """Return what makes the weights of `weigh`, once they are rounded, integers in units of 1/factor of e^shift."""
    return factor if link == EXPONENTIAL else exp(-shift) * factor
