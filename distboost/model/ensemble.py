"""The base class of all ensembles: rounds of weak learners with their values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from distboost.data.categories import Categories
from distboost.data.sparse import rows_together
from distboost.errors import DataError
from distboost.rows.messages import Step
from distboost.threads import Threads

_ROWS_AT_ONCE = 4096


class Ensemble(ABC):
    """Weak learners that add values to the scores, in a fixed order, the same number in each round.

    Parameters
    ----------
    n_features, n_scores : int
    per_round : int
        Weak learners in a round.

    Attributes
    ----------
    categories : mapping of int to Categories
        The categories of the features that have some.
    weight_scale : float
        The power of two by which the weights of the training rows were multiplied, as the weights of covers are.
    """

    weight_scale: float = 1.0

    def __init__(self, n_features: int, n_scores: int, per_round: int = 1):
        self.n_features = n_features
        self.n_scores = n_scores
        self.per_round = per_round
        self.categories: Mapping[int, Categories] = {}
        self._learners: list[tuple[Any, np.ndarray]] = []
        self._arrays: dict[str, np.ndarray] | None = None

    # To be implemented for each kind of weak learner.

    @abstractmethod
    def append(self, learners: Sequence[Any], values: Sequence[np.ndarray], edges: list[np.ndarray]) -> None:
        """Append a round of weak learners with their values.

        Parameters
        ----------
        learners : sequence
        values : sequence of ndarray of shape (n_leaves, n_scores), float64
        edges : list of ndarray of shape (n_edges,), float64
            The bin edges of each feature: the learners split on bins.
        """

    @abstractmethod
    def steps(self, rounds: Iterable[int], edges: list[np.ndarray]) -> list[Step]:
        """Return the steps of these rounds, which add to the scores of rows binned by these edges."""

    @abstractmethod
    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the features that splits use, (m,) int32, and the total gain of the splits on each, (m,) float64."""

    @abstractmethod
    def _joined(self) -> dict[str, np.ndarray]:
        """Concatenate the arrays of all learners."""

    @abstractmethod
    def adder(self, X: np.ndarray, first: int, last: int) -> Callable[[int, int, np.ndarray], None]:
        """Return a function add(begin, end, F), for several calls with the same rows.

        It adds the learners begin .. end - 1, which are among first .. last - 1, to the scores F, (n, n_scores) float64, of the
        rows X, (n, n_features) of any numbers.
        """

    # Common to all kinds.

    @property
    def has_covers(self) -> bool:
        """Whether the ensemble knows how many rows each leaf had in training: trees do, except those of early model files."""
        return False

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self._learners) // self.per_round

    def rewrite(self, values: Sequence[np.ndarray]) -> None:
        """Replace the values of all learners."""
        self._set([(learner, v) for (learner, _), v in zip(self._learners, values, strict=True)])

    def copy(self, n_rounds: int | None = None) -> Self:
        """Return an independent ensemble of the same learners, or of those of the first `n_rounds` rounds."""
        return self.part(0, len(self) if n_rounds is None else n_rounds)

    def part(self, first: int, last: int) -> Self:
        """Return an ensemble of the learners of rounds first .. last - 1; rounds beyond the end are left out."""
        other = type(self)(self.n_features, self.n_scores, self.per_round)
        other.categories = self.categories
        other._set(self._learners[first * self.per_round : last * self.per_round])
        other.weight_scale = self.weight_scale
        return other

    def begins_with(self, other: Ensemble) -> bool:
        """Whether the rounds of the other ensemble are the first rounds of this one."""
        alike = self.n_scores == other.n_scores and len(other) <= len(self)
        return alike and all(a is b for a, b in zip(self._learners, other._learners, strict=False))

    def extend(self, other: Self) -> None:
        """Append the rounds of another ensemble."""
        self._set([*self._learners, *other._learners])

    def assign(self, other: Self) -> None:
        """Replace the rounds by those of another ensemble."""
        self._set(list(other._learners))

    def scores(
        self,
        X: np.ndarray,
        threads: Threads,
        first: int = 0,
        scores: np.ndarray | None = None,
        last: int | None = None,
    ) -> np.ndarray:
        """Compute the scores F of the rows X.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            Numbers of any type. Kernels read float32 and float64; others are converted to float64, a few rows at a time.
        threads : Threads
            The threads that divide the rows among them.
        first, last : int
            The rounds to add: first .. last - 1. `last=None`: up to the last round.
        scores : ndarray of shape (n, n_scores), float64, or None
            Scores to which the rounds are added in place. None: zeros.

        Returns
        -------
        F : ndarray of shape (n, n_scores), float64
        """
        self.check(X)
        F = np.zeros((len(X), self.n_scores)) if scores is None else scores
        begin, end = first * self.per_round, (len(self) if last is None else last) * self.per_round

        def add(rows: slice) -> None:
            self.adder(X[rows], begin, end)(begin, end, F[rows])

        threads.map(add, parts_of(X))
        return F

    def staged(self, X: np.ndarray, threads: Threads) -> Iterator[np.ndarray]:
        """Yield the scores of the rows X after each round: one array, which changes from round to round."""
        self.check(X)
        F = np.zeros((len(X), self.n_scores))
        parts = parts_of(X)
        adders = threads.map(lambda rows: self.adder(X[rows], 0, len(self._learners)), parts)
        for round in range(len(self)):
            begin, end = round * self.per_round, (round + 1) * self.per_round

            def add(part: tuple[slice, Any], begin: int = begin, end: int = end) -> None:
                rows, add_learners = part
                add_learners(begin, end, F[rows])

            threads.map(add, zip(parts, adders, strict=True))
            yield F

    def check(self, X: Any) -> None:
        """Raise DataError if the rows X (n, n_features) have another number of features."""
        if X.shape[1] != self.n_features:
            raise DataError(
                f"``X`` has {X.shape[1]} features, but the model is expecting {self.n_features} features as input."
            )

    def scale_weights(self, weight_scale: float) -> None:
        """Accept by what the weights of further rounds' rows are multiplied; the weights of covers are then, too."""
        self.weight_scale = weight_scale

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of all learners, concatenated, as files store them."""
        if self._arrays is None:
            self._arrays = self._joined()
        return self._arrays

    def _set(self, learners: list[tuple[Any, np.ndarray]]) -> None:
        self._learners, self._arrays = learners, None


def parts_of(X: Any) -> list[slice]:
    """Divide rows into those that one thread predicts at a time: fewer of sparse ones, which then become dense."""
    return slices(len(X), rows_together(X, _ROWS_AT_ONCE))


def slices(n_rows: int, at_once: int = _ROWS_AT_ONCE) -> list[slice]:
    """Divide rows into those that one thread predicts at a time."""
    return [slice(start, start + at_once) for start in range(0, n_rows, at_once)]


def kernel_rows(X: np.ndarray) -> np.ndarray:
    """Return rows of numbers as kernels are compiled for: a read-only C-contiguous array of float32 or float64."""
    X = np.ascontiguousarray(X, X.dtype if X.dtype in (np.float32, np.float64) else np.float64)[:]
    X.flags.writeable = False
    return X
