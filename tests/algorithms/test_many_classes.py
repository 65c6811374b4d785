"""CD-MCBoost with many classes: what a round takes grows with the classes, not with their square or cube."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost import CDMCBoostClassifier
from distboost.algorithms import tables
from distboost.algorithms.mcboost import CDMCBoost, simplex_coordinate
from distboost.baselines import AdaBoostECCClassifier

MANY = 20_000


def simplex(K):
    """All codewords (K, K - 1), by the recursion over the classes."""
    Y = np.array([[1.0], [-1.0]])
    for k in range(3, K + 1):
        first = np.concatenate([[1.0], np.full(k - 1, -1 / (k - 1))])
        rest = np.concatenate([np.zeros((1, k - 2)), np.sqrt(1 - 1 / (k - 1) ** 2) * Y])
        Y = np.concatenate([first[:, None], rest], axis=1)
    return Y


@pytest.mark.parametrize("K", [2, 3, 4, 10, 57])
def test_coordinates_of_the_simplex(K):
    found = np.column_stack([simplex_coordinate(K, j) for j in range(K - 1)])
    assert_array_equal(found, simplex(K))
    np.testing.assert_allclose(found @ found.T, np.where(np.eye(K), 1, -1 / (K - 1)), atol=1e-12)


def test_the_sums_of_a_round():
    """Of each leaf: those of pairs of at most three levels."""
    assert CDMCBoost(n_classes=MANY).reduction_size(64, 1) <= 64 * 9


@pytest.mark.parametrize("estimator", [CDMCBoostClassifier, AdaBoostECCClassifier])
def test_levels_give_the_same_trees(estimator, monkeypatch):
    """And the same steps, but for rounding: sums over levels are those over their classes."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 12
    X = rng.normal(size=(600, 4)) + np.sin(y[:, np.newaxis] * np.arange(1, 5))
    known = estimator(n_estimators=15, calibration=None, random_state=0).fit(X, y)
    monkeypatch.setattr(tables, "LARGEST_SIDES", 0)
    found = estimator(n_estimators=15, calibration=None, random_state=0).fit(X, y)
    np.testing.assert_allclose(found.decision_function(X), known.decision_function(X), rtol=1e-10, atol=1e-12)
