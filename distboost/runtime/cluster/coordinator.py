"""Rows on workers that may fail at any moment."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Generator, Mapping
from functools import reduce
from typing import Any

import numpy as np

from distboost.rows.messages import (
    BestSplits,
    Expanded,
    Expansion,
    HistogramQuestion,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.rows.reduced import Reduced
from distboost.runtime.block import Key
from distboost.runtime.cluster import owners
from distboost.runtime.cluster.crew import Crew, Workers
from distboost.runtime.cluster.owners import Exchanged, Owners
from distboost.runtime.cluster.placement import total
from distboost.runtime.coordinated import NOT_EXPANDED, CoordinatedRows
from distboost.runtime.layout import Layout
from distboost.splits.tree_histograms import TreeHistograms
from distboost.threads import Threads

log = logging.getLogger("distboost")


class DistributedRows(CoordinatedRows):
    """Rows that workers hold. The answer to a question is the sum of the workers' answers.

    If a worker is lost, other workers read its blocks again and replay the training on them (`ReplayLog`). The coordinator then
    repeats its question for these blocks only. So every sum counts each row exactly once, and a loss changes no sum.

    Parameters
    ----------
    workers : Workers
    sizes : mapping of Key to int
        The number of rows of each block.
    layout : Layout
    n_sets : int

    Attributes
    ----------
    losses : Counter
        The number of workers lost so far, by the question that was being asked.
    """

    def __init__(self, workers: Workers[Any], sizes: Mapping[Key, int], layout: Layout, n_sets: int):
        self._crew = Crew(workers, sizes)
        self.round = 0
        found = list(self._ask("counts"))
        counts = tuple(total([each[number] for each in found]) for number in range(n_sets))
        super().__init__(layout.n_bins, layout.n_classes, counts, Threads())
        self.tree = TreeHistograms(layout.n_bins, layout.n_classes, self.threads)
        self._owners = Owners(self._crew, layout.n_bins, layout.n_classes)
        self._exchanged = False  # whether the workers own the histograms of the growing tree
        self._may_exchange = True

    @property
    def losses(self) -> Counter[str]:
        return self._crew.losses

    # Questions.

    def _ask(self, method: str, *arguments: Any) -> Generator[Any, None, None]:
        self._crew.round = self.round
        return self._crew.ask(method, *arguments)

    def _expand(self, question: HistogramQuestion, expansion: Expansion) -> tuple[np.ndarray, Expanded]:
        self._choose_owners(expansion)
        if self._exchanged:
            totals, _, expanded = self._exchange("histogram", question, expansion)
        else:
            slots, histograms = self.tree.prepare(expansion), self.tree.histograms
            histograms.pool[slots] = 0
            parts = []
            for answer, of_shard in self._ask("histogram", question, *histograms.channels):
                parts.append(of_shard)
                histograms.add(slots, answer)
            totals, expanded = reduce(np.add, parts), self.tree.answer(expansion)
        self._crew.replay_log = self._crew.replay_log.with_question(question)
        return totals, expanded

    def _search(self, node: int, context: np.ndarray) -> BestSplits:
        return self._owners.search(node, context) if self._exchanged else self.tree.search([node], context)

    def _sums(self, question: SumsQuestion) -> Reduced:
        answer: Reduced = reduce(Reduced.combined, self._ask("sums", question))
        self._crew.replay_log = self._crew.replay_log.with_question(question)
        return answer

    def _update(
        self, question: UpdateQuestion, expansion: Expansion | None
    ) -> tuple[Reduced, np.ndarray, Expanded]:
        losses: list[Reduced] = []
        totals: list[np.ndarray] = []
        expanded = NOT_EXPANDED
        if expansion is not None:
            self._choose_owners(expansion)
        if expansion is not None and self._exchanged:
            found = self._exchange("update", question, expansion)
            losses, totals, expanded = found.losses, [found.totals], found.expanded
        else:
            if expansion is not None:
                slots, histograms = self.tree.prepare(expansion), self.tree.histograms
                histograms.pool[slots] = 0
            channels = (0, 0) if expansion is None else histograms.channels
            for answer, of_shard, root in self._ask("update", question, *channels):
                losses.append(answer)
                totals.append(of_shard)
                if expansion is not None:
                    histograms.add(slots, root)
            if expansion is not None:
                expanded = self.tree.answer(expansion)
        self._crew.replay_log = self._crew.replay_log.with_question(question)
        self._crew.round_ended()
        return reduce(Reduced.combined, losses), reduce(np.add, totals), expanded

    def _exchange(
        self, stage: str, question: HistogramQuestion | UpdateQuestion, expansion: Expansion
    ) -> Exchanged:
        self._crew.round = self.round
        return self._owners.expand(stage, question, expansion)

    def _choose_owners(self, expansion: Expansion) -> None:
        """When a tree begins, decide whether the workers own its histograms or this process does."""
        root = expansion.root
        if root is None:
            return
        assert root.statistic is not None
        n_channels = root.statistic.n_sums(self.n_classes) + 1 + (root.weight_factor > 0)
        n_bytes = 8 * n_channels * int((self.n_bins[root.features] + 1).sum())
        if self._crew.is_cut:
            log.warning(
                "workers cannot reach each other: from now on, their histograms go through this process, which takes longer. "
                "Check the network between the workers."
            )
            self._may_exchange = False
            self._crew.readmit()
        self._exchanged = self._may_exchange and owners.exchange_pays(n_bytes, len(self._crew.sessions))

    def passes(self) -> dict[str, int]:
        return dict(sum(self._ask("passes"), Counter()))

    def close(self) -> None:
        """Close the workers' sessions, without waiting for garbage collection."""
        self._crew.close()
        self.threads.close()
