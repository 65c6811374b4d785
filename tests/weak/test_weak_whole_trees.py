"""A tree that is grown in one call is the tree that grows by questions about its nodes."""

import numpy as np
import pytest

from distboost.estimators.factory import estimator
from distboost.registry import ALGORITHMS
from distboost.runtime.whole_trees import WholeTrees

N_SETS, N_GROUPS = 200, 8
OTHERS = [name for name in ALGORITHMS if name not in ("multiboost", "structboost", "gd-mcboost", "rebel")]


def problem(rng):
    """Few rows with ties, missing values, constant features, categories and classes that the first features tell apart."""
    n, D, K = rng.integers(12, 400), rng.integers(1, 7), rng.integers(2, 6)
    X = rng.normal(size=(n, D)).round(rng.integers(0, 3))
    y = (np.abs(X[:, 0]) * 2 + rng.normal(scale=0.4, size=n)).astype(int) % K
    y[:K] = np.arange(K)
    if rng.random() < 0.4:
        X[rng.random(X.shape) < 0.15] = np.nan
    if rng.random() < 0.2:
        X[:, -1] = 1.0
    categories = [0] if rng.random() < 0.3 else None
    if categories:
        X[:, 0] = rng.integers(0, 12, n)
    weights = (
        None,
        rng.integers(0, 4, n) + (np.arange(n) < K),
        rng.random(n) + 0.01,
        rng.integers(1, 200, n),  # too heavy for tiles
    )
    return X, y, weights[rng.integers(len(weights))], categories


def settings(rng, name, categories):
    """A random choice of limits, of rows and of features."""

    def one(*choices):
        return choices[rng.integers(len(choices))]

    given = {
        "max_depth": one(1, 2, 4, 6, None),
        "max_leaf_nodes": one(None, None, 2, 7, 20),
        "min_samples_leaf": one(1, 1, 3, 20),
        "min_weight_fraction_leaf": one(0.0, 0.0, 0.05),
        "subsample": (share := one(1.0, 1.0, 0.6)),
        "sampling": "uniform" if share == 1.0 else one("uniform", "weight"),
        "max_features": one(1.0, 1.0, 0.5),
        "max_bins": one(4, 16, 255),
        "categorical_features": categories,
        "random_state": 3,
    }
    if name == "gd-mcboost":
        leaf = one("direction", "direction", "codeword", "newton")
        given |= {"leaf": leaf, "loss": "softmax" if leaf == "newton" else one("exponential", "softmax")}
        if leaf == "direction" and given["loss"] == "exponential" and given["sampling"] == "uniform":
            given |= {"sketch": one(None, None, 1), "statistic_bits": one(None, None, 4)}
    return given


@pytest.mark.parametrize("group", range(N_GROUPS))
def test_a_tree_in_one_call_equals_the_tree_by_questions(group, monkeypatch):
    grown = []
    grow = WholeTrees.grow
    monkeypatch.setattr(WholeTrees, "grow", lambda *given: grown.append(1) or grow(*given))
    for number in range(group, N_SETS, N_GROUPS):
        rng = np.random.default_rng(number)
        name = ("gd-mcboost", "rebel", "gd-mcboost", OTHERS[number // 4 % len(OTHERS)])[number % 4]
        X, y, weights, categories = problem(rng)
        model = estimator(name)(n_estimators=3, calibration=None, n_jobs=1)
        known = model.get_params()
        chosen = {key: value for key, value in settings(rng, name, categories).items() if key in known}
        model.set_params(**chosen)
        digest = model.fit(X, y, weights).digest()
        with monkeypatch.context() as other:
            other.setattr(WholeTrees, "suits", lambda *given: False)
            assert model.fit(X, y, weights).digest() == digest, (number, name, chosen)
    assert grown
