"""Multiclass boosting by descent in margin space (Saberian & Vasconcelos, NIPS 2011).

| paper | here |
| --- | --- |
| y_c, codewords of class c | vertices of the regular simplex in R^(K-1), unit length |
| f(x) in R^(K-1) | F[i, k] = <f(x_i), y_k>, K scores per row; f follows from them, because sum_k y_k y_k' = delta I |
| delta | K / (K - 1) |
| R(f), eq. 15 | mean over rows of sum_k exp(-(F[i, y_i] - F[i, k]) / 2), k = y_i included |
| phi, eq. 14 and section 4 | `loss`: exp(-v) or log(1 + exp(-2 v)) of each margin v = (F[i, y_i] - F[i, k]) / 2 |
| <y_c, w_i>, eq. 31-32 | delta / 2 V[i, c]: V[i, y_i] = sum_k e[i, k], V[i, k] = -e[i, k] |

Departures: the paper leaves the codewords' recursion open, see `simplex_coordinate`. With leaf="direction", a leaf of GD-MCBoost
may be any unit vector of R^(K-1), not only a codeword.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import ClassVar

import numpy as np

from distboost.algorithms.base import (
    LARGEST_RATIO,
    SEPARATED,
    Algorithm,
    Learner,
    Round,
    Softmax,
    bounded_log_ratio,
    parameter,
    size,
    tree_signs,
)
from distboost.algorithms.constraints import Interval, StrOptions
from distboost.algorithms.solvers.linesearch import exact_step, exact_step_over_rows, step_by_slopes
from distboost.algorithms.tables import (
    LARGEST_TABLE,
    MOST_LEVELS,
    code_table_size,
    levels_of,
    side_table,
    table_size,
)
from distboost.errors import DataError
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.rows.sums import LEAF_WEIGHT_FACTOR
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.margin import (
    LOGISTIC,
    ClassPairs,
    HitsAndMisses,
    LevelPairs,
    MarginWeights,
    ProjectedResiduals,
    Residuals,
)
from distboost.weights.softmax import Curvatures, PairSlopes, SoftmaxResiduals, SoftmaxSlopes, SoftmaxWeights


def simplex_coordinate(K: int, j: int) -> np.ndarray:
    """Coordinate j of the K codewords, (K,): unit vectors of R^(K-1) whose inner products are -1/(K-1).

    The paper does not fix the recursion. Here coordinate j separates class j from the m - 1 classes after it, for which it is 1
    and -1/(m - 1). Each of the j simplices around that of these m classes shortens it.
    """
    m = K - j
    factors = np.sqrt(1 - 1 / np.arange(m, K, dtype=np.float64) ** 2)
    Y_j = np.zeros(K)
    for classes, number in ((j, 1.0), (slice(j + 1, K), -1 / (m - 1))):
        Y_j[classes] = np.multiply.accumulate(np.append(number, factors))[-1]
    return Y_j


@dataclass(kw_only=True, eq=False)
class MCBoost(Algorithm):
    """The risk, which both algorithms of the paper minimise."""

    loss: str = parameter("exponential", StrOptions({"exponential", "logistic"}), is_new=True)

    weighting: MarginWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = {
            "exponential": MarginWeights(1 / 2),
            "logistic": MarginWeights(1.0, LOGISTIC),
            "softmax": SoftmaxWeights(),
        }[self.loss]

    def loss_of(self, losses: Losses) -> float:
        # The term k = y_i of eq. 15 is φ(0). The softmax loss has it in its logarithm.
        return {"exponential": 1.0, "logistic": float(np.log(2)), "softmax": 0.0}[self.loss] + losses.mean

    def _hits_and_misses(self, rows: Rows, tree: Tree) -> np.ndarray:
        return np.moveaxis(rows.sums(HitsAndMisses(self.weighting), tree.leaves), 1, 0)

    def _sums(self, rows: Rows, tree: Tree) -> np.ndarray:
        """S, (leaves, K): the sums of the residuals V[i] over the rows of each leaf."""
        hits, misses = self._hits_and_misses(rows, tree)
        S: np.ndarray = hits - misses
        return S

    def _step_by_slopes(self, rows: Rows, tree: Tree, V: np.ndarray, longest: float = np.inf) -> Round:
        """The round whose step minimises a logistic risk along the leaves' values V, which takes passes over the rows."""
        slopes = PairSlopes if self.loss == "logistic" else SoftmaxSlopes
        α = step_by_slopes(rows, tree.leaves, V, slopes, LARGEST_RATIO, longest)
        return Round([Learner(tree, α.step * V)], SEPARATED if α.unbounded else "")

    @property
    def link(self) -> Softmax:
        return Softmax()


@dataclass(kw_only=True, eq=False)
class CDMCBoost(MCBoost):
    """CD-MCBoost: multiclass boosting by coordinate descent over the coordinates of the simplex codewords.

    Saberian & Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011, Algorithm 1 (left). Round t moves
    coordinate t mod (K - 1) of the predictor by a tree, with an exact line search. Use a multiple of (K - 1) rounds, so that all
    coordinates are moved equally often.

    Parameters
    ----------
    loss : {"exponential", "logistic"}, default="exponential"
        The paper's risk, or that of the logistic loss, which section 4 proposes for data with outliers: the mean of
        sum_k log(1 + exp(F[i, k] - F[i, y_i])). A row weighs at most K - 1, however wrong it is.
    leaf : {"sign", "mean"}, default="sign"
        Output of a leaf: -1 or +1; or the mean weight of its rows along the coordinate: a regression tree, fitted to the weights
        by least squares.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump. The two signs of a stump are opposite; each leaf of a deeper tree has its own.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    leaf: str = parameter("sign", StrOptions({"sign", "mean"}), is_new=True)
    max_depth: int | None = size(1)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "cd-mcboost"

    @property
    def gain(self) -> Gain:
        if self.leaf == "mean":
            return gains.NEWTON
        return gains.CLASS_STUMP if self.max_depth == 1 else gains.DIRECTION

    def statistic(self, round: int) -> ProjectedResiduals:
        """The residuals along coordinate j = t mod (K - 1) of the codewords, where t = round - 1."""
        j = (round - 1) % (self.n_classes - 1)
        return ProjectedResiduals(self.weighting, simplex_coordinate(self.n_classes, j))

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        if self.leaf == "mean":
            return n_leaves * MOST_LEVELS**2
        if self.loss == "logistic":
            return HitsAndMisses(self.weighting).size(n_leaves, self.n_classes)
        return code_table_size(n_leaves, self.n_classes)

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
        # Eq. 25: g*, the tree of steepest descent along coordinate j; of regression trees, the one of the best correlation.
        constants = (0.0,) if self.leaf == "mean" else ()
        tree = grow(statistic, self.gain, sums=False, constants=constants)
        if self.loss == "logistic":
            g = _leaf_means(tree) if self.leaf == "mean" else self._signs(self._sums(rows, tree) @ Y_j)
            return self._step_by_slopes(rows, tree, np.outer(g, Y_j))
        # Eq. 26: α*, the step that minimises the risk along g*. The exponents depend only on (g, class, k): a table T suffices.
        if self.leaf == "mean":
            g = _leaf_means(tree)
            v, levels = np.unique(Y_j, return_inverse=True)
            T, V = rows.sums(LevelPairs(self.weighting, levels), tree.leaves), np.outer(g, v)
        else:
            v, of_classes = levels_of(Y_j)
            g, T = side_table(rows, tree, self.weighting, lambda S: self._signs(S @ v), of_classes)
            V = np.array([-v, v])
        α = exact_step(T, V, self.weighting.s, LARGEST_RATIO)
        return Round([Learner(tree, α.step * np.outer(g, Y_j))], SEPARATED if α.unbounded else "")

    def _signs(self, S: np.ndarray) -> np.ndarray:
        return tree_signs(S, self.max_depth == 1)


@dataclass(kw_only=True, eq=False)
class GDMCBoost(MCBoost):
    """GD-MCBoost: multiclass boosting by functional gradient descent in margin space.

    Saberian & Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011, Algorithm 1 (right).

    Parameters
    ----------
    loss : {"exponential", "logistic", "softmax"}, default="exponential"
        The paper's risk; that of the logistic loss of section 4, the mean of sum_k ln(1 + exp(F[i, k] - F[i, y_i])); or the
        multinomial logistic one, the mean of ln sum_k exp(F[i, k] - F[i, y_i]). With these two, the scores are logarithms of the
        odds, so that `predict_proba` is good without calibration, and rows with wrong labels weigh less. The exponential's
        classes are mostly better.
    leaf : {"direction", "codeword", "newton"}, default="direction"
        Output of a leaf: any direction of the margin space, which learns more per round, or one of the class codewords, as in the
        paper (use `max_depth=2`). "newton", only with loss="softmax": for each class k Newton's step for its score alone,
        (K - 1) / K S_k / (H_k + l2) (Friedman 2001, algorithm 6, with a penalty): S_k and H_k are the sums of [k = y_i] - p_k and
        of p_k (1 - p_k) over the leaf's rows, and p is softmax(F). Then splits are chosen by `|S|^2 / (n + l2)`, summed over the
        two sides, where n is the number of rows of a side, or their weight. Newton's values are taken as they are, or multiplied
        by the step below 1 that minimises the risk; the other leaves are multiplied by the step that minimises it.
    l2 : float, default=1.0
        Penalty on the curvature, for leaf="newton".
    max_depth : int or None, default=6
        The largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    loss: str = parameter("exponential", StrOptions({"exponential", "logistic", "softmax"}), is_new=True)
    leaf: str = parameter("direction", StrOptions({"direction", "codeword", "newton"}))
    l2: float = parameter(1.0, Interval(Real, 0, None, closed="left"), is_new=True)
    max_depth: int | None = size(6)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "gd-mcboost"

    @property
    def gain(self) -> Gain:
        return {"direction": gains.DIRECTION, "codeword": gains.CODEWORD, "newton": gains.NEWTON}[self.leaf]

    @property
    def compressions(self) -> frozenset[str]:
        # Newton's gain needs the number of all rows of a side; a histogram of rounded residuals leaves some out.
        return frozenset({"direction": {"sketch", "statistic_bits"}, "newton": {"sketch"}}.get(self.leaf, ()))

    def check(self) -> None:
        """Raise DataError for parameters that contradict each other."""
        if self.leaf == "newton" and self.loss != "softmax":
            raise DataError(
                f"leaf is 'newton', but loss is {self.loss!r}: Newton's values are those of the softmax loss alone.",
                remedy="Pass ``loss='softmax'``, or ``leaf='direction'``.",
                value=self.loss,
            )
        if self.leaf != "newton" and self.l2 != 1.0:
            raise DataError(
                f"l2 is {self.l2}, but leaf is {self.leaf!r}, which has no curvature.",
                remedy="Leave out l2, or pass ``leaf='newton'`` and ``loss='softmax'``.",
                value=self.leaf,
            )

    def statistic(self, round: int) -> Residuals:
        return self._statistic

    @cached_property
    def _statistic(self) -> Residuals:
        make = SoftmaxResiduals if self.loss == "softmax" else Residuals
        return make(self.weighting, wide=self.leaf == "codeword")

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        if self.leaf == "newton":
            return Curvatures().size(n_leaves, self.n_classes)
        if self.leaf == "codeword" or self.loss != "exponential":
            return HitsAndMisses(self.weighting).size(n_leaves, self.n_classes)
        return table_size(n_leaves, self.n_classes)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        constants = (self.l2 * rows.weight_scale,) if self.leaf == "newton" else ()
        # Eq. 32: f*, the tree of steepest descent.
        tree = grow(self.statistic(rows.round), self.gain, sums=False, constants=constants)
        if self.loss != "exponential":
            return self._logistic_round(rows, tree)
        if self.leaf == "codeword":
            return self._codeword_round(rows, tree)
        return self._direction_round(rows, tree)

    def _codeword_round(self, rows: Rows, tree: Tree) -> Round:
        hits, misses = self._hits_and_misses(rows, tree)
        c, V = _codewords(hits - misses)
        leaf = np.arange(len(c))
        A, B = hits[leaf, c].sum(), misses[leaf, c].sum()
        # Eq. 33: α*, the step that minimises the risk. The exponents are only +α δ/2 and -α δ/2, so α* = ln(A/B) / δ.
        α = bounded_log_ratio(A, B, LARGEST_RATIO) / self.δ
        return Round([Learner(tree, α * V)], SEPARATED if B == 0 else "")

    def _direction_round(self, rows: Rows, tree: Tree) -> Round:
        if tree.n_leaves * rows.n_classes**2 <= LARGEST_TABLE:
            T = rows.sums(ClassPairs(self.weighting), tree.leaves)
            S = T.sum(axis=2) - T.sum(axis=1)
            V = _directions(S, self.δ)
            α = exact_step(T, V, self.weighting.s, LARGEST_RATIO)
        else:
            V = _directions(self._sums(rows, tree), self.δ)
            α = exact_step_over_rows(rows, tree.leaves, V, self.weighting, LARGEST_RATIO)
        return Round([Learner(tree, α.step * V)], SEPARATED if α.unbounded else "")

    def _logistic_round(self, rows: Rows, tree: Tree) -> Round:
        if self.leaf == "newton":
            V = self._newton_values(rows, tree)
        else:
            S = self._sums(rows, tree)
            V = _codewords(S)[1] if self.leaf == "codeword" else _directions(S, self.δ)
        # A step beyond Newton's own would undo the penalty on his values.
        return self._step_by_slopes(rows, tree, V, longest=1.0 if self.leaf == "newton" else np.inf)

    def _newton_values(self, rows: Rows, tree: Tree) -> np.ndarray:
        """(K - 1) / K S_k / (H_k + l2), (leaves, K)."""
        reduction = Curvatures()
        hits, misses, H = np.moveaxis(rows.sums(reduction, tree.leaves), 1, 0)
        # In the units of the sums.
        H = H + self.l2 * rows.weight_scale * np.exp(-rows.shift_of(reduction))
        V: np.ndarray = np.divide(hits - misses, self.δ * H, out=np.zeros_like(H), where=H > 0)
        return V

    @property
    def δ(self) -> float:
        return self.n_classes / (self.n_classes - 1)


def _leaf_means(tree: Tree) -> np.ndarray:
    """The mean of the statistic over the rows of each leaf, (leaves,), divided by the largest."""
    # The weight of light rows may be rounded to 0.
    g = tree.sums[:, 0] / np.maximum(tree.cover.weight, 1 / LEAF_WEIGHT_FACTOR)
    largest = np.abs(g).max()
    means: np.ndarray = g / largest if largest > 0 else g
    return means


def _codewords(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """c* = argmax_c S[c], (leaves,): the class of each leaf; and <y_c*, y_k>, (leaves, K), the scores of its codeword."""
    K = S.shape[1]
    c = np.argmax(S, axis=1)
    V = np.full(S.shape, -1 / (K - 1))
    V[np.arange(len(c)), c] = 1.0
    return c, V


def _directions(S: np.ndarray, δ: float) -> np.ndarray:
    """sqrt(δ) S / |S|, (leaves, K): the scores <f, y_k> of the unit vector f in the direction of each leaf's S."""
    norm = np.sqrt((S * S).sum(axis=1, keepdims=True))
    V: np.ndarray = np.sqrt(δ) * np.divide(S, norm, out=np.zeros(S.shape), where=norm > 0)
    return V
