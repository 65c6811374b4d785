"""What every boosting algorithm supplies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from distboost.rows import Losses, Rows
from distboost.weak.tree import Tree, TreeGrower
from distboost.weighting import Weighting


class Learner(NamedTuple):
    """A weak learner with its step: a tree whose leaves add `values` to the scores."""

    tree: Tree
    values: np.ndarray  # (n_leaves, K) float64
    separates: bool  # it makes no error, so that no finite step is the best one


class Algorithm(ABC):
    """One paper's formulas: how rows are weighted, how a round finds its weak learner and its step, what the loss is."""

    name: ClassVar[str]
    weighting: Weighting

    @abstractmethod
    def learn(self, rows: Rows, grow: TreeGrower) -> Learner:
        """The round's weak learner and its exact step, before shrinkage."""

    @abstractmethod
    def loss(self, losses: Losses) -> float:
        """The algorithm's own loss."""

    @abstractmethod
    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Class probabilities of which the scores (n, K) are the population minimiser."""
