"""Trees with a sign in each leaf, whose splits minimise the loss of the whole tree (Appel & Perona 2017)."""

from __future__ import annotations

import numpy as np

from distboost.kernels import gains
from distboost.rows.sums import Statistic
from distboost.trees.grower import Tree, TreeGrower


class WholeTree:
    """The weights that a growing tree gets right and wrong, by class: a leaf of sign + gets P right and N wrong."""

    def __init__(self, grow: TreeGrower):
        self.grow = grow
        self.sums = {0: self._sides(grow.nodes.sums[0])}  # (N, P) of each leaf
        self.signs = {0: 0}  # none yet

    def _sides(self, sums: np.ndarray) -> np.ndarray:
        return sums[: self.grow.n_sums].reshape(2, -1)  # integers: what is left of a node is exact

    def right_and_wrong(self, without: int) -> np.ndarray:
        """Return the weights that all leaves except `without` get right and wrong, (2, K) int64."""
        total = np.zeros(self.sums[without].shape)
        for leaf, sign in self.signs.items():
            if leaf != without:
                total += self.sums[leaf][::-sign]  # (P, N) right and wrong where + , (N, P) where -
        return total

    @property
    def is_constant(self) -> bool:
        """Whether all leaves have the same sign."""
        return len(self.signs) > 1 and len(set(self.signs.values())) == 1

    def improve(self, node: int) -> str:
        """Return the best change of a leaf: "split" it, "flip" its sign, or "keep" it.

        After "split", `children` has the sums of the two sides and `polarity` the sign of the right one.
        """
        others = self.right_and_wrong(node)
        nodes, sums, sign = self.grow.nodes, self.sums[node], self.signs[node]
        if sign:
            worth, flipped = _worth(others + sums[::-sign]), _worth(others + sums[::sign])
        else:
            worth, flipped = -sums.sum(dtype=np.float64), -np.inf  # the loss before the tree
        if nodes.is_summed[node]:
            context = np.concatenate([others, np.full((2, 1), worth)], axis=1)
            nodes.note([node], self.grow.rows.best_split(node, context))
        if flipped >= worth + max(nodes.best.gain[node], 0.0) and flipped > worth:
            nodes.best.gain[node] = 0.0
            return "flip"
        if not nodes.best.gain[node] > 0:
            return "keep"
        left = self._sides(nodes.best.left[node])
        right = sums - left
        self.children = left, right
        rising = _worth(others + left + right[::-1])
        falling = _worth(others + left[::-1] + right)
        self.polarity = 1 if not sign or rising >= falling else -1
        return "split"

    def replace(self, node: int, left: int, right: int) -> None:
        """Apply the split of `node` that `improve` found: its children become leaves of opposite signs."""
        del self.sums[node], self.signs[node]
        for leaf, sums, sign in zip(
            (left, right), self.children, (-self.polarity, self.polarity), strict=True
        ):
            self.sums[leaf], self.signs[leaf] = sums, sign


def _worth(sides: np.ndarray) -> float:
    """-L_f: -2 sum_k sqrt(s^T[k] s^F[k])."""
    return -2.0 * float(np.sqrt(sides[0] * sides[1]).sum())


def grow_whole_tree(grow: TreeGrower, statistic: Statistic) -> tuple[Tree, np.ndarray]:
    """Grow a tree whose loss L_f falls most with each split, level by level, from left to right; return also each leaf's sign.

    The root is the best stump, -1 on the left. Then each leaf in turn is replaced by the split, of either polarity, that lowers
    the loss of the whole tree most, given the other leaves. A split that leaves all rows on one side only flips the leaf's sign.
    If all leaves have the same sign in the end, the learner is a constant. A leaf stays as it is if nothing lowers the loss.
    """
    grow.init_root(statistic, gains.WHOLE_TREE, search=False)
    tree = WholeTree(grow)
    level = [0]
    while level:
        split, again = [], []
        for node in level:
            may_change = grow.may_split(grow.nodes.depth[node]) and not tree.is_constant
            change = tree.improve(node) if may_change else "keep"
            if change == "split":
                split.append(node)
                tree.replace(node, *grow.child_ids(len(split) - 1))
                continue
            grow.nodes.depth[node] += 1
            if change == "flip":
                tree.signs[node] *= -1
            if change == "flip" and grow.may_split(grow.nodes.depth[node]):
                again.append(node)
            elif grow.nodes.is_summed[node]:
                grow.rows.forget([node])
        siblings, bare = grow.split(np.array(split, np.int64))
        if siblings:
            grow.rows.best_splits(siblings, search=False)
        children = [child for pair in siblings for child in (pair.smaller, pair.larger)]
        level = sorted([*children, *bare, *again])
    found = grow.finished()
    return found, np.array([tree.signs[leaf] or 1 for leaf in found.leaves.tolist()], np.float64)
