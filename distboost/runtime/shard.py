"""The rows of one process: answers the coordinator's questions over its blocks, with threads."""

from __future__ import annotations

from collections import Counter

import numpy as np

from distboost.data.blocks import BinnedRows
from distboost.kernels import histogram, partition, random, update
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

FEW_ROWS = 20_000  # waking a thread takes longer than parting so many rows


class Shard:
    """Blocks of training rows and of evaluation rows, held in this process.

    Parameters
    ----------
    training, evaluation : lists of BinnedRows
    n_bins : ndarray of shape (n_features,)
    n_classes : int
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
        score_dtype: str,
        threads: Threads,
    ):
        self.sets = [
            [Block(rows, n_classes, score_dtype) for rows in part] for part in (training, evaluation)
        ]
        self.blocks = self.sets[0]
        self.missing_bin = n_bins.astype(np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(n_bins + 1)]).astype(np.int64)
        self.n_classes = n_classes
        self.threads = threads
        self.passes: Counter[str] = Counter()
        self._updated = 0
        self._last_update: Partial | None = None

    def histogram(self, question: HistogramQuestion, pool: np.ndarray, slots: np.ndarray) -> None:
        """Fills pool[slots] with the histograms of the nodes to build."""
        if question.root is not None:
            self._start_round(question.root)
        self._split(question.splits)
        # Threads share out the features, so that each has bins of its own and none needs a copy of the histogram.
        groups = [g for g in np.array_split(question.features, self.threads.n) if len(g)]

        def sum_features(features: np.ndarray) -> None:
            histogram.clear(features, self.offsets, slots, pool)
            for block in self.blocks:
                spans = block.spans[question.build]
                self._weighting.histogram(
                    block, spans, features, self.offsets, self._weight_unit, slots, pool
                )

        self.threads.map(sum_features, groups)
        self.passes["histogram"] += sum(
            int(np.diff(block.spans[question.build]).sum()) for block in self.blocks
        )

    def _start_round(self, root: RootQuestion) -> None:
        self._weighting, self._weight_unit = root.weighting, root.weight_unit

        def start(block: Block) -> None:
            block.start_tree(_drawn(block, root.subsample))
            root.weighting.statistics(block, block.order, root.scale, root.weight_unit)

        self.threads.map(start, self.blocks)
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
        self._split(question.splits)
        shape = question.reduction.shape(len(question.leaves), self.n_classes)

        def add(block: Block) -> np.ndarray:
            out = np.zeros(shape, np.int64)
            question.reduction.add(block, question.leaves, question.scale, out)
            return out

        self.passes["sums"] += sum(len(block.order) for block in self.blocks)
        total = np.zeros(shape, np.int64)
        for out in self.threads.map(add, self.blocks):
            total += out
        return Partial(total, np.zeros(0))

    def update(self, question: UpdateQuestion) -> Partial:
        """Adds the leaves' values to the scores, once per round; errors and weights per set of rows, and the largest weight."""
        if question.round == self._updated and self._last_update is not None:
            return self._last_update
        self._split(question.splits)
        shape = len(question.scales), 1 + question.weighting.n_weight_sums

        def step(item: tuple[int, Block]) -> Partial:
            number, block = item
            in_tree = number == 0 and len(question.leaves) > 0
            if in_tree:
                update.add_by_span(block.scores, block.order, block.spans, question.leaves, question.values)
            rest = block.rest if in_tree else block.present
            if len(rest):
                leaf = np.empty(len(rest), np.int32)
                partition.leaf_of_binned(block.bins, self.missing_bin, *question.tree, rest, leaf)
                update.add_by_leaf(block.scores, rest, leaf, question.values)
            sums, largest = np.zeros(shape, np.int64), np.full(shape[0], -np.inf)
            question.weighting.risk(
                block, question.scales[number], ERROR_UNIT, sums[number], largest[number : number + 1]
            )
            return Partial(sums, largest)

        answer = Partial(np.zeros(shape, np.int64), np.full(shape[0], -np.inf))
        items = [(number, block) for number, blocks in enumerate(self.sets) for block in blocks]
        for part in self.threads.map(step, items):
            answer = answer.combined(part)
        self.passes["update"] += sum(block.n_rows for block in self.blocks)
        self._updated, self._last_update = question.round, answer
        return answer


def _drawn(block: Block, subsample: Subsample | None) -> np.ndarray | None:
    if subsample is None:
        return None
    return random.uniforms(subsample.key, block.first, block.n_rows) < subsample.fraction
