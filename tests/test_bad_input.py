"""Bad input: each fault has an error of its own that gives the value, the limit, the place and the remedy."""

import re
import warnings

import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.exceptions import NotFittedError

from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.data import scan
from distboost.errors import DataError, DistboostError, LimitError, MissingChunkError, StoreError

N = 240
CHUNK = 50


@pytest.fixture(params=[GDMCBoostClassifier, GAMBLEClassifier], ids=["gd-mcboost", "gamble"])
def model(request):
    return request.param(n_estimators=2)


@pytest.fixture
def data(blobs):
    """(X, y) to be spoilt."""
    return np.array(blobs[0]), np.array(blobs[1])


def to_numpy(array, path):
    return array


def to_zarr(array, path):
    out = zarr.create_array(
        str(path),
        shape=array.shape,
        chunks=(CHUNK, *array.shape[1:]),
        dtype=array.dtype,
        config={"write_empty_chunks": True},
    )
    out[...] = array
    return out


def to_dask(array, path):
    return da.from_array(array, chunks=(CHUNK, *array.shape[1:]))


FORMS = {"numpy": to_numpy, "zarr": to_zarr, "dask": to_dask}


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def stored(request, tmp_path):
    """stored(array, name): the array as NumPy, zarr or dask."""
    return lambda array, name: request.param(array, tmp_path / name)


# Shapes.


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


# Labels.


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
    with pytest.raises(DataError, match=r"Unknown label type: continuous.*divide it into classes first"):
        model.fit(stored(X, "x"), stored(y + 0.25, "y"))


def test_labels_of_types_that_do_not_compare(model, data):
    y = data[1].astype(object)
    y[5] = "five"
    with pytest.raises(DataError, match=r"y mixes labels of different types.*Use one type"):
        model.fit(data[0], y)


def test_one_class_only(model, data, stored):
    X, y = data
    with pytest.raises(DataError, match=r"y.* has only one class \(7\) in 240 rows.*Give at least 2 classes"):
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


# Values.


@pytest.mark.parametrize(("value", "row"), [(np.inf, 137), (-np.inf, 0)])
def test_infinite_value(model, data, stored, value, row):
    X, y = data
    X[row, 2] = X[201, 0] = value
    with pytest.raises(
        DataError, match=rf"X.* infinite value .*row {row}, column 2: {value}.*finite values, or NaN"
    ):
        model.fit(stored(X, "x"), stored(y, "y"))


def test_complex_values(model, data, stored):
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.fit(stored(data[0] + 1j, "x"), stored(data[1], "y"))


def test_text_values(model, data):
    X = data[0].astype(str)
    X[60, 1] = "red"
    with pytest.raises(ValueError, match=r"could not convert string to float.*red"):
        model.fit(X, data[1])


def test_text_values_in_dask(model, data):
    X = data[0].astype(str)
    X[60, 1] = "red"
    with pytest.raises(DataError, match=r"X of type <U\d+ cannot be read as numbers: .*red.*Encode it first"):
        model.fit(to_dask(X, None), data[1])


# Weights.


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_weight(model, data, stored, value):
    X, y = data
    w = np.ones(N)
    w[137] = value
    with pytest.raises(
        ValueError,
        match=rf"sample_weight.* is {value} in row 137\. Give finite weights of at least 0|[Ss]ample.?weight.*(NaN|infinity)",
    ):
        model.fit(stored(X, "x"), stored(y, "y"), sample_weight=stored(w, "w"))


def test_all_weights_zero(model, data, stored):
    X, y = data
    with pytest.raises(
        ValueError,
        match=r"every row of sample_weight.* has weight 0\. Give some rows|[Ss]ample.?weight.*zero",
    ):
        model.fit(stored(X, "x"), stored(y, "y"), sample_weight=stored(np.zeros(N), "w"))


def test_class_weight_of_an_unknown_class(model, data):
    with pytest.raises(
        DataError, match=r"class_weight names 'b', which is not among the classes \[0, 1, 2\]"
    ):
        model.set_params(class_weight={0: 1, "b": 2}).fit(*data)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_bad_class_weight(model, data, weight):
    with pytest.raises(DataError, match=rf"class_weight is .*{weight}.*Give finite weights of at least 0"):
        model.set_params(class_weight={1: weight}).fit(*data)


def test_class_weights_all_zero(model, data):
    with pytest.raises(
        DataError, match=r"every row has weight 0 after class_weight.*Give some class a weight above 0"
    ):
        model.set_params(class_weight={0: 0, 1: 0, 2: 0}).fit(*data)


# The user's zarr store.


@pytest.fixture
def holed(data, tmp_path):
    """(X, y) in zarr with two chunks of X gone."""
    x, y = to_zarr(data[0], tmp_path / "x"), to_zarr(data[1], tmp_path / "y")
    for key in ("1/0", "3/0"):
        (tmp_path / "x" / "c" / key).unlink()
    return x, y


HOLES = r"2 chunks of X \(.*x\) are not in the store and read as the fill value 0\.0: c/1/0, c/3/0\."


def test_missing_chunks_are_warned_of(model, holed):
    with pytest.warns(UserWarning, match=rf"{HOLES}.*If these are not, write them again"):
        model.fit(*holed)


def test_missing_chunks_are_refused(model, holed):
    with pytest.raises(
        MissingChunkError, match=rf"{HOLES} Write them, or allow this with missing_chunks='warn'"
    ):
        model.set_params(missing_chunks="error").fit(*holed)
    assert not hasattr(model, "classes_")


def test_missing_chunks_are_ignored_in_silence(model, holed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(missing_chunks="ignore").fit(*holed)


def test_missing_chunks_read_by_path(model, holed, tmp_path):
    with pytest.raises(MissingChunkError, match=HOLES):
        model.set_params(missing_chunks="error").fit(str(tmp_path / "x"), tmp_path / "y")


@pytest.mark.parametrize(("name", "argument"), [("y", "y"), ("w", "sample_weight")])
def test_missing_chunks_of_labels_and_weights(model, data, name, argument, tmp_path):
    X, y = data
    arrays = {"y": to_zarr(y, tmp_path / "y"), "w": to_zarr(np.ones(N), tmp_path / "w")}
    (tmp_path / name / "c" / "2").unlink()
    with pytest.raises(
        MissingChunkError, match=rf"1 chunks of {argument} \(.*\) are not in the store.*: c/2\."
    ):
        model.set_params(missing_chunks="error").fit(X, arrays["y"], sample_weight=arrays["w"])


def test_missing_chunks_of_the_eval_set(model, data, holed):
    with pytest.raises(MissingChunkError, match=r"2 chunks of eval_set X \(.*: c/1/0, c/3/0\."):
        model.set_params(missing_chunks="error").fit(*data, eval_set=holed)


def test_many_missing_chunks_are_counted_and_some_named(model, data, tmp_path):
    x = zarr.create_array(str(tmp_path / "x"), shape=(N, 4), chunks=(10, 4), dtype="f8", fill_value=-1)
    x[:100] = data[0][:100]
    with pytest.raises(
        MissingChunkError,
        match=r"14 chunks .* fill value -1\.0: c/10/0, c/11/0, c/12/0, c/13/0, c/14/0, \.\.\.",
    ):
        model.set_params(missing_chunks="error").fit(x, data[1])


@pytest.mark.parametrize(
    "layout",
    [
        {"chunks": (60, 3), "zarr_format": 2},
        {"chunks": (60, 3)},
        {"chunks": (20, 2), "shards": (60, 4)},
        {"chunks": (60, 4), "chunk_key_encoding": {"name": "v2", "separator": "."}},
    ],
    ids=["format 2", "two chunks of columns", "shards", "other keys"],
)
@pytest.mark.parametrize("nested", [False, True], ids=["array", "in a group"])
def test_no_chunk_is_missing_from_a_whole_array(model, data, layout, nested, tmp_path):
    path = {"store": str(tmp_path / "s")}
    if nested:
        zarr.create_group(path["store"])
        path["name"] = "deep/x"
    x = zarr.create_array(**path, shape=(N, 4), dtype="f8", **layout)
    x[...] = data[0]
    model.set_params(missing_chunks="error").fit(x, data[1])
    x[60:120] = x.fill_value  # zarr leaves chunks of nothing but the fill value out
    with pytest.raises(MissingChunkError, match=r"chunks of X \("):
        model.fit(x, data[1])


@pytest.mark.parametrize(
    "damage",
    [lambda c: c[:10], lambda c: b"", lambda c: b"\xff" * len(c)],
    ids=["truncated", "empty", "overwritten"],
)
def test_unreadable_chunk(model, data, damage, tmp_path):
    x, y = to_zarr(data[0], tmp_path / "x"), to_zarr(data[1], tmp_path / "y")
    chunk = tmp_path / "x" / "c" / "2" / "0"
    chunk.write_bytes(damage(chunk.read_bytes()))
    with pytest.raises(
        StoreError, match=r"rows \d+ to \d+ of X \(.*x\) cannot be read: .*Write the damaged chunk again"
    ) as error:
        model.fit(x, y)
    first, last = map(int, re.search(r"rows (\d+) to (\d+)", str(error.value)).groups())
    assert first <= 100
    assert last >= 149


def test_unreadable_chunk_of_labels(model, data, tmp_path):
    y = to_zarr(data[1], tmp_path / "y")
    chunk = tmp_path / "y" / "c" / "2"
    chunk.write_bytes(chunk.read_bytes()[:5])
    with pytest.raises(StoreError, match=r"rows \d+ to \d+ of y \(.*y\) cannot be read"):
        model.fit(data[0], y)


def test_a_path_where_nothing_is(model, data, tmp_path):
    with pytest.raises(
        DataError, match=r"X: there is no zarr array at '.*nowhere'.*Give the path or URL of an array"
    ):
        model.fit(str(tmp_path / "nowhere"), data[1])
    with pytest.raises(DataError, match=r"y: there is no zarr array at"):
        model.fit(data[0], str(tmp_path / "nowhere"))


def test_the_path_of_a_group(model, data, tmp_path):
    zarr.create_group(str(tmp_path / "group"))
    with pytest.raises(DataError, match=r"X: '.*group' is a zarr group without arrays"):
        model.fit(str(tmp_path / "group"), data[1])


# The evaluation set.


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
    with pytest.raises(DataError, match=r"eval_set 'eval_0' has the type ndarray\. Give \(X, y\)"):
        model.fit(*data, eval_set=list(data))


def test_early_stopping_without_an_eval_set(model, data):
    with pytest.raises(
        DataError, match=r"early_stopping_rounds=3 needs rows.*eval_set=\(X, y\).*validation_fraction=0\.1"
    ):
        model.set_params(early_stopping_rounds=3).fit(*data)


def test_an_eval_set_and_a_validation_fraction(model, data):
    with pytest.raises(DataError, match=r"validation_fraction=0\.2 would leave out .* there is an eval_set"):
        model.set_params(validation_fraction=0.2).fit(*data, eval_set=data)


# Parameters.


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_estimators": 0},
        {"n_estimators": 2.5},
        {"learning_rate": 0.0},
        {"learning_rate": -0.1},
        {"learning_rate": np.nan},
        {"learning_rate": np.inf},
        {"max_bins": 1},
        {"max_bins": 256},
        {"validation_fraction": 0.0},
        {"validation_fraction": 1.0},
        {"validation_fraction": "0.1"},
        {"min_samples_leaf": 0},
        {"min_weight_fraction_leaf": 0.51},
        {"subsample": 0.0},
        {"subsample": 1.5},
        {"max_features": 0},
        {"max_features": 1.5},
        {"max_leaf_nodes": 1},
        {"max_depth": 0},
        {"class_weight": "heavy"},
        {"early_stopping_rounds": 0},
        {"score_dtype": "float16"},
        {"missing_chunks": "maybe"},
        {"memory_limit": 0},
        {"n_jobs": 0},
        {"n_jobs": -2},
        {"random_state": "seed"},
    ],
    ids=str,
)
def test_bad_parameter(model, data, parameters):
    ((name, value),) = parameters.items()
    with pytest.raises(
        ValueError, match=rf"The '{name}' parameter of \w+ must be .*Got {re.escape(repr(value))}"
    ):
        model.set_params(**parameters).fit(*data)


def test_a_memory_limit_that_is_no_number_of_bytes(model, data):
    with pytest.raises(DistboostError, match=r"memory_limit.*'plenty'"):
        model.set_params(memory_limit="plenty").fit(*data)


def test_unknown_leaf(data):
    with pytest.raises(
        ValueError, match=r"The 'leaf' parameter of GDMCBoostClassifier must be .*Got 'stump'"
    ):
        GDMCBoostClassifier(leaf="stump").fit(*data)


@pytest.mark.parametrize("limit", [300_000_000, "300MB"], ids=["number", "text"])
def test_memory_limit_too_small(model, data, stored, limit):
    """Not even enough for the libraries."""
    with pytest.raises(
        LimitError,
        match=r"memory_limit is 300 MB per process, but 240 rows of 4 features and .*classes take \d+ MB.*Raise the limit",
    ):
        model.set_params(memory_limit=limit).fit(stored(data[0], "x"), stored(data[1], "y"))


def test_memory_limit_is_checked_before_a_row_is_read(model, data):
    def read(block):
        raise AssertionError("a row was read")

    X = da.from_array(data[0], chunks=(CHUNK, 4)).map_blocks(read, meta=np.empty((0, 4)))
    with pytest.raises(LimitError, match=r"memory_limit is 0.001 MB per process, but 240 rows"):
        model.set_params(memory_limit=1000).fit(X, data[1])


def test_memory_limit_large_enough(model, data):
    assert model.set_params(memory_limit="1GB").fit(*data).n_iter_ == 2


def test_no_labels(model, data):
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None"):
        model.fit(data[0])


# A model that is not fitted, or fitted to other data.


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "scores", "decision_function", "staged_predict"]
)
def test_asking_before_fitting(model, data, method):
    with pytest.raises(NotFittedError):
        list(getattr(model, method)(data[0]))


def test_saving_before_fitting(model, tmp_path):
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_resuming_before_fitting(model, data):
    with pytest.raises(
        (NotFittedError, DistboostError), match=r"resume=True .*not fitted|resume=True.*checkpoint"
    ):
        model.fit(*data, resume=True)


def test_resuming_on_other_classes(model, data):
    X, y = data
    model.fit(X, y)
    with pytest.raises(DataError, match=r"trained on 4 features .*classes \[0, 1, 2\].*classes \[0, 1, 5\]"):
        model.fit(X, np.where(y == 2, 5, y), resume=True)
    assert model.classes_.tolist() == [0, 1, 2]


def test_resuming_on_other_features(model, data):
    X, y = data
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"4 features|3 features"):
        model.fit(X[:, :3], y, resume=True)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "scores", "decision_function"])
def test_predicting_with_other_features(model, data, stored, method):
    X, y = data
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features.*, but .* expecting 4 features"):
        getattr(model, method)(stored(X[:, :3], "x"))


def test_predicting_with_one_dimension(model, data, stored):
    X, y = data
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"1D array|shape is \(240,\)"):
        model.predict(stored(X[:, 0], "x"))


def test_predicting_from_infinite_values(model, data, stored):
    X, y = data
    model.fit(X, y)
    X[137, 2] = np.inf
    with pytest.raises(ValueError, match=r"X.* contains infinity|infinite"):
        np.asarray(model.predict(stored(X, "x")))


def test_predicting_with_fewer_staged_features(model, data):
    X, y = data
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features.*, but .* expecting 4 features"):
        next(model.staged_scores(X[:, :3]))


def test_a_failed_fit_leaves_the_model_as_it_was(model, data):
    X, y = data
    before = model.fit(X, y).scores(X)
    with pytest.raises(DataError):
        model.fit(X, np.zeros(N, int))
    np.testing.assert_array_equal(model.scores(X), before)


def test_errors_travel():
    """An error raised on a worker process arrives as itself."""
    import pickle

    for cls in (DataError, LimitError, MissingChunkError, StoreError):
        error = pickle.loads(pickle.dumps(cls("what and where")))
        assert type(error) is cls
        assert isinstance(error, DistboostError)
        assert str(error) == "what and where"
