"""Data frames of any library, read as blocks of numbers, some rows at a time.

narwhals reads them all: pandas, polars, pyarrow, Modin, cuDF. `columns.py` says how a column becomes numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from distboost.data.axes import Axis, spans
from distboost.data.columns import as_block, common_dtype, dtype_of, numbers_of, viewed
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
    """A data frame in this process's memory.

    Attributes
    ----------
    block : ndarray of shape (n_rows, n_features), or None
        The numbers of the frame, if it has them as one array.
    """

    is_near = True
    copies = 0

    def __init__(self, data: Any, place: str):
        self.place = place
        self._rows = FrameRows.of(as_frame(data, place), place)
        self.shape, self.dtype = self._rows.shape, self._rows.dtype
        self.axes = tuple(Axis(length, 1) for length in self.shape)
        self.block = as_block(self._rows.columns) if 0 not in self.shape else None

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> FrameRows:
        return self._rows.cut(start, stop, columns)


def dask_numbers(data: Any, place: str) -> Any:
    """Return the dask array of a data frame of Dask, in which each partition becomes numbers by itself.

    The dtype of this array follows from Dask's declared types. Each partition has the type of its own columns, which may differ.
    """
    like = FrameRows.of(as_frame(data._meta, place), place)
    return data.map_partitions(
        _partition_numbers, Partitions(data._meta, place), meta=np.empty(like.shape, like.dtype)
    )


def _partition_numbers(
    partition: Any, partitions: Partitions, partition_info: Mapping[str, Any] | None = None
) -> np.ndarray:
    number = partitions.number(partition_info)
    frame, where = partitions.frame_of(partition, number), f"partition {number} of {partitions.place}"
    try:
        return FrameRows.of(frame, where).load()
    except DataError as error:
        raise DataError(f"{error} (Dask declares {partitions.declared}.)") from error


class Partitions:
    """What Dask declares of the partitions of a data frame, some of which may differ from it.

    Parameters
    ----------
    meta : data frame
        The empty one that Dask has of them.
    place : str
        The name of the whole frame in messages.
    """

    def __init__(self, meta: Any, place: str):
        frame = as_frame(meta, place)
        self.place, self.names = place, frame.columns
        self.declared = ", ".join(f"{name!r}: {kind}" for name, kind in frame.schema.items())

    @staticmethod
    def number(partition_info: Mapping[str, Any] | None) -> int:
        """Return the number of a partition, from what Dask passes to a function of partitions."""
        return -1 if partition_info is None else int(partition_info["number"])

    def frame_of(self, partition: Any, number: int) -> nw.DataFrame[Any]:
        """Return a partition with the declared columns in their declared order, whatever order it has; narwhals's frame.

        Raises
        ------
        DataError
            If it has other columns.
        """
        frame = as_frame(partition, f"partition {number} of {self.place}")
        if frame.columns == self.names:
            return frame
        if sorted(map(str, frame.columns)) != sorted(map(str, self.names)):
            raise DataError(
                f"partition {number} of {self.place} has the columns {frame.columns!r:.200}, but Dask declares "
                f"{self.names!r:.200}. Select or rename the columns of each partition, as in X.map_partitions(select)."
            )
        return frame[:, [frame.columns.index(name) for name in self.names]]


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
        dtype = common_dtype([dtype_of(column, place) for column in columns])
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
