"""Columns of labels in data frames of every library: matched by label, from the training to the prediction."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zarr
from click.testing import CliRunner

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.active import QueryByCommittee, resume
from distboost.cli import main
from distboost.errors import DataError

N = 600
COLOURS = ["red", "green", "blue", "teal", "pink", "gold"]


@pytest.fixture(scope="module")
def columns():
    """Colours, of which some are missing, in no order; sizes; a number; and the labels."""
    rng = np.random.default_rng(0)
    colour, size = rng.integers(0, 6, N), rng.integers(0, 4, N)
    y = (np.array([2, 0, 1, 1, 2, 0])[colour] + size // 2) % 3
    named = [None if rng.random() < 0.05 else COLOURS[c] for c in colour]
    return {"colour": named, "width": rng.normal(size=N), "size": size * 10}, y


def of_pandas(columns, order=COLOURS):
    frame = pd.DataFrame(columns)
    return frame.astype({"colour": pd.CategoricalDtype(order), "size": "category"})


def of_polars(columns, order=COLOURS):
    return pl.DataFrame(columns).with_columns(
        pl.col("colour").cast(pl.Enum(order)), pl.col("size").cast(pl.String).cast(pl.Categorical)
    )


def of_arrow(columns, order=COLOURS):
    """In chunks with dictionaries of their own."""
    half = N // 2
    colours = [
        pa.array(part).dictionary_encode() for part in (columns["colour"][:half], columns["colour"][half:])
    ]
    sizes = pa.chunked_array([pa.array(columns["size"]).dictionary_encode()])
    return pa.table({"colour": pa.chunked_array(colours), "width": columns["width"], "size": sizes})


def of_dask(columns, order=COLOURS):
    return dd.from_pandas(of_pandas(columns, order), npartitions=3)


FRAMES = {"pandas": of_pandas, "polars": of_polars, "pyarrow": of_arrow, "dask": of_dask}


def model_of(**parameters):
    return GDMCBoostClassifier(n_estimators=5, max_depth=3, calibration=None, **parameters)


def codes_of(columns):
    """The same as numbers, which the sorted labels have."""
    place = {label: code for code, label in enumerate(sorted(COLOURS))}
    colour = [place.get(label, np.nan) for label in columns["colour"]]
    return np.column_stack([colour, columns["width"], columns["size"]])


@pytest.mark.parametrize("library", FRAMES)
def test_frames_of_every_library(library, columns, tmp_path):
    table, y = columns
    model = model_of().fit(FRAMES[library](table), y)
    X = codes_of(table)
    expected = model_of(categorical_features=[0, 2]).fit(X, y).scores(X)
    np.testing.assert_array_equal(np.asarray(model.scores(FRAMES[library](table))), expected)
    known = model.learned_.ensemble.categories
    assert known[0].labels == tuple(sorted(COLOURS))
    assert known[2].labels == (("0", "10", "20", "30") if library == "polars" else (0, 10, 20, 30))
    model.save(tmp_path / "model")
    loaded = distboost.load(tmp_path / "model")
    assert loaded.learned_.ensemble.categories == known
    np.testing.assert_array_equal(np.asarray(loaded.scores(FRAMES[library](table))), expected)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_labels_are_matched_whatever_their_order(library, columns):
    """In prediction and in evaluation; rows may lack some and have others."""
    table, y = columns
    model = model_of().fit(FRAMES[library](table), y)
    rows = [i for i, label in enumerate(table["colour"]) if label not in ("red", "blue")][:100]
    some = {name: [values[i] for i in rows] for name, values in table.items()}
    expected = np.asarray(model.scores(FRAMES[library](table)))[rows]
    if library != "pyarrow":
        found = model.scores(FRAMES[library](some, ["mauve", *COLOURS[::-1]]))
        np.testing.assert_array_equal(found, expected)
        evaluated = model_of().fit(
            FRAMES[library](table), y, eval_set=(FRAMES[library](some, COLOURS[::-1]), y[rows])
        )
        assert evaluated.eval_error_[-1] == np.mean(evaluated.predict(FRAMES[library](some)) != y[rows])
    assert distboost.evaluate(
        model, FRAMES[library](some) if library != "pyarrow" else of_pandas(some), y[rows]
    )


def test_unknown_labels_go_with_missing_values(columns):
    table, y = columns
    model = model_of().fit(of_pandas(table), y)
    strange = {"colour": ["mauve", None], "width": [0.0, 0.0], "size": [0, 0]}
    unknown, missing = model.scores(of_pandas(strange, ["mauve", *COLOURS]))
    np.testing.assert_array_equal(unknown, missing)


def test_the_order_and_the_unused_categories_do_not_change_the_model(columns, saved):
    table, y = columns
    expected = saved(model_of().fit(of_pandas(table), y))
    assert saved(model_of().fit(of_pandas(table, ["amber", *COLOURS[::-1]]), y)) == expected
    text = pd.DataFrame(table).astype({"size": "category"})
    named = model_of(categorical_features=["colour", "size"]).fit(text, y)
    assert named.learned_.data == model_of().fit(of_pandas(table), y).learned_.data
    np.testing.assert_array_equal(named.scores(text), named.scores(of_pandas(table)))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_text_that_are_declared(make, columns):
    table, y = columns
    model = model_of(categorical_features=["colour"]).fit(make(table), y)
    assert model.learned_.ensemble.categories[0].labels == tuple(sorted(COLOURS))
    np.testing.assert_array_equal(
        model.scores(make(table)), model.scores(of_pandas(table).astype({"size": int}))
    )


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_text_that_are_not_declared(make, columns):
    table, y = columns
    with pytest.raises(
        DataError, match=r"the column 'colour' of X has no numbers .*categorical_features=\['colour'\]"
    ):
        model_of().fit(make(table), y)


@pytest.mark.filterwarnings("ignore:.*feature names")
def test_errors(columns):
    table, y = columns
    frame = of_pandas(table)
    with pytest.raises(DataError, match="the column 'size' of X has categories, but categorical_features"):
        model_of(categorical_features=["colour"]).fit(frame, y)
    unknown = dd.from_pandas(pd.DataFrame(table), npartitions=2).astype({"colour": "category"})
    with pytest.raises(DataError, match=r"column 'colour' .* not known .*categorize"):
        model_of().fit(unknown, y)
    with pytest.raises(DataError, match="types"):
        model_of().fit(frame.assign(size=pd.Categorical(pd.to_datetime(frame["size"].astype(int)))), y)
    model = model_of().fit(frame, y)
    with pytest.raises(DataError, match=r"feature 0 has labels in the model.*is not a data frame"):
        model.predict(codes_of(table))
    with pytest.raises(DataError, match="labels"):
        model_of().fit(frame, y, eval_set=(codes_of(table), y))


def test_a_binned_store_of_labels(columns, tmp_path):
    table, y = columns
    store = distboost.bin(of_pandas(table), y, f"{tmp_path}/store")
    model = model_of().fit(store)
    expected = model_of().fit(of_pandas(table), y)
    assert model.learned_.ensemble.categories == expected.learned_.ensemble.categories
    np.testing.assert_array_equal(model.scores(of_pandas(table)), expected.scores(of_pandas(table)))
    with pytest.raises(DataError, match="keep_values"):
        distboost.bin(of_pandas(table), y, f"{tmp_path}/other", keep_values=True)


def test_cross_validation_of_labels(columns):
    table, y = columns
    assert distboost.cross_validate(model_of(), of_pandas(table), y, folds=3)["test_accuracy"].min() > 0.9


@pytest.mark.filterwarnings("ignore:.*feature names")
def test_arrays_on_disk_have_no_labels(columns, tmp_path):
    """Their numbers are not taken for codes."""
    table, y = columns
    model_of().fit(of_pandas(table), y).save(tmp_path / "model")
    zarr.create_array(tmp_path / "x", data=codes_of(table))
    arguments = ["predict", "--model", tmp_path / "model", "--x", tmp_path / "x", "--out", tmp_path / "out"]
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 1
    assert "has labels in the model" in done.output


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_committee_asks_for_the_same_rows_of_labels_as_of_codes(library, warm_start, columns):
    table, y = columns

    def asking(pool, **parameters):
        estimator = GAMBLEClassifier(n_estimators=3, calibration=None, **parameters)
        learner = QueryByCommittee(estimator, pool, n_initial=30, warm_start=warm_start)
        for _ in range(3):
            rows = learner.query()
            learner.teach(rows, y[rows])
        return learner

    X, frame = codes_of(table), FRAMES[library](table)
    expected, found = asking(X, categorical_features=[0, 2]), asking(frame)
    assert found.ledger.rows == expected.ledger.rows
    np.testing.assert_array_equal(found.estimator_.scores(frame), expected.estimator_.scores(X))


def test_a_log_of_a_pool_with_labels_goes_on(columns, tmp_path):
    """Columns of text have labels, too, if they are named."""
    table, y = columns
    estimator = GAMBLEClassifier(n_estimators=2, calibration=None, categorical_features=["colour", "size"])
    learner = QueryByCommittee(estimator, pd.DataFrame(table), n_initial=30, log=tmp_path / "log")
    rows = learner.query()
    learner.teach(rows, y[rows])
    asked = learner.query()
    again = resume(tmp_path / "log", pd.DataFrame(table))
    assert again.asked_.tolist() == asked.tolist()
    assert set(again.estimator_.learned_.ensemble.categories) == {0, 2}


def test_labels_in_a_pool_of_dask_are_an_error(columns):
    table, _ = columns
    with pytest.raises(DataError, match=r"the column 'colour' of the pool has labels.*compute\(\)"):
        QueryByCommittee(GAMBLEClassifier(), of_dask(table))


def test_texts_in_place_of_numbers_and_the_reverse_are_refused(columns):
    table, y = columns
    model = GDMCBoostClassifier(n_estimators=2, calibration=None).fit(of_pandas(table), y)
    frame = pd.DataFrame({**table, "size": pd.Categorical(np.array(table["size"]).astype(str))})
    with pytest.raises(
        DataError, match=r"column 'size' of X has texts, but .* are numbers, such as 0\. Pass the same"
    ):
        model.predict(frame)
    for codes in (np.arange(N) % 6, pd.Categorical(np.arange(N) % 6), np.arange(N) % 6 / 2):
        with pytest.raises(
            DataError, match=r"column 'colour' of X has numbers, but .* are texts, such as 'blue'"
        ):
            model.predict(of_pandas(table).assign(colour=codes))
    nothing = of_pandas(table).assign(colour=np.full(N, np.nan))
    assert len(model.predict(nothing)) == N


def predict(model, table, y):
    return model.predict(table)


def evaluate(model, table, y):
    return distboost.evaluate(model, table, y)


def calibrate(model, table, y):
    return model.calibrate(table, y)


@pytest.mark.parametrize("library", ["pandas", "dask"])
@pytest.mark.parametrize("use", [predict, evaluate, calibrate])
def test_tables_with_other_columns_are_refused_before_their_labels_are_looked_up(use, library, columns):
    table, y = FRAMES[library](columns[0]), columns[1]
    fitted = model_of().fit(table, y)
    for names, found in (
        (["size", "width", "colour"], "in the same order"),
        (["colour"], "now missing:\n- size"),
    ):
        with pytest.raises(DataError, match=rf"The feature names should match[\s\S]*{found}"):
            use(fitted, table[names], y)
    table.columns = [0, 1, 2]  # no names
    with pytest.raises(DataError, match="X has 1 columns, but feature 2 has labels in the model"):
        use(model_of().fit(table, y), table[[0]], y)


def test_labels_in_dask_become_codes_and_explain_scores(columns):
    fitted = model_of().fit(of_pandas(columns[0]), columns[1])
    table, dask = of_pandas(columns[0]), of_dask(columns[0])
    np.testing.assert_array_equal(distboost.export.codes(fitted, dask), distboost.export.codes(fitted, table))
    np.testing.assert_array_equal(
        distboost.shap_values(fitted, table, background=dask), distboost.shap_values(fitted, table)
    )
