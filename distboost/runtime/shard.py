"""The rows of one process: answers the coordinator's questions over its blocks, with threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from distboost.data.blocks import BinnedRows
from distboost.kernels import histogram, partition, random
from distboost.rows import (
    ERROR_UNIT,
    HistogramQuestion,
    Partial,
    RootQuestion,
    Splits,
    Subsample,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.runtime.block import Block
from distboost.threads import Threads
from distboost.weighting.base import Statistic

FEW_ROWS = 20_000  # waking a thread takes longer than parting so many rows


class Shard:
    """Blocks of training rows and of evaluation rows, held in this process.

    Parameters
    ----------
    training, evaluation : lists of BinnedRows
    n_bins : ndarray of shape (n_features,)
    n_classes, n_scores : int
    score_dtype : str
    threads : Threads
        Shared by all questions.

    Attributes
    ----------
    passes : Counter
        Rows visited so far, by kind of loop.
    """

    def __init__(
        self,
        training: list[BinnedRows],
        evaluation: list[BinnedRows],
        n_bins: np.ndarray,
        n_classes: int,
        n_scores: int,
        score_dtype: str,
        threads: Threads,
    ):
        self.sets = [
            [Block(rows, n_classes, n_scores, score_dtype) for rows in part]
            for part in (training, evaluation)
        ]
        self.blocks = self.sets[0]
        self.missing_bin = n_bins.astype(np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(n_bins + 1)]).astype(np.int64)
        self.n_classes = n_classes
        self.threads = threads
        self.passes: Counter[str] = Counter()
        self._statistic: Statistic | None = None
        self._totals = np.zeros(0, np.int64)
        self._weight_unit = 0.0
        self._updated = 0
        self._last_update: Partial | None = None

    def histogram(self, question: HistogramQuestion, pool: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Fills pool[slots] with the histograms of the nodes to build; the statistic's totals."""
        self._start_tree(question.root)
        self._split(question.splits)
        statistic = self._statistic
        if statistic is None:
            raise RuntimeError("a tree without a statistic has no histograms")
        # Threads share out the features, so that each has bins of its own and none needs a copy of the histogram.
        groups = [g for g in np.array_split(question.features, self.threads.n) if len(g)]

        def sum_features(features: np.ndarray) -> None:
            histogram.clear(features, self.offsets, slots, pool)
            for block in self.blocks:
                spans = block.spans[question.build]
                statistic.histogram(block, spans, features, self.offsets, self._weight_unit, slots, pool)

        self.threads.map(sum_features, groups)
        self.passes["histogram"] += sum(
            int(np.diff(block.spans[question.build]).sum()) for block in self.blocks
        )
        return self._totals

    def _start_tree(self, root: RootQuestion | None) -> None:
        if root is None:
            return
        self._statistic, self._weight_unit = root.statistic, root.weight_unit

        def start(block: Block) -> Sequence[int] | None:
            block.start_tree(_drawn(block, root.subsample))
            if root.statistic is None:
                return None
            return root.statistic.prepare(block, block.order, root.scale, root.weight_unit)

        totals = self.threads.map(start, self.blocks)
        if root.statistic is not None:
            n = root.statistic.n_totals
            self._totals = sum((np.array(t, np.int64) for t in totals if n), np.zeros(n, np.int64))
            self.passes["statistics"] += sum(len(block.order) for block in self.blocks)

    def _split(self, splits: Splits) -> None:
        if not len(splits.node):
            return

        def part(block: Block) -> None:
            block.reserve_nodes(int(max(splits.left.max(), splits.right.max())) + 1)
            scratch = block.buffer("scratch", block.order.shape, np.int32)
            partition.split_spans(
                block.bins, self.missing_bin, block.order, block.spans, splits.node, splits.feature, splits.bin,
                splits.missing_left, splits.left, splits.right, scratch,
            )  # fmt: skip

        if sum(len(block.order) for block in self.blocks) < FEW_ROWS:
            for block in self.blocks:
                part(block)
        else:
            self.threads.map(part, self.blocks)

    def sums(self, question: SumsQuestion) -> Partial:
        """The reduction over the leaves' rows."""
        self._start_tree(question.root)
        self._split(question.splits)
        self.passes["sums"] += sum(len(block.order) for block in self.blocks)
        nothing = question.reduction.nothing(len(question.leaves), self.n_classes)
        return self._combined(
            nothing,
            self.blocks,
            lambda block: question.reduction.answer(block, question.leaves, question.scale),
        )

    def update(self, question: UpdateQuestion) -> Partial:
        """Adds the steps to the scores, once per round; errors and weights per set of rows, and the largest weights."""
        if question.round == self._updated and self._last_update is not None:
            return self._last_update
        self._split(question.splits)
        weighting = question.weighting
        shape = len(question.shifts), 1 + weighting.n_sums(self.n_classes)

        nothing = Partial(np.zeros(shape, np.int64), np.full((shape[0], len(question.shifts[0])), -np.inf))

        def step(item: tuple[int, Block]) -> Partial:
            number, block = item
            if question.anew:
                block.scores[:] = 0.0
            for one in question.steps:
                one.add(block, self.missing_bin, parted=number == 0)
            sums, largest, _ = nothing.copied()
            weighting.risk(
                block, question.shifts[number], question.factors[number], ERROR_UNIT, sums[number], largest[number]
            )  # fmt: skip
            return Partial(sums, largest)

        items = [(number, block) for number, blocks in enumerate(self.sets) for block in blocks]
        answer = self._combined(nothing, items, step)
        self.passes["update"] += sum(block.n_rows for block in self.blocks)
        self._updated, self._last_update = question.round, answer
        return answer

    def _combined(self, nothing: Partial, items: list, ask: Callable[[Any], Partial]) -> Partial:
        return reduce(Partial.combined, self.threads.map(ask, items), nothing)


def _drawn(block: Block, subsample: Subsample | None) -> np.ndarray | None:
    if subsample is None:
        return None
    return random.uniforms(subsample.key, block.first, block.n_rows) < subsample.fraction
