"""AdaBoost.MH (Schapire & Singer, *Improved boosting algorithms using confidence-rated predictions*, 1999).

| paper | here |
| --- | --- |
| Y[i, l] | +1 for the row's class, -1 for the others |
| D_t(i, l) | exp(-Y F), up to a factor; its sums over the rows of a leaf, by label: P where Y is +1, N where Y is -1 |
| r_t | sum of D Y h / sum of D |
| Z_t | 2 sum sqrt(W+ W-), which "real" minimises |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from distboost.algorithms.base import (
    LARGEST_RATIO,
    NO_BETTER_THAN_CHANCE,
    SEPARATED,
    Algorithm,
    Learner,
    NormalisedSigmoids,
    Round,
    bounded_log_ratio,
    parameter,
    signs,
    size,
)
from distboost.algorithms.constraints import StrOptions
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.codes import CodeSides, CodeWeights, OneAgainstAll, one_against_all


@dataclass(kw_only=True, eq=False)
class AdaBoostMH(Algorithm):
    """AdaBoost.MH: one tree per round for all binary questions "does the row have this class?".

    Schapire & Singer, *Improved boosting algorithms using confidence-rated predictions*, Machine Learning, 1999.

    Parameters
    ----------
    vote : {"sign", "label", "real"}, default="sign"
        "sign": each leaf votes -1 or +1 for each class, with one step for all. "label": each leaf votes +1 for one class and -1
        for all others; training ends as "no better than chance" before a tree whose votes agree with half of the weight or less.
        "real": each leaf votes with a real number for each class.
    max_depth : int or None, default=1
        The largest depth of a tree. With sign votes, the two sides of a stump have opposite votes (the factorised weak
        learner). Each leaf of a deeper tree has its own votes.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    vote: str = parameter("sign", StrOptions({"sign", "label", "real"}))
    max_depth: int | None = size(1)
    max_leaf_nodes: int | None = size(None, 2)

    name: ClassVar[str] = "adaboost-mh"
    weighting: CodeWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = OneAgainstAll(self.n_classes)

    @property
    def gain(self) -> Gain:
        if self.vote == "real":
            return gains.REAL_VOTES
        if self.vote == "label":
            return gains.LABEL_VOTES
        return gains.VOTES_STUMP if self.max_depth == 1 else gains.VOTES

    def statistic(self, round: int) -> CodeSides:
        return CodeSides(self.weighting)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        tree = grow(self.statistic(rows.round), self.gain)
        if self.vote == "real":
            return self._real_votes(rows, tree)
        N, P = np.split(rows.histogram_scale.real(tree.sums), 2, axis=1)
        S = P - N
        v = self._votes(S)
        agree, differ = np.where(v > 0, P, N).sum(), np.where(v > 0, N, P).sum()
        # After its step, a tree's edge is 0 but for rounding.
        if self.vote == "label" and agree - differ <= gains.NOISE * agree:
            return Round([], NO_BETTER_THAN_CHANCE)
        # α = 1/2 ln((1 + r) / (1 - r)), where r is the correlation of votes and labels
        α = bounded_log_ratio(agree, differ, LARGEST_RATIO) / 2
        return Round([Learner(tree, α * v)], SEPARATED if differ == 0 else "")

    def _votes(self, S: np.ndarray) -> np.ndarray:
        """The leaves' votes of -1 and +1, (n_leaves, K)."""
        if self.vote == "label":
            codewords: np.ndarray = one_against_all(self.n_classes)[S.argmax(axis=1)]
            return codewords
        if self.max_depth == 1 and len(S) == 2:
            return np.outer([-1.0, 1.0], signs(S[1] - S[0]))
        return signs(S)

    def _real_votes(self, rows: Rows, tree: Tree) -> Round:
        N, P = np.split(rows.histogram_scale.real(tree.sums), 2, axis=1)
        D = (N + P).sum()
        # ε = 1 / (2 n K), the smoothing that Schapire & Singer propose
        ε = 1 / (2 * tree.weight * self.n_classes) if tree.weight > 0 else 0.0
        # 1/2 ln((W+ + ε) / (W- + ε)), with weights whose sum is 1
        votes = (np.log(P / D + ε) - np.log(N / D + ε)) / 2
        return Round([Learner(tree, votes)])

    def loss_of(self, losses: Losses) -> float:
        return losses.mean / self.n_classes

    @property
    def link(self) -> NormalisedSigmoids:
        return NormalisedSigmoids()
