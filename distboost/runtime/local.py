"""Rows in this process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np

from distboost.data.blocks import BinnedSet
from distboost.data.work import Result
from distboost.io.phases import SILENT, Phases
from distboost.rows.interface import Rows
from distboost.rows.messages import (
    BestSplits,
    Expanded,
    GrownNodes,
    HistogramQuestion,
    Root,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.rows.reduced import Reduced
from distboost.runtime.coordinated import NOT_EXPANDED, CoordinatedRows
from distboost.runtime.layout import Allotment, Layout, readings
from distboost.runtime.local_tree import LocalTree
from distboost.runtime.shard import Shard
from distboost.runtime.whole_trees import WholeTrees
from distboost.threads import Threads, available_cores


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
