"""The rows that are drawn for the histograms of a tree, gathered from their blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from distboost.data.blocks import BinnedRows
from distboost.data.memory import empty
from distboost.rows.messages import Draw, RootQuestion, Splits
from distboost.runtime.block import Block, Traits
from distboost.threads import Threads
from distboost.weights.sampled import MAGNITUDES

FEW_ROWS = 20_000  # several threads gain nothing with fewer rows


def gathered(blocks: Sequence[Block]) -> Block:
    """Return a block of the drawn rows of these blocks, with their scores and magnitudes."""

    def taken(source: Callable[[Block], np.ndarray]) -> np.ndarray:
        arrays = [source(block) for block in blocks]
        ends = np.cumsum([len(block.order) for block in blocks])
        out = empty((int(ends[-1]), *arrays[0].shape[1:]), arrays[0].dtype)
        for block, array, end in zip(blocks, arrays, ends, strict=True):
            rows = block.order
            np.take(array, rows, axis=0, out=out[end - len(rows) : end], mode="clip")
        return out

    like = blocks[0]
    rows = BinnedRows(
        0,
        taken(lambda block: block.bins),
        taken(lambda block: block.labels),
        taken(lambda block: block.weights),
    )
    found = Block(
        rows, like.n_classes, like.scores.shape[1], score_dtype=like.scores.dtype.str, traits=_traits(blocks)
    )
    found.scores = taken(lambda block: block.scores)
    found.buffers[MAGNITUDES] = taken(lambda block: block.kept(MAGNITUDES))
    found.start_tree()
    return found


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
    root : RootQuestion or None
        That of the growing tree.
    are_drawn : bool
        Whether the histograms of the growing tree sum rows that are drawn by weight.
    """

    def __init__(self, threads: Threads, missing_bin: np.ndarray):
        self._threads, self._missing_bin = threads, missing_bin
        self._samples: list[Block] = []
        self._blocks: list[Block] = []  # whose rows these are
        self._n_splits = 0  # of the tree, that were applied to them
        self.root: RootQuestion | None = None
        self.are_drawn = False

    def begin(self, root: RootQuestion | None) -> None:
        """Begin a tree, if there is a root."""
        if root is not None:
            self.root, self._blocks = root, []
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
            return [self._divided(self._filled(blocks), grown.splits)]
        if len(grown.splits) < self._n_splits or list(map(id, blocks)) != list(map(id, self._blocks)):
            self._samples = []  # frees their memory
            self._samples = self._threads.map(self._filled, _groups(blocks, self._threads.n))
            self._blocks, self._n_splits = blocks, 0
        following, self._n_splits = grown.splits[self._n_splits :], len(grown.splits)
        self._threads.map(lambda sample: self._divided(sample, following), self._samples)
        return [*self._samples]

    def _filled(self, blocks: Sequence[Block]) -> Block:
        """Return a sample of these blocks, with the statistic of the root."""
        sample, root = gathered(blocks), self.root
        assert root is not None
        assert root.statistic is not None
        root.statistic.prepare(sample, sample.order, root.scale, root.weight_factor)
        return sample

    def _divided(self, sample: Block, splits: Sequence[Splits]) -> Block:
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
