"""Stream blocks from disk: the next ones are read while one is processed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from distboost.runtime.block import Block, Key, StreamedBlock, located

Result = TypeVar("Result")


class Stream:
    """Processes streamed blocks in threads of its own, with a bounded number of blocks in memory.

    Parameters
    ----------
    window : int
        Blocks in memory at a time, at least 2: one is in use while the others are read.
    """

    def __init__(self, window: int):
        self.window = max(window, 2)
        self._pool = ThreadPoolExecutor(self.window, "distboost-stream")

    def each(
        self, items: Iterable[tuple[Key, StreamedBlock]], work: Callable[[Key, Block], Result]
    ) -> Iterator[tuple[Block, Result]]:
        """Yield each block with the result of work(key, block), in order, after its changes have been written to disk."""

        def visit(key: Key, streamed: StreamedBlock) -> tuple[Block, Result]:
            with located(key):
                block = streamed.open()
                result = work(key, block)
                streamed.put_back(block)
            return block, result

        todo = iter(items)
        waiting: deque[Future[tuple[Block, Result]]] = deque()
        try:
            for item in islice(todo, self.window):
                waiting.append(self._pool.submit(visit, *item))
            while waiting:
                block, result = waiting.popleft().result()
                yield block, result
                del block  # frees memory for the next one
                waiting.extend(self._pool.submit(visit, *item) for item in islice(todo, 1))
        finally:
            for future in waiting:
                future.cancel()
            for future in waiting:
                if not future.cancelled():
                    future.exception()  # wait for it: the caller may close the file next

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True)
