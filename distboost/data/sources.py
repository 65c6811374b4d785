"""Sources of rows: arrays and data frames in memory, zarr arrays, dask arrays and data frames, read a span of rows at a time.

A source makes *parts*: small values that travel to a worker, which loads their rows. The part of an array in memory is the slice
itself, that of a zarr array is its address, and that of a dask array is computed by the cluster.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import zarr
from dask.base import is_dask_collection
from zarr.errors import NodeTypeValidationError

from distboost.data.axes import Axis
from distboost.data.dask_part import DaskPart, no_dense_array, part_of
from distboost.data.dates import refuse_date_types
from distboost.data.frames import FrameSource, dask_numbers, is_frame
from distboost.data.graphs import Keeper, keeper_of, set_apart
from distboost.data.inventory import Inventory, with_absolute_path
from distboost.data.kinds import is_dask_frame, is_instance
from distboost.data.listing import innermost, lists
from distboost.data.masked import unmasked
from distboost.data.names import without_names
from distboost.data.packing import ATTRIBUTES, packing_of, stored_attributes
from distboost.data.parts import ZarrPart, axes_of
from distboost.data.source import Source
from distboost.errors import DataError, StoreError
from distboost.io.remote import is_unlisted
from distboost.io.retry import is_damage, quoted, retried
from distboost.io.storage import found_group, is_binned, is_in_memory, local_path, open_store


class ArraySource(Source):
    """An array in this process's memory."""

    is_near = True

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
        self.place = f"``{name}`` ({_url(self.array)})"
        self.undecoded: str | None = None  # why the attributes of a packed array cannot be used
        try:
            self.packing = packing_of(stored_attributes(array), np.dtype(array.dtype))
        except ValueError as error:
            self.packing, self.undecoded = None, str(error)
        self.shape = array.shape
        self.dtype = np.dtype(array.dtype) if self.packing is None else self.packing.dtype
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
        sizes = self.inventory.sizes[tuple(cells)]
        part = ZarrPart(self.array, self.place, start, stop, columns, sizes, self.packing)
        return part.load() if self.is_near else part

    def missing_chunks(self) -> list[str]:
        """Return the keys of the chunks that were never written: zarr silently reads them as the fill value."""
        return self.inventory.missing()

    def packing_warning(self) -> str | None:
        """Return a warning if the array may be packed in a way that is unknown here: its stored numbers are read as they are."""
        if self.undecoded is None:
            return None
        found = [name for name in ATTRIBUTES if name in self.array.attrs]
        return (
            f"{self.place} has the attributes {', '.join(found)} of a packed array, but cannot be decoded ({self.undecoded}): "
            "its stored numbers are read as they are. Correct these attributes, or remove them."
        )

    def listing_warning(self) -> str | None:
        """Return a warning if the store does not list the array: then less is checked."""
        if self.inventory.is_listed:
            return None
        return (
            f"{self.place} cannot be listed: each of its {self.inventory.sizes.size} chunks was asked for by itself. Chunks that "
            "are absent, and those that you may not read, cannot be told apart, and a chunk that is written again meanwhile, in "
            "the same size, is not noticed. ``missing_chunks='ignore'`` hides this warning."
        )

    def is_unchanged(self) -> bool:
        """Whether a new listing of the store equals the first one. Without a listing, only reads notice changes."""
        if not self.inventory.is_listed:
            return True
        return Inventory(self.array, self.place).listing == self.inventory.listing


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
    keeper : Keeper or None
        What keeps these chunks, or those of an array that is read with it.
    of_features : bool

    Attributes
    ----------
    token : str
        The same for equal arrays.
    """

    copies = 3  # its chunks, their slices, and the result

    def __init__(self, array: Any, place: str, given: Any, keeper: Keeper | None, of_features: bool):
        self.array, self.place, self.keeper, self.of_features = array, place, keeper, of_features
        self._given, self.token = given, given.name
        self.shape, self.dtype = array.shape, array.dtype
        self.axes = tuple(_cut_axis(chunks) for chunks in array.chunks)
        self.chunk_bytes = _chunk_bytes(self)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> DaskPart:
        rest = [(0, length) for length in self.shape[1:]] if columns is None else [columns]
        return part_of(self.array, [(start, stop), *rest], self.place, self.of_features, self.keeper)


def _cut_axis(chunks: tuple[int, ...]) -> Axis:
    cuts = tuple(sorted({0, *itertools.accumulate(chunks)}))
    return Axis(cuts[-1], max(max(chunks, default=1), 1), cuts)


def _chunk_bytes(source: Source) -> int:
    return math.prod(min(axis.chunk, axis.length) for axis in source.axes) * source.dtype.itemsize


def is_lazy(data: Any) -> bool:
    """Whether data is not in memory: something of zarr, a path or URL, or a dask collection, also within an array of xarray."""
    return isinstance(data, (str, os.PathLike, zarr.Array, zarr.Group, ZarrSource)) or is_dask(data)


def is_dask(data: Any) -> bool:
    """Whether `data` is a Dask collection."""
    return bool(is_dask_collection(data))


def opened(data: Any, name: str) -> Any:
    """Return the zarr array at a path or URL; masked arrays with NaN in place of what is masked; anything else as it is.

    Raise DataError for a group or a set of arrays.
    """
    if isinstance(data, (str, os.PathLike)):
        return open_zarr(data, name)
    if isinstance(data, zarr.Group):
        raise DataError(f"{name}: {described_group(data)}")
    if is_instance(data, "xarray", "Dataset"):
        raise DataError(
            f"{name} is a Dataset of xarray, with the variables {', '.join(map(str, data.data_vars))}. Pass one of them, such as "
            f"dataset[{next(iter(data.data_vars), 'x')!r}], or join them: dataset.to_dataarray('feature').transpose()."
        )
    if is_instance(data, "polars", "LazyFrame"):
        raise DataError(f"{name} is a LazyFrame of polars, which has no rows yet. Pass {name}.collect().")
    return unmasked(data)


def described_group(group: zarr.Group) -> str:
    """Say that a group is no array, which arrays it has, and how to name one."""
    place = str(group.store_path).removeprefix("file://").rstrip("/")
    try:
        arrays, are_all = sorted(group.arrays(), key=lambda item: item[0]), lists(group.store)
    except Exception as error:
        if not is_unlisted(error):
            raise
        arrays, are_all = [], False
    if not arrays and not are_all:
        return f"{place!r} is a zarr group whose arrays cannot be listed. Pass the path or URL of an array."
    if not arrays:
        return f"{place!r} is a zarr group without arrays. Pass the path or URL of an array."
    listed = ", ".join(f"{name!r} {array.shape} {array.dtype}" for name, array in arrays[:20])
    more = ", ..." if len(arrays) > 20 else ""
    first = arrays[0][0]
    return (
        f"{place!r} is a zarr group, not an array. Its arrays are: {listed}{more}. Pass one of them: "
        f"'{place}/{first}'``group|, or group[{first!r}]``."
    )


class BinnedStoreGivenError(DataError):
    """A binned store was given in place of an array."""


def open_zarr(url: str | os.PathLike[str], name: str) -> zarr.Array[Any]:
    """Open the zarr array at a path or URL."""
    name, place = f"``{name}``", repr(os.fspath(url))
    try:
        store = open_store(url)
        return retried(
            lambda: zarr.open_array(store, mode="r"), f"{name}: the metadata of the zarr array at {place}"
        )
    except (FileNotFoundError, NodeTypeValidationError) as error:
        refusal = getattr(store, "refusal", None)
        if is_binned(store):
            raise BinnedStoreGivenError(
                f"{name}: {place} is a binned store, which has its own labels and weights. To train on it, pass it alone, "
                "without ``y`` and ``sample_weight``. For anything else, pass the array that it was made from."
            ) from error
        group = found_group(store)
        if group is not None:
            raise DataError(f"{name}: {described_group(group)}") from error
        if refusal is not None:
            raise StoreError(
                f"{name}: the metadata of a zarr array at {place} cannot be read: {quoted(refusal)}. Grant this process the "
                "right to read it, or correct the URL."
            ) from refusal
        reason, more = quoted(error), ""
        path = local_path(url)
        if path is not None and path.is_dir():
            reason = "a folder without an array's zarr.json"
        elif path is not None and path.is_file():
            reason, more = "a file; an array is a folder", " A table is given as a data frame, in Python."
        raise DataError(
            f"{name}: there is no zarr array at {place} ({reason}). Pass the path or URL of an array, such as data.zarr/x.{more}"
        ) from error
    except Exception as error:
        if not is_damage(error):
            raise
        raise StoreError(
            f"{name}: the metadata of the zarr array at {place} cannot be used ({quoted(error)}). Write its zarr.json again or "
            "restore it from a copy. If it names a codec that is unknown here, install the library that has the codec."
        ) from error


def as_source(data: Any, name: str) -> Source:
    """Return the source for labels, weights or any other array that `fit` accepts."""
    return as_sources({name: data})[0]


def as_features(data: Any, name: str) -> Source:
    """Return the source for features: anything that `fit` accepts as X."""
    return as_sources({name: data}, name)[0]


def as_sources(named: Mapping[str, Any], features: str | None = None) -> list[Source]:
    """Return sources of arrays that are read together, of which `features` has the features.

    Tasks that dask arrays among them share are computed once.
    """
    given = {name: without_names(opened(data, name)) for name, data in named.items()}
    lazy = {name: collection(data, name, name == features) for name, data in given.items() if is_dask(data)}
    keeper = keeper_of(lazy)
    apart = dict(zip(lazy, set_apart(list(lazy.values()), lazy, keeper), strict=True))
    found = {
        name: DaskSource(apart[name], name, lazy[name], keeper, name == features)
        if name in lazy
        else _source(data, name, name == features)
        for name, data in given.items()
    }
    for name, source in found.items():
        if not source.shape and name == features:
            raise no_rows(name, named[name])
        if not source.shape:
            raise DataError(f"{name} is a single value. Pass one value per row.")
    if features is not None:
        refuse_date_types(found[features].dtype, found[features].place)
    return list(found.values())


def no_rows(name: str, data: Any) -> DataError:
    """Return the error for features that are no array."""
    return DataError(
        f"{name} is of type {type(data).__name__}. Pass an array of numbers, a data frame, a zarr or Dask array, or the path or "
        "URL of a zarr array."
    )


def collection(data: Any, name: str, is_features: bool) -> Any:
    """Return the dask array of a dask collection. The sizes of its chunks may be unknown."""
    if is_instance(data, "dask.array", "Array"):
        if not isinstance(data._meta, np.ndarray):
            raise no_dense_array(f"each chunk of {name}", type(data._meta))
        return data
    if is_dask_frame(data) and is_features:
        return dask_numbers(data, name)
    if is_features or not hasattr(type(data), "to_dask_array"):
        raise no_rows(name, data)
    return data.to_dask_array()


def _source(data: Any, name: str, is_features: bool) -> Source:
    if isinstance(data, ZarrSource):  # it has been opened, and perhaps listed
        return data
    if isinstance(data, zarr.Array):
        return ZarrSource(data, name)
    if is_features and is_frame(data):
        frame = FrameSource(data, name)
        return frame if frame.block is None else ArraySource(frame.block, name)
    return ArraySource(np.asarray(data), name)


def rows_at_once(source: Source, limit: int) -> int:
    """Return how many rows to hold at once if all columns are needed: those of a chunk, unless they take far more memory.

    Chunks of few columns may be so tall that all columns of their rows are most of the array. Such chunks are decoded many times,
    each time for some of their rows.
    """
    row = max(source.shape[1], 1) * 8
    most = max(limit, 2 * source.chunk_bytes)
    return source.chunk_rows if source.chunk_rows * row <= most else max(most // row, 1)
