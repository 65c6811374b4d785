"""Data frames as features: which columns are numbers, what the others say, and that no frame is copied as a whole."""

import datetime
import pickle
import tracemalloc

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
import zarr

import distboost
from distboost import GDMCBoostClassifier
from distboost.data.source import ArraySource, load
from distboost.errors import DataError
from distboost.inputs.choose import adapter_of, dataset_of
from distboost.inputs.frame import FrameInput, FrameSource


def model():
    return GDMCBoostClassifier(calibration=None, n_estimators=1)


def read(frame):
    """The numbers of all rows, in pieces of uneven length."""
    source = FrameInput(frame, "X").features()
    parts = [source.part(a, b) for a, b in ((0, 1), (1, source.n_rows))]
    found = np.concatenate([load(part) for part in parts])
    assert (found.dtype, found.shape) == (source.dtype, source.shape)
    return found


LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture(params=LIBRARIES.values(), ids=LIBRARIES)
def make(request):
    return request.param


@pytest.mark.parametrize(
    ("dtypes", "common"),
    [
        (["u1", "u1"], "u1"),
        (["f4", "f4"], "f4"),
        (["i8", "f4"], "f8"),
        (["u1", "i1"], "i2"),
        (["?", "u1"], "f8"),
    ],
)
def test_columns_become_a_block_of_their_common_type(make, dtypes, common):
    columns = {str(i): np.array([0, 1, 1], dtype) for i, dtype in enumerate(dtypes)}
    found = read(make(columns))
    assert found.dtype == common
    np.testing.assert_array_equal(found, np.array([[0, 0], [1, 1], [1, 1]]))


def test_missing_values_are_nan(make):
    columns = {"whole": [1, None, 3], "real": [0.5, None, 2.0], "truth": [True, None, False]}
    for names in (["whole"], list(columns)):  # a column of whole numbers may make the table one
        frame = make({name: columns[name] for name in names})
        frame = frame.convert_dtypes() if isinstance(frame, pd.DataFrame) else frame
        expected = np.array([[1, 0.5, 1], [np.nan] * 3, [3, 2, 0]])
        np.testing.assert_array_equal(read(frame), expected[:, : len(names)])


def test_decimals_are_numbers():
    column = pa.array([1, None, 3], pa.decimal128(10, 2))
    for frame in (pa.table({"d": column}), pl.DataFrame({"d": column})):
        np.testing.assert_array_equal(read(frame)[:, 0], [1, np.nan, 3])


def test_objects_and_sparse_columns_of_pandas_are_numbers():
    columns = {
        "object": pd.Series([1, None, 2.5], dtype=object),
        "sparse": pd.arrays.SparseArray([0.0, 0, 3]),
    }
    np.testing.assert_array_equal(read(pd.DataFrame(columns)), [[1, 0], [np.nan, 0], [2.5, 3]])


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_frame_of_pandas_that_is_one_array_is_not_copied(order):
    X = np.asarray(np.arange(12.0).reshape(4, 3), order=order)
    frame = pd.DataFrame(X, columns=list("abc"), copy=False)
    for given in (frame, frame[["a", "b"]], frame[["b"]], frame.iloc[1:], frame.iloc[::2]):
        source = adapter_of(given, "X").features()
        assert isinstance(source, ArraySource) == np.shares_memory(given.to_numpy(), given.to_numpy())
        np.testing.assert_array_equal(source.read(0, source.n_rows), given.to_numpy())


def test_a_frame_of_pandas_of_several_arrays_is_read_by_columns():
    frame = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=list("abc"))
    frame["d"] = 1.5
    source = adapter_of(frame, "X").features()
    assert isinstance(source, FrameSource)
    np.testing.assert_array_equal(source.read(0, 4), frame.to_numpy())


def test_a_frame_without_rows_is_an_error(make):
    columns, fitted = {"a": np.zeros(0)}, model().fit(make({"a": np.arange(20.0)}), np.arange(20) % 2)
    with pytest.raises(DataError, match="X has 0 rows"):
        model().fit(make(columns), np.zeros(0))
    with pytest.raises(DataError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 1\)\)"):
        fitted.predict(make(columns))


@pytest.mark.parametrize("use", ["fit", "predict"])
def test_an_infinite_value_in_a_frame_is_an_error(make, use):
    fitted = model().fit(make({"a": np.arange(20.0)}), np.arange(20) % 2)
    infinite = make({"a": np.array([1.0, np.inf] * 10)})
    with pytest.raises(ValueError, match="infinit"):
        model().fit(infinite, np.arange(20) % 2) if use == "fit" else fitted.predict(infinite)


def test_columns_of_bands_are_those_of_the_frame(make):
    X = np.arange(12.0).reshape(3, 4)
    source = FrameInput(make({str(i): X[:, i] for i in range(4)}), "X").features()
    np.testing.assert_array_equal(load(source.part(1, 3, (1, 3))), X[1:3, 1:3])


def test_a_part_that_travels_has_its_own_rows_only():
    """pyarrow would pickle all rows of a slice."""
    part = FrameInput(pa.table({"a": np.arange(1e5)}), "X").features().part(10, 20)
    sent = pickle.dumps(part)
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent)[:, 0], np.arange(10, 20))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_frame_is_not_copied_as_a_whole(library):
    """The scan and the bins of whole numbers take less memory than a copy of all as float64 would."""
    columns = {str(i): np.random.default_rng(i).integers(0, 99, 200_000, dtype=np.int16) for i in range(16)}
    columns["real"] = np.linspace(0, 1, 200_000)
    frame, y = LIBRARIES[library](columns), np.arange(200_000) % 2
    data = dataset_of(frame, y, None)
    source = data.x
    assert source.dtype == np.float64
    tracemalloc.start()
    try:
        for start in range(0, source.n_rows, 2**14):
            for _, values in source.part(start, start + 2**14).pieces():
                assert values.dtype == np.float64
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000 * 17 * 8 / 5


DATES = pd.Series(pd.to_datetime(["2020-01-01", None] * 10))
WITH_DATES = {
    "pandas": pd.DataFrame({"a": 1.0, "when": DATES}),
    "pandas, durations": pd.DataFrame({"a": 1.0, "when": DATES - DATES[0]}),
    "pandas, objects": pd.DataFrame(
        {"a": 1.0, "when": pd.Series([datetime.date(2020, 1, 1)] * 20, dtype=object)}
    ),
    "polars": pl.DataFrame({"a": [1.0] * 20, "when": [datetime.date(2020, 1, 1), None] * 10}),
    "polars, times": pl.DataFrame({"a": [1.0] * 20, "when": [datetime.time(1), None] * 10}),
    "pyarrow": pa.table({"a": [1.0] * 20, "when": pa.array(DATES)}),
    "dask": dd.from_pandas(pd.DataFrame({"a": 1.0, "when": DATES}), npartitions=2),
}


@pytest.mark.parametrize("frame", WITH_DATES.values(), ids=WITH_DATES)
def test_dates_in_a_frame_are_an_error_with_their_column(frame):
    fitted = model().fit(pd.DataFrame({"a": np.arange(20.0), "when": 0.0}), np.arange(20) % 2)
    for use in (lambda: model().fit(frame, np.arange(20) % 2), lambda: fitted.predict(frame)):
        with pytest.raises(DataError, match=r"the column 'when' of X has dates or durations .*Pass numbers"):
            use()


ALL_DATES = np.array([["2020-01-01", "NaT"]] * 20, "M8[s]")


@pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification")
@pytest.mark.parametrize("values", [ALL_DATES, ALL_DATES - ALL_DATES[0, 0]], ids=["dates", "durations"])
@pytest.mark.parametrize("kind", ["numpy", "objects", "list", "dask", "zarr", "xarray"])
def test_dates_in_an_array_are_the_same_error(values, kind, tmp_path):
    X = {
        "numpy": lambda: values,
        "objects": lambda: np.array([list(row) for row in values], dtype=object),
        "list": lambda: [list(row) for row in values],
        "dask": lambda: da.from_array(values),
        "zarr": lambda: zarr.create_array(str(tmp_path / "x"), data=values),
        "xarray": lambda: xr.DataArray(values),
    }[kind]()
    y, fitted = np.arange(20) % 2, model().fit(np.eye(20)[:, :2], np.arange(20) % 2)
    for use in (
        lambda: model().fit(X, y),
        lambda: fitted.predict(X),
        lambda: model().fit(np.eye(20)[:, :2], y, eval_set=(X, y)),
        lambda: distboost.bin(np.asarray(X) if kind == "list" else X, y, f"{tmp_path}/bins"),
    ):
        with pytest.raises(DataError, match=r"X.* has dates or durations .*Pass numbers"):
            use()


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["x", "y"] * 10),
        pd.Series(["x", 1] * 10, dtype=object),
        pl.Series(["x", None] * 10),
        pl.Series([[1, 2]] * 20),
        pa.array(["x", "y"] * 10),
        pa.array([b"x"] * 20),
    ],
    ids=["pandas", "pandas objects", "polars", "polars lists", "pyarrow", "pyarrow bytes"],
)
def test_a_column_without_numbers_is_an_error_with_its_name(column):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(
        type(column).__module__.split(".")[0], pa.table
    )
    frame = make({"a": np.arange(20.0), "colour": column})
    with pytest.raises(DataError, match=r"the column 'colour' of X has no numbers .*Encode it"):
        model().fit(frame, np.arange(20) % 2)


def test_text_in_a_dask_frame_is_an_error_with_its_column():
    frame = dd.from_pandas(pd.DataFrame({"a": 1.0, "colour": ["x"] * 20}), npartitions=2)
    with pytest.raises(DataError, match="the column 'colour' of X has no numbers"):
        model().fit(frame, np.arange(20) % 2)


def test_what_is_not_yet_a_table_is_an_error_that_says_how_to_make_one():
    with pytest.raises(DataError, match=r"X is a LazyFrame of polars.*Pass X.collect\(\)"):
        model().fit(pl.LazyFrame({"a": np.ones(20)}), np.arange(20) % 2)


@pytest.mark.parametrize("policy", ["fit", "predict", "bin", "fit alone"])
@pytest.mark.parametrize("kind", ["group", "path"])
def test_a_group_is_an_error_that_lists_its_arrays(policy, kind, tmp_path):
    group = zarr.create_group(str(tmp_path / "d.zarr"))
    group.create_array("x", data=np.eye(20))
    group.create_array("y", data=np.arange(20) % 2)
    X = group if kind == "group" else tmp_path / "d.zarr"
    fitted = model().fit(np.eye(20), np.arange(20) % 2)
    use = {
        "fit": lambda: model().fit(X, np.arange(20) % 2),
        "predict": lambda: fitted.predict(X),
        "bin": lambda: distboost.bin(X, X, f"{tmp_path}/bins"),
        "fit alone": lambda: model().fit(X),
    }[policy]
    arrays = r"'x' \(20, 20\) float64, 'y' \(20,\) int64"
    said = rf"d.zarr' is a zarr group, not an array. Its arrays are: {arrays}. Pass one of them: '.*/x'"
    with pytest.raises(DataError, match=said):
        use()


def test_a_group_as_labels_is_the_same_error(tmp_path):
    zarr.create_group(str(tmp_path / "d.zarr")).create_array("y", data=np.arange(20) % 2)
    with pytest.raises(DataError, match=r"y: '.*d.zarr' is a zarr group, not an array. Its arrays are: 'y'"):
        model().fit(np.eye(20), tmp_path / "d.zarr")


SERIES = {
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pandas": pd.Series,
    "xarray": xr.DataArray,
    "xarray of dask": lambda y: xr.DataArray(da.from_array(y)),
    "dask": lambda y: dd.from_pandas(pd.Series(y), npartitions=2),
}


@pytest.mark.parametrize("labels", SERIES.values(), ids=SERIES)
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_labels_and_weights_of_any_library(labels, weighted, blobs):
    X, y = blobs
    weight = np.arange(240) % 3
    expected = model().fit(X, y, sample_weight=weight if weighted else None)
    found = model().fit(X, labels(y.copy()), sample_weight=labels(weight) if weighted else None)
    assert found.digest() == expected.digest()
