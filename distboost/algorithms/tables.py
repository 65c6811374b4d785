"""Sums of margin weights on the two sides of a weak learner of -1 and +1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from distboost.rows.messages import Rows
from distboost.trees.grower import Tree
from distboost.weights.margin import ClassPairs, HitsAndMisses, LevelPairs, MarginWeights

# Up to this many numbers, a single reduction returns K x K sums per leaf. Beyond it, two smaller reductions are made.
LARGEST_TABLE = 2**22

# Beyond this many numbers in the table of both sides, classes to which a code gives the same value are summed together.
LARGEST_SIDES = 2**26

# The most values that a code has: -1 and +1, or a coordinate of the simplex.
MOST_LEVELS = 3


def table_size(n_leaves: int, n_classes: int) -> int:
    """The most numbers in one reduction of `side_table`, for trees of at most `n_leaves` leaves."""
    # The table of a tree, or those of its two sides, of K x K sums each; the hits and misses, if the tree has too many leaves.
    tables = max(min(n_leaves, LARGEST_TABLE // n_classes**2), 2)
    largest = tables * n_classes**2
    return largest if n_leaves <= tables else max(largest, 2 * n_leaves * n_classes)


def code_table_size(n_leaves: int, n_classes: int) -> int:
    """`table_size` for the levels of a code."""
    if _is_small(n_classes):
        return table_size(n_leaves, n_classes)
    return n_leaves * MOST_LEVELS**2


def levels_of(code: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The values of a code (K,) and the level of each class: which of them it has. (code, None) if K x K sums are few enough.

    What depends on the values alone, such as the step along the code, follows from sums over levels as from those over classes.
    """
    if _is_small(len(code)):
        return code, None
    values, levels = np.unique(code, return_inverse=True)
    return values, levels


def _is_small(n_classes: int) -> bool:
    return 2 * n_classes**2 <= LARGEST_SIDES


def side_table(
    rows: Rows,
    tree: Tree,
    weighting: MarginWeights,
    choose: Callable[[np.ndarray], np.ndarray],
    levels: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The leaves' signs (n_leaves,), and T (2, K, K): the sums of u[i, k] by side, class of the row and k.

    Side 0 is that of the leaves of sign -1, side 1 of +1. `choose` returns the signs from the leaves' residuals S (n_leaves, K).
    With `levels` (K,), T and S are sums over the classes of each level.
    """
    if levels is not None or tree.n_leaves * rows.n_classes**2 <= LARGEST_TABLE:
        pairs = ClassPairs(weighting) if levels is None else LevelPairs(weighting, levels)
        T = rows.sums(pairs, tree.leaves)
        sign = choose(T.sum(axis=2) - T.sum(axis=1))
        return sign, np.stack([T[sign < 0].sum(axis=0), T[sign > 0].sum(axis=0)])
    hits, misses = np.moveaxis(rows.sums(HitsAndMisses(weighting), tree.leaves), 1, 0)
    sign = choose(hits - misses)
    T = rows.sums(ClassPairs(weighting, (sign > 0).astype(np.int64)), tree.leaves)
    return sign, T if len(T) == 2 else np.concatenate([T, np.zeros_like(T)])
