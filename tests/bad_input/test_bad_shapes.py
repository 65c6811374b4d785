"""Shapes that do not fit: each fault has an error of its own that gives the value, the limit, the place and the remedy."""

import dask.array as da
import numpy as np
import pytest
import zarr

import distboost
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


@pytest.mark.parametrize("form", [to_numpy, to_dask], ids=["numpy", "dask"])
@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_a_single_value_in_place_of_one_per_row(model, data, name, form):
    X, y = data
    model.set_params(calibration=None).fit(X, y)
    scalar = np.asarray(1) if form is to_numpy else da.asarray(1)
    with pytest.raises(DataError, match=rf"^{name}.*(is a single value\. Pass one value per row|1d array)"):
        distboost.evaluate(model, X, **{"y": y, name: scalar})


def test_y_of_two_columns(model, data, stored):
    X, y = data
    with pytest.raises(ValueError, match=r"shape \(\d+, 2\)"):
        model.fit(stored(X, "x"), stored(np.column_stack([y, y]), "y"))


def test_x_of_one_dimension(model, data, stored):
    X, y = data
    with pytest.raises(ValueError, match=r"[Rr]eshape your data"):
        model.fit(stored(X[:, 0], "x"), stored(y, "y"))


@pytest.mark.parametrize("X", [{"a": [1.0]}, {1.0}, (n for n in range(3)), None, 5, object()], ids=type)
def test_x_of_a_type_that_is_no_array(X, model, data):
    model.fit(*data)
    for use in (lambda: model.predict(X), lambda: model.fit(X, data[1])):
        with pytest.raises(DataError, match=rf"X is of type {type(X).__name__}\. Pass an array of numbers, "):
            use()


def test_lists_of_different_lengths(model, data):
    with pytest.raises(DataError, match="the rows of X have different lengths"):
        model.fit([[1.0, 2.0], [3.0]], [0, 1])


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
        match=r"X has 0 rows\. Pass at least 1 row of each of 2 classes|0 sample\(s\).*minimum of 1",
    ):
        model.fit(form(data[0][:0], tmp_path / "x"), form(data[1][:0], tmp_path / "y"))


def test_zero_rows_in_zarr(model, tmp_path):
    x = zarr.create_array(str(tmp_path / "x"), shape=(0, 4), chunks=(10, 4), dtype="f8")
    y = zarr.create_array(str(tmp_path / "y"), shape=(0,), chunks=(10,), dtype="i8")
    with pytest.raises(DataError, match=r"X .* has 0 rows\. Pass at least 1 row of each of 2 classes"):
        model.fit(x, y)


@pytest.mark.parametrize("returned", [slice(10), np.r_[:40, :40]], ids=["shorter", "longer"])
@pytest.mark.parametrize("lying", ["X", "y", "sample_weight"])
def test_dask_chunks_of_other_sizes_than_the_array_says(model, data, lying, returned):
    """Kernels rely on the sizes: they would read and write outside of their arrays."""
    given = {"X": data[0], "y": data[1], "sample_weight": np.ones(N)}
    array = to_dask(given[lying], None)
    given[lying] = array.map_blocks(lambda chunk: chunk[returned], dtype=array.dtype, chunks=array.chunks)
    with pytest.raises(DataError, match=rf"chunk \(\d,.*\) of {lying} was computed to the shape \((10|80),"):
        model.fit(**given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((N, 2, 2))}, r"^X: Found array with dim 3"),
        ({"X": np.zeros(N)}, r"^X: Expected 2D array"),
        ({"X": np.zeros((N, 4), complex)}, r"^X: Complex data not supported"),
        ({"y": np.zeros((N, 2))}, r"^y should be a 1d array"),
        ({"sample_weight": np.zeros(N)}, r"^sample_weight: Sample weights must contain"),
        ({"sample_weight": np.full(N, np.nan)}, r"^sample_weight: Input sample_weight contains NaN"),
        ({"eval_set": (np.zeros((0, 4)), np.zeros(0))}, r"^eval_set X: Found array with 0 sample"),
    ],
)
def test_what_scikit_learn_refuses_is_a_data_error_with_a_place(model, data, change, message):
    with pytest.raises(DataError, match=message):
        model.fit(**{"X": data[0], "y": data[1], **change})


def test_no_labels(model, data, tmp_path):
    with pytest.raises(DataError, match="the target y is None"):
        model.fit(data[0])
    with pytest.raises(DataError, match="y is None: pass one label per row"):
        distboost.bin(data[0], None, str(tmp_path / "store"))
