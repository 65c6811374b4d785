"""The recipes of cluster/slurm on a SLURM of one node: `make slurm` (needs Debian's packages slurm-wlm and munge)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from distboost.model.checkpoint import is_checkpoint, rounds_at
from tests.clusters.slurm import missing, said, slurm, state

RECIPES = Path(__file__).parents[2] / "cluster" / "slurm"
ENDED = {"COMPLETED", "TIMEOUT", "FAILED", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY"}

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        bool(missing()), reason=f"not installed: {', '.join(missing())} (apt-get install slurm-wlm munge)"
    ),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    with slurm(tmp_path_factory.mktemp("slurm")) as found:
        there = os.path.dirname(sys.executable)
        yield {**found, "PATH": f"{there}{os.pathsep}{found['PATH']}"}


def submitted(environment, folder, training, *options: str) -> str:
    """The number of a job that runs the script, in a folder that all nodes see."""
    places = {
        "X": f"{training.data}/x",
        "Y": f"{training.data}/y",
        "MODEL": f"{folder}/model",
        "LOCAL": str(folder),
        "CLIENT_MB": "2000",
    }
    script = [
        str(RECIPES / "train.sbatch"),
        "--set",
        f"n_estimators={training.rounds}",
        "--set",
        "calibration=null",
    ]
    small = ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1", "--mem=8000"]
    job = said(
        "sbatch", "--parsable", *small, *options, *script, environment={**environment, **places}, cwd=folder
    )
    assert job.isdigit(), job
    print(f"\nsbatch: job {job} with {' '.join(options)}", flush=True)
    return job


def jobs(environment) -> list[str]:
    """The numbers of the jobs that wait or run."""
    return said("squeue", "--noheader", "--format=%i", environment=environment).split()


def hold_up(folder: Path) -> None:
    """A second in which the client of a training run hardly gets on."""
    for process in psutil.process_iter(["cmdline"]):
        if f"{folder}/model" in (process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                process.suspend()
                time.sleep(0.9)
                process.resume()
    time.sleep(0.1)


def end_of(
    job: str,
    environment,
    folder: Path,
    seconds: float,
    wait: Callable[[], None] = lambda: time.sleep(1.0),
) -> str:
    """The state in which a job ends, within so many seconds."""
    until = time.monotonic() + seconds
    while (found := state(job, environment)) not in ENDED and time.monotonic() < until:
        wait()
    print(said("scontrol", "show", "job", job, environment=environment))
    print((folder / f"distboost-{job}.log").read_text(), flush=True)
    return found


def open_ports(*words: str) -> list[set[int]]:
    """What processes with one of these words in their commands, and those that they have started, open to other machines."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(word in " ".join(process.info["cmdline"] or ()) for word in words):
            for each in [process, *process.children(recursive=True)]:
                there = [one.laddr for one in each.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
                found.append({address.port for address in there if address.ip != "127.0.0.1"})
    return [ports for ports in found if ports]


def test_a_job_that_its_time_limit_kills_is_resumed_by_the_next(environment, training, tmp_path):
    # SLURM has no shorter limits. The next job has another worker.
    short = submitted(environment, tmp_path, training, "--time=1", "--ntasks-per-node=1")
    deadline = time.monotonic() + 60
    while not is_checkpoint(f"{tmp_path}/model.checkpoint"):
        assert time.monotonic() < deadline, (tmp_path / f"distboost-{short}.log").read_text()
        time.sleep(0.2)
    assert [len(ports) for ports in open_ports("/dask scheduler ", "/dask worker ")] == 3 * [1]
    assert end_of(short, environment, tmp_path, 300, wait=lambda: hold_up(tmp_path)) == "TIMEOUT"
    assert not (tmp_path / "model").exists()
    rounds = rounds_at(f"{tmp_path}/model.checkpoint")
    print(f"the checkpoint has {rounds} of {training.rounds} rounds", flush=True)
    assert 0 < rounds < training.rounds
    long = submitted(environment, tmp_path, training, "--time=20")
    assert end_of(long, environment, tmp_path, 900) == "COMPLETED"
    assert (tmp_path / "model").read_bytes() == training.model
    assert not (tmp_path / "model.checkpoint").exists()
    assert not list(tmp_path.glob("scheduler-*.json"))


def test_a_job_of_dask_jobqueue_that_is_cancelled_is_replaced(environment, training, tmp_path):
    pytest.importorskip("dask_jobqueue")
    subprocess.run(
        [sys.executable, "-m", "distboost", "cluster", "certificates", str(tmp_path / "tls")], check=True
    )
    command = [
        sys.executable,
        str(RECIPES / "train.py"),
        "--x",
        f"{training.data}/x",
        "--y",
        f"{training.data}/y",
        "--model",
        f"{tmp_path}/model",
    ]
    command += [
        "--rounds",
        str(training.rounds),
        "--tls",
        str(tmp_path / "tls"),
        "--shared",
        str(tmp_path),
        "--local",
        str(tmp_path),
    ]
    command += [
        "--jobs",
        "2",
        "--cores",
        "1",
        "--memory",
        "3GB",
        "--walltime",
        "00:20:00",
        "--calibration",
        "none",
    ]
    log = tmp_path / "train.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=tmp_path
        )
    try:
        until = time.monotonic() + 300
        while not is_checkpoint(f"{tmp_path}/model.checkpoint"):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text() + said("squeue", environment=environment)
            time.sleep(0.5)
        first = jobs(environment)
        print(f"\n{said('squeue', environment=environment)}\nscancel {first[0]}", flush=True)
        assert len(first) == 2
        # Encrypted messages are all that others may send: to the scheduler, and to nannies and workers.
        assert [len(ports) for ports in open_ports("slurm/train.py")] == [1]
        assert [len(ports) for ports in open_ports("distributed.cli.dask_worker")] == 4 * [1]
        said("scancel", first[0], environment=environment)
        seen = set(first)
        while process.poll() is None and time.monotonic() < until + 600:
            seen |= set(jobs(environment))
            time.sleep(1.0)
    finally:
        process.kill()
        process.wait()
        logs = "\n".join(path.read_text() for path in [log, *tmp_path.glob("logs/*")])
        print(logs, flush=True)
    assert process.returncode == 0
    assert "cannot reach each other" not in logs
    assert len(seen) > 2  # another job came in place of the cancelled one
    assert (tmp_path / "model").read_bytes() == training.model
