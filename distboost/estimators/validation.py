"""The checks of what a user gives to an estimator."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, column_or_1d, validate_data

from distboost.data.dataset import Dataset, RawDataset
from distboost.data.missing import warn_all, warn_of_missing
from distboost.data.sources import as_source, is_dask, is_lazy, open_zarr
from distboost.data.store.store import BinnedStore
from distboost.errors import DataError
from distboost.estimators.parameters import CommonParameters

_FLOATS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,  # checked where the row numbers are known, so that errors can name them
    "order": "C",
}


class Given(NamedTuple):
    """What a user gives to `fit`."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    eval_set: Any = None


def training_data(estimator: CommonParameters, given: Given) -> Dataset:
    """The training rows; sets `n_features_in_` and the names of the features. Warns as the caller of the caller's caller."""
    X, y, sample_weight = given.X, given.y, given.sample_weight
    if y is None and is_lazy(X) and BinnedStore.is_at(X):
        return _binned_store(estimator, X, sample_weight)
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None. "
            "Give one label per row; only a binned store as X has its own."
        )
    if not is_lazy(X):
        X = validate_data(estimator, X, **_FLOATS)
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
    store = BinnedStore.open(X)
    if sample_weight is not None:
        raise DataError(
            f"sample_weight cannot be given beside the binned store {store.url!r}, which has weights of its own. Bin the "
            "data with them: distboost.bin(X, y, out, sample_weight=...), or distboost bin --sample-weight."
        )
    _set_unnamed_features(estimator, store.n_features)
    return store


def _set_unnamed_features(estimator: CommonParameters, n_features: int) -> None:
    estimator.n_features_in_ = n_features
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def evaluation_data(estimator: CommonParameters, eval_set: Any) -> RawDataset | None:
    """The evaluation rows, if there are any. Warns as the caller of the caller's caller."""
    if eval_set is None:
        return None
    X, y = _one_pair(eval_set)
    if not is_lazy(X):
        X = validate_data(estimator, X, reset=False, **_FLOATS)
    if not is_lazy(y):
        y = column_or_1d(y, warn=True)
    data = RawDataset.of(X, y, None, prefix="eval_set ")
    if data.n_features != estimator.n_features_in_:
        raise DataError(
            f"{data.place} has {data.n_features} features, but the training rows have {estimator.n_features_in_}."
        )
    if data.n_rows == 0:
        raise DataError(
            f"{data.place} has 0 rows: at least 1 is needed. Leave eval_set out, or give it rows."
        )
    warn_all(data.missing_chunks(estimator.missing_chunks), stacklevel=5)
    return data


def _one_pair(eval_set: Any) -> tuple[Any, Any]:
    alone = is_lazy(eval_set)  # a path, say
    pairs = [(eval_set, None)] if alone else [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
    if len(pairs) != 1 or len(pairs[0]) != 2:
        raise DataError(f"eval_set holds {len(pairs)} items; expected one pair (X, y).")
    X, y = pairs[0]
    if y is None:
        if is_lazy(X):
            as_source(X, "eval_set X")  # raises an error of its own for a binned store
        raise DataError("eval_set has no labels: give one pair (X, y).")
    return X, y


def checked_rows(estimator: CommonParameters, X: Any) -> np.ndarray:
    """Rows in memory to predict, (n, n_features), float32 or float64."""
    checked: np.ndarray = validate_data(estimator, X, reset=False, **_FLOATS)
    assert_all_finite(checked, allow_nan=True, input_name="X", estimator_name=type(estimator).__name__)
    return checked


def opened_rows(estimator: CommonParameters, X: Any, stacklevel: int) -> Any:
    """Lazy rows to predict. Warns of missing chunks as the caller's caller, so many calls up."""
    if is_dask(X):
        return X
    X = open_zarr(X, "X") if isinstance(X, (str, os.PathLike)) else X
    warn_of_missing(as_source(X, "X"), estimator.missing_chunks, stacklevel)
    return X
