"""How trainings end."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

import distboost
from distboost import (
    AdaBoostMMClassifier,
    CDMCBoostClassifier,
    GAMBLEClassifier,
    GDMCBoostClassifier,
    REBELClassifier,
    StagewiseBoostClassifier,
)
from distboost.algorithms.classic import class_votes, multiboost
from distboost.baselines import (
    AdaBoostECCClassifier,
    AdaBoostM1Classifier,
    GradBoostClassifier,
    MultiBoostClassifier,
    OneVsAllAdaBoostClassifier,
    SAMMEClassifier,
)
from tests.theory.problems import PROBLEMS

LADDER = np.repeat(np.arange(4.0), 10)[:, None], np.repeat(np.arange(4), 10)  # a class on each step
ALIKE = np.zeros((40, 2)), np.arange(40) % 4


def test_adaboost_m1_gives_up_where_samme_goes_on():
    """A stump knows 2 of 4 classes: half of the weight is lost."""
    X, y = LADDER
    m1 = AdaBoostM1Classifier(calibration=None, max_depth=1).fit(X, y)
    assert (m1.outcome_, m1.n_iter_) == ("no better than chance", 0)
    assert_array_equal(m1.predict(X), 0)
    assert_allclose(m1.predict_proba(X), 1 / 4)
    samme = SAMMEClassifier(calibration=None, max_depth=1, n_estimators=10).fit(X, y)
    assert (samme.outcome_, samme.n_iter_) == ("rounds", 10)
    assert samme.train_error_[0] == 1 / 2


def test_adaboost_m1_gives_up_in_the_middle():
    X, y = PROBLEMS["vehicle"]()
    model = AdaBoostM1Classifier(calibration=None, max_depth=3, n_estimators=50).fit(X, y)
    assert model.outcome_ == "no better than chance"
    assert 0 < model.n_iter_ == model.best_iteration_ < 50


def test_samme_gives_up_where_there_is_nothing_to_know(tmp_path):
    X, y = ALIKE
    model = SAMMEClassifier(calibration=None).fit(X, y)
    assert (model.outcome_, model.n_iter_) == ("no better than chance", 0)
    model.save(tmp_path / "model")
    again = distboost.load(tmp_path / "model")
    assert (again.outcome_, again.n_iter_) == ("no better than chance", 0)
    assert_array_equal(again.scores(X), 0)


@pytest.mark.parametrize("estimator", [CDMCBoostClassifier, GDMCBoostClassifier, AdaBoostMMClassifier, GAMBLEClassifier,
                                       StagewiseBoostClassifier, OneVsAllAdaBoostClassifier, GradBoostClassifier,
                                       MultiBoostClassifier])  # fmt: skip
def test_rows_that_are_alike_have_no_split(estimator):
    X, y = ALIKE[0], ALIKE[1] % 2
    model = estimator().fit(X, y)
    assert (model.outcome_, model.n_iter_) == ("no split", 0)


@pytest.mark.parametrize(
    "model",
    [
        CDMCBoostClassifier(calibration=None),
        AdaBoostECCClassifier(calibration=None, colorings=[[1, -1, -1], [-1, 1, -1]] * 3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_has_no_split_gives_way_to_what_has(model):
    """The feature tells class 1 from class 2, but says nothing of class 0, which the first coordinate or coloring is about."""
    X = np.concatenate([np.tile([0.0, 1.0], 10), np.zeros(20), np.ones(20)])[:, None]
    y = np.repeat([0, 1, 2], 20)
    model.set_params(n_estimators=6).fit(X, y)
    assert (model.outcome_, model.n_iter_) == ("rounds", 6)
    assert model.train_error_[-1] == 1 / 3


@pytest.mark.parametrize(
    "model",
    [
        CDMCBoostClassifier(calibration=None),
        GDMCBoostClassifier(calibration=None, max_depth=1),
        AdaBoostECCClassifier(calibration=None),
        REBELClassifier(calibration=None),
        StagewiseBoostClassifier(calibration=None),
        StagewiseBoostClassifier(calibration=None, loss="logistic", nu=0.0),
        MultiBoostClassifier(calibration=None),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_stump_without_an_error_of_its_own_does_not_end_training(model):
    """It tells two of the classes from the other two; these are still to be told apart."""
    X, y = LADDER
    model.set_params(n_estimators=60).fit(X, y)
    assert model.n_iter_ > 2
    assert model.score(X, y) == 1.0


CONVERGING = {
    "stagewise": StagewiseBoostClassifier(calibration=None, nu=0.1, learning_rate=1.0),
    "stagewise, logistic": StagewiseBoostClassifier(
        calibration=None, loss="logistic", nu=30.0, learning_rate=1.0
    ),
    "gradboost": GradBoostClassifier(calibration=None, penalty=0.1),
    "multiboost": MultiBoostClassifier(calibration=None, nu=0.1),
    "multiboost, logistic": MultiBoostClassifier(calibration=None, loss="logistic", nu=30.0),
}


@pytest.mark.parametrize("name", CONVERGING)
def test_a_norm_that_costs_more_than_it_gains_ends_training(name):
    X, y = PROBLEMS["overlap"]()
    model = CONVERGING[name].set_params(n_estimators=300).fit(X, y)
    assert model.outcome_ == "converged"
    assert 0 < model.n_iter_ < 300


@pytest.mark.parametrize("penalty", [0.1, 0.105, 0.11, 0.12, 0.14, 0.145, 0.155])
def test_gradboost_ends_between_two_roundings_of_its_coefficients(penalty):
    """Which of these would go on depends on the last bits of the sums."""
    model = GradBoostClassifier(calibration=None, penalty=penalty, n_estimators=300).fit(
        *PROBLEMS["overlap"]()
    )
    assert model.outcome_ == "converged"
    assert_allclose(model.train_loss_[-1], model.train_loss_[-20], rtol=1e-9)


SLIGHT = [90, 92, 90], [103, 100, 102]  # rows of each class, on both sides of the only split
STRONG = [101, 121, 194], [146, 126, 109]


@pytest.mark.parametrize(
    ("sides", "penalty", "score_dtype"),
    [
        (SLIGHT, 1e-4, "float64"),
        (SLIGHT, 1e-3, "float64"),
        (SLIGHT, 1e-4, "float32"),
        (STRONG, 0.01, "float32"),
    ],
)
def test_gradboost_ends_where_only_the_rounding_of_gradients_and_scores_is_left(sides, penalty, score_dtype):
    """Small coefficients change by the rounding of the sums that their gradient is the difference of."""
    X = np.repeat([[0.0], [1.0]], [sum(rows) for rows in sides], axis=0)
    y = np.concatenate([np.repeat(np.arange(3), rows) for rows in sides])
    model = GradBoostClassifier(
        calibration=None, penalty=penalty, score_dtype=score_dtype, n_estimators=100
    ).fit(X, y)
    assert model.outcome_ == "converged"
    # The minimum of the loss and the penalty: the gradient is as long as the penalty, and points against the coefficients.
    p = softmax(model.scores(X), axis=1)
    g = (X - 0.5).T * 2 @ (p - np.eye(3)[y]) / len(y)
    w = model.scores([[1.0]])
    assert_allclose(g, -penalty * w / np.linalg.norm(w), rtol=0, atol=20 * np.finfo(score_dtype).eps)


def test_a_slope_out_of_the_domain_does_not_count():
    """Of coefficients at 0, only those that lower the loss by growing count."""
    gradient, W = np.array([[2.0, -1.0], [3.0, -4.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    assert_array_equal(multiboost._inward(gradient, W), [[0, -1], [3, -4]])


@pytest.mark.parametrize(
    ("leaves", "wrong", "times"), [([1, 1], 1, 0), ([1, 0], 1, 1), ([0, 0], 1, 1), ([1, 1], 0, 1)], ids=str
)
def test_votes_are_counted_again_if_the_weights_of_a_leaf_or_of_the_mistakes_have_few_digits(
    leaves, wrong, times, monkeypatch
):
    counted, add_windows = [], class_votes.add_windows
    monkeypatch.setattr(class_votes, "add_windows", lambda sums: counted.append(1) or add_windows(sums))
    monkeypatch.setattr(
        class_votes, "is_precise", lambda sums, mass: np.array(leaves if np.ndim(sums) else wrong) > 0
    )
    SAMMEClassifier(n_estimators=1, max_depth=1, calibration=None).fit(*PROBLEMS["overlap"]())
    assert len(counted) == times
