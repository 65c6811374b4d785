"""Callbacks, and the log of events."""

from __future__ import annotations

import json
import re
import signal

import fsspec
import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from numpy.testing import assert_array_equal

import distboost
from distboost import EventLog, GDMCBoostClassifier, Progress
from distboost.baselines import MultiBoostClassifier
from distboost.cli import main
from distboost.errors import StoreError
from tests.programs import Program
from tests.watching.sets import make


def test_callbacks_see_the_model_so_far(parts, saved, tmp_path):
    train, a, b = parts
    kept = []
    model = make(n_estimators=4, callbacks=[kept.append], eval_metric="log_loss")
    model.fit(*train, eval_set={"a": a, "b": b})
    for n, progress in enumerate(kept, 1):
        alone = make(n_estimators=n, eval_metric="log_loss").fit(*train, eval_set={"a": a, "b": b})
        assert progress.evaluations["b"]["log_loss"] == model.eval_history_["b"]["log_loss"][n - 1]
        assert progress.best_round == np.argmin(model.eval_history_["b"]["log_loss"][:n]) + 1
        found = progress.model()
        assert_array_equal(found.predict_proba(a[0]), alone.predict_proba(a[0]))
        assert saved(found.set_params(n_estimators=n)) == saved(alone)
        assert found.n_iter_ == len(found.eval_history_["a"]["loss"]) == n


def test_a_model_that_was_kept_stays_as_it_was(parts):
    """MultiBoost rewrites earlier rounds."""
    (X, y), _, _ = parts
    seen = []

    def look(progress):
        seen.append((progress, progress.model().scores(X[:50])))

    model = MultiBoostClassifier(calibration=None, n_estimators=3, callbacks=[look], n_jobs=1).fit(X, y)
    for progress, scores in seen:
        assert_array_equal(progress.model().scores(X[:50]), scores)
        progress.model().fit(X[:100], y[:100])  # its own, not the training's
    assert_array_equal(model.scores(X[:50]), seen[-1][1])
    assert model.n_iter_ == 3


# The log.


def events_of(path):
    """The events in a log, without the phases."""
    content = path.read_text()
    assert content.endswith("\n")
    return [event for event in map(json.loads, content.splitlines()) if event["event"] != "phase"]


def test_the_log_has_a_line_for_each_event(parts, tmp_path):
    path = tmp_path / "run.jsonl"
    train, a, b = parts
    logged = make(n_estimators=3, callbacks=[EventLog(path)], eval_metric="log_loss")
    logged.fit(*train, eval_set={"a": a, "b": b})
    begin, *rounds, end, fitted = events_of(path)
    assert begin["n_rows"] == {"train": 900, "a": 200, "b": np.count_nonzero(b[2])}
    assert (begin["event"], begin["rounds_done"], begin["n_rounds"], begin["n_classes"]) == (
        "begin",
        0,
        3,
        10,
    )
    assert [event["round"] for event in rounds] == [1, 2, 3]
    assert [event["train"]["loss"] for event in rounds] == logged.train_loss_.tolist()
    assert [event["evaluations"]["b"]["log_loss"] for event in rounds] == logged.eval_history_["b"][
        "log_loss"
    ].tolist()
    assert (end["event"], end["outcome"], end["rounds_done"], end["best_round"]) == ("end", "rounds", 3, 3)
    assert (fitted["event"], fitted["model"]) == ("fitted", logged.digest())
    assert fitted["took"]["seconds"] == logged.training_record_.seconds
    logged.set_params(n_estimators=4).fit(*train, eval_set={"a": a, "b": b}, resume=True)
    more = events_of(path)[6:]
    assert [event["event"] for event in more] == ["begin", "round", "end", "fitted"]
    assert more[-1]["model"] == logged.digest()
    assert (more[0]["rounds_done"], more[1]["round"]) == (3, 4)


def test_the_log_after_an_error_and_a_line_that_was_cut_off(parts, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"event": "end"}\n{"event": "beg')

    def fail(progress):
        raise RuntimeError("no\nmore")

    with pytest.raises(RuntimeError):
        make(callbacks=[EventLog(path), fail]).fit(*parts[0])
    earlier, begin, first, end = events_of(path)
    assert (earlier["event"], begin["event"], first["round"]) == ("end", "begin", 1)
    assert (end["outcome"], end["error"]) == ("error", "RuntimeError: no more")


def test_numbers_that_json_does_not_have(tmp_path):
    log = EventLog(tmp_path / "run.jsonl")
    log(Progress(1, 2, float("inf"), 0.5, evaluations={"a": {"loss": float("nan")}}))
    (event,) = events_of(tmp_path / "run.jsonl")
    assert event["train"] == {"loss": None, "error": 0.5}
    assert event["evaluations"] == {"a": {"loss": None}}


def test_the_log_in_an_object_store(parts):
    place = "memory://runs/run.jsonl"
    for _ in range(2):
        make(n_estimators=2, callbacks=[EventLog(place)]).fit(*parts[0])
    lines = fsspec.open(place).open().read().decode().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert [event for event in events if event != "phase"] == ["begin", "round", "round", "end", "fitted"] * 2
    assert events.index("phase") < events.index("begin")


def test_a_killed_training_leaves_whole_lines(tmp_path):
    program = (
        "import os, sys\n"
        "from sklearn.datasets import load_iris\n"
        "from distboost import EventLog, GDMCBoostClassifier\n"
        "kill = lambda progress: progress.round == 3 and os.kill(os.getpid(), 9)\n"
        "GDMCBoostClassifier(n_jobs=1, callbacks=[EventLog(sys.argv[1]), kill]).fit(*load_iris(return_X_y=True))\n"
    )
    path = tmp_path / "run.jsonl"
    process = Program(program, path)
    process.communicate(timeout=100)
    assert process.returncode == -signal.SIGKILL
    assert [event["event"] for event in events_of(path)] == ["begin", "round", "round", "round"]


def test_sets_and_events_on_the_command_line(parts, tmp_path):
    (X, y), (Xt, yt), (Xv, yv, wv) = parts
    for name, array in {"x": X, "y": y, "xt": Xt, "yt": yt, "xv": Xv, "yv": yv, "wv": wv}.items():
        zarr.create_array(tmp_path / name, data=array)
    train = ["train", "--algorithm", "gd-mcboost", "--x", tmp_path / "x", "--y", tmp_path / "y"]
    train += ["--model", tmp_path / "m", "--set", "n_estimators=2", "--set", "eval_metric=log_loss"]
    sets = [
        "--eval", f"test={tmp_path}/xt,{tmp_path}/yt",
        "--eval", f"valid={tmp_path}/xv,{tmp_path}/yv,{tmp_path}/wv",
        "--events", tmp_path / "run.jsonl",
    ]  # fmt: skip

    def run(*arguments):
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    result = run(*train, *sets)
    assert result.exit_code == 0, result.output
    assert re.search(r"test error .*%, log_loss .*valid error .*%, log_loss", result.output)
    model = distboost.load(tmp_path / "m")
    assert list(model.eval_history_) == ["test", "valid"]
    assert [event["event"] for event in events_of(tmp_path / "run.jsonl")] == [
        "begin",
        "round",
        "round",
        "end",
        "fitted",
    ]
    for wrong in ("test", "=x,y", "test=x,", "a=1,2,3,4"):
        assert "not of the form NAME=X,Y" in run(*train, "--eval", wrong).output
    assert "two sets the name 'a'" in run(*train, "--eval", "a=x,y", "--eval", "a=x,y").output


def test_a_log_in_no_folder_is_refused_before_the_training(tmp_path, blobs):
    log = EventLog(tmp_path / "none" / "run.jsonl")
    with pytest.raises(StoreError, match=r"cannot write .*run\.jsonl: the folder .*none does not exist"):
        GDMCBoostClassifier(n_estimators=1, callbacks=[log]).fit(*blobs)


def test_a_callback_that_cannot_be_called_is_refused_before_the_training(blobs):
    with pytest.raises(TypeError, match="callbacks has 'log', which is not callable"):
        GDMCBoostClassifier(n_estimators=1, callbacks=["log"]).fit(*blobs)
