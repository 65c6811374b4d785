"""Files on local disk for arrays that do not fit in memory."""

from __future__ import annotations

import math
import mmap
import os
import shutil
import tempfile
import threading
from functools import partial
from itertools import cycle
from typing import IO, NamedTuple

import numpy as np

from distboost.data.memory import empty, give_up
from distboost.errors import StoreError
from distboost.io.ahead import load_ahead, mapped
from distboost.io.retry import retried
from distboost.io.storage import is_full
from distboost.io.text import megabytes

N_FILES = 8  # the system lets one thread at a time write to a file


class FileRegion(NamedTuple):
    """The place of an array.

    Attributes
    ----------
    file : int
        The number of the file.
    offset : int
        Bytes from the start of the file.
    shape : tuple of int
    dtype : numpy.dtype
    """

    file: int
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def n_bytes(self) -> int:
        """The size of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


class Scratch:
    """Arrays in unnamed files, which the system removes when the process ends, however it ends.

    Arrays are mapped only while a block is in use, because Dask counts mapped pages as memory of the worker.

    Parameters
    ----------
    directory : str
        On a local disk.
    needed : int, default=0
        Bytes that will be written at least.
    can_map : bool, default=False
        Whether there is room for mapped arrays beside the memory of earlier copies. If not, they take its place.

    Raises
    ------
    StoreError
        If the files cannot be created, or `needed` bytes are not free.
    """

    def __init__(self, directory: str, needed: int = 0, can_map: bool = False):
        self.directory, self._needed, self._can_map = directory, needed, can_map
        self._files: list[IO[bytes]] = []
        try:
            os.makedirs(directory, exist_ok=True)
            for _ in range(N_FILES):
                self._files.append(tempfile.TemporaryFile(dir=directory, buffering=0))  # noqa: SIM115 (closed with the shard)
        except OSError as error:
            self.close()
            raise StoreError(
                f"cannot create a scratch file in {directory}, for rows that do not fit in memory ({error.strerror}).",
                remedy="Set another directory: ``scratch=...``",
                where=directory,
            ) from error
        if shutil.disk_usage(directory).free < needed:
            self.close()
            raise _no_space(directory, needed)
        self._ends = [0] * N_FILES
        self._next = cycle(range(N_FILES))
        self._lock = threading.Lock()

    def write(self, array: np.ndarray, extent: FileRegion | None = None) -> FileRegion:
        """Write an array to its extent, or to a new one if it has none or its shape or dtype has changed; return the extent."""
        if extent is None or (extent.shape, extent.dtype) != (array.shape, array.dtype):
            extent = self._new(array)
        try:
            write = partial(self._write, extent.file, _bytes(array), extent.offset)
            retried(write, partial(self._place, extent), "written")
        except StoreError as error:
            if not is_full(error):
                raise
            raise _no_space(self.directory, max(self._needed, sum(self._ends))) from error
        return extent

    def _write(self, file: int, left: memoryview, at: int) -> None:
        while len(left):
            written = os.pwrite(self._files[file].fileno(), left, at)
            left, at = left[written:], at + written

    def _place(self, extent: FileRegion) -> str:
        first = extent.offset
        return f"bytes {first} to {first + extent.n_bytes - 1} of a scratch file in {self.directory}"

    def _new(self, array: np.ndarray) -> FileRegion:
        with self._lock:
            file = next(self._next)
            extent = FileRegion(file, self._ends[file], array.shape, array.dtype)
            self._ends[file] += -(-extent.n_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        return extent

    def read(self, extent: FileRegion, to_change: bool = True) -> np.ndarray:
        """Return the array at an extent: a copy, or memory-mapped if it is not `to_change` and the system can do that."""
        file = self._files[extent.file].fileno()
        found = None if to_change else mapped(file, extent.offset, extent.shape, extent.dtype)
        if found is None:
            return self._copy(extent)
        if not self._can_map:
            give_up(extent.n_bytes)
        return found

    def _copy(self, extent: FileRegion) -> np.ndarray:
        array = empty(extent.shape, extent.dtype)
        retried(partial(self._read, extent.file, _bytes(array), extent.offset), partial(self._place, extent))
        return array

    def _read(self, file: int, left: memoryview, at: int) -> None:
        while len(left):
            n = os.preadv(self._files[file].fileno(), [left], at)
            if not n:
                raise StoreError(
                    f"a scratch file in {self.directory} ends at byte {at}: it was truncated.",
                    remedy="Train again, and make sure that no other program writes there.",
                    where=self.directory,
                )
            left, at = left[n:], at + n

    def read_ahead(self, extent: FileRegion) -> None:
        """Have the system load the array at an extent into its cache."""
        load_ahead(self._files[extent.file].fileno(), extent.offset, extent.n_bytes)

    def close(self) -> None:
        """Close the files, which removes them. A mapped array keeps its file, for instance if an error refers to it."""
        for file in self._files:
            file.close()


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _no_space(directory: str, needed: int) -> StoreError:
    """Return the error for a disk that is full or would become so."""
    free = shutil.disk_usage(directory).free
    return StoreError(
        f"the disk of {directory} is full: rows that do not fit in memory need at least {megabytes(needed)} there, but "
        f"{megabytes(free)} are free.",
        remedy="Free some space, set another directory (``scratch=...``), or raise ``memory_limit``.",
        where=directory,
    )
