"""Reading the blocks of a store, again and again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import zarr

from distboost.data.layout import StoredBlocks, checksum, chunk_key
from distboost.data.memory import empty


class Stamp(NamedTuple):
    """What tells that a file is not what it was."""

    inode: int
    size: int
    changed: int  # ns

    @classmethod
    def of(cls, file: Path | int) -> Stamp:
        found = os.stat(file)
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


# Files of this process's stores as they were when their content was found to be what was written.
_intact: dict[Path, Stamp] = {}


def read_block(blocks: StoredBlocks, name: str, block: int, expected: int) -> np.ndarray:
    """A block of an array, whose checksum is `expected`; raises ValueError if that is not what is there.

    A chunk on a local disk is checked once. As long as its file is not touched, it is then read straight into its place: the
    store compresses nothing, and zarr's copies and checks would take longer than a histogram of few classes.
    """
    path = _file(blocks.arrays[name], block)
    if path is not None and path in _intact:
        content = _read_intact(blocks, name, block, path)
        if content is not None:
            return content
    stamp = None if path is None else Stamp.of(path)
    content = blocks.read(name, block)
    if checksum(content) != expected:
        raise ValueError("a chunk is missing or altered")
    if path is not None and stamp is not None:
        _intact[path] = stamp
    return content


def _file(array: zarr.Array, block: int) -> Path | None:
    store = array.store
    return store.root / chunk_key(array, block) if isinstance(store, zarr.storage.LocalStore) else None


def _read_intact(blocks: StoredBlocks, name: str, block: int, path: Path) -> np.ndarray | None:
    """The numbers at the head of the chunk's file; None if it is another file than it was."""
    array, span = blocks.arrays[name], blocks.span(block)
    content = empty((span.stop - span.start, *array.shape[1:]), array.dtype)
    with open(path, "rb", buffering=0) as file:
        whole = Stamp.of(file.fileno()) == _intact[path]
        n = file.readinto(content.reshape(-1).view(np.uint8)) if whole else 0  # type: ignore[arg-type]
    return content if n == content.nbytes else None
