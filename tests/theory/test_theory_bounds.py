"""The papers' bounds, and losses that fall in every round."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from distboost import (
    AdaBoostMMClassifier,
    CDMCBoostClassifier,
    GDMCBoostClassifier,
    REBELClassifier,
    StagewiseBoostClassifier,
)
from distboost.algorithms.adaboost_mm import AdaBoostMM, best_step, kappa
from distboost.baselines import (
    AdaBoostECCClassifier,
    AdaBoostMHClassifier,
    AdaBoostMOClassifier,
    GentleAdaBoostClassifier,
    GradBoostClassifier,
    MultiBoostClassifier,
    OneVsAllAdaBoostClassifier,
)
from tests.theory.problems import PROBLEMS, published, settings_and_problems

ROUNDING = 1 + 1e-7  # of the total weight, where weights are not whole


# Bounds

MM_SETTINGS = {
    "stumps": {"max_depth": 1},
    "depth 3": {"max_depth": 3},
    "depth 6": {},
    "6 leaves": {"max_depth": None, "max_leaf_nodes": 6},
    "weighted": {"max_depth": 3, "class_weight": "balanced"},
    "half the rate": {"max_depth": 3, "learning_rate": 0.5},
    "twice the rate": {"max_depth": 3, "learning_rate": 2.0},
    "some rows": {"max_depth": 3, "subsample": 0.3},
    "some rows, by weight": {"max_depth": 3, "subsample": 0.3, "sampling": "weight"},
}


@settings_and_problems(MM_SETTINGS)
def test_adaboost_mm_keeps_its_bound(name, problem):
    X, y = problem
    model = AdaBoostMMClassifier(calibration=None, n_estimators=15, **MM_SETTINGS[name]).fit(X, y)
    assert (model.train_loss_ <= model.loss_bound_ * ROUNDING).all()
    assert (model.train_error_ <= model.loss_bound_ * ROUNDING).all()
    if model.learning_rate == 1:
        expected = (model.n_classes_ - 1) * np.cumprod(np.sqrt(1 - model.edge_**2))
        assert_allclose(model.loss_bound_, expected, rtol=1e-9)


FIXED = {
    f"{strategy}, depth {depth}, edge {edge}": (strategy, depth, edge)
    for strategy in ("fixed", "os-exponential")
    for depth, edge in ((1, 0.02), (1, 0.1), (3, 0.1), (3, 0.3), (6, 0.3))
}


@settings_and_problems(FIXED)
def test_fixed_votes_keep_their_bound_while_the_edges_are_met(name, problem):
    """loss <= (K - 1) prod kappa."""
    X, y = problem
    strategy, depth, edge = FIXED[name]
    model = AdaBoostMMClassifier(
        calibration=None, n_estimators=10, strategy=strategy, edge=edge, max_depth=depth
    ).fit(X, y)
    K = model.n_classes_
    step = model.eta if strategy == "os-exponential" else best_step(edge, K)
    assert_allclose(model.loss_bound_, (K - 1) * kappa(edge, step, K) ** np.arange(1, model.n_iter_ + 1))
    met = np.logical_and.accumulate(model.edge_ >= edge)
    assert (model.train_loss_[met] <= model.loss_bound_[met] * ROUNDING).all()


def test_a_step_for_each_round_keeps_its_bound():
    X, y = PROBLEMS["vehicle"]()
    edges, alphas = np.linspace(0.3, 0.05, 12), np.linspace(0.5, 0.1, 12)
    model = AdaBoostMMClassifier(
        calibration=None, n_estimators=12, strategy="fixed", edge=edges, alphas=alphas, max_depth=4
    ).fit(X, y)
    factors = [kappa(γ, α, 4) for γ, α in zip(edges, alphas, strict=True)]
    assert_allclose(model.loss_bound_, 3 * np.cumprod(factors))
    met = np.logical_and.accumulate(model.edge_ >= edges)
    assert met[0]
    assert (model.train_loss_[met] <= model.loss_bound_[met] * ROUNDING).all()


def test_the_game_ends_with_the_last_round():
    game = AdaBoostMM(n_classes=3, strategy="os-zero-one", n_estimators=7, edge=0.2)
    assert [game.statistic(round).rounds_left for round in range(1, 8)] == [7, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("name", "depth", "edge"),
    [("vehicle", 6, 0.3), ("segment", 4, 0.3), ("apart", 3, 0.5), ("overlap", 4, 0.1)],
)
def test_the_game_for_the_0_1_loss_is_won_while_the_edges_are_met(name, depth, edge):
    X, y = PROBLEMS[name]()
    model = AdaBoostMMClassifier(
        calibration=None, n_estimators=8, strategy="os-zero-one", edge=edge, max_depth=depth
    ).fit(X, y)
    assert (model.edge_ >= edge).all()
    assert (model.loss_bound_ == model.loss_bound_[0]).all()
    assert model.train_error_[-1] <= model.train_loss_[-1] * ROUNDING <= model.loss_bound_[-1]


# Losses that fall in every round

FALLING = {
    "cd-mcboost": CDMCBoostClassifier(calibration=None),
    "cd-mcboost, depth 3": CDMCBoostClassifier(calibration=None, max_depth=3),
    "cd-mcboost, mean": CDMCBoostClassifier(calibration=None, leaf="mean", max_depth=3),
    "cd-mcboost, logistic": CDMCBoostClassifier(calibration=None, loss="logistic"),
    "gd-mcboost, direction": GDMCBoostClassifier(calibration=None, max_depth=2),
    "gd-mcboost, logistic": GDMCBoostClassifier(calibration=None, loss="logistic", max_depth=2),
    "gd-mcboost, codeword": GDMCBoostClassifier(calibration=None, leaf="codeword", max_depth=2),
    "gd-mcboost, half the rate": GDMCBoostClassifier(calibration=None, max_depth=2, learning_rate=0.5),
    "adaboost-mm": AdaBoostMMClassifier(calibration=None, max_depth=2),
    "stagewise, exponential": StagewiseBoostClassifier(calibration=None),
    "stagewise, logistic": StagewiseBoostClassifier(calibration=None, loss="logistic"),
    "stagewise, whole steps": StagewiseBoostClassifier(calibration=None, learning_rate=1.0),
    "stagewise, bounded steps": StagewiseBoostClassifier(calibration=None, learning_rate=1.0, max_step=0.1),
    "stagewise, depth 2": StagewiseBoostClassifier(calibration=None, max_depth=2),
    "rebel": REBELClassifier(calibration=None),
    "rebel, depth 3": REBELClassifier(calibration=None, max_depth=3),
    "one-vs-all": OneVsAllAdaBoostClassifier(calibration=None),
    "adaboost-mh": AdaBoostMHClassifier(calibration=None),
    "adaboost-mh, depth 2": AdaBoostMHClassifier(calibration=None, max_depth=2),
    "adaboost-mh, real": AdaBoostMHClassifier(calibration=None, vote="real"),
    "adaboost-ecc": AdaBoostECCClassifier(calibration=None),
    "gentle-adaboost": GentleAdaBoostClassifier(calibration=None, max_depth=2),
    "gradboost, no penalty": GradBoostClassifier(calibration=None, penalty=0.0),
}


@settings_and_problems(FALLING)
def test_the_loss_falls(name, problem):
    """By an exact step, or by one that does not go beyond it. Not so with GAMBLE; with the votes of M1 and SAMME it says nothing.

    A loss is counted in units for the largest that a step could have left: 1e-8 of it may be rounding.
    """
    X, y = problem
    model = FALLING[name].set_params(n_estimators=12).fit(X, y)
    assert model.n_iter_ > 0
    assert (np.diff(model.train_loss_) <= 1e-8 * model.train_loss_[:-1]).all()


@settings_and_problems(
    {name: FALLING[name] for name in ("cd-mcboost", "cd-mcboost, logistic", "gd-mcboost, logistic")}
)
def test_mcboosts_risk_bounds_the_error(name, problem):
    """Each row has the term φ(0) of its own class; each that is misclassified has one as large of another."""
    model = FALLING[name].set_params(n_estimators=12).fit(*problem)
    own = np.log(2) if "logistic" in name else 1.0
    assert (model.train_error_ <= model.train_loss_ / own - 1).all()


def test_bounded_steps_are_bounded():
    values = StagewiseBoostClassifier(calibration=None, n_estimators=5, learning_rate=1.0, max_step=0.1).fit(
        *PROBLEMS["overlap"]()
    )
    assert np.abs(values.learned_.ensemble.arrays()["values"]).max() == 0.1


@pytest.mark.parametrize("name", ["overlap", "noise", "apart", "glass"])
def test_adaboost_mos_loss_falls(name):
    X, y = PROBLEMS[name]()
    model = AdaBoostMOClassifier(calibration=None, n_estimators=10).fit(X, y)
    assert (np.diff(model.train_loss_) <= 1e-12 * model.train_loss_[:-1]).all()


@pytest.mark.parametrize("penalty", [1e-3, 0.01, 0.1])
def test_gradboosts_loss_and_penalty_fall_together(penalty, problem):
    X, y = problem
    model = GradBoostClassifier(calibration=None, n_estimators=15, penalty=penalty).fit(X, y)
    a = model.learned_.ensemble.arrays()
    w: dict[tuple, np.ndarray] = {}
    objective = []
    for t, loss in enumerate(model.train_loss_):
        stump = a["feature"][t], a["threshold"][t], a["missing_left"][t]
        w[stump] = w.get(stump, 0.0) + a["values"][2 * t + 1]
        objective.append(loss + penalty * sum(np.linalg.norm(row) for row in w.values()))
    assert (np.diff(objective) < 0).all()


@pytest.mark.parametrize("nu", [1e-4, 1e-2])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_multiboosts_loss_and_norm_fall_together(loss, nu):
    X, y = PROBLEMS["vehicle"]()
    objective = []
    for n in range(1, 6):
        model = MultiBoostClassifier(calibration=None, n_estimators=n, loss=loss, nu=nu).fit(X, y)
        W = model.learned_.ensemble.arrays()["values"][1::2]
        objective.append(model.train_loss_[-1] + nu * np.abs(W).sum())
    assert (np.diff(objective) < 0).all()


# What is measured


@pytest.mark.parametrize(("name", "accuracy"), [("optdigits", 0.925), ("pendigits", 0.895)])
def test_cd_mcboost_with_stumps_reaches_the_accuracy_measured(name, accuracy):
    X, y, X_test, y_test = published(name)
    model = CDMCBoostClassifier(calibration=None, n_estimators=20 * 9).fit(X, y)
    assert model.score(X_test, y_test) >= accuracy
