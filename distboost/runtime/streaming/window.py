"""Blocks on disk, worked on one after another while the next ones are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from distboost.runtime.block import Block, Key, ParkedBlock, located


class Stream:
    """Works on parked blocks in threads of its own, with a bounded number of them in memory.

    Parameters
    ----------
    window : int
        Blocks in memory at a time, at least 2: one in use and the others being read.
    """

    def __init__(self, window: int):
        self.window = max(window, 2)
        self._pool = ThreadPoolExecutor(self.window, "distboost-stream")

    def each(
        self, items: Iterable[tuple[Key, ParkedBlock]], work: Callable[[Key, Block], Any]
    ) -> Iterator[tuple[Block, Any]]:
        """Each block with the answer of work(key, block), in order; what was changed is back on disk by then."""

        def visit(key: Key, parked: ParkedBlock) -> tuple[Block, Any]:
            with located(key):
                block = parked.open()
                answer = work(key, block)
                parked.put_back(block)
            return block, answer

        todo = iter(items)
        waiting: deque[Future] = deque()
        try:
            for item in islice(todo, self.window):
                waiting.append(self._pool.submit(visit, *item))
            while waiting:
                block, answer = waiting.popleft().result()
                yield block, answer
                del block  # only now is there room for another
                waiting.extend(self._pool.submit(visit, *item) for item in islice(todo, 1))
        finally:
            for future in waiting:
                future.cancel()
            for future in waiting:
                if not future.cancelled():
                    future.exception()  # no thread is left at work on a file that may be closed next

    def close(self) -> None:
        self._pool.shutdown(wait=True)
