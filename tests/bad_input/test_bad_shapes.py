"""Shapes that do not fit: each fault has an error of its own that gives the value, the limit, the place and the remedy."""

import numpy as np
import pytest
import zarr

from distboost.errors import DataError
from tests.bad_input.forms import N, to_dask, to_numpy


def test_y_of_another_length(model, data, stored):
    X, y = data
    with pytest.raises(
        ValueError,
        match=r"240.*239.*inconsistent numbers of samples|inconsistent numbers of samples: \[240, 239\]",
    ):
        model.fit(stored(X, "x"), stored(y[:-1], "y"))


def test_sample_weight_of_another_length(model, data, stored):
    X, y = data
    with pytest.raises(ValueError, match=r"sample_weight.*(200|\(200,\))"):
        model.fit(stored(X, "x"), stored(y, "y"), sample_weight=stored(np.ones(200), "w"))


def test_sample_weight_of_two_columns(model, data, stored):
    X, y = data
    with pytest.raises(ValueError, match=r"[Ss]ample.?weight.*(2 ?D|1D|dimension|shape|\(240, 2\))"):
        model.fit(stored(X, "x"), stored(y, "y"), sample_weight=stored(np.ones((N, 2)), "w"))


def test_y_of_two_columns(model, data, stored):
    X, y = data
    with pytest.raises(ValueError, match=r"shape \(\d+, 2\)"):
        model.fit(stored(X, "x"), stored(np.column_stack([y, y]), "y"))


def test_x_of_one_dimension(model, data, stored):
    X, y = data
    with pytest.raises(ValueError, match=r"[Rr]eshape your data"):
        model.fit(stored(X[:, 0], "x"), stored(y, "y"))


@pytest.mark.parametrize("form", [to_numpy, to_dask], ids=["numpy", "dask"])
def test_zero_features(model, data, form, tmp_path):
    with pytest.raises(
        ValueError, match=r"0 feature\(s\) \(shape=\(240, 0\)\) while a minimum of 1 is required"
    ):
        model.fit(form(data[0][:, :0], tmp_path), data[1])


@pytest.mark.parametrize("form", [to_numpy, to_dask], ids=["numpy", "dask"])
def test_zero_rows(model, data, form, tmp_path):
    with pytest.raises(
        ValueError,
        match=r"X has 0 rows\. Give at least 1 row of each of 2 classes|0 sample\(s\).*minimum of 1",
    ):
        model.fit(form(data[0][:0], tmp_path / "x"), form(data[1][:0], tmp_path / "y"))


def test_zero_rows_in_zarr(model, tmp_path):
    x = zarr.create_array(str(tmp_path / "x"), shape=(0, 4), chunks=(10, 4), dtype="f8")
    y = zarr.create_array(str(tmp_path / "y"), shape=(0,), chunks=(10,), dtype="i8")
    with pytest.raises(DataError, match=r"X .* has 0 rows\. Give at least 1 row of each of 2 classes"):
        model.fit(x, y)
