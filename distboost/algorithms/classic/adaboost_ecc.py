"""AdaBoost.ECC (Guruswami & Sahai, *Multiclass learning, boosting, and error-correcting codes*, 1999).

| paper | here |
| --- | --- |
| mu_t, coloring of the labels | `μ` (K,) of -1 and +1 |
| D_t(i, l) | e[i, l] = exp(-(F[i, y_i] - F[i, l]) / 2), up to a factor of the round |
| U_t, epsilon_t | the binary weights sum_l e[i, l] [μ(y_i) != μ(l)], and the share of it that h gets wrong |
| alpha_t | 1/2 ln((1 - epsilon_t) / epsilon_t) |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from distboost.algorithms.base import (
    LARGEST_RATIO,
    SEPARATED,
    Algorithm,
    Learner,
    Round,
    Softmax,
    bounded_log_ratio,
    parameter,
    size,
    tree_signs,
)
from distboost.algorithms.constraints import Interval
from distboost.algorithms.tables import code_table_size, levels_of, side_table
from distboost.errors import DataError
from distboost.kernels import gains, random
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
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
        Which classes are +1, one row per round. None: half of the classes (rounded down), drawn at random from `random_state` and
        the round.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump, whose two sides have opposite signs. Each leaf of a deeper tree has its own
        sign.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    colorings: Any = parameter(None, "array-like", None)
    max_depth: int | None = size(1)
    max_leaf_nodes: int | None = size(None, 2)
    n_estimators: int = parameter(100, Interval(Integral, 1, None, closed="left"))
    random_state: Any = parameter(0, "random_state")

    name: ClassVar[str] = "adaboost-ecc"
    same_every_round: ClassVar[bool] = False
    weighting: MarginWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = MarginWeights(1 / 2)

    def check(self) -> None:
        """Raise DataError unless `colorings` has -1 or +1 for each round and class, and both in every round."""
        if self.colorings is None:
            return
        μ = np.asarray(self.colorings)
        if μ.ndim != 2 or μ.shape[1] != self.n_classes or len(μ) < self.n_estimators:
            raise DataError(
                f"colorings has shape {μ.shape}, expected ({self.n_estimators}, {self.n_classes}).",
                remedy="Pass a row for each round and a column for each class.",
            )
        if not np.isin(μ, (-1, 1)).all() or (np.abs(μ.sum(axis=1)) == self.n_classes).any():
            raise DataError(
                "colorings has a row without -1 or +1, or another number.",
                remedy="Pass -1 and +1, and both in every row.",
            )

    @property
    def gain(self) -> Gain:
        return gains.CLASS_STUMP if self.max_depth == 1 else gains.DIRECTION

    def statistic(self, round: int) -> ProjectedResiduals:
        # A row's binary weight U, with the sign μ(y_i): the residuals along μ
        return ProjectedResiduals(self.weighting, self._coloring(round))

    def typical_statistic(self) -> ProjectedResiduals:
        # One wide number per row, whatever the coloring; `colorings` are not checked yet.
        return ProjectedResiduals(self.weighting, np.zeros(self.n_classes))

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return code_table_size(n_leaves, self.n_classes)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        μ = self._coloring(rows.round)
        stumps = self.max_depth == 1
        tree = grow(self.statistic(rows.round), self.gain, sums=False)
        v, levels = levels_of(μ)
        h, T = side_table(rows, tree, self.weighting, lambda S: tree_signs(S @ v, stumps), levels)
        apart = T * (v[:, None] != v)
        right = apart[1][v > 0].sum() + apart[0][v < 0].sum()
        wrong = apart.sum() - right if apart.sum() > right else 0.0
        # α = 1/2 ln((1 - ε) / ε)
        α = bounded_log_ratio(right, wrong, LARGEST_RATIO) / 2
        # Without an error, classes of the same color may still be mixed.
        separated = wrong == 0 and apart.sum() == T.sum()
        return Round([Learner(tree, α * np.outer(h, μ))], SEPARATED if separated else "")

    def _coloring(self, round: int) -> np.ndarray:
        """μ of a round: given, or half of the classes drawn at random."""
        if self.colorings is not None:
            given: np.ndarray = np.asarray(self.colorings, np.float64)[round - 1]
            return given
        draws = random.uniforms(random.key(self.random_state, random.COLORING, round), 0, self.n_classes)
        μ = np.full(self.n_classes, -1.0)
        μ[np.argsort(draws, kind="stable")[: self.n_classes // 2]] = 1.0
        return μ

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    @property
    def link(self) -> Softmax:
        return Softmax()
