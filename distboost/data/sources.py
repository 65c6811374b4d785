"""Where rows come from: an array in memory, a zarr array, or a dask array, read a span of rows at a time.

A source hands out *parts*: small values that travel to a worker and are loaded there. The part of an array in memory is the
slice itself, that of a zarr array is its address, that of a dask array is computed by the cluster.
"""

from __future__ import annotations

import itertools
import os
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from zarr.core.sync import sync

from distboost.errors import DataError, MissingChunkError, StoreError


class Source(ABC):
    """Rows of an array of one or two dimensions.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    place : str
        What to call the array in a message.
    chunk_rows : int
        Reads that begin and end at multiples of this are the cheapest.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    place: str
    chunk_rows: int = 1

    @property
    def n_rows(self) -> int:
        return self.shape[0]

    @abstractmethod
    def part(self, start: int, stop: int) -> Any:
        """What a worker needs to load rows start .. stop - 1."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows start .. stop - 1, here and now."""
        return load(self.part(start, stop))


@dataclass(frozen=True)
class ZarrPart:
    """The address of some rows of a zarr array."""

    array: zarr.Array
    place: str
    start: int
    stop: int

    def load(self) -> np.ndarray:
        try:
            return np.asarray(self.array[self.start : self.stop])
        except Exception as error:
            raise StoreError(
                f"rows {self.start} to {self.stop - 1} of {self.place} cannot be read: {type(error).__name__}: {error}. "
                "Write the damaged chunk again, or restore it from a copy."
            ) from error


def load(part: Any) -> np.ndarray:
    """The rows of a part. What is computed by a cluster has been computed before it gets here, or is computed now."""
    if isinstance(part, ZarrPart):
        return part.load()
    if hasattr(part, "compute"):
        part = part.compute()
    return np.asarray(part)


class ArraySource(Source):
    """An array in this process's memory."""

    def __init__(self, array: np.ndarray, place: str):
        self.array, self.place = array, place
        self.shape, self.dtype = array.shape, array.dtype

    def part(self, start: int, stop: int) -> np.ndarray:
        return self.array[start:stop]


class ZarrSource(Source):
    """A zarr array, read by whoever needs it."""

    def __init__(self, array: zarr.Array, name: str):
        self.array = array
        self.place = f"{name} ({array.store_path})"
        self.shape, self.dtype = array.shape, np.dtype(array.dtype)
        self.chunk_rows = (array.shards or array.chunks)[0]

    def part(self, start: int, stop: int) -> Any:
        part = ZarrPart(self.array, self.place, start, stop)
        # A store in memory exists in this process only.
        return part.load() if isinstance(self.array.store, zarr.storage.MemoryStore) else part

    def missing_chunks(self) -> list[str]:
        """Keys of the chunks that were never written: zarr reads them as the fill value without a word."""
        array = self.array
        size = array.shards or array.chunks
        grid = itertools.product(
            *(range(-(-length // chunk)) for length, chunk in zip(array.shape, size, strict=True))
        )
        expected = [array.metadata.encode_chunk_key(position) for position in grid]
        prefix = f"{array.path}/" if array.path else ""
        present = sync(_listed(array.store, prefix))
        return [key for key in expected if prefix + key not in present]


async def _listed(store: Any, prefix: str) -> set[str]:
    return {key async for key in store.list_prefix(prefix)}


class DaskSource(Source):
    """A dask array: its rows are computed where they are needed, never all at once."""

    def __init__(self, array: Any, place: str):
        if any(np.isnan(length) for length in array.shape):
            array = array.compute_chunk_sizes()
        self.array, self.place = array, place
        self.shape, self.dtype = array.shape, array.dtype
        self.chunk_rows = max(max(array.chunks[0], default=1), 1)

    def part(self, start: int, stop: int) -> Any:
        return self.array[start:stop]


def is_lazy(data: Any) -> bool:
    """Whether the data should not be loaded whole: a zarr array, a path or URL of one, or a dask collection."""
    return isinstance(data, (str, os.PathLike, zarr.Array)) or is_dask(data)


def is_dask(data: Any) -> bool:
    return callable(getattr(data, "__dask_graph__", None))


def open_zarr(url: str | os.PathLike, name: str) -> zarr.Array:
    """The zarr array at a path or URL."""
    try:
        return zarr.open_array(os.fspath(url), mode="r")
    except Exception as error:
        raise DataError(
            f"{name}: there is no zarr array at {os.fspath(url)!r} ({type(error).__name__}: {error}). "
            "Give the path or URL of an array, such as data.zarr/x."
        ) from error


def as_source(data: Any, name: str) -> Source:
    """The source for anything that `fit` takes."""
    if isinstance(data, (str, os.PathLike)):
        data = open_zarr(data, name)
    if isinstance(data, zarr.Array):
        return ZarrSource(data, name)
    if is_dask(data):
        if not hasattr(data, "chunks"):  # a dask dataframe or series
            data = data.to_dask_array(lengths=True)
        return DaskSource(data, name)
    return ArraySource(np.asarray(data), name)


def check_chunks(source: Source, policy: str) -> str | None:
    """What to warn of if chunks of a zarr source were never written; raises MissingChunkError if the policy is "error"."""
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


def warn_all(messages: list[str], stacklevel: int) -> None:
    """Warns as the caller's caller, so many calls up."""
    for message in messages:
        warnings.warn(message, UserWarning, stacklevel=stacklevel)
