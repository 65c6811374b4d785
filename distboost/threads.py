"""A small pool of threads for kernels that release the GIL."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

from dask.system import cpu_count

ENTRIES_PER_THREAD = 2**18  # rows times features

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> int:
    """The number of cores this process may use: its CPU affinity, limited by the quota of its container."""
    return _cores(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


@cache
def _cores(of_affinity: int | None) -> int:
    return min(cpu_count(), of_affinity or 1)  # reads files


def useful_threads(n: int | None, n_entries: int) -> int:
    """Return how many threads to train with, `n` (None: one per core) at most, if rows times features are `n_entries`.

    Whatever the number, each question hands work to all threads. So a thread with little work costs more than it saves.
    """
    return max(min(n or available_cores(), round(n_entries / ENTRIES_PER_THREAD)), 1)


_mine = threading.local()


def _begin_thread(ended: threading.Event) -> None:
    _mine.ended = ended


def is_given_up() -> bool:
    """Whether the `Threads.each` that this thread works for has ended, for instance by an interrupt: its result is not needed."""
    ended = getattr(_mine, "ended", None)
    return ended is not None and ended.is_set()


class Threads:
    """Runs functions over items on `n` threads, including the calling one. With one thread, this is a plain loop.

    Parameters
    ----------
    n : int or None, default=None
        None: one thread for each available core.
    name : str, default="distboost"
        The names of the threads begin with it.
    """

    def __init__(self, n: int | None = None, name: str = "distboost"):
        self.n = n or available_cores()
        self._pool = ThreadPoolExecutor(self.n - 1, name) if self.n > 1 else None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return function(item) for all items, in order. Each thread takes the next item as soon as it is free.

        If a call fails, no further call begins. `map` waits for the running calls and raises the error of the first item that
        failed. `function` may call `map` too.
        """
        items = list(items)
        if self._pool is None or len(items) < 2:
            return [*map(function, items)]
        results: dict[int, Result] = {}
        failures: dict[int, BaseException] = {}
        waiting = deque((number, partial(function, item)) for number, item in enumerate(items))

        def work() -> None:
            while waiting:
                try:
                    number, call = waiting.popleft()
                except IndexError:  # another thread was faster
                    return
                try:
                    results[number] = call()
                except BaseException as error:  # noqa: BLE001 (an interrupt too is raised by the caller's thread)
                    waiting.clear()
                    failures[number] = error

        helpers: list[Future[Any]] = []
        try:
            for _ in range(min(self.n, len(items)) - 1):
                helpers.append(self._pool.submit(work))  # noqa: PERF401 (an interrupt leaves those that began in the list)
            work()
            _wait_for_running(helpers)
        except BaseException:  # an interrupt of this thread
            waiting.clear()
            _wait_for_running(helpers)
            raise
        try:
            if failures:
                raise failures[min(failures, key=lambda n: (isinstance(failures[n], Exception), n))]
            return [results[number] for number in range(len(items))]
        finally:
            # Tracebacks refer to this frame, and so does a cancelled helper while it is in the pool's queue.
            failures.clear()
            results.clear()

    def each(
        self, function: Callable[[Item], Result], items: Iterable[Item], at_once: int | None = None
    ) -> Generator[Result, None, None]:
        """Yield function(item) for each item, in order. At most `at_once` calls run or have results that are not yet taken."""
        most = min(at_once or self.n, self.n)
        if most < 2:
            yield from map(function, items)
            return
        # A separate pool: this thread only waits, so all threads of the pool may work.
        ended = threading.Event()
        pool = ThreadPoolExecutor(most, "distboost-each", _begin_thread, (ended,))
        window: deque[Future[Result]] = deque()
        try:
            for item in items:
                if len(window) == most:
                    yield window.popleft().result()
                window.append(pool.submit(function, item))
            while window:
                yield window.popleft().result()
        finally:
            ended.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _wait_for_running(helpers: list[Future[Any]]) -> None:
    """Cancel the helpers that have not started, as no items are left for them, and wait for the others.

    Waiting for a helper that has not started could be a deadlock: all threads of the pool may be waiting.
    """
    for helper in helpers:
        if not helper.cancel():
            helper.exception()
