"""The histograms of a question, summed over the blocks of one process by its threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from distboost.kernels.histogram import TILE_BYTES, Target
from distboost.rows.protocols import Statistic
from distboost.rows.scales import Scale
from distboost.runtime.block import Block
from distboost.threads import Threads

FEW_ENTRIES = 2**17  # rows times features: to sum them takes less time than to share them out
SHARED_BYTES = 2**26  # the most that the sums of threads that share rows take


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


class Tally:
    """Adds the rows of blocks to the histograms of nodes.

    No two threads write to the same sums. If all blocks are in memory and there are enough parts, a thread takes a part from
    beginning to end, so that its sums are used while they are in the cache. Else the threads share the features of a part, or
    the rows of each node.

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
    again : bool
        Whether the nodes were summed before, and may have children already.

    Attributes
    ----------
    n_rows : int
        The rows of these nodes that were added.
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
        again: bool = False,
    ):
        self._threads = threads
        self._statistic, self._scale, self._weight_factor = statistic, scale, weight_factor
        self._nodes, self._parts, self._again = nodes, parts, again
        self._shared_bytes = shared_bytes
        self._shares: list[SharedPart] | None = None
        self.n_rows = 0

    def add_all(self, blocks: list[Block]) -> None:
        """Add the rows of these blocks, which are all there are."""
        spans = self._spans(blocks)
        entries = self.n_rows * sum(len(part.features) for part in self._parts)
        few = len(self._parts) < self._threads.n
        if few and entries > FEW_ENTRIES:
            self.n_rows = 0
            self.add(blocks)
            self.finish()
            return

        def add_part(part: Part) -> None:
            slots = part.begin()
            n_tiles = tiles_of(part.features, slots.offsets, slots.pool.shape[2])
            for group in feature_groups(part.features, slots.offsets, n_tiles):
                self._add(blocks, spans, group, slots, fresh=True)
            part.finish()

        if few:
            for part in self._parts:
                add_part(part)
        else:
            self._threads.map(add_part, self._parts)

    def add(self, blocks: list[Block]) -> None:
        """Add the rows of these blocks."""
        fresh = self._shares is None
        if self._shares is None:
            n = -(-self._threads.n // len(self._parts))
            self._shares = [SharedPart(part, n, len(self._nodes), self._shared_bytes) for part in self._parts]
        spans = self._spans(blocks)

        def add_share(share: Share) -> None:
            own = [_part_of(some, share.number, share.n_shares) for some in spans]
            self._add(blocks, own, share.features, share.slots, fresh)

        self._threads.map(add_share, [share for part in self._shares for share in part.shares])

    def finish(self) -> None:
        """Finish all parts."""
        assert self._shares is not None
        for part in self._shares:
            self._threads.map(part.add_up, part.groups)  # nothing if the rows were not shared
        self._threads.map(lambda part: part.part.finish(), self._shares)

    def _spans(self, blocks: list[Block]) -> list[np.ndarray]:
        """Return where the nodes' rows begin and end in each block, and count them."""
        spans = [
            block.spans[self._nodes] if self._again else self._statistic.spans(block, self._nodes)
            for block in blocks
        ]
        self.n_rows += sum(int(np.diff(own).sum()) for own in spans)
        return spans

    def _add(
        self,
        blocks: list[Block],
        spans: list[np.ndarray],
        features: np.ndarray,
        sums: Slots,
        fresh: bool,
    ) -> None:
        target = Target(features, sums.offsets, sums.slots, sums.pool, fresh)
        for block, own in zip(blocks, spans, strict=True):
            self._statistic.histogram(block, own, target, self._scale, self._weight_factor)
            target = target._replace(fresh=False)
        target.cleared()


class Share(NamedTuple):
    """What one thread sums at a time: some features, over a share of each node's rows."""

    features: np.ndarray
    slots: Slots
    number: int  # of the share
    n_shares: int


class SharedPart:
    """A part whose sums several threads compute.

    They share the features if these do not fit in few tiles. Otherwise they share the rows, and all but the first add to sums of
    their own: to visit a row for few features at a time would take longer.
    """

    def __init__(self, part: Part, n_threads: int, n_nodes: int, shared_bytes: int):
        self.part, self.slots = part, part.begin()
        self._n_threads = n_threads
        pool, _, offsets = self.slots
        n_tiles = tiles_of(part.features, offsets, pool.shape[2])
        most = 1 + shared_bytes // max(n_nodes * pool[0].nbytes, 1)
        n_shares = min(-(-n_threads // n_tiles), most)
        groups = feature_groups(part.features, offsets, _round_up(n_tiles, -(-n_threads // n_shares)))
        self._others = [
            Slots(np.empty((n_nodes, *pool.shape[1:]), np.int64), np.arange(n_nodes), offsets)
            for _ in range(1, n_shares)
        ]
        self.shares = [
            Share(group, slots, number, n_shares)
            for number, slots in enumerate([self.slots, *self._others])
            for group in groups
        ]

    @property
    def groups(self) -> list[np.ndarray]:
        """Features whose shares a thread adds up."""
        return feature_groups(self.part.features, self.slots.offsets, self._n_threads) if self._others else []

    def add_up(self, features: np.ndarray) -> None:
        """Add up the sums of all shares for some features."""
        pool, slots, offsets = self.slots
        for run in np.split(features, np.flatnonzero(np.diff(features) > 1) + 1):  # of neighbouring features
            bins = slice(offsets[run[0]], offsets[run[-1] + 1])
            for other in self._others:
                for m, slot in enumerate(slots):
                    pool[slot, bins] += other.pool[m, bins]


def tiles_of(features: np.ndarray, offsets: np.ndarray, n_channels: int) -> int:
    """Return the number of tiles that the bins of these features fill, at least 1."""
    n_bins = int((offsets[features + 1] - offsets[features]).sum())
    return max(-(-n_bins * 4 * n_channels // TILE_BYTES), 1)


def feature_groups(features: np.ndarray, offsets: np.ndarray, n: int) -> list[np.ndarray]:
    """Divide features into at most n runs of about as many bins.

    >>> feature_groups(np.arange(4), np.array([0, 90, 100, 105, 110]), 2)
    [array([0]), array([1, 2, 3])]
    """
    n_bins = offsets[features + 1] - offsets[features]
    ends = np.cumsum(n_bins)
    middle = ends - n_bins / 2
    groups = np.split(features, np.searchsorted(middle, ends[-1] * np.arange(1, n) / n))
    return [group for group in groups if len(group)]


def _round_up(n: int, step: int) -> int:
    return -(-n // step) * step


def _part_of(spans: np.ndarray, part: int, n_parts: int) -> np.ndarray:
    """Return the part of each span, (m, 2) int32."""
    start, n_rows = spans[:, 0], np.diff(spans)[:, 0].astype(np.int64)
    ends = [start + n_rows * n // n_parts for n in (part, part + 1)]
    return np.stack(ends, axis=1).astype(np.int32)
