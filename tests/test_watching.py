"""What is measured on evaluation rows after each round, and what stops a training."""

from __future__ import annotations

import json
import re
import signal

import dask.array as da
import fsspec
import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

import distboost
from distboost import EventLog, GAMBLEClassifier, GDMCBoostClassifier, Progress
from distboost.baselines import AdaBoostMOClassifier, MultiBoostClassifier
from distboost.cli import main
from distboost.data import ingest
from distboost.data.dataset import RawDataset
from distboost.data.store import recoding
from distboost.errors import DataError, ModelFormatError
from distboost.io.files import encoded, read_file
from distboost.rows.row_metrics import LARGEST, digit_sums, mean
from distboost.training import memory_plan, run
from tests.programs import Program


@pytest.fixture(scope="module")
def parts():
    """Training rows and two sets of evaluation rows, the second with weights."""
    X, y = load_digits(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 4, 400).astype(float)
    return (X[:900], y[:900]), (X[900:1100], y[900:1100]), (X[1100:1500], y[1100:1500], weights)


def make(**more):
    return GDMCBoostClassifier(
        **{"n_estimators": 5, "max_depth": 2, "n_jobs": 1, "calibration": None, **more}
    )


def brier(labels, P):
    """The Brier score of each row."""
    Q = P.copy()
    Q[np.arange(len(P)), labels] -= 1
    return np.square(Q).sum(axis=1)


def own_loss(labels, P):
    return -np.log(P[np.arange(len(P)), labels])


# Sets and their histories.


@pytest.mark.parametrize(
    ("form", "names"),
    [
        (lambda a, b: a, ["eval"]),
        (lambda a, b: [a], ["eval"]),
        (lambda a, b: [a, b], ["eval_0", "eval_1"]),
        (lambda a, b: {"one": a, "two": b}, ["one", "two"]),
        (lambda a, b: {"one": list(a)}, ["one"]),
    ],
    ids=["pair", "list of one", "list", "mapping", "mapping of a list"],
)
def test_forms_of_sets(form, names, parts, tmp_path):
    train, a, b = parts
    model = make(n_estimators=3).fit(*train, eval_set=form(a, b))
    alone = make(n_estimators=3).fit(*train, eval_set=a)
    assert list(model.eval_history_) == names
    assert list(model.eval_history_[names[0]]) == ["loss", "error"]
    for found in (model.eval_loss_, model.eval_history_[names[0]]["loss"]):
        assert_array_equal(found, alone.eval_loss_)
    assert_array_equal(model.eval_history_[names[0]]["error"], alone.eval_error_)
    assert_array_equal(model.eval_error_, alone.eval_error_)
    model.save(tmp_path / "model")
    again = distboost.load(tmp_path / "model")
    assert list(again.eval_history_) == names
    assert_array_equal(again.eval_history_[names[-1]]["error"], model.eval_history_[names[-1]]["error"])


def test_a_set_without_a_name_leaves_the_file_as_it_was(parts, saved, tmp_path):
    model = make().fit(*parts[0], eval_set=parts[1])
    saved(model)
    header, arrays = read_file(str(tmp_path / "saved.model"))
    assert "evaluation" not in header
    assert {"eval_loss", "eval_error"} == {name for name in arrays if name.startswith("eval")}


@pytest.mark.parametrize(
    ("eval_set", "message"),
    [
        ({}, r"eval_set is empty"),
        ([], r"eval_set is empty"),
        ({3: "a"}, r"a set of the name 3\. Give each set a text"),
        ({"": "a"}, r"a set of the name ''"),
        ({"a": "three"}, r"eval_set 'a' has 4 items\. Give \(X, y\) or \(X, y, sample_weight\)"),
        ({"a": "one"}, r"eval_set 'a' has 1 items"),
        ({"a": "array"}, r"eval_set 'a' has the type ndarray"),
        ("short weights", r"sample_weight\.shape == \(3,\)|has 200 rows but .*sample_weight has 3"),
        (
            "weights of 0",
            r"every row has weight 0 in eval_set 'a' sample_weight.*Give some row a weight above 0",
        ),
        ("negative", r"[Nn]egative values|is -1\.0 in row 0"),
    ],
)
def test_sets_that_make_no_sense(eval_set, message, parts):
    train, (X, y), _ = parts
    weights = {"short weights": np.ones(3), "weights of 0": np.zeros(200), "negative": np.full(200, -1.0)}
    weights["weights of 0"] = da.zeros(200)
    entries = {"three": (X, y, y, y), "one": (X,), "array": X, "a": (X, y)}
    if isinstance(eval_set, str):
        eval_set = {"a": (X, y, weights[eval_set])}
    elif isinstance(eval_set, dict):
        eval_set = {name: entries[entry] for name, entry in eval_set.items()}
    with pytest.raises(ValueError, match=message):
        make().fit(*train, eval_set=eval_set)


@pytest.mark.parametrize("metric", ["log_loss", brier], ids=["log_loss", "callable"])
def test_weights_are_repeats(metric, parts):
    train, _, (X, y, w) = parts
    repeated = np.repeat(np.arange(len(y)), w.astype(int))
    name = metric if isinstance(metric, str) else "brier"
    model = make(eval_metric=metric)
    model.fit(*train, eval_set={"weights": (X, y, w), "repeats": (X[repeated], y[repeated])})
    weighted, repeats = model.eval_history_.values()
    assert list(weighted) == ["loss", "error", name]
    for metric in weighted:
        assert_array_equal(weighted[metric], repeats[metric], err_msg=metric)


def test_weights_of_any_size(parts):
    train, _, (X, y, w) = parts
    rng = np.random.default_rng(1)
    w = rng.exponential(size=len(y)) * 1e90
    model = make(eval_metric="log_loss").fit(*train, eval_set=(X, y, w))
    for t, F in enumerate(model.staged_scores(X)):
        P = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
        wrong = F.argmax(axis=1) != y
        found = {name: values[t] for name, values in model.eval_history_["eval"].items()}
        assert found["log_loss"] == pytest.approx(np.average(own_loss(y, P), weights=w), rel=1e-4)
        assert found["error"] == pytest.approx(np.average(wrong, weights=w), rel=1e-4)


@pytest.mark.parametrize("cls", [GDMCBoostClassifier, GAMBLEClassifier, AdaBoostMOClassifier])
def test_log_losses_are_those_of_evaluate(cls, parts):
    (X, y), (Xt, yt), _ = parts
    model = cls(calibration=None, n_estimators=4, eval_metric="log_loss", n_jobs=1).fit(
        X, y % 4, eval_set=(Xt, yt % 4)
    )
    history = model.eval_history_["eval"]["log_loss"]
    found = distboost.evaluate(model, Xt, yt % 4)
    assert history[-1] == pytest.approx(found["log_loss"], rel=1e-14)
    assert len(set(history)) == 4


def test_sums_of_digits_are_exact():
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(size=50), [0.0, 2.0**-62, -(2.0**-31), LARGEST - 1, 1 - LARGEST]])
    units = rng.integers(0, 2**30, len(values))
    halves = slice(0, 20), slice(20, None)
    sums = sum(digit_sums(values[part], units[part]) for part in halves)
    assert_array_equal(sums, digit_sums(values, units))
    exact = sum(int(np.floor(v * 2.0**40)) * 2**22 * int(u) for v, u in zip(values, units, strict=True))
    assert mean(sums, int(units.sum())) == pytest.approx(exact / (int(units.sum()) << 62), rel=1e-11)


def test_the_same_bytes_anywhere(parts, clients, saved, tmp_path, monkeypatch):
    """Histories of two sets by a function: of any blocks, threads and workers, and of rows that stream."""
    train, a, b = parts
    evaluation = {"a": a, "b": b}

    def trained(n_jobs=1, client=None, **more):
        model = make(n_estimators=4, eval_metric=lambda labels, P: brier(labels, P), n_jobs=n_jobs, **more)
        model.client = client
        return model.fit(*train, eval_set=evaluation)

    alone = trained()
    expected = saved(alone)
    assert saved(trained(n_jobs=2)) == expected
    for n in (1, 2, 3):
        assert saved(trained(client=clients[n])) == expected
    # Little memory: none is reckoned for the libraries, nor to read the raw rows.
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 60)
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(memory_plan.MemoryPlan, "for_ingest", None)
    monkeypatch.setattr(RawDataset, "least_ingest", lambda *arguments: 0)
    limit = int(0.9 * sum(part.n_bytes for part in alone.memory_plan_.parts[1:]))
    streamed = trained(memory_limit=limit, scratch=tmp_path / "scratch")
    assert streamed.memory_plan_.streamed > 0
    assert saved(streamed) == expected


def test_metrics_cost_no_round_trip_and_no_pass(parts, monkeypatch):
    asked = []
    train = run.train

    def counted(algorithm, rows, *rest):
        found = train(algorithm, rows, *rest)
        asked.append((dict(rows.calls), rows.passes()))
        return found

    monkeypatch.setattr(run, "train", counted)
    for metric in ("error", "log_loss", brier):
        make(eval_metric=metric).fit(*parts[0], eval_set=parts[1])
    assert asked[0] == asked[1] == asked[2]


# Stopping.


class Rising:
    """A metric that has these values, one for each round."""

    __name__ = "given"

    def __init__(self, *values):
        self.values = iter(values)

    def __call__(self, labels, P):
        return np.full(len(labels), next(self.values))


@pytest.mark.parametrize(
    ("values", "min_delta", "rounds", "best"),
    [
        ([5, 4, 3, 4, 5, 6], 0.0, 5, 3),
        ([5, 4, 4, 4, 4, 4], 0.0, 4, 2),
        ([1, 2, 3, 4, 5, 6], 0.0, 3, 1),
        ([5, 4.9, 4.8, 4.7, 4.6, 4.5], 0.0, 6, 6),
        ([5, 4.9, 4.7, 4.6, 4.4, 4.3], 0.25, 6, 5),  # better by more than 0.25 every second round
        ([5, 4.9, 4.8, 4.7, 4.6, 4.5], 1.0, 3, 1),
        ([5, 4, 3, 2, 1, 0], 1.0, 6, 5),  # by exactly 1 from round to round
        ([-1, -2, -3, -1, 0, 1], 0.0, 5, 3),
    ],
)
def test_the_best_round(values, min_delta, rounds, best, parts):
    model = make(
        n_estimators=6, eval_metric=Rising(*values), min_delta=min_delta, early_stopping_rounds=2, n_jobs=1
    ).fit(*parts[0], eval_set=tuple(part[:100] for part in parts[1]))
    assert model.eval_history_["eval"]["given"].tolist() == values[:rounds]
    assert (model.n_iter_, model.best_iteration_) == (rounds, best)
    assert model.outcome_ == ("rounds" if rounds == 6 else "early stopping")


def test_the_last_set_stops(parts):
    (X, y), _, _ = parts
    hopeless = X[:100], (y[:100] + 1) % 10
    learnable = X[:300], y[:300]
    stopping = make(n_estimators=12, early_stopping_rounds=3, eval_metric="loss")
    stopped = stopping.fit(X, y, eval_set={"learnable": learnable, "hopeless": hopeless})
    assert (stopped.outcome_, stopped.best_iteration_) == ("early stopping", 1)
    assert_array_equal(stopped.eval_loss_, stopped.eval_history_["learnable"]["loss"])
    stopped = stopping.fit(X, y, eval_set={"hopeless": hopeless, "learnable": learnable})
    assert (stopped.outcome_, stopped.best_iteration_) == ("rounds", 12)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (lambda labels, P: 0.5, r"<lambda> returned values of shape \(\) and dtype float64 for 200 rows"),
        (lambda labels, P: P, r"returned values of shape \(200, 10\)"),
        (lambda labels, P: labels.astype(str), r"dtype <U"),
        (
            lambda labels, P: np.where(labels == 3, np.nan, 0),
            r"returned nan for a row\. Return finite numbers",
        ),
        (lambda labels, P: np.full(len(P), 2.0**31), r"returned 2147483648\.0 for a row"),
    ],
)
def test_metrics_that_make_no_sense(metric, message, parts, clients):
    for client in (None, clients[2]):
        model = make(eval_metric=metric)
        model.client = client
        with pytest.raises(DataError, match=message.replace("200", r"\d+")):
            model.fit(*parts[0], eval_set=parts[1])


def test_a_function_with_the_name_of_a_metric(parts):
    def log_loss(labels, P):
        return own_loss(labels, P)

    with pytest.raises(DataError, match="a function named 'log_loss', which is also the name of a metric"):
        make(eval_metric=log_loss).fit(*parts[0], eval_set=parts[1])


# Resuming, and files.


@pytest.mark.parametrize("cls", [GDMCBoostClassifier, MultiBoostClassifier])
@pytest.mark.parametrize("metric", ["log_loss", brier], ids=["log_loss", "callable"])
def test_resumed_from_a_checkpoint(cls, metric, parts, saved, tmp_path):
    train, a, b = parts

    def trained(n, **how):
        model = cls(
            n_estimators=n, early_stopping_rounds=4, eval_metric=metric, min_delta=0.001, n_jobs=1, **how
        )
        return model.fit(*train, eval_set={"a": a, "b": b}, resume=n > 3 and "checkpoint" in how)

    whole = trained(6)
    trained(3, checkpoint=tmp_path / "checkpoint", checkpoint_every=1)
    resumed = trained(6, checkpoint=tmp_path / "checkpoint")
    assert saved(resumed) == saved(whole)
    again = distboost.load(tmp_path / "checkpoint")
    assert_array_equal(again.eval_history_["b"]["loss"], whole.eval_history_["b"]["loss"])


def test_resumed_with_other_sets(parts, saved):
    train, a, b = parts
    whole = make(n_estimators=4).fit(*train, eval_set={"b": b})
    model = make(n_estimators=2).fit(*train, eval_set={"a": a})
    assert saved(model.set_params(n_estimators=4).fit(*train, eval_set={"b": b}, resume=True)) == saved(whole)

    corrective = MultiBoostClassifier(calibration=None, n_estimators=2, n_jobs=1).fit(
        *train, eval_set={"a": a}
    )
    corrective.set_params(n_estimators=4)
    with pytest.raises(DataError, match=r"evaluated on 'a', this one on 'b'.*Give the same eval_set"):
        corrective.fit(*train, eval_set={"b": b}, resume=True)
    corrective.fit(*train, eval_set={"a": b}, resume=True)


def test_resumed_with_another_function(parts):
    def other(labels, P):
        return brier(labels, P)

    train, a, _ = parts
    model = make(n_estimators=2, eval_metric=brier).fit(*train, eval_set=a)
    model.set_params(n_estimators=4, eval_metric=other)
    with pytest.raises(DataError, match="had the eval_metric 'brier', not 'other'"):
        model.fit(*train, eval_set=a, resume=True)
    with pytest.raises(DataError, match=r"min_delta=0\.0, not 0\.5"):
        model.set_params(eval_metric=brier, min_delta=0.5).fit(*train, eval_set=a, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        {"sets": []},
        {"sets": "ab"},
        {"sets": ["a", "a"]},
        {"sets": [1, 2]},
        {"sets": ["a", "b", "c"]},
        {"metrics": ["log_loss", 3]},
        {"metrics": []},
        {"metric": "brier"},
        {"min_delta": -1.0},
        {"min_delta": "0"},
        {"more": 1},
    ],
    ids=json.dumps,
)
def test_headers_that_do_not_fit_their_histories(change, parts, tmp_path):
    train, a, b = parts
    make(n_estimators=1, eval_metric="log_loss").fit(*train, eval_set={"a": a, "b": b}).save(tmp_path / "m")
    header, arrays = read_file(str(tmp_path / "m"))
    header["evaluation"] |= change
    (tmp_path / "m").write_bytes(encoded(header, arrays))
    with pytest.raises(ModelFormatError):
        distboost.load(tmp_path / "m")


# Callbacks.


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


# Binned stores.


def test_binned_stores_are_sets(parts, saved, clients, tmp_path):
    """A store with raw values, in other bins than the training rows'; one with the same edges; and the one trained on."""
    (X, y), _, (Xv, yv, wv) = parts
    rows = np.arange(150, 400)  # other values, and not all classes
    rows = rows[yv[rows] != 3]
    X, Xv = X + 0.001 * np.arange(len(X))[:, None], Xv[rows]
    yv, wv = yv[rows], wv[rows]
    distboost.bin(X, y, f"{tmp_path}/train", max_bins=30)
    distboost.bin(Xv, yv, f"{tmp_path}/values", sample_weight=wv, keep_values=True)
    raw = {"v": (Xv, yv, wv), "t": (X, y)}
    stores = {"v": f"{tmp_path}/values", "t": (f"{tmp_path}/train", None)}
    expected = saved(make(max_bins=30, eval_metric="log_loss").fit(X, y, eval_set=raw))
    for client in (None, clients[2]):
        model = make(max_bins=30, eval_metric="log_loss")
        model.client = client
        assert saved(model.fit(X, y, eval_set=stores)) == expected
        assert saved(model.fit(f"{tmp_path}/train", eval_set=stores)) == expected


def test_a_store_of_finer_bins_and_one_of_others(parts, tmp_path):
    (X, y), _, _ = parts
    distboost.bin(X, y, f"{tmp_path}/fine")
    coarse = X[:, :20] // 8 * 8  # of few values, whose edges are not all among those of the fine ones
    with pytest.raises(
        DataError, match=r"fine' was binned by other edges.*divide feature \d+ at .*keep_values=True"
    ):
        make().fit(np.hstack([coarse + 0.3, X[:, 20:]]), y, eval_set=f"{tmp_path}/fine")
    known = np.where(y < 5, y, 9)
    with pytest.raises(DataError, match=r"has the label .*5.*none of the 6 classes"):
        make().fit(X, known, eval_set=f"{tmp_path}/fine")
    with pytest.raises(DataError, match="has its own weights"):
        make().fit(X, y, eval_set=(f"{tmp_path}/fine", None, np.ones(900)))


@pytest.mark.parametrize("seed", range(5))
def test_bins_of_finer_bins(seed):
    rng = np.random.default_rng(seed)
    fine = np.unique(rng.normal(size=40))
    coarse = np.sort(rng.choice(fine, 7, replace=False))
    values = np.concatenate([rng.normal(size=200), fine, [np.nan]])

    def bins_of(edges):
        return np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, side="left"))

    table = recoding._table(0, fine, coarse, "store")
    assert_array_equal(table[bins_of(fine)], bins_of(coarse))
