"""MultiBoost (Shen & Hao, *A direct formulation for totally-corrective multi-class boosting*, CVPR 2011).

Column generation: each round adds the stump whose dual constraint is violated most, then minimises over the coefficients of all
stumps

    log sum_{i,r} exp(-rho[i, r]) + nu sum W     or     sum_{i,r} log(1 + exp(-rho[i, r])) + nu sum W,     W >= 0,

where rho[i, r] = F[i, y_i] - F[i, r], F = H W and H[i, t] = h_t(x_i). No finite set of sums determines the loss: each
evaluation of the solver is a pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from distboost.algorithms.base import CONVERGED, LARGEST_RATIO, LEARNING_RATE, Round, parameter
from distboost.algorithms.classic.corrective import TotallyCorrective, largest_change
from distboost.algorithms.constraints import Interval
from distboost.algorithms.large_margin import LargeMargin
from distboost.rows.messages import Rows
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.corrective import CorrectiveSlopes, Stumps
from distboost.weights.margin import EXPONENTIAL

# An evaluation scales its sums by an upper bound of the largest weight. If the bound's logarithm exceeds that of the last known
# largest weight by more than this, the sums lose too many digits: the evaluation is repeated with the weight that it found.
FAR = 3.0

# The solver stops where the slope of the loss per row is at most this in every coefficient.
SLOPE = 1e-9
RESTARTS = 10


@dataclass(kw_only=True, eq=False)
class MultiBoost(TotallyCorrective, LargeMargin):
    """MultiBoost: totally corrective boosting with direct multiclass margins.

    Shen & Hao, *A direct formulation for totally-corrective multi-class boosting*, CVPR 2011. Weak learners are stumps. Every
    round computes the coefficients of all stumps again, in many passes over the rows. `staged_scores` returns partial sums with
    the final coefficients. Training ends as "converged" when no stump has a slope above `nu`.

    Parameters
    ----------
    nu : float, default=1e-4
        Weight of the l1 norm of the coefficients.

    Attributes
    ----------
    coefficient_passes_ : ndarray of shape (`n_iter_`,)
        Passes over the rows that each round's coefficients needed.
    """

    nu: float = parameter(1e-4, Interval(Real, 0, None, closed="left"))
    learning_rate: float = parameter(1.0, LEARNING_RATE)
    subsample: float = parameter(1.0, Interval(Real, 0, 1, closed="right"))

    name: ClassVar[str] = "multiboost"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on_steps([])

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        # The slopes of the coefficients, one for each stump and class, and the loss.
        return max(super().reduction_size(2, n_rounds), (n_rounds + 1) * self.n_classes)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        found = self.steepest_stump(rows, grow)
        if found.tree.n_leaves == 1:
            return Round([])
        unit = 1.0 if self.loss == "exponential" else found.tree.weight
        # The solver leaves slopes up to SLOPE in the stumps already in use.
        if self.slope(rows, found) <= self.penalty(found.tree) + SLOPE * unit:
            return Round([], CONVERGED)
        stumps = self.with_stump(found.tree.binned, found.h[1])
        before = np.concatenate([self.W, np.zeros((1, self.n_classes))])
        W, passes = self._corrected(rows, found.tree, stumps, before)
        if not W[-1].any():
            return Round([], CONVERGED)
        growth = np.full(len(self.weighting.initial_shifts(self.n_classes)), largest_change(W - before))
        return self.corrected(found.tree, stumps.polarity, W, passes)._replace(growth=growth)

    def _corrected(self, rows: Rows, tree: Tree, stumps: Stumps, W: np.ndarray) -> tuple[np.ndarray, int]:
        """The coefficients (T, K) that minimise the loss over the rows of the tree, and the passes; the solver starts from W."""
        evaluate = _Evaluation(rows, stumps, self.weighting.link, n=tree.weight, nu=self.penalty(tree), W=W)
        # Curvatures that the solver keeps from earlier points may stall it. Then it restarts from where it stopped.
        for _ in range(RESTARTS):
            solution = minimize(
                evaluate,
                W.ravel(),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, LARGEST_RATIO)] * W.size,
                options={"maxcor": 30, "maxiter": 5000, "maxfun": 20_000, "ftol": 0.0, "gtol": SLOPE},
            )
            W = solution.x.reshape(W.shape)
            if np.abs(_inward(solution.jac.reshape(W.shape), W)).max() <= SLOPE or solution.nit <= 1:
                break
        return W, evaluate.passes


def _inward(gradient: np.ndarray, W: np.ndarray) -> np.ndarray:
    """The gradient (T, K), without the part that points out of W >= 0."""
    inward: np.ndarray = np.where(W > 0, gradient, np.minimum(gradient, 0.0))
    return inward


class _Evaluation:
    """The objective and its gradient at W, (T K,) as one vector. It expects W to change little from call to call.

    With the logistic loss both are divided by n.
    """

    def __init__(self, rows: Rows, stumps: Stumps, link: int, *, n: float, nu: float, W: np.ndarray):
        self.rows, self.stumps, self.link, self.n, self.nu = rows, stumps, link, n, nu
        # At W, the logarithms of the largest weight and the largest loss of a row are `shifts`.
        self.W = W
        self.shifts = np.resize(rows.shifts, 2)
        self.passes = 0

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        W = x.reshape(self.W.shape)
        while True:
            growth = largest_change(W - self.W)
            weight_shift, loss_shift = self.shifts + growth
            reduction = CorrectiveSlopes(
                self.stumps, self.rows.n_bins, W, self.link, weight_shift, loss_shift
            )
            sums, maxima, _ = self.rows.reduce(reduction, np.zeros(1, np.int64))
            self.passes += 1
            self.W, self.shifts = W.copy(), reduction.shifts + np.log(maxima)
            if growth <= FAR:
                break
        slopes, loss = sums[:-1], sums[-1, 0]
        if self.link == EXPONENTIAL:
            # log sum_{i,r} E[i, r], where the terms r = y_i are 1
            log_total = np.logaddexp(np.log(loss) + weight_shift, np.log(self.n))
            gradient = self.nu - (slopes * np.exp(weight_shift - log_total)).ravel()
            return float(log_total + self.nu * W.sum()), gradient
        value = loss * np.exp(loss_shift) + self.nu * W.sum()
        gradient = self.nu - (slopes * np.exp(weight_shift)).ravel()
        return float(value / self.n), gradient / self.n
