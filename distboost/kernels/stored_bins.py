"""Rows of which only those bins are stored that differ from their feature's *usual* bin, that of 0.

Histograms are those of `kernels.histogram`: the sums of a usual bin are the node's less those of the feature's other bins, which
is exact, as all are integers.
"""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.categories import in_set
from distboost.kernels.memory import integers
from distboost.kernels.partition import goes_left

ONE = np.uintp(1)


@kernel
def count_stored(bins, usual):
    """Return how many bins differ from their feature's usual one."""
    # IN: bins (n, D) uint8; usual (D,) uint8
    n = 0
    for i in range(bins.shape[0]):
        for d in range(bins.shape[1]):
            if bins[i, d] != usual[d]:
                n += 1
    return n


@kernel
def store(bins, usual, starts, feature, value):
    """Store such bins row by row."""
    # IN: bins (n, D) uint8; usual (D,) uint8
    # OUT: starts (n + 1,) int64: where those of each row begin; feature (m,) int32, ascending in a row; value (m,) uint8
    k = 0
    starts[0] = 0
    for i in range(bins.shape[0]):
        for d in range(bins.shape[1]):
            if bins[i, d] != usual[d]:
                feature[k], value[k] = d, bins[i, d]
                k += 1
        starts[i + 1] = k


@kernel
def restore(starts, feature, value, usual, out):
    """Set out to all bins of the rows."""
    # IN: starts, feature, value: see `store`; usual (D,) uint8
    # OUT: out (n, D) uint8
    for i in range(out.shape[0]):
        out[i] = usual
        for k in range(starts[i], starts[i + 1]):
            out[i, feature[k]] = value[k]


@inlined
def place_of(feature, low, high, d):
    """Return where the features from d on begin in feature[low:high], which ascend."""
    while low < high:
        middle = (low + high) // 2
        if feature[middle] < d:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def bin_of(starts, feature, value, usual, i, d):
    """Return the bin of row i and feature d."""
    end = starts[i + 1]
    k = place_of(feature, starts[i], end, d)
    return np.int64(value[k]) if k < end and feature[k] == d else np.int64(usual[d])


@kernel
def add_stored(
    starts, feature, value, order, start, stop, statistics, is_summed, span, offsets, slots, pool, totals
):
    """Add statistics[i, :] to the stored bins of the rows i of each node, and to the node's totals.

    In NumPy, for one row: ``pool[slot, offsets[feature] + value] += statistics[row]``.
    """
    # IN: starts, feature, value: see `store`; order (r,) int32; start, stop (m,) int32: node m has the rows
    #     order[start[m]:stop[m]]; statistics (n, channels or more) int32 or int64; is_summed (D,) bool: the features to sum, of
    #     which `span` has the first, and the end of the last; offsets (D + 1,) int64; slots (m,) int64
    # OUT: pool (slots, total bins, channels) int64; totals (m, channels) int64
    n_channels = np.uintp(pool.shape[2])
    for m in range(slots.shape[0]):
        sums = pool[slots[m]]
        for j in range(start[m], stop[m]):
            i = np.uintp(order[j])
            for c in range(n_channels):
                totals[m, c] += statistics[i, c]
            end = starts[i + ONE]
            k = place_of(feature, starts[i], end, span[0])
            while k < end and feature[k] < span[1]:
                d = np.uintp(feature[k])
                if is_summed[d]:
                    b = np.uintp(offsets[d]) + np.uintp(value[k])
                    for c in range(n_channels):
                        sums[b, c] += statistics[i, c]
                k += 1


@kernel
def add_stored_by_class(
    starts, feature, value, order, start, stop, labels, statistics, weights, weight_factor, count, is_summed, span, offsets,
    slots, pool, totals,
):  # fmt: skip
    """Do what `add_stored` does for statistics of one number per row, summed by class: see `histogram.class_histogram`."""
    # IN: labels (n,) int32; statistics (n,) int64; weights (n,) float64; count: the channel that counts rows; the rest as in
    #     `add_stored`
    # OUT: pool (slots, total bins, channels) int64; totals (m, channels) int64
    for m in range(slots.shape[0]):
        sums = pool[slots[m]]
        for j in range(start[m], stop[m]):
            i = np.uintp(order[j])
            y = np.uintp(labels[i])
            w = statistics[i]
            mass = np.int64(np.rint(weights[i] * weight_factor))
            add_number(totals[m], y, w, np.uintp(count), weight_factor, mass)
            end = starts[i + ONE]
            k = place_of(feature, starts[i], end, span[0])
            while k < end and feature[k] < span[1]:
                d = np.uintp(feature[k])
                if is_summed[d]:
                    b = np.uintp(offsets[d]) + np.uintp(value[k])
                    add_number(sums[b], y, w, np.uintp(count), weight_factor, mass)
                k += 1


@inlined
def add_number(sums, y, w, count, weight_factor, mass):
    """Add a row's number and weight to the sums of a bin."""
    sums[y] += w
    sums[count] += 1
    if weight_factor > 0.0:
        sums[count + ONE] += mass


@kernel
def complete(features, usual, totals, offsets, slots, pool):
    """Set the sums of the usual bins: those of the node less those of the feature's other bins."""
    # IN: features (f,) int64; usual (D,) uint8; totals (m, channels) int64: the sums of all rows that were added to a node;
    #     offsets (D + 1,) int64; slots (m,) int64
    # OUT: pool (slots, total bins, channels) int64
    n_channels = np.uintp(totals.shape[1])
    rest = integers(totals.shape[1])
    for m in range(slots.shape[0]):
        sums = pool[slots[m]]
        for d in features:
            own = np.uintp(offsets[d]) + np.uintp(usual[d])
            for c in range(n_channels):
                rest[c] = totals[m, c]
            for b in range(np.uintp(offsets[d]), np.uintp(offsets[d + 1])):
                if b != own:
                    for c in range(n_channels):
                        rest[c] -= sums[b, c]
            for c in range(n_channels):
                sums[own, c] = rest[c]


@kernel
def split_stored(
    starts, feature, value, usual, missing_bin, order, spans, node, split_feature, split_bin, missing_left, left, right, sets,
    scratch,
):  # fmt: skip
    """Do what `partition.split_spans` does."""
    # IN: starts, feature, value: see `store`; usual (D,) uint8; the rest as in `partition.split_spans`
    # OUT: order (r,) int32; spans (nodes, 2) int32; scratch (r,) int32: working memory
    is_left = np.empty(256, np.uint8)  # by bin
    for m in range(node.shape[0]):
        d = split_feature[m]
        for b in range(256):
            is_left[b] = goes_left(b, split_bin[m], missing_bin[d], missing_left[m], sets, m)
        start, stop = np.uintp(spans[node[m], 0]), np.uintp(spans[node[m], 1])
        n_left, n_right = start, np.uintp(0)
        for j in range(start, stop):
            i = np.uintp(order[j])
            left_rows = np.uintp(is_left[bin_of(starts, feature, value, usual, i, d)])
            order[n_left] = i
            scratch[n_right] = i
            n_left += left_rows
            n_right += ONE - left_rows
        for j in range(n_right):
            order[n_left + j] = scratch[j]
        spans[left[m], 0], spans[left[m], 1] = start, n_left
        spans[right[m], 0], spans[right[m], 1] = n_left, stop


@kernel
def descend_stored(starts, feature, value, usual, nodes, sets, child, rows, out):
    """Do what `leaves.descend` does."""
    # IN: starts, feature, value: see `store`; usual (D,) uint8; the rest as in `leaves.descend`
    # OUT: out (r,) int32
    for j in range(rows.shape[0]):
        m, following = -1, 0
        while following != m:
            m = following
            d, split_bin, missing_left = nodes[m]
            b = bin_of(starts, feature, value, usual, np.uintp(rows[j]), d)
            goes_right = not in_set(sets, m, b) if split_bin < 0 else b > split_bin and b != missing_left
            following = int(child[m, 1 if goes_right else 0])
        out[j] = m
