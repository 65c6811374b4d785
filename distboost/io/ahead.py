"""Map parts of files into memory, and have the system load files into its cache before they are read."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from math import prod
from pathlib import Path

import numpy as np

STEP = (
    2**17
)  # bytes: the system may ignore what a single request asks for beyond its own limit, which is 128 KiB by default


def load_ahead(file: int, offset: int, n_bytes: int) -> None:
    """Ask the system to load a part of an open file, without waiting for it. Nothing happens if the system cannot do this."""
    if not hasattr(os, "posix_fadvise"):
        return
    with suppress(OSError):  # whoever reads the file will get the error
        for first in range(offset, offset + n_bytes, STEP):
            os.posix_fadvise(file, first, min(STEP, offset + n_bytes - first), os.POSIX_FADV_WILLNEED)


def load_file_ahead(path: Path) -> None:
    """Ask the system to load a file."""
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        load_ahead(file.fileno(), 0, os.fstat(file.fileno()).st_size)


def n_loaded() -> int:
    """Return how many units of 512 bytes this process has read from disks so far. Reads from the system's cache do not count.

    0 where the system does not tell, as on Windows.
    """
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock


_POPULATE_READ = 22  # since Linux 5.14; Python has no name for it


def _madvise() -> Callable[..., int] | None:
    """Return the C function `madvise` if it can load pages. Python's own keeps the GIL while the system maps them."""
    if sys.platform != "linux":
        return None
    function = ctypes.CDLL(None).madvise
    function.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    page = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.uint8)
    madvise: Callable[..., int] = function
    return None if madvise(page.ctypes.data, page.nbytes, _POPULATE_READ) else madvise


_MADVISE = _madvise()


def mapped(file: int, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Map an array in an open file into memory, which takes a quarter of the time of reading a copy from the system's cache.

    Parameters
    ----------
    file : int
        The descriptor.
    offset : int
        Bytes from the start of the file, a multiple of the size of a page.
    shape : tuple of int
    dtype : numpy.dtype

    Returns
    -------
    array : ndarray or None
        Changes to it do not reach the file. None if the system cannot map the array or cannot load it from the disk. Then read
        it, which raises the error if there is one.
    """
    n_bytes = prod(shape) * dtype.itemsize
    if _MADVISE is None or n_bytes == 0:
        return None
    try:
        memory = mmap.mmap(file, n_bytes, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)
    except (OSError, ValueError):  # ValueError: the file ends before the array
        return None
    array = np.frombuffer(memory, dtype).reshape(shape)
    # Load all pages now. If a page could not be loaded later, a signal would end the process.
    failed = _MADVISE(array.ctypes.data, n_bytes, _POPULATE_READ)
    return None if failed else array
