"""Data frames of any library, read as blocks of numbers, some rows at a time.

narwhals reads them all: pandas, polars, pyarrow, Modin, cuDF. The columns of a frame become numbers in one place, `_numbers_of`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from distboost.data.axes import Axis, spans
from distboost.data.dates import date_error, has_dates
from distboost.data.kinds import is_instance
from distboost.data.source import Source
from distboost.errors import DataError

PIECE_NUMBERS = 2**19  # numbers that are converted together


def is_frame(data: Any) -> bool:
    """Whether `data` is a data frame in memory."""
    return is_instance(data, "pyarrow", "RecordBatch") or nw.dependencies.is_into_dataframe(data)


def as_frame(data: Any, place: str) -> nw.DataFrame[Any]:
    """Return a data frame of any library as one of narwhals. Nothing is copied."""
    if is_instance(data, "pyarrow", "RecordBatch"):
        data = sys.modules["pyarrow"].Table.from_batches([data])
    try:
        frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
        frame.columns  # noqa: B018 (for some libraries, this looks for names that occur twice)
    except DuplicateError as error:
        said = " ".join(str(error).split())
        raise DataError(f"{place} has several columns of one name ({said}). Rename them.") from error
    return frame


class FrameSource(Source):
    """A data frame in this process's memory."""

    is_near = True
    copies = 0

    def __init__(self, data: Any, place: str):
        self.place = place
        self._rows = FrameRows.of(as_frame(data, place), place)
        self.shape, self.dtype = self._rows.shape, self._rows.dtype
        self.axes = tuple(Axis(length, 1) for length in self.shape)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> FrameRows:
        return self._rows.cut(start, stop, columns)


def dask_numbers(data: Any, place: str) -> Any:
    """Return the dask array of a data frame of Dask, in which each partition becomes numbers by itself."""
    like = FrameRows.of(as_frame(data._meta, place), place)
    return data.map_partitions(_partition_numbers, like.dtype, place, meta=np.empty(like.shape, like.dtype))


def _partition_numbers(partition: Any, dtype: np.dtype, place: str) -> np.ndarray:
    return FrameRows.of(as_frame(partition, place), place, dtype).load()


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
    def of(cls, frame: nw.DataFrame[Any], place: str, dtype: np.dtype | None = None) -> FrameRows:
        """Return all rows of a frame; raise DataError unless its columns can become numbers."""
        n_rows, n_columns = frame.shape
        columns = [frame[:, i] for i in range(n_columns)]
        if dtype is None:
            dtype = common_dtype([_dtype_of(column, place) for column in columns])
        return cls(tuple(map(_viewed, columns)), tuple(frame.columns), 0, n_rows, dtype, place)

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
            out[:, i] = some if isinstance(some, np.ndarray) else _numbers_of(some, name, self.place)
        return out

    def __reduce__(self) -> Any:
        return np.asarray, (self.load(),)


def common_dtype(dtypes: list[np.dtype]) -> np.dtype:
    """Return the dtype of a block of columns of these dtypes."""
    return np.result_type(*dtypes) if dtypes else np.dtype(np.float64)


def _dtype_of(column: nw.Series[Any], place: str) -> np.dtype:
    """Return the NumPy dtype of a column's numbers; raise DataError if they are not numbers."""
    kind, native = column.dtype, getattr(column.to_native(), "dtype", None)
    if kind.is_temporal():
        raise date_error(f"the column {column.name!r} of {place}", str(kind))
    if kind in (nw.Categorical, nw.Enum):
        raise DataError(
            f"the column {column.name!r} of {place} has categories ({kind}). Give their codes, such as those of "
            "sklearn.preprocessing.OrdinalEncoder, or drop the column."
        )
    if kind in (nw.Float32, nw.Float64):
        return np.dtype(np.float32 if kind == nw.Float32 else np.float64)
    if kind.is_integer() and kind not in (nw.Int128, nw.UInt128):
        # A missing value becomes NaN. The empty frame that stands for a Dask one does not show its missing values.
        has_none = isinstance(native, np.dtype) or (len(column) > 0 and not column.null_count())
        return np.dtype(str(kind).lower()) if has_none else np.dtype(np.float64)
    if kind in (nw.Boolean, nw.Object, nw.Unknown) or kind.is_numeric():
        return np.dtype(np.float64)
    raise _not_numbers(column.name, place, str(kind))


def _viewed(column: nw.Series[Any]) -> Any:
    """Return the column as an array if that takes no copy."""
    native: Any = column.to_native()
    if column.dtype.is_numeric():
        if column.implementation.is_pandas() and isinstance(native.dtype, np.dtype):
            return native.to_numpy()
        if column.implementation.is_polars() and native.n_chunks() == 1 and not native.null_count():
            return native.to_numpy() if column.dtype.is_float() or column.dtype.is_integer() else column
        if column.implementation.is_pyarrow() and native.num_chunks == 1 and not native.null_count:
            return native.chunk(0).to_numpy(zero_copy_only=not column.dtype.is_decimal())
    return column


def _numbers_of(column: nw.Series[Any], name: Any, place: str) -> np.ndarray:
    """Return the numbers of some rows of a column, (n,); missing values are NaN."""
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        if column.dtype.is_float() or column.null_count() or not column.dtype.is_integer():
            column = column.cast(nw.Float64)
        return column.to_numpy()
    values = np.asarray(column.to_native())
    if has_dates(values):
        raise date_error(f"the column {name!r} of {place}", str(values.dtype))
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise _not_numbers(name, place, f"{column.dtype}: {error}") from error


def _not_numbers(name: Any, place: str, what: str) -> DataError:
    return DataError(
        f"the column {name!r} of {place} has no numbers ({what}). Encode it, for instance with "
        "sklearn.preprocessing.OrdinalEncoder, or drop it."
    )
