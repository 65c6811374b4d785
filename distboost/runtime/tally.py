"""The histograms of a question, summed over the blocks of one process by its threads."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from queue import Empty, SimpleQueue

import numpy as np

from distboost.kernels.histogram import TILES_AT_ONCE, Target
from distboost.rows.stored_bins import StoredBins
from distboost.rows.summands import Summands, add_histograms, complete_histograms
from distboost.rows.sums import Scale, Statistic
from distboost.runtime.block import Block
from distboost.runtime.gathered import Waiting, WaitingBlocks
from distboost.runtime.parts import Part, Share, SharedPart, Slots, Spare, feature_groups, n_visits, tiles_of
from distboost.threads import Threads

ENTRIES_PER_THREAD = 2**16  # rows times features: with fewer, a thread costs more time than it saves
NODES_PER_THREAD = 4  # with fewer nodes, some thread would wait long for the others
CACHED_TILES = TILES_AT_ONCE  # the sums of more do not stay in the cache from one block to the next


class Tally:
    """Adds the rows of blocks to the histograms of nodes.

    No two threads write to the same sums. If all blocks are in memory and there are enough parts, a thread takes a part from
    beginning to end, so that its sums are used while they are in the cache. Else the threads share the nodes of a part if there
    are many, its features, or the rows of each node, for which they have copies of the sums. Threads that stream add a block
    each, to one share at a time. If the sums do not stay in the cache, few rows of a node wait for those of other blocks.

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
        *,
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
        self._shared: list[SharedPart] = []
        # For each group of features: the shares to which no thread adds, and whether their content is arbitrary.
        self._free: list[SimpleQueue[tuple[Share, bool]]] = []
        self._turns = count()
        self._gathers = False  # whether streamed rows wait for others of their node
        # To which no thread puts rows: of blocks with all bins, and of those with stored ones.
        self._waiting: tuple[SimpleQueue[Waiting | WaitingBlocks], ...] = SimpleQueue(), SimpleQueue()
        self._usual: np.ndarray | None = (
            None  # of blocks with stored bins: their sums are completed at the end
        )
        self._counts: list[int] = []  # of rows; threads append to it

    @property
    def n_rows(self) -> int:
        """The rows of these nodes that were added."""
        return sum(self._counts)

    def add_all(self, blocks: list[Block]) -> None:
        """Add the rows of these blocks, which are all there are, and finish all parts."""
        summands = self._summands(blocks)
        n_entries = self.n_rows * sum(len(part.features) for part in self._parts)
        n_threads = min(self._threads.n, n_entries // ENTRIES_PER_THREAD)
        if len(self._parts) >= self._threads.n or n_threads < 2:
            self._threads.map(lambda part: self._add_part(part, summands), self._parts)
        else:
            many_nodes = len(self._nodes) >= NODES_PER_THREAD * n_threads
            shares = (
                self._by_node(n_threads, summands) if many_nodes else self._divided(n_threads, self.n_rows)
            )
            self._add_shares(summands, shares)
            self._finish()

    def _add_part(self, part: Part, summands: list[Summands]) -> None:
        slots = part.begin()
        n_tiles = tiles_of(part.features, slots.offsets, slots.pool.shape[2])
        for group in feature_groups(part.features, slots.offsets, n_visits(n_tiles)):
            self._add(summands, group, slots, fresh=True)
        part.finish()

    def begin_stream(self, blocks: list[Block]) -> None:
        """Add the rows of these blocks. Other blocks follow by `add_streamed`, then `finish_stream`."""
        # The rows are unknown, but many. With more groups than threads, there is nearly always one to which no thread adds.
        n_threads = self._threads.n
        shares = self._divided(n_threads, math.inf, 2 if n_threads > 1 else 1)
        if blocks:
            self._add_shares(self._summands(blocks), shares)
        n_tiles = sum(
            tiles_of(part.features, part.slots.offsets, part.slots.pool.shape[2]) for part in self._shared
        )
        self._gathers = n_tiles > CACHED_TILES and not self._statistic.wide
        free: defaultdict[int, SimpleQueue[tuple[Share, bool]]] = defaultdict(SimpleQueue)
        for share in shares:
            free[int(share.features[0])].put((share, not blocks))
        self._free = [*free.values()]

    def add_streamed(self, block: Block) -> None:
        """Add the rows of a block. Several threads may do this at the same time: each begins with other features."""
        (own,) = self._summands([block])
        is_stored = isinstance(own.bins, StoredBins)
        if is_stored:
            self._usual = own.stored.usual
        if not self._gathers:
            self._add_by_turns([own])
            return
        queue = self._waiting[is_stored]
        try:
            waiting = queue.get_nowait()
        except Empty:
            waiting = WaitingBlocks() if is_stored else Waiting(own)
        self._add_by_turns(waiting.put(own))
        queue.put(waiting)

    def _add_by_turns(self, summands: list[Summands]) -> None:
        """Add rows to all shares. Each call begins with other features."""
        if not summands:
            return
        turn = next(self._turns) % len(self._free)
        for free in self._free[turn:] + self._free[:turn]:
            self._add_to(free, summands)

    def finish_stream(self) -> None:
        """Finish all parts."""
        waiting = [
            rows for queue in self._waiting for _ in range(queue.qsize()) for rows in queue.get().take()
        ]
        if waiting:
            self._threads.map(lambda free: self._add_to(free, waiting), self._free)
        left = [free.get() for free in self._free for _ in range(free.qsize())]
        self._add_shares([], [share for share, is_fresh in left if is_fresh])  # clears them
        self._finish()

    def _add_to(self, free: SimpleQueue[tuple[Share, bool]], summands: list[Summands]) -> None:
        """Add rows to a share to which no other thread adds."""
        share, fresh = free.get()
        try:
            self._add(summands, share.features, share.slots, fresh, deferred=True)
        finally:
            free.put((share, False))

    def _by_node(self, n_threads: int, summands: list[Summands]) -> list[Share]:
        """Divide the nodes between threads, so that these have about as many rows."""
        n_rows = np.sum([np.diff(some.spans)[:, 0] for some in summands], axis=0, dtype=np.int64)
        largest_first = np.argsort(-n_rows, kind="stable")
        groups = [np.sort(largest_first[n :: 2 * n_threads]) for n in range(2 * n_threads)]
        return [share for part in self._begun() for share in part.shares_of_nodes(groups)]

    def _divided(self, n_threads: int, n_rows: float, groups_per_thread: int = 1) -> list[Share]:
        """Divide the sums over so many rows between threads."""
        n, n_groups = (-(-n // len(self._parts)) for n in (n_threads, groups_per_thread * n_threads))
        return [share for part in self._begun() for share in part.shares(n, n_rows, n_groups)]

    def _begun(self) -> list[SharedPart]:
        """Begin all parts."""
        self._shared = [
            SharedPart(part, len(self._nodes), self._shared_bytes, self._spare) for part in self._parts
        ]
        return self._shared

    def _add_shares(self, summands: list[Summands], shares: list[Share]) -> None:
        """Add rows to sums of arbitrary content, which is replaced."""

        def add_share(share: Share) -> None:
            own = [some.of_nodes(share.nodes).share(share.number, share.n_shares) for some in summands]
            self._add(own, share.features, share.slots, fresh=True)

        self._threads.map(add_share, shares)

    def _finish(self) -> None:
        for part in self._shared:
            self._threads.map(part.add_up, part.groups_to_add_up())
            part.give_back()
        if self._usual is not None:
            self._threads.map(self._complete, self._shared)
        self._threads.map(lambda part: part.finish(), self._parts)

    def _summands(self, blocks: list[Block]) -> list[Summands]:
        """Return the rows of the nodes in each block, and count them."""
        found = []
        for block in blocks:
            spans = block.spans[self._nodes] if self._again else self._statistic.spans(block, self._nodes)
            found.append(self._statistic.summands(block, spans, self._scale, self._weight_factor))
        self._counts += [some.n_rows for some in found]
        return found

    def _complete(self, part: SharedPart) -> None:
        if self._usual is not None:
            complete_histograms(self._usual, _target(part.features, part.slots, fresh=False))

    def _add(
        self,
        summands: Sequence[Summands],
        features: np.ndarray,
        sums: Slots,
        fresh: bool,
        deferred: bool = False,
    ) -> None:
        add_histograms(summands, _target(features, sums, fresh), self._weight_factor, deferred)


def _target(features: np.ndarray, sums: Slots, fresh: bool) -> Target:
    return Target(features, sums.offsets, sums.slots, sums.pool, fresh)
