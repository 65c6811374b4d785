"""Divide binned rows into those to learn from and those to judge by, without a copy on disk.

A `Side` says of each row, from its content or its number, on which side it is. Both sides become sets of their own, which read
the blocks of the whole and keep their rows in memory only. So they train, stream and recover as any other set does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from distboost.data.blocks import AnyRows, BinnedRows, BinnedSet, TaskRunner
from distboost.kernels.digest import uniforms_of

UNUSED, LEARN, JUDGE = 0, 1, 2

# The side of each row, (n,) of UNUSED, LEARN or JUDGE. It travels to workers.
Side = Callable[[AnyRows], np.ndarray]


class HasContent(Protocol):
    """Rows of which bins, (n, D), and class indices, (n,), are known."""

    @property
    def bins(self) -> np.ndarray: ...

    @property
    def labels(self) -> np.ndarray: ...


@dataclass(frozen=True)
class ByContent:
    """Sides by a hash of a row's bins: equal rows are on the same side, whatever their labels, and so is a row of weight 2.

    Attributes
    ----------
    learn, judge : float
        The shares of the rows to learn from and to judge by.
    only_learn : tuple of int
        Classes all of whose rows are learned from.
    turn : float
        In [0, 1): other values leave out other rows.
    """

    learn: float
    judge: float
    only_learn: tuple[int, ...] = ()
    turn: float = 0.0

    def __call__(self, rows: HasContent) -> np.ndarray:
        labels = rows.labels
        u = (uniforms_of(rows.bins) + self.turn) % 1.0
        side = np.where(u < self.learn, LEARN, np.where(u >= 1 - self.judge, JUDGE, UNUSED))
        side[np.isin(labels, self.only_learn)] = LEARN
        return side


class Divided(NamedTuple):
    """The two sides of a set, and the rows of weight above 0 that they have of each class, (n_classes,) int64."""

    learn: BinnedSet
    judge: BinnedSet
    n_learn: np.ndarray
    n_judge: np.ndarray

    @property
    def n_rows(self) -> int:
        """The rows of both sides."""
        return sum(self.learn.sizes) + sum(self.judge.sizes)


def divided(part: BinnedSet, sides: Sequence[Side], n_classes: int, work: TaskRunner) -> Divided:
    """Divide a set by the `sides` of each block. This reads it once, to count the rows of each side.

    They are numbered anew, in order, so that the numbers do not depend on the blocks.
    """
    calls = zip(sides, part.calls, strict=True)
    found = work.map(_counted, [(side, n_classes, part.function, *call) for side, call in calls])
    counts = np.array(found, np.int64).reshape(len(found), 2, n_classes)
    n_learn, n_judge = counts.sum(axis=0)
    sizes = counts.sum(axis=2)
    return Divided(
        _part(part, sides, LEARN, sizes[:, 0]), _part(part, sides, JUDGE, sizes[:, 1]), n_learn, n_judge
    )


def by_content(
    part: BinnedSet, side: ByContent, n_classes: int, work: TaskRunner
) -> tuple[Divided, ByContent]:
    """Divide a set by content. A class all of whose rows would be left out is learned from: the side that is returned says so."""
    n_blocks = len(part.calls)
    parts = divided(part, [side] * n_blocks, n_classes, work)
    unseen = np.flatnonzero(parts.n_learn == 0)
    if not len(unseen):
        return parts, side
    side = replace(side, only_learn=tuple(unseen.tolist()))
    return divided(part, [side] * n_blocks, n_classes, work), side


def _part(part: BinnedSet, sides: Sequence[Side], wanted: int, sizes: np.ndarray) -> BinnedSet:
    """Return the rows on one side; `sizes` are their numbers in each block, (n_blocks,)."""
    firsts = np.cumsum(sizes) - sizes
    calls = [
        (side, wanted, first, part.function, *call)
        for side, call, first, size in zip(sides, part.calls, firsts.tolist(), sizes.tolist(), strict=True)
        if size
    ]
    return BinnedSet(_selected, calls, sizes[sizes > 0].tolist(), part.at_once)


def _counted(side: Side, n_classes: int, function: Callable[..., AnyRows], *call: Any) -> np.ndarray:
    """Count the rows of each side and class of a block, (2, n_classes) int64."""
    rows = function(*call)
    sides = np.where(rows.weights > 0, side(rows), UNUSED)
    labels = rows.labels
    return np.stack([np.bincount(labels[sides == m], minlength=n_classes) for m in (LEARN, JUDGE)])


def _selected(
    side: Side, wanted: int, first: int, function: Callable[..., AnyRows], *call: Any
) -> BinnedRows:
    """Read a block, and return its rows on the wanted side. They are numbered from `first`."""
    rows = function(*call)
    chosen = np.flatnonzero((side(rows) == wanted) & (rows.weights > 0))
    values = None if rows.values is None else rows.values[chosen]
    arrays = rows.bins[chosen], rows.labels[chosen], rows.weights[chosen], values
    return BinnedRows(first, *arrays, rows.files).in_memory()
