"""Arrays in memory that is used again, or goes back to the system as soon as they are freed."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from typing import Any

import numpy as np

from distboost.process import LARGE, return_large_arrays

HUGE_PAGE = 2**21  # bytes


_lock = threading.Lock()
_n_active = 0  # `returned_when_freed` contexts
_spare: dict[int, list[np.ndarray]] = {}  # memory to use again, by bytes


@contextmanager
def returned_when_freed() -> Iterator[None]:
    """Return large arrays that any thread frees within this context to the system at once.

    zarr reads, decodes and copies in its own threads. For each of these, glibc would keep tens of megabytes of freed memory, more
    than the chunks themselves take.
    """
    global _n_active
    with _lock:
        _n_active += 1
        if _n_active == 1:
            return_large_arrays(True)
    try:
        yield
    finally:
        with _lock:
            _n_active -= 1
            if _n_active == 0:
                _spare.clear()
                return_large_arrays(False)


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an uninitialized array, in the memory of an earlier array of this size if there is any.

    Streamed blocks have few different sizes, and new memory costs a page fault for every 4 KiB.
    """
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if n_bytes < LARGE:
        return np.empty(shape, dtype)
    if not _n_active:
        return zeros(shape, dtype)
    try:
        memory = _spare[n_bytes].pop()
    except (KeyError, IndexError):
        memory = zeros((n_bytes,), np.uint8)
    lent: np.ndarray = np.asarray(_Lent(memory)).view(dtype).reshape(shape)
    return lent


def give_up(n_bytes: int) -> None:
    """Return the memory that `empty` would use for an array of this size to the system, as another array takes its place."""
    with suppress(KeyError, IndexError):
        _spare[n_bytes].pop()


def zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array of zeros, in huge pages as far as it fills them and the system has some.

    The rows of a node lie scattered over the block. With pages of 4 KiB, nearly each of them would lie in another page, and the
    look-up of its address would take as long as the addition of the row.
    """
    n = prod(shape)
    n_bytes = n * np.dtype(dtype).itemsize
    if n_bytes < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(shape, dtype)
    try:
        # Recent versions of Linux begin memory of whole huge pages at a multiple of their size. What is not used takes no memory.
        size = -(-n_bytes // HUGE_PAGE) * HUGE_PAGE
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        array = np.frombuffer(memory, dtype, n)
        first = -array.ctypes.data % HUGE_PAGE
        # A huge page that is filled in part would be taken as a whole.
        filled = (n_bytes - first) // HUGE_PAGE * HUGE_PAGE
        if filled > 0:
            memory.madvise(mmap.MADV_HUGEPAGE, first, filled)
    except OSError:  # the system has no huge pages, or no memory: then NumPy says so
        return np.zeros(shape, dtype)
    return array.reshape(shape)


class _Lent:
    """Memory that an array borrows. When nothing references the array any more, the next one may borrow it."""

    def __init__(self, memory: np.ndarray) -> None:
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        if _n_active:
            _spare.setdefault(self._memory.nbytes, []).append(self._memory)
