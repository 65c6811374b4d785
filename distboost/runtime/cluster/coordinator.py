"""Rows on workers that may fail at any moment."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from distboost.io.phases import SILENT, Phases
from distboost.rows.messages import (
    BestSplits,
    Expanded,
    Expansion,
    HistogramQuestion,
    RowCounts,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.rows.sums import Reduced
from distboost.runtime.base import Layout
from distboost.runtime.block import Key
from distboost.runtime.cluster import owners
from distboost.runtime.cluster.crew import Crew, Workers
from distboost.runtime.cluster.exchange import Reply
from distboost.runtime.cluster.owners import Owners
from distboost.runtime.cluster.questions import Questions
from distboost.runtime.coordinated import NOT_EXPANDED, CoordinatedRows
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
    phases : Phases, optional
        Who is told how many rows the workers have read.

    Attributes
    ----------
    losses : Counter
        The number of workers lost so far, by the question that was being asked.
    """

    def __init__(
        self,
        workers: Workers[Any],
        sizes: Mapping[Key, int],
        layout: Layout,
        n_sets: int,
        phases: Phases = SILENT,
    ):
        self._crew = Crew(workers, sizes, phases)
        self._questions = Questions(self._crew)
        self.round = 0
        counts: tuple[RowCounts, ...] = self._ask("counts")
        super().__init__(layout, counts, Threads())
        self.tree = TreeHistograms(layout.n_bins, layout.categorical, layout.n_classes, threads=self.threads)
        self._owners = Owners(self._crew, self._questions, layout.n_bins, layout.n_classes)
        self._exchanged = False  # whether the workers own the histograms of the growing tree
        self._may_exchange = True

    @property
    def losses(self) -> Counter[str]:
        return self._crew.losses

    @property
    def workers_lost(self) -> int:
        return self.losses.total()

    # Questions.

    def _ask(self, method: str, *arguments: Any, **tree: int) -> Any:
        self._crew.round = self.round
        return self._questions.ask(method, *arguments, **tree)

    def _expand(self, question: HistogramQuestion) -> tuple[np.ndarray, Expanded]:
        reply = self._histograms("histogram", question)
        self._crew.replay_log = self._crew.replay_log.with_question(question)
        assert reply.expanded is not None
        return reply.totals, reply.expanded

    def _search(self, node: int, context: np.ndarray) -> BestSplits:
        return self._owners.search(node, context) if self._exchanged else self.tree.search([node], context)

    def _sums(self, question: SumsQuestion) -> Reduced:
        # Tables may be large: the workers add them up in pairs, and one arrives here.
        answer: Reduced = self._ask("sums", question, heads=1, fan_out=2)
        if question.number == 0:
            self._crew.replay_log = self._crew.replay_log.with_question(question)
        return answer

    def _update(self, question: UpdateQuestion) -> tuple[Reduced, np.ndarray, Expanded]:
        reply = self._histograms("update", question)
        self._crew.replay_log = self._crew.replay_log.with_question(question)
        self._crew.round_ended()
        assert reply.losses is not None
        assert reply.expanded is not None
        return reply.losses, reply.totals, reply.expanded

    def _histograms(self, method: str, question: HistogramQuestion | UpdateQuestion) -> Reply:
        """Sum and search histograms on the workers, or add the workers' histograms here, if any are wanted."""
        expansion = question.expansion
        if expansion is None:
            *losses, totals, _ = self._ask(method, question, 0, 0)
            return Reply(totals, losses[0] if losses else None, NOT_EXPANDED)
        self._choose_owners(expansion)
        if self._exchanged:
            self._crew.round = self.round
            return self._owners.expand(method, question)
        slots, histograms = self.tree.prepare(expansion), self.tree.histograms
        *losses, totals, sums = self._ask(method, question, *histograms.channels)
        histograms.fill(slots, sums, expansion.features)
        return Reply(totals, losses[0] if losses else None, self.tree.answer(expansion))

    def _choose_owners(self, expansion: Expansion) -> None:
        """When a tree begins, decide whether the workers own its histograms or this process does."""
        root = expansion.root
        if root is None:
            return
        assert root.statistic is not None
        n_channels = root.statistic.n_sums(self.n_classes) + 1 + (root.weight_factor > 0)
        n_nodes = max(root.most_histograms // 2, len(expansion.build))
        n_bytes = 8 * n_channels * int((self.n_bins[expansion.features] + 1).sum()) * n_nodes
        if self._crew.is_cut:
            log.warning(
                "workers cannot reach each other: from now on, their histograms go through this process, which takes longer. "
                "Check the network between the workers."
            )
            self._may_exchange = False
            self._crew.readmit()
        self._exchanged = self._may_exchange and owners.exchange_pays(n_bytes, len(self._crew.sessions))

    def passes(self) -> dict[str, int]:
        return dict(self._ask("passes"))

    def close(self) -> None:
        """Close the workers' sessions, without waiting for garbage collection."""
        self._crew.close()
        self.threads.close()
