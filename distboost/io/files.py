"""Files of arrays under a JSON header: model files, and the segments of checkpoints.

safetensors (arrays only) whose one metadata entry is the header. Nothing in it is run, and every size is checked against the
file's own before anything is made of it.

On a local disk only regular files are read and replaced. A pipe would never end, and a device is nothing to be replaced.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import uuid
from contextlib import suppress
from typing import Any

import fsspec
import numpy as np
import safetensors
import safetensors.numpy
from fsspec.implementations.local import LocalFileSystem

from distboost.errors import ModelFormatError, StoreError

FORMAT_VERSION = 1
PARTIAL = ".part"


def write_file(url: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Writes a file: the same header and arrays give the same bytes."""
    publish(url, encoded(header, arrays))


def read_file(url: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file; raises ModelFormatError for anything else."""
    return decoded(read(url), url)


def encoded(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """The file of a header and arrays."""
    header = {"format": "distboost", "version": FORMAT_VERSION, **header}
    header["checksum"] = _checksum(header, arrays)
    return safetensors.numpy.save(
        {name: np.ascontiguousarray(a) for name, a in arrays.items()},
        metadata={"distboost": json.dumps(header, sort_keys=True)},
    )


def decoded(content: bytes, url: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays in the bytes of the file at `url`."""
    where = f"{url} ({len(content)} bytes)"
    try:
        length = int.from_bytes(content[:8], "little")
        if len(content) < 8 or length > len(content) - 8:
            raise ValueError("its header is cut off")
        header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["distboost"])
        version = header["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFormatError(f"{where} is not a distboost model, or is truncated: {error}.") from error
    check_version(version, where)
    try:
        arrays = safetensors.numpy.load(content)
        checksum = header.pop("checksum", None)
        intact = checksum == _checksum(header, arrays)
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelFormatError(f"{where} is truncated or damaged: {error}.") from error
    if not intact:
        raise ModelFormatError(
            f"{where} was altered: its checksum does not match. Get it again from where it was saved."
        )
    return header, arrays


def check_version(version: Any, where: str) -> None:
    """Raises ModelFormatError unless this library reads what has this format version."""
    if version != FORMAT_VERSION:
        raise ModelFormatError(
            f"{where} has format version {version!r}; this library reads version {FORMAT_VERSION}. Install a newer distboost."
        )


def _checksum(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def read(url: str, most: int | None = None, kind: type[Exception] = ModelFormatError) -> bytes:
    """The bytes of a file as it is now; of one with more than `most` bytes, one more than that.

    Raises an error of this kind if something else is at a local path. A folder is an IsADirectoryError.
    """
    filesystem, path = fsspec.core.url_to_fs(url)
    end = None if most is None else most + 1
    if isinstance(filesystem, LocalFileSystem):
        return read_local(path, end, kind)
    return filesystem.cat_file(path, end=end)


def read_local(
    path: str | os.PathLike, end: int | None = None, kind: type[Exception] = ModelFormatError
) -> bytes:
    """The bytes of a local file, or the first `end` of them."""
    _check_regular(os.stat(path).st_mode, path, kind)  # to open a device or a pipe may do something already
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)  # it may be another one by now
        _check_regular(found.st_mode, path, kind)
        return file.read(found.st_size if end is None else min(end, found.st_size))


def _check_regular(mode: int, path: str | os.PathLike, kind: type[Exception]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise kind(
            f"{os.fspath(path)} is {_named(mode)}, not a file: it is not read. Give the path of a file."
        )


def _named(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def check_replaceable(path: str | os.PathLike) -> None:
    """Raises StoreError if a local path leads to anything but a file. A link to a file is replaced, what it leads to stays."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise StoreError(
            f"cannot write {os.fspath(path)}: it is {_named(mode)}, which is not replaced. Give the path of a file."
        )


def publish(url: str, content: bytes) -> None:
    """Writes a file: whoever reads sees the old one or the new one, never a part."""
    filesystem, path = fsspec.core.url_to_fs(url)
    if isinstance(filesystem, LocalFileSystem):
        check_replaceable(path)
        _publish(path, content)
    else:
        filesystem.pipe_file(path, content)  # an object store shows an object when it is whole


def _publish(path: str, content: bytes) -> None:
    """Writes a file beside its place, forces it to disk and renames it."""
    beside = f"{path}.{uuid.uuid4().hex}{PARTIAL}"
    try:
        with open(beside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    if os.name != "nt":  # a folder can't be opened there
        _force(os.path.dirname(path) or ".")


def _force(folder: str) -> None:
    """Forces the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
