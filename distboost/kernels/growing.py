"""The growth of a whole tree on rows that all lie in this process: histograms, best splits and the division of rows.

The kernels that sum, search and divide are called by their addresses: so the growth is compiled once for all gains.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.by_address import address_of, caller, kinds_of
from distboost.kernels.gains import Gain
from distboost.kernels.histogram import RowAddresses, compact_histogram
from distboost.kernels.partition import split_spans
from distboost.kernels.signed_leaves import FLIP, KEEP, change_of, see_others
from distboost.kernels.simd import pointer
from distboost.kernels.split_search import best_splits_by, subtract_features, with_globals

NO_SLOT = -1

# The calls of kernels, and the functions with these calls: `_growth` puts them in their place.
best_splits: Any = None
histogram: Any = None
compaction: Any = None
division: Any = None
split_node: Any = None
add_node: Any = None
find_splits: Any = None
consider: Any = None
following: Any = None


class Calls(NamedTuple):
    """The addresses of the kernels that a tree is grown by."""

    search: int  # of `best_splits_by` the gain
    histogram: int  # of `narrow_histogram` or `wide_histogram`
    compaction: int  # of `compact_histogram`
    division: int


class Data(NamedTuple):
    """The features of a tree, and the rows that it is grown on."""

    rows: RowAddresses
    spans: np.ndarray  # (b, nodes, 2) int32: where each node's rows begin and end in each block
    missing_bin: np.ndarray  # (D,) int64
    features: np.ndarray  # (f,) int64: those of the tree
    varying: np.ndarray  # (g,) int64: those of which not all rows have the same bin, or the first feature
    constant: np.ndarray  # (f - g,) int64: the others
    offsets: np.ndarray  # (D + 1,) int64: where the bins of each feature begin
    categorical: np.ndarray  # (D,) bool
    tile_rows: int  # as in `narrow_histogram`
    few_rows: int  # the most rows of a node whose histogram is better a compact one


class Growth(NamedTuple):
    """How far a tree grows, and by which splits."""

    max_depth: int
    max_leaf_nodes: int  # a tree with this limit grows best first; 0: level by level
    min_rows: int  # of a leaf
    min_weight_fraction: float  # of a leaf, of the weight of all rows in the tree
    n_sums: int  # channels of a histogram that hold sums of the statistic
    weighted: bool  # whether histograms sum row weights
    least_category: int  # the weight of a category that is known in a node
    ordering: int  # of the features: see `ordering_of`
    context: np.ndarray  # (2, k) float64: of the gain; that of one leaf after another, if leaves have signs


class NodeRoom(NamedTuple):
    """The nodes of a growing tree, by number, with room for all of them."""

    child: np.ndarray  # (n,) int64: the left child, if it was split; the right one has the next number
    depth: np.ndarray  # (n,) int64
    sign: np.ndarray  # (n,) int64: see `kernels.signed_leaves`; 0 if leaves have none
    slot: np.ndarray  # (n,) int64: where the histogram of a node is that was summed
    sums: np.ndarray  # (n, channels in use) int64
    inner: np.ndarray  # (n,) int64: the nodes that were split, in this order
    best: Any  # BestSplits of n nodes


class Memory(NamedTuple):
    """Working memory."""

    pool: (
        np.ndarray
    )  # (slots, total bins, channels) int64: histograms, of arbitrary content; the last is a compact one
    free: np.ndarray  # (slots - 1,) int64: the numbers of those without a histogram
    ends: np.ndarray  # (D + 1,) int64: where the bins of each feature begin in a compact histogram
    occupied: np.ndarray  # (total bins,) int64: the bins of its features: see `compact_histogram`
    tile: np.ndarray  # (bins, channels) int32: all 0 before and after
    start: np.ndarray  # (b, 1) int32
    stop: np.ndarray  # (b, 1) int32
    own: np.ndarray  # (2,) int64
    scratch: np.ndarray  # (r,) int32: for the rows of a block
    found: Any  # BestSplits of two nodes


_known: dict[tuple[Gain, Any], tuple[Any, Calls]] = {}


def growth_of(gain: Gain, summation: Any, data: Data, growth: Growth, memory: Memory) -> tuple[Any, Calls]:
    """Return the kernel `_grow`, and the calls for it, for trees of a gain whose histograms the kernel `summation` sums.

    The arguments are examples: those of all trees have the same types.
    """
    if (gain, summation) not in _known:
        _known[gain, summation] = _new_growth(gain, summation, data, growth, memory)
    return _known[gain, summation]


def _new_growth(gain: Gain, summation: Any, data: Data, growth: Growth, memory: Memory) -> tuple[Any, Calls]:
    some, pool, spans, best = data.features, memory.pool, data.spans, memory.found
    n, flag = growth.n_sums, growth.weighted
    searches = kinds_of(
        pool, some, some, some, data.offsets, data.categorical, n, flag, growth.context, n, n, n, n, best
    )
    sums = kinds_of(data.rows, spans[0], spans[0], n, some, some, data.offsets, flag, memory.tile, some, pool)
    compacts = kinds_of(
        data.rows,
        spans[0],
        spans[0],
        some,
        data.offsets,
        memory.tile,
        n,
        memory.ends,
        memory.occupied,
        pool[0],
    )
    divides = kinds_of(
        data.rows, some, spans, some, some, some, best.missing_left, some, some, best.sets, memory.scratch
    )
    search = best_splits_by(gain)
    kernels = ((search, searches), (summation, sums), (compact_histogram, compacts), (split_blocks, divides))
    grow = _growth(searches, sums, compacts, divides, signed=gain.has_signs)
    return grow, Calls(*[address_of(*pair) for pair in kernels])


@cache
def _growth(
    searches: tuple[Any, ...],
    sums: tuple[Any, ...],
    compacts: tuple[Any, ...],
    divides: tuple[Any, ...],
    signed: bool,
) -> Any:
    namespace: dict[str, Any] = {
        **globals(),
        "best_splits": caller(searches),
        "histogram": caller(sums),
        "compaction": caller(compacts),
        "division": caller(divides),
    }
    for name, function in (
        ("split_node", _split_node),
        ("add_node", _add_node),
        ("find_splits", _find_splits),
        ("consider", _keep_histograms if signed else _find_best_splits),
        ("following", _next_improved if signed else _next_best),
    ):
        namespace[name] = inlined(with_globals(function, namespace, ""))
    return kernel(with_globals(_grow, namespace, "_signed" if signed else ""), counted=False)


def _grow(calls, data, growth, nodes, memory):
    """Grow a tree. Return the numbers of nodes that were split, of rows that were summed, and of questions.

    Nodes are split in the order of their numbers, or best first: the oldest of equal ones first. Of two children, the smaller is
    summed, if one of them may be split; the other's histogram is what is left of the parent's. If both have few rows, both are
    summed, one after the other, in compact histograms. A level of such children would be a question, or each pair of them if the
    best is split first.

    If leaves have signs, they are improved in turn instead, level by level, as in `trees.whole_tree`: each is searched when its
    turn comes.
    """
    # IN: calls: Calls; data: Data; growth: Growth
    # OUT: data.spans, and the order of the rows; nodes: NodeRoom, of which the children of nodes are set to 0 that have none, and
    #     the gains of nodes that may not be split; memory: Memory
    child, depth, sign, slot, sums, inner, best = nodes
    child[:], best.gain[:], depth[0], sign[0], sums[0] = 0, 0.0, 0, 0, 0
    n_sums, free, n_free = growth.n_sums, memory.free, memory.free.shape[0] - 1
    for number in range(free.shape[0]):
        free[number] = number
    compact = free.shape[0]
    slot[0] = free[n_free] if rows_of(data.spans, 0) > data.few_rows else compact
    node, n_nodes, n_inner, n_rows, n_questions, asked = 0, 1, 0, 0, 0, 0
    min_weight, smaller, larger, n_summed, n_left = np.int64(0), 0, 0, 1, 0
    while node < n_nodes:
        for place in range(n_summed):
            own = larger if place == 1 else smaller
            n_rows += add_node(calls, data, growth, own, slot, memory)
            if n_nodes == 1:
                add_root(data, memory, slot[0], sums)
                min_weight = np.int64(np.ceil(growth.min_weight_fraction * sums[0, n_sums + growth.weighted]))
            if depth[own] < growth.max_depth:
                n_free = consider(calls, data, growth, min_weight, nodes, own, larger, n_left, memory, n_free)
        node, n_free = following(node, n_nodes, calls, data, growth, min_weight, nodes, memory, n_free)
        if node == n_nodes or n_inner + 1 == growth.max_leaf_nodes:
            break
        left, right = n_nodes, n_nodes + 1
        split_node(calls, data, node, left, nodes, memory)
        inner[n_inner] = node
        n_inner, n_nodes, n_summed = n_inner + 1, n_nodes + 2, 0
        slot[left], slot[right] = NO_SLOT, NO_SLOT
        has_rows = max(sums[left, n_sums], sums[right, n_sums]) >= 2 * growth.min_rows
        if depth[left] < growth.max_depth and has_rows and n_inner + 1 != growth.max_leaf_nodes:
            smaller, larger = (left, right) if best.n_left[node] <= best.n_right[node] else (right, left)
            if rows_of(data.spans, larger) <= data.few_rows:
                n_summed, n_left = 2, 0
                n_free = given_back(slot[node], free, n_free)
                slot[smaller] = slot[larger] = compact
            elif n_free == 0:
                raise IndexError("the pool has too few histograms")
            else:
                n_summed, n_left, n_free = 1, 1, n_free - 1
                slot[smaller], slot[larger] = free[n_free], slot[node]
            n_questions += growth.max_leaf_nodes > 0 or depth[left] > asked
            asked = depth[left]
        elif depth[left] < growth.max_depth:
            n_free = given_back(slot[node], free, n_free)
    return n_inner, n_rows, n_questions


@inlined
def rows_of(spans, node):
    """Return the number of rows of a node."""
    n = 0
    for b in range(spans.shape[0]):
        n += spans[b, node, 1] - spans[b, node, 0]
    return n


@inlined
def given_back(slot, free, n_free):
    """Return the number of free slots, with this one unless it is none or that of compact histograms."""
    if NO_SLOT < slot < free.shape[0]:
        free[n_free] = slot
        n_free += 1
    return n_free


def _find_best_splits(calls, data, growth, min_weight, nodes, own, larger, n_left, memory, n_free):
    """Find the best splits of a node that was summed, and of its sibling if n_left is 1. Return the number of free slots."""
    best, depth, slot = nodes.best, nodes.depth, nodes.slot
    find_splits(calls, data, growth, min_weight, slot, own, larger, n_left, memory)
    for position in range(1 + n_left):
        m = larger if position == 1 else own
        note(memory.found, position, best, m)
        # The histogram of a node is only needed for those of its children.
        if not (best.gain[m] > 0 and depth[m] + 1 < growth.max_depth):
            n_free = given_back(slot[m], memory.free, n_free)
    return n_free


def _keep_histograms(calls, data, growth, min_weight, nodes, own, larger, n_left, memory, n_free):
    """Compute the sibling's histogram. Keep it and that of the node for their turn, if they have enough rows to be split."""
    if n_left == 1:
        pool, slot = memory.pool, nodes.slot
        subtract_features(pool[slot[larger]], pool[slot[own]], data.features, data.offsets)
    for position in range(1 + n_left):
        m = larger if position == 1 else own
        if nodes.sums[m, growth.n_sums] < 2 * growth.min_rows:
            n_free = given_back(nodes.slot[m], memory.free, n_free)
            nodes.slot[m] = NO_SLOT
    return n_free


def _next_best(first, n_nodes, calls, data, growth, min_weight, nodes, memory, n_free):
    """Return the node to split next, of n_nodes nodes, or n_nodes, and the number of free slots.

    Level by level, it has at least the number `first`.
    """
    child, gain = nodes.child, nodes.best.gain
    found, largest = first, 0.0
    if growth.max_leaf_nodes == 0:
        while found < n_nodes and (child[found] > 0 or not gain[found] > 0):
            found += 1
    else:
        found = n_nodes
        for node in range(n_nodes):
            if gain[node] > largest and child[node] == 0:
                found, largest = node, gain[node]
    return found, n_free


def _next_improved(first, n_nodes, calls, data, growth, min_weight, nodes, memory, n_free):
    """Improve leaves in turn, after the node `first`. Return the one to split next, or n_nodes, and the number of free slots.

    A leaf whose sign is changed comes again with those of the next level. If all leaves have the same sign, the tree is complete.
    """
    sign, depth, slot, best, context = nodes.sign, nodes.depth, nodes.slot, nodes.best, growth.context
    level, leaf, n_seen = depth[first], first, 1
    while level < growth.max_depth:
        while leaf < n_nodes:
            if nodes.child[leaf] == 0 and depth[leaf] == level:
                n_seen += 1
                if see_others(nodes.sums, nodes.child[:n_nodes], sign, leaf, context):
                    return n_nodes, n_free
                best.gain[leaf] = 0.0
                if slot[leaf] != NO_SLOT:
                    find_splits(calls, data, growth, min_weight, slot, leaf, leaf, 0, memory)
                    note(memory.found, 0, best, leaf)
                change = change_of(context, nodes.sums[leaf], sign[leaf], best.left[leaf], best.gain[leaf])
                if change == FLIP:
                    sign[leaf], depth[leaf] = -sign[leaf], level + 1
                elif change == KEEP:
                    depth[leaf] = growth.max_depth
                    n_free = given_back(slot[leaf], memory.free, n_free)
                else:
                    sign[leaf] = change
                    return leaf, n_free
            leaf += 1
        if n_seen == 0:
            break
        level, leaf, n_seen = level + 1, 0, 0
    return n_nodes, n_free


@inlined
def add_root(data, memory, slot, sums):
    """Set sums[0] to the sums over all rows, from the histogram of the root, over the bins of one feature."""
    d = data.varying[0]
    offsets = memory.ends if slot == memory.free.shape[0] else data.offsets
    for j in range(offsets[d], offsets[d + 1]):
        for c in range(sums.shape[1]):
            sums[0, c] += memory.pool[slot, j, c]


def _split_node(calls, data, node, left, nodes, memory):
    """Divide the rows and sums of a node between the children `left` and left + 1 by its best split."""
    best, own, n = nodes.best, memory.own, node + 1
    own[0], own[1], nodes.child[node] = node, left + 1, left
    nodes.sign[left], nodes.sign[left + 1] = -nodes.sign[node], nodes.sign[node]
    for child in (left, left + 1):
        nodes.depth[child] = nodes.depth[node] + 1
        for c in range(nodes.sums.shape[1]):
            share = best.left[node, c]
            nodes.sums[child, c] = share if child == left else nodes.sums[node, c] - share
    division(
        calls.division,
        (
            data.rows, data.missing_bin, data.spans, own[:1], best.feature[node:n], best.bin[node:n],
            best.missing_left[node:n], nodes.child[node:n], own[1:], best.sets[node:n], memory.scratch,
        ),
    )  # fmt: skip


@kernel
def split_blocks(
    rows, missing_bin, spans, node, feature, split_bin, missing_left, left, right, sets, scratch
):
    """Do what `split_spans` does for the rows of all blocks."""
    # IN: rows: RowAddresses; the rest as in `split_spans`
    # OUT: the order of the rows; spans (b, nodes, 2) int32; scratch
    for b in range(rows.bins.shape[0]):
        bins = carray(pointer(rows.bins[b], np.uint8(0)), (rows.n_rows[b], rows.n_features))
        order = carray(pointer(rows.order[b], np.int32(0)), (rows.n_ordered[b],))
        split_spans(
            bins, missing_bin, order, spans[b], node, feature, split_bin, missing_left, left, right, sets,
            scratch,
        )  # fmt: skip


def _add_node(calls, data, growth, node, slot, memory):
    """Set the pool's slot to the histogram of a node; return the number of its rows."""
    start, stop = memory.start, memory.stop
    for b in range(start.shape[0]):
        start[b, 0], stop[b, 0] = data.spans[b, node]
    if slot[node] == memory.free.shape[0]:
        compaction(
            calls.compaction,
            (
                data.rows, start, stop, data.varying, data.offsets, memory.tile, growth.n_sums, memory.ends,
                memory.occupied, memory.pool[slot[node]],
            ),
        )  # fmt: skip
    else:
        histogram(
            calls.histogram,
            (
                data.rows, start, stop, data.tile_rows, data.varying, data.constant, data.offsets, True,
                memory.tile, slot[node : node + 1], memory.pool,
            ),
        )  # fmt: skip
    return rows_of(data.spans, node)


def _find_splits(calls, data, growth, min_weight, slot, node, sibling, n_siblings, memory):
    """Find the best splits of a node, and of its sibling, in the slot of its parent, if there is one."""
    found, is_compact = memory.found, slot[node] == memory.free.shape[0]
    found.gain[0] = found.gain[1] = 0.0
    best_splits(
        calls.search,
        (
            memory.pool, slot[node : node + 1], slot[sibling : sibling + n_siblings],
            data.varying if is_compact else data.features, memory.ends if is_compact else data.offsets,
            data.categorical, growth.n_sums, growth.weighted, growth.context, growth.min_rows, min_weight,
            growth.least_category, growth.ordering, found,
        ),
    )  # fmt: skip
    if is_compact and found.gain[0] > 0:
        found.bin[0] = memory.occupied[memory.ends[found.feature[0]] + found.bin[0]]


@inlined
def note(found, position, best, node):
    """Set the best split of a node to the one found at a position, if there is one."""
    if found.gain[position] > 0:
        best.gain[node], best.value[node] = found.gain[position], found.value[position]
        best.feature[node], best.bin[node] = found.feature[position], found.bin[position]
        best.missing_left[node] = found.missing_left[position]
        best.n_left[node], best.n_right[node] = found.n_left[position], found.n_right[position]
        for c in range(best.left.shape[1]):
            best.left[node, c] = found.left[position, c]
        for word in range(best.sets.shape[1]):
            best.sets[node, word] = found.sets[position, word]
