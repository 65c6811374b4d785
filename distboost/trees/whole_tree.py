"""Trees with a sign in each leaf, whose splits minimise the loss of the whole tree (Appel & Perona 2017)."""

from __future__ import annotations

import numpy as np

from distboost.kernels import gains
from distboost.kernels.signed_leaves import FLIP, KEEP, change_of, see_others
from distboost.rows.messages import Siblings
from distboost.rows.sums import Statistic
from distboost.trees.grower import Tree, TreeGrower


def grow_whole_tree(grow: TreeGrower, statistic: Statistic) -> tuple[Tree, np.ndarray]:
    """Grow a tree whose loss L_f falls most with each split, level by level, from left to right; return also each leaf's sign.

    The root is the best stump, -1 on the left. Then each leaf in turn is replaced by the split, of either polarity, that lowers
    the loss of the whole tree most, given the other leaves. A split that leaves all rows on one side only flips the leaf's sign.
    If all leaves have the same sign in the end, the learner is a constant. A leaf stays as it is if nothing lowers the loss.
    """
    if not grow.begin(statistic, gains.WHOLE_TREE, search=False):
        level = [0]
        while level:
            level = _improve(grow, level)
    tree = grow.finished()
    return tree, np.where(tree.sign < 0, -1.0, 1.0)


def _improve(grow: TreeGrower, level: list[int]) -> list[int]:
    """Improve the leaves of a level in turn; return those of the next one. `kernels.growing` does the same in one call."""
    pairs: list[Siblings] = []
    following: list[int] = []
    for node in level:
        nodes = grow.nodes
        change = _best_change(grow, node) if grow.may_split(nodes.depth[node]) else KEEP
        if change == FLIP:
            nodes.sign[node] *= -1
            nodes.depth[node] += 1
        elif change != KEEP:
            nodes.sign[node] = change
            summed, bare = grow.split(np.array([node]))
            pairs += summed
            following += bare
        if change == FLIP and grow.may_split(nodes.depth[node]):
            following.append(node)
        elif change in (KEEP, FLIP) and nodes.is_summed[node]:
            grow.rows.forget([node])
    if pairs:
        grow.rows.best_splits(pairs, search=False)
    return sorted([*following, *(child for pair in pairs for child in (pair.smaller, pair.larger))])


def _best_change(grow: TreeGrower, node: int) -> int:
    """Return the change of a leaf that lowers the loss of the tree most, after a search for its best split."""
    nodes, context = grow.nodes, np.empty((2, grow.n_sums // 2 + 1))
    if see_others(nodes.sums, nodes.child[: grow.n_nodes], nodes.sign, node, context):
        return KEEP
    if nodes.is_summed[node]:
        nodes.note([node], grow.rows.best_split(node, context))
    change: int = change_of(
        context, nodes.sums[node], nodes.sign[node], nodes.best.left[node], nodes.best.gain[node]
    )
    return change
