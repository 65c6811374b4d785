"""Codes of classes: what they are, and which are refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

import distboost
from distboost import baselines, errors
from distboost.algorithms.classic.output_codes import random_code
from distboost.weights.codes import all_pairs, exhaustive


def test_the_code_of_all_pairs():
    assert_array_equal(all_pairs(3), [[-1, -1, 0], [1, 0, -1], [0, 1, 1]])


def test_the_exhaustive_code():
    assert_array_equal(exhaustive(3), [[-1, -1, -1], [1, -1, 1], [-1, 1, 1]])


@pytest.mark.parametrize(("K", "n_columns"), [(2, 1), (3, 3), (5, 15), (7, 29), (26, 48)])
def test_random_codes_tell_all_classes_apart(K, n_columns):
    code = random_code(K, 0)
    assert code.shape == (K, n_columns)
    assert len(np.unique(code, axis=0)) == K
    # No column is another one, its opposite, or constant.
    products = np.abs(code.T @ code) - K * np.eye(n_columns)
    assert (products < K).all()
    assert (np.abs(code.sum(axis=0)) < K).all()
    assert_array_equal(code, random_code(K, 0))
    assert K < 6 or not np.array_equal(code, random_code(K, 1))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ([1, -1, 1, -1], r"code has shape \(4,\)"),
        ([["a"], ["b"]], "code is no matrix of numbers"),
        ([[1, 0], [-1, 0], [1, 1], [-1, 1]], r"column 1 of code is \[0\.0, 0\.0, 1\.0, 1\.0\]"),
        ([[1], [-1], [2], [0]], "column 0 of code"),
        ([[1, 1], [-1, 1], [0, -1]], "code has 3 rows, and there are 4 classes"),
        ([[1, 1], [-1, 1], [0, -1], [1, 1]], "two equal rows"),
    ],
)
def test_codes_that_are_refused(code, message):
    X, y = np.arange(40.0)[:, None], np.arange(40) % 4
    with pytest.raises(errors.DataError, match=message):
        baselines.OutputCodeClassifier(code=code).fit(X, y)


@pytest.mark.parametrize(
    "model", [baselines.AllPairsClassifier(), baselines.OutputCodeClassifier(code="exhaustive")]
)
def test_too_many_classes_are_refused(model):
    y = np.repeat(np.arange(65), 2)
    with pytest.raises(errors.LimitError, match="trees in each round; the limit is 2,047"):
        model.fit(y[:, None].astype(float), y)


def test_a_column_without_an_error_does_not_outvote_the_others():
    """AdaBoost ends there: more rounds change nothing."""
    y = np.repeat(np.arange(3), 10)
    X = y[:, None].astype(float)
    once, again = (baselines.AllPairsClassifier(n_estimators=n, calibration=None).fit(X, y) for n in (1, 9))
    assert_array_equal(once.scores(X), again.scores(X))
    assert once.score(X, y) == 1


def test_no_pair_outvotes_the_others():
    X, y = load_digits(return_X_y=True)
    votes, by_sum = (
        baselines.AllPairsClassifier(decoding=decoding, calibration=None, n_estimators=20).fit(
            X[:900], y[:900]
        )
        for decoding in ("votes", "sum")
    )
    F = votes.scores(X)
    assert np.abs(F).max() <= 9
    assert votes.score(X[900:], y[900:]) > by_sum.score(X[900:], y[900:]) + 0.02
    assert votes.train_error_[-1] == (F[:900].argmax(axis=1) != y[:900]).mean()


def test_votes_are_no_sums_over_trees():
    y = np.arange(60) % 3
    model = baselines.AllPairsClassifier(n_estimators=2).fit(y[:, None] + np.arange(60.0)[:, None] / 60, y)
    for answer in (model.to_dataframe, lambda: distboost.shap_values(model, np.zeros((1, 1)))):
        with pytest.raises(errors.DataError, match=r"no sums over trees.*Train with decoding='sum'"):
            answer()


@pytest.mark.filterwarnings("ignore::distboost.errors.TrainingEndedWarning")
@pytest.mark.parametrize("seed", range(6))
def test_a_round_that_sees_one_side_of_a_column_does_not_change_it(seed):
    """Some of these rounds lack the third class, and its tree is right about all rows that it sees."""
    y = np.repeat([0, 1, 2], [30, 30, 1])
    model = baselines.AllPairsClassifier(n_estimators=1, subsample=0.5, random_state=seed, calibration=None)
    F = model.fit(np.zeros((len(y), 1)), y).scores(np.zeros((1, 1)))
    assert np.abs(F[:, :2]).max() < 2
