"""Multiclass boosting as several binary problems: one against all, AdaBoost.MO, Gentle AdaBoost.MH.

Each round adds one tree to the committee of every binary problem. Each problem has a column of the code, which says which
classes are +1 in it: see `weights/codes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from distboost.algorithms.base import (
    LARGEST_RATIO,
    SEPARATED,
    Algorithm,
    Learner,
    Link,
    NormalisedSigmoids,
    Round,
    Softmax,
    bounded_log_ratio,
    size,
    tree_signs,
)
from distboost.errors import LimitError
from distboost.kernels import gains
from distboost.kernels.elementary import tanh
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.codes import CodeWeights, ColumnSides, ColumnSums, OneAgainstAll, exhaustive
from distboost.weights.response import add_windows, is_precise, normalised

# The most columns of a code: all ways to divide 12 classes into two groups, or all pairs of 64 classes.
MOST_COLUMNS = 2047


@dataclass(kw_only=True, eq=False)
class Committees(Algorithm):
    """A tree for each column of the code, one after another.

    Parameters
    ----------
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump, whose two sides have opposite signs. Each leaf of a deeper tree has its own
        sign.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
    """

    max_depth: int | None = size(1)
    max_leaf_nodes: int | None = size(None, 2)

    weighting: CodeWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = OneAgainstAll(self.n_classes)

    @property
    def learners_per_round(self) -> int:
        return self.weighting.n_columns

    @property
    def gain(self) -> Gain:
        return gains.VOTES_STUMP if self.max_depth == 1 else gains.VOTES

    def statistic(self, round: int) -> ColumnSides:
        return ColumnSides(self.weighting, 0)

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return ColumnSums(self.weighting, 0).size(n_leaves, self.n_classes)

    def grow_all(self, rows: Rows, grow: TreeGrower) -> Iterator[tuple[int, Tree]]:
        """Grow a tree for each column and yield it. Until the next tree, the rows lie in the nodes of this one."""
        for column in range(self.weighting.n_columns):
            yield column, grow(ColumnSides(self.weighting, column), self.gain)

    def sign_votes(
        self, rows: Rows, column: int, tree: Tree, stump: bool
    ) -> tuple[np.ndarray, float, float, float]:
        """The leaves' votes (n_leaves,) of -1 and +1, the weights that they get right and wrong, and the log of their unit."""
        h, right, wrong = _signed(tree.sums, stump)
        # If rounding could decide a leaf's vote or the step, sum again with more digits.
        if is_precise(tree.sums.sum(axis=1), tree.mass).all() and is_precise(wrong, tree.mass.sum()):
            real = rows.histogram_scale.real
            return h, float(real(right)), float(real(wrong)), rows.histogram_scale.shift
        reduction = ColumnSums(self.weighting, column)
        h, right, wrong = _signed(add_windows(rows.sums(reduction, tree.leaves)), stump)
        return h, float(right), float(wrong), rows.shift_of(reduction)

    def learner(self, column: int, tree: Tree, f: np.ndarray) -> Learner:
        """The tree adds f (n_leaves,) to the score of its column."""
        values = np.zeros((tree.n_leaves, self.weighting.n_columns))
        values[:, column] = f
        return Learner(tree, values)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        """AdaBoost in each column, with a step of its own."""
        stumps = self.max_depth == 1
        learners, separated = [], True
        for column, tree in self.grow_all(rows, grow):
            h, right, wrong, _ = self.sign_votes(rows, column, tree, stumps)
            learners.append(self.learner(column, tree, self.step(rows, tree, column, right, wrong) * h))
            separated &= wrong == 0
        return Round(learners, SEPARATED if separated else "")

    def step(self, rows: Rows, tree: Tree, column: int, right: float, wrong: float) -> float:
        """α = 1/2 ln((1 - ε) / ε)."""
        return bounded_log_ratio(right, wrong, LARGEST_RATIO) / 2

    def loss_of(self, losses: Losses) -> float:
        return losses.mean / self.weighting.n_columns

    def decoded(self, G: np.ndarray) -> np.ndarray:
        if self.weighting.decode is None:
            return G
        if self.weighting.votes:
            G = tanh(G)
        F = np.zeros((len(G), self.n_classes))
        # In the order of training's sums, so that the last bits agree.
        for column, score in zip(self.weighting.decode.T, G.T, strict=True):
            F += score[:, None] * column
        return F

    @property
    def link(self) -> Link:
        M, K = self.weighting.decode, self.n_classes
        if M is None:
            return NormalisedSigmoids()
        # Where two classes have opposite codes, their scores differ by twice the committee's score, which is half of the log
        # odds. So a difference of scores is that of the logarithms of probabilities times the mean of |M[k] - M[l]|^2 / 4.
        distances = 2 * K * (M**2).sum() - 2 * (M.sum(axis=0) ** 2).sum()
        return Softmax(float(distances / (4 * K * (K - 1))))


def check_columns(n_columns: int, name: str) -> None:
    """Raise LimitError if a code has too many columns, each of which takes a tree in each round and a score of each row."""
    if n_columns > MOST_COLUMNS:
        raise LimitError(
            f"{name} needs {n_columns:,} trees in each round; the limit is {MOST_COLUMNS:,}.",
            remedy="Use ``OneVsAllAdaBoostClassifier``, ``AdaBoostECCClassifier`` or ``OutputCodeClassifier`` with "
            "``code='random'``.",
            where=name,
        )


def _signed(sums: np.ndarray, stump: bool) -> tuple[np.ndarray, Any, Any]:
    """The leaves' votes (n_leaves,), and the sums that they get right and wrong, from the sums (n_leaves, 2) of the sides."""
    N, P = sums.T
    h = tree_signs(P - N, stump)
    return h, np.where(h > 0, P, N).sum(), np.where(h > 0, N, P).sum()


@dataclass(kw_only=True, eq=False)
class OneVsAllAdaBoost(Committees):
    """One-vs-all AdaBoost: a committee for each class, against all others.

    Freund & Schapire, *A decision-theoretic generalization of on-line learning and an application to boosting*, 1997, for each
    class. A round adds a tree to every committee.
    """

    name: ClassVar[str] = "one-vs-all"


@dataclass(kw_only=True, eq=False)
class AdaBoostMO(Committees):
    """AdaBoost.MO: AdaBoost.MH over all ways to split the classes into two groups, for few classes.

    Schapire & Singer, *Improved boosting algorithms using confidence-rated predictions*, 1999, with the exhaustive code of
    2^(K-1) - 1 columns. A round adds a tree for every column, all of them with one step.
    """

    name: ClassVar[str] = "adaboost-mo"

    def __post_init__(self) -> None:
        check_columns(2 ** (self.n_classes - 1) - 1, f"AdaBoost.MO with {self.n_classes} classes")
        code = exhaustive(self.n_classes)
        self.weighting = CodeWeights(code, decode=code)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        stumps = self.max_depth == 1
        trees, found = [], []
        for column, tree in self.grow_all(rows, grow):
            trees.append(tree)
            found.append(self.sign_votes(rows, column, tree, stumps))
        votes, rights, wrongs, shifts = zip(*found, strict=True)
        # Each column's sums have a unit of their own.
        units = np.exp(np.array(shifts) - max(shifts))
        right, wrong = float(rights @ units), float(wrongs @ units)
        # α = 1/2 ln((1 + r) / (1 - r)), where r is over all columns
        α = bounded_log_ratio(right, wrong, LARGEST_RATIO) / 2
        learners = [self.learner(c, tree, α * votes[c]) for c, tree in enumerate(trees)]
        return Round(learners, SEPARATED if wrong == 0 else "")


@dataclass(kw_only=True, eq=False)
class GentleAdaBoost(Committees):
    """Gentle AdaBoost.MH: least-squares trees of -1 and +1, a committee for each class.

    Friedman, Hastie & Tibshirani, *Additive logistic regression: a statistical view of boosting*, 2000. With 2 classes, the
    two committees have opposite scores, each of which is Gentle AdaBoost.

    Parameters
    ----------
    max_depth : int or None, default=1
        The largest depth of a tree; None: no limit.
    """

    name: ClassVar[str] = "gentle-adaboost"

    @property
    def gain(self) -> Gain:
        return gains.LEAST_SQUARES

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        learners = []
        for column, tree in self.grow_all(rows, grow):
            C = tree.sums.astype(np.float64)
            light = ~is_precise(tree.sums.sum(axis=1), tree.mass)
            if light.any():
                C[light] = normalised(rows.sums(ColumnSums(self.weighting, column), tree.leaves[light]))
            N, P = C.T
            # f = (P - N) / (P + N), the weighted mean of the labels in the leaf
            f = np.divide(P - N, P + N, out=np.zeros(len(N)), where=P + N > 0)
            learners.append(self.learner(column, tree, f))
        return Round(learners)
