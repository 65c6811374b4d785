"""How a fitted estimator predicts: rows in memory now, others lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import assert_all_finite

from distboost.algorithms.base import Algorithm
from distboost.data.sources import is_lazy
from distboost.estimators.parameters import CommonParameters, algorithm_of, n_threads
from distboost.estimators.validation import checked_rows, opened_rows
from distboost.model.ensemble import Ensemble
from distboost.prediction import lazy
from distboost.threads import Threads


class Answer(NamedTuple):
    """What is wanted of the rows: a function of their scores F (n, n_classes), and the shape of a row's answer and its type."""

    of_scores: Callable[[np.ndarray], np.ndarray]
    shape: tuple[int, ...]
    dtype: Any


class Predictor(NamedTuple):
    """What workers need to know of a model."""

    algorithm: Algorithm
    ensemble: Ensemble
    of_scores: Callable[[np.ndarray], np.ndarray]

    def answer(self, X: np.ndarray, threads: Threads) -> np.ndarray:
        """Return the answer for raw rows X (n, n_features), float64."""
        return self.of_scores(self.algorithm.decoded(self.ensemble.scores(X, threads)))


def predict(estimator: CommonParameters, X: Any, answer: Answer) -> Any:
    """The answer for the rows of X: an array, or a lazy one if X is. Warns as the caller's caller."""
    learned = estimator.learned_
    predictor = Predictor(algorithm_of(estimator, len(learned.classes)), learned.ensemble, answer.of_scores)
    if is_lazy(X):
        X = opened_rows(estimator, X, 5)
        n_features = estimator.n_features_in_
        return lazy.map_rows(X, predict_chunk, n_features, predictor, answer.shape, answer.dtype)
    with Threads(n_threads(estimator)) as threads:
        return predictor.answer(checked_rows(estimator, X), threads)


def predict_chunk(X: np.ndarray, predictor: Predictor) -> np.ndarray:
    """The answer for one chunk of lazy rows: Dask works on several at once, so each takes one thread."""
    assert_all_finite(X, allow_nan=True, input_name="X")
    return predictor.answer(X, Threads(1))


def staged_scores(estimator: CommonParameters, X: Any) -> Iterator[np.ndarray]:
    """The scores after each round."""
    learned = estimator.learned_
    X = checked_rows(estimator, lazy.loaded(opened_rows(estimator, X, 4)) if is_lazy(X) else X)
    algorithm = algorithm_of(estimator, len(learned.classes))
    G = np.zeros((len(X), learned.ensemble.n_scores))
    with Threads(n_threads(estimator)) as threads:
        for t in range(len(learned.ensemble)):
            yield algorithm.decoded(learned.ensemble.scores(X, threads, t, G, t + 1).copy())
