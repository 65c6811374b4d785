"""Publish files atomically: each exists completely or not at all, even after a power failure."""

from __future__ import annotations

import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from distboost.errors import StoreError
from distboost.io.filesystems import filesystem_at
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
