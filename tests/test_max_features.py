"""max_features as scikit-learn has it: a fraction, a number, "sqrt" or "log2"."""

from __future__ import annotations

import math

import numpy as np
import pytest

from distboost import CDMCBoostClassifier, GDMCBoostClassifier, load
from distboost.runtime import local
from distboost.trees.grower import GrowthLimits

N_FEATURES = 20


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    return rng.normal(size=(200, N_FEATURES)) + 0.7 * np.eye(3, N_FEATURES)[y], y


def trained(rows, **parameters):
    return GDMCBoostClassifier(n_estimators=6, max_depth=3, calibration=None, **parameters).fit(*rows)


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 15, 16, 17, 1000])
def test_numbers_of_features(n_features):
    def most(value):
        return GrowthLimits(max_features=value).most_features(n_features)

    assert most("sqrt") == max(1, int(math.sqrt(n_features)))
    assert most("log2") == max(1, int(math.log2(n_features)))
    assert most(0.3) == max(1, int(0.3 * n_features))
    assert most(1) == most(np.int64(1)) == 1
    assert most(1.0) == n_features


@pytest.mark.parametrize(
    ("name", "number"), [("sqrt", 4), ("log2", 4), (np.int32(3), 3), (0.25, 5), (1.0, 20)]
)
def test_a_value_stands_for_its_number(name, number, rows, assert_same_model):
    assert_same_model(trained(rows, max_features=name), trained(rows, max_features=number))


def test_a_round_splits_on_its_features_only(rows):
    drawn = CDMCBoostClassifier(n_estimators=1, max_depth=6, max_features="sqrt", calibration=None).fit(*rows)
    assert 1 <= np.count_nonzero(drawn.feature_importances_) <= 4


def test_a_file_keeps_the_name(rows, tmp_path, saved):
    model = trained(rows, max_features="sqrt")
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.max_features == "sqrt"
    assert saved(again) == saved(model)
    assert saved(again.set_params(n_estimators=8).fit(*rows, resume=True)) == saved(
        trained(rows, max_features="sqrt").set_params(n_estimators=8).fit(*rows)
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_few_of_many_features_have_histograms_of_their_own(n_jobs, monkeypatch, assert_same_model):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 600)
    wide = rng.normal(size=(600, 400)) + np.eye(10, 400)[y], y
    summed = []
    begin = local.LocalTree.begin

    def noted(tree, expansion):
        parts = begin(tree, expansion)
        summed.append(sum(len(part.own) for part in tree.parts))
        return parts

    monkeypatch.setattr(local.LocalTree, "begin", noted)
    found = trained(wide, max_features=0.1, n_jobs=n_jobs)
    assert set(summed) == {40}
    monkeypatch.setattr(local, "FEW", 1000)
    expected = trained(wide, max_features=0.1, n_jobs=n_jobs)
    assert summed[-1] == 400
    assert_same_model(found, expected)


@pytest.mark.parametrize("refused", ["all", "log", None, 0, 1.5, "SQRT"])
def test_other_values_are_refused(refused, rows):
    with pytest.raises(ValueError, match="The 'max_features' parameter of GDMCBoostClassifier must be"):
        trained(rows, max_features=refused)
