"""The command line, on real zarr files."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from distributed import LocalCluster

import distboost
from distboost.cli import main
from distboost.cli.options import parse_parameters
from distboost.estimators.factory import estimator
from distboost.registry import ALGORITHMS
from tests.failing import error_of

TEXT = np.dtypes.StringDType()
NAMES = np.array(["blue", "green", "red"])


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    """A folder with x, y (numbers), names (the same as text), and weights, in chunks that do not agree."""
    X, y = blobs
    folder = tmp_path_factory.mktemp("data")
    arrays = {
        "x": (X, 50),
        "y": (y, 70),
        "names": (NAMES[y].astype(TEXT), 64),
        "weights": (np.ones(len(y)), 33),
    }
    for name, (values, rows) in arrays.items():
        array = zarr.create_array(
            folder / name, shape=values.shape, chunks=(rows, *values.shape[1:]), dtype=values.dtype
        )
        array[:] = values
    return folder


@pytest.fixture(scope="module")
def model(data):
    """The path of a model of the names."""
    path = data / "names.dboost"
    distboost.GDMCBoostClassifier(n_estimators=5).fit(f"{data}/x", f"{data}/names").save(path)
    return path


@pytest.fixture(scope="module")
def scheduler():
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


def run(*arguments: object) -> str:
    """The output of a command that succeeds."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments: object) -> str:
    """The error of a command that fails with exit code 1."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    return error_of(result.stderr)


def texts(array: zarr.Array) -> np.ndarray:
    """Stored labels as scikit-learn takes them."""
    return np.array(array[:].tolist())


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_algorithms_are_those_of_the_library():
    [choice] = [option.type for option in main.commands["train"].params if option.name == "algorithm"]
    assert list(choice.choices) == list(ALGORITHMS)
    for name in ALGORITHMS:
        assert estimator(name).algorithm_name == name


def test_help_is_quick():
    """What takes seconds to import is imported by the commands that need it."""
    program = "import sys, distboost.cli; print({'numba', 'dask', 'sklearn', 'zarr'} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "set()\n"


def test_a_command_leaves_its_memory_to_the_system():
    """Python would look for garbage for a second when the process ends."""
    program = "import gc; gc.freeze = lambda: print('frozen'); from distboost.cli import main; main(['inspect', '--help'])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.endswith("frozen\n")


# train


def test_train(data, tmp_path, saved):
    """By one algorithm; by each of them: tests/algorithms/test_contract.py."""
    path, rows = tmp_path / "model", ("--x", data / "x", "--y", data / "y")
    options = ("--set", "n_estimators=4", "--set", "max_depth=2")
    output = run("train", "--algorithm", "gd-mcboost", *rows, "--model", path, *options)
    expected = distboost.GDMCBoostClassifier(n_estimators=4, max_depth=2).fit(f"{data}/x", f"{data}/y")
    assert path.read_bytes() == saved(expected)
    assert sha256(path) in output
    assert "4 rounds" in output
    assert not Path(f"{path}.checkpoint").exists()


def test_train_with_weights_and_evaluation(data, tmp_path):
    output = run("train", "--algorithm", "gamble", "--x", data / "x", "--y", data / "names", "--model", tmp_path / "model",
                 "--sample-weight", data / "weights", "--eval-x", data / "x", "--eval-y", data / "names",
                 "--set", "n_estimators=3")  # fmt: skip
    assert "evaluation error" in output
    trained = distboost.load(tmp_path / "model")
    np.testing.assert_array_equal(trained.eval_error_, trained.train_error_)


def test_parameters_are_json_or_literals_or_text(data, tmp_path):
    run("train", "--algorithm", "gd-mcboost", "--x", data / "x", "--y", data / "y", "--model", tmp_path / "model",
        "--set", "n_estimators=2", "--set", "leaf=codeword", "--set", "max_leaf_nodes=None", "--set", "subsample=0.5",
        "--set", "class_weight={0: 2, 1: 1, 2: 1}", "--set", "early_stopping_rounds=null")  # fmt: skip
    parameters = distboost.load(tmp_path / "model").get_params()
    assert parameters["leaf"] == "codeword"
    assert parameters["subsample"] == 0.5
    assert parameters["class_weight"] == {0: 2, 1: 1, 2: 1}
    assert parameters["max_leaf_nodes"] is parameters["early_stopping_rounds"] is None


def test_values_of_parameters_may_have_equals_signs():
    assert parse_parameters(("scratch=/data/run=7", "n_jobs=2")) == {"scratch": "/data/run=7", "n_jobs": 2}


def test_resume_goes_on_from_the_model(data, tmp_path):
    path, whole = tmp_path / "model", tmp_path / "whole"
    rows = ("--x", data / "x", "--y", data / "y")
    run("train", "--algorithm", "gd-mcboost", *rows, "--model", path, "--set", "n_estimators=2")
    run("train", "--resume", *rows, "--model", path, "--set", "n_estimators=5")
    run("train", "--algorithm", "gd-mcboost", *rows, "--model", whole, "--set", "n_estimators=5")
    assert path.read_bytes() == whole.read_bytes()


def test_resume_goes_on_from_the_checkpoint_of_an_interrupted_training(data, tmp_path):
    path, whole = tmp_path / "model", tmp_path / "whole"
    rows = ("--x", data / "x", "--y", data / "y")
    estimator("gamble")(n_estimators=2, checkpoint=f"{path}.checkpoint").fit(f"{data}/x", f"{data}/y")
    assert sha256(tmp_path / "model.checkpoint/checkpoint.json") in run("inspect", f"{path}.checkpoint")
    run(
        "train", "--resume", *rows, "--model", path, "--set", "n_estimators=4", "--set", "checkpoint_every=1s"
    )
    run("train", "--algorithm", "gamble", *rows, "--model", whole, "--set", "n_estimators=4")
    assert path.read_bytes() == whole.read_bytes()
    assert not Path(f"{path}.checkpoint").exists()


@pytest.fixture
def interrupted(data, tmp_path):
    """The path of a model whose training was interrupted after 3 rounds."""
    path = tmp_path / "model"

    def stop(progress):
        if progress.round == 3:
            raise KeyboardInterrupt

    made = estimator("gamble")(checkpoint=f"{path}.checkpoint", checkpoint_every=1, callbacks=[stop])
    with pytest.raises(KeyboardInterrupt):
        made.fit(f"{data}/x", f"{data}/y")
    return path


def kept(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(f"{path}.checkpoint").iterdir()}


def test_train_does_not_replace_a_checkpoint(data, tmp_path, interrupted):
    """Nor does it where the training has its checkpoint elsewhere, or none: it would be removed in the end."""
    options = ("train", "--algorithm", "gamble", "--x", data / "x", "--y", data / "y", "--model", interrupted)
    before = kept(interrupted)
    for more in ((), ("--set", f"checkpoint={tmp_path}/c"), ("--set", "checkpoint=null")):
        error = fail(*options, *more)
        assert f"{interrupted}.checkpoint has 3 rounds of an earlier run" in error
        assert "--resume" in error
        assert "--overwrite" in error
        assert kept(interrupted) == before
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # as outside of tests
        output = run(*options, "--overwrite", "--set", "n_estimators=2")
    assert "Warning: the checkpoint" in output
    assert distboost.load(interrupted).n_iter_ == 2
    assert not Path(f"{interrupted}.checkpoint").exists()


def test_train_does_not_replace_a_checkpoint_elsewhere(data, tmp_path, interrupted):
    """Named by its path."""
    options = ("train", "--algorithm", "gamble", "--x", data / "x", "--y", data / "y")
    where = ("--set", f"checkpoint={interrupted}.checkpoint")
    assert "has 3 rounds" in fail(*options, "--model", tmp_path / "other", *where)


def test_train_does_not_replace_a_model(data, tmp_path, model):
    path = tmp_path / "model"
    path.write_bytes(model.read_bytes())
    options = ("train", "--algorithm", "gamble", "--x", data / "none", "--y", data / "y", "--model", path)
    error = fail(*options)  # before it is seen that there are no rows
    assert f"there is a file at {path} already" in error
    assert "--overwrite" in error
    assert "--resume" in error
    assert path.read_bytes() == model.read_bytes()
    options = ("train", "--algorithm", "gamble", "--x", data / "x", "--y", data / "y", "--model", path)
    run(*options, "--set", "n_estimators=2", "--overwrite")
    assert distboost.load(path).algorithm_name == "gamble"
    result = CliRunner().invoke(main, [str(a) for a in (*options, "--overwrite", "--resume")])
    assert result.exit_code == 2
    assert "pass the one or the other" in result.stderr


@pytest.mark.parametrize("place", ["checkpoint", "model"])
def test_resume_with_other_parameters_is_refused(data, interrupted, place):
    """From a checkpoint and from a model file."""
    rows = ("--x", data / "x", "--y", data / "y", "--model", interrupted)
    found = f"{interrupted}.checkpoint"
    if place == "model":
        run("train", "--resume", *rows, "--set", "n_estimators=3")
        found = str(interrupted)
    options = ("train", "--resume", *rows, "--set", "n_estimators=5")
    error = fail(*options, "--set", "max_depth=2")
    assert re.search(rf"{found} was made with max_depth=\S+, not 2. Leave --set max_depth=... out", error)
    run(*options, "--set", "n_jobs=1", "--set", "checkpoint_every=1s")
    assert distboost.load(interrupted).n_iter_ == 5


def test_train_on_a_scheduler(data, tmp_path, scheduler):
    rows = ("--algorithm", "gd-mcboost", "--x", data / "x", "--y", data / "y", "--set", "n_estimators=3")
    run("train", *rows, "--model", tmp_path / "near")
    run("train", *rows, "--model", tmp_path / "far", "--scheduler", scheduler)
    assert sha256(tmp_path / "near") == sha256(tmp_path / "far")


def test_everything_on_new_workers(data, tmp_path):
    rows = ("--x", data / "x", "--y", data / "y")
    run("train", "--algorithm", "gd-mcboost", *rows, "--model", tmp_path / "model", "--set", "n_estimators=2",
        "--workers", 2)  # fmt: skip
    assert len(distboost.load(tmp_path / "model").train_loss_) == 2


def test_bin_then_train(data, tmp_path):
    output = run("bin", "--x", data / "x", "--y", data / "y", "--out", tmp_path / "store")
    assert "240 rows of 4 features" in output
    options = ("--algorithm", "gamble", "--set", "n_estimators=3")
    run("train", *options, "--x", tmp_path / "store", "--model", tmp_path / "binned")
    run("train", *options, "--x", data / "x", "--y", data / "y", "--model", tmp_path / "raw")
    assert sha256(tmp_path / "binned") == sha256(tmp_path / "raw")
    again = ("bin", "--x", data / "x", "--y", data / "y", "--out", tmp_path / "store")
    assert "240 rows of 4 features" in run(*again)
    assert "already" in fail(*again, "--max-bins", 16)


# predict and evaluate


@pytest.mark.parametrize("where", ["here", "scheduler"])
def test_predict(data, model, tmp_path, where, scheduler):
    more = ("--scheduler", scheduler) if where == "scheduler" else ()
    run("predict", "--model", model, "--x", data / "x", "--out", tmp_path / "labels", *more)
    run("predict", "--model", model, "--x", data / "x", "--out", tmp_path / "proba", "--proba", *more)
    X = zarr.open_array(data / "x")[:]
    loaded = distboost.load(model)
    labels = zarr.open_array(tmp_path / "labels", mode="r")
    assert labels.dtype == TEXT
    assert labels.attrs["distboost"] == {"classes": NAMES.tolist(), "complete": True}
    np.testing.assert_array_equal(texts(labels), loaded.predict(X))
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "proba")[:], loaded.predict_proba(X))


def test_predict_many_tasks(data, model, tmp_path, monkeypatch):
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 1)
    run("predict", "--model", model, "--x", data / "x", "--out", tmp_path / "labels")
    labels = zarr.open_array(tmp_path / "labels", mode="r")
    assert labels.chunks == (50,)
    expected = distboost.load(model).predict(zarr.open_array(data / "x")[:])
    np.testing.assert_array_equal(texts(labels), expected)


def test_predict_overwrites_only_if_told(data, model, tmp_path):
    options = ("--model", model, "--x", data / "x", "--out", tmp_path / "labels")
    run("predict", *options)
    assert "--overwrite" in fail("predict", *options)
    run("predict", *options, "--overwrite")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/to Ann").write_text("Dear Ann")
    assert "not a zarr array" in fail("predict", *options[:4], "--out", tmp_path / "letters", "--overwrite")
    assert (tmp_path / "letters/to Ann").read_text() == "Dear Ann"


def test_evaluate(data, model, tmp_path, monkeypatch):
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 1)
    report = tmp_path / "report.html"
    output = run("evaluate", "--model", model, "--x", data / "x", "--y", data / "names", "--report", report)
    X, y = zarr.open_array(data / "x")[:], texts(zarr.open_array(data / "names"))
    accuracy = distboost.load(model).score(X, y)
    assert f"accuracy {accuracy:.4f} (240 rows, 3 classes)" in output
    assert "confusion matrix" in output
    page = report.read_text()
    assert f"<dt>accuracy</dt><dd><strong>{accuracy:.4f}</strong>" in page
    assert "<title>names.dboost on x</title>" in page
    again = ("evaluate", "--model", model, "--x", data / "x", "--y", data / "names", "--report", report)
    assert f"there is a file at {report} already" in fail(*again)
    run(*again, "--overwrite")
    assert report.read_text() == page


def test_a_report_with_the_log_of_the_training(data, tmp_path):
    rows = ("--x", data / "x", "--y", data / "y")
    log, path, page = tmp_path / "run.jsonl", tmp_path / "m", tmp_path / "report.html"
    run(
        "train",
        "--algorithm",
        "gd-mcboost",
        *rows,
        "--model",
        path,
        "--set",
        "n_estimators=2",
        "--events",
        log,
    )
    run("evaluate", "--model", path, *rows, "--report", page, "--events", log)
    assert "time of the phase scan" in page.read_text()
    result = CliRunner().invoke(
        main, ["evaluate", "--model", str(path), *map(str, rows), "--events", str(log)]
    )
    assert result.exit_code == 2
    assert "--events is for the page of --report" in result.stderr


def test_evaluation_as_json(data, model, tmp_path):
    options = ("evaluate", "--model", model, "--x", data / "x", "--y", data / "names", "--json")
    X, y = zarr.open_array(data / "x")[:], texts(zarr.open_array(data / "names"))
    expected = distboost.evaluate(distboost.load(model), X, y, np.ones(len(y)))
    assert json.loads(run(*options, "--sample-weight", data / "weights").splitlines()[-1]) == json.loads(
        expected.to_json()
    )
    result = CliRunner().invoke(main, [str(a) for a in (*options, "--report", tmp_path / "page.html")])
    assert json.loads(result.stdout)["confusion"] == expected["confusion"].tolist()
    assert "confusion matrix" in (tmp_path / "page.html").read_text().lower()


def test_metrics_are_those_of_scikit_learn(data, model):
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    from distboost.estimators.evaluating import confusion

    loaded = distboost.load(model)
    X, y = zarr.open_array(data / "x")[:], texts(zarr.open_array(data / "names"))
    found = confusion(loaded, f"{data}/x", f"{data}/names")
    np.testing.assert_array_equal(found.counts.toarray()[:3], confusion_matrix(y, loaded.predict(X)))
    expected = precision_recall_fscore_support(y, loaded.predict(X))
    np.testing.assert_allclose(list(found.per_class().values()), expected)


def test_labels_that_the_model_does_not_know_count_as_mistakes(data, model, tmp_path):
    y = zarr.open_array(data / "names")[:]
    y[:10] = "violet"
    zarr.create_array(tmp_path / "y", shape=y.shape, dtype=y.dtype)[:] = y
    assert "10 rows have labels" in run(
        "evaluate", "--model", model, "--x", data / "x", "--y", tmp_path / "y"
    )


def test_inspect(model):
    output = run("inspect", model)
    for fact in ("gd-mcboost", "n_estimators=5", "3: blue, green, red", "train loss", sha256(model)):
        assert fact in output


def test_inspect_shows_the_calibration(data, tmp_path):
    X, y = (zarr.open_array(data / name)[:] for name in "xy")
    fitted = distboost.GDMCBoostClassifier(n_estimators=2).fit(X[::2], y[::2]).calibrate(X[1::2], y[1::2])
    fitted.save(tmp_path / "calibrated")
    assert f"temperature {fitted.calibration_.temperature:.6g}" in run("inspect", tmp_path / "calibrated")


# What goes wrong


def train(data, tmp_path, *more):
    return (
        "train",
        "--algorithm",
        "gamble",
        "--x",
        data / "x",
        "--y",
        data / "y",
        "--model",
        tmp_path / "m",
        *more,
    )


def test_unknown_parameter(data, tmp_path):
    error = fail(*train(data, tmp_path, "--set", "n_estimatorz=3"))
    assert "'n_estimatorz'" in error
    assert "n_estimators" in error
    assert not (tmp_path / "m").exists()


def test_parameter_out_of_range(data, tmp_path):
    assert "n_estimators" in fail(*train(data, tmp_path, "--set", "n_estimators=-1"))


def test_no_scheduler_at_the_configured_address(data, tmp_path, monkeypatch):
    monkeypatch.setattr("distboost.cli.connection.CONNECT_DEADLINE", 1.0)
    started = time.monotonic()
    error = fail(*train(data, tmp_path, "--scheduler", "tcp://127.0.0.1:9"))
    assert time.monotonic() - started < 8
    assert "tcp://127.0.0.1:9" in error
    assert "dask scheduler" in error


def test_scheduler_and_workers(data, tmp_path):
    assert "exclude" in fail(*train(data, tmp_path, "--scheduler", "tcp://127.0.0.1:9", "--workers", 2))


def test_no_such_array(data, model, tmp_path):
    for command in (
        (
            "train",
            "--algorithm",
            "gamble",
            "--x",
            data / "none",
            "--y",
            data / "y",
            "--model",
            tmp_path / "m",
        ),
        ("predict", "--model", model, "--x", data / "none", "--out", tmp_path / "out"),
        ("evaluate", "--model", model, "--x", data / "none", "--y", data / "y"),
        ("bin", "--x", data / "none", "--y", data / "y", "--out", tmp_path / "store"),
    ):
        assert str(data / "none") in fail(*command)
    assert not (tmp_path / "out").exists()


def test_no_such_model(data, tmp_path):
    missing = tmp_path / "none.dboost"
    for command in (
        ("predict", "--model", missing, "--x", data / "x", "--out", tmp_path / "out"),
        ("inspect", missing),
        ("train", "--resume", "--x", data / "x", "--y", data / "y", "--model", missing),
    ):
        assert str(missing) in fail(*command)
    checkpoint = f"{missing}.checkpoint"  # the last command
    assert (
        f"nothing to resume from: no model at {missing}, and no complete checkpoint at {checkpoint}"
        in fail(*command)
    )


def test_no_model_but_something_else(tmp_path):
    (tmp_path / "text").write_text("hello")
    assert "not a distboost model" in fail("inspect", tmp_path / "text")


def test_no_folder_for_the_model(data, tmp_path):
    assert "folder" in fail(*train(data, tmp_path / "none"))


def test_wrong_number_of_features(data, model, tmp_path):
    zarr.create_array(tmp_path / "x", data=np.zeros((10, 3)))
    error = fail("predict", "--model", model, "--x", tmp_path / "x", "--out", tmp_path / "out")
    assert "(10, 3)" in error
    assert "4 features" in error


def test_labels_of_another_task(data, model):
    assert "no label" in fail("evaluate", "--model", model, "--x", data / "x", "--y", data / "y")


def test_debug_shows_the_traceback(tmp_path):
    result = CliRunner().invoke(main, ["inspect", str(tmp_path / "none"), "--debug"])
    assert isinstance(result.exception, OSError)


def test_missing_chunks_are_named(data, model, tmp_path):
    zarr.create_array(tmp_path / "x", shape=(20, 4), chunks=(10, 4), dtype="f8")[:10] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # as outside of tests
        output = run("predict", "--model", model, "--x", tmp_path / "x", "--out", tmp_path / "out")
    assert re.search("Warning: 1 chunks of .*c/1/0", output)
