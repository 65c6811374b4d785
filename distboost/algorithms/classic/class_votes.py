"""Boosting of trees that vote for classes: AdaBoost.M1 (Freund & Schapire 1996) and SAMME (Zhu, Zou, Rosset & Hastie 2009).

| papers | here |
| --- | --- |
| D_t(i), w_i | exp(-F[i, y_i]), up to a common factor |
| h_t, T^(m) | the class `h` of each leaf |
| epsilon_t, err^(m) | the share of the weight that h gets wrong |
| ln(1/beta_t), alpha^(m) | `α` |

Both papers multiply a row's weight by exp(α) if a weak learner errs on it. A learner's step counts either there or in F[i, y_i]:
up to a common factor, the weight is exp(-F[i, y_i]).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from distboost.algorithms.base import (
    LARGEST_RATIO,
    NO_BETTER_THAN_CHANCE,
    SEPARATED,
    Algorithm,
    Learner,
    Round,
    bounded_log_ratio,
    size,
)
from distboost.algorithms.links import Softmax
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses
from distboost.trees.grower import TreeGrower
from distboost.weights.response import ClassSums, ClassWeights, ResponseWeights, add_windows, is_precise


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

    Parameters
    ----------
    max_depth : int or None, default=6
        The largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    name: ClassVar[str] = "samme"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.chance = 1 - 1 / self.n_classes
        self.prior = float(np.log(self.n_classes - 1))
