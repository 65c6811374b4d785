"""Sample weights and class weights."""

from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest

from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.data.row_weights import WEIGHT_BITS, WeightRule
from distboost.errors import LimitError
from distboost.inputs.choose import dataset_of
from distboost.runtime.local import LocalRuntime

MODELS = pytest.mark.parametrize(
    "make",
    [
        lambda **p: GDMCBoostClassifier(calibration=None, n_estimators=4, **p),
        lambda **p: GDMCBoostClassifier(calibration=None, n_estimators=4, leaf="codeword", max_depth=2, **p),
        lambda **p: GDMCBoostClassifier(calibration=None, n_estimators=4, max_leaf_nodes=7, **p),
        lambda **p: GAMBLEClassifier(calibration=None, n_estimators=4, max_leaf_nodes=15, **p),
    ],
    ids=["direction", "codeword", "best first", "gamble"],
)


@MODELS
@pytest.mark.parametrize("max_bins", [255, 16], ids=["exact bins", "quantiles"])
def test_a_weight_of_two_is_the_row_twice_and_of_zero_none(make, max_bins, blobs, assert_same_model):
    X, y = blobs
    w = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = make(max_bins=max_bins).fit(X, y, sample_weight=w)
    repeated = make(max_bins=max_bins).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_same_model(weighted, repeated)


@MODELS
def test_rows_of_weight_zero_may_hold_values_and_classes_of_their_own(make, blobs, assert_same_model):
    X, y = np.array(blobs[0]), np.array(blobs[1])
    w = np.ones(len(y))
    w[::3] = 0
    expected = make().fit(X[w > 0], y[w > 0])
    X[w == 0] *= 1e6
    y[0] = 99
    model = make().fit(X, y, sample_weight=w)
    assert model.classes_.tolist() == [0, 1, 2]
    assert_same_model(model, expected)


@MODELS
def test_whole_weights_of_one_are_no_weights(make, blobs, assert_same_model):
    X, y = blobs
    assert_same_model(make().fit(X, y, sample_weight=np.ones(len(y))), make().fit(X, y))


@MODELS
def test_fractional_weights(make, blobs):
    """Halving all weights leaves the predictions; a class made heavier is predicted more often."""
    X, y = blobs
    w = np.random.default_rng(1).uniform(0.1, 2.0, len(y))
    model = make().fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(make().fit(X, y, sample_weight=w / 2).predict(X), model.predict(X))
    assert np.isfinite(model.scores(X)).all()
    heavier = make().fit(X, y, sample_weight=np.where(y == 1, 50.5 * w, w))
    assert (heavier.predict(X) == 1).sum() > (model.predict(X) == 1).sum()


@MODELS
def test_errors_are_weighed(make, blobs):
    X, y = blobs
    w = np.random.default_rng(1).choice([0.0, 0.25, 1.5, 7.0], len(y))
    model = make().fit(X, y, sample_weight=w)
    wrong = [np.average(y != F, weights=w) for F in model.staged_predict(X)]
    np.testing.assert_allclose(model.train_error_, wrong, rtol=1e-6)


@MODELS
def test_weights_from_any_source(make, blobs, assert_same_model):
    X, y = blobs
    w = np.random.default_rng(1).choice([0.0, 0.3, 2.0], len(y))
    expected = make().fit(X, y, sample_weight=w)
    assert_same_model(make().fit(X, y, sample_weight=da.from_array(w, chunks=33)), expected)
    assert_same_model(make().fit(da.from_array(X, chunks=(50, 4)), y, sample_weight=w.tolist()), expected)


def test_a_column_of_weights(blobs, assert_same_model):
    X, y = blobs
    w = np.random.default_rng(1).choice([0.0, 0.3, 2.0], len(y))
    model = GDMCBoostClassifier(calibration=None, n_estimators=2)
    expected = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(X, y, sample_weight=w)
    assert_same_model(model.fit(X, y, sample_weight=da.from_array(w[:, None], chunks=(60, 1))), expected)


def test_weights_a_thousand_times_as_large_give_the_same_edges(blobs):
    X, y = blobs
    w, runtime = np.random.default_rng(1).integers(1, 9, len(y)), LocalRuntime(1)
    expected = dataset_of(X, y, w).profile(16, 0, runtime).edges
    for unit in (2.0**-12, 2.0**12):
        for ours, theirs in zip(
            dataset_of(X, y, w * unit).profile(16, 0, runtime).edges, expected, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


@MODELS
def test_class_weight_multiplies_the_sample_weight(make, blobs, assert_same_model):
    X, y = blobs
    w = np.random.default_rng(1).integers(1, 4, len(y))
    by_class = np.array([1, 5, 2])
    model = make(class_weight={0: 1, 1: 5, 2: 2}).fit(X, y, sample_weight=w)
    assert_same_model(model, make().fit(X, y, sample_weight=w * by_class[y]))


@MODELS
def test_classes_without_a_class_weight_weigh_one(make, blobs, assert_same_model):
    X, y = blobs
    labels = np.array(["a", "b", "c"])[y]
    model = make(class_weight={"b": 3}).fit(X, labels)
    assert_same_model(model, make(class_weight={"a": 1, "b": 3, "c": 1.0}).fit(X, labels))


@MODELS
def test_balanced_classes_weigh_alike(make, blobs, assert_same_model):
    X, y = blobs
    rows = np.flatnonzero((y != 2) | (np.arange(len(y)) % 5 == 0))
    X, y = X[rows], y[rows]
    n = np.bincount(y)
    model = make(class_weight="balanced").fit(X, y)
    assert_same_model(model, make(class_weight=dict(enumerate(len(y) / (3 * n)))).fit(X, y))
    recalls = [(model.predict(X) == y)[y == c].mean() for c in range(3)]
    plain = make().fit(X, y)
    assert recalls[2] >= (plain.predict(X) == y)[y == 2].mean()


@MODELS
@pytest.mark.parametrize("max_bins", [255, 16], ids=["exact bins", "quantiles"])
@pytest.mark.parametrize("exponent", [-1021, -1015, 1015], ids=str)
def test_a_power_of_two_changes_nothing(make, max_bins, exponent, blobs, assert_same_model):
    """Down to the smallest normal numbers, and up to where the sum of all weights is beyond what a float holds."""
    X, y = blobs
    w = np.random.default_rng(1).uniform(1, 256, len(y))
    model = make(max_bins=max_bins).fit(X, y, sample_weight=np.ldexp(w, exponent))
    assert_same_model(model, make(max_bins=max_bins).fit(X, y, sample_weight=w))


@MODELS
@pytest.mark.parametrize("exponent", [-1000, 1000], ids=str)
def test_products_beyond_what_a_float_holds(make, exponent, blobs, assert_same_model):
    """Of a sample weight and a class weight, either of which is a number like any other."""
    X, y = blobs
    w = np.random.default_rng(1).uniform(1, 2, len(y))
    model = make(class_weight=dict.fromkeys(range(3), 3.0 * 2.0**exponent))
    model.fit(X, y, sample_weight=np.ldexp(w, exponent))
    assert_same_model(model, make(class_weight=dict.fromkeys(range(3), 3.0)).fit(X, y, sample_weight=w))


def test_the_smallest_weights_that_there_are(blobs):
    X, y = blobs
    smallest = np.full(len(y), 5e-324)
    expected = GDMCBoostClassifier(calibration=None, n_estimators=3).fit(
        X, y, sample_weight=np.full(len(y), 0.3)
    )
    model = GDMCBoostClassifier(calibration=None, n_estimators=3).fit(X, y, sample_weight=smallest)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize(
    ("class_weights", "whole", "exponent"),
    [
        ([1, 3], [True, True], 0),
        ([1, 0.5], [True, True], WEIGHT_BITS - 1),
        ([1, 3], [True, False], WEIGHT_BITS - 3),
        ([2**WEIGHT_BITS // 2, 0], [True, True], 0),  # of a weight of 2
        ([2**WEIGHT_BITS // 2 + 1, 0], [True, True], -1),
    ],
)
def test_whole_weights_that_fit_stay_as_they_are(class_weights, whole, exponent):
    """All must be whole; the largest of any others is scaled to the most that there is room for."""
    scans = [SimpleNamespace(whole_weights=w, largest_weight=2.0) for w in whole]
    assert WeightRule.of(np.array(class_weights, float), scans).exponent == exponent


def test_rows_whose_weights_vanish_beside_the_others_cannot_be_judged_by(blobs):
    X, y = blobs
    w = np.full(len(y), 1e-90)
    w[0] = 1e90
    model = GDMCBoostClassifier(n_estimators=2, calibration=None, validation_fraction=0.1)
    with pytest.raises(
        LimitError, match=r"the weights of \d+ rows are so far below.*rounded to 0\. Choose weights"
    ):
        model.fit(X, y, sample_weight=w)
