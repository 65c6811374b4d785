"""StructBoost for classes (Shen, Lin & van den Hengel, *StructBoost: boosting methods for predicting structured output*, 2014).

| paper | here |
| --- | --- |
| psi(x, y) | h_t(x) in the place of class y: one coefficient for each stump and class, W (T, K) >= 0 |
| Delta(y_i, y) | 1 for every wrong class |
| primal | min sum W + C / n sum_i max(0, max_y 1 + F[i, y] - F[i, y_i]), where F = H W |
| column generation | the stump h and the class y of largest sum_i h(x_i) V[i, y], for the dual mixture V of cuts (`MixedCuts`) |
| 1-slack cutting planes | a slack for each class of rows, to which each pass over the rows adds a plane (`CuttingPlanes`) |

Departures: K slacks in place of one, and planes at points between the best W so far and the solution of the linear program (the
paper's is that solution): both need fewer passes. Classes that tie for the largest loss share a row's cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import linprog

from distboost.algorithms.base import CONVERGED, LEARNING_RATE, Algorithm, Round, Softmax, parameter
from distboost.algorithms.classic.corrective import TotallyCorrective, largest_change, stumps_of
from distboost.algorithms.constraints import Interval
from distboost.errors import DistboostError
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.trees.grower import TreeGrower
from distboost.weights.corrective import Stumps
from distboost.weights.hinge import CuttingPlanes, HingeLoss, MixedCuts

# How far the next plane is from the best W so far, towards the solution of the linear program.
TOWARDS = 0.3


class Solution(NamedTuple):
    """Coefficients of all stumps, and the dual variables that prove how good they are."""

    W: np.ndarray  # (T, K) float64
    cuts: MixedCuts
    passes: int


@dataclass(kw_only=True, eq=False)
class StructBoost(TotallyCorrective, Algorithm):
    """StructBoost: totally corrective boosting of the multiclass hinge loss, by linear programs.

    Shen, Lin & van den Hengel, *StructBoost: boosting methods for predicting structured output variables*, IEEE Transactions on
    Pattern Analysis and Machine Intelligence, 2014, for classes. Weak learners are stumps. Every round computes the coefficients
    of all stumps again, in many passes over the rows. `staged_scores` returns partial sums with the final coefficients. Training
    ends as "converged" when no stump violates its dual constraint.

    Parameters
    ----------
    C : float, default=100.0
        Weight of the mean loss beside the l1 norm of the coefficients.
    tolerance : float, default=1e-3
        The objective is within this fraction of its minimum, and dual constraints hold up to it.

    Attributes
    ----------
    coefficient_passes_ : ndarray of shape (`n_iter_`,)
        Passes over the rows that each round's coefficients needed.
    """

    C: float = parameter(100.0, Interval(Real, 0, None, closed="neither"))
    tolerance: float = parameter(1e-3, Interval(Real, 1e-5, 0.1, closed="both"))
    learning_rate: float = parameter(1.0, LEARNING_RATE)
    subsample: float = parameter(1.0, Interval(Real, 0, 1, closed="right"))

    name: ClassVar[str] = "structboost"
    same_every_round: ClassVar[bool] = False
    gain: ClassVar[Gain] = gains.CLASS_STUMP
    weighting: HingeLoss = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = HingeLoss()
        self._solved: Solution | None = None
        self.on_steps([])

    def typical_statistic(self) -> MixedCuts:
        K = self.n_classes
        return MixedCuts(
            stumps_of([], self.polarity), np.zeros(0, np.int64), np.zeros((0, 0, K)), np.zeros((0, K))
        )

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return (n_rounds + 1) * self.n_classes**2

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        before = self._solution(rows)
        tree = grow(before.cuts, self.gain, max_depth=1)
        if tree.n_leaves == 1:
            return Round([])
        slopes = rows.histogram_scale.real(tree.sums[1] - tree.sums[0])
        y = int(np.abs(slopes).argmax())
        # The dual constraint: C / n sum_i h(x_i) V[i, y] <= 1
        if self.C / tree.weight * abs(slopes[y]) <= 1 + self.tolerance:
            return Round([], CONVERGED)
        stumps = self.with_stump(tree.binned, 1.0 if slopes[y] > 0 else -1.0)
        self._solved = found = self._cutting_planes(rows, stumps)
        change = largest_change(found.W - np.concatenate([self.W, np.zeros((1, self.n_classes))]))
        growth = np.log1p(np.array([change]))
        return self.corrected(tree, stumps.polarity, found.W, found.passes)._replace(growth=growth)

    def _solution(self, rows: Rows) -> Solution:
        """The solution for the stumps so far: a resumed training computes it again, in the same way."""
        stumps, K = stumps_of(self.columns, self.polarity), self.n_classes
        if not self.columns:
            # Each row has the loss 1, which all wrong classes share.
            cuts = MixedCuts(stumps, rows.n_bins, np.zeros((1, 0, K)), np.ones((1, K)))
            return Solution(np.zeros((0, K)), cuts, 0)
        if self._solved is None or len(self._solved.W) != len(self.columns):
            self._solved = self._cutting_planes(rows, stumps)
        return self._solved

    def _cutting_planes(self, rows: Rows, stumps: Stumps) -> Solution:
        """Add planes until the objective is within the tolerance of its lower bound, that of the linear program."""
        T, K, n = len(stumps.feature), self.n_classes, rows.counts[0].weight
        W = best = np.zeros((T, K))
        least, points, slopes, constants = np.inf, [], [], []
        while True:
            sums = rows.sums(CuttingPlanes(stumps, rows.n_bins, W), np.zeros(1, np.int64)) / n
            points.append(W)
            slopes.append(sums[:, :T].reshape(K, T * K))
            constants.append(sums[:, T, 0])
            losses = constants[-1] - slopes[-1] @ W.ravel()
            objective = W.sum() + self.C * losses.sum()
            if objective < least:
                least, best = objective, W
            bound, solution, shares = self._program(np.array(slopes), np.array(constants))
            if least - bound <= self.tolerance * least:
                break
            W = best + TOWARDS * (solution.reshape(T, K) - best)
        used = shares.any(axis=1)
        cuts = MixedCuts(stumps, rows.n_bins, np.array(points)[used], shares[used])
        return Solution(best, cuts, len(points))

    def _program(self, A: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """min sum W + C sum ξ over W, ξ >= 0 with ξ[y] >= b[p, y] - A[p, y] W: its value, W, and the shares of planes (P, K).

        A plane's share is its dual variable, divided by C.
        """
        P, K, n_coefficients = A.shape
        cost = np.concatenate([np.ones(n_coefficients), np.full(K, self.C)])
        slacks = np.tile(np.eye(K), (P, 1))
        found = linprog(
            cost, A_ub=-np.hstack([A.reshape(P * K, -1), slacks]), b_ub=-b.ravel(), method="highs"
        )
        if found.status != 0:
            raise DistboostError(
                f"StructBoost's linear program of {P * K} planes and {n_coefficients} coefficients was not solved: "
                f"{found.message} Lower ``C``, which is {self.C}, or raise ``tolerance``, which is {self.tolerance}."
            )
        shares = np.maximum(-found.ineqlin.marginals, 0.0).reshape(P, K) / self.C
        return float(found.fun), found.x[:n_coefficients], shares

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    @property
    def objective(self) -> str:
        return "multiclass hinge loss"

    @property
    def link(self) -> Softmax:
        return Softmax()
