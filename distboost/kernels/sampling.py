"""Rows drawn with a probability that follows their weight.

The magnitude m of a row is the largest entry of its statistic, a whole number. With a threshold T, the row is drawn with
probability p = min(1, m / T), and its statistic is divided by p: its largest entry is then max(m, T).
"""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.margin import add_risk, times
from distboost.kernels.memory import floats, integers
from distboost.kernels.random import number
from distboost.kernels.tiles import EXPONENTIAL, tile_of, unit_of, weigh

# Magnitudes are counted by their exponent and this many bits of their mantissa: a bin is at most 1/16 wide.
MANTISSA_BITS = 4
N_BINS = 64 << MANTISSA_BITS
_SHIFT = 52 - MANTISSA_BITS
_FIRST = 1023 << MANTISSA_BITS


@kernel
def margin_totals(scores, labels, weights, rows, s, link, shift, factor, out):
    """Set out[i] to the magnitude of row i in use: sum_k u[i, k] of the weights that `residuals` computes, then rounded."""
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; rows (r,) int32: the rows in use
    # OUT: out (n,) float64: whole numbers, in units of 1/factor
    u, size = tile_of(scores.shape[1])
    unit = unit_of(link, shift, factor)
    for first in range(0, rows.shape[0], size):
        n = min(size, rows.shape[0] - first)
        weigh(scores, labels, rows, first, n, s, link, shift, u)
        for t in range(n):
            i, total = rows[first + t], 0.0
            for k in range(u.shape[1]):
                total += u[t, k]
            out[i] = times(weights[i], np.rint(total * unit))


@kernel
def risk_and_totals(
    scores, labels, weights, rows, s, shift, factor, error_factor, out, largest, unit, magnitudes
):
    """Do what `risk` and then `margin_totals` do with the exponential link; the magnitudes are in units of 1/unit."""
    # IN: as in `risk`
    # OUT: out (2,) int64, largest (1,) float64: as in `risk`; magnitudes (n,) float64
    e, size = tile_of(scores.shape[1])
    totals, judged = floats(size), integers(2)
    for first in range(0, rows.shape[0], size):
        n = min(size, rows.shape[0] - first)
        weigh(scores, labels, rows, first, n, s, EXPONENTIAL, shift, e)
        add_risk(
            scores, labels, weights, rows, first, n, e, totals, factor, error_factor, judged, out, largest
        )
        for t in range(n):
            i = rows[first + t]
            magnitudes[i] = times(weights[i], np.rint(totals[t] * unit))
    out[0] += judged[1]


@kernel
def largest_entries(statistics, order, n_sums, out):
    """Set out[i] to the largest of abs(statistics[i, :n_sums])."""
    # IN: statistics (n, channels) int32 or int64; order (r,) int32: the rows in use
    # OUT: out (n,) float64
    for j in range(order.shape[0]):
        i = order[j]
        largest = np.int64(0)
        for k in range(n_sums):
            largest = max(largest, abs(np.int64(statistics[i, k])))
        out[i] = largest


@kernel
def tally(magnitudes, order, out):
    """Add 1 to out[b, 0] and m to out[b, 1] for each magnitude m > 0; b is the bin of m."""
    # IN: magnitudes (n,) float64, whole numbers of at most 2^62; order (r,) int32: the rows in use
    # OUT: out (N_BINS, 2) int64
    for j in range(order.shape[0]):
        m = magnitudes[order[j]]
        if m > 0.0:
            b = (np.float64(m).view(np.int64) >> _SHIFT) - _FIRST
            out[b, 0] += 1
            out[b, 1] += np.int64(m)


@kernel
def draw(key, first, magnitudes, threshold, rows, out):
    """Write the rows that are drawn to out, in order; return their number. Row i is drawn if u threshold < magnitudes[i].

    u is the random number in [0, 1) of the row's global number, first + i.
    """
    # IN: magnitudes (n,) float64; rows (r,) int32
    # OUT: out (r,) int32
    n_drawn = 0
    for j in range(rows.shape[0]):
        i = rows[j]
        out[n_drawn] = i
        n_drawn += number(key, first + i) * threshold < magnitudes[i]
    return n_drawn


@kernel
def divide(statistics, order, n_sums, magnitudes, threshold, unit):
    """Divide statistics[i, :n_sums] by the probability with which row i was drawn, multiply it by the unit, and round.

    No result exceeds max(magnitudes[i], threshold) times the unit. Only rounding makes an entry larger than the magnitude.
    """
    # IN: order (r,) int32: the rows that were drawn; magnitudes (n,) float64
    # OUT: statistics (n, channels) int32 or int64
    for j in range(order.shape[0]):
        i = order[j]
        m = magnitudes[i]
        factor, largest = max(threshold / m, 1.0) * unit, max(threshold, m) * unit
        for k in range(n_sums):
            divided = np.float64(statistics[i, k]) * factor
            statistics[i, k] = np.int64(np.rint(min(max(divided, -largest), largest)))


@kernel
def sort_by_leaf(rows, leaf, order, spans):
    """Sort rows by their leaves: those of leaf l become order[spans[l, 0]:spans[l, 1]], in their order."""
    # IN: rows, leaf (r,) int32
    # OUT: order (r,) int32; spans (n_leaves, 2) int32
    spans[:] = 0
    for j in range(rows.shape[0]):
        spans[leaf[j], 1] += 1
    end = 0
    for m in range(spans.shape[0]):
        n = spans[m, 1]
        spans[m, 0] = spans[m, 1] = end
        end += n
    for j in range(rows.shape[0]):
        m = leaf[j]
        order[spans[m, 1]] = rows[j]
        spans[m, 1] += 1
