"""GAMBLE: gentle adaptive multiclass boosting (Huang, 2009, chapter 3).

| thesis | here |
| --- | --- |
| y_i | 1 at the row's class, -1/(K-1) elsewhere |
| w_i, exp(-y_i' F / K) | exp(-F[i, y_i] / (K-1)): the same, since the scores of a row sum to 0 |
| g_k | the leaf's weighted mean response of class k |
| r_k, f | K (K-1) g_k / ((K-2) g_k + 1), then centred over classes |
| delta | K / (K-1) |

The loss, the mean of w_i, need not fall from round to round for K >= 7 and does not bound the error for K > 2. For K = 2 each
step is twice that of Gentle AdaBoost: learning_rate 1/2 is equal to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from distboost.algorithms.base import Algorithm, Learner, Round, size
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses
from distboost.splits import gains
from distboost.trees.grower import TreeGrower
from distboost.weights.response import ClassSums, ClassWeights, ResponseWeights, is_fine, normalised


@dataclass(kw_only=True, eq=False)
class GAMBLE(Algorithm):
    """GAMBLE: gentle adaptive multiclass boosting.

    Huang, *A Multiclass Boosting Classification Method with Active Learning*, Penn State, 2009, Algorithm 2. Weak learners
    are least-squares trees grown best first. The loss need not fall in every round for 7 classes and more, and does not bound
    the error for more than 2; with 2 classes, `learning_rate=0.5` is Gentle AdaBoost.

    Parameters
    ----------
    max_leaf_nodes : int or None, default=15
        None grows level by level down to `max_depth`.
    max_depth : int or None, default=None
    """

    max_leaf_nodes: int | None = size(15, 2)
    max_depth: int | None = size(None)

    name: ClassVar[str] = "gamble"
    weighting: ResponseWeights = field(init=False)

    def __post_init__(self):
        self.weighting = ResponseWeights(1 / (self.n_classes - 1))

    def row_bytes(self, n_features: int) -> int:
        return 8  # its weight

    def statistic(self, round: int) -> ClassWeights:
        return ClassWeights(self.weighting)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        K = rows.n_classes
        δ = K / (K - 1)
        tree = grow(self.statistic(rows.round), gains.LEAST_SQUARES)
        C = tree.sums.astype(np.float64)
        # Light leaves are summed up anew: r follows g up to K^2 times as fast, where a class has next to no part in W.
        light = ~is_fine(tree.sums.sum(axis=1) // K**2, tree.mass)
        if light.any():
            C[light] = normalised(rows.sums(ClassSums(self.weighting), tree.leaves[light]))
        W = C.sum(axis=1, keepdims=True)
        # The least-squares fit of the response: its weighted mean in the leaf.
        g = np.divide(δ * C - W / (K - 1), W, out=np.zeros_like(C), where=W > 0)
        g = np.clip(g, -1 / (K - 1), 1.0)
        # The transformed response, centred so that the scores of a row sum to 0.
        r = K * (K - 1) * g / ((K - 2) * g + 1)
        f = r - r.mean(axis=1, keepdims=True)
        return Round([Learner(tree, f)])

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return softmax(F / (F.shape[1] - 1), axis=1)
