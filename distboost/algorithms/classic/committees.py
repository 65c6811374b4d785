"""Multiclass boosting as binary problems side by side: one against all, AdaBoost.MO, Gentle AdaBoost.MH.

Each round adds one tree to the committee of every binary problem. A code has a column for each, which says what classes are +1
in it: see `weighting/codes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from distboost.algorithms.base import (
    LARGEST_RATIO,
    SEPARATED,
    Algorithm,
    Learner,
    Round,
    bounded_log_ratio,
    normalised_sigmoids,
    size,
    tree_signs,
)
from distboost.errors import LimitError
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses
from distboost.splits import gains
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.codes import CodeWeights, ColumnSides, ColumnSums, OneAgainstAll
from distboost.weights.response import is_fine, normalised, together


@dataclass(kw_only=True, eq=False)
class Committees(Algorithm):
    """What they share: a tree for each column of the code, one after another."""

    max_depth: int | None = size(1)
    max_leaf_nodes: int | None = size(None, 2)

    weighting: CodeWeights = field(init=False)

    def __post_init__(self):
        self.weighting = OneAgainstAll(self.n_classes)

    @property
    def histogram_sums(self) -> int:
        return 2  # the two sides of a column

    def row_bytes(self, n_features: int) -> int:
        return 8 + 16 + 4  # weight, scores and side in the column at hand

    @property
    def learners_per_round(self) -> int:
        return self.weighting.n_columns

    def statistic(self, round: int) -> ColumnSides:
        return ColumnSides(self.weighting, 0)

    def grow_all(self, rows: Rows, grow: TreeGrower, kind: int) -> Iterator[tuple[int, Tree]]:
        """A tree for each column, the rows parted by it."""
        for column in range(self.weighting.n_columns):
            yield column, grow(ColumnSides(self.weighting, column), kind)

    def sign_votes(
        self, rows: Rows, column: int, tree: Tree, stump: bool
    ) -> tuple[np.ndarray, float, float, float]:
        """What each leaf votes, -1 or +1, the weights that the votes get right and wrong, and the logarithm of their unit."""
        h, right, wrong = _signed(tree.sums, stump)
        # Neither a leaf's vote nor the step may hang on rounding.
        if is_fine(tree.sums.sum(axis=1), tree.mass).all() and is_fine(wrong, tree.mass.sum()):
            real = rows.histogram_scale.real
            return h, float(real(right)), float(real(wrong)), rows.histogram_scale.shift
        reduction = ColumnSums(self.weighting, column)
        h, right, wrong = _signed(together(rows.sums(reduction, tree.leaves)), stump)
        return h, float(right), float(wrong), rows.shift_of(reduction)

    def learner(self, column: int, tree: Tree, f: np.ndarray) -> Learner:
        """The tree adds f (n_leaves,) to the score of its column."""
        values = np.zeros((tree.n_leaves, self.weighting.n_columns))
        values[:, column] = f
        return Learner(tree, values)

    def loss_of(self, losses: Losses) -> float:
        return losses.mean / self.weighting.n_columns

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return normalised_sigmoids(F)


def _signed(sums: np.ndarray, stump: bool) -> tuple[np.ndarray, Any, Any]:
    N, P = sums.T
    h = tree_signs(P - N, stump)
    return h, np.where(h > 0, P, N).sum(), np.where(h > 0, N, P).sum()


@dataclass(kw_only=True, eq=False)
class OneVsAllAdaBoost(Committees):
    """One-vs-all AdaBoost: a committee for each class, against all others.

    Freund & Schapire, *A decision-theoretic generalization of on-line learning and an application to boosting*, 1997, for each
    class. A round adds a tree to every committee.

    Parameters
    ----------
    max_depth : int or None, default=1
        1 is a stump, whose sides have opposite signs; the leaves of a deeper tree choose theirs freely.
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves, else level by level.
    """

    name: ClassVar[str] = "one-vs-all"

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        stumps = self.max_depth == 1
        learners, separated = [], True
        for column, tree in self.grow_all(rows, grow, gains.VOTES_STUMP if stumps else gains.VOTES):
            h, right, wrong, _ = self.sign_votes(rows, column, tree, stumps)
            α = bounded_log_ratio(right, wrong, LARGEST_RATIO) / 2  # 1/2 ln((1 - ε) / ε)
            learners.append(self.learner(column, tree, α * h))
            separated &= wrong == 0
        return Round(learners, SEPARATED if separated else "")


@dataclass(kw_only=True, eq=False)
class AdaBoostMO(Committees):
    """AdaBoost.MO: AdaBoost.MH over every way to part the classes in two, for few classes.

    Schapire & Singer, *Improved boosting algorithms using confidence-rated predictions*, 1999, with the exhaustive code of
    2^(K-1) - 1 columns. A round adds a tree for every column, all of them with one step.

    Parameters
    ----------
    max_depth : int or None, default=1
        1 is a stump, whose sides have opposite signs; the leaves of a deeper tree choose theirs freely.
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves, else level by level.
    """

    name: ClassVar[str] = "adaboost-mo"
    most_classes: ClassVar[int] = 12

    def __post_init__(self):
        if self.n_classes > self.most_classes:
            raise LimitError(
                f"AdaBoost.MO with {self.n_classes} classes needs 2^{self.n_classes - 1} - 1 trees in each round; the limit "
                f"is {self.most_classes} classes. Use OneVsAllAdaBoostClassifier or AdaBoostECCClassifier."
            )
        # The first class is -1 in every column, so that none is another's opposite; no column is constant.
        columns = np.arange(1, 2 ** (self.n_classes - 1))
        code = np.where(columns >> np.arange(self.n_classes - 1)[:, None] & 1, 1.0, -1.0)
        code = np.concatenate([np.full((1, len(columns)), -1.0), code])
        self.weighting = CodeWeights(code, decode=code)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        stumps = self.max_depth == 1
        trees, found = [], []
        for column, tree in self.grow_all(rows, grow, gains.VOTES_STUMP if stumps else gains.VOTES):
            trees.append(tree)
            found.append(self.sign_votes(rows, column, tree, stumps))
        votes, rights, wrongs, shifts = zip(*found, strict=True)
        units = np.exp(np.array(shifts) - max(shifts))  # columns come in units of their own
        right, wrong = float(rights @ units), float(wrongs @ units)
        α = bounded_log_ratio(right, wrong, LARGEST_RATIO) / 2  # 1/2 ln((1 + r) / (1 - r)), over all columns
        learners = [self.learner(c, tree, α * votes[c]) for c, tree in enumerate(trees)]
        return Round(learners, SEPARATED if wrong == 0 else "")

    def decoded(self, G: np.ndarray) -> np.ndarray:
        F = np.zeros((len(G), self.n_classes))
        for column, score in zip(
            self.weighting.code.T, G.T, strict=True
        ):  # in the order that training adds them in
            F += score[:, None] * column
        return F

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        # In 2^(K-2) columns two classes have different codes: there their scores differ by twice the committee's.
        return softmax(F / 2 ** (self.n_classes - 2), axis=1)


@dataclass(kw_only=True, eq=False)
class GentleAdaBoost(Committees):
    """Gentle AdaBoost.MH: least-squares trees of -1 and +1, a committee for each class.

    Friedman, Hastie & Tibshirani, *Additive logistic regression: a statistical view of boosting*, 2000. With 2 classes, the
    committees mirror each other and are Gentle AdaBoost.

    Parameters
    ----------
    max_depth : int or None, default=1
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves, else level by level.
    """

    name: ClassVar[str] = "gentle-adaboost"

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        learners = []
        for column, tree in self.grow_all(rows, grow, gains.LEAST_SQUARES):
            C = tree.sums.astype(np.float64)
            light = ~is_fine(tree.sums.sum(axis=1), tree.mass)
            if light.any():
                C[light] = normalised(rows.sums(ColumnSums(self.weighting, column), tree.leaves[light]))
            N, P = C.T
            # The weighted mean of the labels in the leaf.
            f = np.divide(P - N, P + N, out=np.zeros(len(N)), where=P + N > 0)
            learners.append(self.learner(column, tree, f))
        return Round(learners)
