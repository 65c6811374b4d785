"""Labels that are missing, of no class or of too many."""

import numpy as np
import pytest

import distboost
from distboost.data import scan
from distboost.errors import DataError, LimitError
from tests.bad_input.forms import N, to_dask, to_numpy


def test_nan_label(model, data, stored):
    X, y = data
    y = y.astype(float)
    y[[137, 201]] = np.nan
    with pytest.raises(
        DataError, match=r"y.* has a missing label \(NaN\) in row 137.*Remove unlabelled rows"
    ):
        model.fit(stored(X, "x"), stored(y, "y"))


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("form", [to_numpy, to_dask], ids=["numpy", "dask"])
def test_missing_label_among_objects(model, data, form, missing, tmp_path):
    X, y = data
    y = np.array(["a", "b", "c"], object)[y]
    y[201] = missing
    with pytest.raises(DataError, match=r"y has a missing label \(NaN\) in row 201.*Remove unlabelled rows"):
        model.fit(form(X, tmp_path), form(y, tmp_path))


def test_missing_date_label(model, data):
    y = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[D]")[data[1]]
    y[3] = "NaT"
    with pytest.raises(DataError, match=r"y has a missing label \(NaN\) in row 3"):
        model.fit(data[0], y)


def test_infinite_label(model, data, stored):
    X, y = data
    y = y.astype(float)
    y[137] = np.inf
    with pytest.raises(DataError, match=r"y.* infinite.*row 137"):
        model.fit(stored(X, "x"), stored(y, "y"))


def test_a_number_to_predict_instead_of_classes(model, data, stored):
    X, y = data
    y = np.where(np.arange(len(y)) == 9, 0.25, y)
    with pytest.raises(
        DataError,
        match=r"continuous.* label 0\.25, which is no integer, of 4 labels.*divide it into classes first",
    ):
        model.fit(stored(X, "x"), stored(y, "y"))


@pytest.mark.parametrize(("convert", "label"), [(np.asarray, "9"), (lambda y: y.astype(str), "'9'")])
def test_label_that_training_did_not_see_is_shown_as_it_is(model, data, convert, label):
    X, y = data
    model.set_params(calibration=None).fit(X, convert(y))
    with pytest.raises(DataError, match=rf"y has the label {label} in row 0, which is none of the 3 classes"):
        distboost.evaluate(model, X, convert(np.full_like(y, 9)))


def test_labels_of_types_that_do_not_compare(model, data):
    y = data[1].astype(object)
    y[5] = "five"
    with pytest.raises(DataError, match=r"y mixes labels of different types.*Use one type"):
        model.fit(data[0], y)


def test_one_class_only(model, data, stored):
    X, y = data
    with pytest.raises(DataError, match=r"y.* has only one class \(7\) in 240 rows.*Pass at least 2 classes"):
        model.fit(stored(X, "x"), stored(np.full_like(y, 7), "y"))


def test_one_class_of_weight_above_zero(model, data, stored):
    X, y = data
    with pytest.raises(DataError, match=r"y.* has only one class \(1\)"):
        model.fit(stored(X, "x"), stored(y, "y"), sample_weight=stored((y == 1).astype(float), "w"))


def test_too_many_classes(model, data, stored, monkeypatch):
    monkeypatch.setattr(scan, "MAX_CLASSES", 20)
    with pytest.raises(LimitError, match=r"y.* has 240 classes, above the limit of 20\. Check"):
        model.fit(stored(data[0], "x"), stored(np.arange(N), "y"))


def test_too_many_rows(model, data, stored, monkeypatch):
    monkeypatch.setattr(scan, "MAX_ROWS", 239)
    with pytest.raises(
        LimitError, match=r"X.* has 240 rows, but integer sums hold at most 239\. Train on fewer rows"
    ):
        model.fit(stored(data[0], "x"), stored(data[1], "y"))
