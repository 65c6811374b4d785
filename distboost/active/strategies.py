"""Strategies: how useful a row's label would be, as the committee judges the row.

A strategy is a function utility(judged) of some rows, which returns one number per row, (n,), float64. The rows with the largest
numbers are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from scipy.special import entr

from distboost.active.forest import ForestCommittee, is_forest
from distboost.algorithms.base import Algorithm
from distboost.algorithms.gamble import GAMBLE
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.parameters import algorithm_of
from distboost.model.ensemble import Ensemble
from distboost.threads import Threads

RANDOM = "random"

# strategy(probabilities (n, K), members (T, n, K), rows (n,)) -> utilities (n,)
Function = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]


class Committee(Protocol):
    """A trained committee: its scores G (n, n_scores) of rows, in a form that may be kept, and what they decode to."""

    @property
    def n_classes(self) -> int: ...

    @property
    def takes_first(self) -> bool:
        """Whether the first rows of the pool come first of equally useful ones, not random ones."""

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the scores G of the rows X (n, D), float64, computed in this thread."""

    def decoded(self, G: np.ndarray) -> np.ndarray:
        """Return the score of each class, (n, K)."""

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Return the probability of each class, (n, K), from these."""

    def members(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the scores of the classes by each member, (n, K)."""


@dataclass(frozen=True)
class Boosted:
    """An ensemble of rounds, each of which is a member, and the algorithm that decodes its scores."""

    algorithm: Algorithm
    ensemble: Ensemble

    @property
    def n_classes(self) -> int:
        return self.algorithm.n_classes

    @property
    def takes_first(self) -> bool:
        return isinstance(self.algorithm, GAMBLE)  # Huang 2009, algorithm 4, as its traces were made

    def scores(self, X: np.ndarray) -> np.ndarray:
        G = np.zeros((len(X), self.ensemble.n_scores))
        self.add_scores(X, G)
        return G

    def add_scores(self, X: np.ndarray, G: np.ndarray, first: int = 0, last: int | None = None) -> None:
        """Add the scores of rounds first .. last - 1 to G (n, n_scores), float64, in this thread."""
        self.ensemble.scores(X, Threads(1), first, G, last)

    def decoded(self, G: np.ndarray) -> np.ndarray:
        return self.algorithm.decoded(G)

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return self.algorithm.probabilities(F)

    def members(self, X: np.ndarray) -> Iterator[np.ndarray]:
        ensemble = self.ensemble
        n_learners = len(ensemble) * ensemble.per_round
        add = ensemble.adder(X, 0, n_learners)
        for begin in range(0, n_learners, ensemble.per_round):
            member = np.zeros((len(X), ensemble.n_scores))
            add(begin, begin + ensemble.per_round, member)
            yield self.decoded(member)


@dataclass(frozen=True)
class Classifier:
    """Any classifier with `predict_proba`. Its scores are probabilities; its members, if it has some, are its `estimators_`."""

    classifier: Any

    takes_first = False

    @property
    def n_classes(self) -> int:
        return len(self.classifier.classes_)

    def scores(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.classifier.predict_proba(X), np.float64)

    def decoded(self, G: np.ndarray) -> np.ndarray:
        return G

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return F

    def members(self, X: np.ndarray) -> Iterator[np.ndarray]:
        members = np.ravel(getattr(self.classifier, "estimators_", ()))
        if not len(members) or not all(hasattr(member, "predict_proba") for member in members):
            yield self.scores(X)
            return
        for member in members:
            found = np.zeros((len(X), self.n_classes))
            # The members of scikit-learn's ensembles have codes in place of the classes.
            found[:, np.asarray(member.classes_, np.int64)] = member.predict_proba(X)
            yield found


def committee_of(estimator: Any) -> Committee:
    """Return the committee of a fitted estimator."""
    if isinstance(estimator, BoostingClassifier):
        return Boosted(algorithm_of(estimator, estimator.n_classes_), estimator.learned_.ensemble)
    return ForestCommittee.of(estimator) if is_forest(estimator) else Classifier(estimator)


@dataclass(frozen=True)
class Judged:
    """Rows of the pool, and what the committee says of them.

    Attributes
    ----------
    committee : Committee
    X : ndarray of shape (n, n_features)
    scores : ndarray of shape (n, n_classes), float64
    rows : ndarray of shape (n,), int64
        Their numbers in the pool.
    """

    committee: Committee
    X: np.ndarray
    scores: np.ndarray
    rows: np.ndarray

    @cached_property
    def probabilities(self) -> np.ndarray:
        """The probability of each class, (n, n_classes)."""
        return self.committee.probabilities(self.scores)


def margin(judged: Judged) -> np.ndarray:
    """Huang 2009, algorithm 4, line 5: u(x) = 1 / (F_k(x) - F_j(x)), with the largest and the second largest score.

    Departure: F_j - F_k instead, which orders the rows in the same way and never divides by 0.
    """
    return -_distance(judged.scores)


def entropy(judged: Judged) -> np.ndarray:
    """The entropy of the class probabilities, in nats."""
    found: np.ndarray = entr(judged.probabilities).sum(axis=1)
    return found


def averaged_margin(judged: Judged) -> np.ndarray:
    """The margin of each member, averaged: small where the members are unsure, whether or not they agree."""
    n, total = 0, np.zeros(len(judged.X))
    for member in judged.committee.members(judged.X):
        total += _distance(member)
        n += 1
    return -total / n


def _distance(scores: np.ndarray) -> np.ndarray:
    """Return the difference between the two largest scores of each row."""
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    found: np.ndarray = first - second
    return found


UTILITIES: dict[str, Callable[[Judged], np.ndarray]] = {
    "margin": margin,
    "entropy": entropy,
    "averaged-margin": averaged_margin,
}
STRATEGIES = (*UTILITIES, RANDOM)
FORMER = ("votes",)  # strategies that logs may name, but nothing asks by any more


def name_of(strategy: str | Function) -> str:
    """Return the name of a strategy: that of a function has a dot."""
    if isinstance(strategy, str):
        return strategy
    return f"{strategy.__module__}.{getattr(strategy, '__qualname__', type(strategy).__qualname__)}"


def utility_of(strategy: str | Function) -> Callable[[Judged], np.ndarray]:
    """Return the function of a strategy; one of the user's is called with arrays."""
    return UTILITIES[strategy] if isinstance(strategy, str) else partial(_own_utility, strategy)


def _own_utility(strategy: Function, judged: Judged) -> np.ndarray:
    members = np.stack([*judged.committee.members(judged.X)])
    found = np.asarray(strategy(judged.probabilities, members, judged.rows), np.float64)
    if found.shape != (len(judged.rows),) or np.isnan(found).any():
        raise DataError(
            f"the strategy {name_of(strategy)} returned an array of shape {found.shape} for {len(judged.rows)} "
            f"rows{', with NaN' if np.isnan(found).any() else ''}.",
            remedy="Return one number for each row: how useful its label would be.",
        )
    return found
