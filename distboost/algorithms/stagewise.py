"""Stage-wise multiclass boosting (Paisitkriangkrai, Shen & van den Hengel, *A scalable stage-wise approach*).

| paper | here |
| --- | --- |
| rho, U, eq. 10-12 | see `large_margin.py` |
| w, eq. 13, 14 | w: each weak learner's coefficients, one per class, w >= 0 (`solvers/coefficients.py`) |
| nu, eta, kappa | `nu`, `learning_rate`, `max_step` |
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from distboost.algorithms.base import (
    CONVERGED,
    LARGEST_RATIO,
    LEARNING_RATE,
    NO_SPLIT,
    SEPARATED,
    Learner,
    Round,
    parameter,
    signs,
    size,
)
from distboost.algorithms.constraints import Interval
from distboost.algorithms.large_margin import LargeMargin, SignedTree, ε
from distboost.algorithms.solvers.coefficients import (
    POINTS,
    Coefficients,
    exponential_coefficients,
    logistic_coefficients,
)
from distboost.algorithms.tables import side_table
from distboost.kernels import gains
from distboost.rows.messages import Rows
from distboost.trees.grower import TreeGrower
from distboost.weights.margin import LogisticSlopes, ProjectedResiduals


@dataclass(kw_only=True, eq=False)
class StagewiseBoost(LargeMargin):
    """Stage-wise large-margin multiclass boosting.

    Paisitkriangkrai, Shen & van den Hengel, *A scalable stage-wise approach to large-margin multi-class loss based boosting*,
    Algorithm 1. Each round adds a weak learner of -1 and +1 with one non-negative coefficient per class. The coefficients
    minimise the loss exactly. Training ends as "converged" when no weak learner has a slope above `nu`.

    Parameters
    ----------
    max_step : float or None, default=None
        The largest coefficient; None: no limit.
    class_step : float or None, default=None
        The coefficient of the class of steepest descent, where those of all other classes are 0: the paper's figure 1 has 0.01.
        None: the coefficients that minimise the loss.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump. A deeper tree is grown for the class of the best stump, and its leaves have
        the signs that suit that class.
    learning_rate : float, default=0.5
        Shrinkage: each coefficient is multiplied by it.

    Attributes
    ----------
    coefficient_passes_ : ndarray of shape (`n_iter_`,)
        Passes over the rows that each round's coefficients needed, besides the pass that every round makes: none with the
        exponential loss, usually one with the logistic.
    """

    max_step: float | None = parameter(None, Interval(Real, 0, None, closed="neither"), None)
    class_step: float | None = parameter(None, Interval(Real, 0, 10, closed="right"), None, is_new=True)
    max_depth: int | None = size(1)
    learning_rate: float = parameter(0.5, LEARNING_RATE)

    name: ClassVar[str] = "stagewise"
    notes: ClassVar[tuple[str, ...]] = ("coefficient_passes",)

    def row_bytes(self, n_features: int) -> int:
        stump = super().row_bytes(n_features)
        if self.max_depth == 1:
            return stump
        # The deeper tree's statistic is kept beside the stump's.
        return stump + self._of_class(0).row_bytes(self.n_classes)

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        largest = super().reduction_size(n_leaves, n_rounds)
        if self.loss == "exponential":
            return largest
        nothing = np.zeros(0)
        slopes = LogisticSlopes(self.weighting, nothing, nothing, POINTS)
        return max(largest, slopes.size(n_leaves, self.n_classes))

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        found = self.steepest_stump(rows, grow)
        if found.tree.n_leaves > 1 and self.max_depth != 1:
            found = self._deeper(rows, grow, r=int(np.argmax(found.slopes())))
        ν = self.penalty(found.tree)
        if self.slope(rows, found) <= ν + ε:
            nothing = Learner(found.tree, np.zeros((found.tree.n_leaves, self.n_classes)))
            outcome = CONVERGED if found.tree.n_leaves > 1 else NO_SPLIT
            return Round([nothing], outcome, {"coefficient_passes": 0})
        w, unbounded, passes = self._coefficients(rows, found, ν)
        if self.max_step is not None:
            w = np.minimum(w, self.max_step)
        learner = Learner(found.tree, np.outer(found.h, w))
        # With more than two classes, a weak learner may separate two of them without an error while others remain mixed.
        separated = unbounded and self.n_classes == 2
        return Round([learner], SEPARATED if separated else "", {"coefficient_passes": passes})

    def _deeper(self, rows: Rows, grow: TreeGrower, r: int) -> SignedTree:
        """A tree for the slope of class r alone."""
        tree = grow(self._of_class(r), gains.DIRECTION, sums=False)
        return SignedTree(tree, *side_table(rows, tree, self.weighting, lambda S: signs(S[:, r])))

    def _of_class(self, r: int) -> ProjectedResiduals:
        return ProjectedResiduals(self.weighting, np.eye(self.n_classes)[r])

    def _coefficients(self, rows: Rows, found: SignedTree, ν: float) -> Coefficients:
        """The coefficients w that minimise eq. 13 (exponential loss) or eq. 14 (logistic loss), or those of `class_step`."""
        if self.class_step is not None:
            chosen = np.arange(self.n_classes) == np.argmax(found.slopes())
            return Coefficients(self.class_step * chosen, False, 0)
        if self.loss == "exponential":
            return exponential_coefficients(found.T, self.own_terms(rows, found), ν, LARGEST_RATIO)

        def slopes(centre: np.ndarray, nodes: np.ndarray) -> np.ndarray:
            reduction = LogisticSlopes(self.weighting, found.h, centre, nodes)
            U: np.ndarray = rows.sums(reduction, found.tree.leaves)
            U *= np.exp(rows.shift_of(reduction))  # in place: it may be large
            return U

        return logistic_coefficients(slopes, self.n_classes, ν, LARGEST_RATIO)
