"""Rows in this process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np

from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.data.work import Result
from distboost.rows.interface import Rows
from distboost.rows.messages import HistogramQuestion, SumsQuestion, UpdateQuestion
from distboost.rows.reduced import Reduced
from distboost.runtime.coordinated import CoordinatedRows
from distboost.runtime.layout import Allotment, Layout, Reading, readings
from distboost.runtime.shard import Shard
from distboost.splits.histograms import Histograms
from distboost.threads import Threads


class LocalRuntime:
    """Threads of this process."""

    def __init__(self, n_threads: int | None = None):
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
        return f"in this process with {self.threads.n} threads"

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
        binned: list[list[BinnedRows] | list[Reading]]
        if allotment is None:
            binned = [self.map(part.function, part.calls) for part in sets]
        else:
            binned = [readings(part) for part in sets]
        shard = Shard(binned, layout, self.threads, allotment)
        return LocalRows(shard, layout)

    def close(self) -> None:
        self.threads.close()


class LocalRows(CoordinatedRows):
    """One shard, called directly."""

    def __init__(self, shard: Shard, layout: Layout):
        super().__init__(layout.n_bins, layout.n_classes, shard.counts(), shard.threads)
        self.shard = shard

    def _histogram(self, question: HistogramQuestion, histograms: Histograms, slots: list[int]) -> np.ndarray:
        return self.shard.histogram(question, histograms.pool, np.array(slots, np.int64))

    def _sums(self, question: SumsQuestion) -> Reduced:
        return self.shard.sums(question)

    def _update(
        self, question: UpdateQuestion, histograms: Histograms | None, slots: list[int]
    ) -> tuple[Reduced, np.ndarray]:
        pool = None if histograms is None else histograms.pool
        return self.shard.update(question, pool, np.array(slots, np.int64))

    def passes(self) -> dict[str, int]:
        return dict(self.shard.passes)

    def close(self) -> None:
        self.shard.close()
