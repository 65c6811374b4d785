"""Rows of which only those bins are stored that differ from their feature's *usual* bin, that of 0.

They are stored by chunks of CHUNK features, and in a chunk row by row, so that the bins of the features that are summed together
lie together. Features are numbered in their chunk, in 16 bits.

Histograms are those of `kernels.histogram`: the sums of a usual bin are the node's less those of the feature's other bins, which
is exact, as all are integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.categories import in_set
from distboost.kernels.histogram import AHEAD
from distboost.kernels.memory import integers
from distboost.kernels.partition import goes_left
from distboost.kernels.simd import pointer, prefetch_row, rest_adding, rest_storing
from distboost.kernels.simd_bins import add_stored_lanes

ONE = np.uintp(1)
CHUNK = 2**13  # features


class StoredAddresses(NamedTuple):
    """The rows of some blocks, by the addresses of their arrays, which are C-contiguous and kept by the caller."""

    starts: np.ndarray  # (b,) int64: the address of (chunks, n + 1) int32
    feature: np.ndarray  # (b,) int64: the address of (m,) uint16
    value: np.ndarray  # (b,) int64: the address of (m,) uint8
    order: np.ndarray  # (b,) int64: the address of (r,) int32
    statistics: np.ndarray  # (b,) int64: the address of (n, channels) int32
    n_rows: np.ndarray  # (b,) int64
    n_ordered: np.ndarray  # (b,) int64: r
    n_channels: int

    @classmethod
    def of(cls, blocks: Sequence[tuple[np.ndarray, ...]]) -> StoredAddresses:
        """Return the rows of blocks with these arrays: starts, feature, value, order, statistics."""
        if not all(array.flags.c_contiguous for block in blocks for array in block):
            raise ValueError("the arrays of a block must be C-contiguous")
        table = [
            [*(array.ctypes.data for array in block), block[0].shape[1] - 1, len(block[3])]
            for block in blocks
        ]
        return cls._make([*np.array(table, np.int64).T.copy(), blocks[0][4].shape[1]])


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
    """Store such bins."""
    # IN: bins (n, D) uint8; usual (D,) uint8
    # OUT: starts (chunks, n + 1) int32: where those of each row begin; feature (m,) uint16, ascending in a row of a chunk;
    #     value (m,) uint8
    k = 0
    for chunk in range(starts.shape[0]):
        first = chunk * CHUNK
        starts[chunk, 0] = k
        for i in range(bins.shape[0]):
            for d in range(first, min(first + CHUNK, bins.shape[1])):
                if bins[i, d] != usual[d]:
                    feature[k], value[k] = d - first, bins[i, d]
                    k += 1
            starts[chunk, i + 1] = k


@kernel
def restore(starts, feature, value, usual, out):
    """Set out to all bins of the rows."""
    # IN: starts, feature, value: see `store`; usual (D,) uint8
    # OUT: out (n, D) uint8
    for i in range(out.shape[0]):
        for d in range(out.shape[1]):
            out[i, d] = usual[d]
    for chunk in range(starts.shape[0]):
        for i in range(out.shape[0]):
            for k in range(starts[chunk, i], starts[chunk, i + 1]):
                out[i, chunk * CHUNK + feature[k]] = value[k]


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
def places_of(starts, feature, i, chunk, span):
    """Return where a row's bins of those features of a chunk begin and end that lie in a span."""
    first, last = np.int64(starts[chunk, i]), np.int64(starts[chunk, i + ONE])
    low, high = span[0] - chunk * CHUNK, span[1] - chunk * CHUNK
    if low > 0:
        first = place_of(feature, first, last, low)
    if high < CHUNK:
        last = place_of(feature, first, last, high)
    return first, last


@inlined
def bin_of(starts, feature, value, usual, i, d):
    """Return the bin of row i and feature d."""
    chunk = d // CHUNK
    end, own = np.int64(starts[chunk, i + ONE]), d - chunk * CHUNK
    k = place_of(feature, np.int64(starts[chunk, i]), end, own)
    return np.int64(value[k]) if k < end and feature[k] == own else np.int64(usual[d])


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
        for chunk in range(span[0] // CHUNK, -(-span[1] // CHUNK)):
            for j in range(start[m], stop[m]):
                i = np.uintp(order[j])
                first, last = places_of(starts, feature, i, chunk, span)
                for k in range(first, last):
                    d = np.uintp(chunk * CHUNK + feature[k])
                    if is_summed[d]:
                        b = np.uintp(offsets[d]) + np.uintp(value[k])
                        for c in range(n_channels):
                            sums[b, c] += statistics[i, c]


@kernel
def add_stored_narrow(rows, start, stop, tile_rows, features, usual, offsets, fresh, tile, slots, pool):
    """Do what `add_stored` and `complete` do for the rows of all blocks, by way of 32-bit sums over `tile_rows` rows at a time.

    A row is added to each sum of the tile at most once. If `fresh`, the sums replace the arbitrary content of the slots.
    """
    # IN: rows: StoredAddresses; start, stop (b, m) int32: node m has the rows order[start[b, m]:stop[b, m]] of block b;
    #     tile_rows: no sum over so many rows exceeds `histogram.LARGEST`; features (f,) int64, at least one, ascending;
    #     usual (D,) uint8; offsets (D + 1,) int64; slots (m,) int64
    # OUT: tile (1 + bins, channels) int32: all 0 before and after; pool (slots, total bins, channels) int64
    bases = integers(usual.shape[0])
    bases[:] = -1
    n_bins = 1
    for d in features:
        bases[d] = n_bins
        n_bins += offsets[d + 1] - offsets[d]
    for m in range(slots.shape[0]):
        sums = pool[slots[m]]
        n_in_tile, is_new = 0, fresh
        for b in range(rows.starts.shape[0]):
            n = rows.n_rows[b]
            starts = carray(pointer(rows.starts[b], np.int32(0)), (-(-usual.shape[0] // CHUNK), n + 1))
            n_stored = starts[-1, n]
            feature = carray(pointer(rows.feature[b], np.uint16(0)), (n_stored,))
            value = carray(pointer(rows.value[b], np.uint8(0)), (n_stored,))
            order = carray(pointer(rows.order[b], np.int32(0)), (rows.n_ordered[b],))
            statistics = carray(pointer(rows.statistics[b], np.int32(0)), (n, rows.n_channels))
            row = np.int64(start[b, m])
            while row < stop[b, m]:
                end = min(row + tile_rows - n_in_tile, np.int64(stop[b, m]))
                span = features[0], features[-1] + 1
                add_rows_stored(starts, feature, value, order, row, end, statistics, span, bases, tile)
                n_in_tile += end - row
                row = end
                if n_in_tile == tile_rows:
                    flush_stored(tile, features, usual, offsets, is_new, sums)
                    n_in_tile, is_new = 0, False
        if n_in_tile > 0 or is_new:
            flush_stored(tile, features, usual, offsets, is_new, sums)


@kernel
def add_rows_stored(starts, feature, value, order, first_row, last_row, statistics, span, bases, tile):
    """Add statistics[i, :] to tile[0, :] and tile[bases[d] + value, :] for the rows i and their stored bins.

    Those are the rows order[first_row:last_row], and the features of the `span` whose base is not below 0.
    """
    # IN: starts, feature, value: see `store`; order (r,) int32; statistics (n, channels) int32; span: the first feature, and the
    #     end of the last; bases (D,) int64
    # OUT: tile (bins, channels) int32
    for chunk in range(span[0] // CHUNK, -(-span[1] // CHUNK)):
        own, is_first = bases[chunk * CHUNK :], chunk == span[0] // CHUNK
        for j in range(first_row, last_row):
            i = np.uintp(order[j])
            prefetch_row(statistics, order[min(j + AHEAD, last_row - 1)])
            first, last = places_of(starts, feature, i, chunk, span)
            add_stored_lanes(
                tile, statistics, i, feature, value, np.uintp(first), np.uintp(last), own, is_first
            )


@kernel
def flush_stored(tile, features, usual, offsets, is_new, sums):
    """Add a tile to the sums of its features, or store it there if `is_new`; set it to 0.

    Its first sums are those of all rows: the usual bin of a feature has what the feature's other bins leave of them.
    """
    # IN: features (f,) int64; usual (D,) uint8; offsets (D + 1,) int64
    # OUT: tile (1 + bins, channels) int32; sums (total bins, channels) int64
    first = 1
    for d in features:
        own, n_bins = offsets[d], offsets[d + 1] - offsets[d]
        if is_new:
            rest_storing(sums, own, own + usual[d], tile, first, n_bins)
        else:
            rest_adding(sums, own, own + usual[d], tile, first, n_bins)
        first += n_bins
    tile[0] = 0


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
            for chunk in range(span[0] // CHUNK, -(-span[1] // CHUNK)):
                first, last = places_of(starts, feature, i, chunk, span)
                for k in range(first, last):
                    d = np.uintp(chunk * CHUNK + feature[k])
                    if is_summed[d]:
                        b = np.uintp(offsets[d]) + np.uintp(value[k])
                        add_number(sums[b], y, w, np.uintp(count), weight_factor, mass)


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
