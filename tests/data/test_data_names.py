"""The names of features: from every container into the model and its file, and compared whenever rows are given again."""

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
import zarr
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.active import QueryByCommittee, resume
from distboost.cli import main
from distboost.errors import DataError
from distboost.reporting import numbers
from tests.data.tables import NAMES, TABLES, frame, in_group, in_xarray, in_zarr

SHUFFLED = [1, 0, 2, 3]
ORDER = "The feature names should match those that were passed during fit.\nFeature names must be in the same order"


@pytest.fixture(params=TABLES.values(), ids=TABLES)
def table(request):
    return request.param


@pytest.fixture(scope="module")
def model(blobs):
    """A model of a pandas frame."""
    X, y = blobs
    return GDMCBoostClassifier(calibration=None, n_estimators=3).fit(frame(X), y)


def test_each_container_gives_the_names_and_the_same_model(table, model, blobs, tmp_path):
    X, y = blobs
    found = clone(model).fit(table(X, NAMES, tmp_path), y)
    np.testing.assert_array_equal(found.feature_names_in_, np.array(NAMES, object), strict=True)
    assert found.digest() == model.digest()


def test_each_container_is_predicted_and_judged(table, model, blobs, tmp_path):
    X, y = blobs
    rows = table(X, NAMES, tmp_path)
    expected = model.scores(frame(X))
    np.testing.assert_array_equal(np.asarray(model.scores(rows)), expected)
    np.testing.assert_array_equal(list(model.staged_scores(rows))[-1], expected)
    assert model.score(rows, y) == model.score(frame(X), y)
    assert (
        distboost.evaluate(model, rows, y)["log_loss"] == distboost.evaluate(model, frame(X), y)["log_loss"]
    )


def test_every_use_of_rows_compares_the_names(table, model, blobs, tmp_path):
    X, y = blobs
    rows = table(X[:, SHUFFLED], [NAMES[i] for i in SHUFFLED], tmp_path)
    fitted = clone(model).set_params(n_estimators=1).fit(frame(X), y).set_params(n_estimators=3)
    learner = QueryByCommittee(GAMBLEClassifier(n_estimators=1), frame(X), n_initial=20)
    for use in (
        model.predict,
        model.predict_proba,
        model.scores,
        model.decision_function,
        lambda rows: next(model.staged_predict(rows)),
        lambda rows: model.score(rows, y),
        lambda rows: model.calibrate(rows, y),
        lambda rows: distboost.evaluate(model, rows, y),
        lambda rows: clone(model).fit(frame(X), y, eval_set=(rows, y)),
        lambda rows: fitted.fit(rows, y, resume=True),
        lambda rows: learner.run(y, eval_set=(rows, y), max_labels=20),
    ):
        with pytest.raises(DataError, match=ORDER):
            use(rows)
    assert (fitted.feature_names_in_.tolist(), fitted.n_iter_) == (NAMES, 1)


def test_other_names_are_the_error_of_scikit_learn(model, blobs):
    X, y = blobs
    renamed = frame(X, ["height", "width", *"abcdefgh"][:4])
    theirs = HistGradientBoostingClassifier(max_iter=1).fit(frame(X), y)
    with pytest.raises(ValueError) as expected:  # noqa: PT011 (what it says is compared)
        theirs.predict(renamed)
    with pytest.raises(ValueError) as found:  # noqa: PT011
        model.predict(renamed)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr", "path", "xarray"])
def test_rows_without_names_are_predicted_with_the_warning_of_scikit_learn(kind, model, blobs, tmp_path):
    X, _ = blobs
    zarr.create_array(str(tmp_path / "x"), data=X)
    rows = {
        "numpy": X,
        "dask": da.from_array(X),
        "zarr": zarr.open_array(str(tmp_path / "x")),
        "path": tmp_path / "x",
        "xarray": xr.DataArray(X),
    }[kind]
    said = "X does not have valid feature names, but GDMCBoostClassifier was fitted with feature names"
    with pytest.warns(UserWarning, match=said) as told:
        found = model.scores(rows)
    assert [warning.filename for warning in told] == [__file__]
    np.testing.assert_array_equal(np.asarray(found), model.scores(frame(X)))


def test_names_after_a_training_without_them_cause_the_warning_of_scikit_learn(model, blobs, tmp_path):
    X, y = blobs
    unnamed = clone(model).fit(X, y)
    assert not hasattr(unnamed, "feature_names_in_")
    for rows in (pl.DataFrame(X, schema=NAMES), in_zarr(X, NAMES, tmp_path / "x")):
        with pytest.warns(
            UserWarning, match="X has feature names, but GDMCBoostClassifier was fitted without"
        ):
            unnamed.predict(rows)


@pytest.mark.parametrize("labels", [range(4), [1.5, 2.5, 3.5, 4.5]], ids=["whole", "real"])
def test_labels_that_are_not_texts_are_not_names(labels, model, blobs):
    X, y = blobs
    labels = list(labels)
    for rows in (frame(X, labels), in_xarray(X, labels)):
        assert not hasattr(clone(model).fit(rows, y), "feature_names_in_")


def test_texts_among_other_labels_are_the_error_of_scikit_learn(model, blobs):
    X, y = blobs
    with pytest.raises(
        TypeError, match="Feature names are only supported if all input features have string names"
    ):
        clone(model).fit(frame(X, ["a", 1, "b", 2]), y)


def test_a_column_that_occurs_twice_is_an_error_with_its_name(model, blobs):
    X, y = blobs
    with pytest.raises(DataError, match=r"X has several columns of one name.*'twice'"):
        clone(model).fit(frame(X, ["twice", "twice", "c", "d"]), y)


@pytest.mark.parametrize("names", ["abcd", ["a", "b", "c"], ["a", "b", "c", 4], {"a": 1}])
@pytest.mark.parametrize("make", [in_zarr, in_group])
def test_an_attribute_that_does_not_name_the_columns_is_an_error(names, make, model, blobs, tmp_path):
    X, y = blobs
    with pytest.raises(
        DataError, match=r"feature_names is .*, expected a list of 4 texts, one for each column"
    ):
        clone(model).fit(make(X, names, tmp_path / "d.zarr"), y)


def test_the_attribute_of_an_array_has_precedence_over_that_of_its_group(model, blobs, tmp_path):
    X, y = blobs
    array = in_group(X, ["of", "the", "group", "!"], tmp_path / "d.zarr")
    array.attrs["feature_names"] = NAMES
    assert clone(model).fit(tmp_path / "d.zarr/x", y).digest() == model.digest()


def test_a_store_of_other_names_is_not_taken_for_this_one(blobs, tmp_path):
    X, y = blobs
    distboost.bin(frame(X), y, f"{tmp_path}/bins")
    assert distboost.bin(pl.DataFrame(X, schema=NAMES), y, f"{tmp_path}/bins")  # the same values and names
    for other in (X, frame(X, list("abcd"))):
        with pytest.raises(DataError, match="a binned store of other data or parameters"):
            distboost.bin(other, y, f"{tmp_path}/bins")


def test_a_store_without_names_has_none_in_its_manifest(blobs, tmp_path):
    distboost.bin(*blobs, f"{tmp_path}/bins")
    assert "feature_names" not in zarr.open_group(f"{tmp_path}/bins").attrs["distboost-binned"]


def test_a_binned_evaluation_set_of_other_names_is_an_error(model, blobs, tmp_path):
    X, y = blobs
    distboost.bin(frame(X, list("abcd")), y, f"{tmp_path}/bins", keep_values=True)
    with pytest.raises(DataError, match=r"the binned store '.*': The feature names should match"):
        clone(model).fit(frame(X), y, eval_set=f"{tmp_path}/bins")


def test_a_resumed_training_keeps_the_names(model, blobs, tmp_path):
    X, y = blobs
    short = clone(model).set_params(n_estimators=1, checkpoint=str(tmp_path / "c"))
    short.fit(frame(X), y)
    resumed = clone(short).set_params(n_estimators=3)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        resumed.fit(X, y, resume=True)
    assert resumed.digest() == model.digest()


def test_committees_have_the_names_of_their_pool(table, blobs, tmp_path):
    X, y = blobs
    learner = QueryByCommittee(GAMBLEClassifier(n_estimators=1), table(X, NAMES, tmp_path), n_initial=20)
    learner.run(y, eval_set=(frame(X), y), max_labels=25, stabilised=0.99)
    assert learner.estimator_.feature_names_in_.tolist() == NAMES


def test_a_log_is_of_a_pool_with_these_names(table, blobs, tmp_path):
    X, _ = blobs
    log, estimator = tmp_path / "log", GAMBLEClassifier(n_estimators=1)
    rows = QueryByCommittee(estimator, table(X, NAMES, tmp_path), n_initial=20, log=log).query()
    assert resume(log, frame(X)).asked_.tolist() == rows.tolist()
    with pytest.raises(DataError, match=f"pool: {ORDER}"):
        resume(log, frame(X[:, SHUFFLED], [NAMES[i] for i in SHUFFLED]))


def test_cross_validation_and_search_know_the_names(model, blobs):
    X, y = blobs
    rows = pl.DataFrame(X, schema=NAMES)
    found = distboost.search(clone(model), {"max_depth": [1, 2]}, rows, y, folds=2)
    assert found.best_estimator_.feature_names_in_.tolist() == NAMES
    distboost.cross_validate(clone(model), rows, y, folds=2)


def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_commands_keep_and_compare_the_names(model, blobs, tmp_path):
    X, y = blobs
    in_zarr(X, NAMES, tmp_path / "x")
    in_zarr(X[:, SHUFFLED], [NAMES[i] for i in SHUFFLED], tmp_path / "shuffled")
    zarr.create_array(str(tmp_path / "y"), data=y)
    found = tmp_path / "model"
    setting = ["--algorithm", "gd-mcboost", "--set", "n_estimators=3", "--set", "calibration=null"]
    assert run("train", "--x", tmp_path / "x", "--y", tmp_path / "y", "--model", found, *setting)[0] == 0
    assert distboost.load(found).digest() == model.digest()
    assert f"4: {', '.join(NAMES)}" in run("inspect", found)[1]
    assert run("predict", "--model", found, "--x", tmp_path / "x", "--out", tmp_path / "out")[0] == 0
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out")[:], model.predict(frame(X)))
    for command in (["predict", "--out", tmp_path / "out2"], ["evaluate", "--y", tmp_path / "y"]):
        code, output = run(*command, "--model", found, "--x", tmp_path / "shuffled")
        assert code == 1
        assert "The feature names should match" in output


def test_the_labels_file_of_active_ask_names_the_features(blobs, tmp_path):
    X, _ = blobs
    in_group(X, NAMES, tmp_path / "d.zarr")
    log, out = tmp_path / "log", tmp_path / "ask.csv"
    code, output = run(
        "active", "ask", "--log", log, "--out", out, "--x", tmp_path / "d.zarr/x", "--algorithm", "gamble"
    )
    assert code == 0, output
    assert out.read_text(encoding="utf-8-sig").splitlines()[0].replace('"', "").endswith(",".join(NAMES))


def test_what_is_said_about_a_model_names_its_features(model, blobs):
    assert {name for name, _ in numbers.top_features(model, 4)[0]} <= set(NAMES)


def test_predictions_of_a_dask_frame_have_a_known_length(model, blobs):
    X, _ = blobs
    rows = TABLES["dask DataFrame"](X, NAMES, None)
    found = model.predict(rows[rows["width"] > 0])
    assert found.shape == ((X[:, 0] > 0).sum(),)
    np.testing.assert_array_equal(found, model.predict(frame(X[X[:, 0] > 0])))


def test_a_series_is_not_a_table(model, blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="Expected a 2-dimensional container"):
        clone(model).fit(pd.Series(X[:, 0]), y)
