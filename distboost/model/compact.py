"""Trees as prediction needs them: vectors of rows take each decision at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distboost.kernels import predict
from distboost.kernels.row_lanes import MOST_LEAVES, ROW_LANES, SCORE_LANES, SET_BITS, bound_of

# "Thresholds" of a feature with categories, whose values are bins: the rank of a bin is its number.
_BETWEEN_BINS = np.arange(254) + 0.5
MOST_CHOSEN = 1024  # leaves of a tree: to descend a larger one is faster
_LINE = 64  # bytes of a cache line: a vector that lies in two lines takes twice the time


class SetColumns(NamedTuple):
    """The splits of categories of some trees. A column holds up to 32 splits of neighbouring trees on one feature, one bit each.

    Attributes
    ----------
    starts : ndarray of shape (n_blocks + 1,), int64
        The first column of each block of `kernels.predict.SET_TREES` trees.
    most : int
        Columns of the block that has the most.
    ranked : ndarray of shape (n_columns,), uint64
        The column of ranks that each refers to.
    tables : ndarray of shape (n_columns, 256), uint32
        The splits at which each rank goes left. The rank of a category is its bin; that of missing values ends with 255.
    """

    starts: np.ndarray
    most: int
    ranked: np.ndarray
    tables: np.ndarray

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray], column: np.ndarray) -> tuple[SetColumns, np.ndarray]:
        """Lay out the splits of categories among these nodes, whose ranks are in these columns.

        Return also the number of each split's bit, counted from the first column of its block.
        """
        n_trees = len(arrays["roots"]) - 1
        is_set = arrays["category_set"] >= 0
        block = np.repeat(np.arange(n_trees), np.diff(arrays["roots"]))[is_set] // predict.SET_TREES
        order, block, column = _sorted(block, column[is_set])
        place = _place_in_run(block, column) % SET_BITS
        begins, number = np.flatnonzero(place == 0), np.cumsum(place == 0) - 1
        bins = arrays["categories"][order].astype("<u8").view(np.uint8)
        tables = np.zeros((len(begins), 256), np.uint32)
        for bit in range(SET_BITS):
            at = place == bit
            is_left = np.unpackbits(bins[at], axis=1, bitorder="little")
            tables[number[at]] |= is_left.astype(np.uint32) << np.uint32(bit)
        starts = np.searchsorted(block[begins], np.arange(-(-n_trees // predict.SET_TREES) + 1))
        bits = np.empty(len(order), np.int64)
        bits[order] = SET_BITS * (number - starts[block]) + place
        most = int(np.diff(starts).max())
        return cls(starts, most, column[begins].astype(np.uintp), tables), bits


def _sorted(*keys: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the order of entries by the first key, then by the next, and the sorted keys. Equal entries keep their order."""
    order = np.lexsort(keys[::-1])
    return order, *(key[order] for key in keys)


def _place_in_run(*keys: np.ndarray) -> np.ndarray:
    """Return the place of each entry among the neighbours that have the same keys, counted from 0."""
    begins = np.ones(len(keys[0]), bool)
    begins[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    number = np.arange(len(begins))
    return number - np.maximum.accumulate(np.where(begins, number, 0))


class CompactTrees(NamedTuple):
    """The trees of an ensemble, with thresholds as ranks: their numbers among all thresholds on the same feature.

    A column is a feature that trees split on. The ranks of a feature with categories are their bins.

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
    sets : SetColumns or None
        None if no tree splits categories.
    """

    features: np.ndarray
    thresholds: np.ndarray
    offsets: np.ndarray
    missing: int
    nodes: np.ndarray
    starts: np.ndarray
    values: np.ndarray
    leaves: np.ndarray
    sets: SetColumns | None

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> CompactTrees | None:
        """Lay out the trees of these arrays (`TreeEnsemble.arrays`). None if a tree or a feature has too many numbers."""
        most = int(np.diff(arrays["value_offsets"]).max(initial=1))
        features, column = np.unique(arrays["feature"], return_inverse=True)
        is_set = np.isnan(arrays["threshold"])
        with_sets = np.unique(column[is_set])
        n_numbers = len(column) - np.count_nonzero(is_set)
        order, column_of, threshold = _sorted(
            np.concatenate([column[~is_set], np.repeat(with_sets, len(_BETWEEN_BINS))]),
            np.concatenate([arrays["threshold"][~is_set], np.tile(_BETWEEN_BINS, len(with_sets))]),
        )
        is_new = np.ones(len(order), bool)
        is_new[1:] = (column_of[1:] != column_of[:-1]) | (threshold[1:] != threshold[:-1])
        count = np.bincount(column_of[is_new], minlength=len(features))
        before = np.cumsum(count) - count
        rank = np.empty(len(order), np.int64)
        rank[order] = np.cumsum(is_new) - 1 - before[column_of]

        # No value is above an infinite threshold. The rank of missing values is above that of all others, which is at most:
        largest = np.bincount(column_of[is_new & (threshold < np.inf)]).max(initial=0)
        missing = 2**8 - 1 if largest < 2**8 - 1 and most <= MOST_LEAVES else 2**16 - 1
        if most > MOST_CHOSEN or largest >= missing or len(arrays["values"]) >= 2**32:
            return None

        offsets = np.concatenate([[0], np.cumsum(2 ** np.frexp(count)[1] - 1)])
        thresholds = np.full(offsets[-1], np.inf)
        thresholds[offsets[column_of] + rank[order]] = threshold
        leaves = np.arange(most, dtype=np.min_scalar_type(missing))
        shift = arrays["missing_left"].astype(np.int64)
        bound = np.empty(len(column), np.int64)
        bound[~is_set] = bound_of(rank[:n_numbers], shift[~is_set])
        sets = None
        if len(with_sets):
            lane = 8 * leaves.itemsize
            sets, bits = SetColumns.of(arrays, column)
            column[is_set], bound[is_set] = len(features) + bits // lane, 1 << bits % lane
        sides = [np.where(side < 0, ~side, most + side) for side in (arrays["left"], arrays["right"])]
        values = arrays["values"]
        padded = _aligned((len(values), -(-values.shape[1] // SCORE_LANES) * SCORE_LANES), values.dtype)
        padded[:, : values.shape[1]] = values
        return cls(
            features=features.astype(np.uint64),
            thresholds=thresholds,
            offsets=offsets.astype(np.uint64),
            missing=missing,
            nodes=np.column_stack([column, bound, *sides]).astype(np.uint32),
            starts=np.column_stack([arrays["roots"], arrays["value_offsets"]]),
            values=padded,
            leaves=leaves,
            sets=sets,
        )

    def ranked(self, X: np.ndarray, first: int, last: int) -> np.ndarray:
        """Return the ranks of rows X (n, D), read-only float32 or float64, that the trees first .. last - 1 need."""
        n_groups, n_columns = -(-len(X) // ROW_LANES), len(self.features)
        ranks = _aligned((n_groups * n_columns, ROW_LANES), self.leaves.dtype)
        root, end = self.starts[[first, last], 0]
        columns = np.unique(self.nodes[root:end, 0])
        if self.sets is not None:
            blocks = [first // predict.SET_TREES, -(-last // predict.SET_TREES)]
            of_sets = self.sets.ranked[slice(*self.sets.starts[blocks])]
            columns = np.union1d(columns[columns < n_columns], of_sets)
        lanes = np.zeros(ROW_LANES), np.zeros(ROW_LANES, np.uint64)
        predict.rank_rows(
            X,
            columns.astype(np.uint64),
            self.features,
            self.thresholds,
            self.offsets,
            self.missing,
            *lanes,
            ranks,
        )
        return ranks

    def add(self, ranks: np.ndarray, first: int, last: int, F: np.ndarray) -> None:
        """Add the trees first .. last - 1 to the scores F (n, n_scores) of ranked rows."""
        n_scores, width = F.shape[1], self.values.shape[1]
        lane = self.leaves.dtype
        chosen = _aligned((2 * len(self.leaves), ROW_LANES), lane)
        chosen[: len(self.leaves)] = self.leaves[:, None]
        leaf = np.empty((predict.RANKED_TREES, predict.RANKED_ROWS), np.uint32)
        scores = _aligned((len(F), width), F.dtype)
        scores[:, :n_scores] = F
        members = words = None
        if self.sets is not None:
            rows = self.sets.most * (SET_BITS // (8 * lane.itemsize)) * (predict.RANKED_ROWS // ROW_LANES)
            members, words = _aligned((rows, ROW_LANES), lane), _aligned((1, ROW_LANES), np.dtype(np.uint32))
        predict.add_ranked_trees(
            ranks,
            len(self.features),
            self.nodes,
            self.starts,
            self.values,
            first,
            last,
            self.sets,
            members,
            words,
            chosen,
            leaf,
            scores,
        )
        F[:] = scores[:, :n_scores]


def _aligned(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Return zeros that begin with a cache line."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    memory = np.zeros(n_bytes + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    return memory[begin : begin + n_bytes].view(dtype).reshape(shape)
