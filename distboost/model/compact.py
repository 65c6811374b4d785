"""Trees as prediction needs them: vectors of rows take each decision at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distboost.kernels import predict
from distboost.kernels.row_lanes import ROW_LANES, SCORE_LANES

MOST_LEAVES = 256  # of a tree: above, it is faster to descend
_LINE = 64  # bytes of a cache line: a vector that lies in two lines takes twice the time


class CompactTrees(NamedTuple):
    """The trees of an ensemble, with thresholds as ranks: their numbers among all thresholds on the same feature.

    A column is a feature that trees split on.

    Attributes
    ----------
    features : ndarray of shape (columns,), uint64
    thresholds, offsets : ndarray
        See `kernels.predict.rank_rows`.
    missing : int
        The rank of missing values.
    nodes, starts, values : ndarray
        See `kernels.predict.add_ranked_trees`.
    leaves : ndarray of shape (most_leaves,), uint8 or uint16
        The numbers of the leaves of the largest tree. Ranks have the same type.
    """

    features: np.ndarray
    thresholds: np.ndarray
    offsets: np.ndarray
    missing: int
    nodes: np.ndarray
    starts: np.ndarray
    values: np.ndarray
    leaves: np.ndarray

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> CompactTrees | None:
        """Lay out the trees of these arrays (`TreeEnsemble.arrays`).

        None if a tree or a feature has too many numbers, or if trees split categories.
        """
        if np.isnan(arrays["threshold"]).any():
            return None
        most = int(np.diff(arrays["value_offsets"]).max(initial=1))
        features, column = np.unique(arrays["feature"], return_inverse=True)
        order = np.lexsort((arrays["threshold"], column))
        column_of, threshold = column[order], arrays["threshold"][order]
        is_new = np.ones(len(order), bool)
        is_new[1:] = (column_of[1:] != column_of[:-1]) | (threshold[1:] != threshold[:-1])
        count = np.bincount(column_of[is_new], minlength=len(features))
        before = np.cumsum(count) - count
        rank = np.empty(len(order), np.int64)
        rank[order] = np.cumsum(is_new) - 1 - before[column_of]

        # No value is above an infinite threshold. The rank of missing values is above that of all others, which is at most:
        largest = np.bincount(column_of[is_new & (threshold < np.inf)]).max(initial=0)
        missing = 2**8 - 1 if largest < 2**8 - 1 else 2**16 - 1
        if most > MOST_LEAVES or largest >= missing or len(arrays["values"]) >= 2**32:
            return None

        offsets = np.concatenate([[0], np.cumsum(2 ** np.frexp(count)[1] - 1)])
        thresholds = np.full(offsets[-1], np.inf)
        thresholds[offsets[column_of] + rank[order]] = threshold
        shift = arrays["missing_left"].astype(np.int64)
        sides = [np.where(side < 0, ~side, most + side) for side in (arrays["left"], arrays["right"])]
        values = arrays["values"]
        padded = _aligned((len(values), -(-values.shape[1] // SCORE_LANES) * SCORE_LANES), values.dtype)
        padded[:, : values.shape[1]] = values
        return cls(
            features.astype(np.uint64),
            thresholds,
            offsets.astype(np.uint64),
            missing,
            np.column_stack([column, (rank + shift) << 1 | shift, *sides]).astype(np.uint32),
            np.column_stack([arrays["roots"], arrays["value_offsets"]]),
            padded,
            np.arange(most, dtype=np.min_scalar_type(missing)),
        )

    def ranked(self, X: np.ndarray, first: int, last: int) -> np.ndarray:
        """Return the ranks of rows X (n, D), read-only float32 or float64, that the trees first .. last - 1 need."""
        n_groups = -(-len(X) // ROW_LANES)
        ranks = _aligned((n_groups * len(self.features), ROW_LANES), self.leaves.dtype)
        root, end = self.starts[[first, last], 0]
        columns = np.unique(self.nodes[root:end, 0]).astype(np.uint64)
        lanes = np.zeros(ROW_LANES), np.zeros(ROW_LANES, np.uint64)
        predict.rank_rows(
            X, columns, self.features, self.thresholds, self.offsets, self.missing, *lanes, ranks
        )
        return ranks

    def add(self, ranks: np.ndarray, first: int, last: int, F: np.ndarray) -> None:
        """Add the trees first .. last - 1 to the scores F (n, n_scores) of ranked rows."""
        n_scores, width = F.shape[1], self.values.shape[1]
        chosen = _aligned((2 * len(self.leaves), ROW_LANES), self.leaves.dtype)
        chosen[: len(self.leaves)] = self.leaves[:, None]
        leaf = np.empty((predict.RANKED_TREES, predict.RANKED_ROWS), np.uint32)
        scores = _aligned((len(F), width), F.dtype)
        scores[:, :n_scores] = F
        predict.add_ranked_trees(
            ranks, len(self.features), self.nodes, self.starts, self.values, first, last, chosen, leaf, scores
        )
        F[:] = scores[:, :n_scores]


def _aligned(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Return zeros that begin with a cache line."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    memory = np.zeros(n_bytes + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    return memory[begin : begin + n_bytes].view(dtype).reshape(shape)
