"""A small pool of threads for kernels that release the GIL."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from dask.system import cpu_count
from threadpoolctl import threadpool_limits


def available_cores() -> int:
    """The number of cores this process may use: of those it may run on, as many as its container has time on."""
    return cpu_count()


class _SingleBlas:
    """One thread for linear algebra as long as anyone wants it: the setting is the whole process's.

    Each of two trainings beside each other would else end it for the other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._limits: threadpool_limits | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._limits is None:
                self._limits = threadpool_limits(1, "blas")
            self._wanted += 1
        try:
            yield
        finally:
            with self._lock:
                self._wanted -= 1
                if not self._wanted:
                    self._limits.restore_original_limits()
                    self._limits = None


single_blas = _SingleBlas()


_mine = threading.local()


def _begin_thread(ended: threading.Event) -> None:
    _mine.ended = ended


def is_given_up() -> bool:
    """Whether the `Threads.each` that gave this thread its work has ended, as when it was interrupted: nobody waits for it."""
    ended = getattr(_mine, "ended", None)
    return ended is not None and ended.is_set()


class Threads:
    """Runs functions over items on `n` threads, the calling one included; with one thread it is a plain loop."""

    def __init__(self, n: int | None = None):
        self.n = n or available_cores()
        self._pool = ThreadPoolExecutor(self.n - 1, "distboost") if self.n > 1 else None

    def map(self, function: Callable[..., Any], items: Iterable[Any]) -> list[Any]:
        """function(item) for all items, in their order: each thread takes the next item as soon as it is free.

        If any fails, no other is begun, those that run are waited for, and the error of the first item that failed is raised.
        `function` may map, too.
        """
        items = list(items)
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        results: dict[int, Any] = {}
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
                except BaseException as error:
                    waiting.clear()
                    failures[number] = error

        helpers: list[Future[Any]] = []
        try:
            for _ in range(min(self.n, len(items)) - 1):
                helpers.append(self._pool.submit(work))
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
            # Tracebacks lead back here, and so does a helper that was cancelled, as long as it waits in the pool's queue.
            failures.clear()
            results.clear()

    def each(
        self, function: Callable[..., Any], items: Iterable[Any], at_once: int | None = None
    ) -> Generator[Any, None, None]:
        """function(item) for each item, one after another; at most `at_once` are under way or not yet taken."""
        most = min(at_once or self.n, self.n)
        if most < 2:
            yield from map(function, items)
            return
        # A pool of its own, for this thread waits: each of its threads may work.
        ended = threading.Event()
        pool = ThreadPoolExecutor(most, "distboost-each", _begin_thread, (ended,))
        window: deque[Future[Any]] = deque()
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
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _wait_for_running(helpers: list[Future[Any]]) -> None:
    """Helpers that no thread was free for have nothing left to do: to wait for them could be to wait for ourselves."""
    for helper in helpers:
        if not helper.cancel():
            helper.exception()
