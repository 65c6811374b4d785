"""`distboost predict` in processes of its own that are interrupted: a result is complete, or nobody can open it."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import distboost
from distboost.cli import main
from distboost.data.result import UNFINISHED
from tests.failing import error_of
from tests.faults.blind import ApartWorkers, check_mounts
from tests.programs import Program

N, CHUNK = 40_000, 10_000
DEADLINE = 60.0
# Tasks of one chunk each.
PROGRAM = """
import os, signal
from distboost.cli import main
from distboost.data.result import OutputArray
from distboost.prediction import streamed
streamed.TASK_BYTES = 2**17
#replaced#
main()
"""
# The process kills itself when it has written the first chunk.
KILLED = """
write = OutputArray.write
def killing(result, start, values):
    write(result, start, values)
    if start == 0:
        os.kill(os.getpid(), signal.SIGKILL)
OutputArray.write = killing
"""
SLOW = "from tests import slowly; streamed.predict_into = slowly.predict_into"
A_SECOND_PER_CHUNK = f"{SLOW}; slowly.PIECE_SECONDS = 0.01"
INTERRUPTED = """
from tests import slowly
streamed.predict_into, slowly.evaluating.judge_part = slowly.predict_into_and_interrupt, slowly.judge_and_interrupt
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    """A folder with rows x, their labels y, and two models."""
    folder = tmp_path_factory.mktemp("predict")
    X, y = map(np.asarray, blobs)
    rows = np.random.default_rng(0).integers(0, len(X), N)
    names = np.array(["blue", "green", "red"])[y]
    zarr.create_array(folder / "x", data=X[rows].astype("f4"), chunks=(CHUNK, 4))
    zarr.create_array(folder / "y", data=names[rows].astype(np.dtypes.StringDType()), chunks=(CHUNK,))
    distboost.GDMCBoostClassifier(n_estimators=20, max_depth=3).fit(X, names).save(folder / "names")
    distboost.GAMBLEClassifier(n_estimators=5).fit(X, y).save(folder / "other")
    return folder


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """In this process as in the others."""
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 2**17)


@pytest.fixture(scope="module")
def whole(data):
    """What is written if nothing goes wrong."""
    done = process("predict", *options(data, data / "whole"))
    _, errors = done.communicate(timeout=DEADLINE)
    assert done.returncode == 0, errors
    return files(data / "whole")


def options(data, out, *more, model="names"):
    return ("--model", data / model, "--x", data / "x", "--out", out, *more)


def process(*arguments, replaced="", **streams) -> Program:
    # A session of its own: signals for a whole terminal are not for us.
    return Program(PROGRAM.replace("#replaced#", replaced), *arguments, new_session=True, **streams)


def run(*arguments) -> str:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments) -> str:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 1, result.output
    return error_of(result.stderr)


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def wait_for(condition, done: Program) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        assert done.poll() is None, done.communicate()
        time.sleep(0.002)


def wait_for_text(terminal, pattern: bytes) -> None:
    deadline = time.monotonic() + DEADLINE
    while not terminal.shows(pattern):
        assert time.monotonic() < deadline, terminal.shown
        time.sleep(0.002)


def assert_unreadable(out: Path) -> None:
    assert not (out / "zarr.json").exists()
    with pytest.raises(FileNotFoundError):
        zarr.open_array(out, mode="r")


@pytest.fixture(scope="module")
def unfinished(data, tmp_path_factory):
    """The place of a prediction whose process was killed after its first chunk."""
    out = tmp_path_factory.mktemp("unfinished") / "out"
    done = process("predict", *options(data, out), replaced=KILLED)
    _, errors = done.communicate(timeout=DEADLINE)
    assert done.returncode == -signal.SIGKILL, errors
    assert (out / "c/0").exists()
    assert (out / UNFINISHED).exists()
    assert_unreadable(out)
    return out


@pytest.fixture
def killed(unfinished, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(unfinished, tmp_path / "out"))


# Interrupted.


@pytest.mark.parametrize("more", [(), ("--workers", 2)], ids=["here", "workers"])
def test_control_c(more, data, tmp_path):
    """As a terminal sends it: to the whole group of processes. No chunk that was under way is finished."""
    out = tmp_path / "out"
    done = process("predict", *options(data, out, *more), replaced=INTERRUPTED)
    _, errors = done.communicate(timeout=DEADLINE)
    assert done.returncode == 130, errors
    assert errors.endswith("\nAborted!\n")  # before, a busy machine may have had a task submitted again
    assert not {"Traceback", "CancelledError"} & set(errors.replace("'", " ").split())
    assert [chunk.name for chunk in (out / "c").iterdir()] == ["0"]
    assert_unreadable(out)


class Terminal:
    """What a process shows on a terminal."""

    def __init__(self):
        self._ours, self.theirs = pty.openpty()
        self.shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with suppress(OSError):  # nobody writes to it any more
            while True:
                self.shown += os.read(self._ours, 2**16)

    def shows(self, pattern: bytes) -> bool:
        return re.search(pattern, self.shown) is not None

    def close(self):
        os.close(self.theirs)
        self._reader.join(DEADLINE)
        os.close(self._ours)


@pytest.fixture
def terminal():
    found = Terminal()
    yield found
    found.close()


def test_control_c_of_an_evaluation(data, terminal):
    arguments = ("--model", data / "names", "--x", data / "x", "--y", data / "y")
    done = process("evaluate", *arguments, stderr=terminal.theirs, replaced=INTERRUPTED)
    assert done.wait(DEADLINE) == 130
    done.stdout.close()
    wait_for_text(terminal, rb"Aborted!")
    assert terminal.shows(rb"evaluate 0 rows of 40,000 rows")
    assert not terminal.shows(rb"[234]0,000 rows of 40,000 rows")


def test_a_killed_prediction_goes_on(killed, data, whole):
    kept = (killed / "c/0").stat().st_mtime_ns
    done = process("predict", *options(data, killed))
    _, errors = done.communicate(timeout=DEADLINE)
    assert done.returncode == 0, errors
    assert re.search(r"continuing after [1-4]0,000 rows that were predicted before", errors)
    assert files(killed) == whole
    assert (killed / "c/0").stat().st_mtime_ns == kept
    assert "zarr array" in fail("predict", *options(data, killed))


def test_how_far_it_is_is_shown(killed, data, terminal):
    done = process("predict", *options(data, killed), stdout=terminal.theirs, replaced=A_SECOND_PER_CHUNK)
    assert done.wait(DEADLINE) == 0
    done.stderr.close()
    wait_for_text(terminal, rb"40,000 rows in .* s, .* rows/s")
    assert terminal.shows(rb"[123]0,000 rows of 40,000 rows")  # from what was kept


# Another command at the place of an unfinished prediction, or of a complete one.


def test_chunks_of_another_model_are_not_mixed(killed, data):
    before = files(killed)
    error = fail("predict", *options(data, killed, model="other"))
    assert re.search(r"an unfinished prediction at .*out', of another model.* --overwrite", error)
    assert files(killed) == before


def test_chunks_of_another_kind_are_not_mixed(killed, data):
    assert "of the other kind (labels or probabilities)" in fail("predict", *options(data, killed, "--proba"))


def test_chunks_of_rows_that_have_changed_are_not_mixed(killed, data, tmp_path):
    shutil.copytree(data / "x", tmp_path / "x")
    os.utime(tmp_path / "x/c/3/0")
    error = fail("predict", *options(data, killed)[:2], "--x", tmp_path / "x", "--out", killed)
    assert "of other rows, or of rows that were written to since" in error


def test_overwrite_replaces_what_is_unfinished(killed, data, tmp_path):
    shutil.copytree(killed, tmp_path / "again")
    run("predict", *options(data, killed, "--overwrite", model="other"))
    run("predict", *options(data, tmp_path / "fresh", model="other"))
    assert files(killed) == files(tmp_path / "fresh")
    assert "continuing after" in run("predict", *options(data, tmp_path / "again", "--overwrite"))


def test_what_was_being_removed_is_not_gone_on_from(killed, data, whole):
    """As if killed while --overwrite removed an earlier result."""
    state = json.loads((killed / UNFINISHED).read_text())
    (killed / UNFINISHED).write_text(json.dumps({**state, "made_from": {}}))
    assert "which replaces an earlier one" in fail("predict", *options(data, killed))
    assert "continuing after" not in run("predict", *options(data, killed, "--overwrite"))
    assert zarr.open_array(killed, mode="r").shape == (N,)


def test_a_damaged_state_is_refused(killed, data):
    (killed / UNFINISHED).write_bytes(b"{")
    before = files(killed)
    for more in ((), ("--overwrite",)):
        assert f"{UNFINISHED} at" in fail("predict", *options(data, killed, *more))
    assert files(killed) == before


def test_killed_between_the_metadata_and_the_end(data, whole, tmp_path, killed):
    """All is there, and the file that says that it is not."""
    out = tmp_path / "again"
    shutil.copytree(data / "whole", out)
    shutil.copy(killed / UNFINISHED, out)
    assert "continuing after 40,000 rows" in run("predict", *options(data, out))
    assert files(out) == whole


def test_two_at_once(data, tmp_path):
    out = tmp_path / "out"
    done = process("predict", *options(data, out), replaced=SLOW)
    wait_for((out / UNFINISHED).exists, done)
    assert "another process is writing to" in fail("predict", *options(data, out))
    os.killpg(done.pid, signal.SIGKILL)
    done.communicate(timeout=DEADLINE)


def test_the_rows_are_never_overwritten(data):
    for out in (data / "x", data / "x/../x", data / "x/c", data):
        assert "are the same place, or one is within the other" in fail(
            "predict", *options(data, out, "--overwrite")
        )
    assert zarr.open_array(data / "x", mode="r").shape == (N, 4)


def test_no_rows(data, tmp_path):
    zarr.create_array(tmp_path / "x", shape=(0, 4), chunks=(10, 4), dtype="f4")
    run("predict", "--model", data / "names", "--x", tmp_path / "x", "--out", tmp_path / "out")
    assert zarr.open_array(tmp_path / "out", mode="r").shape == (0,)


# Workers that do not see the place.


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A scheduler with one worker, which can be made blind."""
    check_mounts()
    workers = ApartWorkers(tmp_path_factory.mktemp("workers"))
    workers.restore(1)
    yield workers
    workers.close()


def test_a_worker_that_does_not_see_the_folder(data, tmp_path, one):
    out = tmp_path / "out"
    out.mkdir()
    one.blind(one.alive()[0], out)
    error = fail("predict", *options(data, out, "--scheduler", one.client.scheduler.address))
    assert f"does not see {out}" in error
    assert "Pass a path or URL that all workers share" in error
    assert_unreadable(out)


def test_chunks_that_only_a_worker_sees(data, tmp_path, one):
    out = tmp_path / "out"
    (out / "c").mkdir(parents=True)
    one.blind(one.alive()[0], out / "c")
    error = fail("predict", *options(data, out, "--scheduler", one.client.scheduler.address))
    assert f"4 of 4 chunks were written but are not in '{out}', the first is c/0" in error
    assert_unreadable(out)
