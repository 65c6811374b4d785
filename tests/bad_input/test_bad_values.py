"""Values and weights that are no finite numbers."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import xarray as xr

import distboost
from distboost import GDMCBoostClassifier
from distboost.active import QueryByCommittee
from distboost.data.checks import InfiniteValue, naming
from distboost.errors import DataError
from tests.bad_input.forms import N, to_dask


@pytest.mark.parametrize(("value", "row"), [(np.inf, 137), (-np.inf, 0)])
def test_infinite_value(model, data, stored, value, row):
    X, y = data
    X[row, 2] = X[201, 0] = value
    with pytest.raises(
        DataError, match=rf"X.* infinite value .*row {row}, column 2: {value}.*finite values, or NaN"
    ):
        model.fit(stored(X, "x"), stored(y, "y"))


NAMES = ["length", "width", "depth", "mass"]


def pandas_frame(X):
    return pd.DataFrame(X, columns=NAMES)


@pytest.mark.parametrize(
    "kind",
    [
        pandas_frame,
        lambda X: pl.DataFrame(X, NAMES),
        lambda X: dd.from_pandas(pandas_frame(X), npartitions=2),
        lambda X: xr.DataArray(X, coords={"feature": NAMES}, dims=("row", "feature")),
    ],
    ids=["pandas", "polars", "dask", "xarray"],
)
def test_an_infinite_value_of_a_named_column(model, data, kind, tmp_path):
    X, y = data
    fitted = sklearn.clone(model).set_params(calibration=None).fit(kind(X), y)
    X[137, 2] = np.inf
    named = kind(X)
    for use in (
        lambda: model.fit(named, y),
        lambda: fitted.fit(kind(data[0][:100]), y[:100], eval_set=(named, y)),
        lambda: np.asarray(fitted.predict(named)),
        lambda: list(map(np.asarray, fitted.staged_scores(named))),
        lambda: np.asarray(distboost.shap_values(fitted, named)),
        lambda: distboost.evaluate(fitted, named, y),
        lambda: fitted.calibrate(named, y),
        lambda: distboost.cross_validate(model, named, y, folds=2),
        lambda: distboost.bin(named, y, tmp_path / "binned"),
        lambda: distboost.export.codes(fitted, named),
        lambda: QueryByCommittee(model, named).teach(range(40), y[:40]).query(),
    ):
        with pytest.raises(
            DataError, match=r"infinite value \(inf\) in row \d+, column 2 \('depth'\): inf\. Pass"
        ):
            use()


def test_an_infinite_value_of_a_named_column_on_a_worker():
    with pytest.raises(DataError) as found, naming(np.array(NAMES, object)):
        raise InfiniteValue("X", 137, 2, np.inf).error()
    returned = pickle.loads(pickle.dumps(found.value))
    assert str(returned) == str(found.value)
    assert "column 2 ('depth')" in str(returned)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame], ids=["array", "frame"])
def test_infinite_value_in_prediction(model, data, kind):
    X, y = data
    model.set_params(calibration=None).fit(kind(X), y)
    X[137, 2] = -np.inf
    for predicted in (model.predict, lambda rows: list(model.staged_scores(rows))):
        with pytest.raises(
            DataError, match=r"X contains an infinite value \(inf\) in row 137, column 2: -inf"
        ):
            predicted(kind(X))


def test_infinite_value_in_a_block_that_is_predicted(model, data):
    X, y = data
    model.set_params(calibration=None).fit(X, y)
    X[137, 2] = np.inf
    with pytest.raises(DataError, match=r"a block of X contains an infinite value.*row 37, column 2"):
        model.predict(da.from_array(X, chunks=(50, -1))).compute()


def test_complex_values(model, data, stored):
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.fit(stored(data[0] + 1j, "x"), stored(data[1], "y"))


def test_text_values(model, data):
    X = data[0].astype(str)
    X[60, 1] = "red"
    with pytest.raises(DataError, match=r"column 1 of X has the text 'red' in row 60.*categorical_features"):
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
        match=rf"sample_weight.* is {value} in row 137\. Pass finite weights of at least 0|[Ss]ample.?weight.*(NaN|infinity)",
    ):
        model.fit(stored(X, "x"), stored(y, "y"), sample_weight=stored(w, "w"))


def test_weights_that_are_texts(model, data):
    weights = np.full(N, "heavy")
    message = (
        r"sample_weight has values that are no numbers \(could not convert string to float: .*heavy.*\) in the rows \d+ to \d+\. "
        "Pass finite weights of at least 0"
    )
    model.set_params(calibration=None)
    with pytest.raises(DataError, match=message):
        model.fit(*data, sample_weight=to_dask(weights, None))
    with pytest.raises(DataError, match=message):
        distboost.evaluate(model.fit(*data), *data, sample_weight=weights)


DATES = np.full(N, "2026-01-02", "M8[s]")


@pytest.mark.parametrize(
    ("weights", "kind"),
    [
        (DATES, "dates or durations"),
        (DATES - np.datetime64("2026-01-01"), "dates or durations"),
        (DATES.tolist(), "dates or durations"),
        (pd.Series(DATES).dt.tz_localize("UTC"), "dates or durations"),
        (pl.Series(DATES.astype("M8[us]")), "dates or durations"),
        (pd.Series(pd.period_range("2026", periods=N, freq="D")), ".*not 'Period'"),
        (np.ones(N, complex), "Complex data"),
    ],
    ids=["dates", "durations", "objects", "pandas", "polars", "periods", "complex"],
)
def test_weights_of_another_kind_are_not_converted(model, data, weights, kind):
    message = f"sample_weight.? (has )?{kind}"
    for call in (
        lambda: model.fit(*data, sample_weight=weights),
        lambda: model.fit(*data, eval_set=(*data, weights)),
        lambda: model.fit(*data, sample_weight=to_dask(np.asarray(weights), None)),
        lambda: distboost.evaluate(
            model.set_params(calibration=None).fit(*data), *data, sample_weight=weights
        ),
    ):
        with pytest.raises(DataError, match=message):
            call()


def test_all_weights_zero(model, data, stored):
    X, y = data
    with pytest.raises(
        ValueError,
        match=r"every row of sample_weight.* has weight 0\. Set a weight above 0|[Ss]ample.?weight.*zero",
    ):
        model.fit(stored(X, "x"), stored(y, "y"), sample_weight=stored(np.zeros(N), "w"))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(N), r"sample_weight.* is -1\.0 in row 0\. Pass finite weights of at least 0"),
        (np.full(N, "heavy"), "sample_weight.* has values that are no numbers"),
        (np.zeros(N), "every row has weight 0"),
        (np.ones(7), r"240 rows but sample_weight.* has 7"),
    ],
    ids=["negative", "text", "zero", "short"],
)
def test_bad_weights_of_a_score(model, data, stored, weights, message):
    X, y = data
    fitted = model.set_params(calibration=None).fit(X, y)
    if weights.dtype.kind == "f" and len(weights) == N:
        weights = stored(weights, "w")
    with pytest.raises(DataError, match=message):
        fitted.score(X, y, sample_weight=weights)


def test_class_weights_that_leave_one_class(model, data):
    X, y = data
    model.set_params(class_weight={0: 0, 1: 0}, calibration=None)
    message = r"class_weight is \{0: 0, 1: 0\}, which leaves only one class \(2\) of 3.*at least 2 classes"
    with pytest.raises(DataError, match=message):
        model.fit(X, y)
    with pytest.raises(DataError, match=message):
        distboost.cross_validate(model, X, y, folds=2)
    assert set(model.set_params(class_weight={0: 0}).fit(X, y).predict(X)) == {1, 2}


def test_class_weight_of_an_unknown_class(model, data):
    with pytest.raises(
        DataError, match=r"class_weight names 'b', which is not among the classes \[0, 1, 2\]"
    ):
        model.set_params(class_weight={0: 1, "b": 2}).fit(*data)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_bad_class_weight(model, data, weight):
    with pytest.raises(DataError, match=rf"class_weight is .*{weight}.*Pass finite weights of at least 0"):
        model.set_params(class_weight={1: weight}).fit(*data)


def test_class_weights_all_zero(model, data):
    with pytest.raises(
        DataError, match=r"every row has weight 0 after class_weight.*Set a weight above 0 for some class"
    ):
        model.set_params(class_weight={0: 0, 1: 0, 2: 0}).fit(*data)


COMPLEX, BEYOND = np.arange(N) + 1j, np.arange(N) * np.longdouble("1e400") + np.longdouble("1e400")


@pytest.mark.skipif(np.finfo(np.longdouble).max <= np.finfo(float).max, reason="longdouble is double here")
@pytest.mark.parametrize(
    ("X", "what"),
    [
        (pd.DataFrame({"a": COMPLEX}), "'a' of X: Complex"),
        (pd.DataFrame({"a": COMPLEX.astype(object)}), "'a' of X: Complex"),
        (np.array([[np.complex128(1j)], *[[1.0]] * (N - 1)], object), "X: Complex"),
        (pd.DataFrame({"a": BEYOND}), "'a' of X has the number .*1e.400"),
        (BEYOND[:, np.newaxis], "X has the number .*1e.400"),
        (1 / BEYOND[:, np.newaxis], "X has the number .*1e.40"),
        (pl.DataFrame({"a": pl.Series([2**100] * N, dtype=pl.Int128)}), f"'a' of X has the number {2**100}"),
        (np.array([[2**100]] * N, object), f"X has the number {2**100}"),
        (np.zeros(N, [("a", float), ("b", int)]), "X has records"),
        ([{"a": 1.0}] * N, "X has records"),
        (to_dask(np.zeros((N, 1), [("a", float)]), None), "X has records"),
    ],
)
def test_values_that_float64_cannot_hold(X, what):
    with pytest.raises(DataError, match=what):
        GDMCBoostClassifier(n_estimators=1).fit(X, np.arange(N) % 2)


def test_integers_of_128_bits_that_64_hold():
    values = list(range(N))
    model = GDMCBoostClassifier(n_estimators=1, calibration=None)
    wide = pl.DataFrame({"a": pl.Series([*values[:-1], None], dtype=pl.Int128)})
    expected = model.fit(pl.DataFrame({"a": [*values[:-1], None]}), np.arange(N) % 2).digest()
    assert model.fit(wide, np.arange(N) % 2).digest() == expected


@pytest.mark.parametrize("weights", [np.zeros(N, [("a", float)]), [{"a": 1}] * N, BEYOND])
def test_weights_that_float64_cannot_hold(weights):
    with pytest.raises(DataError, match=r"sample_weight has (records|the number)"):
        GDMCBoostClassifier(n_estimators=1).fit(np.zeros((N, 1)), np.arange(N) % 2, sample_weight=weights)
