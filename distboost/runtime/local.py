"""Rows in this process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np

from distboost.data.blocks import BinnedSet
from distboost.rows import HistogramQuestion, Partial, RowCounts, Rows, SumsQuestion, UpdateQuestion
from distboost.runtime.placement import count_rows, total
from distboost.runtime.shard import Shard
from distboost.threads import Threads
from distboost.weak.splits import Histograms


class LocalRuntime:
    """Threads of this process."""

    def __init__(self, n_threads: int | None = None):
        self.threads = Threads(n_threads)
        self.n_parallel = self.threads.n
        self.n_processes = 1

    def __str__(self) -> str:
        return f"in this process with {self.threads.n} threads"

    def map(
        self, function: Callable[..., Any], calls: Iterable[tuple], at_once: int | None = None
    ) -> list[Any]:
        return list(self.each(function, calls, at_once))

    def each(
        self, function: Callable[..., Any], calls: Iterable[tuple], at_once: int | None = None
    ) -> Generator[Any, None, None]:
        return self.threads.each(lambda call: function(*call), calls, at_once)

    def share(self, value: Any) -> Any:
        return value

    def place(
        self,
        sets: list[BinnedSet],
        n_bins: np.ndarray,
        n_classes: int,
        score_dtype: str,
        n_scores: int | None = None,
    ) -> Rows:
        """Bins the rows and holds them."""
        binned = [self.map(part.function, part.calls) for part in sets]
        counts = tuple(total([count_rows(rows) for rows in blocks]) for blocks in binned)
        training, evaluation = [*binned, []][:2]
        shard = Shard(
            training, evaluation, n_bins, n_classes, n_scores or n_classes, score_dtype, self.threads
        )
        return LocalRows(shard, n_bins, counts)

    def close(self) -> None:
        self.threads.close()


class LocalRows(Rows):
    """One shard, called directly."""

    def __init__(self, shard: Shard, n_bins: np.ndarray, counts: tuple[RowCounts, ...]):
        super().__init__(n_bins, shard.n_classes, counts, shard.threads)
        self.shard = shard

    def _histogram(self, question: HistogramQuestion, histograms: Histograms, slots: list[int]) -> None:
        self.shard.histogram(question, histograms.pool, np.array(slots, np.int64))

    def _reduce(self, kind: str, question: SumsQuestion | UpdateQuestion) -> Partial:
        return getattr(self.shard, kind)(question)

    def passes(self) -> dict[str, int]:
        return dict(self.shard.passes)

    def close(self) -> None:
        """Nothing is held but memory."""
