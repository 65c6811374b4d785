"""Parquet files, or folders of them: read by row groups, of which each is a chunk of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from distboost.data.source import ArraySource, Axis, Source, assembled
from distboost.errors import DataError
from distboost.inputs.base import LazyInput, is_instance, texts
from distboost.inputs.frame import FrameRows, as_frame
from distboost.inputs.zarr_array import chunkwise
from distboost.io.filesystems import filesystem_at
from distboost.io.packages import missing
from distboost.io.retry import retried

if TYPE_CHECKING:
    import dask.array as da

SUFFIXES = (".parquet", ".pq")


def is_parquet(url: str | os.PathLike[str]) -> bool:
    """Whether a path or URL is that of Parquet files, by its name."""
    return os.fspath(url).rstrip("/").endswith(SUFFIXES)


def parquet_at(url: str | os.PathLike[str], place: str) -> Any:
    """Return the dataset of a file, or of a folder of files, as pyarrow opens it."""
    try:
        from pyarrow import ArrowInvalid, dataset
    except ImportError as error:
        raise missing("a Parquet file", "pyarrow", "parquet") from error
    filesystem, path = filesystem_at(url)
    where = f"``{place}`` ({os.fspath(url)!r})"
    try:
        return retried(lambda: dataset.dataset(path, filesystem=filesystem, format="parquet"), where)
    except FileNotFoundError as error:
        raise DataError(
            f"{where}: there is no such file.", remedy="Pass the path or URL of one, or of a folder."
        ) from error
    except ArrowInvalid as error:
        raise DataError(f"{where} cannot be read as Parquet: {error}.", remedy="Write it again.") from error


class ParquetInput(LazyInput):
    """A dataset of pyarrow."""

    @classmethod
    def recognises(cls, data: Any) -> bool:
        return is_instance(data, "pyarrow.dataset", "FileSystemDataset")

    @cached_property
    def names(self) -> np.ndarray | None:
        return texts(list(self.data.schema.names), self.place)

    def source(self, of_features: bool) -> Source:
        if of_features:
            return self._source
        table = self.data.to_table()
        columns = [column.to_numpy() for column in table.columns]
        return ArraySource(columns[0] if len(columns) == 1 else np.column_stack(columns), self.place)

    @cached_property
    def _source(self) -> ParquetSource:
        return ParquetSource(self.data, self.place)

    @cached_property
    def rows(self) -> da.Array:
        return chunkwise(self.features())


class ParquetSource(Source):
    """The columns of Parquet files as numbers."""

    is_stored = True
    decodes_again = True
    copies = 0

    def __init__(self, dataset: Any, place: str):
        files = dataset.files
        self.place = f"``{place}`` ({files[0]}{', ...' if len(files) > 1 else ''})"
        self._dataset = dataset
        self._groups = [group for file in dataset.get_fragments() for group in file.split_by_row_group()]
        like = FrameRows.of(as_frame(dataset.schema.empty_table(), place), place)
        sizes = [group.row_groups[0].num_rows for group in self._groups]
        cuts = (0, *accumulate(sizes))
        self.shape, self.dtype = (cuts[-1], like.shape[1]), like.dtype
        self.axes = (
            Axis(cuts[-1], max([*sizes, 1]), tuple(sorted(set(cuts)))),
            Axis(like.shape[1], max(like.shape[1], 1)),
        )
        self._cuts = np.array(cuts)
        self.chunk_bytes = self.bytes_of_chunk()
        self._first_mark = self.mark()

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> ParquetPart:
        names = self._dataset.schema.names[slice(*columns or (None,))]
        first = int(np.searchsorted(self._cuts, start, side="right")) - 1
        last = int(np.searchsorted(self._cuts, stop))
        cuts = tuple(
            (group, max(start - begin, 0), min(stop, end) - begin)
            for group, begin, end in zip(
                self._groups[first:last],
                self._cuts[first:last].tolist(),
                self._cuts[first + 1 :].tolist(),
                strict=False,
            )
        )
        return ParquetPart((stop - start, len(names)), self.dtype, self.place, tuple(names), cuts)

    def is_unchanged(self) -> bool:
        return bool(self.mark() == self._first_mark)

    def mark(self) -> Any:
        """Return the paths, sizes and times of the files."""
        found = self._dataset.filesystem.get_file_info(self._dataset.files)
        return [(file.path, file.size, file.mtime_ns) for file in found]


@dataclass(frozen=True)
class ParquetPart:
    """Some rows and columns of Parquet files.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    place : str
        The name of the files in messages.
    names : tuple of str
        The columns.
    cuts : tuple of (fragment of pyarrow, int, int)
        Row groups, each with the first and the last (exclusive) of its rows.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    place: str
    names: tuple[str, ...]
    cuts: tuple[tuple[Any, int, int], ...]

    def pieces(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield the values of a row group at a time, with their position."""
        first = 0
        for group, start, stop in self.cuts:
            read = partial(group.to_table, columns=list(self.names), use_threads=False)
            table = retried(read, self.place).slice(start, stop - start)
            values = FrameRows.of(as_frame(table, self.place), self.place).load()
            yield (first, 0), values.astype(self.dtype, copy=False)
            first += stop - start

    def load(self) -> np.ndarray:
        """Return the values as one array."""
        return assembled(self)
