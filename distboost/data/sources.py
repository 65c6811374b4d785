"""Where rows come from: an array in memory, a zarr array, or a dask array, read a span of rows at a time.

A source hands out *parts*: small values that travel to a worker and are loaded there. The part of an array in memory is the
slice itself, that of a zarr array is its address, that of a dask array is computed by the cluster.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import warnings
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import zarr
from zarr.errors import NodeTypeValidationError

from distboost.data.chunks import chunk_key, found_and_expected
from distboost.data.graphs import part_of, set_apart
from distboost.data.inventory import (
    ABSENT,
    Inventory,
    Probe,
    UnlikeListingError,
    held_to,
    innermost,
    with_absolute_path,
)
from distboost.data.memory import returned_when_freed
from distboost.errors import DataError, MissingChunkError, StoreError
from distboost.io.retry import is_damage, retried, said
from distboost.io.storage import is_binned, is_in_memory, open_store

PIECE_BYTES = 2**22  # that one read takes at most, unless a single chunk is larger

MISSING_CHUNKS = ("warn", "error", "ignore")

log = logging.getLogger("distboost")
Spans = tuple[tuple[int, int], ...]  # along each axis


@dataclass(frozen=True)
class Axis:
    """How an axis of an array is cut: after every `chunk` items, or at `cuts` (then `chunk` is the longest stretch)."""

    length: int
    chunk: int
    cuts: tuple[int, ...] | None = None

    def end(self, start: int, size: int) -> int:
        """Where a read of about `size` items should end: at the last cut within them, else at the first one after `start`."""
        if self.cuts is None:
            within = (start + size) // self.chunk * self.chunk
            after = (start // self.chunk + 1) * self.chunk
        else:
            within = self.cuts[bisect_right(self.cuts, start + size) - 1]
            after = self.cuts[min(bisect_right(self.cuts, start), len(self.cuts) - 1)]
        return min(max(within, after), self.length)

    def spans(self, start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
        """Cuts start .. stop - 1 into spans of about `size`, at chunk boundaries."""
        while start < stop:
            end = min(self.end(start, size), stop)
            yield start, end
            start = end


class Source(ABC):
    """Rows of an array of one or two dimensions.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    place : str
        What to call the array in a message.
    axes : tuple of Axis
        Reads that begin and end at cuts of all axes are the cheapest.
    chunk_bytes : int
        Bytes of the largest chunk that a read has to decode; 0 if nothing is decoded.
    copies : int
        How often a part is in memory, all of it, while it is used; 0 if it is read piece by piece.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    place: str
    axes: tuple[Axis, ...]
    chunk_bytes: int = 0
    copies: int = 1

    @property
    def n_rows(self) -> int:
        return self.shape[0]

    @property
    def chunk_rows(self) -> int:
        """Rows of the tallest chunk."""
        return self.axes[0].chunk

    @abstractmethod
    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> Any:
        """What a worker needs to load rows start .. stop - 1, of all columns or of columns[0] .. columns[1] - 1."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows start .. stop - 1, here and now."""
        return load(self.part(start, stop))


@dataclass(frozen=True)
class ZarrPart:
    """The address of some rows of a zarr array, and of some columns.

    Attributes
    ----------
    array : zarr.Array
    place : str
        What to call it in a message.
    start, stop : int
    columns : (int, int) or None
        First and last (exclusive); None: all.
    sizes : ndarray of int64
        What the store lists of the chunks that the part touches, in the shape of their grid (see `Inventory`). A chunk that is
        not as it was listed is an error: zarr would read one that is not there as the fill value.
    """

    array: zarr.Array
    place: str
    start: int
    stop: int
    columns: tuple[int, int] | None
    sizes: np.ndarray

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.array.dtype)

    @property
    def _bounds(self) -> Spans:
        rest = [(0, length) for length in self.array.shape[1:]]
        return (self.start, self.stop), *(rest if self.columns is None else [self.columns])

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in self._bounds)

    def pieces(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """The values, a chunk at a time (or a few small ones), each with its position within the part.

        zarr decodes many chunks at once where a selection covers many: so none does.
        """
        array = held_to(self.array, self._first_chunk, self.sizes)
        for piece in _cut(array, self._bounds, _piece_shape(array)):
            with returned_when_freed():
                values = self._read(array, piece)
                yield _position(piece, self._bounds), values
                del values  # before the next one is read

    def _read(self, array: zarr.Array, piece: Spans) -> np.ndarray:
        """The values of some chunks: together, or one by one where one of them cannot be read."""
        chunks = list(_cut(array, piece, [1] * len(piece)))
        if len(chunks) == 1:
            return self._read_chunk(array, piece)
        try:
            return _values(array, piece)
        except MemoryError:
            raise
        except Exception as error:
            log.warning(
                "%s cannot be read (%s): its %d chunks are read one by one",
                self._rows(piece),
                said(error),
                len(chunks),
            )
        out = np.empty([b - a for a, b in piece], array.dtype)
        for chunk in chunks:
            out[_within(chunk, piece)] = self._read_chunk(array, chunk)
        return out

    def _read_chunk(self, array: zarr.Array, chunk: Spans) -> np.ndarray:
        """The values of one chunk, or of a part of it."""
        position = self._chunk_position(chunk)
        what = f"chunk {chunk_key(array, *position)}, {self._rows(chunk)}"
        try:
            return retried(lambda: _values(array, chunk), what, reread=True)
        except UnlikeListingError as error:
            raise StoreError(
                f"{what}, {error}. If that is a worker on another machine: give a path or URL under which all workers see the "
                "same data. Else the data were changed meanwhile: start again when they no longer change."
            ) from error
        except Exception as error:
            if not (is_damage(error) or isinstance(error, FileNotFoundError)):
                raise
            raise StoreError(
                f"{what} cannot be read: {said(error)} ({found_and_expected(self.array, *position)}). "
                "Write the damaged chunk again, or restore it from a copy."
            ) from error

    def probe(self) -> Probe | None:
        """A chunk that was listed; None if the part has none."""
        listed = np.argwhere(self.sizes != ABSENT)[:1]
        if not len(listed):
            return None
        position = tuple(int(a + b) for a, b in zip(self._first_chunk, listed[0], strict=True))
        return Probe.of(self.array, position, self.place)

    @property
    def _first_chunk(self) -> tuple[int, ...]:
        return tuple(self._chunk_position(self._bounds))

    def _chunk_position(self, chunk: Spans) -> list[int]:
        size = self.array.shards or self.array.chunks
        return [a // length for (a, _), length in zip(chunk, size, strict=True)]

    def _rows(self, spans: Spans) -> str:
        a, b = spans[0]
        return f"rows {a} to {b - 1} of {self.place}"

    def load(self) -> np.ndarray:
        out = np.empty(self.shape, self.array.dtype)
        for position, values in self.pieces():
            out[tuple(slice(a, a + n) for a, n in zip(position, values.shape, strict=True))] = values
            del values
        return out


def _values(array: zarr.Array, spans: Spans) -> np.ndarray:
    return np.asarray(array[tuple(slice(a, b) for a, b in spans)])


def _cut(array: zarr.Array, bounds: Spans, sizes: list[int]) -> Iterator[Spans]:
    """Cuts what lies within bounds into cells of about these sizes, at chunk boundaries."""
    cuts = zip(axes_of(array), bounds, sizes, strict=True)
    return itertools.product(*(list(axis.spans(a, b, size)) for axis, (a, b), size in cuts))


def _position(cell: Spans, bounds: Spans) -> tuple[int, ...]:
    """Where a cell begins within bounds."""
    return tuple(a - first for (a, _), (first, _) in zip(cell, bounds, strict=True))


def _within(cell: Spans, bounds: Spans) -> tuple[slice, ...]:
    """A cell's place in an array of what lies within bounds."""
    return tuple(slice(a - first, b - first) for (a, b), (first, _) in zip(cell, bounds, strict=True))


def axes_of(array: zarr.Array) -> tuple[Axis, ...]:
    return tuple(Axis(n, chunk) for n, chunk in zip(array.shape, array.shards or array.chunks, strict=True))


def _piece_shape(array: zarr.Array) -> list[int]:
    """As many whole chunks as PIECE_BYTES hold, at least one; along the last axis first."""
    chunks = array.shards or array.chunks
    left, sizes = max(PIECE_BYTES // (math.prod(chunks) * array.dtype.itemsize), 1), []
    for length, chunk in zip(array.shape[::-1], chunks[::-1], strict=True):
        n = max(min(left, -(-length // chunk)), 1)
        sizes.append(n * chunk)
        left //= n
    return sizes[::-1]


def pieces(part: Any) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """The values of a part, piece by piece, each with its position within the part."""
    if isinstance(part, ZarrPart):
        yield from part.pieces()
    else:
        values = load(part)
        yield (0,) * values.ndim, values


def load(part: Any) -> np.ndarray:
    """The values of a part. What is computed by a cluster has been computed before it gets here, or is computed now."""
    if isinstance(part, ZarrPart):
        return part.load()
    if hasattr(part, "compute"):
        # In this thread: how many parts are computed at once is the caller's choice.
        part = part.compute(scheduler="synchronous")
    return np.asarray(part)


class ArraySource(Source):
    """An array in this process's memory."""

    def __init__(self, array: np.ndarray, place: str):
        self.array, self.place = array, place
        self.shape, self.dtype = array.shape, array.dtype
        self.axes = tuple(Axis(length, 1) for length in array.shape)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> np.ndarray:
        return self.array[start:stop] if columns is None else self.array[start:stop, slice(*columns)]


class ZarrSource(Source):
    """A zarr array, read by whoever needs it, as it was listed here."""

    def __init__(self, array: zarr.Array, name: str):
        self.array = with_absolute_path(array)
        self.place = f"{name} ({_url(self.array)})"
        self.shape, self.dtype = array.shape, np.dtype(array.dtype)
        self.axes = axes_of(array)
        self.chunk_bytes = _chunk_bytes(self)
        # A store in memory exists in this process only: its parts are loaded before they travel.
        self.is_near = is_in_memory(innermost(array.store))
        self.copies = int(self.is_near)

    @cached_property
    def inventory(self) -> Inventory:
        """What the store lists of the array: taken when it is first wanted."""
        return Inventory(self.array, self.place)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> Any:
        rest = [(0, length) for length in self.shape[1:]] if columns is None else [columns]
        size = self.array.shards or self.array.chunks
        cells = [
            slice(a // chunk, -(-b // chunk))
            for (a, b), chunk in zip([(start, stop), *rest], size, strict=True)
        ]
        part = ZarrPart(self.array, self.place, start, stop, columns, self.inventory.sizes[tuple(cells)])
        return part.load() if self.is_near else part

    def missing_chunks(self) -> list[str]:
        """Keys of the chunks that were never written: zarr reads them as the fill value without a word."""
        return self.inventory.missing()

    def is_unchanged(self) -> bool:
        """Whether the store lists what it listed before; asked anew."""
        return Inventory(self.array, self.place).digest == self.inventory.digest


def _url(array: zarr.Array) -> str:
    store = array.store
    if isinstance(store, zarr.storage.FsspecStore):
        return store.fs.unstrip_protocol("/".join(filter(None, (store.path, array.path))))
    return str(array.store_path)


class DaskSource(Source):
    """A dask array: its rows are computed where they are needed, never all at once.

    Parameters
    ----------
    array : dask.array.Array
    place : str
    given : dask.array.Array
        What `array` was set apart from. As long as it is here, Dask keeps what was persisted of it.

    Attributes
    ----------
    token : str
        The same for equal arrays.
    """

    copies = 3  # its chunks, their slices, and what is made of them

    def __init__(self, array: Any, place: str, given: Any):
        self.array, self.place = array, place
        self._given, self.token = given, given.name
        self.shape, self.dtype = array.shape, array.dtype
        self.axes = tuple(_cut_axis(chunks) for chunks in array.chunks)
        self.chunk_bytes = _chunk_bytes(self)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> Any:
        return part_of(self.array, (slice(start, stop), *(() if columns is None else [slice(*columns)])))


def _cut_axis(chunks: tuple[int, ...]) -> Axis:
    cuts = tuple(sorted({0, *itertools.accumulate(chunks)}))
    return Axis(cuts[-1], max(max(chunks, default=1), 1), cuts)


def _chunk_bytes(source: Source) -> int:
    return math.prod(min(axis.chunk, axis.length) for axis in source.axes) * source.dtype.itemsize


def is_lazy(data: Any) -> bool:
    """Whether the data should not be loaded whole: a zarr array, a path or URL of one, or a dask collection."""
    return isinstance(data, (str, os.PathLike, zarr.Array)) or is_dask(data)


def is_dask(data: Any) -> bool:
    return callable(getattr(data, "__dask_graph__", None))


def open_zarr(url: str | os.PathLike, name: str) -> zarr.Array:
    """The zarr array at a path or URL."""
    place = repr(os.fspath(url))
    try:
        store = open_store(url)
        return retried(
            lambda: zarr.open_array(store, mode="r"), f"{name}: the metadata of the zarr array at {place}"
        )
    except (FileNotFoundError, NodeTypeValidationError) as error:
        if is_binned(store):
            raise DataError(
                f"{name}: {place} is a binned store, which holds bins, with labels and weights of its own, and no values. fit "
                "takes it alone, as X; all else takes the arrays that it was made from."
            ) from error
        raise DataError(
            f"{name}: there is no zarr array at {place} ({said(error)}). "
            "Give the path or URL of an array, such as data.zarr/x."
        ) from error
    except Exception as error:
        if not is_damage(error):
            raise
        raise StoreError(
            f"{name}: the metadata of the zarr array at {place} cannot be used ({said(error)}). Write its zarr.json again, or "
            "restore it from a copy; where it names a codec that is not known here, install the library that has it."
        ) from error


def as_source(data: Any, name: str) -> Source:
    """The source for anything that `fit` takes."""
    return as_sources({name: data})[0]


def as_sources(named: Mapping[str, Any]) -> list[Source]:
    """Sources of arrays that are read together: what dask arrays among them have in common is computed once."""
    lazy = {name: _as_array(data) for name, data in named.items() if is_dask(data)}
    apart = dict(zip(lazy, set_apart(list(lazy.values()), lazy), strict=True))
    return [
        DaskSource(apart[name], name, lazy[name]) if name in lazy else _source(data, name)
        for name, data in named.items()
    ]


def _as_array(data: Any) -> Any:
    return data if hasattr(data, "chunks") else data.to_dask_array(lengths=True)  # a data frame or series


def _source(data: Any, name: str) -> Source:
    if isinstance(data, (str, os.PathLike)):
        data = open_zarr(data, name)
    return ZarrSource(data, name) if isinstance(data, zarr.Array) else ArraySource(np.asarray(data), name)


def rows_at_once(source: Source, limit: int) -> int:
    """How many rows to hold at once where rows are needed whole: those of a chunk, unless that takes much more than a chunk does.

    Chunks of a few columns may be so tall that all columns of their rows would be most of the array. Then each is decoded many
    times, for some of its rows each time.
    """
    row = max(source.shape[1], 1) * 8
    most = max(limit, 2 * source.chunk_bytes)
    return source.chunk_rows if source.chunk_rows * row <= most else max(most // row, 1)


def check_chunks(source: Source, policy: str) -> str | None:
    """What to warn of if chunks of a zarr source were never written; raises MissingChunkError if the policy is "error"."""
    if policy not in MISSING_CHUNKS:
        raise DataError(
            f"missing_chunks is {policy!r}, expected one of {', '.join(map(repr, MISSING_CHUNKS))}."
        )
    if not isinstance(source, ZarrSource) or policy == "ignore":
        return None
    missing = source.missing_chunks()
    if not missing:
        return None
    named = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
    message = (
        f"{len(missing)} chunks of {source.place} are not in the store and read as the fill value "
        f"{source.array.fill_value}: {named}."
    )
    if policy == "error":
        raise MissingChunkError(f"{message} Write them, or allow this with missing_chunks='warn'.")
    return f"{message} Chunks that are all fill value are left out by zarr's default; if these are not, write them again."


def warn_of_missing(source: Source, policy: str, stacklevel: int) -> None:
    """Warns as the caller's caller, so many calls up, of chunks that were never written, or raises, as the policy says."""
    message = check_chunks(source, policy)
    warn_all([message] if message else [], stacklevel + 1)


def warn_all(messages: list[str], stacklevel: int) -> None:
    """Warns as the caller's caller, so many calls up."""
    for message in messages:
        warnings.warn(message, UserWarning, stacklevel=stacklevel)
