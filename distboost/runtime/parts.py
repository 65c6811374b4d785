"""The features of a question in parts, the memory for their sums, and how threads share a part."""

from __future__ import annotations

import math
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

import numpy as np

from distboost.kernels.histogram import TILE_BYTES, TILES_AT_ONCE
from distboost.kernels.simd import padded


def n_visits(n_tiles: int) -> int:
    """Return how often a thread visits the rows to fill so many tiles."""
    return -(-n_tiles // TILES_AT_ONCE)


def tiles_of(features: np.ndarray, offsets: np.ndarray, n_channels: int) -> int:
    """Return the number of tiles that the bins of these features fill, at least 1."""
    n_bins = int((offsets[features + 1] - offsets[features]).sum())
    return max(-(-n_bins * 4 * padded(n_channels) // TILE_BYTES), 1)


def feature_groups(features: np.ndarray, offsets: np.ndarray, n: int) -> list[np.ndarray]:
    """Divide features into at most n runs of about as many bins.

    >>> feature_groups(np.arange(4), np.array([0, 90, 100, 105, 110]), 2)
    [array([0]), array([1, 2, 3])]
    """
    if n == 1:
        return [features] if len(features) else []
    n_bins = offsets[features + 1] - offsets[features]
    ends = np.cumsum(n_bins)
    middle = ends - n_bins / 2
    groups = np.split(features, np.searchsorted(middle, ends[-1] * np.arange(1, n) / n))
    return [group for group in groups if len(group)]


def round_up(n: int, step: int) -> int:
    """Return the smallest multiple of `step` that is at least n."""
    return -(-n // step) * step


ENTRIES_PER_BIN = 32  # to copy the sums of a bin and add the copy to others takes as long as to add these
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


class StoredPart:
    """A part whose sums are only stored."""

    def __init__(self, features: np.ndarray, slots: Slots):
        self.features, self.slots = features, slots

    def begin(self) -> Slots:
        return self.slots

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


class Share(NamedTuple):
    """What one thread sums at a time: some features of some nodes, over a share of each node's rows."""

    features: np.ndarray
    slots: Slots  # of these nodes
    nodes: np.ndarray | slice = slice(None)  # positions in the question
    number: int = 0  # of the share
    n_shares: int = 1


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

    def shares(self, n_threads: int, n_rows: float, n_groups: int) -> list[Share]:
        """Divide the sums over so many rows between threads.

        They share the features, in at least `n_groups`, if these do not fit in few tiles, or if the rows are so few that copies
        of the sums would take longer. Otherwise they share the rows: to visit a row for few features at a time would take longer.
        """
        pool, _, offsets = self.slots
        n_tiles = tiles_of(self.features, offsets, pool.shape[2])
        n_bins = self._n_nodes * int((offsets[self.features + 1] - offsets[self.features]).sum())
        few_rows = n_rows * len(self.features) < ENTRIES_PER_BIN * n_bins
        n_shares = 1 if few_rows else min(-(-n_threads // n_tiles), self.most_copies)
        if n_shares > 1:
            n_groups = -(-n_threads // n_shares)
        groups = feature_groups(self.features, offsets, round_up(n_visits(n_tiles), n_groups))
        copies = [self.slots, *(self._copy() for _ in range(1, n_shares))]
        return [
            Share(group, slots, number=number, n_shares=n_shares)
            for number, slots in enumerate(copies)
            for group in groups
        ]

    def shares_of_nodes(self, groups: list[np.ndarray]) -> list[Share]:
        """Return a share for each group of nodes, (m,) int64 positions in the question, and the features of each visit."""
        pool, slots, offsets = self.slots
        n_tiles = tiles_of(self.features, offsets, pool.shape[2])
        visits = feature_groups(self.features, offsets, n_visits(n_tiles))
        return [
            Share(visit, Slots(pool, slots[group], offsets), group) for group in groups for visit in visits
        ]

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
