"""Phases: what is said before, between and after the rounds, and by calls that have none."""

from __future__ import annotations

import json
import re
import time
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest
import zarr

import distboost
from distboost import EventLog, GAMBLEClassifier, GDMCBoostClassifier
from distboost.active import QueryByCommittee
from distboost.data import dataset, ingest
from distboost.estimators.writing import write_predictions
from distboost.io import progress
from distboost.io.phases import SILENT, Phase, Phases
from distboost.kernels import _jit
from distboost.probabilities import second_training
from distboost.training import event_record
from distboost.training import events as events_module
from tests.test_progress import on_terminal

N, D = 300, 4
RAW_BYTES = N * (D + 1) * 8  # of X and y


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    return rng.normal(size=(N, D)) + np.eye(3, D)[y], y


@pytest.fixture
def stored(rows, tmp_path):
    """Paths of X and y as zarr arrays of several chunks."""
    places = []
    for name, array in zip("xy", rows, strict=True):
        places.append(str(tmp_path / name))
        zarr.create_array(places[-1], data=array, chunks=(50, *array.shape[1:]))
    return places


def is_compilation(name: str) -> bool:
    return name.startswith("compile")


class Told:
    """A callback that keeps the phases that it is told of."""

    def __init__(self):
        self.phases: list[Phase] = []

    def phase(self, phase: Phase) -> None:
        self.phases.append(phase)

    def __call__(self, progress) -> None:
        self.phases.append(Phase("round", progress.round, None, "rounds", 0.0))

    @property
    def names(self) -> list[str]:
        """Their names, each once for all reports in a row; without compilation, which depends on the cache."""
        return [
            name for name, _ in groupby(phase.name for phase in self.phases if not is_compilation(phase.name))
        ]

    def of(self, name: str) -> list[Phase]:
        return [phase for phase in self.phases if phase.name == name]


def model(*callbacks, **parameters):
    settings = {"n_estimators": 2, "max_depth": 2, "calibration": None, **parameters}
    return GDMCBoostClassifier(callbacks=list(callbacks), **settings)


def check_counts(reports: list[Phase], total: int, unit: str, least: int = 3) -> None:
    """Reports of one phase: from 0 to its total, never backwards; only the last one is the end."""
    assert len(reports) >= least
    assert {(phase.total, phase.unit) for phase in reports} == {(total, unit)}
    done = [phase.done for phase in reports]
    assert done[0] == 0
    assert done[-2:] == [total, total]
    assert all(a <= b for a, b in pairwise(done))
    assert [phase.ended for phase in reports] == [False] * (len(reports) - 1) + [True]
    assert reports[-1].rate > 0
    assert reports[-1].left == 0
    assert not any(phase.error for phase in reports)


# What is told.


def test_raw_rows_in_memory(rows):
    told = Told()
    model(told).fit(*rows)
    assert told.names == ["scan", "load", "round"]
    check_counts(told.of("scan"), RAW_BYTES, "bytes")
    check_counts(told.of("load"), N, "rows")


@pytest.mark.parametrize("weighted", [False, True])
def test_raw_rows_that_stream_are_binned(stored, weighted, monkeypatch):
    """Some of them only, in small blocks: the others are read in each pass."""
    monkeypatch.setattr(dataset, "block_rows", lambda n_features: 32)
    monkeypatch.setattr(ingest, "block_rows", lambda n_features: 32)
    told = Told()
    weights = np.ones(N) if weighted else None
    from distboost.training.staging import Staging

    monkeypatch.setattr(Staging, "_is_costly", lambda self, data: True)
    model(told).fit(*stored, weights)
    assert told.names == ["scan", "bin", "load", "round"]
    check_counts(told.of("bin"), N * D * 8, "bytes", least=4)
    check_counts(told.of("load"), N, "rows")


def test_a_binned_store_is_loaded_only(stored, tmp_path):
    told = Told()
    model(told).fit(distboost.bin(*stored, str(tmp_path / "binned")))
    assert told.names == ["load", "round"]


def test_workers_load_rows(rows, clients):
    told = Told()
    estimator = model(told)
    estimator.client = clients[2]
    estimator.fit(*rows)
    assert told.names == ["scan", "load", "round"]
    check_counts(told.of("load"), N, "rows")


def test_rounds_of_an_earlier_training_are_replayed(rows, tmp_path):
    told = Told()
    model(checkpoint=str(tmp_path / "kept")).fit(*rows)
    model(told, checkpoint=str(tmp_path / "kept"), n_estimators=3).fit(*rows, resume=True)
    assert told.names == ["scan", "load", "replay", "round"]
    check_counts(told.of("replay"), 2, "rounds", least=4)


def test_callbacks_see_the_second_training(rows):
    told = Told()
    model(told, calibration="auto").fit(*rows)
    assert told.names == ["scan", "load", "round", "calibrate", "load", "calibrate"]
    assert [phase.done for phase in told.of("calibrate") if not phase.ended] == [0, 1, 2]


def test_the_second_training_is_shown(rows, capsys, monkeypatch):
    monkeypatch.setattr("distboost.training.events.SHORT", 0.0)
    model(calibration="auto", verbose=1).fit(*rows)
    assert "GDMCBoostClassifier: calibrate " in capsys.readouterr().out


def test_an_error_ends_its_phase(rows):
    X, y = rows
    X[-1, -1] = np.inf
    told = Told()
    with pytest.raises(ValueError, match="infin"):
        model(told).fit(X, y)
    last = told.phases[-1]
    assert last.name == "scan"
    assert last.ended
    assert last.error.startswith("DataError: ")
    assert "\n" not in last.error


def test_phases_cost_no_task(stored, monkeypatch):
    """The calls are the same with and without someone who is told."""
    calls = []
    from distboost.runtime.local import LocalRuntime

    each = LocalRuntime.each

    def recorded(self, function, arguments, at_once=None):
        calls.append(function.__name__)
        yield from each(self, function, arguments, at_once)

    monkeypatch.setattr(LocalRuntime, "each", recorded)
    told = model(Told()).fit(*stored)
    with_phases, calls[:] = [*calls], []
    silent = model().fit(*stored)
    assert calls == with_phases
    np.testing.assert_array_equal(told.train_loss_, silent.train_loss_)


def test_time_left_follows_from_what_this_call_has_done(monkeypatch):
    """Not from what an earlier one had."""
    now, heard = 10.0, []
    monkeypatch.setattr("distboost.io.phases.time.perf_counter", lambda: now)
    with Phases(heard.append).begin("bin", 100, "bytes", 60) as advance:
        now = 12.0
        advance(10)
        now = 14.0
        advance(10)
    assert heard[0] == Phase("bin", 60, 100, "bytes", 0.0)
    assert heard[1] == Phase("bin", 70, 100, "bytes", 2.0, 5.0)
    assert heard[2] == Phase("bin", 80, 100, "bytes", 4.0, 5.0, 4.0)
    assert heard[3] == Phase("bin", 100, 100, "bytes", 4.0, 5.0, 0.0, True)


@pytest.mark.parametrize("n_workers", [1, 4])
def test_time_left_does_not_count_the_compilation_in_the_first_parts(n_workers, monkeypatch):
    """Ten seconds of compilation, then a part of each worker each second; the first line without it is right."""
    now, heard = 0.0, []
    monkeypatch.setattr("distboost.io.phases.time.perf_counter", lambda: now)
    with Phases(heard.append).begin("load", 100, "rows") as advance:
        for part in range(20 * n_workers):
            now = 11.0 + part // n_workers + 0.01 * (part % n_workers)
            advance(1)
    told = [(phase.seconds, phase.left) for phase in heard[1:-1] if phase.left is not None]
    assert told[0][0] >= 22
    for seconds, left in told:
        rest = (100 - n_workers * (seconds - 10)) / n_workers
        assert abs(left - rest) <= 0.1 * rest + 1


def test_empty_phases_are_not_reported():
    heard = []
    with Phases(heard.append).begin("load", 0, "rows") as advance:
        advance(0)
    assert heard == []


# The log.


def logged(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_log_begins_with_the_scan(rows, tmp_path):
    log = EventLog(tmp_path / "run.jsonl")
    for _ in range(2):  # the second training adds its lines
        model(log).fit(*rows)
    found = [event for event in logged(tmp_path / "run.jsonl") if not is_compilation(event.get("phase", ""))]
    kinds = [(event["event"], event.get("phase"), event.get("ended")) for event in found]
    once = [
        ("phase", "scan", False),
        ("phase", "scan", True),
        ("phase", "load", False),
        ("phase", "load", True),
    ]
    once += [("begin", None, None), ("round", None, None), ("round", None, None), ("end", None, None)]
    once += [("fitted", None, None)]
    assert kinds == 2 * once
    scan = found[1]
    assert (scan["done"], scan["total"], scan["unit"]) == (RAW_BYTES, RAW_BYTES, "bytes")
    assert scan["rate"] > 0
    assert scan["error"] is None
    assert len({event["training"] for event in found}) == 2
    for one in (found[:9], found[9:]):
        assert len({event["training"] for event in one}) == 1
        seconds = [event["seconds"] for event in one]
        assert seconds == sorted(seconds)
        assert seconds[0] < 0.1


def test_the_log_tells_of_the_second_training(rows, tmp_path):
    """It follows the rounds, and has its place among the phases of the training."""
    fitted = model(EventLog(tmp_path / "run.jsonl"), calibration="temperature").fit(*rows)
    found = logged(tmp_path / "run.jsonl")
    after = found[[event["event"] for event in found].index("end") + 1 : -1]
    assert {event["event"] for event in after} == {"phase"}
    first, last = (event for event in after if event["phase"] == "calibrate")
    assert (first["done"], first["ended"]) == (0, False)
    assert (last["done"], last["total"], last["unit"], last["ended"]) == (2, 2, "rounds", True)
    assert found[-1]["event"] == "fitted"
    assert len({event["training"] for event in found}) == 1
    told = event_record.logged(str(tmp_path / "run.jsonl"), fitted.digest())
    assert told.phases["calibrate"] == last["took"]


def test_a_second_training_that_fails_is_the_last_line(rows, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("no more")

    monkeypatch.setattr(second_training.Training, "on_parts", fail)
    log = EventLog(tmp_path / "run.jsonl")
    with pytest.raises(RuntimeError):
        model(log, calibration="temperature").fit(*rows)
    failed = logged(tmp_path / "run.jsonl")
    assert (failed[-1]["phase"], failed[-1]["error"]) == ("calibrate", "RuntimeError: no more")
    model(log).fit(*rows)
    assert logged(tmp_path / "run.jsonl")[len(failed)]["training"] != failed[-1]["training"]


def test_the_log_has_a_line_about_a_phase_now_and_then(tmp_path, monkeypatch):
    now = 0.0
    monkeypatch.setattr(events_module.time, "perf_counter", lambda: now)
    log = EventLog(tmp_path / "run.jsonl")
    for now in range(13):
        log.phase(Phase("scan", now, 12, "bytes", now))
    log.phase(Phase("scan", 12, 12, "bytes", now, ended=True))
    found = logged(tmp_path / "run.jsonl")
    assert [event["done"] for event in found] == [0, 5, 10, 12]
    assert [event["seconds"] for event in found] == [0, 5, 10, 12]


def test_a_training_after_a_failed_scan_has_its_own_time(rows, tmp_path):
    log = EventLog(tmp_path / "run.jsonl")
    with pytest.raises(ValueError, match="infin"):
        model(log).fit(np.where(np.arange(N) == 7, np.inf, rows[0].T).T, rows[1])
    failed = logged(tmp_path / "run.jsonl")
    assert failed[-1]["error"].startswith("DataError")
    time.sleep(0.3)
    model(log).fit(*rows)
    assert logged(tmp_path / "run.jsonl")[len(failed)]["seconds"] < 0.2


# What is shown.


def test_a_pipe_gets_a_line_for_each_phase(rows, capsys, monkeypatch):
    monkeypatch.setattr("distboost.training.events.SHORT", 0.0)
    model(verbose=1).fit(*rows)
    lines = [line for line in capsys.readouterr().out.splitlines() if "compiling" not in line]
    assert re.fullmatch(r"GDMCBoostClassifier: scan 12.0 kB in \S+ m?s, \S+ [kMG]B/s", lines[0])
    assert re.fullmatch(r"GDMCBoostClassifier: load 300 rows in \S+ m?s, [\d,]+ rows/s", lines[1])
    assert lines[2].startswith("GDMCBoostClassifier: 1/2 rounds")


def test_a_long_phase_gets_a_line_now_and_then(capsys):
    """Ever rarer: a log of hours is not all progress."""
    with progress.display("bin") as shown:
        for now in range(20):
            shown.phase(Phase("scan", now * 10**9, 20 * 10**9, "bytes", now, 1e9, 20.0 - now))
        shown.phase(Phase("scan", 20 * 10**9, 20 * 10**9, "bytes", 20.0, 1e9, 0.0, True))
        for now in range(3600):
            shown.phase(Phase("bin", now * 10**9, 3600 * 10**9, "bytes", now, 1e9, 3600.0 - now))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "bin: scan 5.0 GB of 20.0 GB, 1.0 GB/s, 15 s left",
        "bin: scan 15.0 GB of 20.0 GB, 1.0 GB/s, 5.0 s left",
        "bin: scan 20.0 GB in 20 s, 1.0 GB/s",
    ]
    assert 3 <= len(lines[3:]) <= 6


SCAN_SLOWLY = """
import time
from distboost.io.progress import phases_shown
with phases_shown(1, "bin") as phases, phases.begin("scan", 4 * 10**9, "bytes") as advance:
    for _ in range(4):
        time.sleep(0.4)
        advance(10**9)
"""


@pytest.mark.parametrize("width", [30, 100])
def test_a_terminal_shows_a_bar_and_keeps_the_numbers(width):
    shown = re.sub(r"\s+", "", on_terminal(width, SCAN_SLOWLY))
    assert "scan2.0GBof4.0GB" in shown
    assert "sleft" in shown
    assert re.search(r"scan4\.0GBin1\.\ds,2\.\dGB/s", shown)


def test_bin_shows_its_phases(stored, tmp_path, capsys):
    distboost.bin(*stored, str(tmp_path / "silent"))
    assert capsys.readouterr().out == ""
    distboost.bin(*stored, str(tmp_path / "binned"), verbose=1)
    lines = [line.split(" in ")[0] for line in capsys.readouterr().out.splitlines() if "compil" not in line]
    assert lines == ["scan 12.0 kB", "bin 9.6 kB"]


def test_evaluate_and_predict_show_their_rows(stored, rows, tmp_path, capsys):
    trained = model().fit(*rows)
    distboost.evaluate(trained, *stored, verbose=1)
    write_predictions(
        trained, stored[0], str(tmp_path / "out"), proba=False, overwrite=False, client=None, verbose=1
    )
    lines = [line.split(" in ")[0] for line in capsys.readouterr().out.splitlines() if "compil" not in line]
    assert lines == ["evaluate 300 rows", "predict 300 rows"]


def test_queries_show_the_rows_of_the_pool(rows, capsys):
    X, y = rows
    learner = QueryByCommittee(GAMBLEClassifier(n_estimators=3), X, n_initial=10, batch_size=5, verbose=1)
    asked = learner.query()
    learner.teach(asked, y[asked])
    capsys.readouterr()
    learner.query()
    lines = [line for line in capsys.readouterr().out.splitlines() if "compil" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("query 300 rows in ")


def test_progress_may_go_to_stderr(capsys):
    with (
        progress.on_stderr(),
        progress.phases_shown(1) as phases,
        phases.begin("evaluate", 2, "rows") as advance,
    ):
        advance(2)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("evaluate 2 rows in ")
    with progress.phases_shown(0) as phases:
        assert phases is SILENT


# Compilation.


def test_compilation_is_reported_once(rows, monkeypatch, capsys):
    """Of a kernel that is not in the cache: here, because its file is said to be elsewhere."""
    monkeypatch.setattr(_jit, "_watching", watching := [])
    told = Told()

    def compile_two(progress) -> None:
        for tell in [*watching, *watching]:
            tell()

    model(told, compile_two, verbose=1).fit(*rows)
    assert told.of("compile") == [Phase("compile", 0, None, "kernels", 0.0)]
    said = capsys.readouterr().out
    assert said.count("GDMCBoostClassifier: compiling kernels (once per installation)\n") == 1
    assert not watching


COMPILE = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from distboost.kernels._jit import compilation_watched
import own
heard = []
with compilation_watched(lambda: heard.append(1)):
    own.twice(3)
    own.twice(4)
print(len(heard))
"""


def test_only_kernels_that_are_not_cached_count_as_compiled(tmp_path):
    import subprocess
    import sys

    (tmp_path / "own.py").write_text(
        "from distboost.kernels._jit import kernel\n\n@kernel\ndef twice(n):\n    return 2 * n\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", COMPILE.format(folder=str(tmp_path))],
            capture_output=True, text=True, check=True, timeout=100,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert said == ["1", "0"]
