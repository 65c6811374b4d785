"""The files of an array: as its store lists them, or, where it does not list, asked for one by one."""

from __future__ import annotations

import asyncio
import logging
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import zarr
from zarr.abc.store import Store
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, ObjectStore, ZipStore

from distboost.errors import StoreError
from distboost.io.remote import is_absent, is_forbidden, is_unlisted
from distboost.io.retry import quoted, retried, retried_async
from distboost.io.storage import forget_listings, listed

AT_ONCE = 64  # requests for single files
log = logging.getLogger("distboost")


class Entry(NamedTuple):
    """An entry of a listing: a file or an object."""

    size: int | None
    version: str  # changes when the file is written again; "" if unknown


# What file systems of fsspec call the version of a file: a checksum, or else the time when it was written.
_VERSIONS = (
    "ETag", "etag", "Content-MD5", "Digest", "LastModified", "Last-Modified", "last_modified", "mtime", "last_write_time",
    "modificationTime", "updated",
)  # fmt: skip


def innermost(store: Any) -> Any:
    """Return the store inside all wrappers."""
    while hasattr(store, "_store"):
        store = store._store
    return store


def archive_of(store: Store) -> Path | None:
    """Return the path of a ZIP archive. One that zarr 3.4 reads from an open file has none."""
    return store.path if isinstance(store, ZipStore) else None


def entries(array: zarr.Array[Any], place: str) -> dict[str, Entry] | None:
    """Return all files of an array, by their names within it; None if its store does not list them.

    `place` is the name of the array in messages.
    """
    store = innermost(array.store)
    if not lists(array.store):
        return None
    try:
        found = retried(lambda: _listing(array, store), place, "listed")
    except Exception as error:
        if not is_unlisted(error):
            raise
        return None
    # Some file systems take a folder that they cannot list for an empty one.
    return found if found.keys() & {"zarr.json", ".zarray"} else None


def asked(array: zarr.Array[Any], keys: Iterable[str], place: str) -> dict[str, Entry]:
    """Return those of the files with these names within the array that exist, by one question for each.

    Raises
    ------
    StoreError
        If there is none that this process may read, and some that it may not.
    """
    store, prefix = innermost(array.store), f"{array.path}/" if array.path else ""
    log.info("%s cannot be listed: asking for each of its chunks", place)
    found: dict[str, Entry] = {}
    forbidden: list[Exception] = []
    left = iter(keys)

    async def ask() -> None:
        for key in left:
            try:
                found[key] = await retried_async(
                    partial(_file, store, prefix + key), f"chunk {key} of {place}"
                )
            except FileNotFoundError:
                pass
            except Exception as error:
                if not is_forbidden(error):
                    raise
                forbidden[:] = [error]

    async def ask_all() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(ask())

    try:
        sync(ask_all())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors.exceptions[0].__cause__
    if forbidden and not found:
        raise StoreError(
            f"no chunk of {place} can be read: {quoted(forbidden[0])}.",
            remedy="Grant this process the right to read them. If there are none, since all values are the fill value, write "
            "them with zarr's option write_empty_chunks.",
            where=place,
        )
    return found


def lists(store: Store) -> bool:
    """Whether a store can list its files, for those who may."""
    return store.supports_listing and not _is_web(innermost(store))


def _is_web(store: Store) -> bool:
    """Whether a store is a web server: if it has a page with links at all, nobody knows whether these are all files."""
    if isinstance(store, ObjectStore):
        return type(store.store).__name__ == "HTTPStore"
    return isinstance(store, FsspecStore) and any(
        {"http", "https"} & {*_protocols(files)} for files in _layers(store.fs)
    )


def _protocols(files: Any) -> tuple[str, ...]:
    return (files.protocol,) if isinstance(files.protocol, str) else tuple(files.protocol)


def _layers(files: Any) -> Iterator[Any]:
    """Yield a file system of fsspec and those that it wraps."""
    while files is not None:
        yield files
        files = getattr(files, "sync_fs", None) or getattr(files, "fs", None)


def _listing(array: zarr.Array[Any], store: Store) -> dict[str, Entry]:
    path = array.path
    prefix = f"{path}/" if path else ""
    if isinstance(store, LocalStore):
        return dict(_local_entries(os.path.join(store.root, path), ""))
    archive = archive_of(store)
    if archive is not None:
        with zipfile.ZipFile(archive) as file:
            members = [member for member in file.infolist() if member.filename.startswith(prefix)]
        return {m.filename.removeprefix(prefix): Entry(m.file_size, str(m.CRC)) for m in members}
    if isinstance(store, FsspecStore):
        forget_listings(store)
        folder = "/".join(filter(None, (store.path.rstrip("/"), path)))
        found = sync(store.fs._find(folder, detail=True))
        inside = f"{folder.strip('/')}/"  # some file systems return absolute paths, others not
        return {name.strip("/").removeprefix(inside): _entry(info) for name, info in found.items()}
    return {key.removeprefix(prefix): Entry(None, "") for key in listed(array.store, prefix)}


def _local_entries(folder: str, prefix: str) -> Iterable[tuple[str, Entry]]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir():
                yield from _local_entries(entry.path, f"{prefix}{entry.name}/")
            else:
                status = entry.stat()
                yield f"{prefix}{entry.name}", Entry(status.st_size, str(status.st_mtime_ns))


async def _file(store: Store, key: str) -> Entry:
    """Return a file of a store; raise FileNotFoundError if there is none."""
    if isinstance(store, FsspecStore):
        try:
            return _entry(await store.fs._info("/".join(filter(None, (store.path.rstrip("/"), key)))))
        except FileNotFoundError as error:
            # fsspec says "not found" of a web server that answers anything but "found".
            if error.__cause__ is None or is_absent(error):
                raise
            raise error.__cause__ from None
    if type(store).getsize is not Store.getsize:  # which reads the whole file
        return Entry(await store.getsize(key), "")
    if not await store.exists(key):
        raise FileNotFoundError(key)
    return Entry(None, "")


def _entry(info: Mapping[str, Any]) -> Entry:
    return Entry(info.get("size"), next((str(info[name]) for name in _VERSIONS if info.get(name)), ""))


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
