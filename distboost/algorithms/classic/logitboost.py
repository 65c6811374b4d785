"""LogitBoost (Friedman, Hastie & Tibshirani 2000) and AOSO-LogitBoost (Sun, Reid & Zhou 2012).

| papers | here |
| --- | --- |
| p_j(x), z_ij, w_ij | softmax(F)[i, j], (y*_ij - p) / w clipped to +-`largest_response`, p (1 - p) (`WorkingResponses`) |
| f_mj | for each class a tree, the weighted least-squares fit of z |
| F_j | F_j + (J - 1) / J (f_j - mean_k f_k) |
| AOSO: g, h | V = y* - p and the curvatures along e_r - e_s (`PairCurvatures`) |
| AOSO: class pair of a node | r of the largest V, then s of the largest (V_r - V_s)^2 / h (`CLASS_PAIR`) |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar

import numpy as np

from distboost.algorithms.base import LEARNING_RATE, Algorithm, Learner, Round, Softmax, parameter, size
from distboost.algorithms.constraints import Interval
from distboost.errors import LimitError
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.rows.sums import Statistic
from distboost.trees.grower import TreeGrower
from distboost.weights.softmax import PairCurvatures, SoftmaxWeights, WorkingResponses


@dataclass(kw_only=True, eq=False)
class LogitBoost(Algorithm):
    """LogitBoost: Newton's steps for the multinomial logistic loss, a least-squares tree for each class.

    Friedman, Hastie & Tibshirani, *Additive logistic regression: a statistical view of boosting*, Annals of Statistics, 2000,
    algorithm 6. A round adds K trees. Its steps are bounded, but may overshoot: the loss may rise.

    Parameters
    ----------
    largest_response : float, default=4.0
        The working responses are clipped to this absolute value. The paper recommends 2 to 4.
    max_depth : int or None, default=None
        The largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=8
        Trees grow best first up to this number of leaves, as the paper's; None: level by level.
    """

    largest_response: float = parameter(4.0, Interval(Real, 1, 20, closed="both"))
    max_depth: int | None = size(None)
    max_leaf_nodes: int | None = size(8, 2)

    name: ClassVar[str] = "logitboost"
    bounded: ClassVar[bool] = True
    gain: ClassVar[Gain] = gains.RESPONSES
    weighting: SoftmaxWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = SoftmaxWeights()

    @property
    def learners_per_round(self) -> int:
        return self.n_classes

    def statistic(self, round: int) -> Statistic:
        return WorkingResponses(0, self.largest_response)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        K = self.n_classes
        learners = []
        for j in range(K):
            tree = grow(WorkingResponses(j, self.largest_response), self.gain)
            wz, w = tree.sums.T
            f = clipped_ratio(wz, w, self.largest_response)
            # (K - 1) / K (f_j - mean_k f_k): tree j adds its share to every class.
            learners.append(Learner(tree, np.outer(f, (np.eye(K)[j] - 1 / K) * (K - 1) / K)))
        return Round(learners)

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    @property
    def objective(self) -> str:
        return "softmax loss"

    @property
    def link(self) -> Softmax:
        return Softmax()


@dataclass(kw_only=True, eq=False)
class AOSOLogitBoost(LogitBoost):
    """AOSO-LogitBoost: one tree per round, in whose nodes one class is set against another.

    Sun, Reid & Zhou, *AOSO-LogitBoost: adaptive one-vs-one LogitBoost for multi-class problem*, ICML 2012. Each node chooses
    a pair of classes, for its split or, in a leaf, for Newton's step. Histograms have K (K + 1) / 2 sums: at most 64 classes.

    Parameters
    ----------
    largest_response : float, default=5.0
        Newton's step of a leaf is clipped to this absolute value.
    max_leaf_nodes : int or None, default=20
        Trees grow best first up to this number of leaves; None: level by level.
    learning_rate : float, default=0.1
        Shrinkage: each step is multiplied by it.
    """

    largest_response: float = parameter(5.0, Interval(Real, 1, 20, closed="both"))
    max_leaf_nodes: int | None = size(20, 2)
    learning_rate: float = parameter(0.1, LEARNING_RATE)

    name: ClassVar[str] = "aoso-logitboost"
    gain: ClassVar[Gain] = gains.CLASS_PAIR
    most_classes: ClassVar[int] = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes > self.most_classes:
            raise LimitError(
                f"AOSO-LogitBoost with {self.n_classes} classes needs a sum for each pair of classes in each bin; the limit "
                f"is {self.most_classes} classes.",
                remedy="Use ``LogitBoostClassifier``, or ``GDMCBoostClassifier`` with ``loss='softmax'``.",
            )

    @property
    def learners_per_round(self) -> int:
        return 1

    def statistic(self, round: int) -> Statistic:
        return PairCurvatures()

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        tree = grow(self.statistic(rows.round), self.gain)
        V, C = np.split(tree.sums, [self.n_classes], axis=1)
        leaf = np.arange(tree.n_leaves)
        r = V.argmax(axis=1)
        slopes = V[leaf, r][:, None] - V
        curvatures = 4.0 * _square(C, self.n_classes)[leaf, r]
        s = np.divide(
            slopes.astype(float) ** 2, curvatures, out=-np.ones(V.shape), where=curvatures > 0
        ).argmax(axis=1)
        γ = clipped_ratio(slopes[leaf, s], curvatures[leaf, s], self.largest_response)
        values = np.zeros(V.shape)
        values[leaf, r] += γ
        values[leaf, s] -= γ
        return Round([Learner(tree, values)])


def clipped_ratio(slope: np.ndarray, curvature: np.ndarray, limit: float) -> np.ndarray:
    """Newton's step, clipped to +-limit; 0 without curvature."""
    step = np.divide(slope, curvature, out=np.zeros(len(slope)), where=curvature > 0)
    clipped: np.ndarray = np.clip(step, -limit, limit)
    return clipped


def _square(C: np.ndarray, K: int) -> np.ndarray:
    """The curvatures of the pairs, (n, K (K - 1) / 2), as symmetric matrices, (n, K, K), with 0 on the diagonal."""
    matrix = np.zeros((len(C), K, K))
    s, r = np.tril_indices(K, -1)
    matrix[:, s, r] = matrix[:, r, s] = C
    return matrix
