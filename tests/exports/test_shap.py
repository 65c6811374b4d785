"""SHAP values: against all coalitions of features, one by one. `make exports` compares them with those of shap."""

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import distboost
from distboost import GDMCBoostClassifier, REBELClassifier, expected_scores, shap_values
from distboost.errors import DataError
from tests.algorithms.subjects import OF_SUMS
from tests.exports.checks import check_additive, check_shap_by_coalitions
from tests.exports.made import random_model
from tests.old_models.make import FOLDER


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 4, 150)
    X = rng.normal(size=(150, 4)) + np.eye(4)[y]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


@pytest.mark.parametrize("depth", [1, 2, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_shapley_values(depth, weighted, problem):
    X, y = problem
    w = np.random.default_rng(1).random(len(y)) if weighted else None
    model = GDMCBoostClassifier(n_estimators=3, max_depth=depth, calibration=None).fit(X, y, w)
    assert shap_values(model, X).shape == (150, 4, 4)
    check_shap_by_coalitions(model, X[::30])


@pytest.mark.parametrize("subject", OF_SUMS, ids=str)
def test_shap_values_sum_to_the_scores(subject, problem):
    check_additive(subject.make(n_estimators=3, calibration=None).fit(*problem), problem[0])


@pytest.mark.parametrize("seed", [15, 19])
def test_random_models(seed):
    model, X = random_model(seed)
    check_additive(model, X[:200])


def test_a_background_instead_of_the_training_rows(problem):
    X, y = problem
    model = GDMCBoostClassifier(n_estimators=3, max_depth=5, calibration=None).fit(X, y)
    assert_allclose(shap_values(model, X, background=X), shap_values(model, X), atol=1e-12)
    few = X[:6]  # most nodes have none of them
    found, expected = shap_values(model, X, background=few), expected_scores(model, background=few)
    assert_allclose(expected, model.scores(few).mean(axis=0), atol=1e-12)
    assert_allclose(found.sum(axis=1) + expected, model.scores(X), atol=1e-12)


def test_lazy_rows(problem):
    X, y = problem
    model = GDMCBoostClassifier(n_estimators=3, calibration=None).fit(X, y)
    found = shap_values(model, da.from_array(X, chunks=(60, 2)))
    assert found.shape == (150, 4, 4)
    assert_array_equal(found.compute(), shap_values(model, X))


def test_rows_of_a_frame(problem):
    X, y = problem
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = GDMCBoostClassifier(n_estimators=3, calibration=None).fit(frame, y)
    assert_array_equal(shap_values(model, frame), shap_values(model, pl.from_pandas(frame)))
    assert_allclose(shap_values(model, frame, background=frame), shap_values(model, frame), atol=1e-12)


def test_features_that_no_tree_uses_contribute_nothing(problem):
    X, y = problem
    model = GDMCBoostClassifier(n_estimators=1, max_depth=1, calibration=None).fit(X, y)
    used = int(model.learned_.ensemble.arrays()["feature"][0])
    found = shap_values(model, X.astype(np.float32))
    assert not np.delete(found, used, axis=1).any()
    assert found[:, used].any()


def test_models_of_early_files_need_a_background():
    model = distboost.load(FOLDER / "2-gd-mcboost.model")
    with np.load(FOLDER / "2.npz") as known:
        X = known["X"]
    with pytest.raises(DataError, match=r"did not store them\. Train it again, or explain .* background=X"):
        shap_values(model, X)
    with pytest.raises(DataError, match=r"^expected_scores needs the number of training rows"):
        expected_scores(model)
    found = shap_values(model, X, background=X)
    assert_allclose(found.sum(axis=1) + expected_scores(model, background=X), model.scores(X), atol=1e-12)


def test_similarities(problem):
    X, y = np.nan_to_num(problem[0]), problem[1]
    model = REBELClassifier(n_estimators=2, weak_learner="similarity", calibration=None).fit(X, y)
    for what, call in (
        ("shap_values", lambda: shap_values(model, X)),
        ("expected_scores", lambda: expected_scores(model)),
    ):
        with pytest.raises(DataError, match=f"^{what} is for trees, but"):
            call()
