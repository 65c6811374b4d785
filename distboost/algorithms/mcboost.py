"""Multiclass boosting by descent in margin space (Saberian & Vasconcelos, NIPS 2011).

| paper | here |
| --- | --- |
| y_c, codewords of class c | vertices of the regular simplex in R^(K-1), unit length |
| f(x) in R^(K-1) | F[i, k] = <f(x_i), y_k>, K scores per row: nothing is lost, as sum_k y_k y_k' = delta I |
| delta | K / (K - 1) |
| R(f), eq. 15 | mean over rows of sum_k exp(-(F[i, y_i] - F[i, k]) / 2), k = y_i included |
| <y_c, w_i>, eq. 31-32 | delta / 2 V[i, c]: V[i, y_i] = sum_k e[i, k], V[i, k] = -e[i, k] |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.utils._param_validation import StrOptions

from distboost.algorithms.base import (
    LARGEST_RATIO,
    SEPARATED,
    Algorithm,
    Learner,
    Round,
    bounded_log_ratio,
    parameter,
    size,
    statistic_bytes,
    tree_signs,
)
from distboost.algorithms.solvers.linesearch import exact_step, exact_step_over_rows
from distboost.algorithms.tables import LARGEST_TABLE, side_table
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses
from distboost.splits import gains
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.margin import (
    ClassPairs,
    HitsAndMisses,
    MarginWeights,
    ProjectedResiduals,
    Residuals,
)


def simplex(K: int) -> np.ndarray:
    """The codewords, (K, K-1): unit vectors with inner products -1/(K-1), by recursion.

    The paper leaves the recursion open: the first class differs from all others in the first coordinate, and so on.
    """
    Y = np.array([[1.0], [-1.0]])
    for k in range(3, K + 1):
        first = np.concatenate([[1.0], np.full(k - 1, -1 / (k - 1))])
        rest = np.concatenate([np.zeros((1, k - 2)), np.sqrt(1 - 1 / (k - 1) ** 2) * Y])
        Y = np.concatenate([first[:, None], rest], axis=1)
    return Y


@dataclass(kw_only=True, eq=False)
class MCBoost(Algorithm):
    """What both algorithms of the paper share: the risk."""

    s: ClassVar[float] = 1 / 2
    weighting: MarginWeights = field(init=False)

    def __post_init__(self):
        self.weighting = MarginWeights(self.s)

    def loss_of(self, losses: Losses) -> float:
        return 1.0 + losses.mean  # the term k = y_i of eq. 15

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return softmax(F, axis=1)


@dataclass(kw_only=True, eq=False)
class CDMCBoost(MCBoost):
    """CD-MCBoost: multiclass boosting by coordinate descent over the coordinates of the simplex codewords.

    Saberian & Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011, Algorithm 1 (left). Round t moves
    coordinate t mod (K - 1) of the predictor by a weak learner of -1 and +1, with an exact line search: give it a multiple of
    (K - 1) rounds.

    Parameters
    ----------
    max_depth : int or None, default=1
        1 is a stump, whose sides have opposite signs; the leaves of a deeper tree choose theirs freely.
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves, else level by level.
    """

    max_depth: int | None = size(1)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "cd-mcboost"

    @property
    def histogram_sums(self) -> int:
        return 1

    def row_bytes(self, n_features: int) -> int:
        return statistic_bytes(1, wide=True)

    def statistic(self, round: int) -> ProjectedResiduals:
        """Along coordinate j of the codewords, one after another."""
        j = (round - 1) % (self.n_classes - 1)
        return ProjectedResiduals(self.weighting, simplex(self.n_classes)[:, j])

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        for offset in range(
            self.n_classes - 1
        ):  # a coordinate that has nothing to gain gives way to the next
            found = self._along(rows, grow, self.statistic(rows.round + offset))
            if found.learners[0].values.any():
                break
        return found

    def _along(self, rows: Rows, grow: TreeGrower, statistic: ProjectedResiduals) -> Round:
        """The best step along a coordinate."""
        Y_j = statistic.code
        stumps = self.max_depth == 1
        # The direction of steepest descent within the trees, along coordinate j: eq. 25.
        tree = grow(statistic, gains.CLASS_STUMP if stumps else gains.DIRECTION)
        g, T = side_table(rows, tree, self.weighting, lambda S: tree_signs(S @ Y_j, stumps))
        # The step that minimises the risk along g, eq. 26: its exponents depend on (g, class, k) alone.
        α = exact_step(T, np.array([-Y_j, Y_j]), self.s, LARGEST_RATIO)
        return Round([Learner(tree, α.step * np.outer(g, Y_j))], SEPARATED if α.unbounded else "")


@dataclass(kw_only=True, eq=False)
class GDMCBoost(MCBoost):
    """GD-MCBoost: multiclass boosting by functional gradient descent in margin space.

    Saberian & Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011, Algorithm 1 (right).

    Parameters
    ----------
    leaf : {"direction", "codeword"}, default="direction"
        Output of a leaf: any direction of the margin space (stronger), or one of the class codewords (the paper's; use
        `max_depth=2`).
    max_depth : int or None, default=6
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves, else level by level.
    """

    leaf: str = parameter("direction", StrOptions({"direction", "codeword"}))
    max_depth: int | None = size(6)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "gd-mcboost"

    def row_bytes(self, n_features: int) -> int:
        return statistic_bytes(self.n_classes, wide=self.leaf == "codeword")

    def statistic(self, round: int) -> Residuals:
        return Residuals(self.weighting, wide=self.leaf == "codeword")

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        # The direction of steepest descent within the trees, eq. 32.
        if self.leaf == "codeword":
            return self._codeword_round(rows, grow(self.statistic(rows.round), gains.CODEWORD))
        return self._direction_round(rows, grow(self.statistic(rows.round), gains.DIRECTION))

    def _codeword_round(self, rows: Rows, tree: Tree) -> Round:
        K = rows.n_classes
        δ = K / (K - 1)
        hits, misses = np.moveaxis(rows.sums(HitsAndMisses(self.weighting), tree.leaves), 1, 0)
        c = np.argmax(hits - misses, axis=1)  # c*: the leaf's class, the largest S[c]
        leaf = np.arange(len(c))
        A, B = hits[leaf, c].sum(), misses[leaf, c].sum()
        # The minimiser of the risk along the tree, eq. 33, in closed form: the exponents are +-α δ/2 only.
        α = bounded_log_ratio(A, B, LARGEST_RATIO) / δ
        value = np.full((len(c), K), -1 / (K - 1))  # <y_c, y_k> ...
        value[leaf, c] = 1.0  # ... and <y_c, y_c>
        return Round([Learner(tree, α * value)], SEPARATED if B == 0 else "")

    def _direction_round(self, rows: Rows, tree: Tree) -> Round:
        K = rows.n_classes
        δ = K / (K - 1)
        if tree.n_leaves * K * K <= LARGEST_TABLE:
            T = rows.sums(ClassPairs(self.weighting), tree.leaves)
            S = T.sum(axis=2) - T.sum(axis=1)
            V = _directions(S, δ)
            α = exact_step(T, V, self.s, LARGEST_RATIO)
        else:
            hits, misses = np.moveaxis(rows.sums(HitsAndMisses(self.weighting), tree.leaves), 1, 0)
            V = _directions(hits - misses, δ)
            α = exact_step_over_rows(rows, tree.leaves, V, self.weighting, LARGEST_RATIO)
        return Round([Learner(tree, α.step * V)], SEPARATED if α.unbounded else "")


def _directions(S: np.ndarray, δ: float) -> np.ndarray:
    """<f, y_k> of the unit vector f that S points to: sqrt(δ) S / |S| in score space."""
    norm = np.sqrt((S * S).sum(axis=1, keepdims=True))
    return np.sqrt(δ) * np.divide(S, norm, out=np.zeros_like(S), where=norm > 0)
