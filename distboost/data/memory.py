"""Return freed memory to the system, or reuse it for the next array of its size.

glibc answers large requests with `mmap`, whose memory goes back to the system as soon as it is freed. What counts as large is a
threshold that starts at 128 KiB and grows by itself, up to 32 MiB, with the arrays that a process frees. Smaller requests stay in
the heap of their thread.

`mallopt` can set the threshold but neither read it nor let it grow again. So we respect and restore what the environment of the
process sets (Dask sets the trim threshold of the workers that its nannies start). Where the environment sets nothing, we restore
the value that glibc itself settles at once a process has freed an array of 32 MiB. Only a threshold that a program has set by its
own call of `mallopt` is lost, because nothing can read it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import prod
from typing import Any, NamedTuple

import numpy as np

# glibc's names and figures, from malloc.h and malloc.c
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_DYNAMIC = 2**25  # bytes; the threshold does not grow beyond
LARGE = 2**20  # bytes: arrays of at least this size go back to the system

HUGE_PAGE = 2**21  # bytes


def _glibc(name: str) -> Callable[..., Any]:
    """Return a function of glibc, or one that does nothing if the system has another C library."""
    try:
        found: Callable[..., Any] = getattr(ctypes.CDLL(None), name)
        return found
    except (AttributeError, OSError, TypeError):
        return lambda *arguments: None


_mallopt, _malloc_trim = _glibc("mallopt"), _glibc("malloc_trim")


class MallocThresholds(NamedTuple):
    """The calls of `mallopt` before large arrays go back to the system, and afterwards: a (parameter, value) each."""

    during: tuple[tuple[int, int], ...]
    afterwards: tuple[tuple[int, int], ...]


def thresholds(environment: Mapping[str, str]) -> MallocThresholds:
    """Return the calls of `mallopt` in a process that was started with this environment.

    >>> thresholds({"MALLOC_MMAP_THRESHOLD_": "4194304"})
    Thresholds(during=((-3, 1048576),), afterwards=((-3, 4194304),))
    """
    own, trim = (_setting(environment, name) for name in ("mmap_threshold", "trim_threshold"))
    if own is None:
        afterwards = [(_MMAP_THRESHOLD, _LARGEST_DYNAMIC)]
        if trim is None:
            afterwards.append((_TRIM_THRESHOLD, 2 * _LARGEST_DYNAMIC))
        return MallocThresholds(((_MMAP_THRESHOLD, LARGE),), tuple(afterwards))
    if own <= LARGE:
        return MallocThresholds((), ())
    return MallocThresholds(((_MMAP_THRESHOLD, LARGE),), ((_MMAP_THRESHOLD, own),))


def _setting(environment: Mapping[str, str], name: str) -> int | None:
    """Return the value of a parameter of glibc's `malloc` in an environment, in bytes; None if it is not set."""
    value = environment.get(f"MALLOC_{name.upper()}_")
    for tunable in environment.get("GLIBC_TUNABLES", "").split(":"):
        if tunable.startswith(f"glibc.malloc.{name}="):
            value = tunable.partition("=")[2]
    try:
        return None if value is None else int(value, 0)
    except ValueError:
        return None


def _initial_environment() -> Mapping[str, str]:
    """Return the environment that this process was started with, which is the one that glibc has read."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = os.fsdecode(file.read()).split("\0")
    except OSError:
        return os.environ
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


_thresholds = thresholds(_initial_environment())
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
            _set(_thresholds.during)
    try:
        yield
    finally:
        with _lock:
            _n_active -= 1
            if _n_active == 0:
                _spare.clear()
                _set(_thresholds.afterwards)


def _set(parameters: tuple[tuple[int, int], ...]) -> None:
    for parameter, value in parameters:
        _mallopt(parameter, value)


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


def trim_heap() -> None:
    """Return memory that was freed earlier to the system: reading and binning leave much that training does not need."""
    _malloc_trim(0)
