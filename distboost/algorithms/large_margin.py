"""What boosting with direct multiclass margins shares, stage-wise or totally corrective: the losses and the stumps.

| paper | here |
| --- | --- |
| k classes, m rows | K, the rows |
| rho[i, r], eq. 2 | F[i, y_i] - F[i, r]; E[i, r] = exp(-rho[i, r]), r = y_i included |
| U, eq. 11, 12 | u[i, r] = E / sum E (exponential), E / (1 + E) (logistic) |
| sum_i U (delta - 1) h, eq. 10 | V[i, r] = 1[r = y_i] sum_l u[i, l] - u[i, r], summed over rows with the sign of h |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.utils._param_validation import Interval, StrOptions

from distboost.algorithms.base import Algorithm, parameter, signs
from distboost.algorithms.tables import side_table
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses
from distboost.splits import gains
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.margin import EXPONENTIAL, LOGISTIC, ClassPairs, MarginWeights, Residuals

ε = 1e-12  # a slope that is only rounding


class Signed(NamedTuple):
    """A tree of -1 and +1."""

    tree: Tree
    h: np.ndarray  # (n_leaves,)
    T: np.ndarray  # T[h, y, r]: sums of E (or u) over the rows of class y != r, by side

    def slopes(self) -> np.ndarray:
        """sum_i V[i, r] h(x_i) of each class r."""
        S = self.T.sum(axis=2) - self.T.sum(axis=1)
        return S[1] - S[0]


@dataclass(kw_only=True, eq=False)
class LargeMargin(Algorithm):
    """The losses."""

    loss: str = parameter("exponential", StrOptions({"exponential", "logistic"}))
    nu: float = parameter(1e-9, Interval(Real, 0, None, closed="left"))

    weighting: MarginWeights = field(init=False)

    def __post_init__(self):
        self.weighting = MarginWeights(1.0, EXPONENTIAL if self.loss == "exponential" else LOGISTIC)

    def statistic(self, round: int) -> Residuals:
        return Residuals(self.weighting, wide=True)

    def steepest_stump(self, rows: Rows, grow: TreeGrower) -> Signed:
        """The stump, and class, of steepest descent: eq. 10. It has one leaf if no split has a slope."""
        tree = grow(self.statistic(rows.round), gains.CLASS_STUMP, max_depth=1)
        if tree.n_leaves == 1:
            return Signed(tree, np.ones(1), np.zeros((2, self.n_classes, self.n_classes)))
        return Signed(tree, *side_table(rows, tree, self.weighting, _rising))

    def slope(self, rows: Rows, found: Signed) -> float:
        """How fast the loss falls along the weak learner."""
        largest = float(found.slopes().max())
        if self.loss == "logistic":
            return largest * np.exp(rows.shift_of(ClassPairs(self.weighting)))
        return largest / (found.T.sum() + self.own_terms(rows, found))

    def own_terms(self, rows: Rows, found: Signed) -> float:
        """The sum of the terms r = y_i of the exponential loss, which are 1, in the unit of T."""
        return found.tree.weight * float(np.exp(-rows.shift_of(ClassPairs(self.weighting))))

    def loss_of(self, losses: Losses) -> float:
        log_n, log_total = np.log(losses.n), losses.log_weights[0]
        if self.loss == "exponential":
            return float(np.logaddexp(log_n, log_total))  # log sum_{i,r} E: the terms r = y_i are 1
        return float(losses.n * np.log(2) + np.exp(log_total))  # sum_{i,r} log(1 + E): ... are log 2

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return softmax(2 * F if self.loss == "exponential" else F, axis=1)


def _rising(S: np.ndarray) -> np.ndarray:
    """-1 and +1 or the other way round: so that the class of largest slope is the one to vote for."""
    D = S[1] - S[0]
    return np.array([-1.0, 1.0]) * signs(D[np.argmax(np.abs(D))])
