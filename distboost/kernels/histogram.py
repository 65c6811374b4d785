"""Sums of row statistics by node, feature and bin. Boosting spends most of its time here.

The bins of all features are concatenated: feature d has the bins `offsets[d]:offsets[d + 1]`, the last of which is for missing
values. A bin has one channel for each sum, then one that counts rows, then one that sums row weights if these are in use.
"""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.simd import LANES, add_lanes

_LANES = np.uintp(LANES)

TILE_ROWS = 2048
TILE_BYTES = 2**18  # the sums of a tile: they fit in the second-level cache


@kernel
def clear(features, offsets, slots, pool):
    """Set pool[slot, offsets[d]:offsets[d + 1]] = 0 for each of the slots and features d."""
    # IN: features (f,) int64; offsets (D + 1,) int64; slots (m,) int64
    # OUT: pool (slots, total bins, channels) int64
    for slot in slots:
        for d in features:
            pool[slot, offsets[d] : offsets[d + 1]] = 0


@kernel
def tile_end(features, offsets, first, max_bins):
    """Return the end of the longest run of features, from `first`, that has at most max_bins bins; at least one feature."""
    # IN: features (f,) int64; offsets (D + 1,) int64
    last = first
    n_bins = 0
    while last < features.shape[0]:
        n_bins += offsets[features[last] + 1] - offsets[features[last]]
        if n_bins > max_bins and last > first:
            break
        last += 1
    return last


@kernel
def dense_histogram(bins, order, start, stop, statistics, features, offsets, slots, pool):
    """Add statistics[i, :] to pool[slots[m], offsets[d] + bins[i, d], :] for the rows i of node m and each feature d.

    In NumPy: ``np.add.at(pool[slots[m]], offsets[d] + bins[rows, d], statistics[rows])``.
    """
    # IN: bins (n, D) uint8; order (r,) int32; start, stop (m,) int32: node m has the rows order[start[m]:stop[m]];
    #     statistics (n, channels) int32, or int64 if wide, in units of 1/factor, channels a multiple of 8; features (f,) int64:
    #     those to sum; offsets (D + 1,) int64; slots (m,) int64
    # OUT: pool (slots, total bins, channels) int64, in the units of the statistics
    n_channels = np.uintp(statistics.shape[1])
    for m in range(slots.shape[0]):
        sums = pool[slots[m]]
        # Work on tiles of rows and features, so that both the sums and the statistics of a tile stay in the cache.
        for first_row in range(start[m], stop[m], TILE_ROWS):
            last_row = min(first_row + TILE_ROWS, stop[m])
            first = 0
            while first < features.shape[0]:
                last = tile_end(features, offsets, first, TILE_BYTES // (8 * statistics.shape[1]))
                for j in range(first_row, last_row):
                    i = np.uintp(order[j])
                    for d in features[first:last]:
                        b = np.uintp(offsets[d]) + np.uintp(bins[i, np.uintp(d)])
                        for c in range(np.uintp(0), n_channels, _LANES):
                            add_lanes(sums, b, c, statistics, i)
                first = last


@kernel
def class_histogram(
    bins, order, start, stop, labels, statistics, weights, weight_factor, count, features, offsets, slots, pool
):  # fmt: skip
    """Add statistics[i] to pool[slots[m], offsets[d] + bins[i, d], y_i]: statistics of one number per row, summed by class.

    Channel `count` counts rows. Channel `count + 1` sums row weights, in units of 1/weight_factor, unless weight_factor is 0.
    """
    # IN: labels (n,) int32; statistics (n,) int64, in units of 1/factor; weights (n,) float64; the rest as in dense_histogram
    # OUT: pool (slots, total bins, channels) int64, in the units of the statistics
    for m in range(slots.shape[0]):
        sums = pool[slots[m]]
        for j in range(start[m], stop[m]):
            i = np.uintp(order[j])
            y = np.uintp(labels[i])
            w = statistics[i]
            mass = np.int64(np.rint(weights[i] * weight_factor))
            for d in features:
                b = np.uintp(offsets[d]) + np.uintp(bins[i, np.uintp(d)])
                sums[b, y] += w
                sums[b, np.uintp(count)] += 1
                if weight_factor > 0.0:
                    sums[b, np.uintp(count + 1)] += mass
