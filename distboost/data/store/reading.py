"""Read blocks of a binned store, many times each."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import zarr

from distboost.data.inventory import chunk_key, found_and_expected, has_chunk
from distboost.data.memory import empty
from distboost.data.store.layout import StoredBlocks, checksum
from distboost.errors import BinnedStoreError
from distboost.io.retry import What, is_damage, quoted, retried, text_of

T = TypeVar("T")


class Stamp(NamedTuple):
    """The identity of a file's content. It differs if the file was changed or replaced."""

    inode: int
    size: int
    modified: int  # ns
    changed: int  # ns: changes even if the time of modification is set back

    @classmethod
    def of(cls, file: Path | int) -> Stamp:
        found = os.stat(file)
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class IntactFile(NamedTuple):
    """A file whose content this process has found intact: it begins with an array."""

    path: str
    stamp: Stamp


_intact: dict[tuple[str, str, int], IntactFile] = {}  # by store, array and block


def read_blocks(blocks: StoredBlocks, name: str, numbers: range, expected: list[int]) -> np.ndarray:
    """Read successive blocks of an array, (rows, ...), and compare each with its checksum in `expected`.

    Raises
    ------
    BinnedStoreError
        If the block is damaged or missing.
    StoreError
        If it cannot be read.
    """
    array, rows = blocks.arrays[name], blocks.rows_of(numbers)
    content = empty((rows.stop - rows.start, *array.shape[1:]), array.dtype)
    for block, wanted in zip(numbers, expected, strict=True):
        span = blocks.span(block)
        own = content[span.start - rows.start : span.stop - rows.start]
        intact(
            partial(_read, blocks, name, block, wanted, own),
            partial(blocks.place, name, block),
            partial(_what_is_there, array, block),
        )
    return content


def _what_is_there(array: zarr.Array[Any], block: int) -> str:
    return f" ({found_and_expected(array, block)})"


def intact(read: Callable[[], T], what: What, more: Callable[[], str] = str) -> T:
    """Return read(). If that part of a store is damaged or missing, raise BinnedStoreError, with `more()` in the message."""
    try:
        return retried(read, what, reread=True)
    except Exception as error:
        if not (is_damage(error) or isinstance(error, FileNotFoundError)):
            raise
        raise BinnedStoreError(
            f"{text_of(what)}: content is not what was written: {quoted(error)}{more()}.",
            remedy="Bin the data again, after removing this store.",
        ) from error


def _read(blocks: StoredBlocks, name: str, block: int, expected: int, content: np.ndarray) -> None:
    """Read a block into `content`; raise errors as they are.

    A chunk on a local disk is verified once. As long as its file does not change, it is then read directly into the array: the
    store does not compress it, and zarr's copies and checks would take longer than a histogram of few classes.
    """
    known = _intact.get((blocks.url, name, block))
    if known is not None and _read_intact(*known, content):
        return
    is_plain = len(blocks.arrays[name].compressors) == 1  # the checksum
    path = local_file(blocks.arrays[name], block) if is_plain else None
    stamp = None if path is None else Stamp.of(path)
    content[:] = blocks.read(name, block)
    found = checksum(content)
    if found != expected:
        if not has_chunk(blocks.arrays[name], block):
            raise FileNotFoundError("it is not there")
        raise ValueError(f"its checksum is {found:08x}, not {expected:08x}")
    if path is not None and stamp is not None:
        _intact[blocks.url, name, block] = IntactFile(os.fspath(path), stamp)


def local_file(array: zarr.Array[Any], block: int) -> Path | None:
    """Return the file of a block of an array; None unless it is on a local disk."""
    store = array.store
    return store.root / chunk_key(array, block) if isinstance(store, zarr.storage.LocalStore) else None


def _read_intact(path: str, stamp: Stamp, content: np.ndarray) -> bool:
    """Read the array at the beginning of a file into `content`; return False if the file has changed."""
    file = os.open(path, os.O_RDONLY)  # a file object would make further calls
    try:
        n = os.preadv(file, [content.reshape(-1).view(np.uint8).data], 0) if Stamp.of(file) == stamp else 0
    finally:
        os.close(file)
    return n == content.nbytes
