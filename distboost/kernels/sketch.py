"""Residuals that only choose trees: rounded to few bits at random, and projected by random signs."""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.lanes import LANES
from distboost.kernels.margin import parts
from distboost.kernels.random import word
from distboost.kernels.simd_rows import project_row, put_row
from distboost.kernels.tiles import tile_of, unit_of, weigh


@kernel
def draw_signs(draw, n_components, signs):
    """Set signs[k, c], c < n_components, to -1 or +1: a random number that depends only on the key `draw`, k and c."""
    # OUT: signs (K, n_components or more) int32
    for k in range(signs.shape[0]):
        for c in range(n_components):
            signs[k, c] = 1 - 2 * np.int32(word(draw, (k << 32) + c) >> np.uint64(63))


@kernel
def compressed_residuals(
    scores, labels, weights, order, s, link, shift, factor, dropped, draw, first, signs, count, weight_factor, out
):  # fmt: skip
    """Set out[i] = (V[i] or its projections, 1, row weight), with V of `margin.residuals` less its last `dropped` bits.

    The cumulated weights of the row's classes are all rounded down after the same random number is added. So each entry of V is
    right on average and off by less than 1, the entries of a row still sum to 0, and their total is off by less than 1.

    Rows whose entries are all 0 have 0 for their count and weight, too, and are moved behind all others in `order`. If nothing is
    dropped, no row is moved.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; draw uint64: the key of the random numbers; first: global
    #     number of row 0; signs (K, padded components) int32: project by them, unless there are none; count: the channel that
    #     counts rows
    # OUT: order (r,) int32: the rows in use; out (n, channels) int32, channels a multiple of 8: V in units of 2^dropped/factor,
    #      the row weight in units of 1/weight_factor
    n_classes = scores.shape[1]
    padded = -(-n_classes // LANES) * LANES
    u, size = tile_of(n_classes)
    unit = unit_of(link, shift, factor)
    q = np.empty((1, padded), np.int64)
    V = np.empty(n_classes, np.int32)
    mask = (np.uint64(1) << np.uint64(dropped)) - np.uint64(1)
    emptied = np.empty(order.shape[0] if dropped > 0 else 0, np.int32)
    n_kept, n_emptied = 0, 0
    for begin in range(0, order.shape[0], size):
        n = min(size, order.shape[0] - begin)
        weigh(scores, labels, order, begin, n, s, link, shift, u)
        for t in range(n):
            i = order[begin + t]
            put_row(q, 0, u, t, unit, *parts(weights[i]))
            cumulated = np.int64(word(draw, first + i) & mask)
            level = np.int64(0)
            for k in range(n_classes):
                cumulated -= q[0, k]
                following = cumulated >> dropped
                V[k] = level - following
                level = following
            V[labels[i]] = level
            if dropped > 0:
                if level == 0:
                    out[i] = 0
                    emptied[n_emptied] = i
                    n_emptied += 1
                    continue
                order[n_kept] = i
                n_kept += 1
            if signs.shape[0] > 0:
                project_row(out, i, V, signs)
            else:
                for k in range(n_classes):
                    out[i, k] = V[k]
            out[i, count] = 1
            if weight_factor > 0.0:
                out[i, count + 1] = np.int64(np.rint(weights[i] * weight_factor))
    for j in range(n_emptied):
        order[n_kept + j] = emptied[j]


@kernel
def end_kept(order, spans, statistics, count):
    """Set spans[m, 1] to the end of the rows of span m whose count statistics[i, count] is 1: they come before those of 0."""
    # IN: order (r,) int32; statistics (n, channels) int32
    # OUT: spans (m, 2) int32
    for m in range(spans.shape[0]):
        low, high = spans[m, 0], spans[m, 1]
        while low < high:
            middle = (low + high) // 2
            if statistics[order[middle], count] == 1:
                low = middle + 1
            else:
                high = middle
        spans[m, 1] = low
