"""What totally corrective systems share: each round computes the coefficients of all stumps again, from all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from distboost.algorithms.base import Learner, Round
from distboost.errors import DataError
from distboost.trees.grower import Tree
from distboost.trees.tree import BinnedTree
from distboost.weights.corrective import Stumps


class TotallyCorrective:
    """Stumps h_t of -1 and +1, with coefficients W (T, K).

    Attributes
    ----------
    columns : list of tuple
        The splits of the stumps so far.
    polarity : ndarray of shape (T,), float64
        Their values on the right side.
    W : ndarray of shape (T, K), float64
    """

    n_classes: int

    corrective: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = ("coefficient_passes",)

    def check(self) -> None:
        """Raise DataError for parameters that contradict a totally corrective step."""
        for name in ("learning_rate", "subsample"):
            if getattr(self, name) != 1.0:
                raise DataError(
                    f"``{name}`` is {getattr(self, name)}, but {type(self).__name__} computes all coefficients from all rows "
                    "in every round.",
                    remedy="Set it to 1, or use ``StagewiseBoostClassifier``.",
                )

    def on_steps(self, steps: Sequence[Any]) -> None:
        """Store the stumps so far, their polarities (-1: the left side is +1) and their coefficients."""
        steps = [step for step in steps if len(step.values) == 2]
        self.columns = [_stump(step.tree) for step in steps]
        self.polarity = np.array([1.0 if np.signbit(step.values[0, 0]) else -1.0 for step in steps])
        self.W = np.array([np.abs(step.values[1]) for step in steps]).reshape(len(steps), self.n_classes)

    def with_stump(self, tree: BinnedTree, polarity: float) -> Stumps:
        """The stumps so far, and one more."""
        return stumps_of([*self.columns, _stump(tree)], np.append(self.polarity, polarity))

    def corrected(self, tree: Tree, polarity: np.ndarray, W: np.ndarray, passes: int) -> Round:
        """The round that adds the tree, with new coefficients for all stumps, (T, K)."""
        values = [np.outer([-p, p], w) for p, w in zip(polarity, W, strict=True)]
        return Round([Learner(tree, values[-1])], notes={"coefficient_passes": passes}, rewritten=values[:-1])


def stumps_of(columns: Sequence[tuple[Any, ...]], polarity: np.ndarray) -> Stumps:
    """The stumps with these splits."""
    if not columns:
        none = np.zeros(0, np.int64)
        return Stumps(none, none, np.zeros(0, bool), np.zeros((0, 0), np.uint64), polarity)
    feature, split_bin, missing_left, sets = (np.array(column) for column in zip(*columns, strict=True))
    return Stumps(feature.astype(np.int64), split_bin.astype(np.int64), missing_left, sets, polarity)


def _stump(tree: BinnedTree) -> tuple[Any, ...]:
    """Return the split of a stump: its feature, its bin, the side of missing values, and the set of the bins on the left."""
    return tree.feature[0], tree.bin[0], tree.missing_left[0], tree.sets[0]


def largest_change(changes: np.ndarray) -> float:
    """An upper bound of how far a difference of two scores changes, from changes (T, K) of the coefficients."""
    return float((changes.max(axis=1) - changes.min(axis=1)).sum())
