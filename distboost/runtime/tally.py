"""The histograms of a question, summed over the blocks of one process by its threads."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from queue import Empty, SimpleQueue
from typing import TypeVar

import numpy as np

from distboost.kernels.histogram import TILES_AT_ONCE, Target
from distboost.rows.scales import Scale
from distboost.rows.sums import Statistic
from distboost.runtime.block import Block
from distboost.runtime.gathered import GatheredRows
from distboost.runtime.parts import Part, Portion, Share, SharedPart, Slots, Spare
from distboost.runtime.tiles import feature_groups, n_visits, tiles_of
from distboost.threads import Threads

ENTRIES_PER_THREAD = 2**16  # rows times features: with fewer, a thread costs more time than it saves
CACHED_TILES = TILES_AT_ONCE  # the sums of more do not stay in the cache from one block to the next
BLOCKS_PER_THREAD = 4  # with fewer, some thread would wait long for the others
NODES_PER_THREAD = 4  # likewise

Held = TypeVar("Held")


class Tally:
    """Adds the rows of blocks to the histograms of nodes.

    No two threads write to the same sums. If all blocks are in memory and there are enough parts, a thread takes a part from
    beginning to end, so that its sums are used while they are in the cache. Else, if there are many nodes, the threads share
    these. Else, if there are many blocks, a thread adds those that it visits to sums of its own. Else the threads share the
    features of a part, or the rows of each node. Threads that stream add a block each, to some features at a time. If the sums
    do not stay in the cache, few rows of a node wait for those of other blocks.

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
        self._shares_nodes = self._has_few_parts and len(nodes) >= NODES_PER_THREAD * threads.n
        self._shared: list[SharedPart] = []
        self._shares: list[Share] = []
        # For each group of features: the sums to which no thread adds, and whether their content is arbitrary.
        self._free: list[SimpleQueue[tuple[Share, bool]]] = []
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
        if not self._has_few_parts or n_threads < 2:
            self._threads.map(lambda part: self._add_part(part, blocks, spans), self._parts)
        elif self._shares_nodes:
            self._add_by_node(blocks, spans, n_threads)
        else:
            self._divide(n_threads, self.n_rows)
            self._add_shares(blocks, spans)
            self.finish()

    def _add_part(self, part: Portion, blocks: list[Block], spans: list[np.ndarray]) -> None:
        slots = part.begin()
        for group in by_visit(part.features, slots):
            self._add(blocks, spans, group, slots, fresh=True)
        part.finish()

    def _add_by_node(self, blocks: list[Block], spans: list[np.ndarray], n_threads: int) -> None:
        """Add the rows of nodes that have about as many in each thread."""
        n_rows = np.array([np.diff(own)[:, 0] for own in spans], np.int64).sum(axis=0)
        groups = even_groups(n_rows, -(-n_threads // len(self._parts)))
        own = [[some[group] for some in spans] for group in groups]
        pieces = [piece for part in self._parts for piece in zip(part.divided(groups), own, strict=True)]
        self._threads.map(lambda piece: self._add_part(piece[0], blocks, piece[1]), pieces)
        for part in self._parts:
            part.finish()

    def begin_stream(self, blocks: list[Block]) -> None:
        """Add the rows of these blocks. Other blocks follow by `add_streamed`, then `finish`."""
        # The rows are unknown, but many. With more groups than threads, there is nearly always one to which no thread adds.
        n_threads = self._threads.n
        self._divide(n_threads, math.inf, 2 if n_threads > 1 else 1)
        if blocks:
            self._add_shares(blocks, self._spans(blocks))
        n_tiles = sum(
            tiles_of(part.features, part.slots.offsets, part.slots.pool.shape[2]) for part in self._begun()
        )
        self._gathers = n_tiles > CACHED_TILES and not self._statistic.wide
        free: defaultdict[int, SimpleQueue[tuple[Share, bool]]] = defaultdict(SimpleQueue)
        for share in self._shares:
            free[int(share.features[0])].put((share, not blocks))
        self._free = [*free.values()]

    def add_streamed(self, block: Block, helpers: Threads) -> None:
        """Add the rows of a block. Several threads may do this at the same time.

        A thread waits if others add to the sums of all features that are left to it. This is rare, as there are more groups of
        features than threads.
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

        groups = self._free[turn:] + self._free[:turn]
        waiting = deque((free, number) for free in groups for number in range(n_shares))

        def add_share(_: int) -> None:
            free, (share, fresh), number = _first_free(waiting)
            try:
                own = [_part_of(some, number, n_shares) for some in spans]
                self._add(blocks, own, share.features, share.slots, fresh)
            finally:
                free.put((share, False))

        helpers.map(add_share, range(len(waiting)))

    def _divide(self, n_threads: int, n_rows: float, groups_per_thread: int = 1) -> None:
        """Divide the sums over so many rows between threads."""
        n, n_groups = (-(-n // len(self._parts)) for n in (n_threads, groups_per_thread * n_threads))
        self._shares = [share for part in self._begun() for share in part.shares(n, n_rows, n_groups)]

    def _add_shares(self, blocks: list[Block], spans: list[np.ndarray]) -> None:
        """Add rows to sums of arbitrary content, which is replaced."""

        def add_share(share: Share) -> None:
            own = [_part_of(some, share.number, share.n_shares) for some in spans]
            self._add(blocks, own, share.features, share.slots, fresh=True)

        self._threads.map(add_share, self._shares)

    def _clear_shares(self) -> None:
        """Clear the sums to which no rows of the stream were added."""
        left = [free.get() for free in self._free for _ in range(free.qsize())]
        fresh = [share for share, is_fresh in left if is_fresh]
        self._threads.map(lambda share: self._add([], [], share.features, share.slots, fresh=True), fresh)

    def takes_blocks(self, n_blocks: int) -> bool:
        """Whether threads that visit so many blocks, which are all there are, do best to add them by `add_blocks`."""
        n = self._threads.n
        many = self._has_few_parts and not self._shares_nodes and n_blocks >= BLOCKS_PER_THREAD * n
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
        self._clear_shares()
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
        self._counts += [int((own[:, 1] - own[:, 0]).sum()) for own in spans]
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


def _first_free(waiting: deque[tuple[SimpleQueue[Held], int]]) -> tuple[SimpleQueue[Held], Held, int]:
    """Take the first entry to whose sums no thread adds. Return its queue, these sums and its number. If there is none, wait."""
    for _ in range(len(waiting) - 1):
        free, number = waiting.popleft()
        try:
            return free, free.get_nowait(), number
        except Empty:
            waiting.append((free, number))
    free, number = waiting.popleft()
    return free, free.get(), number


def even_groups(sizes: np.ndarray, n: int) -> list[np.ndarray]:
    """Divide the positions of sizes, (m,) int64, into at most n groups of about the same total.

    >>> even_groups(np.array([5, 1, 3, 2]), 2)
    [array([0, 1]), array([2, 3])]
    """
    totals = [(0, number) for number in range(n)]
    groups: list[list[int]] = [[] for _ in totals]
    for place in np.argsort(-sizes, kind="stable").tolist():
        total, number = totals[0]
        groups[number].append(place)
        heapq.heapreplace(totals, (total + int(sizes[place]), number))
    return [np.array(sorted(group)) for group in groups if group]


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
