"""Packed zarr arrays, as netCDF's conventions describe them: their values are used, never the stored numbers without a word."""

import base64
import struct

import numpy as np
import pytest
import xarray as xr
import zarr

import distboost
from distboost import GDMCBoostClassifier
from distboost.inputs.choose import adapter_of
from distboost.inputs.zarr_array import packing_of

SCALE, OFFSET, FILL = 0.25, -3.0, -9999


@pytest.fixture
def packed(blobs, tmp_path):
    """(path, values, y): features as int16, in chunks of columns, with missing values."""
    X, y = blobs
    stored = np.where(np.isnan(X), FILL, np.round((np.nan_to_num(X) - OFFSET) / SCALE)).astype(np.int16)
    array = zarr.create_array(str(tmp_path / "x"), data=stored, chunks=(50, 3))
    array.attrs.update({"scale_factor": SCALE, "add_offset": OFFSET, "_FillValue": FILL})
    return str(tmp_path / "x"), np.where(stored == FILL, np.nan, stored * SCALE + OFFSET), y


def model(**parameters):
    return GDMCBoostClassifier(calibration=None, n_estimators=3, **parameters)


@pytest.mark.parametrize("limit", [None, "streamed"])
def test_training_and_prediction_use_the_values(packed, limit, tmp_path):
    x, values, y = packed
    expected = model().fit(values, y)
    if limit is None:
        found = model().fit(x, y)
    else:
        found = model().fit(distboost.bin(x, y, f"{tmp_path}/bins"))
    assert found.digest() == expected.digest()
    np.testing.assert_array_equal(np.asarray(expected.scores(x)), expected.scores(values))
    np.testing.assert_array_equal(list(expected.staged_scores(x))[-1], expected.scores(values))
    assert distboost.evaluate(expected, x, y)["brier"] == distboost.evaluate(expected, values, y)["brier"]


def test_two_workers_use_the_values(packed, clients):
    x, values, y = packed
    found = model()
    found.client = clients[2]
    assert found.fit(x, y).digest() == model().fit(values, y).digest()


def test_the_command_line_predicts_the_values(packed, tmp_path):
    from tests.data.test_data_names import run

    x, values, y = packed
    fitted = model().fit(values, y)
    fitted.save(tmp_path / "model")
    assert run("predict", "--model", tmp_path / "model", "--x", x, "--out", tmp_path / "out")[0] == 0
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out")[:], fitted.predict(values))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_values_are_those_that_xarray_reads(packed, tmp_path, zarr_format):
    _, values, _ = packed
    encoding = {
        "dtype": "int16",
        "scale_factor": SCALE,
        "add_offset": OFFSET,
        "_FillValue": FILL,
        "chunks": (50, 3),
    }
    xr.Dataset({"x": (("row", "feature"), values)}).to_zarr(
        tmp_path / "d.zarr", zarr_format=zarr_format, consolidated=False, encoding={"x": encoding}
    )
    source = adapter_of(tmp_path / "d.zarr/x", "X").features()
    np.testing.assert_array_equal(source.read(0, source.n_rows), values)


def test_marks_of_missing_values_that_xarray_writes_are_decoded(tmp_path):
    """It writes those of real numbers as text."""
    values = np.array([[1.5, np.nan], [2.0, 3.0]], np.float32)
    xr.Dataset({"x": (("row", "feature"), values)}).to_zarr(
        tmp_path / "d.zarr",
        zarr_format=3,
        consolidated=False,
        encoding={"x": {"_FillValue": np.float32(1e20)}},
    )
    source = adapter_of(tmp_path / "d.zarr/x", "X").features()
    assert source.dtype == np.float32
    np.testing.assert_array_equal(source.read(0, 2), values)


def test_several_marks_of_missing_values(tmp_path):
    array = zarr.create_array(str(tmp_path / "x"), data=np.array([[-1, 5], [-2, -3]]))
    array.attrs.update({"missing_value": [-1, -2], "_FillValue": -3})
    found = adapter_of(array, "X").features().read(0, 2)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[np.nan, 5], [np.nan, np.nan]])


NAN = base64.b64encode(struct.pack("<d", np.nan)).decode()


@pytest.mark.parametrize(
    "attributes", [{}, {"_FillValue": NAN}, {"_FillValue": "NaN"}, {"scale_factor": 1, "add_offset": 0.0}]
)
def test_arrays_that_are_not_packed_are_read_as_they_are(attributes):
    assert packing_of(attributes, np.dtype("f4")) is None


def test_a_mark_that_the_type_cannot_hold_marks_nothing():
    packing = packing_of({"_FillValue": -9999}, np.dtype("u1"))
    np.testing.assert_array_equal(packing.decoded(np.array([0, 255], np.uint8)), [0.0, 255.0])


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"scale_factor": "large", "add_offset": 1.0}, "scale_factor is 'large', not a number"),
        ({"add_offset": [1.0, 2.0]}, r"add_offset is \[1.0, 2.0\], not a number"),
        ({"_FillValue": "?"}, r"_FillValue is '\?', not a number"),
        ({"_Unsigned": "true"}, "_Unsigned gives the stored numbers another type"),
    ],
)
@pytest.mark.parametrize("use", ["fit", "predict", "bin", "evaluate", "eval_set"])
def test_attributes_that_cannot_be_decoded_cause_a_warning_that_names_them(
    use, attributes, reason, tmp_path, blobs
):
    _, y = blobs
    X = np.arange(960, dtype=np.int16).reshape(240, 4)
    array = zarr.create_array(str(tmp_path / "x"), data=X)
    array.attrs.update(attributes)
    fitted = model().fit(X, y)
    call = {
        "fit": lambda: model().fit(tmp_path / "x", y),
        "predict": lambda: fitted.predict(tmp_path / "x"),
        "bin": lambda: distboost.bin(tmp_path / "x", y, f"{tmp_path}/bins"),
        "evaluate": lambda: distboost.evaluate(fitted, tmp_path / "x", y),
        "eval_set": lambda: model().fit(X, y, eval_set=(tmp_path / "x", y)),
    }[use]
    said = (
        rf"has the attributes {', '.join(attributes)} of a packed array, but cannot be decoded \({reason}\)"
    )
    with pytest.warns(UserWarning, match=said) as told:
        call()
    assert told[0].filename == __file__
