"""Trees that are grown in one call, on rows that all lie in the memory of this process."""

from __future__ import annotations

from typing import Any

import numpy as np

from distboost.kernels.categories import MIN_ROWS, set_words
from distboost.kernels.gains import NO_CONTEXT, Gain, context_of
from distboost.kernels.growing import Calls, Data, Growth, Memory, Nodes, growth_of
from distboost.kernels.histogram import TILES_AT_ONCE, RowAddresses, Target, tile_for
from distboost.kernels.simd import padded_sums
from distboost.kernels.split_search import best_splits_by
from distboost.rows.messages import BestSplits, GrownNodes, Root, Splits
from distboost.rows.scales import Scale
from distboost.rows.summands import Summands, constant_apart, rows_of_tile
from distboost.runtime.block import Block
from distboost.runtime.layout import Layout
from distboost.runtime.shard import Shard
from distboost.runtime.tiles import tiles_of
from distboost.splits.histograms import LARGEST_POOL, Histograms

DEEPEST = 2**40  # deeper than any tree


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
        self._n_channels, self._suits = 0, False
        self._histograms: Histograms | None = None
        self._kernels: dict[Gain, tuple[Any, Calls]] = {}

    def suits(self, root: Root) -> bool:
        """Whether the tree that begins with this root is grown here."""
        statistic = root.statistic
        if self._shard.threads.n > 1 or self._has_windows or self._shard.held.streamed:
            return False
        if statistic is None or not statistic.fills_tiles or root.rules is None or not root.search:
            return False
        if root.subsample is not None and root.subsample.by_weight:
            return False
        n_channels = statistic.n_sums(self._n_classes) + 1 + (root.weight_factor > 0)
        if n_channels != self._n_channels:
            features, offsets = np.arange(len(self._n_bins)), np.append(0, np.cumsum(self._n_bins + 1))
            n_bytes = (root.most_histograms + 1) * int(offsets[-1]) * 8 * padded_sums(n_channels)
            is_small = tiles_of(features, offsets, n_channels) <= TILES_AT_ONCE and n_bytes <= LARGEST_POOL
            self._n_channels, self._suits, self._histograms = n_channels, is_small, None
        return self._suits

    def grow(
        self, root: Root, scale: Scale, max_depth: int | None, max_leaf_nodes: int | None
    ) -> tuple[GrownNodes, int] | None:
        """Grow a tree that was begun; return its nodes, and how many questions the growth would take.

        None: it is not grown here, as the rows' vectors do not fit in tiles.
        """
        statistic, rules, blocks = root.statistic, root.rules, self._shard.blocks
        assert statistic is not None
        assert rules is not None
        n_sums, weighted = statistic.n_sums(self._n_classes), root.weight_factor > 0
        root_spans = np.zeros((1, 2), np.int32)
        summands = [statistic.summands(block, root_spans, scale, root.weight_factor) for block in blocks]
        tile_rows = rows_of_tile(summands)
        if not tile_rows:
            return None
        if self._histograms is None:
            self._histograms = Histograms(self._n_bins, self._n_channels, root.most_histograms + 1)
        n_rows = [len(block.order) for block in blocks]
        n_leaves = max(sum(n_rows) // rules.min_rows, 1)
        if max_depth is not None:
            n_leaves = min(n_leaves, 2 ** min(max_depth, 40))
        nodes = self._new_nodes(2 * min(n_leaves, max_leaf_nodes or n_leaves) - 1)
        context = NO_CONTEXT
        if rules.constants:
            unit = 1 / root.weight_factor if weighted else 1.0
            context = context_of(rules.constants, n_sums + weighted, unit)
        growth = Growth(
            DEEPEST if max_depth is None else max_depth,
            max_leaf_nodes or 0,
            rules.min_rows,
            rules.min_weight_fraction,
            n_sums,
            weighted,
            MIN_ROWS * int(root.weight_factor or 1),
            context,
        )
        data, pool = (
            self._data(blocks, summands, root.features, len(nodes.child), tile_rows),
            self._histograms.pool,
        )
        tile = tile_for(Target(data.varying, data.offsets, data.features[:0], pool, fresh=True))
        memory = Memory(
            pool,
            np.arange(len(pool)),
            tile,
            np.empty((len(blocks), 1), np.int32),
            np.empty((len(blocks), 1), np.int32),
            np.empty(2, np.int64),
            np.empty(max(n_rows), np.int32),
            BestSplits.none(2, self._n_channels, nodes.best.sets.shape[1]),
        )
        if rules.gain not in self._kernels:
            search = best_splits_by(rules.gain)
            self._kernels[rules.gain] = growth_of(search, data, growth, memory)
        kernel, calls = self._kernels[rules.gain]
        n, n_inner, n_visited, n_questions = kernel(calls, data, growth, nodes, memory)
        self._shard.passes["histogram"] += n_visited
        best = BestSplits._make(column[:n] for column in nodes.best)
        grown = GrownNodes(nodes.inner[:n_inner], nodes.child[:n], nodes.sums[:n], best)
        self._divide(blocks, data.spans, grown)
        return grown, n_questions

    def _data(
        self,
        blocks: list[Block],
        summands: list[Summands],
        features: np.ndarray,
        n_nodes: int,
        tile_rows: int,
    ) -> Data:
        assert self._histograms is not None
        varying, constant = constant_apart(summands, features)
        spans = np.zeros((len(blocks), n_nodes, 2), np.int32)
        for own, block in zip(spans, blocks, strict=True):
            own[0] = block.spans[0]
        return Data(
            RowAddresses.of([(some.bins, some.order, some.vectors) for some in summands]),
            spans,
            self._shard.missing_bin,
            features,
            varying,
            constant,
            self._histograms.offsets,
            self._categorical,
            tile_rows,
        )

    def _divide(self, blocks: list[Block], spans: np.ndarray, grown: GrownNodes) -> None:
        """Tell the blocks how their rows were divided."""
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

    def _new_nodes(self, n: int) -> Nodes:
        """Return room for n nodes."""
        child, depth, slot, inner = np.zeros((4, n), np.int64)
        sums = np.zeros((n, self._n_channels), np.int64)
        best = BestSplits.none(n, self._n_channels, set_words(self._categorical))
        return Nodes(child, depth, slot, sums, inner, best)
