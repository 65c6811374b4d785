"""Sources of rows: values that are read some rows at a time, whatever holds them.

A source makes *parts*: small values that travel to a worker, which loads their rows. The part of an array in memory is the slice
itself. Those of other containers have `pieces`, `load`, or `computed`: see the adapters in `distboost.inputs`.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import zlib
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from distboost.errors import DataError
from distboost.warn import warn_of_all

Bounds = tuple[tuple[int, int], ...]  # along each axis: the first item, and the last one + 1


def spans(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield spans (first, last + 1) of `size` items that cover start .. stop - 1; the last one may be shorter."""
    return ((first, min(first + size, stop)) for first in range(start, stop, size))


@dataclass(frozen=True)
class Axis:
    """The chunks along one axis: of `chunk` items each, or divided at `cuts`, where `chunk` is the longest."""

    length: int
    chunk: int
    cuts: tuple[int, ...] | None = None

    def end(self, start: int, size: int) -> int:
        """Return where a read of about `size` items should end: at the last cut within them, else at the first after `start`."""
        if self.cuts is None:
            within = (start + size) // self.chunk * self.chunk
            after = (start // self.chunk + 1) * self.chunk
        else:
            within = self.cuts[bisect_right(self.cuts, start + size) - 1]
            after = self.cuts[min(bisect_right(self.cuts, start), len(self.cuts) - 1)]
        return min(max(within, after), self.length)

    def spans(self, start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield spans (first, last + 1) of about `size` items that cover start .. stop - 1 and end at chunk boundaries."""
        while start < stop:
            end = min(self.end(start, size), stop)
            yield start, end
            start = end


def box_shape(axes: Sequence[Axis], most: int) -> list[int]:
    """Return the shape of as many whole chunks as `most` items hold, at least one; the last axis grows first."""
    left, sizes = max(most // math.prod(axis.chunk for axis in axes), 1), []
    for axis in reversed(axes):
        n = max(min(left, -(-axis.length // axis.chunk)), 1)
        sizes.append(n * axis.chunk)
        left //= n
    return sizes[::-1]


def boxes(axes: Sequence[Axis], bounds: Bounds, sizes: Sequence[int]) -> Iterator[Bounds]:
    """Yield boxes of about these sizes that cover the bounds, divided at chunk boundaries."""
    cuts = zip(axes, bounds, sizes, strict=True)
    return itertools.product(*(list(axis.spans(a, b, size)) for axis, (a, b), size in cuts))


PIECE_BYTES = 2**22  # of one read at most, unless a single chunk is larger
MISSING_CHUNKS = ("warn", "error", "ignore")
_CHECKSUM_ROWS = 2**16  # in each update of a checksum


class Source(ABC):
    """Rows of an array of one or two dimensions.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    place : str
        The name of the array in messages.
    axes : tuple of Axis
        The chunks along each axis. Reads that begin and end at chunk boundaries are the cheapest.
    chunk_bytes : int
        Bytes of the largest chunk that a read has to decode; 0 if nothing is decoded.
    read_copies : int
        The largest number of such chunks that a read holds: an encoded one, decoded ones, and the values that are returned.
    copies : int
        The copies of a whole part in memory while it is used; 0 if it is read piece by piece.
    is_near : bool
        Whether the values are in this process's memory.
    is_stored : bool
        Whether each worker can read the values from storage.
    decodes_again : bool
        Whether each read of a part of a chunk decodes all of it.
    array : ndarray or None
        All values, if they are one array in memory.
    categorical : tuple of int
        The columns whose values are categories, ascending.
    labels : mapping of int to tuple
        The labels of such columns, if their values are codes of labels.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    place: str
    axes: tuple[Axis, ...]
    chunk_bytes: int = 0
    read_copies: int = 4
    copies: int = 1
    is_near: bool = False
    is_stored: bool = False
    decodes_again: bool = False
    array: np.ndarray | None = None
    categorical: tuple[int, ...] = ()
    labels: Mapping[int, tuple[Any, ...]] = MappingProxyType({})

    @property
    def row_bytes(self) -> int:
        """The size of the values of a row, in bytes."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def n_rows(self) -> int:
        return self.shape[0]

    def bin_bytes(self, block: int) -> int:
        """Return the most bytes of a row's bins in a block of so many rows that stays in memory."""
        return math.prod(self.shape[1:])

    @property
    def chunk_rows(self) -> int:
        """Rows of the tallest chunk."""
        return self.axes[0].chunk

    def bytes_of_chunk(self) -> int:
        """The size of the values of the largest chunk, in bytes."""
        return math.prod(min(axis.chunk, axis.length) for axis in self.axes) * self.dtype.itemsize

    @abstractmethod
    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> Any:
        """Return what a worker needs to load the rows start .. stop - 1 of all columns, or of columns[0] .. columns[1] - 1."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read the rows start .. stop - 1, (stop - start, ...), in this thread."""
        return load(self.part(start, stop))

    def loaded(self) -> np.ndarray:
        """Read all rows into memory."""
        return self.read(0, self.n_rows)

    def near(self, rows: int) -> Source:
        """Return this source, or its values in memory if spans of `rows` rows would decode its chunks several times."""
        return (
            ArraySource(self.loaded(), self.place) if self.decodes_again and self.chunk_rows > rows else self
        )

    def rows_at_once(self, limit: int) -> int:
        """Return how many rows to hold at once if all columns are needed: those of a chunk, unless they take far more memory.

        Chunks of few columns may be so tall that all columns of their rows are most of the array. Such chunks are decoded many
        times, each time for some of their rows.
        """
        row = max(math.prod(self.shape[1:]), 1) * 8
        most = max(limit, 2 * self.chunk_bytes)
        return self.chunk_rows if self.chunk_rows * row <= most else max(most // row, 1)

    def warnings(self, policy: str) -> list[str]:
        """Return warnings about the stored array; with the policy "error", raise MissingChunkError for chunks never written."""
        return []

    def is_unchanged(self) -> bool:
        """Whether the array is still what it was when it was listed; raise StoreError if it is gone."""
        return True

    def mark(self) -> Any:
        """Return what changes when the array is written again, if possible without reading it: by default, a checksum."""
        value = 0
        for start, stop in spans(0, self.n_rows, _CHECKSUM_ROWS):
            for _, values in pieces(self.part(start, stop)):
                value = zlib.crc32(_bytes_of(values), value)
        return value


class BoxSource(Source):
    """An array of any number of dimensions, of which any box can be read.

    `comes_whole`: a task that reads boxes of several such arrays has all of them in memory when it begins.
    """

    comes_whole: bool = False

    @abstractmethod
    def box(self, bounds: Bounds) -> Any:
        """Return what a worker needs to load the items within these bounds."""

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> Any:
        rest = [(0, length) for length in self.shape[1:]] if columns is None else [columns]
        return self.box(((start, stop), *rest))


class ArraySource(BoxSource):
    """An array in this process's memory."""

    is_near = True
    array: np.ndarray

    def __init__(self, array: np.ndarray, place: str):
        self.array, self.place = array, place
        self.shape, self.dtype = array.shape, array.dtype
        self.axes = tuple(Axis(length, 1) for length in array.shape)

    def box(self, bounds: Bounds) -> np.ndarray:
        return self.array[tuple(slice(*span) for span in bounds)]


def at_hand(part: Any) -> Any:
    """Return a part whose type is known.

    One of a dask array is computed now if no cluster has done it, and rows in compressed form are read.
    """
    found = part.computed() if hasattr(part, "computed") else part
    return found.compressed() if hasattr(found, "compressed") else found


def pieces(part: Any) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield the values of a part piece by piece, with their position within the part."""
    if hasattr(part, "pieces"):
        yield from part.pieces()
    else:
        values = load(part)
        yield (0,) * values.ndim, values


def load(part: Any) -> np.ndarray:
    """Return the values of a part."""
    return np.asarray(part.load() if hasattr(part, "load") else part)


def assembled(part: Any, before: Callable[[], None] = lambda: None) -> np.ndarray:
    """Return the values of a part as one array, read piece by piece. `before` is called before each piece is kept."""
    out = np.empty(part.shape, part.dtype)
    for position, values in pieces(part):
        before()
        out[tuple(slice(a, a + n) for a, n in zip(position, values.shape, strict=True))] = values
        del values  # a view may keep a chunk in memory: it must go before the next one is read
    return out


def warnings_about(sources: Iterable[Source | None], policy: str) -> list[str]:
    """Return the warnings about sources; chunks that were never written follow the `policy`."""
    if policy not in MISSING_CHUNKS:
        raise DataError.expected(
            "``missing_chunks``", policy, f"one of {', '.join(map(repr, MISSING_CHUNKS))}"
        )
    return [message for source in sources if source is not None for message in source.warnings(policy)]


def warn_about(source: Source, policy: str) -> None:
    """Warn about a source, or raise MissingChunkError, depending on the policy for chunks that were never written."""
    warn_of_all(warnings_about([source], policy))


def fingerprint(sources: Iterable[Source | None]) -> str:
    """Return a SHA-256 that changes when an array is written again.

    It covers the names, sizes and times of the files of zarr arrays; in object stores, names, sizes and ETags; a checksum of the
    values of arrays in memory and in stores that list names only; and the tokens of dask arrays.
    """
    digest = hashlib.sha256()
    for source in sources:
        described = None if source is None else (source.shape, str(source.dtype), source.mark())
        digest.update(repr(described).encode())
    return digest.hexdigest()


def changed(sources: Iterable[Source | None]) -> list[str]:
    """Return the names of the arrays that have changed since they were listed; raise StoreError if one is gone."""
    return [source.place for source in sources if source is not None and not source.is_unchanged()]


def _bytes_of(values: np.ndarray) -> Any:
    if values.dtype.kind not in "biufcmMSU" or not values.size:
        return repr(values.tolist()).encode()
    return np.ascontiguousarray(values).view(np.uint8)
