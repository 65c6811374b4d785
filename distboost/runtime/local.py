"""Rows in this process."""

from __future__ import annotations

import numpy as np

from distboost.rows import HistogramQuestion, Partial, Rows, SumsQuestion, UpdateQuestion
from distboost.runtime.shard import Shard
from distboost.weak.splits import Histograms


class LocalRows(Rows):
    """One shard, called directly."""

    def __init__(self, shard: Shard, n_bins: np.ndarray, counts):
        super().__init__(n_bins, shard.n_classes, counts, shard.threads)
        self.shard = shard

    def _histogram(self, question: HistogramQuestion, histograms: Histograms, slots: list[int]) -> None:
        self.shard.histogram(question, histograms.pool, np.array(slots, np.int64))

    def _reduce(self, kind: str, question: SumsQuestion | UpdateQuestion) -> Partial:
        return getattr(self.shard, kind)(question)

    def close(self) -> None:
        self.threads.close()
