"""Telling whether arrays are those that a store was made from, without reading them where that can be avoided."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, MemoryStore

from distboost.data.retry import retried
from distboost.data.sources import ArraySource, DaskSource, Source, ZarrSource, pieces
from distboost.data.storage import listed
from distboost.errors import StoreError

_ROWS = 2**16  # that are added to a checksum at once


def fingerprint(sources: Iterable[Source | None]) -> str:
    """A digest of arrays: equal ones have one, and an array that was written again has another.

    Of zarr arrays in files: names, sizes and times of the files; in object stores: names, sizes and ETags; of arrays in
    memory: a checksum; of dask arrays: their tokens.
    """
    digest = hashlib.sha256()
    for source in sources:
        digest.update(repr(None if source is None else _described(source)).encode())
    return digest.hexdigest()


def is_file_based(source: Source | None) -> bool:
    """Whether the fingerprint of a source is taken from a listing, and so cheap to take again."""
    return isinstance(source, ZarrSource) and not isinstance(_innermost(source.array.store), MemoryStore)


def _described(source: Source) -> tuple:
    kind = (source.shape, str(source.dtype))
    if isinstance(source, DaskSource):
        return *kind, source.token
    if is_file_based(source):
        assert isinstance(source, ZarrSource)
        store, path = _innermost(source.array.store), source.array.path
        try:
            return *kind, retried(lambda: _files(store, path), source.place, "listed")
        except FileNotFoundError as error:
            raise StoreError(
                f"{source.place} is not there, or no longer: {error}. Restore it, and bin the data again."
            ) from error
    assert isinstance(source, ArraySource | ZarrSource)
    return *kind, _checksum(source)


def _innermost(store: Any) -> Any:
    """The store that others are wrapped around."""
    while hasattr(store, "_store"):
        store = store._store
    return store


def _files(store: Any, path: str) -> list[tuple]:
    if isinstance(store, LocalStore):
        return sorted(_local_files(os.path.join(store.root, path), ""))
    if isinstance(store, FsspecStore):
        store.fs.invalidate_cache()
        found = sync(store.fs._find("/".join(filter(None, (store.path, path))), detail=True))
        return sorted((name, info.get("size"), _version(info)) for name, info in found.items())
    return sorted((key, sync(store.getsize(key))) for key in listed(store, f"{path}/" if path else ""))


def _local_files(folder: str, prefix: str) -> Iterable[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _local_files(entry.path, f"{prefix}{entry.name}/")
            else:
                status = entry.stat()
                yield f"{prefix}{entry.name}", status.st_size, status.st_mtime_ns


def _version(info: dict[str, Any]) -> str:
    """What changes when an object is written again."""
    return next((str(info[name]) for name in ("ETag", "etag", "LastModified", "mtime") if info.get(name)), "")


def _checksum(source: ArraySource | ZarrSource) -> int:
    value = 0
    for start in range(0, source.n_rows, _ROWS):
        for _, values in pieces(source.part(start, min(start + _ROWS, source.n_rows))):
            value = zlib.crc32(_bytes_of(values), value)
    return value


def _bytes_of(values: np.ndarray) -> Any:
    if values.dtype.kind not in "biufcmMSU" or not values.size:
        return repr(values.tolist()).encode()
    return np.ascontiguousarray(values).view(np.uint8)
