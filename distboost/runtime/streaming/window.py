"""Stream blocks from disk, some at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from contextlib import nullcontext
from typing import TypeVar

from distboost.io.ahead import n_loaded
from distboost.runtime.block import Block, Key, located
from distboost.runtime.streaming.block import StreamedBlock
from distboost.threads import Threads

Answer = TypeVar("Answer")


class Stream:
    """Threads that read a block, process it and write what has changed, with a bounded number of blocks in memory.

    Parameters
    ----------
    window : int
        Blocks in memory at a time, at least 2. If they are more than the threads, some are read while others are processed.
    n_threads : int
        Blocks that are processed at a time.
    """

    def __init__(self, window: int, n_threads: int):
        self.window = max(window, 2)
        self._threads = Threads(self.window, "distboost-stream")
        limited = self.window > n_threads
        self._processing = threading.Semaphore(n_threads) if limited else nullcontext()
        self._loaded = n_loaded()
        self._changed: dict[Hashable, set[str]] = {}  # the arrays that each kind of work has changed

    def map(
        self,
        work: Callable[[Key, Block], Answer],
        items: Iterable[tuple[Key, StreamedBlock]],
        kind: Hashable = None,
    ) -> list[Answer]:
        """Return work(key, block) for all blocks, in order. Their changes have been written to disk.

        Work of the same `kind` is taken to change the same arrays. If it changes a mapped array after all, the change is written
        back like any other.
        """
        is_known = kind in self._changed
        changed = self._changed.setdefault(kind, set())
        used: set[str] = set()  # by the work on one block, so probably by that on the next ones, too
        items = list(items)
        loaded, self._loaded = self._loaded, n_loaded()
        # Whether the last pass read from a disk. If so, this one has the system read ahead, and maps nothing.
        from_disk = self._loaded > loaded

        def visit(n: int) -> Answer:
            key, streamed = items[n]
            if from_disk and n + self.window < len(items):
                items[n + self.window][1].read_ahead(tuple(used))
            with located(key):
                # If the cache is short of memory, it may evict mapped pages while they are in use. So arrays are then copied.
                block = streamed.open(tuple(used), changed if is_known and not from_disk else None)
                with self._processing:
                    answer = work(key, block)
                changed.update(block.changed)
                used.update(block.loaded)
                streamed.put_back(block)
            return answer

        return self._threads.map(visit, range(len(items)))

    def close(self) -> None:
        """End the threads."""
        self._threads.close()
