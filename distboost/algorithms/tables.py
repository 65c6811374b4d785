"""Sums of margin weights by the two sides of a weak learner of -1 and +1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from distboost.rows.interface import Rows
from distboost.trees.grower import Tree
from distboost.weights.margin import ClassPairs, HitsAndMisses, MarginWeights

# A table of K x K sums per leaf comes in one reduction, up to this many numbers; past it, two smaller ones do.
LARGEST_TABLE = 2**22


def side_table(
    rows: Rows, tree: Tree, weighting: MarginWeights, choose: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The sign of each leaf, and T[h, y, k]: the sum of u[i, k] over the rows of class y where the sign is - (h = 0) or +.

    `choose` gives the signs from the leaves' residuals S (n_leaves, K).
    """
    if tree.n_leaves * rows.n_classes**2 <= LARGEST_TABLE:
        T = rows.sums(ClassPairs(weighting), tree.leaves)
        sign = choose(T.sum(axis=2) - T.sum(axis=1))
        return sign, np.stack([T[sign < 0].sum(axis=0), T[sign > 0].sum(axis=0)])
    hits, misses = np.moveaxis(rows.sums(HitsAndMisses(weighting), tree.leaves), 1, 0)
    sign = choose(hits - misses)
    T = np.zeros((2, rows.n_classes, rows.n_classes))
    found = rows.sums(ClassPairs(weighting, (sign > 0).astype(np.int64)), tree.leaves)
    T[: len(found)] = found
    return sign, T
