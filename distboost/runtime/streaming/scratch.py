"""A file on local disk for arrays that do not fit in memory."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import threading
from functools import partial
from typing import NamedTuple

import numpy as np

from distboost.data.memory import empty
from distboost.errors import StoreError
from distboost.io.ahead import load_ahead
from distboost.io.retry import retried
from distboost.io.storage import is_full
from distboost.io.units import megabytes


class Extent(NamedTuple):
    """The place of an array in the file.

    Attributes
    ----------
    offset : int
        Bytes from the start of the file.
    shape : tuple of int
    dtype : numpy.dtype
    """

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def n_bytes(self) -> int:
        """The size of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


class Scratch:
    """Arrays in one unnamed file, which the system removes when the process ends, however it ends.

    The file is read and written, not mapped: Dask would count mapped pages as memory of the worker.

    Parameters
    ----------
    directory : str
        On a local disk.
    needed : int, default=0
        Bytes that will be written at least.

    Raises
    ------
    StoreError
        If the file cannot be created, or `needed` bytes are not free.
    """

    def __init__(self, directory: str, needed: int = 0):
        self.directory, self._needed = directory, needed
        try:
            os.makedirs(directory, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115 (closed with the shard)
        except OSError as error:
            raise StoreError(
                f"cannot create a scratch file in {directory}, for rows that do not fit in memory ({error.strerror}). "
                "Give another directory: scratch=..."
            ) from error
        if shutil.disk_usage(directory).free < needed:
            self.close()
            raise _no_space(directory, needed)
        self._end = 0
        self._lock = threading.Lock()

    def write(self, array: np.ndarray, extent: Extent | None = None) -> Extent:
        """Write an array to its extent, or to a new one if it has none or its shape or dtype has changed; return the extent."""
        if extent is None or (extent.shape, extent.dtype) != (array.shape, array.dtype):
            extent = self._new(array)
        try:
            write = partial(self._write, _bytes(array), extent.offset)
            retried(write, partial(self._place, extent), "written")
        except StoreError as error:
            if not is_full(error):
                raise
            raise _no_space(self.directory, max(self._needed, self._end)) from error
        return extent

    def _write(self, left: memoryview, at: int) -> None:
        while len(left):
            written = os.pwrite(self._file.fileno(), left, at)
            left, at = left[written:], at + written

    def _place(self, extent: Extent) -> str:
        first = extent.offset
        return f"bytes {first} to {first + extent.n_bytes - 1} of the scratch file in {self.directory}"

    def _new(self, array: np.ndarray) -> Extent:
        with self._lock:
            extent = Extent(self._end, array.shape, array.dtype)
            self._end += -(-extent.n_bytes // 4096) * 4096
        return extent

    def read(self, extent: Extent) -> np.ndarray:
        """Read the array at an extent."""
        array = empty(extent.shape, extent.dtype)
        retried(partial(self._read, _bytes(array), extent.offset), partial(self._place, extent))
        return array

    def _read(self, left: memoryview, at: int) -> None:
        while len(left):
            n = os.preadv(self._file.fileno(), [left], at)
            if not n:
                raise StoreError(
                    f"the scratch file in {self.directory} ends at byte {at}: it was truncated. Train again, and make sure that "
                    "no other program writes there."
                )
            left, at = left[n:], at + n

    def read_ahead(self, extent: Extent) -> None:
        """Have the system load the array at an extent into its cache."""
        load_ahead(self._file.fileno(), extent.offset, extent.n_bytes)

    def close(self) -> None:
        """Close and so remove the file."""
        self._file.close()


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _no_space(directory: str, needed: int) -> StoreError:
    """Return the error for a disk that is full or would become so."""
    free = shutil.disk_usage(directory).free
    return StoreError(
        f"the disk of {directory} is full: rows that do not fit in memory need at least {megabytes(needed)} there, but "
        f"{megabytes(free)} are free. Free some space, give another directory (scratch=...), or raise memory_limit."
    )
