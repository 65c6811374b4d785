"""The same rows as NumPy, pandas, zarr and dask, in chunks of any size: one model."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.base import clone

from distboost import GDMCBoostClassifier
from distboost.data import checks, scan
from distboost.errors import DataError
from distboost.estimators.validation import Given, training_data
from distboost.inputs.choose import dataset_of
from distboost.runtime.local import LocalRuntime

N = 240


def in_zarr(array, chunks, path, **options):
    array = np.asarray(array)
    chunks = (chunks, *array.shape[1:])
    out = zarr.create_array(str(path), shape=array.shape, chunks=chunks, dtype=array.dtype, **options)
    out[...] = array
    return out


def in_dask(array, chunks):
    return da.from_array(np.asarray(array), chunks=(chunks, *np.shape(array)[1:]))


def with_empty_chunks(array):
    """A dask array of which the first, the last and one chunk between them are empty."""
    array = np.asarray(array)
    parts = [array[:0], array[:100], array[100:100], array[100:], array[:0]]
    return da.concatenate([da.from_array(part) for part in parts])


FORMS = {
    "numpy, other order": lambda X, y, tmp: (np.asfortranarray(X), y),
    "lists": lambda X, y, tmp: (X.tolist(), y.tolist()),
    "pandas": lambda X, y, tmp: (pd.DataFrame(X, columns=list("abcd")), pd.Series(y)),
    "zarr, 1 chunk": lambda X, y, tmp: (in_zarr(X, N, tmp / "x"), in_zarr(y, N, tmp / "y")),
    "zarr, 17 chunks": lambda X, y, tmp: (in_zarr(X, 15, tmp / "x"), in_zarr(y, 15, tmp / "y")),
    "zarr, chunks that do not agree": lambda X, y, tmp: (
        in_zarr(X, 37, tmp / "x"),
        in_zarr(y, 64, tmp / "y"),
    ),
    "zarr, chunks of one row": lambda X, y, tmp: (in_zarr(X, 1, tmp / "x"), in_zarr(y, 100, tmp / "y")),
    "zarr, shards": lambda X, y, tmp: (in_zarr(X, 10, tmp / "x", shards=(60, 4)), in_zarr(y, 33, tmp / "y")),
    "zarr, chunks of columns": lambda X, y, tmp: (
        zarr.create_array(str(tmp / "x"), data=X, chunks=(50, 3)),
        in_zarr(y, 50, tmp / "y"),
    ),
    "zarr, format 2": lambda X, y, tmp: (
        in_zarr(X, 50, tmp / "x", zarr_format=2),
        in_zarr(y, 50, tmp / "y", zarr_format=2),
    ),
    "paths": lambda X, y, tmp: (
        in_zarr(X, 50, tmp / "x") and str(tmp / "x"),
        in_zarr(y, 70, tmp / "y") and tmp / "y",
    ),
    "zarr and numpy": lambda X, y, tmp: (in_zarr(X, 50, tmp / "x"), y),
    "numpy and zarr": lambda X, y, tmp: (X, in_zarr(y, 50, tmp / "y")),
    "dask, 1 chunk": lambda X, y, tmp: (in_dask(X, N), in_dask(y, N)),
    "dask, 17 chunks": lambda X, y, tmp: (in_dask(X, 15), in_dask(y, 15)),
    "dask, chunks that do not agree": lambda X, y, tmp: (in_dask(X, 37), in_dask(y, 64)),
    "dask, empty chunks": lambda X, y, tmp: (with_empty_chunks(X), with_empty_chunks(y)),
    "dask, chunks of columns": lambda X, y, tmp: (da.from_array(X, chunks=(60, 3)), in_dask(y, N)),
    "dask and zarr": lambda X, y, tmp: (in_dask(X, 50), in_zarr(y, 64, tmp / "y")),
    "dask, chunks of unknown size": lambda X, y, tmp: (
        in_dask(X, 50)[da.from_array(np.ones(N, bool), 50)],
        in_dask(y, 50)[da.from_array(np.ones(N, bool), 50)],
    ),
}


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def form(request):
    return request.param


@pytest.fixture(scope="module", params=[255, 16], ids=["exact bins", "quantiles"])
def from_numpy(request, blobs):
    """A model of the arrays as they are."""
    return GDMCBoostClassifier(calibration=None, n_estimators=3, max_bins=request.param).fit(*blobs)


def test_one_model(form, from_numpy, blobs, assert_same_model, tmp_path):
    assert_same_model(clone(from_numpy).fit(*form(*blobs, tmp_path)), from_numpy)


def profile_of(X, y, max_bins, weights=None):
    runtime = LocalRuntime(2)
    found = dataset_of(X, y, weights).profile(max_bins, 0, runtime)
    runtime.close()
    return found


def assert_same_edges(a, b):
    assert len(a.edges) == len(b.edges)
    for ours, theirs in zip(a.edges, b.edges, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_sample_for_quantiles_is_of_the_same_rows(form, blobs, tmp_path, monkeypatch):
    """Where only some rows are sampled, the rows' numbers decide which, not the chunks."""
    X, y = blobs
    full = profile_of(X, y, 16)
    monkeypatch.setattr(scan, "SAMPLE_ROWS", 100)
    expected = profile_of(X, y, 16)
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(full.edges, expected.edges, strict=True))
    x, labels = form(X, y, tmp_path)
    if isinstance(x, list | pd.DataFrame):
        x = np.asarray(x)
    assert_same_edges(profile_of(x, labels, 16), expected)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_edges_do_not_depend_on_the_type_of_the_numbers(weighted):
    """Whole numbers are counted, others sorted: both give the same edges."""
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(scale=50, size=(3000, 11)), 0, 255).astype(np.uint8)
    X[:, 3] //= 16  # few values
    y, w = rng.integers(0, 2, 3000), rng.choice([0.0, 0.1, 0.3, 2.7], 3000) if weighted else None
    expected = profile_of(X + 0.5, y, 64, w).edges
    assert [len(edges) < 20 for edges in expected] == [d == 3 for d in range(11)]
    for dtype in ("u1", "i2", "u2", "i4", "i8", ">u2", "f2", "f4", ">f4", "f8"):
        for given in (X.astype(dtype), np.asfortranarray(X.astype(dtype))):
            for found, edges in zip(profile_of(given, y, 64, w).edges, expected, strict=True):
                np.testing.assert_array_equal(found, edges - 0.5)


def test_weighted_rows_that_are_not_in_the_sample_give_no_edges(monkeypatch):
    monkeypatch.setattr(scan, "SAMPLE_ROWS", 1)
    w = np.zeros(100_000)
    w[:70] = 1.0
    X = np.random.default_rng(0).normal(size=(len(w), 1))
    assert [len(edges) for edges in profile_of(X, np.arange(len(w)) % 2, 16, w).edges] == [0]


@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "f4", "f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_in_memory_are_not_copied(dtype, order):
    X = np.asarray(np.arange(12).reshape(4, 3), dtype, order)
    data = training_data(GDMCBoostClassifier(), Given(X, [0, 1, 0, 1]))
    assert np.shares_memory(data.x.array, X)


def test_exact_edges_lie_midway_between_distinct_values():
    X = np.array([[3.0, -0.0], [1.0, 0.0], [np.nan, 5e-324], [1.0, np.nan]])
    edges = profile_of(X, [0, 1, 0, 1], 255).edges
    np.testing.assert_array_equal(edges[0], [2.0])
    np.testing.assert_array_equal(edges[1], [0.0])


@pytest.mark.parametrize("n_values", [254, 255, 256])
def test_edges_are_exact_up_to_max_bins_distinct_values(n_values):
    counts = 1 + np.arange(n_values) % 7  # quantiles of such values are others
    x = np.random.default_rng(0).permutation(np.repeat(np.arange(n_values, dtype=float), counts))
    (edges,) = profile_of(x[:, None], np.arange(len(x)) % 2, 255).edges
    if n_values <= 255:
        np.testing.assert_array_equal(edges, np.arange(n_values - 1) + 0.5)
    else:
        assert len(edges) <= 254


@pytest.mark.parametrize("chunks", [1, 7, 60])
def test_exact_edges_do_not_depend_on_which_chunk_holds_a_value(chunks):
    """Each chunk has few distinct values, all together have more than max_bins: or just as many."""
    for n_values, exact in ((60, True), (61, False)):
        x = np.repeat(np.arange(n_values, dtype=float), 2)
        y = np.arange(len(x)) % 2
        expected = profile_of(x[:, None], y, 60)
        assert (len(expected.edges[0]) == n_values - 1) == exact
        assert_same_edges(profile_of(in_dask(x[:, None], chunks), in_dask(y, 11), 60), expected)


def test_a_feature_without_a_value_has_no_edges():
    X = np.column_stack([np.full(6, np.nan), np.full(6, 2.5), np.arange(6.0)])
    profile = profile_of(X, [0, 1] * 3, 255)
    assert [len(e) for e in profile.edges] == [0, 0, 5]
    model = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(X, [0, 1] * 3)
    assert (model.learned_.ensemble.arrays()["feature"] == 2).all()


# Labels.

LABELS = {
    "text": np.array(["setosa", "a", "zz"]),
    "objects": np.array(["setosa", "a", "zz"], object),
    "negative": np.array([-7, 3, 0]),
    "large": np.array([2**62, -(2**62), 5]),
    "unsigned": np.array([255, 0, 7], np.uint8),
    "whole floats": np.array([2.0, -1.0, 0.0]),
    "flags": np.array([True, False, True]),
    "dates": np.array(["2020-01-02", "2019-05-05", "2021-01-01"], "datetime64[D]"),
}


@pytest.mark.parametrize("labels", [LABELS["text"], LABELS["objects"], LABELS["whole floats"]])
def test_labels_of_any_type_in_dask(labels, blobs, assert_same_model):
    X, y = blobs
    expected = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(X, labels[y])
    assert_same_model(
        GDMCBoostClassifier(calibration=None, n_estimators=2).fit(in_dask(X, 50), in_dask(labels[y], 64)),
        expected,
    )


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("dtype", ["U6", "T"], ids=["fixed length", "variable length"])
def test_text_labels_in_zarr(dtype, blobs, assert_same_model, tmp_path):
    X, y = blobs
    labels = LABELS["text"][y]
    expected = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(X, labels)
    stored = in_zarr(labels.astype(np.dtypes.StringDType() if dtype == "T" else dtype), 50, tmp_path / "y")
    model = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(in_zarr(X, 50, tmp_path / "x"), stored)
    assert_same_model(model, expected)


@pytest.mark.parametrize("chunks", [7, 40, 80])
def test_sorted_labels(chunks, blobs, assert_same_model, tmp_path):
    """Most chunks hold one class only; each class is absent from most chunks."""
    X, y = blobs
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    expected = GDMCBoostClassifier(calibration=None, n_estimators=3).fit(X, y)
    model = GDMCBoostClassifier(calibration=None, n_estimators=3).fit(
        in_zarr(X, chunks, tmp_path / "x"), in_zarr(y, chunks, tmp_path / "y", fill_value=9)
    )
    assert_same_model(model, expected)


def test_a_class_of_one_row(blobs):
    X, y = np.array(blobs[0]), np.array(blobs[1])
    y[137] = 77
    X[137] = 50
    model = GDMCBoostClassifier(calibration=None, n_estimators=5).fit(in_dask(X, 20), in_dask(y, 20))
    assert model.classes_.tolist() == [0, 1, 2, 77]
    assert model.predict(X[137:138]).tolist() == [77]


def test_a_column_of_labels(blobs, assert_same_model, tmp_path):
    X, y = blobs
    model = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(
        in_zarr(X, 50, tmp_path / "x"), in_zarr(y[:, None], 50, tmp_path / "y")
    )
    assert_same_model(model, GDMCBoostClassifier(calibration=None, n_estimators=2).fit(X, y))


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "bool"])
def test_features_of_other_types(dtype, assert_same_model, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2 if dtype == "bool" else 50, (100, 3)).astype(dtype), rng.integers(0, 3, 100)
    expected = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(X.astype(np.float64), y)
    for data in (X, in_zarr(X, 30, tmp_path / "x", fill_value=1), in_dask(X, 30)):
        model = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(data, y)
        assert_same_model(model, expected)
        np.testing.assert_array_equal(np.asarray(model.predict(data)), expected.predict(X.astype(np.float64)))


# Prediction.


def test_prediction_is_lazy_and_the_same(form, blobs, tmp_path):
    X, y = blobs
    model = GDMCBoostClassifier(calibration=None, n_estimators=4).fit(X, y)
    data = form(X, y, tmp_path)[0]
    lazy = hasattr(data, "chunks") or isinstance(data, str)
    if isinstance(data, pd.DataFrame):
        data = data.to_numpy()
    for method in ("predict", "predict_proba", "scores", "decision_function"):
        found, expected = getattr(model, method)(data), getattr(model, method)(X)
        assert isinstance(found, da.Array) == lazy
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_masked_values_are_missing(blobs):
    X, y = blobs
    masked = np.ma.masked_array(np.nan_to_num(X), (X > 1) | np.isnan(X))
    missing = np.where(X > 1, np.nan, X)
    model = GDMCBoostClassifier(n_estimators=3, calibration=None).fit(missing, y)
    for kind in (np.asanyarray, lambda rows: da.from_array(rows, chunks=(50, -1), asarray=False)):
        of_masked = GDMCBoostClassifier(n_estimators=3, calibration=None).fit(kind(masked), y)
        assert of_masked.digest() == model.digest()
        np.testing.assert_array_equal(np.asarray(of_masked.scores(kind(masked))), model.scores(missing))


@pytest.mark.parametrize("dtype", ["i8", "f8", "U3", "M8[D]"])
def test_masked_labels_are_missing(dtype, blobs):
    labels = np.ma.masked_array(blobs[1].astype(dtype), np.arange(N) == 7)
    with pytest.raises(DataError, match=r"y has a missing label \(\w+\) in row 7"):
        GDMCBoostClassifier(n_estimators=3).fit(blobs[0], labels)


def test_masked_weights_are_missing(blobs):
    weights = np.ma.masked_array(np.ones(N), np.arange(N) == 7)
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        GDMCBoostClassifier(n_estimators=3).fit(*blobs, weights)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_kernels_see_one_layout(dtype):
    """They are compiled for read-only rows alone. The rows that are passed remain as they are."""
    X = np.ones((4, 6), dtype)
    for given in (X, X[:, ::2], np.asfortranarray(X)):
        rows = checks.as_numbers(given, "X")
        np.testing.assert_array_equal(rows, given)
        assert rows.flags.c_contiguous
        assert not rows.flags.writeable
        assert given.flags.writeable
