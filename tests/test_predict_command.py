"""`distboost predict` in processes of its own that are interrupted: a result is complete, or nobody can open it."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
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

N, CHUNK = 400_000, 100_000
SLOW = 5  # as many rows, for those to be in the middle of a chunk when they are interrupted
DEADLINE = 60.0
AT_ONCE = 5.0  # seconds that an interruption may take here; on a machine that is busy, a part of what the first chunk took
TO_END_WORKERS = 10.0  # seconds that Dask may take to end its processes, where all cores are busy
# Tasks of one chunk each.
PROGRAM = "from distboost.cli import main; from distboost.prediction import streamed; streamed.TASK_BYTES = 2**20; main()"


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    """A folder with rows x, many more x-slow and y-slow, and two models."""
    folder = tmp_path_factory.mktemp("predict")
    X, y = map(np.asarray, blobs)
    rows = np.random.default_rng(0).integers(0, len(X), SLOW * N)
    zarr.create_array(folder / "x", data=X[rows[:N]].astype("f4"), chunks=(CHUNK, 4))
    zarr.create_array(folder / "x-slow", data=X[rows].astype("f4"), chunks=(SLOW * CHUNK, 4))
    zarr.create_array(
        folder / "y-slow",
        data=np.array(["blue", "green", "red"], np.dtypes.StringDType())[y[rows]],
        chunks=(SLOW * CHUNK,),
    )
    names = np.array(["blue", "green", "red"])[y]
    distboost.GDMCBoostClassifier(n_estimators=200, max_depth=5).fit(X, names).save(folder / "names")
    distboost.GAMBLEClassifier(n_estimators=5).fit(X, y).save(folder / "other")
    return folder


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """In this process as in the others."""
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 2**20)


@pytest.fixture(scope="module")
def whole(data):
    """What is written if nothing goes wrong."""
    done = process("predict", *options(data, data / "whole"))
    _, errors = done.communicate(timeout=DEADLINE)
    assert done.returncode == 0, errors
    return files(data / "whole")


def options(data, out, *more, model="names", x="x"):
    return ("--model", data / model, "--x", data / x, "--out", out, *more)


def process(*arguments, stdout=subprocess.PIPE) -> subprocess.Popen:
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    # A session of its own: signals for a whole terminal are not for us.
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True, start_new_session=True)


def run(*arguments) -> str:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments) -> str:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 1, result.output
    return result.stderr.splitlines()[-1]


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def wait_for(condition, done: subprocess.Popen) -> None:
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


@pytest.fixture
def killed(data, tmp_path):
    """The place of a prediction whose process was killed after its first chunk."""
    out = tmp_path / "out"
    done = process("predict", *options(data, out))
    wait_for((out / "c/0").exists, done)
    os.killpg(done.pid, signal.SIGKILL)
    done.communicate(timeout=DEADLINE)
    assert (out / UNFINISHED).exists()
    assert_unreadable(out)
    return out


# Interrupted.


def interrupted(done: subprocess.Popen, kill, begun: float, slack: float = 0.0) -> str:
    """What a process says that is interrupted after its first chunk, and ends at once."""
    first = time.monotonic() - begun
    kill(done.pid, signal.SIGINT)
    began = time.monotonic()
    _, errors = done.communicate(timeout=DEADLINE)
    assert time.monotonic() - began < max(AT_ONCE, first / 3) + slack
    assert done.returncode == 130, errors
    return errors


@pytest.mark.parametrize("more", [(), ("--workers", 2)], ids=["here", "workers"])
def test_control_c(more, data, tmp_path):
    """As a terminal sends it: to the whole group of processes."""
    out = tmp_path / "out"
    begun = time.monotonic()
    done = process("predict", *options(data, out, *more, x="x-slow"))
    wait_for((out / "c/0").exists, done)
    errors = interrupted(done, os.killpg, begun, slack=TO_END_WORKERS if more else 0.0)
    assert errors.strip().splitlines()[-1] == "Aborted!"
    assert "Traceback" not in errors
    assert not (out / "c/3").exists()
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
    arguments = ("--model", data / "names", "--x", data / "x-slow", "--y", data / "y-slow")
    begun = time.monotonic()
    done = process("evaluate", *arguments, stdout=terminal.theirs)
    wait_for(lambda: terminal.shows(rb"(5|10|15)00000/2000000"), done)
    interrupted(done, os.kill, begun)


def test_a_killed_prediction_goes_on(killed, data, whole):
    kept = (killed / "c/0").stat().st_mtime_ns
    done = process("predict", *options(data, killed))
    _, errors = done.communicate(timeout=DEADLINE)
    assert done.returncode == 0, errors
    assert re.search(r"goes on from [1-4]00,000 rows that were predicted before", errors)
    assert files(killed) == whole
    assert (killed / "c/0").stat().st_mtime_ns == kept
    assert "zarr array" in fail("predict", *options(data, killed))


def test_how_far_it_is_is_shown(killed, data, terminal):
    done = process("predict", *options(data, killed), stdout=terminal.theirs)
    assert done.wait(DEADLINE) == 0
    done.stderr.close()
    wait_for_text(terminal, rb"400000/400000.* rows")
    assert terminal.shows(rb"[123]00000/400000")  # from what was kept


# Another command at the place of an unfinished prediction, or of a complete one.


def test_chunks_of_another_model_are_not_mixed(killed, data):
    before = files(killed)
    error = fail("predict", *options(data, killed, model="other"))
    assert re.search(r"an unfinished prediction at .*out', of another model\. Add --overwrite", error)
    assert files(killed) == before


def test_chunks_of_another_kind_are_not_mixed(killed, data):
    assert "of the other kind (labels or --proba)" in fail("predict", *options(data, killed, "--proba"))


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
    assert "goes on from" in run("predict", *options(data, tmp_path / "again", "--overwrite"))


def test_what_was_being_removed_is_not_gone_on_from(killed, data, whole):
    """As if killed while --overwrite removed an earlier result."""
    state = json.loads((killed / UNFINISHED).read_text())
    (killed / UNFINISHED).write_text(json.dumps({**state, "made_from": {}}))
    assert "which replaces an earlier one" in fail("predict", *options(data, killed))
    assert "goes on from" not in run("predict", *options(data, killed, "--overwrite"))
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
    assert "goes on from 400,000 rows" in run("predict", *options(data, out))
    assert files(out) == whole


def test_two_at_once(data, tmp_path):
    out = tmp_path / "out"
    done = process("predict", *options(data, out, x="x-slow"))
    wait_for((out / UNFINISHED).exists, done)
    assert "another process is writing to" in fail("predict", *options(data, out, x="x-slow"))
    os.killpg(done.pid, signal.SIGKILL)
    done.communicate(timeout=DEADLINE)


def test_the_rows_are_never_overwritten(data):
    for out in (data / "x", data / "x/../x", data / "x/c", data):
        assert "are one place, or one is within the other" in fail(
            "predict", *options(data, out, "--overwrite")
        )
    assert zarr.open_array(data / "x", mode="r").shape == (N, 4)


def test_no_rows(data, tmp_path):
    zarr.create_array(tmp_path / "x", shape=(0, 4), chunks=(10, 4), dtype="f4")
    run("predict", "--model", data / "names", "--x", tmp_path / "x", "--out", tmp_path / "out")
    assert zarr.open_array(tmp_path / "out", mode="r").shape == (0,)


# Workers that do not see the place.


@pytest.fixture
def blind(tmp_path):
    """blind(place): the address of a scheduler whose one worker sees an empty folder at that place."""
    if os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("a file system that one process alone sees takes root and unshare")
    begun = []

    def begin(place: Path) -> str:
        address = tmp_path / "scheduler.json"
        mine = f"mount -t tmpfs tmpfs {place} && exec {sys.executable} -m distributed.cli.dask_worker"
        quiet = ["--no-dashboard", "--scheduler-file", str(address)]
        for command in (
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                *quiet,
            ],
            ["unshare", "--mount", "sh", "-c", f"{mine} --no-nanny --nthreads 1 {' '.join(quiet)}"],
        ):
            begun.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
            wait_for(lambda: address.exists() and address.stat().st_size > 0, begun[0])
        return json.loads(address.read_text())["address"]

    yield begin
    for one in reversed(begun):
        one.terminate()
        one.wait(DEADLINE)


def test_a_worker_that_does_not_see_the_folder(data, tmp_path, blind):
    out = tmp_path / "out"
    out.mkdir()
    error = fail("predict", *options(data, out, "--scheduler", blind(out)))
    assert f"does not see {out}" in error
    assert "Give a place that all workers share" in error
    assert_unreadable(out)


def test_chunks_that_only_a_worker_sees(data, tmp_path, blind):
    out = tmp_path / "out"
    (out / "c").mkdir(parents=True)
    error = fail("predict", *options(data, out, "--scheduler", blind(out / "c")))
    assert f"4 of 4 chunks were written but are not in '{out}', the first is c/0" in error
    assert_unreadable(out)
