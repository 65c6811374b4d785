"""Compilation of the kernels, and the cache of their machine code on disk."""

from __future__ import annotations

import gc
import hashlib
import inspect
import logging
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from numba import njit, types
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock

from distboost.kernels._folders import Kept, folders

log = logging.getLogger("distboost")
_told = threading.Event()

LONGEST_WAIT = 60.0  # seconds that a process waits for another to compile a kernel

_watching: list[Callable[[], None]] = []
_missed, _missing = 0, threading.Lock()

_settings: Any = config  # has no types

# No fastmath: it lets the compiler reorder arithmetic, and a row's result would then depend on the row's place in the array.
_options: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


class _Part(JITCodeLibrary):
    """The code of a function for its callers: it is optimised, but only translated to machine code as a part of theirs."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: there is no machine code whose environment this would be."""


class _PartCompiler(Compiler):
    def compile_extra(self, func: Any) -> Any:
        self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)

    def define_pipelines(self) -> Any:
        # Python calls no part. Until now, parts have a kernel's options: so they share what they call of Numba.
        self.state.flags.no_cpython_wrapper = True
        return super().define_pipelines()


def _njit(compiler: type[Compiler] = Compiler, **options: Any) -> Any:
    """Return a decorator that compiles functions, also where NUMBA_DISABLE_JIT says not to.

    Whoever sets that debugs or covers functions of their own. Kernels emit machine instructions, which Python does not have.
    """

    def decorate(function: Any) -> Any:
        was, _settings.DISABLE_JIT = _settings.DISABLE_JIT, 0
        try:
            return njit(pipeline_class=compiler, **options)(function)
        finally:
            _settings.DISABLE_JIT = was

    return decorate


# Decorates small functions that are inlined into kernels.
inlined: Any = _njit(inline="always", **_options)


def _callable(**options: Any) -> Any:
    """Return a decorator that compiles functions twice, at need: whole for Python, and as a `_Part` of compiled functions."""

    def decorate(function: Any) -> Any:
        whole = _njit(**options)(function)
        part = _njit(_PartCompiler, **options)(function)

        def get_call_template(args: Any, kws: Any) -> Any:
            # Numba would compile a function again for each constant that it is called with.
            values = tuple(types.unliteral(kind) for kind in args)
            return part.get_call_template(values, {name: types.unliteral(kind) for name, kind in kws.items()})

        whole.get_call_template, whole.get_overload = get_call_template, part.get_overload
        return whole

    return decorate


# Decorates functions that kernels call. Their machine code is cached as a part of the kernel's. They may allocate, also where
# the kernel itself counts no references: an option that is not named would be the caller's.
compiled: Any = _callable(**_options, _nrt=True)

_without_references: Any = {"_nrt": False}

# Decorates functions that are called very often with many arrays, and do not allocate. Otherwise Numba counts
# references, by atomic operations, wherever it does not see that it need not.
uncounted: Any = _callable(**_options, **_without_references)


def kernel(function: Any, *sources: Any, counted: bool = True) -> Any:
    """Compile a function at its first call, and cache its machine code on disk if a folder is writable.

    Parameters
    ----------
    function : function
        The function to compile. It may call other compiled functions.
    *sources : functions
        Functions from other folders that are compiled into it. If one of them has no source file, nothing is cached.
    counted : bool, default=True
        Whether it counts references to arrays: see `uncounted`.

    Returns
    -------
    dispatcher : Numba dispatcher
        The compiled function.
    """
    dispatcher: Any = (compiled if counted else uncounted)(function)
    files = [Path(inspect.getfile(source)) for source in sources]
    if not all(file.is_file() for file in files):
        return dispatcher
    try:
        dispatcher._cache = KernelCache(function, [file.parent for file in files])
        dispatcher.compile = _once(dispatcher.compile, dispatcher)
    except (RuntimeError, OSError) as error:  # Numba has no place for this function
        _tell(error)
    return dispatcher


class KernelCache(FunctionCache):
    """Numba's cache of one function. Code that cannot be read is compiled again; code that cannot be written is not cached."""

    _impl_class = Kept

    def __init__(self, function: Any, sources: Sequence[Path] = ()):
        super().__init__(function)
        stamp = [_sources(folder) for folder in (Path(inspect.getfile(function)).parent, *sources)]
        places = folders(function, self._cache_path)
        self._cache_file = self._files = _Files(places, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001 (damaged pickles may raise any exception)
            _tell(error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001 (a kernel works without its cache)
            _tell(error)

    def paths(self, sig: Any, target_context: Any) -> list[Path]:
        """Return the files that may have the machine code for these argument types. The first is where it is written."""
        return self._files.paths(self._index_key(sig, target_context.codegen()))


def _once(compile_kernel: Callable[[Any], Any], dispatcher: Any) -> Callable[[Any], Any]:
    """Put a lock around a kernel's `compile`: of the processes that start together on a machine, only one compiles it."""

    def compile_or_load(sig: Any) -> Any:
        paths = dispatcher._cache.paths(sig, dispatcher.targetctx)
        if any(path.exists() for path in paths):
            return compile_kernel(sig)
        _count_missed()
        for tell in [*_watching]:
            tell()
        # Numba's own lock comes first: a thread that compiles a caller holds that one when it comes to this kernel.
        with global_compiler_lock, _locked(paths[0].with_suffix(".lock")), _without_collection():
            return compile_kernel(sig)  # loads the code if another process has compiled it in the meantime

    return compile_or_load


def _count_missed() -> None:
    global _missed
    with _missing:
        _missed += 1


def n_missed() -> int:
    """Return how many kernels this process has needed so far that were not in the cache."""
    return _missed


@contextmanager
def compilation_watched(tell: Callable[[], None]) -> Iterator[None]:
    """Call a function, in any thread, whenever a kernel is needed that is not in the cache, as long as the context lasts."""
    _watching.append(tell)
    try:
        yield
    finally:
        _watching.remove(tell)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Let Python collect no garbage: the compiler makes many objects, and to look at them takes a seventh of its time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file if possible. Without the lock, several processes may compile the same code, which only takes longer."""
    try:
        file = path.open("wb")
    except OSError:
        yield
        return
    with file:
        held = _lock(file)
        try:
            yield
        finally:
            if held:
                path.unlink(missing_ok=True)


def _lock(file: BinaryIO) -> bool:
    """Wait for the lock, at most LONGEST_WAIT seconds. Return whether this process holds it."""
    deadline = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < deadline:
        try:
            flock(file, LOCK_EX | LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:  # the file system has no locks
            return False
    return False


class _Files(IndexDataCacheFile):
    """The files of a function's machine code: one file with a checksum for each combination of argument types.

    Numba's own cache is unsafe in two ways. It writes an index before the code: if the disk is full or the process ends in
    between, the index points to the code of an earlier version. And it notices changes only in the function's own file, not in
    the files of the functions that it calls.
    """

    def __init__(self, folders: Sequence[Path], name: str, stamp: Any):
        super().__init__(str(folders[0]), name, stamp)
        self._folders, self._folder = folders, folders[0]
        self._name = f"{name}.{_digest(self._version, stamp)}"
        self._any = f"{name}.*.nbc"

    def load(self, key: Any) -> Any:
        for path in self.paths(key):
            with suppress(FileNotFoundError):  # another process may remove it at any moment
                content = path.read_bytes()
                break
        else:
            return None
        checksum, data = content[:32], content[32:]
        if hashlib.sha256(data).digest() != checksum:
            raise OSError(f"{path} is damaged")
        known, code = pickle.loads(data)
        return code if known == key else None

    def save(self, key: Any, code: Any) -> None:
        data = self._dump((key, code))
        with self._open_for_write(str(self.paths(key)[0])) as file:
            file.write(hashlib.sha256(data).digest() + data)
        for path in self._folder.glob(self._any):
            if not path.name.startswith(self._name):  # its code was compiled from other sources
                path.unlink(missing_ok=True)

    def flush(self) -> None:
        for path in self._folder.glob(self._any):
            path.unlink(missing_ok=True)

    def paths(self, key: Any) -> list[Path]:
        """Return the files that may have the code. It is written to the first."""
        return [folder / f"{self._name}-{_digest(key)}.nbc" for folder in self._folders]


def _digest(*known: Any) -> str:
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


@cache
def _sources(folder: Path) -> str:
    """Return a digest of all files that a kernel in this folder may be compiled from: those of the folder and of this package."""
    files = {*folder.glob("*.py"), *Path(__file__).parent.glob("*.py")}
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()


def _tell(error: Exception) -> None:
    """Warn, once per process, that the cache does not work."""
    if not _told.is_set():
        _told.set()
        log.warning(
            "compiled kernels cannot be read or kept (%s): each process compiles them again, which takes some 10 seconds. "
            "Set NUMBA_CACHE_DIR to a writable folder with 50 MB of free space.",
            error,
        )
