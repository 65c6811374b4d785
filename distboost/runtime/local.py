"""Rows in this process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from distboost.data.blocks import BinnedSet, Result
from distboost.io.phases import SILENT, Phases
from distboost.kernels.histogram import TILES_AT_ONCE
from distboost.rows.messages import (
    BestSplits,
    Expanded,
    Expansion,
    GrownNodes,
    HistogramQuestion,
    Root,
    Rows,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.rows.sums import Reduced
from distboost.runtime.base import Allotment, Layout, readings
from distboost.runtime.coordinated import NOT_EXPANDED, CoordinatedRows
from distboost.runtime.parts import Slots, feature_groups, n_visits, round_up, tiles_of
from distboost.runtime.shard import Shard
from distboost.runtime.whole_trees import WholeTrees
from distboost.splits.tree_histograms import TreeHistograms, offsets_of
from distboost.threads import Threads, available_cores

ONE_THREAD = Threads(1)
FEW = 4  # times as many features as a tree takes: then its parts have these features only


class LocalPart:
    """Some features of the data, with the histograms of the growing tree over them."""

    def __init__(self, own: np.ndarray, tree: TreeHistograms):
        self.own, self.tree = own, tree

    def ask(self, expansion: Expansion, features: np.ndarray) -> None:
        """Accept a change of the nodes that have histograms, and the tree's features in this part."""
        self.features, self._expansion = features, replace(expansion, features=features)

    def begin(self) -> Slots:
        nodes = self.tree.prepare(self._expansion)
        return Slots(self.tree.histograms.pool, np.array(nodes, np.int64), self.tree.histograms.offsets)

    def finish(self) -> None:
        self.expanded = self.tree.answer(self._expansion)


class LocalTree:
    """The histograms of a growing tree over all features.

    Parameters
    ----------
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    n_classes : int
    threads : Threads

    Attributes
    ----------
    parts : list of LocalPart
        As many as the threads or a multiple, ascending by feature; one if the sums of all features fit in few tiles.
    """

    def __init__(self, n_bins: np.ndarray, categorical: np.ndarray, n_classes: int, threads: Threads):
        self._n_bins, self._categorical = n_bins, categorical
        self._n_classes, self._threads = n_classes, threads
        self._n_channels, self._n_divided = 0, 0  # what the parts are for: so many sums a bin, and features
        self.parts: list[LocalPart] = []
        self._growing: list[LocalPart] = []  # those with features of the tree

    def begin(self, expansion: Expansion) -> list[LocalPart]:
        """Return the parts that have features of the growing tree. Each is to be summed."""
        root = expansion.root
        if root is not None:
            self._divide(root, expansion.features)
            whole = len(expansion.features) == len(self._n_bins)
            features = [
                part.own if whole else part.own[np.isin(part.own, expansion.features)] for part in self.parts
            ]
            self._growing = [part for part, some in zip(self.parts, features, strict=True) if len(some)]
            self._features = [some for some in features if len(some)]
        for part, some in zip(self._growing, self._features, strict=True):
            part.ask(expansion, some)
        return self._growing

    def _divide(self, root: Root, features: np.ndarray) -> None:
        """Divide the features into parts, unless they are divided for histograms of this size already.

        Windows, and trees with few of many features, have parts of their own: rows are visited less often, in less memory.
        """
        assert root.statistic is not None
        n_channels = root.statistic.n_sums(self._n_classes) + 1 + (root.weight_factor > 0)
        if not (root.is_window or self._takes_few(features, n_channels)):
            features = np.arange(len(self._n_bins))
            if n_channels == self._n_channels and self._n_divided == len(features):
                return
        self._n_channels, self._n_divided = n_channels, len(features)
        offsets, n_threads = offsets_of(self._n_bins, features), self._threads.n
        n_tiles = tiles_of(features, offsets, n_channels)
        # With few tiles, threads share the rows of all features (see `SharedPart`), and then the search.
        alone = n_tiles >= n_threads
        groups = feature_groups(features, offsets, round_up(n_visits(n_tiles), n_threads) if alone else 1)
        threads = ONE_THREAD if alone else self._threads
        self.parts = []  # frees the memory of the former ones
        self.parts = [
            LocalPart(
                own,
                TreeHistograms(self._n_bins, self._categorical, self._n_classes, threads=threads, own=own),
            )
            for own in groups
        ]

    def _takes_few(self, features: np.ndarray, n_channels: int) -> bool:
        """Whether a tree takes few of so many features that their sums fill many tiles."""
        everything = np.arange(len(self._n_bins))
        if FEW * len(features) > len(everything):
            return False
        return tiles_of(everything, offsets_of(self._n_bins, everything), n_channels) > TILES_AT_ONCE

    def expanded(self) -> Expanded:
        """Return the answer to the last expansion, over all features."""
        return reduce(Expanded.combined, [part.expanded for part in self._growing])

    def search(self, node: int, context: np.ndarray) -> BestSplits:
        """Find the best split of a node that has a histogram."""
        found = self._threads.map(lambda part: part.tree.search([node], context), self._growing)
        return reduce(BestSplits.combined, found)


class LocalRuntime:
    """Threads of this process."""

    def __init__(self, n_threads: int | None = None, phases: Phases = SILENT):
        self.phases = phases
        self.threads = Threads(n_threads)
        self.n_parallel = self.threads.n
        self.n_processes = 1

    on_cluster = False

    def limit(self, memory_limit: int | None) -> int | None:
        """Return `memory_limit`: a process has no other limit."""
        return memory_limit

    def check_shared(self, url: str) -> None:
        """Do nothing: no other process needs access."""

    def __str__(self) -> str:
        return f"in this process with {self.threads.n} thread{'s' if self.threads.n > 1 else ''}"

    def map(
        self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]], at_once: int | None = None
    ) -> list[Result]:
        return list(self.each(function, calls, at_once))

    def each(
        self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]], at_once: int | None = None
    ) -> Generator[Result, None, None]:
        return self.threads.each(lambda call: function(*call), calls, at_once)

    def share(self, value: Any) -> Any:
        return value

    def place(self, sets: list[BinnedSet], layout: Layout, allotment: Allotment | None = None) -> Rows:
        """Bin the rows and hold them; rows beyond the allotment stay on disk."""
        with self.phases.begin("load", sum(sum(part.sizes) for part in sets), "rows") as advance:
            shard = Shard([readings(part) for part in sets], layout, self.threads, allotment, advance)
        return LocalRows(shard, layout)

    def beside(self, n_threads: int | None, phases: Phases) -> LocalRuntime | None:
        n_idle = (n_threads or available_cores()) - self.threads.n
        return LocalRuntime(min(n_idle, self.threads.n), phases) if n_idle > 0 else None

    def worker_peaks(self) -> list[int]:
        """Return nothing: there are no workers."""
        return []

    def close(self) -> None:
        self.threads.close()


class LocalRows(CoordinatedRows):
    """One shard, called directly."""

    def __init__(self, shard: Shard, layout: Layout):
        super().__init__(layout, shard.counts(), shard.threads)
        self.shard = shard
        self.tree = LocalTree(layout.n_bins, layout.categorical, layout.n_classes, shard.threads)
        self._whole = WholeTrees(layout, shard)

    def _grows(self, root: Root) -> bool:
        return self._whole.suits(root)

    def grow(self, root: Root, max_depth: int | None, max_leaf_nodes: int | None) -> GrownNodes | None:
        if not self._whole.suits(root):
            return None
        if not self._is_announced(root):
            self.start_tree(root)
            self.totals, self._root_expanded = self._expand(HistogramQuestion(*self._taken()))
            self.calls["histogram"] += 1
            self.roots_asked += 1
        found = self._whole.grow(root, self.histogram_scale, max_depth, max_leaf_nodes)
        if found is None:
            self._next_root = root
            return None
        self.calls["histogram"] += found[1]
        return found[0]

    def _expand(self, question: HistogramQuestion) -> tuple[np.ndarray, Expanded]:
        if question.expansion is None:
            return self.shard.histogram(question, None), NOT_EXPANDED
        totals = self.shard.histogram(question, self.tree.begin(question.expansion))
        return totals, self.tree.expanded()

    def _search(self, node: int, context: np.ndarray) -> BestSplits:
        return self.tree.search(node, context)

    def _sums(self, question: SumsQuestion) -> Reduced:
        return self.shard.sums(question)

    def _update(self, question: UpdateQuestion) -> tuple[Reduced, np.ndarray, Expanded]:
        if question.expansion is None:
            return *self.shard.update(question), NOT_EXPANDED
        losses, totals = self.shard.update(question, self.tree.begin(question.expansion))
        return losses, totals, self.tree.expanded()

    def passes(self) -> dict[str, int]:
        return dict(self.shard.passes)

    def close(self) -> None:
        self.shard.close()
