"""Boosting of trees that vote for classes: AdaBoost.M1 (Freund & Schapire 1996) and SAMME (Zhu, Zou, Rosset & Hastie 2009).

Both weigh a row by exp(sum of the steps of the weak learners that err on it). Every learner's step counts either in that sum or
in F[i, y_i], so that up to a common factor the weight is exp(-F[i, y_i]).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

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
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses
from distboost.splits import gains
from distboost.trees.grower import TreeGrower
from distboost.weights.response import ClassSums, ClassWeights, ResponseWeights, is_fine, together


@dataclass(kw_only=True, eq=False)
class AdaBoostM1(Algorithm):
    """AdaBoost.M1: trees that name a class, each of which must be right about more than half of the weight.

    Freund & Schapire, *Experiments with a new boosting algorithm*, ICML 1996. Training ends as "no better than chance" before
    a tree that errs on half of the weight.

    Parameters
    ----------
    max_depth : int or None, default=6
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves, else level by level.
    """

    max_depth: int | None = size(6)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "adaboost-m1"
    weighting: ResponseWeights = field(init=False)

    def __post_init__(self):
        self.weighting = ResponseWeights(1.0)
        self.chance = 1 / 2  # the error of a learner that is of no use
        self.prior = 0.0  # what a step has beside its log odds

    def row_bytes(self, n_features: int) -> int:
        return 8  # its weight

    def statistic(self, round: int) -> ClassWeights:
        return ClassWeights(self.weighting)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        tree = grow(self.statistic(rows.round), gains.CODEWORD)
        h, right, wrong = _named(tree.sums)
        # Neither a leaf's class nor the step may hang on rounding.
        if not (is_fine(tree.sums.sum(axis=1), tree.mass).all() and is_fine(wrong, tree.mass.sum())):
            h, right, wrong = _named(together(rows.sums(ClassSums(self.weighting), tree.leaves)))
        if wrong >= self.chance * (right + wrong):
            return Round([], NO_BETTER_THAN_CHANCE)
        α = bounded_log_ratio(right, wrong, LARGEST_RATIO) + self.prior  # ln((1 - ε) / ε) ...
        return Round([Learner(tree, α * np.eye(self.n_classes)[h])], SEPARATED if wrong == 0 else "")

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return softmax(F, axis=1)


def _named(C: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """The class that each leaf names, and the weights that these are right and wrong about."""
    h = np.argmax(C, axis=1)
    right, total = C[np.arange(len(h)), h].sum(), C.sum()
    return h, right, max(total - right, 0)


@dataclass(kw_only=True, eq=False)
class SAMME(AdaBoostM1):
    """SAMME: AdaBoost.M1 for weak learners that are better than a random guess among all classes.

    Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost*, Statistics and Its Interface, 2009. Training ends as "no better than
    chance" before a tree whose error is 1 - 1/K or more.

    Parameters
    ----------
    max_depth : int or None, default=6
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves, else level by level.
    """

    name: ClassVar[str] = "samme"

    def __post_init__(self):
        super().__post_init__()
        self.chance = 1 - 1 / self.n_classes
        self.prior = float(np.log(self.n_classes - 1))  # ... + ln(K - 1)
