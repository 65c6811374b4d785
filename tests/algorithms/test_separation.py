"""Trainings in which a weak learner makes no error: they continue, or stop."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score

import distboost
from distboost import (
    AdaBoostMMClassifier,
    CDMCBoostClassifier,
    GAMBLEClassifier,
    GDMCBoostClassifier,
    REBELClassifier,
    StagewiseBoostClassifier,
)
from distboost.algorithms.base import LARGEST_RATIO, SMOOTHING
from distboost.baselines import (
    AdaBoostECCClassifier,
    AdaBoostM1Classifier,
    AdaBoostMHClassifier,
    AdaBoostMOClassifier,
    OneVsAllAdaBoostClassifier,
    SAMMEClassifier,
)
from distboost.errors import TrainingEndedWarning

LADDER = np.repeat(np.arange(4.0), 10)[:, None], np.repeat(np.arange(4), 10)  # a class on each step

# Weak learners that tell two classes apart, and four.
BY_STUMPS = [
    CDMCBoostClassifier(),
    GDMCBoostClassifier(),
    GDMCBoostClassifier(leaf="codeword"),
    AdaBoostMMClassifier(),
    StagewiseBoostClassifier(learning_rate=1.0, nu=0.0),
    StagewiseBoostClassifier(loss="logistic", nu=0.0),
    REBELClassifier(),
    REBELClassifier(max_depth=2),
    OneVsAllAdaBoostClassifier(),
    AdaBoostM1Classifier(),
    SAMMEClassifier(),
    AdaBoostMHClassifier(),
    AdaBoostECCClassifier(),
    AdaBoostMOClassifier(),
]
BY_TREES = [
    GDMCBoostClassifier(),
    GDMCBoostClassifier(leaf="codeword", max_depth=2),
    GDMCBoostClassifier(max_depth=None, max_leaf_nodes=8),
    AdaBoostMMClassifier(),
    AdaBoostM1Classifier(),
    SAMMEClassifier(),
    OneVsAllAdaBoostClassifier(max_depth=2),
    AdaBoostMHClassifier(max_depth=2),
    AdaBoostMOClassifier(max_depth=2),
]


def name_of(model):
    return type(model).__name__


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.mark.parametrize("model", BY_STUMPS, ids=name_of)
def test_two_classes_that_a_stump_tells_apart(model):
    X, y = LADDER[0], LADDER[1] // 2
    model.set_params(n_estimators=20, on_separation="stop", calibration=None)
    with pytest.warns(
        TrainingEndedWarning, match=r"'separated' after 1 of 20 rounds.*on_separation='continue'"
    ):
        model.fit(X, y)
    assert (model.outcome_, model.n_iter_) == ("separated", 1)
    stopped = model.scores(X)
    model.set_params(on_separation="continue", n_estimators=3).fit(X, y)  # the stage-wise loss soon converges
    assert (model.outcome_, model.n_iter_) == ("rounds", 3)
    first = next(model.staged_scores(X))
    # The step is that of a small error.
    assert_allclose(first, stopped * np.log(1 / SMOOTHING - 1) / LARGEST_RATIO, rtol=1e-12)
    for F in (stopped, first, model.scores(X)):
        assert np.isfinite(F).all()
        assert_array_equal(F.argmax(axis=1), y)
    assert model.predict_proba(X)[np.arange(40), y].min() > 0.99


@pytest.mark.parametrize("model", BY_TREES, ids=name_of)
def test_classes_that_a_tree_tells_apart(model):
    X, y = LADDER
    model.set_params(n_estimators=20, on_separation="stop", calibration=None)
    with pytest.warns(TrainingEndedWarning, match="'separated'"):
        model.fit(X, y)
    assert model.outcome_ == "separated"
    assert model.n_iter_ < 20
    assert model.score(X, y) == 1.0
    model.set_params(on_separation="continue").fit(X, y)
    assert model.score(X, y) == 1.0
    assert (model.outcome_, model.n_iter_) == ("rounds", 20)


def test_the_last_round_is_not_an_early_end():
    model = GDMCBoostClassifier(n_estimators=1, on_separation="stop").fit(*LADDER)
    assert model.outcome_ == "separated"


def test_smaller_trees_take_the_place_of_those_without_an_error(wine):
    X, y = wine
    whole = GDMCBoostClassifier(n_estimators=1, on_separation="stop").fit(X, y)
    model = GDMCBoostClassifier(n_estimators=10).fit(X, y)
    assert whole.train_error_[0] == 0 < model.train_error_[0]
    assert model.train_error_[-1] == 0
    # Rounds differ: each leaves other rows to the next.
    assert len({tuple(F.argmax(axis=1)) for F in np.diff(list(model.staged_scores(X)), axis=0)}) > 5


def test_a_smaller_tree_that_the_algorithm_refuses_is_not_used():
    """A stump is wrong about half of the rows, which is too many for AdaBoost.M1."""
    X, y = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (10, 1)), np.tile(np.arange(4), 10)
    model = AdaBoostM1Classifier(n_estimators=20).fit(X, y)
    assert (model.outcome_, model.n_iter_) == ("rounds", 20)
    assert model.score(X, y) == 1.0


def test_rounds_help_on_few_rows(wine):
    model = GDMCBoostClassifier(calibration=None, n_estimators=30, n_jobs=1)
    continued, stopped = (
        cross_val_score(model.set_params(on_separation=what), *wine, cv=5).mean()
        for what in ("continue", "stop")
    )
    assert continued > stopped + 0.04


@pytest.mark.parametrize(
    "model", [GDMCBoostClassifier(), OneVsAllAdaBoostClassifier(max_depth=3)], ids=name_of
)
def test_the_same_bytes_anywhere(model, wine, saved, clients):
    X, y = wine
    whole = model.set_params(n_estimators=4, calibration=None).fit(X, y)
    content = saved(whole)
    assert saved(model.fit(da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=70))) == content
    model.client = clients[3]
    assert saved(model.fit(da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=70))) == content
    model.client = None
    part = model.set_params(n_estimators=2).fit(X, y)
    assert saved(part.set_params(n_estimators=4).fit(X, y, resume=True)) == content


def test_a_row_of_weight_two_is_the_row_twice(wine, assert_same_model):
    X, y = wine
    twice = np.arange(len(y)) % 3 == 0
    weighted = GDMCBoostClassifier(calibration=None, n_estimators=8).fit(X, y, 1.0 + twice)
    repeats = np.repeat(np.arange(len(y)), 1 + twice)
    assert_same_model(
        weighted, GDMCBoostClassifier(calibration=None, n_estimators=8).fit(X[repeats], y[repeats])
    )


@pytest.mark.parametrize("learning_rate", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_adaboost_mm_keeps_its_bound(wine, learning_rate, n_classes):
    X, y = wine
    rows = y < n_classes
    model = AdaBoostMMClassifier(calibration=None, n_estimators=12, learning_rate=learning_rate).fit(
        X[rows], y[rows]
    )
    # With learning_rate=2, steps overshoot, and losses are counted in units for the largest that a step could have left.
    assert (model.train_loss_ <= model.loss_bound_ * (1 + 1e-5)).all()
    X, y = LADDER[0], LADDER[1] // 2
    model.fit(X, y)  # each step is smoothed, and right about all rows
    assert_allclose(model.train_loss_, model.loss_bound_, rtol=1e-7)


def test_bounded_votes_are_repeated_as_published_or_smaller_trees_take_their_place(wine):
    model = GAMBLEClassifier(n_estimators=8, on_separation="stop").fit(*wine)
    published = np.diff(list(model.staged_scores(wine[0])), axis=0)
    assert model.outcome_ == "rounds"
    assert_allclose(published[1:], np.broadcast_to(published[0], published[1:].shape), atol=1e-12)
    continued = model.set_params(on_separation="continue").fit(*wine)
    rounds = np.diff(list(continued.staged_scores(wine[0])), axis=0)
    assert len({tuple(F.argmax(axis=1)) for F in rounds}) > 4
    assert continued.train_error_[-1] == 0


def test_what_has_ended_does_not_continue(saved):
    model = GDMCBoostClassifier(n_estimators=5, on_separation="stop").fit(*LADDER)
    content = saved(model)
    model.set_params(n_estimators=3).fit(*LADDER)
    assert saved(model.set_params(n_estimators=5).fit(*LADDER, resume=True)) == content


def test_files_name_the_parameter_only_where_it_stops(tmp_path):
    for what in ("continue", "stop"):
        GAMBLEClassifier(n_estimators=2, on_separation=what).fit(*LADDER).save(tmp_path / what)
        assert distboost.load(tmp_path / what).on_separation == what
        assert (b"on_separation" in (tmp_path / what).read_bytes()) == (what == "stop")
