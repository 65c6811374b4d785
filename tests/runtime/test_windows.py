"""Histograms that do not fit in memory are summed a few features and nodes at a time: the model is the same."""

from __future__ import annotations

import numpy as np
import pytest

import distboost
from distboost import GDMCBoostClassifier, REBELClassifier, baselines
from distboost.kernels import gains
from distboost.rows.messages import Root, SplitRules
from distboost.runtime.base import Layout
from distboost.runtime.cluster import owners
from distboost.runtime.coordinated import Windows
from distboost.training import staging
from distboost.weights.margin import MarginWeights, Residuals

MODELS = {
    "levels": GDMCBoostClassifier(
        calibration=None, n_estimators=3, max_depth=4, min_weight_fraction_leaf=0.02
    ),
    "best first": GDMCBoostClassifier(
        calibration=None, n_estimators=3, max_leaf_nodes=7, subsample=0.7, max_features=0.6, random_state=3
    ),
    "whole tree": REBELClassifier(calibration=None, n_estimators=3, max_depth=2),
    "many trees": baselines.OneVsAllAdaBoostClassifier(calibration=None, n_estimators=2, max_depth=2),
    "class statistics": distboost.GAMBLEClassifier(calibration=None, n_estimators=3, max_depth=3),
    "corrective": baselines.MultiBoostClassifier(calibration=None, n_estimators=3, nu=0.05),
}
# Bytes per question: some features, one feature, some nodes of one feature.
SIZES = [20_000, 2_000, 1]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 20, (400, 7)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 3]) + rng.integers(0, 6, 400)).astype(int) // 12
    return X, y, rng.integers(1, 4, 400).astype(float)


@pytest.fixture
def windows(monkeypatch):
    """windows(n_bytes): trainings from now on sum so many bytes in a question."""

    def small(n_bytes):
        monkeypatch.setattr(staging, "Layout", lambda *shape: Layout(*shape[:4], n_bytes, *shape[5:]))

    return small


@pytest.mark.parametrize("name", MODELS)
def test_in_one_process(name, rows, windows, saved):
    model = MODELS[name].set_params(n_jobs=2)
    expected = saved(model.fit(*rows))
    for n_bytes in SIZES:
        windows(n_bytes)
        assert saved(model.fit(*rows)) == expected


@pytest.mark.parametrize("exchanged", [True, pytest.param(False, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "name",
    [name if name in ("levels", "whole tree") else pytest.param(name, marks=pytest.mark.soak) for name in MODELS],
)  # fmt: skip
def test_on_workers(name, exchanged, rows, windows, saved, clients, monkeypatch):
    monkeypatch.setattr(owners, "exchange_pays", lambda n_bytes, n_workers: exchanged)
    expected = saved(MODELS[name].fit(*rows))
    windows(SIZES[1])
    model = MODELS[name].set_params()
    model.client = clients[2]
    try:
        assert saved(model.fit(*rows)) == expected
    finally:
        del model.client


def windows_of(n_bytes, n_nodes, features=range(5)):
    statistic = Residuals(MarginWeights(0.5))
    found = Windows(n_bytes, np.array([3, 9, 1, 4, 4]))
    root = Root(np.array(features), statistic, None, 0.0, 4, SplitRules(gains.CODEWORD, 1, 0.0))
    found.begin(root, 3)  # 4 channels: 32 bytes a bin
    return [window.tolist() for window in found._windows(n_nodes)]


def test_as_many_features_as_fit():
    """They have 4, 10, 2, 5 and 5 bins."""
    assert windows_of(32 * 26, 1) == [[0, 1, 2, 3, 4]]
    assert windows_of(32 * 26 - 1, 1) == [[0, 1, 2, 3], [4]]
    assert windows_of(2 * 32 * 14, 2) == [[0, 1], [2, 3, 4]]
    assert windows_of(32 * 7, 1) == [[0], [1], [2, 3], [4]]
    assert windows_of(1, 9) == [[0], [1], [2], [3], [4]]
    assert windows_of(32 * 7, 1, [2, 4]) == [[2, 4]]
