"""The blocks that one process holds: in memory as far as the allotment goes, the others on disk."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Collection, Hashable, Iterable
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import TypeVar

from distboost.data.blocks import AnyRows
from distboost.data.memory import returned_when_freed
from distboost.io.ahead import n_loaded
from distboost.io.phases import Advance
from distboost.runtime.base import Allotment, Layout, Reading
from distboost.runtime.block import Block, Key, located
from distboost.runtime.streaming.block import StreamedBlock
from distboost.runtime.streaming.scratch import Scratch
from distboost.threads import Threads


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


Answer = TypeVar("Answer")
Replay = Callable[[Key, Block], None]  # brings a block that was read again to the state of the others


class Holdings:
    """Resident blocks, and streamed ones that are read again for each question.

    Parameters
    ----------
    layout : Layout
    threads : Threads
        They read and replay.
    allotment : Allotment or None
        None: all rows are resident.

    Attributes
    ----------
    resident : dict of Key to Block
    streamed : dict of Key to StreamedBlock
    """

    def __init__(self, layout: Layout, threads: Threads, allotment: Allotment | None):
        self.resident: dict[Key, Block] = {}
        self.streamed: dict[Key, StreamedBlock] = {}
        self._block = partial(
            Block, n_classes=layout.n_classes, n_scores=layout.n_scores, score_dtype=layout.score_dtype
        )
        self._threads, self._allotment, self._usual = threads, allotment, layout.usual
        self._closing = ExitStack()
        self._taking = threading.Lock()
        self._n_resident = self._n_ordered = 0  # rows
        self._ordered: dict[Key, int] = {}  # the rows of streamed blocks whose order stays in memory
        self._scratch: Scratch | None = None
        self._stream: Stream | None = None

    def keys(self) -> set[Key]:
        """Return the keys of all blocks."""
        return {*self.resident, *self.streamed}

    def take(
        self,
        items: Iterable[tuple[Key, AnyRows | Reading]],
        replay: Replay | None,
        advance: Advance | None = None,
    ) -> dict[Key, int]:
        """Hold these rows too. Several threads may call this at a time.

        `advance` counts the rows held. Return a digest of each block that stays in memory.
        Streamed ones come from a store that has checksums.
        """
        resident: list[tuple[Key, AnyRows | Reading]] = []
        streamed: list[tuple[Key, StreamedBlock]] = []
        with self._taking:
            for key, item in items:
                n_rows = item.n_rows if isinstance(item, Reading) else len(item.labels)
                if isinstance(item, Reading) and not self._has_room(n_rows):
                    streamed.append((key, self._streamed_block(key, item)))
                else:
                    self._n_resident += n_rows
                    resident.append((key, item))

        def hold_resident(key: Key, item: AnyRows | Reading) -> tuple[Key, int]:
            with located(key):
                rows = item() if isinstance(item, Reading) else item
                block = self._block(rows.in_memory())
                digest = block.digest[1]
                if self._usual is not None:
                    block.store(self._usual)
                if replay is not None:
                    replay(key, block)
            self.resident[key] = block
            if advance is not None:
                advance(block.n_rows)
            return key, digest

        def hold_streamed(key: Key, streamed: StreamedBlock) -> None:
            if replay is not None:
                with located(key):
                    block = streamed.open()
                    replay(key, block)
                    streamed.put_back(block)
            self.streamed[key] = streamed

        # What reading takes is freed before the arrays of the next blocks are made: these would keep it from the system.
        with returned_when_freed():
            digests = dict(self._threads.map(lambda item: hold_resident(*item), resident))
        self._threads.map(lambda item: hold_streamed(*item), streamed)
        return digests

    def _has_room(self, n_rows: int) -> bool:
        return self._allotment is None or self._n_resident + n_rows <= self._allotment.resident

    def _streamed_block(self, key: Key, reading: Reading) -> StreamedBlock:
        assert self._allotment is not None
        if self._scratch is None or self._stream is None:
            self._scratch = Scratch(
                self._allotment.scratch or tempfile.gettempdir(),
                self._allotment.scratch_bytes,
                self._allotment.can_map,
            )
            self._stream = Stream(self._allotment.window, self._threads.n)
            # Several threads read and free blocks: the allocator must not keep freed memory for each of them.
            self._closing.enter_context(returned_when_freed())
            self._closing.callback(self._scratch.close)
            self._closing.callback(self._stream.close)
        in_memory = []
        # Whole blocks are resident: what is left of the memory for these is free.
        room = self._allotment.ordered + self._allotment.resident - self._n_resident
        if key.number == 0 and self._n_ordered + reading.n_rows <= room:
            self._n_ordered += reading.n_rows
            self._ordered[key] = reading.n_rows
            in_memory.append("order")
        return StreamedBlock(reading, self._block, self._scratch, in_memory, self._usual)

    def drop(self, keys: Collection[Key]) -> None:
        """Remove these blocks. Their space in scratch files is not reused."""
        for key in keys:
            block = self.resident.pop(key, None)
            self._n_resident -= block.n_rows if block else 0
            self.streamed.pop(key, None)
            self._n_ordered -= self._ordered.pop(key, 0)

    def stream(
        self,
        work: Callable[[Key, Block], Answer],
        streamed: list[tuple[Key, StreamedBlock]],
        kind: Hashable,
    ) -> list[Answer]:
        """Return work(key, block) for these blocks."""
        return [] if self._stream is None else self._stream.map(work, streamed, kind)

    def close(self) -> None:
        """End the threads that stream, and give up the scratch files."""
        self._closing.close()
