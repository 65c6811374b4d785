"""Memory that is freed goes back to the system."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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
                _set(_MMAP_THRESHOLD, _LARGEST_DYNAMIC)
                _set(_TRIM_THRESHOLD, 2 * _LARGEST_DYNAMIC)


def give_back() -> None:
    """Returns to the system what was freed already: reading and binning leave a lot, of which the rounds have no use."""
    _trim(0)
