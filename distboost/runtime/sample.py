"""The rows that are drawn for the histograms of a tree, gathered from their blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distboost.data.blocks import BinnedRows
from distboost.data.memory import empty
from distboost.rows.messages import Draw, RootQuestion, Splits
from distboost.runtime.block import Block, Traits
from distboost.threads import Threads
from distboost.weights.sampled import MAGNITUDES

SPARE = 1.1  # how much more room a sample has than its first rows take: the next ones may be a few more
STEP = 4096  # rows: the room is a multiple of this, so that few sizes occur
FEW_ROWS = 20_000  # several threads gain nothing with fewer rows


class Sample(Block):
    """Room for the drawn rows of some blocks, with their scores and magnitudes. The rows in use are those in `order`.

    Parameters
    ----------
    room : int
        The most rows.
    like : Block
        One of the blocks.
    """

    def __init__(self, room: int, like: Block):
        bins, labels = empty((room, like.bins.shape[1]), np.uint8), empty((room,), np.int32)
        labels[:] = 0  # some statistics visit the rows that are not in use, too
        n_scores, dtype = like.scores.shape[1], like.scores.dtype.str
        rows = BinnedRows(0, bins, labels, empty((room,), np.float64))
        super().__init__(rows, like.n_classes, n_scores, dtype, traits=_traits([like]))
        self.buffer("scores", (room, n_scores), like.scores.dtype.type, overwrite=True)
        self.buffer(MAGNITUDES, (room,), np.float64, overwrite=True)

    def fill(self, blocks: Sequence[Block]) -> None:
        """Replace the rows by those of these blocks that are drawn."""
        end = 0
        for block in blocks:
            rows = block.order
            own = slice(end, end + len(rows))
            end = own.stop
            for source, target in (
                (block.bins, self.bins),
                (block.labels, self.labels),
                (block.weights, self.weights),
                (block.scores, self.scores),
                (block.kept(MAGNITUDES), self.kept(MAGNITUDES)),
            ):
                np.take(source, rows, axis=0, out=target[own], mode="clip")
        self.traits = _traits(blocks)
        self._begin(np.arange(end, dtype=np.int32))


def _traits(blocks: Sequence[Block]) -> Traits:
    """Return the traits of rows that are drawn from these blocks."""
    heaviest = max(block.heaviest for block in blocks)
    return Traits(heaviest, False, True, np.any([block.varying for block in blocks], axis=0))


class Samples:
    """The samples of a growing tree: their rows lie together, and there are few of them, so that histograms take less time.

    A sample follows from what its blocks keep: the numbers of drawn rows, the scores, and the splits so far. So if other blocks
    are asked about, samples are made again.

    Attributes
    ----------
    are_drawn : bool
        Whether the histograms of the growing tree sum rows that are drawn by weight.
    """

    def __init__(self, threads: Threads, missing_bin: np.ndarray):
        self._threads, self._missing_bin = threads, missing_bin
        self._samples: list[Sample] = []
        self._blocks: list[Block] = []  # whose rows these are
        self._n_splits = 0  # of the tree, that were applied to them
        self.are_drawn = False

    def begin(self, root: RootQuestion) -> None:
        """Begin a tree."""
        self._root, self._blocks = root, []
        self.are_drawn = isinstance(root.subsample, Draw)

    def of(self, blocks: list[Block], keep: bool = True) -> list[Block]:
        """Return what the histograms of the growing tree sum: these blocks, or samples of them if rows were drawn by weight.

        `keep`: whether to expect the next question about the same blocks.
        """
        if not (self.are_drawn and blocks):
            return blocks
        grown = blocks[0].grown
        assert grown is not None
        if not keep:
            return [self._divided(self._filled(None, blocks), grown.splits)]
        if len(grown.splits) < self._n_splits or list(map(id, blocks)) != list(map(id, self._blocks)):
            groups = _groups(blocks, self._threads.n)
            known = [*self._samples, *[None] * len(groups)]
            self._samples = self._threads.map(
                lambda pair: self._filled(*pair), zip(known, groups, strict=False)
            )
            self._blocks, self._n_splits = blocks, 0
        following, self._n_splits = grown.splits[self._n_splits :], len(grown.splits)
        self._threads.map(lambda sample: self._divided(sample, following), self._samples)
        return [*self._samples]

    def _filled(self, sample: Sample | None, blocks: Sequence[Block]) -> Sample:
        """Return a sample of these blocks, with the statistic of the root: the given sample if it has room."""
        n = sum(len(block.order) for block in blocks)
        if sample is None or sample.n_rows < n:
            sample = Sample(-(-int(SPARE * n) // STEP) * STEP, blocks[0])
        sample.fill(blocks)
        root = self._root
        assert root.statistic is not None
        root.statistic.prepare(sample, sample.order, root.scale, root.weight_factor)
        return sample

    def _divided(self, sample: Sample, splits: Sequence[Splits]) -> Sample:
        """Divide the nodes of a sample."""
        for some in splits:
            sample.split(some, self._missing_bin)
        return sample


def _groups(blocks: list[Block], most: int) -> list[list[Block]]:
    """Divide blocks into at most `most` groups of neighbours, with about as many drawn rows each."""
    sizes = np.array([len(block.order) for block in blocks])
    middle = np.cumsum(sizes) - sizes / 2
    n = most if sizes.sum() > FEW_ROWS else 1
    numbers = (middle * n / max(sizes.sum(), 1)).astype(int)
    return [[blocks[m] for m in np.flatnonzero(numbers == number)] for number in np.unique(numbers)]
