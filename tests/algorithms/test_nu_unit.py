"""The logistic loss beside ν: a sum over the rows, or their mean."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine

from distboost import StagewiseBoostClassifier
from distboost.baselines import MultiBoostClassifier


def scores(estimator, X, y, **parameters):
    model = estimator(loss="logistic", n_estimators=3, calibration=None, n_jobs=1, **parameters)
    return model.fit(X, y).scores(X)


@pytest.mark.parametrize("estimator", [StagewiseBoostClassifier, MultiBoostClassifier])
def test_beside_the_mean_nu_has_the_same_meaning_for_any_number_of_rows(estimator):
    X, y = load_wine(return_X_y=True)
    once = scores(estimator, X, y, nu=0.01, nu_unit="mean")
    assert once.any()
    twice = scores(estimator, np.repeat(X, 2, axis=0), np.repeat(y, 2), nu=0.01, nu_unit="mean")
    assert_allclose(twice[::2], once, atol=1e-6)
    assert_array_equal(scores(estimator, X, y, nu=0.01 * len(y)), once)


def test_the_exponential_loss_has_no_unit():
    X, y = load_wine(return_X_y=True)
    by_sum, by_mean = (
        StagewiseBoostClassifier(nu=0.01, nu_unit=unit, n_estimators=3, n_jobs=1).fit(X, y).scores(X)
        for unit in ("sum", "mean")
    )
    assert_array_equal(by_sum, by_mean)
