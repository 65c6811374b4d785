"""AdaBoost.ECC (Guruswami & Sahai, *Multiclass learning, boosting, and error-correcting codes*, 1999)."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.utils._param_validation import Interval

from distboost.algorithms.base import (
    LARGEST_RATIO,
    SEPARATED,
    Algorithm,
    Learner,
    Round,
    bounded_log_ratio,
    parameter,
    size,
    statistic_bytes,
    tree_signs,
)
from distboost.algorithms.tables import side_table
from distboost.errors import DataError
from distboost.kernels import random
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses
from distboost.splits import gains
from distboost.trees.grower import TreeGrower
from distboost.weights.margin import MarginWeights, ProjectedResiduals


@dataclass(kw_only=True, eq=False)
class AdaBoostECC(Algorithm):
    """AdaBoost.ECC: in each round, half of the classes against the other half.

    Guruswami & Sahai, *Multiclass learning, boosting, and error-correcting codes*, COLT 1999, with colorings drawn at random
    ("random-half").

    Parameters
    ----------
    colorings : sequence of sequences of -1 and +1, or None, default=None
        Which classes are +1, one row per round; None: half of the classes (rounded down), drawn by `random_state` and round.
    max_depth : int or None, default=1
        1 is a stump, whose sides have opposite signs; the leaves of a deeper tree choose theirs freely.
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves, else level by level.
    """

    colorings: Any = parameter(None, "array-like", None)
    max_depth: int | None = size(1)
    max_leaf_nodes: int | None = size(None, 2)
    n_estimators: int = parameter(100, Interval(Integral, 1, None, closed="left"))
    random_state: Any = parameter(0, "random_state")

    name: ClassVar[str] = "adaboost-ecc"
    same_every_round: ClassVar[bool] = False
    weighting: MarginWeights = field(init=False)

    def __post_init__(self):
        self.weighting = MarginWeights(1 / 2)

    @property
    def histogram_sums(self) -> int:
        return 1

    def row_bytes(self, n_features: int) -> int:
        return statistic_bytes(1, wide=True)

    def check(self) -> None:
        """Refuses colorings that are not one of -1 and +1 for each round and class."""
        if self.colorings is None:
            return
        μ = np.asarray(self.colorings)
        if μ.ndim != 2 or μ.shape[1] != self.n_classes or len(μ) < self.n_estimators:
            raise DataError(
                f"colorings has shape {μ.shape}, expected ({self.n_estimators}, {self.n_classes}): a row for each round, a "
                "column for each class."
            )
        if not np.isin(μ, (-1, 1)).all() or (np.abs(μ.sum(axis=1)) == self.n_classes).any():
            raise DataError("colorings must hold -1 and +1 only, and both of them in every row.")

    def statistic(self, round: int) -> ProjectedResiduals:
        # Binary weights of the rows: sum_l e[i, l] [μ(y_i) != μ(l)]; with the sign μ(y_i), the residuals along μ.
        return ProjectedResiduals(self.weighting, self._coloring(round))

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        μ = self._coloring(rows.round)
        stumps = self.max_depth == 1
        tree = grow(self.statistic(rows.round), gains.CLASS_STUMP if stumps else gains.DIRECTION)
        h, T = side_table(rows, tree, self.weighting, lambda S: tree_signs(S @ μ, stumps))
        apart = T * (μ[:, None] != μ)
        right = apart[1][μ > 0].sum() + apart[0][μ < 0].sum()
        wrong = apart.sum() - right if apart.sum() > right else 0.0
        α = bounded_log_ratio(right, wrong, LARGEST_RATIO) / 2  # 1/2 ln((1 - ε) / ε)
        # Without an error, classes of the same color are still to be told apart.
        separated = wrong == 0 and apart.sum() == T.sum()
        return Round([Learner(tree, α * np.outer(h, μ))], SEPARATED if separated else "")

    def _coloring(self, round: int) -> np.ndarray:
        if self.colorings is not None:
            return np.asarray(self.colorings, np.float64)[round - 1]
        draws = random.uniforms(random.key(self.random_state, random.COLORING, round), 0, self.n_classes)
        μ = np.full(self.n_classes, -1.0)
        μ[np.argsort(draws, kind="stable")[: self.n_classes // 2]] = 1.0
        return μ

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return softmax(F, axis=1)
