"""A grown tree, and its step on the scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distboost.kernels import leaves, partition, stored_bins, update
from distboost.kernels.row_lanes import COLUMN_LANES, MOST_LEAVES, bound_of
from distboost.rows.block import BlockRows
from distboost.rows.messages import NO_SETS
from distboost.rows.stored_bins import StoredBins

MOST_GROUPS = 32  # of columns: to read more takes longer than to descend


class BinnedTree(NamedTuple):
    """A tree with splits on bins. A child below 0 is the leaf ~child. `bin` and `sets` are as in `Splits`."""

    feature: np.ndarray
    bin: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sets: np.ndarray = NO_SETS

    @property
    def depth(self) -> int:
        """The largest number of splits between the root and a leaf."""
        depths = [1] * len(self.left)
        for node, children in enumerate(zip(self.left.tolist(), self.right.tolist(), strict=True)):
            for child in children:
                if child >= 0:
                    depths[child] = depths[node] + 1  # children come after their parents
        return max(depths, default=0)

    def leaves_of(
        self, bins: np.ndarray | StoredBins, missing_bin: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Return the leaf that each row falls into.

        Parameters
        ----------
        bins : ndarray of shape (n, D), uint8, or StoredBins
        missing_bin : ndarray of shape (D,), int64
            The bin of missing values.
        rows : ndarray of shape (r,), int32

        Returns
        -------
        leaf : ndarray of shape (r,), int32
        """
        leaf, m = np.zeros(len(rows), np.int32), len(self.feature)
        if m == 0:
            return leaf
        missing = missing_bin[self.feature]
        groups, group = np.unique(self.feature // COLUMN_LANES, return_inverse=True)
        is_dense = not isinstance(bins, StoredBins)
        if is_dense and m < MOST_LEAVES and len(groups) <= MOST_GROUPS and self.bin.min() >= 0:
            column = COLUMN_LANES * group + self.feature % COLUMN_LANES
            bound = bound_of(self.bin, np.where(self.missing_left, 256 - missing, 0))
            nodes = np.column_stack([column, bound, self._children(m + 1, 0)]).astype(np.uint32)
            columns = (COLUMN_LANES * groups).astype(np.uint64)
            leaves.choose_leaves(bins, columns, nodes, m + 1, rows, leaf)
            return leaf
        nodes = np.column_stack([self.feature, self.bin, np.where(self.missing_left, missing, -1)])
        nodes = np.concatenate([nodes, np.zeros((m + 1, 3))]).astype(np.int64)
        own = np.arange(m, 2 * m + 1)  # the leaves, which are their own children
        child = np.concatenate([self._children(0, m), np.column_stack([own, own])]).astype(np.int32)
        if isinstance(bins, StoredBins):
            stored_bins.descend_stored(*bins.rows, bins.usual, nodes, self.sets, child, rows, leaf)
        else:
            leaves.descend(bins, nodes, self.sets, child, rows, leaf)
        return leaf - m

    def _children(self, first_node: int, first_leaf: int) -> np.ndarray:
        """Return the numbers of all nodes' children, (m, 2), where nodes and leaves are counted from these numbers on."""
        child = np.column_stack([self.left, self.right])
        return np.where(child < 0, first_leaf + ~child, first_node + child)


def numbered(inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the inner nodes of a growing tree, and its leaves, in the order of their parents.

    Parameters
    ----------
    inner : ndarray of shape (m,), int64
        The nodes that were split, in this order; none: the tree is a leaf, node 0.
    left, right : ndarray of shape (m,), int64
        The children of each. The right one has the higher number.

    Returns
    -------
    numbers : ndarray of shape (2, m), int32
        The numbers of the left and of the right children; ~number if the child is a leaf.
    leaves : ndarray of shape (n_leaves,), int64
        The node of each leaf.
    """
    numbers, leaves = np.empty((2, len(inner)), np.int32), np.empty(len(inner) + 1, np.int64)
    partition.number_nodes(inner, left, right, numbers, leaves)
    return numbers, leaves


class Cover(NamedTuple):
    """The rows in each leaf that the tree was grown on: all rows, or those that were drawn for it.

    Rows are drawn by `subsample`, and `statistic_bits` leaves out those whose statistic is rounded to nothing. The numbers of an
    inner node are the sums of its leaves.
    """

    rows: (
        np.ndarray
    )  # (n_leaves,) int64: their number; if all weights are whole, a row of weight 2 is two rows
    weight: (
        np.ndarray
    )  # (n_leaves,) float64: the sum of their weights, as `data.row_weights.WeightRule` multiplies them


class TreeStep(NamedTuple):
    """A tree whose leaves add `values` to the scores."""

    tree: BinnedTree
    values: np.ndarray  # (leaves, n_scores)
    leaves: np.ndarray | None = None  # the partition's nodes, if the rows still lie partitioned by this tree

    def add(self, block: BlockRows, missing_bin: np.ndarray, partitioned: bool) -> None:
        """Add the leaves' values to the scores of a block's rows."""
        if partitioned and self.leaves is not None:
            rows, leaf = block.rows_in(self.leaves)
        else:
            rows, leaf = block.present, self.tree.leaves_of(block.held, missing_bin, block.present)
        (columns,) = np.logical_or.reduce(self.values).nonzero()
        if len(columns) == 1:  # a tree of a committee, of which there are as many as columns
            update.add_to_column(block.scores, rows, leaf, self.values, columns[0])
        else:
            update.add_by_leaf(block.scores, rows, leaf, self.values)
