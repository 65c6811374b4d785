"""With two classes, many algorithms are AdaBoost."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from distboost import (
    AdaBoostMMClassifier,
    CDMCBoostClassifier,
    GAMBLEClassifier,
    GDMCBoostClassifier,
    REBELClassifier,
    StagewiseBoostClassifier,
)
from distboost.baselines import (
    AdaBoostECCClassifier,
    AdaBoostM1Classifier,
    AdaBoostM2Classifier,
    AdaBoostMHClassifier,
    AdaBoostMOClassifier,
    AdaBoostMRClassifier,
    AllPairsClassifier,
    GentleAdaBoostClassifier,
    OneVsAllAdaBoostClassifier,
    OutputCodeClassifier,
    SAMMEClassifier,
)
from tests.theory.problems import adaboost, gentle_adaboost, two_classes

# Two classes

# F_1 - F_0 is so many times AdaBoost's score.
ADABOOSTS = {
    "cd-mcboost": (CDMCBoostClassifier(calibration=None), 2),
    "gd-mcboost, codeword": (GDMCBoostClassifier(calibration=None, leaf="codeword", max_depth=1), 2),
    "gd-mcboost, direction": (GDMCBoostClassifier(calibration=None, max_depth=1), 2),
    "adaboost-mm": (AdaBoostMMClassifier(calibration=None, max_depth=1), 1),
    "stagewise": (StagewiseBoostClassifier(calibration=None, nu=0.0, learning_rate=1.0), 1),
    "rebel": (REBELClassifier(calibration=None), 2),
    "one-vs-all": (OneVsAllAdaBoostClassifier(calibration=None), 2),
    "adaboost-m1": (AdaBoostM1Classifier(calibration=None, max_depth=1), 2),
    "samme": (SAMMEClassifier(calibration=None, max_depth=1), 2),
    "adaboost-mh": (AdaBoostMHClassifier(calibration=None), 2),
    "adaboost-mh, label": (AdaBoostMHClassifier(calibration=None, vote="label"), 2),
    "adaboost-m2": (AdaBoostM2Classifier(calibration=None, max_depth=1), 2),
    "adaboost-mr": (AdaBoostMRClassifier(calibration=None, max_depth=1), 2),
    "adaboost-ecc": (AdaBoostECCClassifier(calibration=None), 2),
    "all-pairs": (AllPairsClassifier(calibration=None, decoding="sum"), 2),
    "output-code": (OutputCodeClassifier(calibration=None), 2),
    "adaboost-mo": (AdaBoostMOClassifier(calibration=None), 2),
}


def test_with_two_classes_the_logistic_losses_are_one():
    """With two classes, there is one wrong one."""
    X, y = two_classes()
    how = {"calibration": None, "n_estimators": 15, "max_depth": 1}
    expected = GDMCBoostClassifier(loss="softmax", **how).fit(X, y)
    for estimator in (GDMCBoostClassifier, CDMCBoostClassifier):
        model = estimator(loss="logistic", **how).fit(X, y)
        assert_allclose(model.scores(X), expected.scores(X), rtol=1e-9, atol=1e-12)
        assert_allclose(model.train_loss_, np.log(2) + expected.train_loss_, rtol=1e-12)


@pytest.mark.parametrize("name", ADABOOSTS)
def test_with_two_classes_it_is_adaboost(name):
    X, y = two_classes()
    model, factor = ADABOOSTS[name]
    model.set_params(n_estimators=15).fit(X, y)
    for F, expected in zip(model.staged_scores(X), adaboost(X, 2 * y - 1, 15), strict=True):
        assert_allclose(F[:, 1] - F[:, 0], factor * expected, rtol=1e-9, atol=1e-12)


def test_stagewise_coefficients_of_two_classes_are_adaboosts():
    """w_1 - w_0 = 1/2 ln((1 - ε) / ε) of the stump that says +1 for class 1."""
    X, y = two_classes()
    model = StagewiseBoostClassifier(calibration=None, n_estimators=1, nu=0.0, learning_rate=1.0).fit(X, y)
    values = model.learned_.ensemble.arrays()["values"]
    ε = (model.predict(X) != y).mean()
    assert_allclose(np.abs(values[:, 1] - values[:, 0]), np.log((1 - ε) / ε) / 2, rtol=1e-12)
    assert_array_equal(values.min(axis=0), -values.max(axis=0))


def test_gamble_at_half_the_rate_is_gentle_adaboost():
    X, y = two_classes()
    expected = gentle_adaboost(X, 2 * y - 1, 15)
    gamble = GAMBLEClassifier(calibration=None, n_estimators=15, max_leaf_nodes=2, learning_rate=0.5).fit(
        X, y
    )
    gentle = GentleAdaBoostClassifier(calibration=None, n_estimators=15).fit(X, y)
    for ours, theirs, F in zip(gamble.staged_scores(X), gentle.staged_scores(X), expected, strict=True):
        assert_allclose(ours, np.column_stack([-F, F]), rtol=1e-9, atol=1e-12)
        assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12)


def test_gambles_first_step_is_twice_gentle_adaboosts():
    X, y = two_classes()
    for size in (2, 5, 15):
        gamble = GAMBLEClassifier(calibration=None, n_estimators=1, max_leaf_nodes=size).fit(X, y)
        gentle = GentleAdaBoostClassifier(
            calibration=None, n_estimators=1, max_depth=None, max_leaf_nodes=size
        ).fit(X, y)
        assert_allclose(gamble.scores(X), 2 * gentle.scores(X), rtol=1e-9)
