"""How the kernels are compiled, and where the machine code is kept for the next process."""

from __future__ import annotations

import hashlib
import inspect
import logging
import pickle
import threading
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

log = logging.getLogger("distboost")
_told = threading.Event()

# No fastmath: the compiler may not reorder a row's arithmetic, so a row's result does not depend on where the row lies.
_options: Any = {"nogil": True, "error_model": "numpy"}

# Small functions that live inside kernels.
inlined: Any = njit(inline="always", **_options)


def kernel(function: Any) -> Any:
    """Compiles a function when it is first called; the machine code is kept, where there is a place for it."""
    compiled: Any = njit(**_options)(function)
    try:
        compiled._cache = KernelCache(function)
    except (RuntimeError, OSError) as error:  # no folder to write to
        _tell(error)
    return compiled


class KernelCache(FunctionCache):
    """Numba's cache of a function; what cannot be read is compiled again, and what cannot be written is not kept."""

    def __init__(self, function: Any):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), _sources(Path(inspect.getfile(function)).parent)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # unpickling what is damaged may raise anything
            _tell(error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _tell(error)


class _Files(IndexDataCacheFile):
    """A file for each compilation of these very sources, under a checksum.

    Numba's own have an index, which is written first: where the disk is full, or the process ends, before the code is written
    too, the index names what is left of an earlier version. And they know the function's file, not those of what it calls.
    """

    def __init__(self, folder: str, name: str, stamp: Any):
        super().__init__(folder, name, stamp)
        self._folder, self._name = Path(folder), f"{name}.{_digest(self._version, stamp)}"
        self._any = f"{name}.*.nbc"

    def load(self, key: Any) -> Any:
        path = self._path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        checksum, data = content[:32], content[32:]
        if hashlib.sha256(data).digest() != checksum:
            raise OSError(f"{path} is damaged")
        known, code = pickle.loads(data)
        return code if known == key else None

    def save(self, key: Any, code: Any) -> None:
        data = self._dump((key, code))
        with self._open_for_write(str(self._path(key))) as file:
            file.write(hashlib.sha256(data).digest() + data)
        for path in self._folder.glob(self._any):
            if not path.name.startswith(self._name):  # of other sources
                path.unlink(missing_ok=True)

    def flush(self) -> None:
        for path in self._folder.glob(self._any):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        return self._folder / f"{self._name}-{_digest(key)}.nbc"


def _digest(*known: Any) -> str:
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


@cache
def _sources(folder: Path) -> str:
    """A digest of all that a kernel in this folder may be compiled from: it is in one of these files, and calls others."""
    files = {*folder.glob("*.py"), *Path(__file__).parent.glob("*.py")}
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()


def _tell(error: Exception) -> None:
    """Says, once in a process, that it goes on without the cache."""
    if not _told.is_set():
        _told.set()
        log.warning(
            "compiled kernels cannot be read or kept (%s): each process compiles them anew, which takes it a while. "
            "Set NUMBA_CACHE_DIR to a folder that it can write to, with room for 50 MB.",
            error,
        )
