"""Evaluation sets that do not go with the training rows."""

import numpy as np
import pytest

from distboost.errors import DataError
from tests.bad_input.forms import to_dask, to_numpy


def test_unknown_label_in_the_eval_set(model, data, stored):
    X, y = data
    other = y.copy()
    other[137] = 9
    with pytest.raises(
        DataError, match=r"eval_set y.* has the label (np\.int64\()?9\)? in row 137.* none of the 3 classes"
    ):
        model.fit(X, y, eval_set=(stored(X, "x"), stored(other, "y")))


def test_labels_of_another_type_in_the_eval_set(model, data):
    X, y = data
    with pytest.raises(DataError, match="eval_set y"):
        model.fit(X, y, eval_set=(X, np.array(["a", "b", "c"])[y]))


def test_nothing_at_the_path_of_the_eval_set(model, data):
    with pytest.raises(DataError, match=r"eval_set: there is no zarr array at 'none\.binned'"):
        model.fit(*data, eval_set="none.binned")


def test_infinite_value_in_the_eval_set(model, data, stored):
    X, y = data
    other = X.copy()
    other[137, 2] = np.inf
    with pytest.raises(DataError, match=r"eval_set X.* infinite.*row 137, column 2"):
        model.fit(X, y, eval_set=(stored(other, "x"), stored(y, "y")))


def test_other_features_in_the_eval_set(model, data, stored):
    X, y = data
    with pytest.raises(ValueError, match=r"3 features"):
        model.fit(X, y, eval_set=(stored(X[:, :3], "x"), stored(y, "y")))


def test_eval_set_of_two_lengths(model, data, stored):
    X, y = data
    with pytest.raises(ValueError, match=r"eval_set X.* has 240 rows but eval_set y.* has 100"):
        model.fit(X, y, eval_set=(stored(X, "x"), stored(y[:100], "y")))


@pytest.mark.parametrize("form", [to_numpy, to_dask], ids=["numpy", "dask"])
def test_eval_set_without_rows(model, data, form, tmp_path):
    X, y = data
    with pytest.raises(ValueError, match=r"eval_set X has 0 rows|0 sample\(s\)"):
        model.fit(X, y, eval_set=(form(X[:0], tmp_path), form(y[:0], tmp_path)))


def test_features_and_labels_as_two_eval_sets(model, data):
    with pytest.raises(DataError, match=r"eval_set 'eval_0' has the type ndarray\. Pass \(X, y\)"):
        model.fit(*data, eval_set=list(data))


def test_early_stopping_without_an_eval_set(model, data):
    with pytest.raises(
        DataError, match=r"early_stopping_rounds=3 needs rows.*eval_set=\(X, y\).*validation_fraction=0\.1"
    ):
        model.set_params(early_stopping_rounds=3).fit(*data)


def test_an_eval_set_and_a_validation_fraction(model, data):
    with pytest.raises(DataError, match=r"validation_fraction=0\.2 would leave out .* there is an eval_set"):
        model.set_params(validation_fraction=0.2).fit(*data, eval_set=data)


def test_a_tuple_of_sets_is_distinguished_from_a_set(model, data):
    with pytest.raises(
        DataError, match=r"eval_set is a tuple of sets\. Pass a list, \[\(X, y\), \(X2, y2\)\], or a dict"
    ):
        model.fit(*data, eval_set=(data, data))
