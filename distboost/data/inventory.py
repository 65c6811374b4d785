"""The listing of an array in its store, and reads that are compared with it.

zarr silently reads a missing chunk as the fill value. On a worker that cannot access the client's files, an array would consist
of fill values. Therefore the client lists each array once, and each process that reads a chunk compares it with the listing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import zarr
from zarr.abc.store import ByteRequest, Store
from zarr.core.array import AsyncArray
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.core.sync import sync
from zarr.storage import LocalStore, StorePath, WrapperStore, ZipStore

from distboost.data.listing import archive_of, asked, entries
from distboost.errors import StoreError
from distboost.io.remote import may_be_absent
from distboost.io.retry import retried
from distboost.io.storage import here


def chunk_key(array: zarr.Array[Any], *position: int) -> str:
    """The key of a chunk in its store; positions that are left out are 0."""
    key = array.metadata.encode_chunk_key(position + (0,) * (array.ndim - len(position)))
    return f"{array.path}/{key}" if array.path else key


def has_chunk(array: zarr.Array[Any], *position: int) -> bool:
    """Whether a chunk exists: zarr reads a missing one as the fill value."""
    return sync(array.store.exists(chunk_key(array, *position)))


def delete_chunk(array: zarr.Array[Any], *position: int) -> None:
    """Delete a chunk."""
    sync(array.store.delete(chunk_key(array, *position)))


def stored_bytes(array: zarr.Array[Any], *position: int) -> int:
    """Return the size of a chunk in its store in bytes; raise FileNotFoundError if the chunk does not exist."""
    return sync(array.store.getsize(chunk_key(array, *position)))


def found_and_expected(array: zarr.Array[Any], *position: int) -> str:
    """Describe the size of a damaged chunk, and the content that it should have."""
    size = "of unknown size"
    with suppress(Exception):  # this only adds to the message of another error
        size = f"{stored_bytes(array, *position)} bytes"
    return f"found {size}, expected {array.shards or array.chunks} of {array.dtype}, encoded"


# In place of the size of a chunk. ABSENT: it was never written; UNKNOWN: it exists, but the listing has no sizes.
ABSENT, UNKNOWN = -1, -2


class UnlikeListingError(Exception):
    """A chunk differs from the listing: it is missing, new, or of another size."""


class Inventory:
    """The chunks of an array: those that its store lists, or has if asked for each.

    Parameters
    ----------
    array : zarr.Array
    place : str
        The name of the array in messages.

    Attributes
    ----------
    sizes : ndarray of the shape of the grid of chunks, int64
        Bytes of each chunk (of each shard if the array is sharded), or ABSENT, or UNKNOWN.
    is_listed : bool
        Whether the store lists the array. If not, each chunk was asked for.
    listing : str
        SHA-256 of the names of all files, and of their sizes and versions as far as the store tells them.
    digest : str or None
        The same, if it changes whenever a file is written. None if the store does not tell the sizes or the versions.
    """

    def __init__(self, array: zarr.Array[Any], place: str):
        size = array.shards or array.chunks
        self._encode = array.metadata.encode_chunk_key
        self.sizes = np.full(
            [-(-length // chunk) for length, chunk in zip(array.shape, size, strict=True)], ABSENT, np.int64
        )
        found = entries(array, place)
        self.is_listed = found is not None
        if found is None:
            found = asked(array, map(self._encode, np.ndindex(self.sizes.shape)), place)
        for position in np.ndindex(self.sizes.shape):
            entry = found.get(self._encode(position))
            if entry is not None:
                self.sizes[position] = UNKNOWN if entry.size is None else entry.size
        self.listing = hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()
        told = all(entry.size is not None and entry.version for entry in found.values())
        self.digest = self.listing if told else None

    def missing(self) -> list[str]:
        """Keys of the chunks that were never written."""
        return [self._encode(tuple(position)) for position in np.argwhere(self.sizes == ABSENT).tolist()]


class Probe(NamedTuple):
    """The address of a chunk that every process must be able to read."""

    store: Store
    key: str
    place: str

    @classmethod
    def of(cls, array: zarr.Array[Any], position: tuple[int, ...], place: str) -> Probe:
        return cls(array.store, chunk_key(array, *position), place)

    def check(self) -> None:
        """Raise StoreError unless the chunk exists."""
        try:
            there = retried(lambda: sync(self.store.exists(self.key)), self.place)
        except FileNotFoundError:  # the folder is missing too
            there = False
        if not there:
            raise StoreError(
                f"chunk {self.key} of {self.place} is not visible to {here()}.",
                remedy="Pass a path or URL at which all workers find the same data.",
                where=self.place,
            )


def over(array: zarr.Array[Any], store: Store) -> zarr.Array[Any]:
    """Return the same array, read through another store."""
    inner = array.async_array
    return zarr.Array(AsyncArray(inner.metadata, StorePath(store, array.path), inner.config))


def with_absolute_path(array: zarr.Array[Any]) -> zarr.Array[Any]:
    """Return the array at an absolute path, since a worker may have another working directory."""
    store = _absolute(array.store)
    return array if store is array.store else over(array, store)


def _absolute(store: Store) -> Store:
    if isinstance(store, WrapperStore):
        inner = _absolute(store._store)
        return store if inner is store._store else store._with_store(inner)
    if isinstance(store, LocalStore) and not store.root.is_absolute():
        return LocalStore(store.root.absolute(), read_only=store.read_only)
    archive = archive_of(store)
    if archive is not None and not archive.is_absolute():
        return sync(ZipStore.open(archive.absolute(), mode="r"))  # its reads need an open one
    return store


def held_to(array: zarr.Array[Any], first: tuple[int, ...], sizes: np.ndarray) -> zarr.Array[Any]:
    """Return the array with checked reads, which raise UnlikeListingError for chunks that differ from `sizes`.

    `sizes` covers a part of the grid of chunks that begins at the position `first`.
    """
    encode, prefix = array.metadata.encode_chunk_key, f"{array.path}/" if array.path else ""
    expected = {
        prefix + encode(tuple(a + i for a, i in zip(first, position, strict=True))): int(sizes[position])
        for position in np.ndindex(sizes.shape)
    }
    return over(array, _HeldToListing(array.store, expected))


class _HeldToListing(WrapperStore[Store]):
    """A store whose chunks must match a listing."""

    def __init__(self, store: Store, expected: Mapping[str, int]):
        super().__init__(store)
        self._expected = expected

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        try:
            found = await self._store.get(key, prototype, byte_range)
        except FileNotFoundError:  # the folder is missing too
            found = None
        except Exception as error:
            if self._expected.get(key) != ABSENT or not may_be_absent(error):
                raise
            found = None  # refused in place of "not found", where listing is forbidden
        if key in self._expected:
            self._compare(self._expected[key], found, whole=byte_range is None)
        return found

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

    def _compare(self, size: int, found: Buffer | None, whole: bool) -> None:
        if found is None:
            if size != ABSENT:
                raise UnlikeListingError(
                    f"was in the store when it was listed, but is not visible to {here()}"
                )
        elif size == ABSENT:
            raise UnlikeListingError(f"was not in the store when it was listed, but is visible to {here()}")
        elif not len(found):
            raise ValueError("it is empty")  # zarr treats an empty shard as one that was never written
        elif whole and size != UNKNOWN and len(found) != size:
            raise UnlikeListingError(
                f"had {size} bytes when the store was listed, but has {len(found)} for {here()}"
            )
