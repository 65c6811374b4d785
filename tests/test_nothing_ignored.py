"""What is given is used, or refused with a remedy: never ignored without a word."""

from __future__ import annotations

import re

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import distboost
from distboost import GAMBLEClassifier
from distboost.active import QueryByCommittee
from distboost.cli import main
from distboost.errors import DataError, MissingChunkError

BINNED = r"(is a binned store, which has its own labels and weights\. To train on it, pass it alone|has bins but no raw values)"


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    """A folder with x, y, weights and a binned store of x and y."""
    folder = tmp_path_factory.mktemp("data")
    X, y = map(np.asarray, blobs)
    for name, values in (("x", X), ("y", y), ("weights", np.ones(len(y)))):
        zarr.create_array(folder / name, data=values, chunks=(60, *values.shape[1:]))
    distboost.bin(f"{folder}/x", f"{folder}/y", f"{folder}/store")
    return folder


@pytest.fixture
def gaps(data, tmp_path):
    """Paths of features and labels of which the last chunk was never written."""
    for name in ("x", "y"):
        whole = zarr.open_array(data / name, mode="r")
        array = zarr.create_array(tmp_path / name, shape=whole.shape, chunks=whole.chunks, dtype=whole.dtype)
        array[:180] = whole[:180]
    return str(tmp_path / "x"), str(tmp_path / "y")


def model(**parameters) -> GAMBLEClassifier:
    return GAMBLEClassifier(n_estimators=2, **parameters)


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code in (1, 2), result.output
    assert "Traceback" not in result.output
    return " ".join(result.stderr.split())


# A binned store has labels and weights of its own, and no values.


def test_weights_beside_a_binned_store(data, tmp_path):
    remedy = r"has its own weights. Bin the data with these weights: distboost.bin\("
    with pytest.raises(DataError, match=rf"sample_weight .*store.* {remedy}"):
        model().fit(f"{data}/store", sample_weight=f"{data}/weights")
    error = refused("train", "--algorithm", "gamble", "--x", data / "store", "--sample-weight", data / "weights",
                    "--model", tmp_path / "m")  # fmt: skip
    assert "has its own weights. Bin the data with these weights: distboost bin --sample-weight." in error
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "call",
    [
        lambda store, x, y: model().fit(store, y),
        lambda store, x, y: model().fit(x, store),
        lambda store, x, y: model().fit(x, y, sample_weight=store),
        lambda store, x, y: model().fit(x, y, eval_set=(store, y)),
        lambda store, x, y: model().fit(store, eval_set=(store, y)),
        lambda store, x, y: model().fit(x, y).predict(store),
        lambda store, x, y: model().fit(x, y).predict_proba(store),
        lambda store, x, y: model().fit(x, y).decision_function(store),
        lambda store, x, y: next(model().fit(x, y).staged_predict(store)),
        lambda store, x, y: distboost.bin(store, y, f"{store}-again"),
    ],
)
def test_a_binned_store_in_place_of_an_array(call, data):
    with pytest.raises(DataError, match=rf"{data}/store' {BINNED}"):
        call(f"{data}/store", f"{data}/x", f"{data}/y")


def test_an_unfinished_binned_store_in_place_of_an_array(data, tmp_path):
    zarr.create_group(tmp_path / "store", attributes={"distboost-unfinished": {}})
    with pytest.raises(DataError, match=BINNED):
        model().fit(f"{tmp_path}/store", f"{data}/y")


def test_a_binned_store_in_commands(data, tmp_path):
    store, path = data / "store", tmp_path / "model"
    model().fit(f"{data}/x", f"{data}/y").save(path)
    train = ("train", "--algorithm", "gamble", "--model", tmp_path / "m")
    for command in (
        (*train, "--x", store, "--y", data / "y"),
        (*train, "--x", data / "x", "--y", data / "y", "--eval-x", store, "--eval-y", data / "y"),
        ("predict", "--model", path, "--x", store, "--out", tmp_path / "out"),
        ("evaluate", "--model", path, "--x", store, "--y", data / "y"),
        ("bin", "--x", store, "--y", data / "y", "--out", tmp_path / "out"),
    ):
        assert re.search(BINNED, refused(*command)), command
    assert not (tmp_path / "out").exists()


def test_an_evaluation_without_labels(data):
    with pytest.raises(DataError, match=r"eval_set has no labels\. Pass \(X, y\)"):
        model().fit(f"{data}/x", f"{data}/y", eval_set=(f"{data}/x", None))


# Chunks that were never written.


def ask(fitted, x, y):
    return QueryByCommittee(fitted, x, n_initial=5)


def run(fitted, x, y):
    learner = QueryByCommittee(fitted, np.zeros((240, 4)) + np.arange(240)[:, None], n_initial=5)
    return learner.run(y, max_labels=5)


def run_evaluated(fitted, x, y):
    learner = QueryByCommittee(fitted, np.zeros((240, 4)), n_initial=5)
    return learner.run(np.arange(240) % 2, eval_set=(np.zeros((240, 4)), y), max_labels=5)


USES = {
    "predict": lambda fitted, x, y: fitted.predict(x),
    "predict, array": lambda fitted, x, y: fitted.predict(zarr.open_array(x, mode="r")),
    "predict_proba": lambda fitted, x, y: fitted.predict_proba(x),
    "scores": lambda fitted, x, y: fitted.scores(x),
    "staged_scores": lambda fitted, x, y: next(fitted.staged_scores(x)),
    "the pool": ask,
    "the oracle": run,
    "an eval_set's labels": run_evaluated,
}


@pytest.mark.parametrize("use", USES)
def test_every_reader_warns_of_missing_chunks(use, gaps, blobs):
    fitted = model().fit(*map(np.asarray, blobs))
    with pytest.warns(UserWarning, match=r"1 chunks of .* are not in the store") as told:
        USES[use](fitted, *gaps)
    assert len(told) == 1
    fitted.set_params(missing_chunks="error")
    with pytest.raises(MissingChunkError, match="allow this with missing_chunks='warn'"):
        USES[use](fitted, *gaps)
    USES[use](fitted.set_params(missing_chunks="ignore"), *gaps)


def test_the_caller_is_warned_of_missing_chunks(gaps, blobs, data):
    """The warning is of the caller's line."""
    fitted, zeros, y = model().fit(*map(np.asarray, blobs)), np.zeros((240, 4)), np.arange(240) % 2
    whole, learner = (f"{data}/x", f"{data}/y"), QueryByCommittee(fitted, zeros, n_initial=5)
    for use in (
        lambda: fitted.predict(gaps[0]),
        lambda: next(fitted.staged_scores(gaps[0])),
        lambda: model().fit(gaps[0], whole[1]),
        lambda: model().fit(*whole, eval_set=(gaps[0], whole[1])),
        lambda: QueryByCommittee(fitted, gaps[0], n_initial=5),
        lambda: learner.run(gaps[1], max_labels=5),
        lambda: learner.run(y, max_labels=5, eval_set=(zeros, gaps[1])),
    ):
        with pytest.warns(UserWarning, match="not in the store") as told:
            use()
        assert (told[0].filename, told[0].lineno) == (__file__, use.__code__.co_firstlineno)


def test_a_policy_that_there_is_not(gaps, tmp_path):
    with pytest.raises(
        DataError, match="missing_chunks is 'eror', expected one of 'warn', 'error', 'ignore'"
    ):
        distboost.bin(*gaps, str(tmp_path / "store"), missing_chunks="eror")


# Options of commands.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows", "7"), "--x gives the sizes: leave out --rows and --features"),
        (("--features", "7"), "--x gives the sizes: leave out --rows and --features"),
        (("--classes", "7"), "has 3 classes, not 7: leave --classes out"),
        (("--memory-limit", "2GB", "--set", "memory_limit=1GB"), "The memory limit is given twice"),
    ],
)
def test_a_plan_refuses_what_is_passed_twice(options, message, data):
    assert message in refused("plan", "--algorithm", "gamble", "--x", data / "store", *options)


def test_a_plan_has_the_estimators_threads():
    """Each holds what it is at work on: with more of them, fewer rows stay in memory."""
    sizes = {"n_rows": 10**6, "n_features": 200, "n_classes": 100}
    seven, one = (distboost.plan(model(n_jobs=n, memory_limit="2GB"), **sizes) for n in (7, 1))
    assert seven == distboost.plan(model(memory_limit="2GB"), **sizes, n_threads=7)
    assert seven.resident < one.resident


def test_where_nothing_runs(tmp_path):
    """tell measures only where it is given rows to measure on."""
    told = ("active", "tell", "--log", tmp_path / "log", "--labels", tmp_path / "labels.csv")
    options = {"--workers": 2, "--scheduler": "tcp://127.0.0.1:9", "--tls": tmp_path, "--wait-workers": 2,
               "--scheduler-file": tmp_path / "file"}  # fmt: skip
    for where in options.items():
        assert "Pass --eval-x and --eval-y, too, or none of them" in refused(*told, *where)
