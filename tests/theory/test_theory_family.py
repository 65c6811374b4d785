"""Systems that are others in disguise."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from distboost import AdaBoostMMClassifier, GDMCBoostClassifier
from distboost.baselines import AdaBoostM2Classifier, AdaBoostMRClassifier

SAME = {
    "AdaBoost.MM is AdaBoost.M2 with one label in each leaf": (
        AdaBoostMMClassifier,
        {},
        AdaBoostM2Classifier,
        2,
    ),
    "GD-MCBoost with codewords is AdaBoost.MR with one label in each leaf": (
        GDMCBoostClassifier,
        {"leaf": "codeword"},
        AdaBoostMRClassifier,
        1,
    ),
}


@pytest.mark.parametrize("max_depth", [1, 3])
@pytest.mark.parametrize("name", SAME)
def test_systems_in_disguise(name, max_depth):
    """Differences of scores agree, but for a factor; M2 and MR add a constant to all scores of a row."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:600, 10:50], y[:600] % 5
    one, parameters, other, factor = SAME[name]
    common = {"n_estimators": 8, "max_depth": max_depth, "calibration": None, "n_jobs": 1}
    F = factor * one(**parameters, **common).fit(X, y).scores(X)
    G = other(vote="label", **common).fit(X, y).scores(X)
    assert_allclose(G - G[:, :1], F - F[:, :1], rtol=1e-9, atol=1e-9)
