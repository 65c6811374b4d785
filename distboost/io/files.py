"""Files of arrays under a JSON header: model files, and the segments of checkpoints.

The format is safetensors (arrays only); its one metadata entry is the header. No content is executed, and every size is checked
against the size of the file before memory is allocated.

On a local disk, only regular files are read and replaced: a pipe would never end, and a device must not be replaced.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from fsspec.implementations.local import LocalFileSystem

from distboost.errors import DistboostError, ModelFormatError, StoreError
from distboost.io.filesystems import filesystem_at
from distboost.io.options import url_of
from distboost.io.retry import retried

# The suffix of files that are being written. A process that is killed leaves such files behind.
PARTIAL = ".part"


def publish(url: str, content: bytes) -> None:
    """Write a file at a path or URL. Readers see the old file or the new one, never a part."""
    filesystem, path = filesystem_at(url)
    if isinstance(filesystem, LocalFileSystem):
        check_folder(path)
        write_durably(path, content)
    else:  # an object store shows only complete objects
        retried(lambda: filesystem.pipe_file(path, content), url, "written")


def write_durably(path: str | os.PathLike[str], content: Any, suffix: str = PARTIAL) -> None:
    """Write a local file under a temporary name, force it to disk, rename it, and force the new name to disk.

    Parameters
    ----------
    path : path-like
        The path of the file. Its folder must exist.
    content : bytes-like
    suffix : str, default=".part"
        The suffix of the temporary name.
    """
    path = Path(path)
    beside = path.with_name(f"{path.name}.{uuid.uuid4().hex}{suffix}")
    try:
        with open(beside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    force_names(path.parent)


def force_names(folder: str | os.PathLike[str]) -> None:
    """Force the names in a folder to disk."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_folder(path: str) -> None:
    """Raise an error early, before hours of work, if a file cannot be written at a path, or if a URL's package is missing."""
    if "://" in path:
        filesystem_at(path)
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
        raise StoreError(
            f"cannot write {path}: the folder {folder} does not exist or is read-only.", where=path
        )
    check_replaceable(path)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise StoreError if there is anything but a regular file at a local path. A symbolic link is itself replaced."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise StoreError(
            f"cannot write {os.fspath(path)}: it is {file_kind(mode)}, which is not replaced.",
            remedy="Pass the path of a file.",
            where=path,
        )


def file_kind(mode: int) -> str:
    """Describe, for messages, what a mode of `os.stat` stands for if it is no regular file."""
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


# The format versions that this library reads, each with the entries of the header of which a file needs it.
VERSIONS: dict[int, frozenset[str]] = {
    1: frozenset(),
    2: frozenset({"calibration", "evaluation"}),
    3: frozenset({"covers", "categories"}),
}


def write_file(url: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a file. Equal headers and arrays give equal bytes."""
    publish(url_of(url, "url"), encoded(header, arrays))


def read_file(url: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the header and the arrays of a file; raise ModelFormatError if it is not such a file."""
    return decoded(read(url), url)


def encoded(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return the bytes of a file with this header and these arrays."""
    header = {"format": "distboost", "version": version_of(header), **header}
    header["checksum"] = _checksum(header, arrays)
    return safetensors.numpy.save(
        {name: np.ascontiguousarray(a) for name, a in arrays.items()},
        metadata={"distboost": json.dumps(header, sort_keys=True)},
    )


def decoded(content: bytes, url: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays in the bytes of the file at `url`."""
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
            f"{where} was altered: its checksum does not match.",
            remedy="Copy the file again from where it was saved.",
        )
    return header, arrays


def version_of(header: dict[str, Any]) -> int:
    """Return the format version that a file with this header needs."""
    return max(version for version, entries in VERSIONS.items() if version == 1 or entries & header.keys())


def check_version(version: Any, where: str) -> None:
    """Raise ModelFormatError unless this library can read this format version."""
    if type(version) is not int or version not in VERSIONS:
        raise ModelFormatError(
            f"{where} has format version {version!r:.100}, but this library reads versions 1 to {max(VERSIONS)}.",
            remedy="Install the version of distboost that wrote it.",
            value=version,
        )


def _checksum(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def read(url: str, most: int | None = None, kind: type[DistboostError] = ModelFormatError) -> bytes:
    """Read a file; if it has more than `most` bytes, only the first `most` + 1.

    Raise IsADirectoryError if a local path is that of a folder, and an error of type `kind` if it is no regular file either.
    """
    filesystem, path = filesystem_at(url)
    end = None if most is None else most + 1
    if isinstance(filesystem, LocalFileSystem):
        return read_local(path, end, kind)
    content: bytes = retried(lambda: filesystem.cat_file(path, end=end), url)
    return content


def read_local(
    path: str | os.PathLike[str],
    end: int | None = None,
    kind: type[DistboostError] = ModelFormatError,
    *,
    start: int = 0,
) -> bytes:
    """Read a local file, or its bytes from `start` to `end`."""
    # Before opening: opening a device or a pipe may already have effects.
    _check_regular(os.stat(path).st_mode, path, kind)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)  # the path may lead to another file by now
        _check_regular(found.st_mode, path, kind)
        file.seek(start)
        return file.read(max((found.st_size if end is None else min(end, found.st_size)) - start, 0))


def _check_regular(mode: int, path: str | os.PathLike[str], kind: type[DistboostError]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise kind(
            f"{os.fspath(path)} is {file_kind(mode)}, not a regular file.",
            remedy="Pass the path of a file.",
            where=path,
        )
