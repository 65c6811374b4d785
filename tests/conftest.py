"""What tests share: small data sets, and what a model comes down to."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# While all is imported and collected there is little garbage, and looking for it takes a third of the time.
gc.disable()

# What Dask does while it is idle (profiling, ticks of event loops): of several clusters at once, that takes half of
# a small machine. The processes that tests start inherit this.
IDLE = {
    "WORKER__PROFILE__ENABLED": "False",
    "ADMIN__TICK__INTERVAL": "2s",
    "ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
    "WORKER__MEMORY__MONITOR_INTERVAL": "500ms",
}
os.environ.update({f"DASK_DISTRIBUTED__{name}": value for name, value in IDLE.items()})

import dask.config  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from distributed.utils import get_mp_context  # noqa: E402

from distboost import threads  # noqa: E402
from distboost.io import temporary  # noqa: E402
from distboost.process import leave_sigterm  # noqa: E402
from tests.pairs import in_pairs  # noqa: E402

dask.config.refresh()  # where Dask was imported before
# Workers are forked from a process that has imported and loaded all they need: that of the tests would be copied with its
# threads, and one started from nothing takes seconds. (Commands that tests start, `dask worker` among them, start as ever.)
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
get_mp_context().set_forkserver_preload(["tests.warm"])  # only after Dask has set its own: it does that once

# The same examples on every run, and none kept on disk.
settings.register_profile("distboost", database=None, deadline=None, derandomize=True, max_examples=60)
settings.load_profile("distboost")


# The files that take longest begin first: those that wait for processes and timeouts, and between them those that compute.
FIRST = (
    "faults/test_killed.py",
    "algorithms/test_contract.py",
    "faults/test_scheduler.py",
    "test_docs.py",
    "faults/test_blind.py",
    "data/test_data_ingest.py",
    "object_store/test_s3_options.py",
    "test_second_training.py",
    "checkpoints/test_checkpoint_killed.py",
    "algorithms/test_choices_of_owners.py",
    "faults/test_joining.py",
    "algorithms/test_contract_of_categories.py",
    "test_tls.py",
    "algorithms/test_own_algorithm.py",
    "object_store/test_s3_data.py",
    "data/test_data_names.py",
    "faults/test_ends.py",
    "runtime/test_identity.py",
    "faults/test_silent.py",
    "test_sklearn.py",
    "data/test_data_temporary.py",
    "test_cross_validation.py",
    "object_store/test_s3_faults.py",
    "test_categories.py",
    "faults/test_network.py",
    "runtime/test_dask_arrays.py",
    "runtime/test_side_by_side.py",
    "test_model_file.py",
    "data/test_data_interrupted.py",
    "test_calibration.py",
    "kernels/test_kernel_folders.py",
    "test_evaluate.py",
    "runtime/test_versions.py",
    "data/test_data_names_kept.py",
    "active/test_killed_driver.py",
    "active/test_warm_start.py",
    "test_cluster_command.py",
    "data/test_data_store.py",
    "faults/test_exchange.py",
    "data/test_data_sources.py",
    "object_store/test_s3_results.py",
    "test_estimators.py",
    "faults/test_soak.py",
    "algorithms/test_separation.py",
    "runtime/test_crew.py",
    "runtime/test_round_costs.py",
    "test_active_example.py",
    "test_model_mutations.py",
)


def pytest_collection_finish():
    """Let garbage be looked for among what tests make, not among all modules and tests."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config, items):
    """Leave out cases of tests that ask for pairs; sort the longest files to the front, the others as their folders are."""
    asking = {}
    for item in items:
        if item.get_closest_marker("pairwise"):
            values = item.callspec.params if hasattr(item, "callspec") else {}
            case = tuple(
                (name, id(value)) for name, value in sorted(values.items(), key=itemgetter(0))
            )  # cases share their values
            asking.setdefault((item.path, item.originalname), {})[case] = item
    kept = {cases[case] for cases in asking.values() for case in in_pairs(cases)}
    left_out = {item for cases in asking.values() for item in cases.values()} - kept
    config.hook.pytest_deselected(items=[*left_out])
    folder = Path(__file__).parent
    places = {folder / name: number for number, name in enumerate(FIRST)}
    assert all(path.exists() for path in places)
    items[:] = sorted(
        (item for item in items if item not in left_out), key=lambda item: places.get(item.path, len(places))
    )


@pytest.fixture(autouse=True)
def _same_signals():
    """A test that leaves a temporary folder of this process open leaves its handler of the signal, too."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if signal.getsignal(signal.SIGTERM) != before:
        gc.collect()  # what the test left behind may be in a cycle, and a thread that removes its folder changes no handler
        if not temporary._owned:
            leave_sigterm()
    assert signal.getsignal(signal.SIGTERM) in (before, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _many_threads(monkeypatch):
    """Let trainings in this process use all threads they are given: tests have so few rows that one thread would do."""
    monkeypatch.setattr(threads, "ENTRIES_PER_THREAD", 1)


@pytest.fixture(scope="session")
def blobs():
    """(X, y): 240 rows of 4 features and 3 classes, in no order, with some values missing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    X = rng.normal(size=(240, 4)) + 1.2 * np.eye(3, 4)[y]
    X[rng.random(X.shape) < 0.05] = np.nan
    X.flags.writeable = y.flags.writeable = False
    return X, y


class Clients(dict):
    """Clients of clusters on this machine by their number of worker processes, started when they are first asked for."""

    def __missing__(self, n: int) -> Client:
        cluster = LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0")
        self[n] = Client(cluster, set_as_default=False)
        return self[n]


@pytest.fixture(scope="session")
def clients():
    """clients[n]: the client of a cluster of n worker processes."""
    found = Clients()
    yield found
    for client in found.values():
        client.close(timeout=30)
        client.cluster.close(timeout=30)


@pytest.fixture
def saved(tmp_path):
    """saved(model): the bytes of the model's file."""

    def content(model) -> bytes:
        path = tmp_path / "saved.model"
        model.save(path)
        return Path(path).read_bytes()

    return content


@pytest.fixture(scope="session")
def assert_same_model():
    """assert_same_model(a, b): two fitted estimators hold the same trees, losses and classes, to the last bit."""

    def compare(a, b) -> None:
        np.testing.assert_array_equal(a.classes_, b.classes_)
        ours, theirs = a.learned_.ensemble.arrays(), b.learned_.ensemble.arrays()
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
        np.testing.assert_array_equal(a.train_loss_, b.train_loss_)
        np.testing.assert_array_equal(a.train_error_, b.train_error_)

    return compare


@pytest.fixture(scope="session")
def with_mounts() -> Callable[..., subprocess.CompletedProcess]:
    """with_mounts(commands, program): runs a Python program after shell commands, whose mounts it alone sees."""
    private = ["unshare", "--mount"]
    if subprocess.run([*private, "true"], capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("mounting is not permitted here")

    def run(commands: Iterable[str], program: str, **environment: str) -> subprocess.CompletedProcess:
        script = " && ".join([*commands, 'exec "$0" -c "$1"'])
        done = subprocess.run(
            [*private, "sh", "-c", script, sys.executable, program],
            env={**os.environ, **environment}, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def in_container(with_mounts) -> Callable[..., subprocess.CompletedProcess]:
    """in_container(files, program): runs a Python program where the control groups' files hold this."""

    def run(files: Mapping[str, object], program: str) -> subprocess.CompletedProcess:
        root = Path("/sys/fs/cgroup")
        commands = [f"mount -t tmpfs tmpfs {root}"]
        for name, content in files.items():
            commands.append(f"mkdir -p {(root / name).parent} && echo {content} > {root / name}")
        return with_mounts(commands, program)

    return run
