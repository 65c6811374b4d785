"""Sums of row statistics by node, feature and bin. Boosting spends most of its time here.

The bins of all features are concatenated: feature d has the bins `offsets[d]:offsets[d + 1]`, the last of which is for missing
values. A bin has one channel for each sum, then one that counts rows, then one that sums row weights if these are in use.

Narrow statistics are summed in *tiles* of 32-bit sums that fit in the second-level cache: each over a group of features, and
over so few rows of a node that no sum can overflow. Then the tiles are added to the 64-bit sums.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from distboost.kernels._jit import kernel
from distboost.kernels.lanes import SUM_LANES
from distboost.kernels.memory import integers
from distboost.kernels.simd import flush_adding, flush_storing, padded, pointer, prefetch
from distboost.kernels.simd_bins import LINE, add_lanes, add_lines, add_sums

_SUM_LANES = np.uintp(SUM_LANES)

TILE_ROWS = 2048  # they stay in the second-level cache while they are added to one tile after another
TILE_BYTES = 2**18  # the sums of a tile: they fit in the second-level cache
TILES_AT_ONCE = 4  # to which the same rows are added: the tiles of one thread
LARGEST = 2**31 - 1  # of a sum in a tile
MOST_ROWS = 8192  # of a tile: with the statistics of more rows, its sums do not stay in the cache
AHEAD = 16  # rows: their bins and statistics are loaded into the cache in advance
FEWEST_ROWS = (
    128  # if a tile's sums could overflow with so few rows, rows are added to the 64-bit sums directly
)


class Target(NamedTuple):
    """The histograms to which rows are added."""

    features: np.ndarray  # (f,) int64: those to sum
    offsets: np.ndarray  # (D + 1,) int64: where the bins of each feature begin
    slots: np.ndarray  # (m,) int64: the slot of each node
    pool: np.ndarray  # (slots, total bins, channels) int64
    fresh: bool  # whether the slots have arbitrary content, which is to be replaced

    def cleared(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return features, offsets, slots and pool, the slots cleared if they are fresh."""
        features, offsets, slots, pool, fresh = self
        if fresh:
            clear(features, offsets, slots, pool)
        return features, offsets, slots, pool


_own = threading.local()


def tile_for(target: Target, n_more: int = 0) -> np.ndarray:
    """Return the calling thread's tiles for the features of a target, (bins + n_more, channels) int32, all 0."""
    n_bins = int((target.offsets[target.features + 1] - target.offsets[target.features]).sum())
    shape = n_bins + n_more, padded(target.pool.shape[2])
    size = shape[0] * shape[1]
    tile: np.ndarray | None = getattr(_own, "tile", None)
    if tile is None or tile.size < size:
        line = 64 // 4
        tile = np.zeros(size + line, np.int32)
        # A row of 16 channels takes one cache line if the tile begins with one.
        tile = tile[-(tile.ctypes.data // 4) % line :][:size]
        _own.tile = tile
    return tile[:size].reshape(shape)


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
def add_in_tiles(bins, order, start, stop, statistics, features, offsets, max_bins, bases, sums):
    """Do what `add_rows` does for few rows and at most max_bins bins at a time, which stay in the cache together."""
    for first_row in range(start, stop, TILE_ROWS):
        last_row = min(first_row + TILE_ROWS, stop)
        first = 0
        while first < features.shape[0]:
            last = tile_end(features, offsets, first, max_bins)
            group, places = features[first:last], bases[first:last]
            add_rows(bins, order, first_row, last_row, statistics, group, places, sums)
            first = last


@kernel
def dense_histogram(bins, order, start, stop, statistics, features, offsets, slots, pool):
    """Add statistics[i, :] to pool[slots[m], offsets[d] + bins[i, d], :] for the rows i of node m and each feature d.

    In NumPy: ``np.add.at(pool[slots[m]], offsets[d] + bins[rows, d], statistics[rows])``.
    """
    # IN: bins (n, D) uint8; order (r,) int32; start, stop (m,) int32: node m has the rows order[start[m]:stop[m]];
    #     statistics (n, channels) int32, or int64 if wide, in units of 1/factor, channels a multiple of 8; features (f,) int64:
    #     those to sum; offsets (D + 1,) int64; slots (m,) int64
    # OUT: pool (slots, total bins, channels) int64, in the units of the statistics
    bases, max_bins = offsets[features], TILE_BYTES // (8 * statistics.shape[1])
    for m in range(slots.shape[0]):
        add_in_tiles(
            bins, order, start[m], stop[m], statistics, features, offsets, max_bins, bases, pool[slots[m]]
        )


@kernel
def add_rows(bins, order, first_row, last_row, statistics, columns, bases, sums):
    """Add statistics[i, :] to sums[bases[f] + bins[i, columns[f]], :] for the rows order[first_row:last_row] and each f."""
    # IN: bins (n, D) uint8; order (r,) int32; statistics (n, channels) int32 or int64; columns, bases (f,) int64
    # OUT: sums (bins, channels) int32, or int64 with as many channels or fewer: those behind are 0
    first, last = np.uintp(columns[0]), np.uintp(columns[-1])
    for j in range(first_row, last_row):
        i = np.uintp(order[j])
        ahead = np.uintp(order[min(j + AHEAD, last_row - 1)])
        prefetch(bins, ahead, first)
        prefetch(bins, ahead, last)
        for c in range(np.uintp(0), np.uintp(statistics.shape[1]), np.uintp(16)):
            prefetch(statistics, ahead, c)
        if sums.itemsize == 8:
            add_sums(sums, statistics, i, bins, columns, bases)
        elif sums.shape[1] % LINE == 0:
            add_lines(sums, statistics, i, bins, columns, bases)
        else:
            add_lanes(sums, statistics, i, bins, columns, bases)


class RowAddresses(NamedTuple):
    """The rows of some blocks, by the addresses of their arrays, which are C-contiguous and kept by the caller."""

    bins: np.ndarray  # (b,) int64: the address of (n, D) uint8
    order: np.ndarray  # (b,) int64: the address of (r,) int32
    statistics: np.ndarray  # (b,) int64: the address of (n, channels) int32, or int64
    n_rows: np.ndarray  # (b,) int64
    n_ordered: np.ndarray  # (b,) int64: r
    n_features: int
    n_channels: int
    # Of statistics of one number per row, which are summed by class: see `class_histogram`.
    labels: np.ndarray  # (b,) int64: the address of (n,) int32
    weights: np.ndarray  # (b,) int64: the address of (n,) float64
    weight_factor: float
    n_classes: int

    @classmethod
    def of(
        cls,
        blocks: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
        classes: Sequence[tuple[np.ndarray, np.ndarray]] = (),
        weight_factor: float = 0.0,
        n_classes: int = 0,
    ) -> RowAddresses:
        """Return the rows of blocks with these bins, orders and statistics; `classes`: with these labels and weights."""
        if not all(array.flags.c_contiguous for block in (*blocks, *classes) for array in block):
            raise ValueError("the arrays of a block must be C-contiguous")
        table = np.empty((7, len(blocks)), np.int64)
        for b, (bins, order, statistics) in enumerate(blocks):
            note_block(bins, order, statistics, b, table)
        for b, arrays in enumerate(classes):
            table[5:, b] = [array.ctypes.data for array in arrays]
        known = bins.shape[1], statistics.shape[1], *table[5:], float(weight_factor), n_classes
        return cls._make([*table[:5], *known])


@kernel
def note_block(bins, order, statistics, b, table):
    """Set table[:, b] to a block's first fields of `RowAddresses`: asking NumPy for an address takes as long as ten calls."""
    # IN: bins (n, D) uint8; order (r,) int32; statistics (n, channels) int32
    # OUT: table (7, blocks) int64
    table[0, b], table[1, b], table[2, b] = bins.ctypes.data, order.ctypes.data, statistics.ctypes.data
    table[3, b], table[4, b] = bins.shape[0], order.shape[0]


@kernel
def narrow_histogram(rows, start, stop, tile_rows, features, constant, offsets, fresh, tile, slots, pool):
    """Do what `dense_histogram` does for the rows of all blocks, by way of 32-bit sums over `tile_rows` rows at a time.

    If `fresh`, the sums replace the arbitrary content of the slots. The features must fit in `tile`, the memory of one or more
    tiles, which is all 0 before and after.
    """
    # IN: rows: Rows; start, stop (b, m) int32: node m has the rows order[start[b, m]:stop[b, m]] of block b;
    #     tile_rows: no sum over so many rows exceeds LARGEST; features (f,) int64, at least one;
    #     constant (g,) int64: other features, of which all rows have the same bin; the rest as in `dense_histogram`
    # OUT: tile (bins, channels) int32; pool (slots, total bins, channels) int64
    bases = integers(features.shape[0])
    n_bins = 0
    for f in range(features.shape[0]):
        bases[f] = n_bins
        n_bins += offsets[features[f] + 1] - offsets[features[f]]
    own_bases = offsets[features]
    n_first = offsets[features[0] + 1] - offsets[features[0]]
    shape = rows.n_rows[0], rows.n_features
    first_bins = carray(pointer(rows.bins[0], np.uint8(0)), shape)
    max_bins = TILE_BYTES // (4 * rows.n_channels)
    for m in range(slots.shape[0]):
        sums = pool[slots[m]]
        n_in_tile, is_new = 0, fresh
        n_in_node = 0
        for b in range(rows.bins.shape[0]):
            n_in_node += stop[b, m] - start[b, m]
        # A pass over the tile would take longer. To add to the sums directly takes four times as long as to a tile.
        is_small = not fresh and 4 * n_in_node * features.shape[0] < n_bins
        for b in range(rows.bins.shape[0]):
            bins = carray(pointer(rows.bins[b], np.uint8(0)), (rows.n_rows[b], rows.n_features))
            order = carray(pointer(rows.order[b], np.int32(0)), (rows.n_ordered[b],))
            statistics = carray(pointer(rows.statistics[b], np.int32(0)), (rows.n_rows[b], rows.n_channels))
            row = np.int64(start[b, m])
            if is_small:
                add_rows(bins, order, row, stop[b, m], statistics, features, own_bases, sums)
                if constant.shape[0]:
                    add_rows(bins, order, row, stop[b, m], statistics, constant, offsets[constant], sums)
                continue
            while row < stop[b, m]:
                end = min(row + tile_rows - n_in_tile, np.int64(stop[b, m]))
                add_in_tiles(bins, order, row, end, statistics, features, offsets, max_bins, bases, tile)
                n_in_tile += end - row
                row = end
                if n_in_tile == tile_rows:
                    add_constant(tile, n_first, first_bins, constant, offsets, is_new, sums)
                    flush(tile, features, offsets, is_new, sums)
                    n_in_tile, is_new = 0, False
        if n_in_tile > 0 or is_new:
            add_constant(tile, n_first, first_bins, constant, offsets, is_new, sums)
            flush(tile, features, offsets, is_new, sums)


@kernel
def compact_histogram(rows, start, stop, features, offsets, tile, count, ends, occupied, sums):
    """Sum the rows of a node whose bins are mostly empty: only bins that have rows, and those of missing values, get sums.

    Feature d has the bins occupied[ends[d]:ends[d + 1]], counted from its first one, ascending; the last is for missing values.
    Where no sum over the rows exceeds LARGEST. The features must fit in `tile`, which is all 0 before and after.
    """
    # IN: rows: RowAddresses; start, stop (b, 1) int32; features (f,) int64 ascending; offsets (D + 1,) int64; count: the channel
    #     that counts rows
    # OUT: tile (bins, channels) int32; ends (D + 1,) int64: those of other features are left as they are; occupied (bins,)
    #     int64 and sums (bins, channels) int64, of arbitrary content behind
    bases = integers(features.shape[0])
    n_bins = 0
    for f in range(features.shape[0]):
        bases[f] = n_bins
        n_bins += offsets[features[f] + 1] - offsets[features[f]]
    max_bins = TILE_BYTES // (4 * rows.n_channels)
    for b in range(rows.bins.shape[0]):
        bins = carray(pointer(rows.bins[b], np.uint8(0)), (rows.n_rows[b], rows.n_features))
        order = carray(pointer(rows.order[b], np.int32(0)), (rows.n_ordered[b],))
        statistics = carray(pointer(rows.statistics[b], np.int32(0)), (rows.n_rows[b], rows.n_channels))
        add_in_tiles(
            bins, order, start[b, 0], stop[b, 0], statistics, features, offsets, max_bins, bases, tile
        )
    n_channels, n = np.uintp(sums.shape[1]), np.uintp(0)
    for f in range(features.shape[0]):
        d, own = features[f], np.uintp(bases[f])
        first, missing = n, np.uintp(offsets[d + 1] - offsets[d] - 1)
        for b in range(missing):
            occupied[n] = b
            n += np.uintp(tile[own + b, count] != 0)
        occupied[n] = missing
        n += np.uintp(1)
        ends[d], ends[d + 1] = first, n
        for i in range(first, n):
            for c in range(np.uintp(0), n_channels, _SUM_LANES):
                flush_storing(sums, i, c, tile, own + np.uintp(occupied[i]))


@kernel
def wide_histogram(rows, start, stop, tile_rows, features, constant, offsets, fresh, tile, slots, pool):
    """Do what `dense_histogram` does for the rows of all blocks. The arguments are those of `narrow_histogram`."""
    # IN: rows: RowAddresses, statistics int64; tile_rows and `constant` are not used
    # OUT: pool (slots, total bins, channels) int64; if `fresh`, its content is replaced
    if fresh:
        clear(features, offsets, slots, pool)
    for b in range(rows.bins.shape[0]):
        bins = carray(pointer(rows.bins[b], np.uint8(0)), (rows.n_rows[b], rows.n_features))
        order = carray(pointer(rows.order[b], np.int32(0)), (rows.n_ordered[b],))
        statistics = carray(pointer(rows.statistics[b], np.int64(0)), (rows.n_rows[b], rows.n_channels))
        dense_histogram(bins, order, start[b], stop[b], statistics, features, offsets, slots, pool)


@kernel
def class_histogram_of_blocks(
    rows, start, stop, tile_rows, features, constant, offsets, fresh, tile, slots, pool
):
    """Do what `class_histogram` does for the rows of all blocks. The arguments are those of `narrow_histogram`."""
    # IN: rows: RowAddresses with classes, statistics (n, 1) int64; tile_rows and `constant` are not used
    # OUT: pool (slots, total bins, channels) int64; if `fresh`, its content is replaced
    if fresh:
        clear(features, offsets, slots, pool)
    for b in range(rows.bins.shape[0]):
        n = rows.n_rows[b]
        bins = carray(pointer(rows.bins[b], np.uint8(0)), (n, rows.n_features))
        order = carray(pointer(rows.order[b], np.int32(0)), (rows.n_ordered[b],))
        labels = carray(pointer(rows.labels[b], np.int32(0)), (n,))
        numbers = carray(pointer(rows.statistics[b], np.int64(0)), (n,))
        weights = carray(pointer(rows.weights[b], np.float64(0)), (n,))
        class_histogram(
            bins, order, start[b], stop[b], labels, numbers, weights, rows.weight_factor, rows.n_classes,
            features, offsets, slots, pool,
        )  # fmt: skip


@kernel
def varying_features(bins, out):
    """Set out[d] to whether the rows have more than one bin of feature d."""
    # IN: bins (n, D) uint8
    # OUT: out (D,) bool
    out[:] = False
    for i in range(1, bins.shape[0]):
        for d in range(bins.shape[1]):
            out[d] |= bins[i, d] != bins[0, d]


@kernel
def add_constant(tile, n_bins, bins, constant, offsets, is_new, sums):
    """Add the sum of the tile's first `n_bins` bins, those of one feature, to the bin of each constant feature."""
    # IN: tile (bins, channels) int32; bins (n, D) uint8; constant (f,) int64: features of which all rows have the same bin;
    #     offsets (D + 1,) int64
    # OUT: sums (total bins, channels) int64; if `is_new`, its content is replaced
    total = integers(tile.shape[1])
    for b in range(n_bins):
        for c in range(tile.shape[1]):
            total[c] += tile[b, c]
    for d in constant:
        own = offsets[d] + np.int64(bins[0, d])
        if is_new:
            sums[offsets[d] : offsets[d + 1]] = 0
        for c in range(sums.shape[1]):
            sums[own, c] += total[c]


@kernel
def flush(tile, features, offsets, is_new, sums):
    """Add a tile to the sums of its features, or store it there if `is_new`; set it to 0."""
    # IN: features (f,) int64; offsets (D + 1,) int64
    # OUT: tile (bins, channels) int32; sums (total bins, channels) int64
    n_channels = np.uintp(sums.shape[1])
    b = np.uintp(0)
    for d in features:
        for own in range(np.uintp(offsets[d]), np.uintp(offsets[d + 1])):
            for c in range(np.uintp(0), n_channels, _SUM_LANES):
                if is_new:
                    flush_storing(sums, own, c, tile, b)
                else:
                    flush_adding(sums, own, c, tile, b)
            b += np.uintp(1)


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
