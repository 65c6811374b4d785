"""Folds: a number for each row that says in which part of a cross-validation it is left out.

**By class.** The rows of a class, in their order, are dealt to the folds in hands of one row per fold. The order of the folds in
a hand is drawn by a generator that is keyed by the seed, the class and the number of the hand. So the rows of a class in two
folds differ by at most one, the fold of a row depends on nothing but the labels of the rows before it, and no numbers are stored.

**By group.** The groups, in the order of a hash of their values, are dealt to the folds in turn. All rows of a group are in one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from distboost.data.blocks import AnyRows, BinnedSet, TaskRunner
from distboost.data.checks import load_labels
from distboost.data.division import JUDGE, LEARN
from distboost.data.source import Source
from distboost.errors import DataError
from distboost.kernels.folds import deal
from distboost.kernels.random import FOLDS, key


@dataclass(frozen=True)
class ByClass:
    """Folds by the rank of a row among those of its class.

    Attributes
    ----------
    seed, n_folds : int
    before : ndarray of shape (n_classes,), int64
        The rows of each class, of weight above 0, in earlier blocks.
    """

    seed: int
    n_folds: int
    before: np.ndarray

    def identity(self) -> bytes:
        """Return bytes that say which folds the rows have."""
        return f"by class {self.seed} {self.n_folds}".encode()

    def __call__(self, rows: AnyRows) -> np.ndarray:
        n_classes = len(self.before)
        draws = np.array([key(self.seed, FOLDS, label) for label in range(n_classes)], np.uint64)
        folds = np.zeros(len(rows.labels), np.uint8)
        orders = np.empty((n_classes, self.n_folds), np.int64)
        deal(rows.labels, rows.weights, self.before, draws, orders, folds)
        return folds


@dataclass(frozen=True)
class Known:
    """Folds that were found before."""

    folds: np.ndarray  # (n,) uint8

    def identity(self) -> bytes:
        """Return bytes that say which folds the rows have."""
        return self.folds.tobytes()

    def __call__(self, rows: AnyRows) -> np.ndarray:
        return self.folds


# The fold of each row of a block, (n,) of integers. Rows of weight 0 have any.
Numbering = ByClass | Known


@dataclass(frozen=True)
class InFold:
    """Sides of rows: those of a fold are judged by, the others are learned from."""

    numbering: Numbering
    fold: int

    def __call__(self, rows: AnyRows) -> np.ndarray:
        return np.where(self.numbering(rows) == self.fold, JUDGE, LEARN)


def folds_by_class(
    part: BinnedSet, n_folds: int, seed: int, n_classes: int, work: TaskRunner
) -> list[Numbering]:
    """Return the numbering of each block. This reads the labels of all rows."""
    counts = np.array(work.map(_class_counts, [(n_classes, part.function, *call) for call in part.calls]))
    before = np.cumsum(counts, axis=0) - counts
    return [ByClass(seed, n_folds, rows) for rows in before]


def folds_by_group(
    part: BinnedSet, groups: Source, n_folds: int, seed: int, work: TaskRunner
) -> list[Numbering]:
    """Return the numbering of each block: a byte per row. This reads the groups twice."""
    n_rows = sum(part.sizes)
    if groups.n_rows != n_rows:
        raise DataError(
            f"{groups.place} has {groups.n_rows} rows, but ``X`` has {n_rows}.",
            remedy="Pass one group for each row.",
            where=groups.place,
            value=groups.n_rows,
        )
    groups = groups.near(max(part.sizes))
    ends = np.cumsum(part.sizes)
    calls = [
        (groups.part(end - size, end), groups.place, end - size)
        for end, size in zip(ends.tolist(), part.sizes, strict=True)
    ]
    values = np.unique(np.concatenate(work.map(_distinct, calls)))
    if len(values) < n_folds:
        raise DataError(
            f"{groups.place} has {len(values)} different values, but each of the {n_folds} folds needs a group of its own.",
            remedy="Pass groups that differ." if len(values) < 2 else f"Pass at most {len(values)} folds.",
            where=groups.place,
            value=len(values),
        )
    order = sorted(range(len(values)), key=lambda n: _hash(seed, values[n]))
    folds = np.empty(len(values), np.uint8)
    folds[order] = np.arange(len(values)) % n_folds
    known = work.share((values, folds))
    return [Known(found) for found in work.map(_looked_up, [(known, *call) for call in calls])]


def _class_counts(n_classes: int, function: Callable[..., AnyRows], *call: Any) -> np.ndarray:
    rows = function(*call)
    return np.bincount(rows.labels[rows.weights > 0], minlength=n_classes)


def _distinct(part: Any, place: str, first: int) -> np.ndarray:
    return np.unique(load_labels(part, place, first))


def _looked_up(known: tuple[np.ndarray, np.ndarray], part: Any, place: str, first: int) -> np.ndarray:
    values, folds = known
    found: np.ndarray = folds[np.searchsorted(values, load_labels(part, place, first))]
    return found


def _hash(seed: int, value: Any) -> bytes:
    """Return a hash of a group's value; equal values have equal hashes in every process."""
    plain = value.item() if isinstance(value, np.generic) else value
    return hashlib.blake2b(f"{seed} {plain!r}".encode()).digest()
