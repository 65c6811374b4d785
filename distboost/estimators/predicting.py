"""Predict with a fitted estimator: rows in memory at once, others lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from distboost.algorithms.base import Algorithm, Link
from distboost.data.labels import storable_type
from distboost.estimators.parameters import CommonParameters, algorithm_of, n_threads
from distboost.estimators.validation import checked_rows, columns_named, finite_rows, opened_rows
from distboost.inputs.base import LazyInput
from distboost.inputs.cube import CubeInput
from distboost.model.learned import Calibration, Learned
from distboost.prediction import streamed
from distboost.prediction.cubes import CellAnswers, Coding, check_cube, lazy_map
from distboost.prediction.predictor import (
    Answer,
    OfRows,
    Predictor,
    class_of_largest,
    predict_chunk,
    unchanged,
)
from distboost.threads import Threads


def predict(estimator: CommonParameters, X: Any, answer: Answer) -> Any:
    """Return the answer for the rows of X, as a lazy array if X is lazy."""
    return mapped(estimator, X, predictor_of(estimator, answer), answer.shape, answer.dtype)


def mapped(estimator: CommonParameters, X: Any, function: OfRows, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return function(rows, threads), (n, *shape) of `dtype`, for the rows of X, as a lazy array if X is lazy."""
    rows = opened_rows(estimator, X)
    if isinstance(rows, CubeInput):
        return _map(estimator, rows, function, shape, dtype)
    if isinstance(rows, LazyInput):
        return _lazily(estimator, rows, function, shape, dtype)
    with columns_named(estimator), Threads(n_threads(estimator)) as threads:
        if isinstance(function, Predictor):  # which checks the rows as it reads them
            return function(checked_rows(estimator, rows), threads)
        return function(finite_rows(estimator, rows, threads), threads)


def _lazily(
    estimator: CommonParameters, X: LazyInput, function: OfRows, shape: tuple[int, ...], dtype: Any
) -> Any:
    """Return function(rows, threads), as `mapped` does, as a lazy array of a type that can be stored."""
    if dtype == estimator.learned_.classes.dtype:
        dtype = storable_type(estimator.learned_.classes)
    chunk = partial(predict_chunk, names=getattr(estimator, "feature_names_in_", None))
    return streamed.map_rows(X, chunk, estimator.n_features_in_, argument=function, shape=shape, dtype=dtype)


def _map(
    estimator: CommonParameters, cube: CubeInput, function: OfRows, shape: tuple[int, ...], dtype: Any
) -> Any:
    """Return function(rows, threads), as `mapped` does, as a lazy DataArray of all cells."""
    check_cube(cube, estimator.n_features_in_)
    answers = cell_answers(estimator, function, shape, dtype)
    chunk = partial(predict_chunk, predictor=function, names=getattr(estimator, "feature_names_in_", None))
    return lazy_map(cube, answers._replace(function=chunk), estimator.learned_.classes)


def cell_answers(
    estimator: CommonParameters, function: OfRows, shape: tuple[int, ...], dtype: Any
) -> CellAnswers:
    """Return what answers for cells: with the numbers of a map if the answers are classes, else with NaN for missing cells."""
    of_scores = function.answer.of_scores if isinstance(function, Predictor) else None
    if isinstance(of_scores, partial) and of_scores.func is class_of_largest:
        coding = Coding.of(estimator.learned_.classes)
        return CellAnswers(unchanged, shape, coding.codes.dtype, coding.nodata, coding)
    return CellAnswers(unchanged, shape, np.dtype(dtype), np.nan)


def probabilities_of(estimator: CommonParameters) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that makes class probabilities, (n, n_classes), of scores F, (n, n_classes)."""
    learned: Learned = estimator.learned_
    if learned.calibration is not None:
        return learned.calibration.probabilities
    return own_probabilities_of(estimator)


def own_probabilities_of(estimator: CommonParameters) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that makes the algorithm's own class probabilities of scores F, whatever the calibration."""
    return algorithm_of(estimator, len(estimator.learned_.classes)).probabilities


def link_of(estimator: CommonParameters) -> Calibration | Link | None:
    """Return what `probabilities_of` computes; None if it is a function of the algorithm's own, not of `algorithms.links`."""
    learned: Learned = estimator.learned_
    if learned.calibration is not None:
        return learned.calibration
    algorithm = algorithm_of(estimator, len(learned.classes))
    own = type(algorithm).probabilities is not Algorithm.probabilities
    return None if own else algorithm.link


def predictor_of(estimator: CommonParameters, answer: Answer) -> Predictor:
    """Return the part of a fitted estimator that gives this answer."""
    learned = estimator.learned_
    return Predictor(algorithm_of(estimator, len(learned.classes)), learned.ensemble, answer)


def scores_answer(estimator: CommonParameters) -> Answer:
    """Return the answer that is the scores themselves."""
    return Answer(unchanged, (len(estimator.learned_.classes),), np.float64)


def probabilities_answer(estimator: CommonParameters) -> Answer:
    """Return the answer that is the probabilities of the classes."""
    return Answer(probabilities_of(estimator), (len(estimator.learned_.classes),), np.float64)


def class_answer(estimator: CommonParameters) -> Answer:
    """Return the answer that is the class with the largest score."""
    classes = estimator.learned_.classes
    return Answer(partial(class_of_largest, classes), (), classes.dtype)


def staged(estimator: CommonParameters, X: Any, answer: Answer) -> Iterator[Any]:
    """Yield the answer after each round for the rows of X, as a lazy array if X is lazy."""
    rows = opened_rows(estimator, X)
    predictor = predictor_of(estimator, answer)
    if isinstance(rows, CubeInput | LazyInput):
        for n_rounds in range(1, len(predictor.ensemble) + 1):
            first = predictor._replace(ensemble=predictor.ensemble.copy(n_rounds))
            if isinstance(rows, CubeInput):
                yield _map(estimator, rows, first, answer.shape, answer.dtype)
            else:
                yield _lazily(estimator, rows, first, answer.shape, answer.dtype)
        return
    with Threads(n_threads(estimator)) as threads:
        X = finite_rows(estimator, rows, threads)
        for G in predictor.ensemble.staged(X, threads):
            yield answer.of_scores(predictor.algorithm.decoded(G.copy()))
