"""Columns of labels in data frames: they become codes, the places of the labels in a list.

The labels of a run are those that its rows have, sorted. Later rows get the codes of the same labels, whatever the order of
the categories in their own frame; other labels become missing values.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from distboost.data.categories import MOST_CATEGORIES, Categories, resolved
from distboost.data.frames import Partitions, as_frame, is_frame
from distboost.data.kinds import is_dask_frame
from distboost.data.labels import is_unicode
from distboost.data.names import names_of
from distboost.errors import DataError, LimitError

Labels = Mapping[int, tuple[Any, ...]]  # of the columns that have some, in the order of their codes


def is_table(X: Any) -> bool:
    """Whether X is a data frame, in memory or of Dask."""
    return is_frame(X) or is_dask_frame(X)


def _meta(X: Any) -> Any:
    """Return a data frame with the columns of X: X itself, or an empty one if X is of Dask."""
    return X._meta if is_dask_frame(X) else X


def encoded(X: Any, place: str, given: Any) -> tuple[Any, Labels]:
    """Return X with codes instead of labels, and these labels.

    Columns of a categorical dtype have labels, and so have columns of text that `given` (categorical_features) names.
    Anything but a data frame is returned as it is.

    Raises
    ------
    DataError
        If a column of a categorical dtype is not to be split as categories, or its labels cannot be stored.
    """
    if not is_table(X):
        return X, {}
    frame = as_frame(_meta(X), place)
    wanted = resolved(given, frame.shape[1], names_of(X, place))
    labels = {}
    for d, name in enumerate(frame.columns):
        column = frame[:, d]
        is_category = column.dtype in (nw.Categorical, nw.Enum)
        if is_category and d not in wanted and not (isinstance(given, str) and given == "from_dtype"):
            raise DataError(
                f"the column {name!r} of {place} has categories, but ``categorical_features={given!r:.100}`` does not name it. "
                "Name it too, or drop it."
            )
        if is_category or (d in wanted and not (column.dtype.is_numeric() or column.dtype == nw.Boolean)):
            labels[d] = _labels_of(X, column, name, place)
    return encoded_as(X, place, labels, are_all=True), labels


def encoded_as(X: Any, place: str, labels: Labels, are_all: bool = False) -> Any:
    """Return a data frame with the codes of these labels in place of its columns' own values.

    Other labels become missing values, or raise DataError if the frame `are_all` said to have no others.
    """
    if not labels:
        return X
    if is_dask_frame(X):
        meta = encoded_as(X._meta, place, labels)
        return X.map_partitions(_encoded_partition, Partitions(X._meta, place), labels, are_all, meta=meta)
    frame = as_frame(X, place)
    for d, known in labels.items():
        _check_kind(frame[:, d], known, frame.columns[d], place)
    codes = {d: _codes(frame[:, d], known) for d, known in labels.items()}
    if are_all:
        for d, column in codes.items():
            _check_all_coded(frame[:, d], column, place)
    if frame.implementation.is_pandas():
        copy = frame.to_native().copy(deep=False)
        for d, column in codes.items():
            copy.isetitem(d, column)
        return copy
    names = frame.columns
    made = [
        nw.new_series(names[d], column, nw.Float32, backend=frame.implementation)
        for d, column in codes.items()
    ]
    return frame.with_columns(*made).to_native()


def _encoded_partition(
    partition: Any,
    partitions: Partitions,
    labels: Labels,
    are_all: bool,
    partition_info: Mapping[str, Any] | None = None,
) -> Any:
    number = partitions.number(partition_info)
    frame = partitions.frame_of(partition, number)
    return encoded_as(frame.to_native(), f"partition {number} of {partitions.place}", labels, are_all)


def _check_all_coded(column: nw.Series[Any], codes: np.ndarray, place: str) -> None:
    """Raise DataError if a value has no code but is not missing."""
    if not np.isnan(codes).any():
        return
    unknown = column.filter(np.isnan(codes).tolist()).drop_nulls().to_list()
    if unknown:
        raise DataError(
            f"the column {column.name!r} of {place} has the category {unknown[0]!r:.100}, which is none of those that Dask "
            f"declares for it. Declare it, as in X.categorize(columns=[{column.name!r}]) before the partitions are made, or "
            f"X[{column.name!r}].cat.set_categories(all)."
        )


def labels_of(categories: Mapping[int, Categories]) -> Labels:
    """Return the labels of the features whose categories have some."""
    return {d: known.labels for d, known in categories.items() if known.labels is not None}


def encoded_for(X: Any, place: str, categories: Mapping[int, Categories]) -> Any:
    """Return X with the codes of a model's labels; raise DataError if the model has some, but X is not a data frame."""
    labels = labels_of(categories)
    if labels and not is_table(X):
        raise DataError(
            f"feature {min(labels)} has labels in the model, such as {labels[min(labels)][0]!r:.100}, but {place} is not a data "
            "frame. Pass a data frame with the columns of the training rows."
        )
    if labels and (n_columns := len(as_frame(_meta(X), place).columns)) <= max(labels):
        raise DataError(
            f"{place} has {n_columns} columns, but feature {max(labels)} has labels in the model. Pass the columns of the "
            "training rows."
        )
    return encoded_as(X, place, labels)


def _labels_of(X: Any, column: nw.Series[Any], name: Any, place: str) -> tuple[Any, ...]:
    """Return the labels of a column, sorted; raise an error if they cannot be stored, or are not known."""
    if is_dask_frame(X):
        dtype = getattr(column.to_native(), "dtype", None)
        found = getattr(dtype, "categories", None)
        if found is None or "__UNKNOWN_CATEGORIES__" in found:
            raise DataError(
                f"the categories of column {name!r} of {place} are not known before its partitions are computed. Find them "
                f"first: X.categorize(columns=[{name!r}])."
            )
        labels = found.tolist()
    else:
        labels = [label for label in column.drop_nulls().unique().to_list() if label is not None]
    kinds = {*map(type, labels)}
    if len(kinds) > 1 or kinds - {str, int, float, bool} or not all(map(_is_storable, labels)):
        raise DataError(
            f"the column {name!r} of {place} has categories of the types {sorted(k.__name__ for k in kinds)}. They must be "
            "texts, whole numbers, finite numbers or booleans, all of one type. Convert them: X[column].astype(str)."
        )
    if len(labels) > MOST_CATEGORIES:
        raise LimitError(
            f"the column {name!r} of {place} has {len(labels)} categories, the most are {MOST_CATEGORIES}. Join the rare ones."
        )
    return tuple(sorted(labels))


def _is_storable(label: Any) -> bool:
    return is_unicode(label) if isinstance(label, str) else bool(np.isfinite(label))


def _has_texts(column: nw.Series[Any]) -> bool | None:
    """Whether the values of a column are texts, rather than numbers; None if it has none, or others."""
    if not len(column):  # of Dask: its types are not those of the partitions
        return None
    dtype, values = column.dtype, column
    if dtype == nw.Categorical and column.implementation.is_pandas():
        values = nw.from_native(column.to_native().cat.categories.to_series(), series_only=True)
        dtype = values.dtype
    if dtype == nw.Categorical and column.implementation.is_pyarrow():
        is_text = "string" in str(column.to_native().type.value_type)
    elif dtype in (nw.Categorical, nw.Enum, nw.String):
        is_text = True
    elif dtype.is_numeric() or dtype == nw.Boolean:
        is_text = False
    else:
        return None
    return None if values.is_null().all() or (dtype.is_float() and values.is_nan().all()) else is_text


def _check_kind(column: nw.Series[Any], labels: tuple[Any, ...], name: Any, place: str) -> None:
    """Raise DataError if the values are numbers but the labels are texts, or the reverse: none would be known."""
    has_texts = _has_texts(column)
    if not labels or has_texts is None or has_texts == isinstance(labels[0], str):
        return
    found, known = ("texts", "numbers") if has_texts else ("numbers", "texts")
    raise DataError(
        f"the column {name!r} of {place} has {found}, but its categories in the training are {known}, such as "
        f"{labels[0]!r:.100}. Pass the same values as in the training."
    )


def _codes(column: nw.Series[Any], labels: tuple[Any, ...]) -> np.ndarray:
    """Return the places of a column's values among the labels, (n,) float32; NaN for missing values and other labels."""
    native: Any = column.to_native()
    is_text = all(isinstance(label, str) for label in labels)
    if column.implementation.is_pandas():
        pandas = sys.modules["pandas"]
        index = pandas.Index(list(labels))
        if column.dtype in (nw.Categorical, nw.Enum):
            places = np.append(index.get_indexer(native.cat.categories), -1)[native.cat.codes.to_numpy()]
        else:
            places = index.get_indexer(native)
        return np.where(places < 0, np.nan, places).astype(np.float32)
    if column.implementation.is_polars() and is_text:
        polars = sys.modules["polars"]
        found = native.cast(polars.String).cast(polars.Enum(list(labels)), strict=False)
        codes: np.ndarray = found.to_physical().cast(polars.Float32).to_numpy()
        return codes
    place = {label: code for code, label in enumerate(labels)}
    return np.array([place.get(label, np.nan) for label in column.to_list()], np.float32)
