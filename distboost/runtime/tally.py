"""The histograms of a question, summed over the blocks of one process by its threads."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from queue import Empty, LifoQueue, SimpleQueue
from typing import NamedTuple, Protocol

import numpy as np

from distboost.kernels.histogram import TILES_AT_ONCE, Target
from distboost.rows.protocols import Statistic
from distboost.rows.scales import Scale
from distboost.runtime.block import Block
from distboost.runtime.gathered import GatheredRows
from distboost.runtime.tiles import feature_groups, n_visits, round_up, tiles_of
from distboost.threads import Threads

ENTRIES_PER_THREAD = 2**16  # rows times features: with fewer, a thread costs more time than it saves
ENTRIES_PER_BIN = 32  # to copy the sums of a bin and add the copy to others takes as long as to add these
SHARED_BYTES = 2**26  # the most that the sums of threads that share rows take
CACHED_TILES = TILES_AT_ONCE  # the sums of more do not stay in the cache from one block to the next
BLOCKS_PER_THREAD = 4  # with fewer, some thread would wait long for the others


class Slots(NamedTuple):
    """Memory for the histograms of some features, one slot for each node of a question. Its content is arbitrary."""

    pool: np.ndarray  # (n_slots, n_bins, channels with padding) int64
    slots: np.ndarray  # (n_nodes,) int64
    offsets: np.ndarray  # (n_features + 1,) int64: where the bins of each feature begin


class Part(Protocol):
    """Some features of a question, and what becomes of their sums."""

    @property
    def features(self) -> np.ndarray:
        """The features, (f,) int64 ascending."""

    def begin(self) -> Slots:
        """Return the memory for the sums."""

    def finish(self) -> None:
        """Use the sums, which are complete."""


class Given:
    """A part whose sums are only stored."""

    def __init__(self, features: np.ndarray, slots: Slots):
        self.features, self._slots = features, slots

    def begin(self) -> Slots:
        return self._slots

    def finish(self) -> None:
        pass


class Spare:
    """Memory that is used again: the system need not provide it anew for each question."""

    def __init__(self) -> None:
        self._free: SimpleQueue[np.ndarray] = SimpleQueue()

    def take(self, n: int) -> np.ndarray:
        """Return at least n numbers, int64 of arbitrary content. Their memory may be given back later."""
        try:
            memory = self._free.get_nowait()
        except Empty:
            memory = np.empty(0, np.int64)
        return memory if len(memory) >= n else np.empty(n, np.int64)

    def give_back(self, memory: np.ndarray) -> None:
        """Accept memory that was taken and is no longer in use."""
        self._free.put(memory)


class Tally:
    """Adds the rows of blocks to the histograms of nodes.

    No two threads write to the same sums. If all blocks are in memory and there are enough parts, a thread takes a part from
    beginning to end, so that its sums are used while they are in the cache. Else, if there are many blocks, a thread adds those
    that it visits to sums of its own. Else the threads share the features of a part, or the rows of each node. Threads
    that stream add a block each, to some features at a time. If the sums do not stay in the cache, few rows of a node wait for
    those of other blocks.

    Parameters
    ----------
    threads : Threads
    statistic : Statistic
    scale : Scale
        The scale of the statistic.
    weight_factor : float
    nodes : ndarray of shape (m,), int64
    parts : sequence of Part
        No two have features in common.
    shared_bytes : int
        The most that sums take by which threads share rows.
    spare : Spare
        Where the memory of these sums comes from.
    again : bool
        Whether the nodes were summed before, and may have children already.
    """

    def __init__(
        self,
        threads: Threads,
        statistic: Statistic,
        scale: Scale,
        weight_factor: float,
        nodes: np.ndarray,
        parts: Sequence[Part],
        shared_bytes: int,
        spare: Spare,
        again: bool = False,
    ):
        self._threads = threads
        self._statistic, self._scale, self._weight_factor = statistic, scale, weight_factor
        self._nodes, self._parts, self._again = nodes, parts, again
        self._shared_bytes, self._spare = shared_bytes, spare
        self._has_few_parts = len(parts) < threads.n
        self._shared: list[SharedPart] = []
        self._shares: list[Share] = []
        # For each group of features: the sums to which no thread adds.
        self._free: list[SimpleQueue[Share]] = []
        self._turns = count()
        self._gathers = False  # whether streamed rows wait for others of their node
        self._gathered: SimpleQueue[GatheredRows] = SimpleQueue()  # to which no thread puts rows
        self._counts: list[int] = []  # of rows; threads append to it

    @property
    def n_rows(self) -> int:
        """The rows of these nodes that were added."""
        return sum(self._counts)

    def add_all(self, blocks: list[Block]) -> None:
        """Add the rows of these blocks, which are all there are, and finish all parts."""
        spans = self._spans(blocks)
        n_entries = self.n_rows * sum(len(part.features) for part in self._parts)
        n_threads = min(self._threads.n, n_entries // ENTRIES_PER_THREAD)
        if self._has_few_parts and n_threads > 1:
            self._add_shares(blocks, spans, n_threads, self.n_rows)
            self.finish()
        else:
            self._add_parts(blocks, spans)

    def _add_parts(self, blocks: list[Block], spans: list[np.ndarray]) -> None:
        def add_part(part: Part) -> None:
            slots = part.begin()
            for group in by_visit(part.features, slots):
                self._add(blocks, spans, group, slots, fresh=True)
            part.finish()

        self._threads.map(add_part, self._parts)

    def begin_stream(self, blocks: list[Block]) -> None:
        """Add the rows of these blocks. Other blocks follow by `add_streamed`, then `finish`."""
        self._add_shares(blocks, self._spans(blocks), self._threads.n, n_rows=math.inf)  # unknown, but many
        n_tiles = sum(
            tiles_of(part.features, part.slots.offsets, part.slots.pool.shape[2]) for part in self._begun()
        )
        self._gathers = n_tiles > CACHED_TILES and not self._statistic.wide
        free: defaultdict[int, SimpleQueue[Share]] = defaultdict(SimpleQueue)
        for share in self._shares:
            free[int(share.features[0])].put(share)
        self._free = [*free.values()]

    def add_streamed(self, block: Block, helpers: Threads) -> None:
        """Add the rows of a block. Several threads may do this at the same time.

        A thread waits if others add to all sums of some features. This is rare, because each begins with other features than the
        last one did.
        """
        with self._gathered_rows(block) as gathered:
            (spans,) = self._spans([block])
            if gathered is None:
                self._add_to_shares([block], [spans], helpers)
            else:
                self._add_to_shares(*gathered.put(block, spans), helpers)

    @contextmanager
    def _gathered_rows(self, like: Block) -> Iterator[GatheredRows | None]:
        """Take the room for rows of a thread, if any are to be gathered."""
        if not self._gathers:
            yield None
            return
        try:
            gathered = self._gathered.get_nowait()
        except Empty:
            gathered = GatheredRows(len(self._nodes), like)
        yield gathered
        self._gathered.put(gathered)

    def _add_to_shares(self, blocks: Sequence[Block], spans: Sequence[np.ndarray], helpers: Threads) -> None:
        """Add rows to sums to which no other thread adds meanwhile."""
        n_groups = len(self._free)
        turn = next(self._turns) % n_groups
        n_shares = helpers.n if n_groups < self._threads.n else 1

        def add_share(item: tuple[SimpleQueue[Share], int]) -> None:
            free, number = item
            share = free.get()
            own = [_part_of(some, number, n_shares) for some in spans]
            try:
                self._add(blocks, own, share.features, share.slots, fresh=False)
            finally:
                free.put(share)

        groups = self._free[turn:] + self._free[:turn]
        helpers.map(add_share, [(free, number) for free in groups for number in range(n_shares)])

    def _add_shares(
        self, blocks: list[Block], spans: list[np.ndarray], n_threads: int, n_rows: float
    ) -> None:
        fresh = not self._shares
        if fresh:
            n = -(-n_threads // len(self._parts))
            self._shares = [share for part in self._begun() for share in part.shares(n, n_rows)]

        def add_share(share: Share) -> None:
            own = [_part_of(some, share.number, share.n_shares) for some in spans]
            self._add(blocks, own, share.features, share.slots, fresh)

        self._threads.map(add_share, self._shares)

    def takes_blocks(self, n_blocks: int) -> bool:
        """Whether threads that visit so many blocks, which are all there are, do best to add them by `add_blocks`."""
        n = self._threads.n
        many = self._has_few_parts and n_blocks >= BLOCKS_PER_THREAD * n
        return many and all(part.most_copies >= n for part in self._begun())

    def add_blocks(self, blocks: list[Block]) -> None:
        """Add the rows of some blocks. All threads may do this at the same time. `finish` follows the last blocks."""
        spans = self._spans(blocks)
        for part in self._begun():
            with part.own_copy() as (slots, fresh):
                for group in by_visit(part.features, slots):
                    self._add(blocks, spans, group, slots, fresh)

    def finish(self) -> None:
        """Finish all parts."""
        waiting = [self._gathered.get() for _ in range(self._gathered.qsize())]
        if waiting:
            self._add_to_shares(waiting, [rows.take() for rows in waiting], self._threads)
        for part in self._begun():
            self._threads.map(part.add_up, part.groups_to_add_up())
            part.give_back()
        self._threads.map(lambda part: part.finish(), self._parts)

    def _begun(self) -> list[SharedPart]:
        if not self._shared:
            self._shared = [
                SharedPart(part, len(self._nodes), self._shared_bytes, self._spare) for part in self._parts
            ]
        return self._shared

    def _spans(self, blocks: list[Block]) -> list[np.ndarray]:
        """Return where the nodes' rows begin and end in each block, and count them."""
        spans = [
            block.spans[self._nodes] if self._again else self._statistic.spans(block, self._nodes)
            for block in blocks
        ]
        if spans:
            start, stop = np.moveaxis(np.array(spans), 2, 0)
            self._counts.append(int((stop - start).sum()))
        return spans

    def _add(
        self,
        blocks: Sequence[Block],
        spans: Sequence[np.ndarray],
        features: np.ndarray,
        sums: Slots,
        fresh: bool,
    ) -> None:
        target = Target(features, sums.offsets, sums.slots, sums.pool, fresh)
        if blocks:
            self._statistic.histogram(blocks, spans, target, self._scale, self._weight_factor)
        else:
            target.cleared()


class Share(NamedTuple):
    """What one thread sums at a time: some features, over a share of each node's rows."""

    features: np.ndarray
    slots: Slots
    number: int  # of the share
    n_shares: int


class SharedPart:
    """A part whose sums several threads compute. Those that share rows have copies of the sums, which are added up in the end.

    Attributes
    ----------
    slots : Slots
        The part's own sums.
    most_copies : int
        The most copies that there is room for, with the part's own.
    """

    def __init__(self, part: Part, n_nodes: int, shared_bytes: int, spare: Spare):
        self.features, self.slots = part.features, part.begin()
        self._n_nodes, self._spare = n_nodes, spare
        self.most_copies = 1 + shared_bytes // max(n_nodes * self.slots.pool[0].nbytes, 1)
        self._copies: list[Slots] = []
        self._memory: list[np.ndarray] = []
        self._free: LifoQueue[tuple[Slots, bool]] = LifoQueue()
        self._free.put((self.slots, True))

    def shares(self, n_threads: int, n_rows: float) -> list[Share]:
        """Divide the sums over so many rows between threads.

        They share the features if these do not fit in few tiles, or if the rows are so few that copies of the sums would take
        longer. Otherwise they share the rows: to visit a row for few features at a time would take longer.
        """
        pool, _, offsets = self.slots
        n_tiles = tiles_of(self.features, offsets, pool.shape[2])
        n_bins = self._n_nodes * int((offsets[self.features + 1] - offsets[self.features]).sum())
        few_rows = n_rows * len(self.features) < ENTRIES_PER_BIN * n_bins
        n_shares = 1 if few_rows else min(-(-n_threads // n_tiles), self.most_copies)
        groups = feature_groups(
            self.features, offsets, round_up(n_visits(n_tiles), -(-n_threads // n_shares))
        )
        copies = [self.slots, *(self._copy() for _ in range(1, n_shares))]
        return [
            Share(group, slots, number, n_shares) for number, slots in enumerate(copies) for group in groups
        ]

    @contextmanager
    def own_copy(self) -> Iterator[tuple[Slots, bool]]:
        """Take a copy that no other thread adds to meanwhile, and whether its content is arbitrary."""
        try:
            slots, fresh = self._free.get_nowait()
        except Empty:
            slots, fresh = self._copy(), True
        yield slots, fresh
        self._free.put((slots, False))

    def _copy(self) -> Slots:
        shape = self._n_nodes, *self.slots.pool.shape[1:]
        n = math.prod(shape)
        memory = self._spare.take(n)
        self._memory.append(memory)
        slots = Slots(memory[:n].reshape(shape), np.arange(self._n_nodes), self.slots.offsets)
        self._copies.append(slots)
        return slots

    def groups_to_add_up(self) -> list[np.ndarray]:
        """Return groups of features whose copies are to be added up, one for each thread that has summed, or none."""
        n = 1 + len(self._copies)
        return feature_groups(self.features, self.slots.offsets, n) if self._copies else []

    def add_up(self, features: np.ndarray) -> None:
        """Add the copies of the sums over some features to the part's own."""
        pool, slots, offsets = self.slots
        for run in np.split(features, np.flatnonzero(np.diff(features) > 1) + 1):  # of neighbouring features
            bins = slice(offsets[run[0]], offsets[run[-1] + 1])
            for copy in self._copies:
                for m, slot in enumerate(slots):
                    pool[slot, bins] += copy.pool[m, bins]

    def give_back(self) -> None:
        """Give back the memory of the copies."""
        for memory in self._memory:
            self._spare.give_back(memory)
        self._copies, self._memory = [], []


def by_visit(features: np.ndarray, sums: Slots) -> list[np.ndarray]:
    """Divide features into groups, for each of which the rows are visited once."""
    n_tiles = tiles_of(features, sums.offsets, sums.pool.shape[2])
    return feature_groups(features, sums.offsets, n_visits(n_tiles))


def _part_of(spans: np.ndarray, part: int, n_parts: int) -> np.ndarray:
    """Return the part of each span, (m, 2) int32."""
    if n_parts == 1:
        return spans
    start, n_rows = spans[:, 0], np.diff(spans)[:, 0].astype(np.int64)
    ends = [start + n_rows * n // n_parts for n in (part, part + 1)]
    return np.stack(ends, axis=1).astype(np.int32)
