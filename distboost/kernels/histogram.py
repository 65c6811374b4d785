"""Sums of row statistics per node, feature and bin: boosting spends most of its time here.

The bins of all features lie one after another: feature d owns `offsets[d]:offsets[d + 1]`, and its last bin holds missing values.
The channel after the sums counts rows.
"""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.simd import LANES, add_lanes

_LANES = np.uintp(LANES)

TILE_ROWS = 2048
TILE_BYTES = 2**18  # of sums, which is less than the second-level cache


@kernel
def clear(features, offsets, slots, pool):
    """pool[slots, offsets[d]:offsets[d + 1]] = 0 for each feature d."""
    for slot in slots:
        for d in features:
            pool[slot, offsets[d] : offsets[d + 1]] = 0


@kernel
def tile_end(features, offsets, first, max_bins):
    """The end of the longest run of features from `first` that has at most max_bins bins, or is a single feature."""
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
    """pool[slots[m], offsets[d] + bins[i, d], :] += statistics[i, :] for the rows i of node m and each feature d.

    In NumPy: ``np.add.at(pool[slots[m]], offsets[d] + bins[rows, d], statistics[rows])``.
    """
    # IN: bins (n, D) uint8; order (n,) int32, the rows by node; start, stop (m,) the nodes' spans in order;
    #     statistics (n, C) int32, or int64 if wide, C a multiple of 8; features: which to sum; slots (m,)
    # OUT: pool (slots, total bins, C) int64, added to
    n_channels = np.uintp(statistics.shape[1])
    for m in range(slots.shape[0]):
        sums = pool[slots[m]]
        # Tiles of rows and features: both the sums and the statistics of a tile stay in the cache.
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
    """pool[slots[m], offsets[d] + bins[i, d], y_i] += statistics[i]; channel `count` counts rows.

    For statistics of one number per row, summed by class. Channel `count + 1` sums the rows' own weights, in units of
    1/weight_factor, unless that is 0.
    """
    # IN: labels (n,) int32; statistics (n,) int64; weights (n,) float64; the rest as in dense_histogram
    # OUT: pool (slots, total bins, C) int64, added to
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
