"""Workers of other versions are reported before the training: real workers, that differ in one thing each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import zarr
from distributed import Client

import distboost
from distboost.errors import ClusterError
from distboost.runtime.cluster import versions
from distboost.runtime.cluster.link import Link
from distboost.runtime.cluster.versions import check_versions, installed

ROOT = Path(__file__).parents[2]
HIDDEN = """
import sys
class Hidden:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "distboost":
            raise ModuleNotFoundError("No module named 'distboost'", name=name)
sys.meta_path.insert(0, Hidden)
"""
# What a worker runs before it starts.
PRELOADS = {
    "same": "",
    "distboost": "import distboost; distboost.__version__ = '9.9.9'",
    "python": "import platform; platform.python_version_tuple = lambda: ('3', '99', '0')",
    "zarr": "",  # its metadata are found before the installed ones
    "none": HIDDEN,
}


def project(*first):
    """An environment in which the project is found, after other folders."""
    paths = [*map(str, first), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextmanager
def dask(*arguments, environment, log):
    command = [sys.executable, "-m", "dask", *arguments, "--dashboard-address", "127.0.0.1:0"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


@contextmanager
def scheduler(folder, environment, *arguments):
    """The file that names it."""
    file, log = folder / "scheduler.json", folder / "scheduler.log"
    common = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    environment["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = "3s"  # to a worker that is gone
    with dask("scheduler", *common, *arguments, environment=environment, log=log):
        deadline = time.monotonic() + 40
        while not file.exists():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield file


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A client, and the address and process of the worker of each name."""
    folder = tmp_path_factory.mktemp("versions")
    metadata = folder / "zarr" / "zarr-0.0.1.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: zarr\nVersion: 0.0.1\n")
    with ExitStack() as stack:
        file = stack.enter_context(scheduler(folder, project()))
        processes = {}
        for name, preload in PRELOADS.items():
            script = folder / f"preload_{name}.py"
            script.write_text(preload)
            arguments = [
                "--scheduler-file",
                str(file),
                "--host",
                "127.0.0.1",
                "--no-nanny",
                "--nthreads",
                "1",
            ]
            arguments += ["--name", name, "--preload", str(script), "--local-directory", str(folder)]
            environment = project(metadata.parents[1]) if name == "zarr" else project()
            processes[name] = stack.enter_context(
                dask("worker", *arguments, environment=environment, log=folder / f"{name}.log")
            )
        with Client(scheduler_file=str(file), timeout=20, set_as_default=False) as client:
            client.wait_for_workers(len(PRELOADS), timeout=40)
            known = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
            addresses = {worker["name"]: address for address, worker in known.items()}
            yield client, addresses, processes


def fails(client, *workers) -> str:
    with pytest.raises(ClusterError) as caught:
        check_versions(Link(client, 20.0), workers)
    return str(caught.value)


def test_same_versions_are_quiet_and_quick(cluster):
    client, addresses, _ = cluster
    check_versions(Link(client, 20.0), [addresses["same"]])  # a warning would be an error
    started = time.perf_counter()
    for _ in range(20):
        check_versions(Link(client, 20.0), [addresses["same"]])
    assert (time.perf_counter() - started) / 20 < 0.2


def test_another_distboost(cluster):
    client, addresses, _ = cluster
    message = fails(client, addresses["same"], addresses["distboost"])
    assert (
        f"distboost {distboost.__version__} (this process, the scheduler, worker {addresses['same']}) and "
        in message
    )
    assert f"9.9.9 (worker {addresses['distboost']})." in message
    assert "Install the same versions everywhere" in message


def test_another_python(cluster):
    client, addresses, _ = cluster
    message = fails(client, addresses["python"])
    assert (
        f"python {installed()['python']} (this process, the scheduler) and 3.99 (worker {addresses['python']})."
        in message
    )


def test_worker_without_distboost(cluster):
    client, addresses, _ = cluster
    message = fails(client, addresses["same"], addresses["none"])
    assert f"worker {addresses['none']} does not have distboost {distboost.__version__}" in message
    assert "Install the same versions everywhere" in message


def test_scheduler_without_distboost(tmp_path):
    script = tmp_path / "preload.py"
    script.write_text(HIDDEN)
    with (
        scheduler(tmp_path, project(), "--preload", str(script)) as file,
        Client(scheduler_file=str(file), timeout=20, set_as_default=False) as client,
    ):
        assert "the scheduler does not have distboost" in fails(client)


def test_another_library_is_a_warning(cluster):
    client, addresses, _ = cluster
    with pytest.warns(UserWarning, match="bit for bit") as caught:
        check_versions(Link(client, 20.0), [addresses["same"], addresses["zarr"]])
    [warning] = caught
    assert f"zarr {zarr.__version__} (this process, the scheduler, worker {addresses['same']}) and " in str(
        warning.message
    )
    assert f"0.0.1 (worker {addresses['zarr']})." in str(warning.message)


def test_many_workers_are_not_all_named():
    found = {f"worker {i}": {"numpy": "2" if i == 7 else "1"} for i in range(9)}
    told = versions._different(found, ["numpy"])
    assert told == "numpy 1 (worker 0, worker 1, worker 2 and 5 more) and 2 (worker 7)"


def test_training_does_not_begin(cluster, blobs):
    client, *_ = cluster
    model = distboost.GDMCBoostClassifier(calibration=None, n_estimators=2)
    model.client = client
    with pytest.raises(ClusterError, match=r"does not have distboost|versions differ"):
        model.fit(*blobs)
    assert not hasattr(model, "classes_")


def test_worker_that_does_not_answer_is_passed_over(cluster):
    """A training run that it takes part in gives it up in its own time."""
    client, addresses, processes = cluster
    processes["same"].send_signal(signal.SIGSTOP)
    try:
        check_versions(Link(client, 1.0), [addresses["same"]])
        with pytest.raises(ClusterError, match=r"9\.9\.9"):
            check_versions(Link(client, 1.0), [addresses["same"], addresses["distboost"]])
    finally:
        processes["same"].send_signal(signal.SIGCONT)


def test_worker_that_is_gone_is_passed_over(cluster):
    client, addresses, _ = cluster
    check_versions(Link(client, 5.0), [addresses["same"], "tcp://127.0.0.1:9"])
