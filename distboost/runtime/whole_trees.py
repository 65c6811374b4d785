"""Trees that are grown in one call, on rows that all lie in the memory of this process."""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np

from distboost.kernels.categories import MIN_ROWS, ordering_of, set_words
from distboost.kernels.gains import NO_CONTEXT, context_of
from distboost.kernels.growing import Calls, Data, Growth, Memory, NodeRoom, growth_of
from distboost.kernels.histogram import TILES_AT_ONCE, Target, tile_for
from distboost.kernels.simd import padded_sums
from distboost.rows.messages import BestSplits, GrownNodes, Root, Splits
from distboost.rows.stored_bins import StoredBins
from distboost.rows.summands import Summands, addresses, constant_apart, rows_of_tile, summation
from distboost.rows.sums import Scale
from distboost.runtime.base import Layout
from distboost.runtime.parts import tiles_of
from distboost.runtime.shard import Shard
from distboost.splits.tree_histograms import LARGEST_POOL, Histograms

DEEPEST = 2**40  # deeper than any tree
MOST_RESTORED = 2**21  # bins: with more, questions about stored ones take less time
EMPTY_BINS = 4  # take as long as a row of one feature: to clear, to subtract and to skip


# The kernel that grows a tree, with its arguments.
Plan = tuple[Any, Calls, Data, Growth, NodeRoom, Memory]


class WholeTrees:
    """Grows trees on the rows of a shard, if its only thread does best to do so without an interruption.

    Parameters
    ----------
    layout : Layout
    shard : Shard
    """

    def __init__(self, layout: Layout, shard: Shard):
        self._n_bins, self._categorical, self._n_classes = layout.n_bins, layout.categorical, layout.n_classes
        self._has_windows, self._shard = layout.window_bytes is not None, shard
        self._blocks = shard.blocks
        self._n_channels, self._slot_bytes, self._has_few_tiles = 0, 0, False
        self._judged: tuple[Root | None, bool] = None, False
        self._histograms: Histograms | None = None
        self._sizes: list[int] = []  # the rows of the last tree in each block
        self._prepared: dict[
            Any, tuple[Growth, Memory, NodeRoom]
        ] = {}  # for as many rows, by the tree's limits
        self._summands: list[Summands] = []  # of the plan, which has their addresses
        # That of the last tree, with the numbers and the objects from which it follows.
        self._plan: tuple[Any, list[Any], Plan | None] = (), [], None

    def suits(self, root: Root) -> bool:
        """Whether the tree that begins with this root is grown here."""
        if self._judged[0] is not root:
            self._judged = root, self._judge(root)
        return self._judged[1]

    def _judge(self, root: Root) -> bool:
        statistic = root.statistic
        if self._shard.threads.n > 1 or self._has_windows or self._shard.held.streamed:
            return False
        holds_few = any(isinstance(block.held, StoredBins) for block in self._blocks)
        if holds_few and sum(block.n_rows for block in self._blocks) * len(self._n_bins) > MOST_RESTORED:
            return False
        if statistic is None or not statistic.sums_all_rows or root.rules is None:
            return False
        if not (root.search or root.rules.gain.has_signs):  # its algorithm searches, in its own way
            return False
        if root.subsample is not None and root.subsample.by_weight:
            return False
        n_channels = statistic.n_sums(self._n_classes) + 1 + (root.weight_factor > 0)
        if n_channels != self._n_channels:
            features, offsets = np.arange(len(self._n_bins)), np.append(0, np.cumsum(self._n_bins + 1))
            self._n_channels, self._slot_bytes = n_channels, int(offsets[-1]) * 8 * padded_sums(n_channels)
            self._has_few_tiles = tiles_of(features, offsets, n_channels) <= TILES_AT_ONCE
            self._histograms, self._sizes, self._plan = None, [], ((), [], None)
        return self._has_few_tiles and _n_slots(root) * self._slot_bytes <= LARGEST_POOL

    def grow(
        self, root: Root, scale: Scale, max_depth: int | None, max_leaf_nodes: int | None
    ) -> tuple[GrownNodes, int] | None:
        """Grow a tree that was begun; return its nodes, and how many questions the growth would take.

        The next tree overwrites the nodes. None: it is not grown here, as the rows' vectors do not fit in tiles.
        """
        blocks = self._blocks
        for block in blocks:
            block.hold_all()
        kept: list[Any] = [root]
        for block in blocks:
            kept += block.buffers.values()
        numbers = len(kept), scale.bits, max_depth, max_leaf_nodes
        if self._plan[0] != numbers or not all(map(is_, self._plan[1], kept)):
            self._plan = numbers, kept, self._planned(root, scale, max_depth, max_leaf_nodes)
        plan = self._plan[2]
        if plan is None:
            return None
        kernel, calls, data, growth, nodes, memory = plan
        for own, block in zip(data.spans, blocks, strict=True):
            own[0] = block.spans[0]
        n_inner, n_rows, n_questions = kernel(calls, data, growth, nodes, memory)
        self._shard.passes["histogram"] += n_rows
        grown = GrownNodes(nodes.inner[:n_inner], nodes.child, nodes.sign, nodes.sums, nodes.best)
        self._divide(data.spans, grown)
        return grown, n_questions

    def _planned(
        self, root: Root, scale: Scale, max_depth: int | None, max_leaf_nodes: int | None
    ) -> Plan | None:
        assert root.statistic is not None
        assert root.rules is not None
        given = np.zeros((1, 2), np.int32), scale, root.weight_factor
        self._summands = summands = [root.statistic.summands(block, *given) for block in self._blocks]
        tile_rows = rows_of_tile(summands)
        if not tile_rows and not root.statistic.wide:
            return None
        sizes = [len(block.order) for block in self._blocks]
        if self._sizes != sizes:
            self._sizes, self._prepared = sizes, {}
        wanted = (
            root.rules,
            root.weight_factor,
            root.statistic.wide,
            root.most_histograms,
            max_depth,
            max_leaf_nodes,
        )
        if wanted not in self._prepared:
            self._prepared[wanted] = self._prepare(root, max_depth, max_leaf_nodes)
        growth, memory, nodes = self._prepared[wanted]
        data = self._data(summands, root, len(nodes.child), tile_rows)
        kernel, calls = growth_of(root.rules.gain, summation(summands), data, growth, memory)
        return kernel, calls, data, growth, nodes, memory

    def _prepare(
        self, root: Root, max_depth: int | None, max_leaf_nodes: int | None
    ) -> tuple[Growth, Memory, NodeRoom]:
        """Return the limits of a tree, working memory, and room for as many nodes as it may have."""
        statistic, rules, weighted = root.statistic, root.rules, root.weight_factor > 0
        assert statistic is not None
        assert rules is not None
        n_sums, unit = statistic.n_sums(self._n_classes), 1 / root.weight_factor if weighted else 1.0
        context = context_of(rules.constants, n_sums + weighted, unit) if rules.constants else NO_CONTEXT
        if rules.gain.has_signs:
            context = np.empty((2, n_sums // 2 + 1))
        growth = Growth(
            0 if max_leaf_nodes == 1 else DEEPEST if max_depth is None else max_depth,
            max_leaf_nodes or 0,
            rules.min_rows,
            rules.min_weight_fraction,
            n_sums,
            weighted,
            MIN_ROWS * int(root.weight_factor or 1),
            ordering_of(self._categorical),
            context,
        )
        if self._histograms is None or len(self._histograms.pool) < _n_slots(root):
            self._histograms, self._prepared = Histograms(self._n_bins, self._n_channels, _n_slots(root)), {}
        pool, features = self._histograms.pool, np.arange(len(self._n_bins))
        start, stop = np.empty((2, len(self._sizes), 1), np.int32)
        memory = Memory(
            pool,
            np.empty(len(pool) - 1, np.int64),
            np.zeros(len(features) + 1, np.int64),
            np.empty(pool.shape[1], np.int64),
            tile_for(
                Target(
                    features[:0] if statistic.wide else features,
                    self._histograms.offsets,
                    features[:0],
                    pool,
                    fresh=True,
                )
            ),
            start,
            stop,
            np.empty(2, np.int64),
            np.empty(max(self._sizes), np.int32),
            BestSplits.none(2, self._n_channels, set_words(self._categorical)),
        )
        n_leaves = max(sum(self._sizes) // rules.min_rows, 1)
        if max_depth is not None:
            n_leaves = min(n_leaves, 2 ** min(max_depth, 40))
        return growth, memory, self._new_nodes(2 * min(n_leaves, max_leaf_nodes or n_leaves) - 1)

    def _data(
        self,
        summands: list[Summands],
        root: Root,
        n_nodes: int,
        tile_rows: int,
    ) -> Data:
        assert self._histograms is not None
        features = root.features
        varying, constant = constant_apart(summands, features) if tile_rows else (features, features[:0])
        few_rows = -1
        assert root.rules is not None
        if tile_rows and not self._categorical.any() and not root.rules.gain.has_signs:
            few_rows = min(EMPTY_BINS * int(self._histograms.offsets[-1]) // len(varying), tile_rows)
        return Data(
            addresses(summands, root.weight_factor),
            np.zeros((len(summands), n_nodes, 2), np.int32),
            self._shard.missing_bin,
            features,
            varying,
            constant,
            self._histograms.offsets,
            self._categorical,
            tile_rows,
            few_rows,
        )

    def _divide(self, spans: np.ndarray, grown: GrownNodes) -> None:
        """Tell the blocks how their rows were divided."""
        blocks = self._blocks
        for own, block in zip(spans, blocks, strict=True):
            block.spans = own
            block.changed.add("order")
        if blocks[0].grown is not None:
            best, left = (
                BestSplits._make(column[grown.inner] for column in grown.best),
                grown.child[grown.inner],
            )
            splits = Splits(grown.inner, best.feature, best.bin, best.missing_left, left, left + 1, best.sets)
            for block in blocks:
                block.grow(splits, self._shard.missing_bin)

    def _new_nodes(self, n: int) -> NodeRoom:
        """Return room for n nodes."""
        child, depth, sign, slot, inner = np.zeros((5, n), np.int64)
        sums = np.zeros((n, self._n_channels), np.int64)
        best = BestSplits.none(n, self._n_channels, set_words(self._categorical))
        return NodeRoom(child, depth, sign, slot, sums, inner, best)


def _n_slots(root: Root) -> int:
    """Return the most histograms of a growing tree: a child's is summed while its parent has one, too; and a compact one."""
    return root.most_histograms + 2
