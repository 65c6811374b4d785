"""Files that are there whole or not at all, also after a power failure."""

from __future__ import annotations

import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from distboost.errors import StoreError

PARTIAL = ".part"  # ends the name of a file that is being written; a process that is killed leaves it


def publish(url: str, content: bytes) -> None:
    """Writes a file at a path or URL. A reader sees the old file or the new one, never a part."""
    filesystem, path = fsspec.core.url_to_fs(url)
    if isinstance(filesystem, LocalFileSystem):
        check_replaceable(path)
        write_durably(path, content)
    else:
        filesystem.pipe_file(path, content)  # an object store shows an object when it is whole


def write_durably(path: str | os.PathLike[str], content: Any, suffix: str = PARTIAL) -> None:
    """Writes a local file beside its place, forces it to disk, renames it, and forces the new name to disk.

    Parameters
    ----------
    path : path-like
        In a folder that exists.
    content : bytes-like
    suffix : str, default=".part"
        Ends the name of the file while it is written.
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
    """Forces the names in a folder to disk."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raises StoreError if a local path leads to anything but a file. Of a link to a file, the link is replaced."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise StoreError(
            f"cannot write {os.fspath(path)}: it is {file_kind(mode)}, which is not replaced. Give the path of a file."
        )


def file_kind(mode: int) -> str:
    """What a mode of `os.stat` calls something other than a file, in a message."""
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
