"""Histograms that gather in one process: the pieces that others send are added, each once."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from distboost.kernels import exchange, simd
from distboost.rows.messages import Expanded, Expansion
from distboost.splits.tree_histograms import TreeHistograms, offsets_of


class Piece(NamedTuple):
    """A process's sums of some nodes over the bins of some features, without bins whose sums are all zero."""

    attempt: int
    part: (
        int | None
    )  # whose owner is to add them; None: whoever collects these features for the sender's group
    sender: int
    first: int  # of the nodes, by their position in the question
    occupied: np.ndarray  # (n_nodes, n_bins) bool: which bins are there
    sums: np.ndarray  # (n, n_channels) int32, or int64 if they do not fit


class Sums(NamedTuple):
    """Sums of nodes over the bins of features."""

    values: np.ndarray  # (n_nodes, n_bins, channels with padding) int64
    offsets: np.ndarray  # (n_features + 1,) int64: where the bins of each feature begin

    @classmethod
    def within(
        cls, memory: np.ndarray, n_bins: np.ndarray, features: np.ndarray, n_nodes: int, n_channels: int
    ) -> tuple[np.ndarray, Sums]:
        """Return memory, the given one if it suffices, and sums in it, whose content is arbitrary."""
        offsets = offsets_of(n_bins, features)
        shape = n_nodes, int(offsets[-1]), simd.padded_sums(n_channels)
        if memory.size < math.prod(shape):
            memory = np.empty(math.prod(shape), np.int64)
        return memory, cls(memory[: math.prod(shape)].reshape(shape), offsets)

    def packed(self, features: np.ndarray, nodes: range, n_channels: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which bins of some features and nodes are not all zero, and the sums of these bins."""
        values = self.values[nodes.start : nodes.stop]
        n_bins = int((self.offsets[features + 1] - self.offsets[features]).sum())
        occupied = np.empty((len(nodes), n_bins), bool)
        # Most sums over the rows of one process fit into 32 bits. The system provides memory only for what is written.
        for dtype in (np.int32, np.int64):
            sums = np.empty((len(nodes) * n_bins, n_channels), dtype)
            n = exchange.pack(values, features, self.offsets, occupied, sums)
            if n >= 0:
                return occupied, sums[:n]
        raise AssertionError("all sums fit into 64 bits")


class Gathering:
    """Adds up the pieces of an attempt, until another one begins. Several threads may add at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempt = 0

    def _begin(self, attempt: int, pool: np.ndarray, slots: np.ndarray) -> None:
        """Begin with nothing in pool[slots]. The caller has the lock."""
        self._attempt, self._pool, self._slots = attempt, pool, slots
        self._fresh = np.ones(len(slots), bool)  # the slots with arbitrary content

    @contextmanager
    def _during(self, attempt: int) -> Iterator[None]:
        """Take the lock. Another attempt may begin at any moment, and may count other rows."""
        with self._lock:
            if attempt != self._attempt:
                raise RuntimeError("another attempt has begun")
            yield

    def add(self, piece: Piece) -> None:
        """Add a piece."""
        with self._during(piece.attempt):
            nodes = slice(piece.first, piece.first + len(piece.occupied))
            exchange.add_packed(
                piece.occupied, piece.sums, self._slots[nodes], self._pool, self._fresh[nodes]
            )

    def add_own(self, attempt: int, sums: Sums, features: np.ndarray) -> None:
        """Add all nodes' sums of this process, in place of a piece."""
        with self._during(attempt):
            exchange.add_features(sums.values, features, sums.offsets, self._slots, self._pool, self._fresh)


class GroupSums(Gathering):
    """The sums of a group's rows, over the features that this process collects for the group.

    Parameters
    ----------
    n_bins : ndarray of shape (n_features,), int64
        Bins of all features of the data, without the bin for missing values.
    """

    def __init__(self, n_bins: np.ndarray):
        super().__init__()
        self._n_bins = n_bins
        self._memory = np.empty(0, np.int64)

    def begin(self, attempt: int, features: np.ndarray, n_nodes: int, n_channels: int) -> None:
        """Clear the sums."""
        with self._lock:
            self._memory, self._sums = Sums.within(self._memory, self._n_bins, features, n_nodes, n_channels)
            self._begin(attempt, self._sums.values, np.arange(n_nodes))

    def sums(self, attempt: int) -> Sums:
        """Return the sums, unless another attempt has begun."""
        with self._during(attempt):
            return self._sums


class OwnedPart(Gathering):
    """The histograms of the features that this process owns.

    Parameters
    ----------
    features : ndarray of shape (m,), int64
    tree : TreeHistograms
        Of these features alone.
    """

    def __init__(self, features: np.ndarray, tree: TreeHistograms):
        super().__init__()
        self.features, self._tree = features, tree
        self._question = 0
        self._answer: Expanded | None = None

    def begin(self, attempt: int, question: int, expansion: Expansion) -> bool:
        """Clear the sums of the question's nodes, and return True; but if there is an answer already, it stays."""
        with self._lock:
            if question != self._question:
                self._question, self._answer = question, None
                expansion = replace(expansion, features=np.arange(len(self.features)))
                self._nodes = np.array(self._tree.prepare(expansion), np.int64)
                self._expansion = expansion
            self._attempt = attempt
            if self._answer is None:
                self._begin(attempt, self._tree.histograms.pool, self._nodes)
            return self._answer is None

    def answer(self, attempt: int) -> Expanded:
        """Return the answer to the question, whose pieces have all been added."""
        with self._during(attempt):
            if self._answer is None:
                self._answer = self._tree.answer(self._expansion).of_features(self.features)
            return self._answer

    def search(self, node: int, context: np.ndarray) -> Expanded:
        """Find the best split of a node."""
        with self._lock:
            return Expanded(None, self._tree.search([node], context)).of_features(self.features)
