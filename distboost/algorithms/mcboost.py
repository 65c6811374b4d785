"""Multiclass boosting by gradient descent in margin space (Saberian & Vasconcelos, NIPS 2011).

| paper | here |
| --- | --- |
| y_c, codewords of class c | vertices of the regular simplex in R^(K-1), unit length |
| f(x) in R^(K-1) | F[i, k] = <f(x_i), y_k>, K scores per row: nothing is lost, as sum_k y_k y_k' = delta I |
| delta | K / (K - 1) |
| R(f), eq. 15 | mean over rows of sum_k exp(-(F[i, y_i] - F[i, k]) / 2), k = y_i included |
| <y_c, w_i>, eq. 31-32 | delta / 2 V[i, c]: V[i, y_i] = sum_k e[i, k], V[i, k] = -e[i, k] |
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import softmax

from distboost.algorithms.base import Algorithm, Learner
from distboost.algorithms.linesearch import exact_step, exact_step_over_rows
from distboost.rows import Losses, Rows
from distboost.weak import gains
from distboost.weak.tree import Tree, TreeGrower
from distboost.weighting import ClassPairs, HitsAndMisses, MarginWeights

# Rows too light for the integer sums weigh less than 2^-40 of the heaviest. A step that multiplies a weight by more than that
# could lift one from nothing to the top: the largest step, also where there is no error to stop it.
LARGEST_RATIO = np.log(2.0**40)

# A table of K x K sums per leaf gives the line search at once, up to this many numbers; past it, passes over the rows do.
LARGEST_TABLE = 2**22


class GDMCBoost(Algorithm):
    """GD-MCBoost (Algorithm 1, right).

    Parameters
    ----------
    leaf : {"direction", "codeword"}
        A leaf's output: "codeword", one of the K codewords (the paper's weak learner), or "direction", any unit vector.
    """

    name: ClassVar[str] = "gd-mcboost"
    s: ClassVar[float] = 1 / 2

    def __init__(self, leaf: str = "direction"):
        self.leaf = leaf
        self.weighting = MarginWeights(self.s)

    def learn(self, rows: Rows, grow: TreeGrower) -> Learner:
        # The direction of steepest descent within the trees, eq. 32.
        if self.leaf == "codeword":
            return self._codeword_learner(rows, grow(gains.CODEWORD))
        return self._direction_learner(rows, grow(gains.DIRECTION))

    def _codeword_learner(self, rows: Rows, tree: Tree) -> Learner:
        K = rows.n_classes
        δ = K / (K - 1)
        hits, misses = np.moveaxis(rows.sums(HitsAndMisses(self.s), tree.leaves), 1, 0)
        c = np.argmax(hits - misses, axis=1)  # c*: the leaf's class, the largest S[c]
        leaf = np.arange(len(c))
        A, B = hits[leaf, c].sum(), misses[leaf, c].sum()
        # The minimiser of the risk along the tree, eq. 33, in closed form: the exponents are +-α δ/2 only.
        α = _bounded(A, B, LARGEST_RATIO) / δ
        value = np.full((len(c), K), -1 / (K - 1))  # <y_c, y_k> ...
        value[leaf, c] = 1.0  # ... and <y_c, y_c>
        return Learner(tree, α * value, separates=bool(B == 0))

    def _direction_learner(self, rows: Rows, tree: Tree) -> Learner:
        K = rows.n_classes
        δ = K / (K - 1)
        if tree.n_leaves * K * K <= LARGEST_TABLE:
            T = rows.sums(ClassPairs(self.s), tree.leaves)
            S = T.sum(axis=2) - T.sum(axis=1)
            V = _directions(S, δ)
            α = exact_step(T, V, self.s, LARGEST_RATIO)
        else:
            hits, misses = np.moveaxis(rows.sums(HitsAndMisses(self.s), tree.leaves), 1, 0)
            V = _directions(hits - misses, δ)
            α = exact_step_over_rows(rows, tree.leaves, V, self.s, LARGEST_RATIO)
        return Learner(tree, α.step * V, separates=α.unbounded)

    def loss(self, losses: Losses) -> float:
        return 1.0 + losses.weight  # the term k = y_i of eq. 15

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return softmax(F, axis=1)


def _directions(S: np.ndarray, δ: float) -> np.ndarray:
    """<f, y_k> of the unit vector f that S points to: sqrt(δ) S / |S| in score space."""
    norm = np.sqrt((S * S).sum(axis=1, keepdims=True))
    return np.sqrt(δ) * np.divide(S, norm, out=np.zeros_like(S), where=norm > 0)


def _bounded(A: float, B: float, limit: float) -> float:
    """ln(A / B), at most `limit` in size; 0 where both are 0."""
    if A <= 0 and B <= 0:
        return 0.0
    if B <= 0 or A <= 0:
        return limit if B <= 0 else -limit
    return float(np.clip(np.log(A / B), -limit, limit))
