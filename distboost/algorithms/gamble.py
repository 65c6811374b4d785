"""GAMBLE: gentle adaptive multiclass boosting (Huang, 2009, chapter 3).

| thesis | here |
| --- | --- |
| y_i | 1 at the row's class, -1/(K-1) elsewhere |
| w_i, exp(-y_i' F / K) | exp(-F[i, y_i] / (K-1)): equal, because the scores of a row sum to 0 |
| g_k | the leaf's weighted mean of component k of y |
| r_k, f_k | K (K-1) g_k / ((K-2) g_k + 1), then r_k minus its mean over classes |
| delta | K / (K-1) |

The loss is the mean of w_i. It may rise in a round if K >= 7, and does not bound the error if K > 2. If K = 2, each step is twice
that of Gentle AdaBoost, so learning_rate=0.5 is Gentle AdaBoost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from distboost.algorithms.base import SEPARATED, Algorithm, Learner, Round, Softmax, size
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.trees.grower import TreeGrower
from distboost.weights.response import ClassSums, ClassWeights, ResponseWeights, is_precise, normalised


@dataclass(kw_only=True, eq=False)
class GAMBLE(Algorithm):
    """GAMBLE: gentle adaptive multiclass boosting.

    Huang, *A Multiclass Boosting Classification Method with Active Learning*, Penn State, 2009, Algorithm 2. Weak learners
    are least-squares trees grown best first. With 7 or more classes the loss may rise in a round; with more than 2 it does not
    bound the error. With 2 classes, `learning_rate=0.5` is Gentle AdaBoost.

    Parameters
    ----------
    max_leaf_nodes : int or None, default=31
        Trees grow best first up to this number of leaves; None: level by level. On many classes with
        thousands of rows, give 127 or 255. The thesis mostly has 15.
    max_depth : int or None, default=None
        The largest depth of a tree; None: no limit.
    """

    max_leaf_nodes: int | None = size(31, 2)
    max_depth: int | None = size(None)

    name: ClassVar[str] = "gamble"
    bounded: ClassVar[bool] = True
    gain: ClassVar[Gain] = gains.LEAST_SQUARES
    weighting: ResponseWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = ResponseWeights(1 / (self.n_classes - 1))

    def statistic(self, round: int) -> ClassWeights:
        return ClassWeights(self.weighting)

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return ClassSums(self.weighting).size(n_leaves, self.n_classes)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        K = rows.n_classes
        δ = K / (K - 1)
        tree = grow(self.statistic(rows.round), self.gain)
        C = tree.sums.astype(np.float64)
        # The sums of light leaves have too few digits and are computed again: where a class has almost no weight in the leaf, r
        # changes up to K^2 times as fast as g.
        light = ~is_precise(tree.sums.sum(axis=1) // K**2, tree.mass)
        if light.any():
            C[light] = normalised(rows.sums(ClassSums(self.weighting), tree.leaves[light]))
        W = C.sum(axis=1, keepdims=True)
        # g_k = (δ C[k] - W / (K-1)) / W, the weighted mean of the response in the leaf: its least-squares fit
        g = np.divide(δ * C - W / (K - 1), W, out=np.zeros_like(C), where=W > 0)
        g = np.clip(g, -1 / (K - 1), 1.0)
        # r_k, and f_k centred so that the scores of a row sum to 0
        r = K * (K - 1) * g / ((K - 2) * g + 1)
        f = r - r.mean(axis=1, keepdims=True)
        pure = np.count_nonzero(C, axis=1) <= 1  # leaves of one class
        return Round([Learner(tree, f)], SEPARATED if pure.all() else "")

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    @property
    def link(self) -> Softmax:
        return Softmax(self.n_classes - 1)
