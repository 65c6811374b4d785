"""The part of a model that predicts rows, here or on workers, which need no estimator for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.checks import check_finite, naming
from distboost.data.source import load
from distboost.data.sparse import SparseRows
from distboost.inputs.frame import FrameRows
from distboost.model.ensemble import Ensemble, parts_of
from distboost.threads import Threads

# Rows in memory. Frames and sparse rows become arrays of numbers some rows at a time.
Rows = np.ndarray | FrameRows | SparseRows


class Answer(NamedTuple):
    """The kind of prediction: a function of the scores F (n, n_classes), and the shape and dtype of its result for one row."""

    of_scores: Callable[[np.ndarray], np.ndarray]
    shape: tuple[int, ...]
    dtype: Any


def unchanged(F: np.ndarray) -> np.ndarray:
    """Return the scores themselves."""
    return F


def class_of_largest(classes: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Return the class of the largest score, (n,)."""
    found: np.ndarray = classes[np.argmax(F, axis=1)]
    return found


class StagedScores(NamedTuple):
    """The scores of a model after some of its rounds, ascending."""

    algorithm: Algorithm
    ensemble: Ensemble
    rounds: tuple[int, ...]

    def __call__(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the scores F, (n, n_classes), of raw rows X after each of the rounds: one array, which may change."""
        each = self.ensemble.per_round
        G = np.zeros((len(X), self.ensemble.n_scores))
        add = self.ensemble.adder(X, 0, self.rounds[-1] * each)
        for before, after in pairwise((0, *self.rounds)):
            add(before * each, after * each, G)
            yield self.algorithm.decoded(G)


class OfRows(Protocol):
    """A function of rows."""

    def __call__(self, X: Rows, threads: Threads) -> np.ndarray:
        """Return the answers for raw rows X (n, n_features)."""


class Predictor(NamedTuple):
    """The part of a model that workers need for prediction."""

    algorithm: Algorithm
    ensemble: Ensemble
    answer: Answer

    def __call__(self, X: Rows, threads: Threads, place: str = "X", first: int = 0) -> np.ndarray:
        """Return the answer for raw rows X (n, n_features), finite or NaN. Only the scores of a few are in memory at a time.

        Errors name the `place` of the rows, and count them from the `first` one.
        """
        self.ensemble.check(X)
        out = np.empty((len(X), *self.answer.shape), self.answer.dtype)
        n_learners = len(self.ensemble) * self.ensemble.per_round

        def write(rows: slice) -> None:
            x = X[rows]
            check_finite(x, place, first + rows.start)
            G = np.zeros((len(x), self.ensemble.n_scores))
            self.ensemble.adder(x, 0, n_learners)(0, n_learners, G)
            out[rows] = self.answer.of_scores(self.algorithm.decoded(G))

        threads.map(write, parts_of(X))
        return out


def predict_chunk(X: Rows, predictor: OfRows, names: np.ndarray | None = None) -> np.ndarray:
    """Return the answer for one chunk of lazy rows, with one thread: Dask processes several chunks at the same time.

    Errors name columns by these `names`.
    """
    place = "a block of X"
    with naming(names):
        if isinstance(predictor, Predictor):
            return predictor(X, Threads(1), place)
        X = load(X)
        check_finite(X, place)
    return predictor(X, Threads(1))
