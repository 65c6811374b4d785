"""Boosting of trees that vote for classes: AdaBoost.M1 (Freund & Schapire 1996), SAMME and SAMME.R (Zhu et al. 2009).

| papers | here |
| --- | --- |
| D_t(i), w_i | exp(-F[i, y_i]), up to a common factor |
| h_t, T^(m) | the class `h` of each leaf |
| epsilon_t, err^(m) | the share of the weight that h gets wrong |
| ln(1/beta_t), alpha^(m) | `α` |

Both papers multiply a row's weight by exp(α) if a weak learner errs on it. A learner's step counts either there or in F[i, y_i]:
up to a common factor, the weight is exp(-F[i, y_i]).

SAMME.R votes with the class probabilities p of a leaf, h_k = (K - 1) (ln p_k - mean_l ln p_l), and has the weights
w_i <- w_i exp(-(K - 1) / K y_i' ln p(x_i)), where y_i is 1 at the row's class and -1/(K - 1) elsewhere. As the scores of a row
sum to 0, this is exp(-F[i, y_i] / (K - 1)).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from distboost.algorithms.base import (
    LARGEST_RATIO,
    NO_BETTER_THAN_CHANCE,
    SEPARATED,
    Algorithm,
    Learner,
    Round,
    Softmax,
    bounded_log_ratio,
    parameter,
    size,
)
from distboost.algorithms.constraints import Interval
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.trees.grower import TreeGrower
from distboost.weights.response import (
    ClassSums,
    ClassWeights,
    ResponseWeights,
    add_windows,
    is_precise,
    normalised,
)


@dataclass(kw_only=True, eq=False)
class AdaBoostM1(Algorithm):
    """AdaBoost.M1: each tree predicts classes, and must be right about more than half of the weight.

    Freund & Schapire, *Experiments with a new boosting algorithm*, ICML 1996. Training ends as "no better than chance" before
    a tree that errs on half of the weight.

    Parameters
    ----------
    max_depth : int or None, default=6
        The largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    max_depth: int | None = size(6)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "adaboost-m1"
    gain: ClassVar[Gain] = gains.CODEWORD
    weighting: ResponseWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = ResponseWeights(1.0)
        # A weak learner with this error is of no use.
        self.chance = 1 / 2
        # The constant that a step adds to the log odds.
        self.prior = 0.0

    def statistic(self, round: int) -> ClassWeights:
        return ClassWeights(self.weighting)

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return ClassSums(self.weighting).size(n_leaves, self.n_classes)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        tree = grow(self.statistic(rows.round), self.gain)
        h, right, wrong = _class_votes(tree.sums)
        # If rounding could decide a leaf's class or the step, sum again with more digits.
        if not (is_precise(tree.sums.sum(axis=1), tree.mass).all() and is_precise(wrong, tree.mass.sum())):
            h, right, wrong = _class_votes(add_windows(rows.sums(ClassSums(self.weighting), tree.leaves)))
        if wrong >= self.chance * (right + wrong):
            return Round([], NO_BETTER_THAN_CHANCE)
        # AdaBoost.M1: α = ln((1 - ε) / ε). SAMME: α = ln((1 - ε) / ε) + ln(K - 1).
        α = bounded_log_ratio(right, wrong, LARGEST_RATIO) + self.prior
        return Round([Learner(tree, α * np.eye(self.n_classes)[h])], SEPARATED if wrong == 0 else "")

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    @property
    def link(self) -> Softmax:
        return Softmax()


def _class_votes(C: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """Each leaf's class of largest weight (n_leaves,), and the total weights that these get right and wrong."""
    h = np.argmax(C, axis=1)
    right, total = C[np.arange(len(h)), h].sum(), C.sum()
    return h, right, max(total - right, 0)


@dataclass(kw_only=True, eq=False)
class SAMME(AdaBoostM1):
    """SAMME: AdaBoost.M1 for weak learners that need only be better than a random guess among all classes.

    Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost*, Statistics and Its Interface, 2009. Training ends as "no better than
    chance" before a tree whose error is 1 - 1/K or more.
    """

    name: ClassVar[str] = "samme"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.chance = 1 - 1 / self.n_classes
        self.prior = float(np.log(self.n_classes - 1))


@dataclass(kw_only=True, eq=False)
class SAMMER(AdaBoostM1):
    """SAMME.R: trees that vote with the class probabilities of their leaves.

    Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost*, Statistics and Its Interface, 2009. The trees lower the weighted Gini
    impurity.

    Parameters
    ----------
    floor : float, default=1e-5
        The least probability that a leaf has for a class. It bounds the step: the paper's is infinite where a class is absent.
    max_depth : int or None, default=3
        The largest depth of a tree; None: no limit.
    """

    floor: float = parameter(1e-5, Interval(Real, 2.0**-40, 0.1, closed="both"))
    max_depth: int | None = size(3)

    name: ClassVar[str] = "samme-r"
    bounded: ClassVar[bool] = True
    gain: ClassVar[Gain] = gains.LEAST_SQUARES

    def __post_init__(self) -> None:
        self.weighting = ResponseWeights(1 / (self.n_classes - 1))

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        tree = grow(self.statistic(rows.round), self.gain)
        C = tree.sums.astype(np.float64)
        # A class of the least probability needs enough digits, too: the sums of light leaves are computed again.
        light = ~is_precise((self.floor * C.sum(axis=1)).astype(np.int64), tree.mass)
        if light.any():
            C[light] = normalised(rows.sums(ClassSums(self.weighting), tree.leaves[light]))
        W = C.sum(axis=1, keepdims=True)
        p = np.divide(C, W, out=np.full_like(C, 1 / self.n_classes), where=W > 0)
        log_p = np.log(np.maximum(p, self.floor))
        h = (self.n_classes - 1) * (log_p - log_p.mean(axis=1, keepdims=True))
        return Round([Learner(tree, h)])

    @property
    def link(self) -> Softmax:
        return Softmax(self.n_classes - 1)
