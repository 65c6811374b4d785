"""AdaBoost.M2 (Freund & Schapire 1996) and AdaBoost.MR (Schapire & Singer 1999): the loss over pairs of a row and a wrong label.

| papers | here |
| --- | --- |
| D_t(i, y) of M2, D_t(i, l0, l1) of MR | exp(-(F[i, y_i] - F[i, y]) / 2), up to a factor of the round; y = l0 is wrong |
| h_t(x, y) | `h`, 1 or 0: whether a leaf thinks the label plausible. MR's -1 for 0 only adds a constant to the scores of a row |
| pseudo-loss ε_t | (1 - r) / 2, with r = sum of D (h(x_i, y_i) - h(x_i, y)) |
| ln(1 / β_t) | M2: ln((1 - ε) / ε) = ln((1 + r) / (1 - r)) |
| Z_t, W+, W- | MR: the step ln(W+ / W-) minimises Z: W+ and W- are the weights of pairs that h orders right and wrong |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

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
)
from distboost.algorithms.constraints import StrOptions
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.margin import LineSides, MarginWeights, Residuals


@dataclass(kw_only=True, eq=False)
class AdaBoostM2(Algorithm):
    """AdaBoost.M2: trees that name the plausible labels of each leaf, and lower the pseudo-loss.

    Freund & Schapire, *Experiments with a new boosting algorithm*, ICML 1996. Any tree that orders labels better than chance is
    of use: the exact condition for boosting (Mukherjee & Schapire 2010).

    Parameters
    ----------
    vote : {"labels", "label"}, default="labels"
        "labels": a leaf names all labels that are more often right than wrong. "label": it names one.
    max_depth : int or None, default=3
        The largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    vote: str = parameter("labels", StrOptions({"labels", "label"}))
    max_depth: int | None = size(3)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "adaboost-m2"
    weighting: MarginWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = MarginWeights(1 / 2)

    @property
    def gain(self) -> Gain:
        return gains.CODEWORD if self.vote == "label" else gains.PLAUSIBLE

    def statistic(self, round: int) -> Residuals:
        return Residuals(self.weighting, wide=True)

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return LineSides(self.weighting, np.zeros((0, 0)), 0.0).size(n_leaves, self.n_classes)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        tree = grow(self.statistic(rows.round), self.gain)
        S = tree.sums
        h = np.eye(self.n_classes)[S.argmax(axis=1)] if self.vote == "label" else (S > 0).astype(np.float64)
        right, wrong, even = self._pairs(rows, tree, h)
        α = self.step(right, wrong, even)
        return Round([Learner(tree, α * h)], SEPARATED if wrong == even == 0 else "")

    def _pairs(self, rows: Rows, tree: Tree, h: np.ndarray) -> tuple[float, float, float]:
        """The weights of the pairs that h orders right, wrong and not at all."""
        if not h.any():
            return 0.0, 0.0, 1.0
        falling, _, rising, _, even = rows.sums(LineSides(self.weighting, h, 0.0), tree.leaves)
        return float(falling), float(rising), float(even)

    def step(self, right: float, wrong: float, even: float) -> float:
        """ln((1 - ε) / ε): pairs that h does not order count half."""
        return bounded_log_ratio(right + even / 2, wrong + even / 2, LARGEST_RATIO)

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    @property
    def link(self) -> Softmax:
        return Softmax()


@dataclass(kw_only=True, eq=False)
class AdaBoostMR(AdaBoostM2):
    """AdaBoost.MR: AdaBoost.M2 with the step that minimises the ranking loss.

    Schapire & Singer, *Improved boosting algorithms using confidence-rated predictions*, Machine Learning, 1999. The step ignores
    pairs that a tree does not order, so it is longer than AdaBoost.M2's.
    """

    name: ClassVar[str] = "adaboost-mr"

    def step(self, right: float, wrong: float, even: float) -> float:
        """ln(W+ / W-)."""
        return bounded_log_ratio(right, wrong, LARGEST_RATIO)
