"""The recipe of cluster/ssh over SSH: `make ssh` (needs Debian's packages openssh-server and openssh-client)."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from distboost.cluster.local import Process, running, wait_for
from distboost.model.checkpoint import rounds_at
from tests.clusters.sshd import commands, missing, sshd

SCRIPT = Path(__file__).parents[2] / "cluster" / "ssh" / "train.sh"
HOSTS = ("one", "two")
DEADLINE = 120.0  # seconds until what is expected of a training run
GONE = 15.0  # until nothing of it is left

pytestmark = [
    pytest.mark.ssh,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        bool(missing()),
        reason=f"not installed: {', '.join(missing())} (apt-get install openssh-server openssh-client)",
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The machines `one` and `two`."""
    ours = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    with sshd(tmp_path_factory.mktemp("sshd"), HOSTS, ours) as found:
        yield found


@contextmanager
def recipe(server, training, folder: Path, name: str):
    """The recipe as it is, which logs to a file of this name."""
    places = {
        "HOSTS": " ".join(HOSTS),
        "ADDRESS": "127.0.0.1",
        "SHARED": str(folder / "shared"),
        "LOCAL": str(folder / "local"),
        "X": f"{training.data}/x",
        "Y": f"{training.data}/y",
        "MODEL": f"{folder}/model",
        "THREADS": "1",
        "MEMORY": "2GiB",
    }
    path = os.pathsep.join([str(server.programs), os.path.dirname(sys.executable), os.environ["PATH"]])
    options = ["--set", f"n_estimators={training.rounds}", "--set", "calibration=null"]
    log = folder / f"{name}.log"
    try:
        with running([SCRIPT, *options], log, {**os.environ, **places, "PATH": path}) as found:
            yield found
    finally:
        print(f"\n{log}", log.read_text(), sep="\n", flush=True)


@pytest.fixture
def folder(tmp_path):
    for name in ("shared", "local"):
        (tmp_path / name).mkdir()
    return tmp_path


def told(run: Process, text: str, times: int = 1) -> None:
    """Wait until the log has this text so many times."""
    wait_for(
        lambda: run.log.read_text().count(text) >= times or None,
        [run],
        DEADLINE,
        lambda: f"{text!r} is not in the log {times} times after {DEADLINE:.0f} s. {run.last_words()}",
    )


def rounds(run: Process) -> int:
    """How many rounds the log tells of."""
    return int(re.findall(r"(\d+)/400 rounds", run.log.read_text())[-1])


def ends(processes: list[psutil.Process]) -> bool:
    """Whether these processes end within the deadline."""
    _, alive = psutil.wait_procs(processes, timeout=GONE)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def completed(run: Process, training, folder: Path) -> None:
    """Check the training's end: the model of a training run in one process, and nothing beside it."""
    assert run.running.wait(600) == 0
    assert (folder / "model").read_bytes() == training.model
    assert not (folder / "model.checkpoint").exists()


def test_a_worker_that_is_killed_comes_back_and_a_machine_that_is_lost_does_not(server, training, folder):
    with recipe(server, training, folder, "train") as run:
        told(run, "20/400 rounds")
        killed = server.processes("--multiprocessing-fork")[0]
        killed.kill()
        told(run, "is lost at")
        told(run, "1 workers have joined")
        told(run, f"{rounds(run) + 10}/400 rounds")  # it has its share of the rows again
        [session] = commands(psutil.Process(run.running.pid), "two")
        workers = server.processes("worker")
        assert len(workers) == len(HOSTS)
        session.kill()
        told(run, "is lost at", times=2)
        assert len(server.processes("worker")) == 1
        completed(run, training, folder)
    assert ends(workers)
    log = run.log.read_text()
    assert "cannot reach each other" not in log  # they were dead
    assert "training on 2 Dask workers with 2 threads (tls://" in log
    assert not list((folder / "shared").glob("scheduler-*.json"))


def test_a_training_whose_client_ends_is_continued_by_the_same_command(server, training, folder):
    with recipe(server, training, folder, "stopped") as run:
        told(run, "50/400 rounds")
        mine = psutil.Process(run.running.pid).children(recursive=True)
        theirs = server.processes("worker")
        run.running.send_signal(signal.SIGTERM)
        assert ends(mine)
        assert ends(theirs)
    first = rounds_at(f"{folder}/model.checkpoint")
    with recipe(server, training, folder, "lost") as run:
        told(run, f"{first + 50}/400 rounds")
        mine = psutil.Process(run.running.pid).children(recursive=True)
        theirs = server.processes("worker")
        run.running.kill()
        for process in mine:
            process.kill()
        assert ends(theirs)
    second = rounds_at(f"{folder}/model.checkpoint")
    print(f"checkpoints of {first} and {second} rounds", flush=True)
    assert first < second < training.rounds
    with recipe(server, training, folder, "last") as run:
        completed(run, training, folder)
    assert f"{second + 1}/400 rounds" in run.log.read_text()
    assert f"{second}/400 rounds" not in run.log.read_text()
