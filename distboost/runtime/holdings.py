"""The blocks that one process holds: in memory as far as the allotment goes, the others on disk."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

from distboost.data.blocks import BinnedRows
from distboost.data.memory import returned_when_freed
from distboost.runtime.block import Block, Key, ParkedBlock, located
from distboost.runtime.layout import Allotment, Layout, Reading
from distboost.runtime.streaming.scratch import Scratch
from distboost.runtime.streaming.window import Stream
from distboost.threads import Threads

Answer = TypeVar("Answer")
Replay = Callable[[Key, Block], None]  # brings a block that was read again to the state of the others


class Holdings:
    """Resident blocks, and parked ones that are read again for each question.

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
    parked : dict of Key to ParkedBlock
    """

    def __init__(self, layout: Layout, threads: Threads, allotment: Allotment | None):
        self.resident: dict[Key, Block] = {}
        self.parked: dict[Key, ParkedBlock] = {}
        self._block = partial(
            Block, n_classes=layout.n_classes, n_scores=layout.n_scores, score_dtype=layout.score_dtype
        )
        self._threads, self._allotment = threads, allotment
        self._closing = ExitStack()
        self._taking = threading.Lock()
        self._n_resident = 0  # rows
        self._scratch: Scratch | None = None
        self._stream: Stream | None = None

    def take(
        self, items: Iterable[tuple[Key, BinnedRows | Reading]], replay: Replay | None
    ) -> dict[Key, int]:
        """Hold these rows too. Several threads may call this at a time.

        Return a digest of each block that stays in memory. Parked ones come from a store that has checksums.
        """
        near: list[tuple[Key, BinnedRows | Reading]] = []
        far: list[tuple[Key, ParkedBlock]] = []
        with self._taking:
            for key, item in items:
                n_rows = item.n_rows if isinstance(item, Reading) else len(item.labels)
                if isinstance(item, Reading) and not self._has_room(n_rows):
                    far.append((key, self._park(item)))
                else:
                    self._n_resident += n_rows
                    near.append((key, item))

        def hold(key: Key, item: BinnedRows | Reading) -> tuple[Key, int]:
            with located(key):
                block = self._block(item() if isinstance(item, Reading) else item)
                if replay is not None:
                    replay(key, block)
            self.resident[key] = block
            return key, block.digest[1]

        def park(key: Key, parked: ParkedBlock) -> None:
            if replay is not None:
                with located(key):
                    block = parked.open()
                    replay(key, block)
                    parked.put_back(block)
            self.parked[key] = parked

        digests = dict(self._threads.map(lambda item: hold(*item), near))
        self._threads.map(lambda item: park(*item), far)
        return digests

    def _has_room(self, n_rows: int) -> bool:
        return self._allotment is None or self._n_resident + n_rows <= self._allotment.resident

    def _park(self, reading: Reading) -> ParkedBlock:
        if self._scratch is None or self._stream is None:
            assert self._allotment is not None
            self._scratch = Scratch(
                self._allotment.scratch or tempfile.gettempdir(), self._allotment.scratch_bytes
            )
            self._stream = Stream(self._allotment.window)
            # Several threads read and free blocks: the allocator must not keep freed memory for each of them.
            self._closing.enter_context(returned_when_freed())
            self._closing.callback(self._scratch.close)
            self._closing.callback(self._stream.close)
        return ParkedBlock(reading, self._block, self._scratch)

    def drop(self, keys: Collection[Key]) -> None:
        """Remove these blocks. Their space in the scratch file is not reused."""
        for key in keys:
            block = self.resident.pop(key, None)
            self._n_resident -= block.n_rows if block else 0
            self.parked.pop(key, None)

    def stream(
        self, parked: list[tuple[Key, ParkedBlock]], work: Callable[[Key, Block], Answer]
    ) -> Iterator[tuple[Block, Answer]]:
        """Return an iterator over the blocks, each with work(key, block): the next ones are read meanwhile."""
        return iter(()) if self._stream is None else self._stream.each(parked, work)

    def close(self) -> None:
        """End the threads that stream, and give up the scratch file."""
        self._closing.close()
