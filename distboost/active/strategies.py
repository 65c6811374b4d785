"""Strategies: how useful a row's label would be, judged by the committee's scores of the row.

A strategy is a function utility(committee, X, G) of rows X (n, D) and their scores G (n, n_scores), in the form that training
keeps. It returns one number per row, (n,), float64. The rows with the largest numbers are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr

from distboost.algorithms.base import Algorithm
from distboost.estimators.parameters import algorithm_of
from distboost.model.ensemble import Ensemble
from distboost.threads import Threads

RANDOM, VOTES = "random", "votes"
# Relative tolerance of equal scores: AdaBoost.MO sums the coefficients of all columns into the score of a class, and rounds.
ROUNDING = 1e-9


class Committee(NamedTuple):
    """A trained ensemble, and the algorithm that decodes its scores."""

    algorithm: Algorithm
    ensemble: Ensemble

    @classmethod
    def from_estimator(cls, estimator: Any) -> Committee:
        """Return the committee of a fitted estimator."""
        return cls(algorithm_of(estimator, estimator.n_classes_), estimator.learned_.ensemble)

    def add_scores(self, X: np.ndarray, G: np.ndarray, first: int = 0, last: int | None = None) -> None:
        """Add the scores of rounds first .. last - 1 to G (n, n_scores), float64, in this thread."""
        self.ensemble.scores(X, Threads(1), first, G, last)


def margin(committee: Committee, X: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Huang 2009, algorithm 4, line 5: u(x) = 1 / (F_k(x) - F_j(x)), with the largest and the second largest score.

    Departure: F_j - F_k instead, which orders the rows in the same way and never divides by 0.
    """
    second, first = np.partition(committee.algorithm.decoded(G), -2, axis=1)[:, -2:].T
    utility: np.ndarray = second - first
    return utility


def entropy(committee: Committee, X: np.ndarray, G: np.ndarray) -> np.ndarray:
    """The entropy of the class probabilities, in nats."""
    found: np.ndarray = entr(committee.algorithm.probabilities(committee.algorithm.decoded(G))).sum(axis=1)
    return found


def vote_entropy(committee: Committee, X: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Dagan & Engelson 1995: -Σ_k V(k)/T ln V(k)/T, where V(k) of T members vote for class k.

    A member is a round of boosting. It votes for the class whose score it raises most, the first of equal ones. It does not vote
    if it adds the same to every class. Sums that differ only by rounding count as equal.
    """
    n, n_scores = G.shape
    votes = np.zeros((n, committee.algorithm.n_classes))
    rows = np.arange(n)
    ensemble = committee.ensemble
    n_learners = len(ensemble) * ensemble.per_round
    add = ensemble.adder(X, 0, n_learners)
    for begin in range(0, n_learners, ensemble.per_round):
        member = np.zeros((n, n_scores))
        add(begin, begin + ensemble.per_round, member)
        f = committee.algorithm.decoded(member)
        is_largest = f >= (f.max(axis=1) - ROUNDING * np.abs(f).max(axis=1))[:, None]
        votes[rows, is_largest.argmax(axis=1)] += ~is_largest.all(axis=1)
    found: np.ndarray = entr(votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)).sum(axis=1)
    return found


UTILITIES: dict[str, Callable[[Committee, np.ndarray, np.ndarray], np.ndarray]] = {
    "margin": margin,
    "entropy": entropy,
    VOTES: vote_entropy,
}
STRATEGIES = (*UTILITIES, RANDOM)
