"""Check what a user gives to an estimator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, column_or_1d, validate_data

from distboost.data.dataset import Dataset, RawDataset
from distboost.data.labels import is_unicode
from distboost.data.missing import warn_all, warn_of_missing
from distboost.data.sources import as_source, is_dask, is_lazy
from distboost.data.store.store import BinnedStore
from distboost.data.store.values import open_rows
from distboost.errors import DataError
from distboost.estimators.parameters import CommonParameters
from distboost.model.ensemble import slices
from distboost.model.history import UNNAMED
from distboost.prediction.streamed import check_features
from distboost.threads import Threads

# Arrays of these types are not copied: they are read a piece at a time. Others become float64.
_NUMBERS: dict[str, Any] = {
    "dtype": [np.float64, np.float32, *(np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8))],
    "ensure_all_finite": False,  # checked where the row numbers are known, so that errors can name them
}


class Given(NamedTuple):
    """The arguments of `fit`."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    eval_set: Any = None


def training_data(estimator: CommonParameters, given: Given) -> Dataset:
    """Return the training rows; set `n_features_in_` and the feature names. Warnings name the caller of the caller's caller."""
    X, y, sample_weight = given.X, given.y, given.sample_weight
    if y is None and is_lazy(X) and BinnedStore.is_at(X):
        return _binned_store(estimator, X, sample_weight)
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None. "
            "Give one label per row. Only a binned store as X contains labels."
        )
    if not is_lazy(X):
        X = validate_data(estimator, X, **_NUMBERS)
        if not is_lazy(y):
            y = column_or_1d(y, warn=True)
        if sample_weight is not None and not is_lazy(sample_weight):
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    data = RawDataset.of(X, y, sample_weight)
    if is_lazy(X):
        _set_unnamed_features(estimator, data.n_features)
    warn_all(data.missing_chunks(estimator.missing_chunks), stacklevel=5)
    return data


def _binned_store(estimator: CommonParameters, X: Any, sample_weight: Any) -> BinnedStore:
    store = _opened_store(X, sample_weight)
    _set_unnamed_features(estimator, store.n_features)
    return store


def _opened_store(X: Any, sample_weight: Any) -> BinnedStore:
    store = BinnedStore.open(X)
    if sample_weight is not None:
        raise DataError(
            f"sample_weight cannot be combined with the binned store {store.url!r}, which has its own weights. Bin the data with "
            "these weights: distboost.bin(X, y, out, sample_weight=...), or distboost bin --sample-weight."
        )
    return store


def _set_unnamed_features(estimator: CommonParameters, n_features: int) -> None:
    estimator.n_features_in_ = n_features
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


class EvaluationSet(NamedTuple):
    """Evaluation rows with their name."""

    name: str
    data: RawDataset | BinnedStore


def evaluation_data(estimator: CommonParameters, eval_set: Any) -> list[EvaluationSet]:
    """Return the sets of evaluation rows. Warnings name the caller of the caller's caller."""
    found = []
    for name, entry in _named_sets(eval_set).items():
        place = "eval_set" if name == UNNAMED else f"eval_set {name!r}"
        data = _evaluation_rows(estimator, entry, place)
        if data.n_features != estimator.n_features_in_:
            raise DataError(
                f"{_place_of(data)} has {data.n_features} features, but the training rows have {estimator.n_features_in_}. Give "
                "the same features."
            )
        if data.n_rows == 0:
            raise DataError(f"{_place_of(data)} has 0 rows. Omit it, or give it at least 1 row.")
        warn_all(data.missing_chunks(estimator.missing_chunks), stacklevel=5)
        found.append(EvaluationSet(name, data))
    return found


def _named_sets(eval_set: Any) -> dict[str, Any]:
    """Return the entries of `eval_set` by name; a set that was given without a name gets one."""
    if eval_set is None:
        return {}
    if isinstance(eval_set, Mapping):
        for name in eval_set:
            if not (isinstance(name, str) and name and is_unicode(name)):
                raise DataError(
                    f"eval_set has a set of the name {name!r:.100}. Give each set a text as its name."
                )
        named = dict(eval_set)
    elif isinstance(eval_set, list) and len(eval_set) != 1:
        named = {f"{UNNAMED}_{n}": entry for n, entry in enumerate(eval_set)}
    else:
        named = {UNNAMED: eval_set[0] if isinstance(eval_set, list) else eval_set}
    if not named:
        raise DataError("eval_set is empty. Omit it, or give at least one set: {'name': (X, y)}.")
    return named


def _place_of(data: RawDataset | BinnedStore) -> str:
    return data.place if isinstance(data, RawDataset) else f"the binned store {data.url!r}"


def _evaluation_rows(estimator: CommonParameters, entry: Any, place: str) -> RawDataset | BinnedStore:
    """Return the rows of one evaluation set; errors name the `place`."""
    given = (entry, None) if is_lazy(entry) else entry  # for instance, a path
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        items = (
            f"{len(given)} items" if isinstance(given, (tuple, list)) else f"the type {type(given).__name__}"
        )
        raise DataError(f"{place} has {items}. Give (X, y) or (X, y, sample_weight).")
    X, y, weights = (*given, None)[:3]
    if y is None and is_lazy(X) and BinnedStore.is_at(X):
        return _opened_store(X, weights)
    if y is None:
        raise DataError(f"{place} has no labels. Give (X, y) or (X, y, sample_weight).")
    if not is_lazy(X):
        X = validate_data(estimator, X, reset=False, **_NUMBERS)
        if weights is not None and not is_lazy(weights):
            weights = _check_sample_weight(weights, X, dtype=np.float64)
    if not is_lazy(y):
        y = column_or_1d(y, warn=True)
    return RawDataset.of(X, y, weights, prefix=f"{place} ")


def judged_data(estimator: CommonParameters, given: Given, stacklevel: int) -> RawDataset:
    """Return labelled rows to compare predictions with. The `stacklevel` of warnings is counted from `warn_all`."""
    X, y = given.X, given.y
    if y is None:
        raise DataError("y is None: give one label per row, to compare the predictions with.")
    if isinstance(X, (str, os.PathLike)):
        X = open_rows(X, "X")
    if not is_lazy(X):
        X = validate_data(estimator, X, reset=False, **_NUMBERS)
    if not is_lazy(y):
        y = column_or_1d(y, warn=True)
    data = RawDataset.of(X, y, given.sample_weight)
    check_features(data.sources.x, estimator.n_features_in_)
    if data.n_rows == 0:
        raise DataError(f"{data.place} has 0 rows. Give at least 1 row to evaluate.")
    warn_all(data.missing_chunks(estimator.missing_chunks), stacklevel)
    return data


def checked_rows(estimator: CommonParameters, X: Any, threads: Threads) -> np.ndarray:
    """Return rows in memory for prediction, (n, n_features) float32, float64 or whole numbers; such an array is not copied."""
    checked: np.ndarray = validate_data(estimator, X, reset=False, **_NUMBERS)

    def check(rows: slice) -> None:
        name = type(estimator).__name__
        assert_all_finite(checked[rows], allow_nan=True, input_name="X", estimator_name=name)

    threads.map(check, slices(len(checked)))
    return checked


def opened_rows(estimator: CommonParameters, X: Any, stacklevel: int) -> Any:
    """Return lazy rows for prediction; warn about missing chunks, with a `stacklevel` counted from the caller."""
    if is_dask(X):
        return X
    X = open_rows(X, "X") if isinstance(X, (str, os.PathLike)) else X
    warn_of_missing(as_source(X, "X"), estimator.missing_chunks, stacklevel)
    return X
