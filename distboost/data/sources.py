"""Sources of rows: arrays in memory, zarr arrays and dask arrays, read a span of rows at a time.

A source makes *parts*: small values that travel to a worker, which loads their rows. The part of an array in memory is the slice
itself, that of a zarr array is its address, and that of a dask array is computed by the cluster.
"""

from __future__ import annotations

import itertools
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import zarr
from zarr.errors import NodeTypeValidationError

from distboost.data.axes import Axis
from distboost.data.graphs import part_of, set_apart
from distboost.data.inventory import Inventory, innermost, with_absolute_path
from distboost.data.parts import ZarrPart, axes_of, load
from distboost.errors import DataError, StoreError
from distboost.io.retry import is_damage, quoted, retried
from distboost.io.storage import is_binned, is_in_memory, open_store


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
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    place: str
    axes: tuple[Axis, ...]
    chunk_bytes: int = 0
    read_copies: int = 4
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
        """Return what a worker needs to load the rows start .. stop - 1 of all columns, or of columns[0] .. columns[1] - 1."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read the rows start .. stop - 1, (stop - start, ...), in this thread."""
        return load(self.part(start, stop))


class ArraySource(Source):
    """An array in this process's memory."""

    def __init__(self, array: np.ndarray, place: str):
        self.array, self.place = array, place
        self.shape, self.dtype = array.shape, array.dtype
        self.axes = tuple(Axis(length, 1) for length in array.shape)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> np.ndarray:
        return self.array[start:stop] if columns is None else self.array[start:stop, slice(*columns)]


class ZarrSource(Source):
    """A zarr array. Each process that reads a part compares the chunks with the listing made by this one."""

    def __init__(self, array: zarr.Array[Any], name: str):
        self.array = with_absolute_path(array)
        self.place = f"{name} ({_url(self.array)})"
        self.shape, self.dtype = array.shape, np.dtype(array.dtype)
        self.axes = axes_of(array)
        self.chunk_bytes = _chunk_bytes(self)
        if not (array.shards or array.filters) and len(array.compressors) < 2:
            self.read_copies = 3  # decoded in one step
        # A store in memory exists in this process only: its parts are loaded before they are sent.
        self.is_near = is_in_memory(innermost(array.store))
        self.copies = int(self.is_near)

    @cached_property
    def inventory(self) -> Inventory:
        """The store's listing of the array, made at the first access."""
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
        """Return the keys of the chunks that were never written: zarr silently reads them as the fill value."""
        return self.inventory.missing()

    def is_unchanged(self) -> bool:
        """Whether a new listing of the store equals the first one."""
        return Inventory(self.array, self.place).digest == self.inventory.digest


def _url(array: zarr.Array[Any]) -> str:
    store = array.store
    if isinstance(store, zarr.storage.FsspecStore):
        return str(store.fs.unstrip_protocol("/".join(filter(None, (store.path, array.path)))))
    return str(array.store_path)


class DaskSource(Source):
    """A dask array. Its rows are computed where they are needed, never all at once.

    Parameters
    ----------
    array : dask.array.Array
    place : str
    given : dask.array.Array
        The array from which `array` was made. This reference makes Dask keep the chunks that were persisted.

    Attributes
    ----------
    token : str
        The same for equal arrays.
    """

    copies = 3  # its chunks, their slices, and the result

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
    """Whether data is not in memory: a zarr array, a path or URL of one, or a dask collection."""
    return isinstance(data, (str, os.PathLike, zarr.Array)) or is_dask(data)


def is_dask(data: Any) -> bool:
    """Whether `data` is a Dask collection."""
    return callable(getattr(data, "__dask_graph__", None))


class BinnedStoreGivenError(DataError):
    """A binned store was given in place of an array."""


def open_zarr(url: str | os.PathLike[str], name: str) -> zarr.Array[Any]:
    """Open the zarr array at a path or URL."""
    place = repr(os.fspath(url))
    try:
        store = open_store(url)
        return retried(
            lambda: zarr.open_array(store, mode="r"), f"{name}: the metadata of the zarr array at {place}"
        )
    except (FileNotFoundError, NodeTypeValidationError) as error:
        if is_binned(store):
            raise BinnedStoreGivenError(
                f"{name}: {place} is a binned store, which has its own labels and weights. To train on it, give it alone, "
                "without y and sample_weight. For anything else, give the array that it was made from."
            ) from error
        raise DataError(
            f"{name}: there is no zarr array at {place} ({quoted(error)}). "
            "Give the path or URL of an array, such as data.zarr/x."
        ) from error
    except Exception as error:
        if not is_damage(error):
            raise
        raise StoreError(
            f"{name}: the metadata of the zarr array at {place} cannot be used ({quoted(error)}). Write its zarr.json again or "
            "restore it from a copy. If it names a codec that is unknown here, install the library that has the codec."
        ) from error


def as_source(data: Any, name: str) -> Source:
    """Return the source for anything that `fit` accepts."""
    return as_sources({name: data})[0]


def as_sources(named: Mapping[str, Any]) -> list[Source]:
    """Return sources of arrays that are read together. Tasks that dask arrays among them share are computed once."""
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
    """Return how many rows to hold at once if all columns are needed: those of a chunk, unless they take far more memory.

    Chunks of few columns may be so tall that all columns of their rows are most of the array. Such chunks are decoded many times,
    each time for some of their rows.
    """
    row = max(source.shape[1], 1) * 8
    most = max(limit, 2 * source.chunk_bytes)
    return source.chunk_rows if source.chunk_rows * row <= most else max(most // row, 1)
