"""Rows of streamed blocks that wait, node by node, to be added to the histograms together.

The sums of many features do not stay in the cache. To load and store those of a node takes as long as to add some hundreds of
rows, and a block may have fewer of a deep node. So these rows are copied until there are enough, of several blocks.
"""

from __future__ import annotations

import numpy as np

from distboost.data.memory import empty
from distboost.kernels.gather import gather
from distboost.rows.stored_bins import StoredBins
from distboost.rows.summands import Summands

MOST_BYTES = 2**24


def room_bytes(bins: np.ndarray | StoredBins) -> int:
    """Return the most bytes that the rows take: what the memory plan has for the reading of a block, which is over by then."""
    n_bytes = bins.n_rows * len(bins.usual) if isinstance(bins, StoredBins) else bins.nbytes
    return min(2 * n_bytes, MOST_BYTES)


class WaitingBlocks:
    """Blocks that wait as they are, because few of their bins are stored."""

    def __init__(self) -> None:
        self._rows: list[Summands] = []
        self._room = 0

    def put(self, rows: Summands) -> list[Summands]:
        """Take the rows of a block. Return those to add now: of all blocks, or none."""
        self._room = self._room if self._rows else room_bytes(rows.stored)
        self._rows.append(rows)
        arrays = (*rows.stored.rows, rows.order, rows.vectors)
        self._room -= sum(array.nbytes for array in arrays)
        return self.take() if self._room < 0 else []

    def take(self) -> list[Summands]:
        """Return the rows that wait. They no longer wait."""
        rows, self._rows = self._rows, []
        return rows


class Waiting:
    """Room for rows of some nodes, with their int32 vectors.

    Parameters
    ----------
    like : Summands
        Rows of the same nodes and features, with vectors of the same length.
    """

    def __init__(self, like: Summands):
        n_nodes, n_features, n_channels = len(like.spans), like.dense.shape[1], like.vectors.shape[1]
        # Of one size for any number of nodes, so that it is used again.
        memory = empty((room_bytes(like.dense),), np.uint8)
        self._room = len(memory) // (n_nodes * (n_features + 4 * n_channels))
        n = n_nodes * self._room
        vectors, bins = np.split(memory, [4 * n * n_channels])
        bins = bins[: n * n_features].reshape(n, n_features)
        bins[:1] = like.dense[:1]  # of features that do not vary
        self._starts = self._room * np.arange(n_nodes)
        self._ends = self._starts.copy()
        vectors, varying = vectors.view(np.int32).reshape(n, n_channels), np.zeros(n_features, bool)
        self._rows = like._replace(
            bins=bins, order=np.arange(n, dtype=np.int32), vectors=vectors, varying=varying
        )

    def put(self, rows: Summands) -> list[Summands]:
        """Take the rows of nodes with few. Return those to add now: of the other nodes, and of those for which many wait."""
        most = self._room // 3  # at least two thirds of the room are in use when those of a node are added
        own, spans = self._rows, rows.spans
        is_taken = spans[:, 1] - spans[:, 0] <= most
        varying = own.varying
        if len(own.dense) and len(rows.dense):
            varying = varying | rows.varying | (rows.dense[0] != own.dense[0])
        self._rows = own._replace(varying=varying, largest=max(own.largest, rows.largest))
        gather(rows.dense, rows.order, spans, rows.vectors, is_taken, self._ends, own.dense, own.vectors)
        rest = np.where(is_taken[:, None], spans[:, :1], spans)
        return [rows._replace(spans=rest), *self.take(self._ends - self._starts > self._room - most)]

    def take(self, nodes: np.ndarray | slice = slice(None)) -> list[Summands]:
        """Return the rows that wait in these nodes, and none of the others. They no longer wait."""
        spans = np.repeat(self._starts.astype(np.int32)[:, None], 2, axis=1)
        spans[nodes, 1] = self._ends[nodes]
        self._ends[nodes] = self._starts[nodes]
        return [self._rows._replace(spans=spans)]
