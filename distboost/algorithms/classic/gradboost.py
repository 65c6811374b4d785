"""GradBoost with l1/l2 regularisation (Duchi & Singer, *Boosting with structural sparsity*, ICML 2009).

| paper | here |
| --- | --- |
| W, one row per feature | w_h in R^K for each stump h(x) in {-1, +1}: `self.w` |
| g | the mean over rows of h(x_i) (p_i - y_i), where p is the softmax of the scores; the sums are of V = y - p |
| lambda | `penalty` |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from distboost.algorithms.base import CONVERGED, Algorithm, Learner, Round, Softmax, parameter
from distboost.algorithms.constraints import Interval, StrOptions
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.trees.grower import TreeGrower
from distboost.weights.margin import SOFTMAX, HitsAndMisses, MarginWeights, Residuals

# A change of w is due to rounding, and might go on forever, if it is at most so many units in the last place of the numbers
# that it is computed from.
ROUNDING = 16


@dataclass(kw_only=True, eq=False)
class GradBoost(Algorithm):
    """GradBoost: stumps with one coefficient per class, moved by bounded gradient steps under a mixed-norm penalty.

    Duchi & Singer, *Boosting with structural sparsity*, ICML 2009. Training ends as "converged" when the penalty
    leaves the best stump's coefficients unchanged, except for rounding.

    Parameters
    ----------
    penalty : float, default=1e-4
        Weight of the sum of the Euclidean norms of the stumps' coefficients.
    """

    penalty: float = parameter(1e-4, Interval(Real, 0, None, closed="left"))
    score_dtype: str = parameter("float64", StrOptions({"float64", "float32"}))  # read for its last place

    name: ClassVar[str] = "gradboost"
    gain: ClassVar[Gain] = gains.DIRECTION_STUMP
    weighting: MarginWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = MarginWeights(1.0, SOFTMAX)
        # The coefficients w_h (K,) of each stump, by its split.
        self.w: dict[tuple[Any, ...], np.ndarray] = {}

    @property
    def compressions(self) -> frozenset[str]:
        # The mean gradient needs the weight of all rows, which a histogram counts.
        return frozenset({"sketch"})

    def statistic(self, round: int) -> Residuals:
        return Residuals(self.weighting)

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return HitsAndMisses(self.weighting).size(2, self.n_classes)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        # The stump whose row of the gradient has the largest norm.
        tree = grow(self.statistic(rows.round), self.gain, max_depth=1, sums=False)
        if tree.n_leaves == 1:
            return Round([Learner(tree, np.zeros((1, self.n_classes)))])
        sums = HitsAndMisses(self.weighting)
        hits, misses = np.moveaxis(rows.sums(sums, tree.leaves), 1, 0)
        scale = np.exp(rows.shift_of(sums))
        S = (hits - misses) * scale
        g = -(S[1] - S[0]) / tree.weight
        w = self.w.get(_stump(tree.binned), np.zeros(self.n_classes))
        # z = w - 2 g minimises the quadratic bound; the penalty multiplies it by max(0, 1 - 2 λ / |z|).
        z = w - 2 * g
        following = z * max(0.0, 1 - 2 * self.penalty / np.linalg.norm(z)) if z.any() else z
        change = following - w
        # z, and the sums whose difference is g
        operands = np.linalg.norm(z) + np.linalg.norm((hits + misses).sum(axis=0) * scale / tree.weight)
        if np.linalg.norm(change) <= ROUNDING * np.finfo(self.score_dtype).eps * operands:
            change = np.zeros_like(w)
        return Round([Learner(tree, np.outer([-1.0, 1.0], change))], "" if change.any() else CONVERGED)

    def on_steps(self, steps: Sequence[Any]) -> None:
        for step in steps:
            if len(step.values) == 2:
                stump = _stump(step.tree)
                self.w[stump] = self.w.get(stump, np.zeros(self.n_classes)) + step.values[1]

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    @property
    def objective(self) -> str:
        return "softmax loss"

    @property
    def link(self) -> Softmax:
        return Softmax()


def _stump(tree: Any) -> tuple[Any, ...]:
    return int(tree.feature[0]), int(tree.bin[0]), bool(tree.missing_left[0]), *tree.sets[0].tolist()
