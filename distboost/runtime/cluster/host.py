"""The shard of a worker, and its answers to the coordinator's questions."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from distboost.data.blocks import AnyRows
from distboost.process import trim_heap
from distboost.rows.messages import (
    EMPTY_LOG,
    Expanded,
    Expansion,
    HistogramQuestion,
    ReplayLog,
    RowCounts,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.rows.sums import Reduced
from distboost.runtime.base import Allotment, Layout, Reading
from distboost.runtime.block import Key
from distboost.runtime.cluster.exchange import Exchange
from distboost.runtime.cluster.placement import combined
from distboost.runtime.parts import Slots, StoredPart
from distboost.runtime.shard import Shard
from distboost.splits.tree_histograms import offsets_of
from distboost.threads import Threads

Keys = Collection[Key] | None  # None: all


class Answered(NamedTuple):
    """The last question, and the answer to it."""

    number: int
    keys: set[Key]  # the blocks that the answer covers
    answer: Any


class Host:
    """A shard that answers over the network: it sends histograms without their padding channels."""

    def __init__(
        self, session: int, layout: Layout, n_sets: int, allotment: Allotment | None, n_threads: int
    ):
        self._threads, self._n_bins = Threads(n_threads), layout.n_bins
        self._shard = Shard([[]] * n_sets, layout, self._threads, allotment)
        self._replay_log = EMPTY_LOG
        self._answering = threading.Lock()
        self._answered = Answered(0, set(), None)
        self.exchange = Exchange(session, self._shard, layout.n_bins)

    # What it holds.

    def set_replay_log(self, log: ReplayLog) -> None:
        """Set the log that is replayed on the rows read from now on."""
        self._replay_log = log

    def take(self, items: Iterable[tuple[Key, AnyRows | Reading]]) -> dict[Key, int]:
        digests = self._shard.take(items, self._replay_log)
        trim_heap()
        return digests

    def drop(self, keys: Collection[Key]) -> None:
        self._shard.drop(keys)

    def is_here(self) -> bool:
        """Tell a client that it has reached this session."""
        return True

    # Questions.

    def answer(self, number: int, method: str, *arguments: Any) -> Any:
        """Return the answer of all blocks to a question. If it is asked again, only for blocks that were not there before."""
        with self._answering:
            keys = self._shard.held.keys()
            known = self._answered if self._answered.number == number else Answered(number, set(), None)
            if keys - known.keys:
                only = keys - known.keys if known.keys else None
                answer = getattr(self, method)(*arguments, only)
                known = Answered(number, keys, combined(known.answer, answer))
            self._answered = known
            return known.answer

    def counts(self, only: Keys = None) -> tuple[RowCounts, ...]:
        return self._shard.counts(only)

    def histogram(
        self, question: HistogramQuestion, n_channels: int, padded: int, only: Keys = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the totals of a new tree's statistic, and the nodes' histograms if the question asks for any."""
        parts = self._parts(question.expansion, padded)
        totals = self._shard.histogram(question, parts, only)
        return totals, _trimmed(parts, n_channels)

    def sums(self, question: SumsQuestion, only: Keys = None) -> Reduced:
        return self._shard.sums(question, only)

    def update(
        self, question: UpdateQuestion, n_channels: int, padded: int, only: Keys = None
    ) -> tuple[Reduced, np.ndarray, np.ndarray | None]:
        """Return the answer of `Shard.update`, and the histogram of the next tree's root if the question has one."""
        parts = self._parts(question.expansion, padded)
        found = self._shard.update(question, parts, only)
        return (*found, _trimmed(parts, n_channels))

    def search(self, owners: Mapping[int, int], node: int, context: np.ndarray) -> Expanded | None:
        """Return the best split of a node over the features that this session owns."""
        return self.exchange.search(owners, node, context)

    def passes(self, only: Keys = None) -> Counter[str]:
        return self._shard.passes

    def close(self) -> None:
        self._shard.close()
        self._threads.close()

    def _parts(self, expansion: Expansion | None, padded: int) -> list[StoredPart] | None:
        """Return memory for the histograms that an expansion builds."""
        if expansion is None:
            return None
        n_nodes, offsets = len(expansion.build), offsets_of(self._n_bins, expansion.features)
        pool = np.empty((n_nodes, int(offsets[-1]), padded), np.int64)
        return [StoredPart(expansion.features, Slots(pool, np.arange(n_nodes), offsets))]


def _trimmed(parts: list[StoredPart] | None, n_channels: int) -> np.ndarray | None:
    """Return the sums, (n_nodes, n_bins, n_channels) int64, as a contiguous array in their memory, which it overwrites."""
    if parts is None:
        return None
    sums = parts[0].slots.pool
    m, n_bins, _ = sums.shape
    trimmed = sums.reshape(-1)[: m * n_bins * n_channels].reshape(m, n_bins, n_channels)
    for slot in range(m):  # in this order, only entries that were already read are overwritten
        trimmed[slot] = sums[slot, :, :n_channels].copy()
    return trimmed
