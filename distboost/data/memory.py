"""Memory that is freed goes back to the system, or to the next array of its size."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

# glibc's names and figures, from malloc.h and malloc.c
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_DYNAMIC = 2**25  # what its own threshold grows to
_OURS = 2**20


def _function(name: str) -> Callable[..., Any]:
    """A function of glibc, where there is one."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return lambda *arguments: None


_set, _trim = _function("mallopt"), _function("malloc_trim")
_lock = threading.Lock()
_users = 0
_spare: dict[int, list[np.ndarray]] = {}  # by size


@contextmanager
def returned_when_freed() -> Iterator[None]:
    """Large arrays that are freed meanwhile, in whatever thread, go back to the system at once.

    zarr reads, decodes and copies in threads of its own, and glibc would keep tens of megabytes that were freed for each of them:
    more than the chunks themselves take.
    """
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _set(_MMAP_THRESHOLD, _OURS)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _spare.clear()
                _set(_MMAP_THRESHOLD, _LARGEST_DYNAMIC)
                _set(_TRIM_THRESHOLD, 2 * _LARGEST_DYNAMIC)


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that may hold anything, where another of its size was, if one has gone.

    Blocks that come and go are of few sizes, and new memory costs a page fault for every 4 KiB.
    """
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if not _users or n_bytes < _OURS:
        return np.empty(shape, dtype)
    try:
        memory = _spare[n_bytes].pop()
    except (KeyError, IndexError):
        memory = np.empty(n_bytes, np.uint8)
    return np.asarray(_Lent(memory)).view(dtype).reshape(shape)


class _Lent:
    """Memory that an array has for as long as anybody has the array."""

    def __init__(self, memory: np.ndarray):
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self):
        if _users:
            _spare.setdefault(self._memory.nbytes, []).append(self._memory)


def give_back() -> None:
    """Returns to the system what was freed already: reading and binning leave a lot, of which the rounds have no use."""
    _trim(0)
