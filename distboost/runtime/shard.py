"""A shard: the rows of one process, and the answers to the coordinator's questions about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import TypeVar

import numpy as np

from distboost.data.blocks import AnyRows
from distboost.io.phases import Advance
from distboost.kernels import random
from distboost.rows.messages import (
    EMPTY_LOG,
    NO_SPLITS,
    Draw,
    Expansion,
    HistogramQuestion,
    ReplayLog,
    RootQuestion,
    RowCounts,
    Splits,
    Subsample,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.rows.row_metrics import N_SUMS, add_rows
from distboost.rows.sums import ERROR_FACTOR, Reduced, Risk
from distboost.runtime.base import Allotment, Layout, Reading
from distboost.runtime.block import Block, Grown, Key, locate
from distboost.runtime.cluster.placement import count_rows, total
from distboost.runtime.holdings import Holdings
from distboost.runtime.parts import SHARED_BYTES, Part, Spare
from distboost.runtime.sample import Samples
from distboost.runtime.tally import Tally
from distboost.threads import Threads
from distboost.weights.sampled import MAGNITUDES, drawn

Answer = TypeVar("Answer")
Held = TypeVar("Held")  # a block in memory, or one on disk

FEW_ROWS = 20_000  # dividing fewer rows than this takes less time than waking a thread


class Shard:
    """Blocks of training rows and of evaluation rows, held in this process or streamed from disk.

    Parameters
    ----------
    sets : list of lists of AnyRows or Readings
        The training rows and each set of evaluation rows. Readings that fit in memory are read at once.
    layout : Layout
    threads : Threads
        Shared by all questions.
    allotment : Allotment or None
        None: all rows are resident.

    Attributes
    ----------
    passes : Counter
        Rows visited so far, by kind of loop; "streamed": rows read from disk for a question.
    """

    def __init__(
        self,
        sets: Sequence[Sequence[AnyRows | Reading]],
        layout: Layout,
        threads: Threads,
        allotment: Allotment | None = None,
        advance: Advance | None = None,
    ):
        self.missing_bin = layout.n_bins.astype(np.int64)
        self.categorical = layout.categorical
        self.n_classes = layout.n_classes
        self.threads = threads
        self.passes: Counter[str] = Counter()
        self.held = Holdings(layout, threads, allotment)
        self.samples = Samples(threads, self.missing_bin)
        # Histograms that do not fit leave no room for more of them.
        self._shared_bytes = SHARED_BYTES if layout.window_bytes is None else 0
        self._spare = Spare()
        self._n_sets = len(sets)
        items = ((Key(n, m), item) for n, part in enumerate(sets) for m, item in enumerate(part))
        self.take(items, advance=advance)

    # What it holds.

    @property
    def blocks(self) -> list[Block]:
        """The resident blocks of training rows, in order."""
        resident = self.held.resident
        return [resident[key] for key in sorted(resident) if key.number == 0]

    def take(
        self,
        items: Iterable[tuple[Key, AnyRows | Reading]],
        log: ReplayLog = EMPTY_LOG,
        advance: Advance | None = None,
    ) -> dict[Key, int]:
        """Hold these rows too, after replaying the log on them. Several threads may call this at the same time.

        `advance` counts the rows held. Return a digest of each block that stays in memory.
        """
        for question in log.questions:
            self.samples.begin(question.root)
        return self.held.take(items, None if log is EMPTY_LOG else partial(self._replay, log=log), advance)

    def _replay(self, key: Key, block: Block, log: ReplayLog) -> None:
        """Bring a block that was read again to its former state."""
        for step in log.steps:
            step.add(block, self.missing_bin, partitioned=False)
            block.changed.add("scores")
        block.round = log.round
        for question in log.questions if key.number == 0 else ():
            self._prepare(question.root, question.splits, key, block)
            if isinstance(question, SumsQuestion):  # some reductions store state that later questions read
                question.reduction.answer(block, question.leaves, question.scale)

    def drop(self, keys: Collection[Key]) -> None:
        """Remove these blocks."""
        self.held.drop(keys)

    def counts(self, only: Collection[Key] | None = None) -> tuple[RowCounts, ...]:
        """Count the rows of each set."""
        sets = range(self._n_sets)
        items = self._visit(lambda key, block: (key.number, count_rows(block)), sets, (), only=only)
        return tuple(total([count for number, count in items if number == n]) for n in sets)

    # Questions. With `only`, a question is about some blocks only.

    def histogram(
        self,
        question: HistogramQuestion,
        parts: Sequence[Part] | None,
        only: Collection[Key] | None = None,
    ) -> np.ndarray:
        """Sum the histograms of the nodes that the question's expansion builds.

        Parameters
        ----------
        question : HistogramQuestion
        parts : sequence of Part or None
            The features, and what becomes of their sums. None: no histogram is wanted.
        only : collection of Key or None

        Returns
        -------
        totals : ndarray of shape (n_totals,), int64
            The totals of a new tree's statistic.
        """
        self.samples.begin(question.root)
        work = partial(self._prepare, question.root, question.splits)
        tally = None if parts is None else self._tally(question.expansion, parts)
        left_out = self._left_out(question, only)
        totals = self._visit(work, [0], (), question.root, tally=tally, only=only, left_out=left_out)
        return _total(question.root, totals)

    def _left_out(self, question: HistogramQuestion, only: Collection[Key] | None) -> set[Key]:
        """Ask the question of the streamed blocks none of whose rows was drawn for the tree, which need not be read.

        Return their keys.
        """
        root = question.root
        found = set()
        for key, block in [*self.held.streamed.items()]:
            if key.number > 0 or (only is not None and key not in only):
                continue
            if root is not None and isinstance(root.subsample, Draw):
                block.begin(root.subsample)
            elif root is not None:
                continue
            if block.is_left_out:
                found.add(key)
                if len(question.splits.node):
                    block.split(question.splits, self.missing_bin)
        return found

    def sums(self, question: SumsQuestion, only: Collection[Key] | None = None) -> Reduced:
        """Compute the reduction over the rows of each leaf."""
        self.samples.begin(question.root)

        # One accumulator per thread, not per block: an answer may take megabytes, and there may be many blocks.
        idle: list[Reduced] = []

        def add(key: Key, block: Block) -> None:
            self._prepare(question.root, question.splits, key, block)
            try:
                total = idle.pop()
            except IndexError:
                total = question.reduction.initial(len(question.leaves), self.n_classes)
            idle.append(question.reduction.accumulate(block, question.leaves, question.scale, total))

        self._visit(add, [question.number], ("sums",), question.root, only=only)
        return reduce(Reduced.add, idle or [question.reduction.initial(len(question.leaves), self.n_classes)])

    def update(
        self,
        question: UpdateQuestion,
        parts: Sequence[Part] | None = None,
        only: Collection[Key] | None = None,
    ) -> tuple[Reduced, np.ndarray]:
        """Add the steps to the scores, unless this round's were added already.

        If the question has the root of the next tree, also begin this tree and sum the root's histogram, in the same pass
        over the blocks.

        Returns
        -------
        losses : Reduced
            Errors, sums of weights and sums of the evaluation rows' metrics, (n_sets, n) int64, and the largest weights,
            (n_sets, n_shifts) float64.
        totals : ndarray of shape (n_totals,), int64
            The totals of the next tree's statistic.
        """
        root, weighting = question.root, question.weighting
        n_sets, n_risk = len(question.shifts), 1 + weighting.n_sums(self.n_classes)
        sums = np.zeros((n_sets, n_risk + N_SUMS * len(question.metrics)), np.int64)
        largest = np.array([[-np.inf] * len(question.shifts[0])] * n_sets)

        def step(key: Key, block: Block) -> tuple[int, np.ndarray, np.ndarray, np.ndarray | None]:
            number = key.number
            if block.round != question.round:
                self._add(question, key, block)
            own, most = sums[number].copy(), largest[number].copy()
            shifts, factor = question.shifts[number], question.factors[number]
            risk = Risk(weighting, shifts, factor, ERROR_FACTOR, own[:n_risk], most)
            totals = self._prepare(root, NO_SPLITS, key, block, risk)
            for m, metric in enumerate(question.metrics if number > 0 else ()):
                add_rows(metric, block, own[n_risk + N_SUMS * m :][:N_SUMS])
            return number, own, most, totals

        self.samples.begin(root)
        tally = None if parts is None else self._tally(question.expansion, parts)
        answers = self._visit(step, range(n_sets), ("update",), root, tally=tally, only=only)
        for number, own, most, _ in answers:
            sums[number] += own
            np.maximum(largest[number], most, out=largest[number])
        return Reduced(sums, largest), _total(root, [totals for *_, totals in answers])

    # Common to all questions.

    def _prepare(
        self, root: RootQuestion | None, splits: Splits, key: Key, block: Block, risk: Risk | None = None
    ) -> np.ndarray | None:
        """Begin a tree if there is a root, and split nodes if there are splits; return the block's totals, if there are any.

        Add up the errors and weights if there is a `risk`.
        """
        totals = None
        if root is not None and key.number == 0:
            if root.subsample is None:
                block.start_tree()
            else:
                _start_drawn_tree(block, root.subsample)
            if root.statistic is not None and not isinstance(root.subsample, Draw):
                given = block, block.order, root.scale, root.weight_factor
                if risk is None:
                    totals = root.statistic.prepare(*given)
                else:
                    totals, risk = root.statistic.prepare_with_risk(risk, *given), None
        if risk is not None:
            risk.add(block)
        if len(splits.node):
            block.split(splits, self.missing_bin)
        return totals

    def _add(self, question: UpdateQuestion, key: Key, block: Block) -> None:
        """Apply the splits and add the steps of a round."""
        if key.number == 0 and len(question.splits.node):
            block.split(question.splits, self.missing_bin)
        if question.from_zero:
            block.scores[:] = 0.0
        for step in question.steps:
            step.add(block, self.missing_bin, partitioned=key.number == 0)
        block.changed.add("scores")
        block.round = question.round

    def _tally(self, expansion: Expansion | None, parts: Sequence[Part]) -> Tally:
        """Return the tally of the histograms that an expansion builds."""
        assert expansion is not None, "a histogram is wanted"
        root = self.samples.root
        if root is None or root.statistic is None:
            raise RuntimeError("a tree without a statistic has no histograms")
        return Tally(
            self.threads,
            root.statistic,
            root.scale,
            weight_factor=root.weight_factor,
            nodes=expansion.build,
            parts=parts,
            shared_bytes=self._shared_bytes,
            spare=self._spare,
            again=expansion.restores,
        )

    def _visit(
        self,
        work: Callable[[Key, Block], Answer],
        sets: Sequence[int],
        kinds: tuple[str, ...],
        root: RootQuestion | None = None,
        *,
        tally: Tally | None = None,
        only: Collection[Key] | None = None,
        left_out: Collection[Key] = (),
    ) -> list[Answer]:
        """Return the answers of work(key, block) for all blocks of some sets; add the blocks to the `tally` after their work.

        Resident blocks are processed in parallel, then the others. `kinds` are the keys of `passes` that count this work, beside
        that of a `root`. Streamed blocks that are `left_out` are not visited.
        """
        if root is not None and root.statistic is not None:
            kinds = (*kinds, "statistics")
        resident, streamed = _wanted(self.held.resident, sets, only), []
        if self.held.streamed:
            streamed = [item for item in _wanted(self.held.streamed, sets, only) if item[0] not in left_out]

        def visit(item: tuple[Key, Block]) -> Answer:
            try:
                return work(*item)
            except Exception as error:
                locate(error, item[0])
                raise

        if self.threads.n == 1 or (not kinds and sum(len(block.order) for _, block in resident) < FEW_ROWS):
            answers = [*map(visit, resident)]
        else:
            answers = self.threads.map(visit, resident)
        training = []
        for key, block in resident:
            if key.number == 0:
                training.append(block)
                for kind in kinds:
                    self.passes[kind] += block.n_visited(kind)
        if tally is not None:
            (tally.begin_stream if streamed else tally.add_all)(self.samples.of(training))

        def visit_streamed(key: Key, block: Block) -> tuple[Answer, dict[str, int]]:
            answer = work(key, block)
            if key.number > 0:
                return answer, {}
            if tally is not None:
                (summed,) = self.samples.of([block], keep=False)
                tally.add_streamed(summed)
            return answer, {kind: block.n_visited(kind) for kind in ("streamed", *kinds)}

        for answer, visited in self.held.stream(visit_streamed, streamed, kinds) if streamed else ():
            answers.append(answer)
            for kind, n in visited.items():
                self.passes[kind] += n
        if tally is not None:
            if streamed:
                tally.finish_stream()
            self.passes["histogram"] += tally.n_rows
        return answers

    def close(self) -> None:
        """End the threads that stream, and remove the scratch files."""
        self.held.close()


def _start_drawn_tree(block: Block, subsample: Subsample | Draw) -> None:
    is_gathered, rows = isinstance(subsample, Draw), block.present
    if isinstance(subsample, Draw):
        rows = drawn(subsample, block.first, block.kept(MAGNITUDES), rows)
    else:
        rows = rows[(random.uniforms(subsample.key, block.first, block.n_rows) < subsample.fraction)[rows]]
    block.start_tree(rows, Grown(is_gathered))


def _wanted(
    held: Mapping[Key, Held], sets: Sequence[int], only: Collection[Key] | None
) -> list[tuple[Key, Held]]:
    """Return the blocks of some sets, or those `only` of them."""
    return [item for item in held.items() if item[0].number in sets and (only is None or item[0] in only)]


def _total(root: RootQuestion | None, parts: Iterable[np.ndarray | None]) -> np.ndarray:
    """Return the totals of a new tree's statistic, from those of the blocks."""
    total = np.zeros(root.statistic.n_totals if root and root.statistic else 0, np.int64)
    for part in parts:
        if part is not None:
            total += part
    return total
