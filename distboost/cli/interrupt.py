"""Ctrl-C: a command ends with one line, whatever its other threads and processes are doing."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.resource_tracker import ensure_running
from typing import Any

AGAIN = 0.05  # seconds after which an interrupt that was lost is raised again


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """From Ctrl-C on, let only the command itself say something: Dask tells of each task and connection that ends with it."""
    if not _has_control():
        yield
        return
    state = logging.root.manager.disable, sys.unraisablehook, threading.excepthook
    earlier = signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = partial(_raise_again, sys.unraisablehook)
    try:
        yield
    finally:
        logging.root.manager.disable, sys.unraisablehook, threading.excepthook = state
        signal.signal(signal.SIGINT, earlier)


def end_quietly() -> None:
    """Ignore Ctrl-C from now on to the end of `quiet_interrupts`, and again when the interpreter ends, which says nothing."""
    if _has_control():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        atexit.register(_silence)


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Let Ctrl-C interrupt only the end of the context, and never the processes that it starts (see `dask_setup`)."""
    if not _has_control():
        yield
        return
    ensure_running()  # whoever starts this helper of multiprocessing lets its own thread be interrupted again
    came: list[Any] = []
    earlier: Any = signal.signal(signal.SIGINT, lambda *signalled: came.append(signalled))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # threads and processes inherit it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, earlier)
        if came:
            earlier(*came[0])


def quieten(process_id: int | None) -> None:
    """Let a worker process that has run `dask_setup`, and is about to end, say nothing any more."""
    if process_id:
        with suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGINT)


def dask_setup(worker: Any) -> None:
    """End nothing at Ctrl-C in a worker: a terminal sends it to all processes, and the command ends its workers itself.

    Dask calls this in each worker, as the module is preloaded.
    """
    signal.signal(signal.SIGINT, lambda *_: _silence())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _has_control() -> bool:
    """Return whether Ctrl-C interrupts this thread: others than the main one cannot be, and a shell may have it ignored."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _interrupt)


def _interrupt(*_: Any) -> None:
    _silence()
    raise KeyboardInterrupt


def _silence() -> None:
    logging.disable(logging.CRITICAL)
    sys.unraisablehook = partial(_raise_again, _ignore)
    threading.excepthook = _ignore


def _ignore(_: Any) -> None:
    pass


def _raise_again(otherwise: Callable[[Any], Any], found: Any) -> None:
    """Raise an interrupt again that came where exceptions are lost, such as in Dask's function for the garbage collector."""
    if found.exc_type is KeyboardInterrupt:
        again = threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()
    else:
        otherwise(found)
