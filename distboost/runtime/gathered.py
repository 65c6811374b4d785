"""Rows of streamed blocks that wait, node by node, to be added to the histograms together.

The sums of many features do not stay in the cache. To load and store those of a node takes as long as to add some hundreds of
rows, and a block may have fewer of a deep node. So these rows are copied until there are enough, of several blocks.
"""

from __future__ import annotations

import numpy as np

from distboost.data.blocks import BinnedRows
from distboost.data.memory import empty
from distboost.kernels.gather import gather
from distboost.runtime.block import Block, Traits

MOST_BYTES = 2**24


def room_bytes(like: Block) -> int:
    """Return the most bytes that the rows take: what the memory plan has for the reading of a block, which is over by then."""
    return min(2 * like.bins.nbytes, MOST_BYTES)


class GatheredRows(Block):
    """Room for rows of some nodes, with their statistic.

    Parameters
    ----------
    n_nodes : int
    like : Block
        A block that has the statistic of the growing tree, which is narrow.
    """

    def __init__(self, n_nodes: int, like: Block):
        n_features, n_channels = like.bins.shape[1], like.kept("statistics").shape[1]
        # Of one size for any number of nodes, so that it is used again.
        memory = empty((room_bytes(like),), np.uint8)
        self._room = len(memory) // (n_nodes * (n_features + 4 * n_channels))
        n = n_nodes * self._room
        statistics, bins = np.split(memory, [4 * n * n_channels])
        bins = bins[: n * n_features].reshape(n, n_features)
        bins[:1] = like.bins[:1]  # of features that do not vary
        traits = Traits(0.0, has_unit_weights=True, are_present=True, varying=np.zeros(n_features, bool))
        rows = BinnedRows(0, bins, np.zeros(n, np.int32), np.zeros(n))  # no label or weight is read
        super().__init__(rows, like.n_classes, 0, "float64", traits=traits)
        self.order = np.arange(n, dtype=np.int32)
        self.buffers["statistics"] = statistics.view(np.int32).reshape(n, n_channels)
        self._starts = self._room * np.arange(n_nodes)
        self._ends = self._starts.copy()

    def put(self, block: Block, spans: np.ndarray) -> tuple[list[Block], list[np.ndarray]]:
        """Take the rows of the nodes of which a block has few.

        Return the rows to add now: the block and these, with a span for each node, (m, 2) int32, which is empty for some.
        """
        most = (
            self._room // 3
        )  # rows: at least two thirds of the room are in use when those of a node are added
        is_taken = spans[:, 1] - spans[:, 0] <= most
        varying = self.varying
        if self.n_rows and block.n_rows:
            varying = varying | block.varying | (block.bins[0] != self.bins[0])
        self.traits = self.traits._replace(heaviest=max(self.heaviest, block.heaviest), varying=varying)
        rows = block.bins, block.order, spans, block.kept("statistics")
        gather(*rows, is_taken, self._ends, self.bins, self.kept("statistics"))
        rest = np.where(is_taken[:, None], spans[:, :1], spans)
        return [block, self], [rest, self.take(self._ends - self._starts > self._room - most)]

    def take(self, nodes: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return the spans of the rows that wait in these nodes, (m, 2) int32, empty for the others. They no longer wait."""
        spans = np.repeat(self._starts.astype(np.int32)[:, None], 2, axis=1)
        spans[nodes, 1] = self._ends[nodes]
        self._ends[nodes] = self._starts[nodes]
        return spans
