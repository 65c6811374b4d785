"""Data frames in memory, of any library: pandas, polars, pyarrow, Modin, cuDF. narwhals reads them all, some rows at a time.

Columns of labels become codes, the places of the labels in a list. The labels of a run are those that its rows have, sorted.
Later rows get the codes of the same labels, whatever the order of the categories in their own frame; other labels become missing
values.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from distboost.data.categories import MOST_CATEGORIES, Categories, resolved
from distboost.data.checks import as_real, date_error
from distboost.data.labels import is_unicode
from distboost.data.source import ArraySource, Axis, Source, spans
from distboost.errors import DataError, LimitError
from distboost.inputs.array import ArrayInput, is_nullable
from distboost.inputs.base import Input, Labels, NearInput, is_instance, texts

PIECE_NUMBERS = 2**19  # numbers that are converted together
_OF_128_BITS = (nw.Int128, nw.UInt128)  # NumPy has no such type


class TableInput(Input):
    """A data frame, in memory or not."""

    def __init__(self, data: Any, place: str, labels: Labels | None = None):
        super().__init__(data, place)
        self.labels = labels or {}

    @cached_property
    def frame(self) -> nw.DataFrame[Any]:
        """The frame of narwhals: of all rows, or of none, with the declared columns, if the rows are not in memory."""
        return as_frame(self.data, self.place)

    @property
    def names(self) -> np.ndarray | None:
        return texts(list(self.frame.columns), self.place)

    def coded(self, categorical_features: Any) -> Input:
        given, frame = categorical_features, self.frame
        wanted = resolved(given, frame.shape[1], self.names)
        labels = {}
        for d, name in enumerate(frame.columns):
            column = frame[:, d]
            is_category = column.dtype in (nw.Categorical, nw.Enum)
            if is_category and d not in wanted and not (isinstance(given, str) and given == "from_dtype"):
                raise DataError(
                    f"the column {name!r} of {self.place} has categories, but ``categorical_features={given!r:.100}`` does "
                    "not name it.",
                    remedy="Name it too, or drop it.",
                    where=self.place,
                    value=name,
                )
            if is_category or (d in wanted and not (column.dtype.is_numeric() or column.dtype == nw.Boolean)):
                labels[d] = _storable(self._labels_of(column), name, self.place)
        return self._coded_by(labels, are_all=True) if labels else self

    def coded_for(self, categories: Mapping[int, Categories]) -> Input:
        labels = {d: known.labels for d, known in categories.items() if known.labels is not None}
        if labels and (n_columns := len(self.frame.columns)) <= max(labels):
            raise DataError(
                f"{self.place} has {n_columns} columns, but feature {max(labels)} has labels in the model.",
                remedy="Pass the columns of the training rows.",
                where=self.place,
                value=n_columns,
            )
        return self._coded_by(labels, are_all=False) if labels else self

    @abstractmethod
    def _labels_of(self, column: nw.Series[Any]) -> list[Any]:
        """Return the labels of a column, in any order."""

    @abstractmethod
    def _coded_by(self, labels: Labels, are_all: bool) -> Input:
        """Return the rows with the codes of these labels. Others become missing values, or must not occur if these `are_all`."""


class FrameInput(TableInput, NearInput):
    """A data frame in memory."""

    @classmethod
    def recognises(cls, data: Any) -> bool:
        if isinstance(data, np.ndarray):  # narwhals asks it for a dozen attributes
            return False
        return (
            is_instance(data, "pyarrow", "RecordBatch")
            or is_instance(data, "polars", "LazyFrame")
            or nw.dependencies.is_into_dataframe(data)
        )

    @classmethod
    def of(cls, data: Any, place: str) -> Input:
        if is_instance(data, "polars", "LazyFrame"):
            raise DataError(
                f"{place} is a LazyFrame of polars, which has no rows yet.",
                remedy=f"Pass {place}.collect().",
                where=place,
            )
        return cls(data, place)

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    def source(self, of_features: bool) -> Source:
        if not of_features:
            return self._column.source(False)
        rows = FrameRows.of(self.frame, self.place)
        block = as_block(rows.columns) if 0 not in rows.shape else None
        return FrameSource(rows) if block is None else ArraySource(block, self.place)

    @property
    def _column(self) -> ArrayInput:
        """The frame as labels or weights."""
        if is_instance(self.data, "pandas", "DataFrame") and self.data.shape[1] == 1:
            column = self.data.iloc[:, 0]
            if is_nullable(column):
                return ArrayInput(column, self.place)
        return ArrayInput(self.data, self.place)

    def checked_labels(self) -> Input:
        return self._column.checked_labels()

    def checked_weights(self, n_rows: int) -> Input:
        return self._column.checked_weights(n_rows)

    @property
    def is_known_to_sklearn(self) -> bool:
        return self._column.is_known_to_sklearn

    def taken(self, rows: np.ndarray) -> FrameInput:
        return FrameInput(self.frame[rows.tolist()].to_native(), "X")

    def first(self, n: int) -> FrameInput:
        return FrameInput(self.frame[:n].to_native(), self.place)

    def joined(self, other: FrameInput) -> FrameInput:
        return FrameInput(nw.concat([self.frame, other.frame]).to_native(), self.place)

    def _labels_of(self, column: nw.Series[Any]) -> list[Any]:
        return [label for label in column.drop_nulls().unique().to_list() if label is not None]

    def _coded_by(self, labels: Labels, are_all: bool) -> Input:
        return FrameInput(coded_frame(self.frame, self.place, labels, are_all), self.place, labels)


def coded_frame(frame: nw.DataFrame[Any], place: str, labels: Labels, are_all: bool) -> Any:
    """Return a frame with the codes of these labels in place of its columns' own values, as one of its own library.

    Other labels become missing values, or raise DataError if the frame `are_all` said to have no others.
    """
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


def as_frame(data: Any, place: str) -> nw.DataFrame[Any]:
    """Return a data frame of any library as one of narwhals. Nothing is copied."""
    if is_instance(data, "pyarrow", "RecordBatch"):
        data = sys.modules["pyarrow"].Table.from_batches([data])
    try:
        frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
        frame.columns  # noqa: B018 (for some libraries, this looks for names that occur twice)
    except DuplicateError as error:
        said = " ".join(str(error).split())
        raise DataError(
            f"{place} has several columns of one name ({said}).", remedy="Rename them.", where=place
        ) from error
    return frame


class FrameSource(Source):
    """The rows of a data frame in this process's memory."""

    is_near = True
    copies = 0

    def __init__(self, rows: FrameRows):
        self._rows = rows
        self.place, self.shape, self.dtype = rows.place, rows.shape, rows.dtype
        self.axes = tuple(Axis(length, 1) for length in self.shape)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> FrameRows:
        return self._rows.cut(start, stop, columns)


@dataclass(frozen=True)
class FrameRows:
    """Some rows and columns of a data frame. They become numbers when they are read; other processes get the numbers.

    Attributes
    ----------
    columns : tuple of (ndarray or narwhals Series)
        The whole columns: arrays where numbers of the frame need no conversion.
    names : tuple of hashable
    start, stop : int
        The rows start .. stop - 1.
    dtype : numpy.dtype
        Of the numbers.
    place : str
        The name of the frame in messages.
    """

    columns: tuple[Any, ...]
    names: tuple[Any, ...]
    start: int
    stop: int
    dtype: np.dtype
    place: str

    @classmethod
    def of(cls, frame: nw.DataFrame[Any], place: str) -> FrameRows:
        """Return all rows of a frame; raise DataError unless its columns can become numbers."""
        n_rows, n_columns = frame.shape
        columns = [frame[:, i] for i in range(n_columns)]
        dtypes = [dtype_of(column, place) for column in columns]
        dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        return cls(tuple(map(viewed, columns)), tuple(frame.columns), 0, n_rows, dtype, place)

    @property
    def shape(self) -> tuple[int, int]:
        return self.stop - self.start, len(self.columns)

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return the numbers of some rows."""
        start, stop, _ = rows.indices(len(self))
        return self.cut(start, stop).load()

    def cut(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> FrameRows:
        """Return the rows start .. stop - 1 of these, and all columns or columns[0] .. columns[1] - 1."""
        some = slice(None) if columns is None else slice(*columns)
        return FrameRows(
            self.columns[some], self.names[some], self.start + start, min(self.start + stop, self.stop), self.dtype, self.place
        )  # fmt: skip

    def pieces(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield some rows of numbers at a time, with their position."""
        step = max(PIECE_NUMBERS // max(len(self.columns), 1), 1024)
        for start, stop in spans(0, len(self), step):
            yield (start, 0), self.cut(start, stop).load()

    def load(self) -> np.ndarray:
        """Return the numbers, (n_rows, n_columns)."""
        out = np.empty(self.shape, self.dtype)
        for i, (column, name) in enumerate(zip(self.columns, self.names, strict=True)):
            some = column[self.start : self.stop]
            out[:, i] = some if isinstance(some, np.ndarray) else numbers_of(some, name, self.place)
        return out

    def __reduce__(self) -> Any:
        return np.asarray, (self.load(),)


def dtype_of(column: nw.Series[Any], place: str) -> np.dtype:
    """Return the NumPy dtype of a column's numbers; raise DataError if they are not numbers."""
    kind, native = column.dtype, getattr(column.to_native(), "dtype", None)
    if kind.is_temporal():
        raise date_error(f"the column {column.name!r} of {place}", str(kind))
    if kind in (nw.Categorical, nw.Enum):
        raise DataError(
            f"the column {column.name!r} of {place} has categories ({kind}), which the model or the pool does not split as "
            "such.",
            remedy="Pass their codes, such as those of sklearn.preprocessing.OrdinalEncoder, or drop the column.",
            where=place,
            value=column.name,
        )
    if kind in (nw.Float32, nw.Float64):
        return np.dtype(np.float32 if kind == nw.Float32 else np.float64)
    if kind.is_integer() and kind not in _OF_128_BITS:
        # A missing value becomes NaN. The empty frame that stands for a Dask one does not show its missing values.
        has_none = isinstance(native, np.dtype) or (len(column) > 0 and not column.null_count())
        return np.dtype(str(kind).lower()) if has_none else np.dtype(np.float64)
    if kind in (nw.Boolean, nw.Object, nw.Unknown) or kind.is_numeric():
        return np.dtype(np.float64)
    raise _not_numbers(column.name, place, str(kind))


def viewed(column: nw.Series[Any]) -> Any:
    """Return a column as an array if that takes no copy, else the column."""
    native: Any = column.to_native()
    if not (column.dtype.is_float() or column.dtype.is_integer()) or column.dtype in _OF_128_BITS:
        return column
    if column.implementation.is_pandas() and isinstance(native.dtype, np.dtype):
        return native.to_numpy()
    if column.implementation.is_polars() and native.n_chunks() == 1 and not native.null_count():
        return native.to_numpy()
    if column.implementation.is_pyarrow() and native.num_chunks == 1 and not native.null_count:
        return native.chunk(0).to_numpy()
    return column


def as_block(columns: Sequence[Any]) -> np.ndarray | None:
    """Return columns that lie side by side in the memory of one array, as in pandas, as a view of it, (n_rows, n_columns)."""
    first = columns[0]
    if not all(isinstance(column, np.ndarray) and column.size for column in columns):
        return None
    if len({(id(_owner(column)), column.dtype, column.strides) for column in columns}) > 1:
        return None
    places = [column.__array_interface__["data"][0] for column in columns]
    steps = set(np.diff(places).tolist()) or {first.itemsize}
    if len(steps) > 1:
        return None
    shape, strides = (len(first), len(columns)), (first.strides[0], steps.pop())
    return np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)


def _owner(array: np.ndarray) -> Any:
    """Return what owns the memory of an array."""
    while getattr(array, "base", None) is not None:
        array = array.base  # type: ignore[assignment]
    return array


def numbers_of(column: nw.Series[Any], name: Any, place: str) -> np.ndarray:
    """Return the numbers of some rows of a column, (n,); missing values are NaN."""
    if column.dtype in _OF_128_BITS:
        values = np.array(column.to_list(), object)
        values[values == None] = np.nan  # noqa: E711 (element by element)
    elif column.dtype.is_numeric() or column.dtype == nw.Boolean:
        if column.dtype.is_float() or column.null_count() or not column.dtype.is_integer():
            column = column.cast(nw.Float64)
        return column.to_numpy()
    else:
        values = np.asarray(column.to_native())
    where = f"the column {name!r} of {place}"
    return as_real(values, where, lambda error: _not_numbers(name, place, f"{column.dtype}: {error}"))


def _not_numbers(name: Any, place: str, what: str) -> DataError:
    return DataError(
        f"the column {name!r} of {place} has no numbers ({what}).",
        remedy=f"Encode it, for instance as categories: ``categorical_features=[{name!r}]``, or drop it.",
        where=place,
        value=name,
    )


def _storable(labels: list[Any], name: Any, place: str) -> tuple[Any, ...]:
    """Return the labels of a column, sorted; raise an error if a model file cannot store them."""
    kinds = {*map(type, labels)}
    if len(kinds) > 1 or kinds - {str, int, float, bool} or not all(map(_is_storable, labels)):
        raise DataError(
            f"the column {name!r} of {place} has categories of the types {sorted(k.__name__ for k in kinds)}. They must be "
            "texts, whole numbers, finite numbers or booleans, all of one type.",
            remedy="Convert them: X[column].astype(str).",
            where=place,
            value=name,
        )
    if len(labels) > MOST_CATEGORIES:
        raise LimitError(
            f"the column {name!r} of {place} has {len(labels)} categories, the most are {MOST_CATEGORIES}.",
            remedy="Join the rare ones.",
            where=place,
            value=name,
        )
    return tuple(sorted(labels))


def _check_all_coded(column: nw.Series[Any], codes: np.ndarray, place: str) -> None:
    """Raise DataError if a value has no code but is not missing."""
    if not np.isnan(codes).any():
        return
    unknown = column.filter(np.isnan(codes).tolist()).drop_nulls().to_list()
    if unknown:
        raise DataError(
            f"the column {column.name!r} of {place} has the category {unknown[0]!r:.100}, which is none of those that Dask "
            "declares for it.",
            remedy=f"Declare it, as in X.categorize(columns=[{column.name!r}]) before the partitions are made, or "
            f"X[{column.name!r}].cat.set_categories(all).",
            where=place,
            value=column.name,
        )


def _is_storable(label: Any) -> bool:
    return is_unicode(label) if isinstance(label, str) else bool(np.isfinite(label))


def _check_kind(column: nw.Series[Any], labels: tuple[Any, ...], name: Any, place: str) -> None:
    """Raise DataError if the values are numbers but the labels are texts, or the reverse: none would be known."""
    values = column.drop_nulls()
    some = (values.filter(~values.is_nan()) if values.dtype.is_float() else values).head(1).to_list()
    if not labels or not some or column.dtype == nw.Object or not isinstance(some[0], str | Number):
        return
    has_texts = isinstance(some[0], str)
    if has_texts == isinstance(labels[0], str):
        return
    found, known = ("texts", "numbers") if has_texts else ("numbers", "texts")
    raise DataError(
        f"the column {name!r} of {place} has {found}, but its categories in the training are {known}, such as "
        f"{labels[0]!r:.100}.",
        remedy="Pass the same values as in the training.",
        where=place,
        value=name,
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
