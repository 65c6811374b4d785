"""Multiclass boosting by descent in margin space (Saberian & Vasconcelos, NIPS 2011).

| paper | here |
| --- | --- |
| y_c, codewords of class c | vertices of the regular simplex in R^(K-1), unit length |
| f(x) in R^(K-1) | F[i, k] = <f(x_i), y_k>, K scores per row; f follows from them, because sum_k y_k y_k' = delta I |
| delta | K / (K - 1) |
| R(f), eq. 15 | mean over rows of sum_k exp(-(F[i, y_i] - F[i, k]) / 2), k = y_i included |
| <y_c, w_i>, eq. 31-32 | delta / 2 V[i, c]: V[i, y_i] = sum_k e[i, k], V[i, k] = -e[i, k] |

Departures: the paper leaves the codewords' recursion open, see `simplex`. with leaf="direction", a leaf of GD-MCBoost may be any
unit vector of R^(K-1), not only a codeword.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from distboost.algorithms.base import (
    LARGEST_RATIO,
    SEPARATED,
    Algorithm,
    Learner,
    Round,
    bounded_log_ratio,
    parameter,
    size,
    softmax,
    tree_signs,
)
from distboost.algorithms.constraints import StrOptions
from distboost.algorithms.solvers.linesearch import exact_step, exact_step_over_rows
from distboost.algorithms.tables import LARGEST_TABLE, side_table, table_size
from distboost.kernels import gains
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses
from distboost.rows.protocols import Gain
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.margin import (
    ClassPairs,
    HitsAndMisses,
    MarginWeights,
    ProjectedResiduals,
    Residuals,
)


def simplex(K: int) -> np.ndarray:
    """The codewords (K, K-1): unit vectors whose inner products are -1/(K-1).

    The paper does not fix the recursion. Here coordinate j separates class j from the classes after it.
    """
    Y = np.array([[1.0], [-1.0]])
    for k in range(3, K + 1):
        first = np.concatenate([[1.0], np.full(k - 1, -1 / (k - 1))])
        rest = np.concatenate([np.zeros((1, k - 2)), np.sqrt(1 - 1 / (k - 1) ** 2) * Y])
        Y = np.concatenate([first[:, None], rest], axis=1)
    return Y


@dataclass(kw_only=True, eq=False)
class MCBoost(Algorithm):
    """The risk, which both algorithms of the paper minimise."""

    s: ClassVar[float] = 1 / 2
    weighting: MarginWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = MarginWeights(self.s)

    def loss_of(self, losses: Losses) -> float:
        # Eq. 15: its term k = y_i is 1.
        return 1.0 + losses.mean

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return softmax(F)


@dataclass(kw_only=True, eq=False)
class CDMCBoost(MCBoost):
    """CD-MCBoost: multiclass boosting by coordinate descent over the coordinates of the simplex codewords.

    Saberian & Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011, Algorithm 1 (left). Round t moves
    coordinate t mod (K - 1) of the predictor by a weak learner of -1 and +1, with an exact line search. Use a multiple of
    (K - 1) rounds, so that all coordinates are moved equally often.

    Parameters
    ----------
    max_depth : int or None, default=1
        1 is a stump, whose two sides have opposite signs. Each leaf of a deeper tree has its own sign.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    max_depth: int | None = size(1)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "cd-mcboost"

    @property
    def gain(self) -> Gain:
        return gains.CLASS_STUMP if self.max_depth == 1 else gains.DIRECTION

    def statistic(self, round: int) -> ProjectedResiduals:
        """The residuals along coordinate j = t mod (K - 1) of the codewords, where t = round - 1."""
        j = (round - 1) % (self.n_classes - 1)
        return ProjectedResiduals(self.weighting, self._codewords[:, j])

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return table_size(n_leaves, self.n_classes)

    @cached_property
    def _codewords(self) -> np.ndarray:
        return simplex(self.n_classes)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        # If a coordinate does not lower the risk, the next one is tried.
        for offset in range(self.n_classes - 1):
            found = self._along(rows, grow, self.statistic(rows.round + offset))
            if found.learners[0].values.any():
                break
        return found

    def _along(self, rows: Rows, grow: TreeGrower, statistic: ProjectedResiduals) -> Round:
        """The best tree and step along one coordinate."""
        Y_j = statistic.code
        stumps = self.max_depth == 1
        # Eq. 25: g*, the tree of steepest descent along coordinate j.
        tree = grow(statistic, self.gain, sums=False)
        g, T = side_table(rows, tree, self.weighting, lambda S: tree_signs(S @ Y_j, stumps))
        # Eq. 26: α*, the step that minimises the risk along g*. The exponents depend only on (g, class, k): the table T suffices.
        α = exact_step(T, np.array([-Y_j, Y_j]), self.s, LARGEST_RATIO)
        return Round([Learner(tree, α.step * np.outer(g, Y_j))], SEPARATED if α.unbounded else "")


@dataclass(kw_only=True, eq=False)
class GDMCBoost(MCBoost):
    """GD-MCBoost: multiclass boosting by functional gradient descent in margin space.

    Saberian & Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011, Algorithm 1 (right).

    Parameters
    ----------
    leaf : {"direction", "codeword"}, default="direction"
        Output of a leaf: any direction of the margin space, which learns more per round, or one of the class codewords, as in the
        paper (use `max_depth=2`).
    max_depth : int or None, default=6
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    leaf: str = parameter("direction", StrOptions({"direction", "codeword"}))
    max_depth: int | None = size(6)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "gd-mcboost"

    @property
    def gain(self) -> Gain:
        return gains.CODEWORD if self.leaf == "codeword" else gains.DIRECTION

    @property
    def compressions(self) -> frozenset[str]:
        return frozenset() if self.leaf == "codeword" else frozenset({"sketch", "statistic_bits"})

    def statistic(self, round: int) -> Residuals:
        return Residuals(self.weighting, wide=self.leaf == "codeword")

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        if self.leaf == "codeword":
            return HitsAndMisses(self.weighting).size(n_leaves, self.n_classes)
        return table_size(n_leaves, self.n_classes)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        # Eq. 32: f*, the tree of steepest descent.
        tree = grow(self.statistic(rows.round), self.gain, sums=False)
        if self.leaf == "codeword":
            return self._codeword_round(rows, tree)
        return self._direction_round(rows, tree)

    def _codeword_round(self, rows: Rows, tree: Tree) -> Round:
        K = rows.n_classes
        δ = K / (K - 1)
        hits, misses = np.moveaxis(rows.sums(HitsAndMisses(self.weighting), tree.leaves), 1, 0)
        # c* = argmax_c S[c], the class of each leaf
        c = np.argmax(hits - misses, axis=1)
        leaf = np.arange(len(c))
        A, B = hits[leaf, c].sum(), misses[leaf, c].sum()
        # Eq. 33: α*, the step that minimises the risk. The exponents are only +α δ/2 and -α δ/2, so α* = ln(A/B) / δ.
        α = bounded_log_ratio(A, B, LARGEST_RATIO) / δ
        # <y_c, y_k> = -1/(K-1) for k != c, and <y_c, y_c> = 1
        value = np.full((len(c), K), -1 / (K - 1))
        value[leaf, c] = 1.0
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
    """sqrt(δ) S / |S|, (leaves, K): the scores <f, y_k> of the unit vector f in the direction of each leaf's S."""
    norm = np.sqrt((S * S).sum(axis=1, keepdims=True))
    V: np.ndarray = np.sqrt(δ) * np.divide(S, norm, out=np.zeros_like(S), where=norm > 0)
    return V
