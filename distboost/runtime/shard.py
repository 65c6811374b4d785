"""The rows of one process: answers the coordinator's questions over its blocks, with threads."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.data.memory import returned_when_freed
from distboost.kernels import histogram, random
from distboost.rows import (
    ERROR_UNIT,
    HistogramQuestion,
    Partial,
    RootQuestion,
    RowCounts,
    Splits,
    Subsample,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.runtime.block import Block, ParkedBlock
from distboost.runtime.placement import count_rows, total
from distboost.runtime.scratch import Scratch
from distboost.runtime.stream import Stream
from distboost.threads import Threads
from distboost.weighting.base import Statistic

ROOT = np.zeros(1, np.int64)  # the nodes of a tree that has only begun
NO_SLOTS = np.zeros(0, np.int64)
NO_SPLITS = Splits.empty()
FEW_ROWS = 20_000  # waking a thread takes longer than parting so many rows


@dataclass(frozen=True)
class Reading:
    """Binned rows that can be read whenever they are wanted."""

    function: Callable[..., BinnedRows]
    call: tuple
    n_rows: int

    def __call__(self) -> BinnedRows:
        return self.function(*self.call)


def readings(part: BinnedSet, blocks: Sequence[int] | None = None) -> list[Reading]:
    """All blocks of a set, or some."""
    blocks = range(len(part.calls)) if blocks is None else blocks
    return [Reading(part.function, part.calls[block], part.sizes[block]) for block in blocks]


@dataclass(frozen=True)
class Allotment:
    """What the blocks of one process may take.

    Attributes
    ----------
    resident : int
        Rows that stay in memory; the others stream.
    window : int
        Streamed blocks in memory at a time.
    scratch : str or None
        Directory for what is kept of the streamed ones; None: the system's directory for temporary files.
    scratch_bytes : int
        What that takes, where all that the allotment lets stream does.
    """

    resident: int
    window: int
    scratch: str | None
    scratch_bytes: int = 0


class Layout(NamedTuple):
    """What a shard needs to know of the data."""

    n_bins: np.ndarray  # (n_features,): bins per feature, the one for missing values not counted
    n_classes: int
    n_scores: int
    score_dtype: str


class Shard:
    """Blocks of training rows and of evaluation rows, held in this process or streamed from disk.

    Parameters
    ----------
    sets : list of lists of BinnedRows or Readings
        The training rows and, if there are any, the evaluation rows. Of Readings, as many are read at once as may be resident.
    layout : Layout
    threads : Threads
        Shared by all questions.
    allotment : Allotment or None
        None: all rows are resident.

    Attributes
    ----------
    blocks : list of Block
        The resident training rows.
    counts : tuple of RowCounts
        Of each set.
    passes : Counter
        Rows visited so far, by kind of loop; "streamed": rows read from disk for a question.
    """

    def __init__(
        self,
        sets: Sequence[Sequence[BinnedRows | Reading]],
        layout: Layout,
        threads: Threads,
        allotment: Allotment | None = None,
    ):
        self.missing_bin = layout.n_bins.astype(np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(layout.n_bins + 1)]).astype(np.int64)
        self.n_classes = layout.n_classes
        self.threads = threads
        self.passes: Counter[str] = Counter()
        self._block = partial(
            Block, n_classes=layout.n_classes, n_scores=layout.n_scores, score_dtype=layout.score_dtype
        )
        self._allotment = allotment
        self._closing = ExitStack()
        self._scratch: Scratch | None = None
        self._stream: Stream | None = None
        self._resident: list[tuple[int, Block]] = []
        self._parked: list[tuple[int, ParkedBlock]] = []
        for number, part in enumerate(sets):
            self._take(number, part)
        self.blocks = [block for number, block in self._resident if number == 0]
        self.counts = self._counted(len(sets))
        self._statistic: Statistic | None = None
        self._totals = np.zeros(0, np.int64)
        self._weight_unit = 0.0
        self._updated = 0
        self._last_update: Partial | None = None

    def _take(self, number: int, part: Sequence[BinnedRows | Reading]) -> None:
        """Reads the first blocks, as many as may be resident, and parks the others."""
        left = None if self._allotment is None else self._allotment.resident
        left = left if left is None else left - sum(block.n_rows for _, block in self._resident)
        near: list[BinnedRows | Reading] = []
        for item in part:
            if isinstance(item, Reading) and left is not None:
                left -= item.n_rows
                if left < 0:
                    self._park(number, item)
                    continue
            near.append(item)
        rows = self.threads.map(lambda item: item() if isinstance(item, Reading) else item, near)
        self._resident += [(number, self._block(each)) for each in rows]

    def _park(self, number: int, reading: Reading) -> None:
        if self._scratch is None or self._stream is None:
            assert self._allotment is not None
            self._scratch = Scratch(
                self._allotment.scratch or tempfile.gettempdir(), self._allotment.scratch_bytes
            )
            self._stream = Stream(self._allotment.window)
            # Blocks come and go in several threads: what one frees is not to be kept for it.
            self._closing.enter_context(returned_when_freed())
            self._closing.callback(self._scratch.close)
            self._closing.callback(self._stream.close)
        self._parked.append((number, ParkedBlock(reading, self._block, self._scratch)))

    def _counted(self, n_sets: int) -> tuple[RowCounts, ...]:
        items = self._visit(lambda number, block: (number, count_rows(block.weights)), range(n_sets), [])
        return tuple(total([count for number, count in items if number == n]) for n in range(n_sets))

    # Questions.

    def histogram(self, question: HistogramQuestion, pool: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Fills pool[slots] with the histograms of the nodes to build; the totals of the tree's statistic."""
        self._begin(question.root)
        work = partial(self._prepare, question.root, question.splits)
        tally = self._tally(question.build, question.features, pool, slots)
        totals = self._visit(work, [0], _kinds(question.root), tally)
        if question.root is not None:
            self._totals = sum(totals, self._totals)
        return self._totals

    def sums(self, question: SumsQuestion) -> Partial:
        """The reduction over the leaves' rows."""
        self._begin(question.root)

        def answer(_: int, block: Block) -> Partial:
            self._prepare(question.root, question.splits, 0, block)
            return question.reduction.answer(block, question.leaves, question.scale)

        nothing = question.reduction.nothing(len(question.leaves), self.n_classes)
        return reduce(Partial.combined, self._visit(answer, [0], ["sums", *_kinds(question.root)]), nothing)

    def update(
        self, question: UpdateQuestion, pool: np.ndarray | None = None, slots: np.ndarray = NO_SLOTS
    ) -> tuple[Partial, np.ndarray]:
        """Adds the steps to the scores, once per round; errors and weights per set of rows, and the largest weights.

        If the next tree is known, it is begun: pool[slots] is filled with the histogram of its root, while the blocks are at
        hand. The second answer is the totals of its statistic.
        """
        if question.round == self._updated and self._last_update is not None:
            return self._last_update, self._totals
        root, weighting = question.root, question.weighting
        shape = len(question.shifts), 1 + weighting.n_sums(self.n_classes)
        nothing = Partial(np.zeros(shape, np.int64), np.full((shape[0], len(question.shifts[0])), -np.inf))

        def step(number: int, block: Block) -> tuple[Partial, np.ndarray]:
            if number == 0:
                self._prepare(None, question.splits, number, block)
            if question.anew:
                block.scores[:] = 0.0
            for one in question.steps:
                one.add(block, self.missing_bin, parted=number == 0)
            block.changed.add("scores")
            sums, largest, _ = nothing.copied()
            weighting.risk(
                block, question.shifts[number], question.factors[number], ERROR_UNIT, sums[number], largest[number]
            )  # fmt: skip
            return Partial(sums, largest), self._prepare(root, NO_SPLITS, number, block)

        self._begin(root)
        tally = None if pool is None else self._tally(ROOT, question.features, pool, slots)
        answers = self._visit(step, range(shape[0]), ["update", *_kinds(root)], tally)
        if root is not None:
            self._totals = sum((totals for _, totals in answers), self._totals)
        self._last_update = reduce(Partial.combined, (found for found, _ in answers), nothing)
        self._updated = question.round
        return self._last_update, self._totals

    # What they share.

    def _begin(self, root: RootQuestion | None) -> None:
        if root is not None:
            self._statistic, self._weight_unit = root.statistic, root.weight_unit
            self._totals = np.zeros(root.statistic.n_totals if root.statistic else 0, np.int64)

    def _prepare(self, root: RootQuestion | None, splits: Splits, number: int, block: Block) -> np.ndarray:
        """Begins a tree, if there is a root, and splits nodes, if there are splits; the block's totals of the statistic."""
        totals = None
        if root is not None and number == 0:
            block.start_tree(_drawn(block, root.subsample))
            if root.statistic is not None:
                totals = root.statistic.prepare(block, block.order, root.scale, root.weight_unit)
        if len(splits.node):
            block.split(splits, self.missing_bin)
        return np.zeros_like(self._totals) if totals is None else np.array(totals, np.int64)

    def _tally(
        self, build: np.ndarray, features: np.ndarray, pool: np.ndarray, slots: np.ndarray
    ) -> Callable[[list[Block]], None]:
        """Clears the slots; what adds the rows of blocks to the histograms there, of the nodes `build`."""
        statistic = self._statistic
        if statistic is None:
            raise RuntimeError("a tree without a statistic has no histograms")
        # Threads share out the features, so that each has bins of its own and none needs a copy of the histogram.
        groups = [group for group in np.array_split(features, self.threads.n) if len(group)]
        self.threads.map(lambda group: histogram.clear(group, self.offsets, slots, pool), groups)

        def tally(blocks: list[Block]) -> None:
            spans = [np.ascontiguousarray(block.spans[build]) for block in blocks]

            def sum_features(group: np.ndarray) -> None:
                for block, own in zip(blocks, spans, strict=True):
                    statistic.histogram(block, own, group, self.offsets, self._weight_unit, slots, pool)

            self.threads.map(sum_features, groups)
            self.passes["histogram"] += sum(int(np.diff(own).sum()) for own in spans)

        return tally

    def _visit(
        self,
        work: Callable[[int, Block], Any],
        sets: Sequence[int],
        kinds: Sequence[str],
        tally: Callable[[list[Block]], None] | None = None,
    ) -> list[Any]:
        """The answers of work(set's number, block) for all blocks of some sets; each block is tallied after its work.

        Resident blocks are worked on at once, the others one after another while the next are read. `kinds` says what the work
        is counted as.
        """
        near = [item for item in self._resident if item[0] in sets]
        far = [item for item in self._parked if item[0] in sets]
        if not kinds and sum(len(block.order) for _, block in near) < FEW_ROWS:
            answers = [work(*item) for item in near]
        else:
            answers = self.threads.map(lambda item: work(*item), near)
        self._count(kinds, [block for number, block in near if number == 0])
        if tally is not None:
            tally([block for number, block in near if number == 0])
        if self._stream is not None:
            numbers = iter([number for number, _ in far])
            for block, answer in self._stream.each(far, work):
                answers.append(answer)
                if next(numbers) == 0:
                    self._count(["streamed", *kinds], [block])
                    if tally is not None:
                        tally([block])
                del block  # else it would wait for the next one with us
        return answers

    def _count(self, kinds: Sequence[str], blocks: list[Block]) -> None:
        for kind in kinds:
            every = kind in ("update", "streamed")
            self.passes[kind] += sum(block.n_rows if every else len(block.order) for block in blocks)

    def close(self) -> None:
        """Ends the threads that stream, and gives up the scratch file."""
        self._closing.close()


def _drawn(block: Block, subsample: Subsample | None) -> np.ndarray | None:
    if subsample is None:
        return None
    return random.uniforms(subsample.key, block.first, block.n_rows) < subsample.fraction


def _kinds(root: RootQuestion | None) -> list[str]:
    return [] if root is None or root.statistic is None else ["statistics"]
