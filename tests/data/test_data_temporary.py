"""Folders for what does not fit in memory: they go with the process that made them, however that ends, and no other does."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from distboost.errors import StoreError
from distboost.io import temporary
from tests.programs import Program

DEADLINE = 60.0
ANOTHER_BOOT = "8e6f3a51-0000-4000-8000-000000000000"

# A training run that goes through a binned store, as the chunks of its array are tall; it says so after the first round, and goes
# on when it is told to. `prepare` and `pause` may be replaced.
TRAIN = """
import os, select, signal, sys, threading
import numpy as np, zarr
from distboost import GDMCBoostClassifier
from distboost.data import ingest
ingest.BLOCK_ROWS = 20
scratch = sys.argv[1]
def prepare(): pass
def pause(progress):
    if progress.round == 1:
        os.write(1, b"round\\n")
        while not select.select([0], [], [], 0.1)[0]:
            pass  # a signal just before a call that waits is handled after it
        os.read(0, 1)
#replaced#
X = zarr.create_array({}, data=np.random.default_rng(0).normal(size=(240, 4)), chunks=(240, 1))
model = GDMCBoostClassifier(calibration=None, n_estimators=2, max_depth=2, n_jobs=2, scratch=scratch, callbacks=[pause])
prepare()
os.write(1, b"fit\\n")
model.fit(X, np.arange(240) % 3)
os.write(1, b"fitted\\n")
"""
QUERY = """
import os, select, sys
import numpy as np
from tests.active.sessions import learner
X = np.random.default_rng(0).normal(size=(300, 4))
y = (X[:, 0] > 0).astype(int)
found = learner(X, warm_start=True)
found.estimator.scratch = sys.argv[1]
for _ in range(2):
    rows = found.query()
    found.teach(rows, y[rows])
os.write(1, b"round\\n")
while not select.select([0], [], [], 0.1)[0]:
    pass
os.read(0, 1)
"""


@contextmanager
def begun(scratch, program=TRAIN, until="round", replaced="", fresh=False):
    """A process that has come to a line of its output; a fresh one has its own interpreter."""
    program = program.replace("#replaced#", replaced)
    if fresh:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(scratch)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    else:
        process = Program(program, scratch, stdin=subprocess.PIPE)
    try:
        while line := process.stdout.readline():
            if line == f"{until}\n":
                break
        else:
            pytest.fail(process.communicate(timeout=DEADLINE)[1])
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process) -> tuple[int, str]:
    """Its exit status, and what it said: it is told to go on, if it waits."""
    _, errors = process.communicate("\n", timeout=DEADLINE)
    return process.returncode, errors


def folders(scratch) -> list[str]:
    return sorted(path.name for path in Path(scratch).iterdir() if path.is_dir())


def killed(scratch, number, program=TRAIN) -> int:
    with begun(scratch, program) as process:
        process.send_signal(number)
        process.communicate(timeout=DEADLINE)
    return process.returncode


@pytest.mark.parametrize("program", [TRAIN, QUERY], ids=["train", "query"])
def test_terminated(program, tmp_path):
    with begun(tmp_path, program) as process:
        assert len(folders(tmp_path)) == 1
        process.terminate()
        process.communicate(timeout=DEADLINE)
    assert process.returncode == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", [TRAIN, QUERY], ids=["train", "query"])
def test_killed_again_and_again(program, tmp_path):
    for _ in range(2):
        assert killed(tmp_path, signal.SIGKILL, program) == -signal.SIGKILL
        assert len(folders(tmp_path)) == 1  # those of the ones before are gone
    with begun(tmp_path, program, fresh=program == TRAIN) as process:
        assert len(folders(tmp_path)) == 1
        assert ended(process) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_side_by_side(tmp_path):
    with ExitStack() as stack:
        killed(tmp_path, signal.SIGKILL)
        first, second = (stack.enter_context(begun(tmp_path)) for _ in range(2))
        assert len(folders(tmp_path)) == 2
        assert ended(first) == (0, "")
        assert len(folders(tmp_path)) == 1
        assert ended(second) == (0, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "owner",
    [json.dumps({"boot": ANOTHER_BOOT}), json.dumps({"boot": ""}), "", "{", "[]"],
    ids=["of another machine", "where there are no locks", "just begun", "cut off", "of another make"],
)
def test_folders_whose_owner_may_be_alive(owner, tmp_path):
    name = "distboost-0123456789ab"
    (tmp_path / name).mkdir()
    (tmp_path / f"{name}.owner").write_text(owner)
    temporary.own(tmp_path / "distboost-ba9876543210")
    temporary.release(tmp_path / "distboost-ba9876543210")
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, f"{name}.owner"]


def test_a_handler_of_the_users_own_is_left_alone(tmp_path):
    """It makes a note, and the training goes on."""
    replaced = """
def handler(*_): os.write(1, b"handled\\\\n")
def prepare(): signal.signal(signal.SIGTERM, handler)
""".replace("\\\\", "\\")
    with begun(tmp_path, replaced=replaced) as process:
        process.terminate()
        assert process.stdout.readline() == "handled\n"
        assert len(folders(tmp_path)) == 1
        assert ended(process) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_the_signal_is_as_before_when_the_folder_is_gone(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    assert before is signal.SIG_DFL
    with temporary.temporary_folder(str(tmp_path)):
        assert signal.getsignal(signal.SIGTERM) is not before
        with temporary.temporary_folder(str(tmp_path)):
            pass
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_in_another_thread(tmp_path):
    """Where no handler can be set: what is killed is reclaimed."""
    replaced = """
GDMCBoostClassifier.of_this_thread = GDMCBoostClassifier.fit
def fit(model, *arrays):
    thread = threading.Thread(target=model.of_this_thread, args=arrays)
    thread.start()
    thread.join()
GDMCBoostClassifier.fit = fit
"""
    with begun(tmp_path, replaced=replaced) as process:
        process.terminate()
        process.communicate(timeout=DEADLINE)
    assert process.returncode == -signal.SIGTERM
    assert len(folders(tmp_path)) == 1
    with begun(tmp_path, replaced=replaced) as process:
        assert len(folders(tmp_path)) == 1
        assert ended(process) == (0, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGTERM)", "sys.exit()"])
def test_a_fork_leaves_its_parents_folder_alone(end, tmp_path):
    replaced = f"""
def pause(progress):
    if progress.round == 1:
        child = os.fork()
        if not child:
            {end}
        os.waitpid(child, 0)
        assert len(os.listdir(scratch)) == 2
        os.write(1, b"round\\n")
        os.read(0, 1)
"""
    with begun(tmp_path, replaced=replaced) as process:
        assert len(folders(tmp_path)) == 1
        assert ended(process) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_none_can_be_made(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreError, match=r"cannot make a folder in .*file.*scratch="),
        temporary.temporary_folder(str(tmp_path / "file")),
    ):
        pass
    assert os.listdir(tmp_path) == ["file"]


def interrupt_at(place: str) -> str:
    """Ctrl-C when the training has come to this call."""
    owner, name = place.rsplit(".", 1)
    return f"""
from distboost.data.store import layout
from distboost.io import temporary
interrupted = {place}
def {name}(*arguments):
    {owner}.{name} = interrupted
    os.kill(os.getpid(), signal.SIGINT)
    return interrupted(*arguments)
{owner}.{name} = {name}
def pause(progress): pass
"""


@pytest.mark.parametrize("place", ["temporary._locked", "layout.StoredBlocks.write", "temporary._removed"])
def test_interrupted(place, tmp_path):
    """It ends by the interrupt, and leaves nothing."""
    with begun(tmp_path, until="fit", replaced=interrupt_at(place)) as process:
        _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == -signal.SIGINT
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_interrupted_at_any_moment(tmp_path):
    """If the training is not over, it ends by the interrupt. It leaves nothing."""
    draws = random.Random(3)
    for _ in range(200):
        with begun(tmp_path, until="fit", replaced="def pause(progress): pass") as process:
            try:
                process.wait(draws.uniform(0, 0.3))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=DEADLINE)
        if process.returncode:
            assert process.returncode in (1, -signal.SIGINT), errors
            assert errors.splitlines()[-1:] in (["KeyboardInterrupt"], [])  # none, if the training was over
        assert list(tmp_path.iterdir()) == []
