"""What distboost changes in the whole process that uses it. docs/process.md is the page about it.

The environment variable DISTBOOST_LEAVE names what it must leave alone: some of "malloc", "sigterm", "exit", "blas" and "fork",
separated by commas.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from threadpoolctl import ThreadpoolController

from distboost.errors import ArgumentError

VARIABLE = "DISTBOOST_LEAVE"
EFFECTS = ("malloc", "sigterm", "exit", "blas", "fork")


def is_left_alone(effect: str) -> bool:
    """Whether the user wants one of EFFECTS not to happen."""
    left = os.environ.get(VARIABLE, "").replace(",", " ").split()
    unknown = [name for name in left if name not in EFFECTS]
    if unknown:
        raise ArgumentError(
            f"{VARIABLE} has {unknown[0]!r}.",
            remedy=f"Set it to some of {', '.join(EFFECTS)}.",
            value=unknown[0],
        )
    return effect in left


# malloc: large arrays that were freed go back to the system.
#
# glibc answers large requests with `mmap`, whose memory goes back to the system as soon as it is freed. What counts as large is
# a threshold that starts at 128 KiB and grows by itself, up to 32 MiB, with the arrays that a process frees. Smaller requests
# stay in the heap of their thread.
#
# `mallopt` can set the threshold but neither read it nor let it grow again. So we respect and restore what the environment of
# the process sets (Dask sets the trim threshold of the workers that its nannies start). Where the environment sets nothing, we
# restore the value that glibc itself settles at once a process has freed an array of 32 MiB. Only a threshold that a program has
# set by its own call of `mallopt` is lost, because nothing can read it.

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's names and figures, from malloc.h and malloc.c
_LARGEST_DYNAMIC = 2**25  # bytes; the threshold does not grow beyond
LARGE = 2**20  # bytes: arrays of at least this size go back to the system


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
    MallocThresholds(during=((-3, 1048576),), afterwards=((-3, 4194304),))
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


def return_large_arrays(returned: bool) -> None:
    """Return arrays of at least LARGE bytes to the system as soon as they are freed, from now on or no longer."""
    if not is_left_alone("malloc"):
        for parameter, value in _thresholds.during if returned else _thresholds.afterwards:
            _mallopt(parameter, value)


def trim_heap() -> None:
    """Return memory that was freed earlier to the system: reading and binning leave much that a run does not need."""
    if not is_left_alone("malloc"):
        _malloc_trim(0)


# sigterm: files that this process owns are removed.

_clean_up: list[Callable[[], None]] = []


def clean_up_on_sigterm(clean_up: Callable[[], None]) -> None:
    """Call a function when SIGTERM ends this process, unless the user has installed a handler."""
    if _in_main_thread() and not is_left_alone("sigterm"):
        _clean_up[:] = [clean_up]
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminated)


def leave_sigterm() -> None:
    """Let SIGTERM end this process as it does by itself, if the handler is ours."""
    if _in_main_thread() and signal.getsignal(signal.SIGTERM) is _terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminated(number: int, _frame: Any) -> None:
    """End the process as the unhandled signal would."""
    for clean_up in _clean_up:
        clean_up()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


# exit: a command or a worker leaves its memory to the system.


@cache
def end_promptly() -> None:
    """Let this process leave its memory to the system when it ends.

    Python looks for garbage at the end, among all that the imported libraries have made: a second of work, and many on a machine
    whose processes all end at once. Dask waits 4 seconds for a worker, then warns and kills it.
    """
    if not is_left_alone("exit"):
        atexit.register(gc.freeze)


# blas: one thread, while models are trained. The last digits depend on the number of threads.


class _SingleBlas:
    """Limits BLAS to one thread while any context is open.

    The limit applies to the whole process. Contexts are counted: otherwise the first of two concurrent runs to end would
    lift the limit for both.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_open = 0
        self._limits: Any = None
        self._found: ThreadpoolController | None = None
        self._n_modules = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if is_left_alone("blas"):
            yield
            return
        with self._lock:
            if self._limits is None:
                self._limits = self._libraries().limit(limits=1, user_api="blas")
            self._n_open += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_open -= 1
                if not self._n_open:
                    self._limits.restore_original_limits()
                    self._limits = None

    def _libraries(self) -> ThreadpoolController:
        """The BLAS libraries of this process. A search takes 10 ms; it is repeated if imported modules may have loaded more."""
        if self._found is None or self._n_modules != len(sys.modules):
            self._found, self._n_modules = ThreadpoolController(), len(sys.modules)
        return self._found


single_blas = _SingleBlas()


# fork: a forked process forgets what belongs to its parent.


def after_fork(forget: Callable[[], None]) -> None:
    """Call a function in each process that is forked from this one."""
    if hasattr(os, "register_at_fork") and not is_left_alone("fork"):
        os.register_at_fork(after_in_child=forget)
