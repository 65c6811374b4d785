"""A grown tree, and its step on the scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distboost.kernels import partition, update
from distboost.rows.block import BlockRows
from distboost.rows.messages import NO_SETS


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
        for node, children in enumerate(zip(self.left, self.right, strict=True)):
            for child in children:
                if child >= 0:
                    depths[child] = depths[node] + 1  # children come after their parents
        return max(depths, default=0)


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
            rows, leaf = block.present, np.empty(len(block.present), np.int32)
            partition.leaf_of_binned(block.bins, missing_bin, *self.tree, rows, leaf)
        update.add_by_leaf(block.scores, rows, leaf, self.values)
