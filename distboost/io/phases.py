"""Phases: what a long call does at the moment, and how far it is.

Whoever submits the work of a phase counts it as it completes. So a report costs neither a message nor a pass over the rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Phase(NamedTuple):
    """The argument of a callback's method `phase`: a phase of the work before, between and after the rounds.

    Attributes
    ----------
    name : str
        "scan" (of the raw rows, for classes and bin edges), "bin" (into a store), "load" (the rows are brought into memory),
        "replay" (the rounds of an earlier run, on these rows), "compile" (kernels that are not in the cache),
        "compile on workers" (the same on a cluster), "calibrate" (the second training, for probabilities); of other calls,
        "predict", "evaluate" and "query".
    done : int
        How much is done, in units.
    total : int or None
        How much there is to do; None if that is not known.
    unit : str
        "bytes" (of the values), "rows", "rounds" or "kernels".
    seconds : float
        Since the phase began.
    rate : float or None
        Units per second; None at the beginning.
    left : float or None
        The seconds that the rest will take, at the rate after the first parts, whose kernels may have been compiled; None until
        that can be told.
    ended : bool
        Whether this is the last report of the phase.
    error : str or None
        The error that ended it, in one line.
    """

    name: str
    done: int
    total: int | None
    unit: str
    seconds: float
    rate: float | None = None
    left: float | None = None
    ended: bool = False
    error: str | None = None


class _Pace:
    """What the time left follows from: the parts after the first ones.

    The first ones may have waited for kernels to be compiled. Threads and workers that began together complete them at about the
    same time.
    """

    def __init__(self) -> None:
        self._first: float | None = None  # the seconds after which something was done
        self._base = (0.0, 0)  # seconds, and what was done with the first parts

    def left(self, seconds: float, done: int, rest: int) -> float | None:
        """Return the time left for the rest, after so many seconds, in which so much was done."""
        if self._first is None and done:
            self._first = seconds
        if rest == 0:
            return 0.0
        if self._first is None:
            return None
        if seconds <= 1.25 * self._first:
            self._base = seconds, done
        took, more = seconds - self._base[0], done - self._base[1]
        return took / more * rest if seconds >= 2 * self._first and more else None


Listener = Callable[[Phase], object]
Advance = Callable[[int], None]


class Phases:
    """Tells listeners about phases: when one begins, whenever a part of it is done, and when it ends.

    Parameters
    ----------
    *listeners : callables
        Each is called with a `Phase`, one call at a time. They decide what to leave out.
    """

    def __init__(self, *listeners: Listener):
        self._listeners = listeners
        self._telling = threading.RLock()

    def tell(self, phase: Phase) -> None:
        """Tell all listeners."""
        with self._telling:
            for listener in self._listeners:
                listener(phase)

    @contextmanager
    def begin(self, name: str, total: int | None, unit: str, done: int = 0) -> Iterator[Advance]:
        """Begin a phase, of which `done` units were done before; it ends with the context.

        Yield a function that any thread calls with the number of units that it has done. A phase
        without units is not reported.
        """
        if total == 0:
            yield lambda n: None
            return
        began, before, counting, pace = time.perf_counter(), done, threading.Lock(), _Pace()

        def report(ended: bool = False, error: str | None = None) -> None:
            seconds = time.perf_counter() - began
            rate = (done - before) / seconds if done > before and seconds > 0 else None
            now = done
            # Work that is lost and done again counts once, and at the end all is done, also what was there already.
            if total is not None:
                now = total if ended and error is None else min(done, total)
            left = None if total is None else pace.left(seconds, done - before, total - now)
            self.tell(Phase(name, now, total, unit, seconds, rate, left, ended, error))

        def advance(n: int) -> None:
            nonlocal done
            with counting:
                done += n
                report()

        report()
        try:
            yield advance
        except BaseException as error:
            report(True, " ".join(f"{type(error).__name__}: {error}".split()))
            raise
        report(True)


SILENT = Phases()
