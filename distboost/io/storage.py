"""zarr stores on local disks and in object stores: durable writes, one writer at a time, and full disks."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import zarr
from fsspec.implementations.memory import MemoryFileSystem
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.core.group import GroupMetadata
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, MemoryStore, StorePath

from distboost.errors import DataError, DistboostError, StoreError
from distboost.io.files import force_names, write_durably
from distboost.io.filesystems import filesystem_at, options_for, protocol_needed
from distboost.io.options import storage_options
from distboost.io.remote import may_be_absent
from distboost.io.retry import quoted, retried, retried_async

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Attributes of the group of a binned store: its manifest once it is complete; until then, its data and parameters.
MANIFEST, UNFINISHED = "distboost-binned", "distboost-unfinished"

_PARTIAL = ".partial"


class DurableStore(LocalStore):
    """Local files that are complete or do not exist, even after a power failure.

    Each file is written under a temporary name, forced to disk and renamed. Then its folder and each new folder above it are
    forced to disk. If any step fails, all are repeated: data that one `fsync` failed to write may be lost even if the next one
    succeeds.

    Parameters
    ----------
    root : Path
    read_only : bool
    must_exist : bool, default=False
        Never make the folder: a process without access to it would write where no other process reads. This is set in every
        unpickled store, since that may be in another process.
    """

    def __init__(self, root: Path, *, read_only: bool = False, must_exist: bool = False):
        super().__init__(root, read_only=read_only)
        self._must_exist = must_exist

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.root, self.read_only)

    async def _open(self, **options: Any) -> None:
        self._check_there()
        await super()._open(**options)

    def _check_there(self) -> None:
        """Raise StoreError if the folder must exist and does not."""
        if self._must_exist and not self.read_only and not self.root.is_dir():
            raise StoreError(
                f"{self.root} is not visible to {here()}.",
                remedy="If that is a worker on another machine, pass a path or URL that all workers share.",
            )

    async def set(self, key: str, value: Buffer) -> None:
        """Write a value under a key."""
        await asyncio.to_thread(self.set_sync, key, value)

    def set_sync(self, key: str, value: Buffer) -> None:
        """Write a value under a key."""
        self._check_writable()
        self._check_there()
        path = self.root / key
        retried(lambda: self._write(path, value), str(path), "written")

    def _write(self, path: Path, value: Buffer) -> None:
        new = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, value.as_buffer_like(), _PARTIAL)
        for folder in new:
            force_names(folder.parent)


def _unpickled(root: Path, read_only: bool) -> DurableStore:
    return DurableStore(root, read_only=read_only, must_exist=True)


_METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


class RemoteStore(FsspecStore):
    """Objects, each written whole; again if that fails.

    zarr looks for the metadata of both of its formats. A server that does not list may refuse those that do not exist: they are
    taken for missing.

    Attributes
    ----------
    refusal : Exception or None
        The last refusal of metadata.
    """

    refusal: Exception | None = None

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return a value, or None if there is none."""
        try:
            return await super().get(key, prototype, byte_range)
        except Exception as error:
            if key.rpartition("/")[2] not in _METADATA or not may_be_absent(error):
                raise
            self.refusal = error
            return None

    async def set(self, key: str, value: Buffer, byte_range: tuple[int, int] | None = None) -> None:
        """Write a value under a key."""
        write = super().set
        await retried_async(lambda: write(key, value, byte_range), f"{self.path}/{key}", "written")


def local_path(url: str | os.PathLike[str]) -> Path | None:
    """Return the path of a local file or folder; None for a remote URL."""
    url = os.fspath(url)
    if url.startswith("file://"):
        return Path(url2pathname(urlsplit(url).path))
    return None if "://" in url or "::" in url else Path(url)


def exists(url: str, options: Mapping[str, Any] | None = None) -> bool:
    """Whether a file or folder at a path or URL is visible to this process, which may need options of another one."""
    with storage_options(options):
        filesystem, path = filesystem_at(url)
        return bool(retried(lambda: filesystem.exists(path), url))


def open_store(url: str | os.PathLike[str], read_only: bool = True, must_exist: bool = False) -> Store:
    """Open the zarr store at a path or URL. With `must_exist`, a missing folder is not made."""
    path = local_path(url)
    if path is not None:  # absolute: another process may have another working directory
        return DurableStore(path.absolute(), read_only=read_only, must_exist=must_exist)
    with protocol_needed(url):
        return RemoteStore.from_url(
            os.fspath(url), storage_options=dict(options_for(url)), read_only=read_only
        )


def is_in_memory(store: Store) -> bool:
    """Whether a store is in the memory of this process, where no other process can read it."""
    if isinstance(store, FsspecStore):
        return isinstance(getattr(store.fs, "sync_fs", store.fs), MemoryFileSystem)
    return isinstance(store, MemoryStore)


def is_binned(store: Store) -> bool:
    """Whether there is a binned store, complete or not."""
    group = found_group(store)
    return group is not None and (MANIFEST in group.attrs or UNFINISHED in group.attrs)


def found_group(store: Store | StorePath | None) -> zarr.Group | None:
    """Return the zarr group of a store, or at a place in it; None if there is something else, or nothing."""
    if store is None:
        return None
    try:
        return zarr.open_group(store, mode="r")
    except Exception:  # noqa: BLE001 (whatever is there, it is no group)
        return None


def write_array(url: str, values: np.ndarray) -> None:
    """Write an array in one chunk to a path or URL. Raise StoreError if its local folder does not exist."""
    folder, _, name = url.rpartition("/")
    array = zarr.create_array(
        open_store(folder, read_only=False, must_exist=True), name=name, shape=values.shape, chunks=values.shape,
        dtype=values.dtype, compressors=None, config={"write_empty_chunks": True},
    )  # fmt: skip
    array[:] = values


def read_array(url: str) -> np.ndarray:
    """Read an array that `write_array` wrote. Raise StoreError if it does not exist."""
    folder, _, name = url.rpartition("/")
    try:
        array = zarr.open_array(open_store(folder, must_exist=True), path=name, mode="r")
        key = array.metadata.encode_chunk_key((0,) * array.ndim)
        if not sync(array.store.exists(f"{name}/{key}")):  # otherwise zarr would read the fill value
            raise FileNotFoundError(f"it has no chunk {key}")
    except FileNotFoundError as error:
        raise StoreError(
            f"{url}, which was written before, is not visible to {here()}: {quoted(error)}.",
            remedy="Set a place that all workers share: ``scratch=...``",
            where=url,
        ) from error
    return retried(lambda: np.asarray(array[:]), url)


def here() -> str:
    """Describe this process, for messages."""
    return f"process {os.getpid()} on host {socket.gethostname()}"


def listed(store: Store, prefix: str) -> set[str]:
    """Return the keys that begin with a prefix."""
    forget_listings(store)
    return retried(lambda: sync(_listed(store, prefix)), f"{store}/{prefix}", "listed")


async def _listed(store: Store, prefix: str) -> set[str]:
    return {key async for key in store.list_prefix(prefix)}


def forget_listings(store: Store) -> None:
    """Drop the listings that fsspec caches: other processes may have written since."""
    if isinstance(store, FsspecStore):
        store.fs.invalidate_cache()


@contextmanager
def only_writer(url: str) -> Iterator[None]:
    """Locks a local folder against other writers on this machine. The lock ends with the process at the latest."""
    path = local_path(url)
    if path is None or fcntl is None:
        yield
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise DataError(
            f"cannot make the folder {url!r} ({error.strerror}).",
            remedy="Choose another place, or remove the file that is in the way.",
            where=url,
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):  # a file system without locks
            yield
            return
        raise DataError(
            f"another process is writing to {url!r} now.",
            remedy="Wait for it, or choose another place.",
            where=url,
        ) from error
    try:
        yield
    finally:
        os.close(descriptor)


def create_group(store: Store, url: str, attributes: dict[str, Any]) -> None:
    """Write the metadata of a group; raise DataError if another process does the same, on object stores that can detect this."""
    metadata = GroupMetadata(attributes=attributes, zarr_format=3)
    (content,) = metadata.to_buffer_dict(default_buffer_prototype()).values()
    if not isinstance(store, FsspecStore):
        sync(store.set("zarr.json", content))
        return
    path = f"{store.path}/zarr.json"
    try:
        sync(store.fs._pipe_file(path, content.to_bytes(), mode="create"))
    except (NotImplementedError, TypeError):
        sync(store.set("zarr.json", content))
    except FileExistsError as error:
        raise DataError(
            f"another process has begun to write to {url!r}.",
            remedy="Wait for it, or choose another place.",
            where=url,
        ) from error


def remove_all(store: Store, keep: Collection[str] = ()) -> None:
    """Remove all keys of a store except those to `keep`. A local folder itself stays, since it may be locked."""
    if not isinstance(store, LocalStore):
        for key in listed(store, "") - set(keep):
            sync(store.delete(key))
        return
    for entry in store.root.iterdir():
        if entry.name in keep:
            continue
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def is_partial(key: str) -> bool:
    """Whether a key is that of an unfinished file, whose writer was killed."""
    return key.endswith(_PARTIAL)


def remove_partial_files(url: str) -> None:
    """Remove the unfinished files of killed processes."""
    path = local_path(url)
    for partial in [] if path is None else path.rglob(f"*{_PARTIAL}"):
        partial.unlink(missing_ok=True)


def check_space(url: str, needed: int) -> None:
    """Raise StoreError unless a local disk has room for a store of `needed` bytes, including those already written."""
    path = local_path(url)
    if path is None:
        return
    present = sum(f.stat().st_blocks * 512 for f in path.rglob("*") if f.is_file()) if path.is_dir() else 0
    if _free(path) < needed - present:
        raise _no_room(url, needed)


@contextmanager
def writing(url: str, needed: int) -> Iterator[None]:
    """Convert errors in writing a store to StoreErrors. That of a full disk names the `needed` bytes of the whole store."""
    try:
        yield
    except Exception as error:
        if is_full(error):
            raise _no_room(url, needed) from error
        if isinstance(error, DistboostError) or not isinstance(error, OSError):
            raise
        raise StoreError(
            f"the store {url!r} cannot be written: {quoted(error)}.",
            remedy="Correct the cause and repeat the command, which continues with what has been written; or choose another "
            "place.",
            where=url,
        ) from error


def _no_room(url: str, needed: int) -> StoreError:
    path = local_path(url)
    free = "" if path is None else f", and {_free(path)} are free there"
    return StoreError(
        f"no room for the store {url!r}: it takes about {needed} bytes in total{free}.",
        remedy="Free some space and repeat the command, which continues with what has been written; or choose another place.",
        where=url,
    )


def _free(path: Path) -> int:
    while not path.exists():
        path = path.absolute().parent
    return shutil.disk_usage(path).free


def is_full(error: BaseException | None) -> bool:
    """Whether a full disk has caused an error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if isinstance(error, BaseExceptionGroup) and any(map(is_full, error.exceptions)):
            return True
        error = error.__cause__ or error.__context__
    return False
