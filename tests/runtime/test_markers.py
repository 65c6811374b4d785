"""What Dask sees of a training run: tasks that mark its workers as busy, and take none of their threads."""

from __future__ import annotations

import logging
import sys
import time
import traceback

import numpy as np
import pytest
from distributed import Client, LocalCluster

from distboost import GDMCBoostClassifier
from distboost.runtime.cluster.link import Link
from distboost.runtime.cluster.markers import Markers, stand
from distboost.runtime.cluster.monitor import WorkerMonitor
from tests.faults.crews import until

TITLE = "Testing"


def described(dask_scheduler) -> dict[str, object]:
    """What the scheduler says of its workers. Runs there."""
    workers = dask_scheduler.workers
    return {
        "running": {
            address: sum("Testing" in ts.key or "BoostClassifier" in ts.key for ts in ws.long_running)
            for address, ws in workers.items()
        },
        "to close": dask_scheduler.workers_to_close(),
        "desired": dask_scheduler.adaptive_target(),
        # Twice: the first call only notes that something has happened since the last one.
        "idle since": (dask_scheduler.check_idle(), dask_scheduler.check_idle())[1],
        "idle": [address for address, ws in workers.items() if not ws.processing],
        "unrunnable": len(dask_scheduler.unrunnable),
        "marks": sum("Testing" in key for key in dask_scheduler.tasks),
    }


@pytest.fixture
def own():
    """A client of two workers of its own, which tests may take away."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def marked():
    """marked(client): markers on its workers, until the end of the test."""
    open_now = []

    def mark(client) -> Markers:
        link = Link(client, 10.0)
        open_now.append(WorkerMonitor(link))
        open_now.append(Markers(link, open_now[0], TITLE))
        return open_now[-1]

    yield mark
    for each in reversed(open_now):
        each.close()


def seen(client) -> dict[str, object]:
    return client.run_on_scheduler(described)


def n_standing() -> int:
    """The number of threads with a marker. Runs on a worker."""
    stacks = (traceback.walk_stack(frame) for frame in sys._current_frames().values())
    return sum(any(frame.f_code.co_name == stand.__name__ for frame, _ in stack) for stack in stacks)


def all_marked(client, n: int) -> bool:
    running = seen(client)["running"]
    return len(running) == n and all(found == 1 for found in running.values())


def test_marked_workers_are_busy_to_the_scheduler(clients, marked):
    client = clients[2]
    before = seen(client)
    assert before["desired"] < 2
    assert before["to close"]
    assert before["idle since"] is not None
    markers = marked(client)
    until(lambda: all_marked(client, 2), "markers")
    now = seen(client)
    assert now["desired"] == 2
    assert now["to close"] == []
    assert now["idle"] == []
    assert now["idle since"] is None
    markers.close()
    until(lambda: seen(client)["marks"] == 0 and len(seen(client)["idle"]) == 2, "no markers")


def test_markers_take_no_threads(clients, marked):
    """A worker of one thread runs a task beside its marker, and the thread of the marker ends with it."""
    client = clients[2]
    markers = marked(client)
    until(lambda: all_marked(client, 2), "markers")
    assert client.submit(lambda: 7, pure=False).result(timeout=20) == 7
    assert sum(client.run(n_standing).values()) == 2
    markers.close()

    until(lambda: sum(client.run(n_standing).values()) == 0, "the end of the marker's thread")


def test_workers_that_come_are_marked(own, marked):
    marked(own)
    until(lambda: all_marked(own, 2), "markers")
    own.cluster.scale(3)
    until(lambda: all_marked(own, 3), "the marker of a third worker")


def test_a_marked_worker_can_retire(own, marked):
    """It leaves at once, and its marker does not wait for another worker."""
    marked(own)
    until(lambda: all_marked(own, 2), "markers")
    leaving, staying = seen(own)["running"]
    began = time.monotonic()
    assert list(own.retire_workers([leaving], close_workers=True)) == [leaving]
    assert time.monotonic() - began < 5
    until(lambda: [*seen(own)["running"]] == [staying] and seen(own)["unrunnable"] == 0, "one worker")
    until(lambda: seen(own)["marks"] == 1, "one marker")


def test_markers_come_back_after_a_restart(own, marked):
    marked(own)
    until(lambda: all_marked(own, 2), "markers")
    own.restart()
    until(lambda: all_marked(own, 2), "markers of the new workers")


def test_markers_end_with_their_client(clients, marked):
    client = clients[2]
    other = Client(client.scheduler.address, set_as_default=False)
    marked(other)
    until(lambda: all_marked(client, 2), "markers")
    other.close()
    until(lambda: seen(client)["marks"] == 0 and len(seen(client)["idle"]) == 2, "no markers")


def test_a_cluster_that_adapts_starts_a_worker_for_a_training(blobs):
    """And it needs none when the training is over."""
    X, y = blobs
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=0, maximum=1, interval="100ms", wait_count=2)
        model = GDMCBoostClassifier(n_estimators=4, calibration=None)
        model.client = client
        model.fit(X, y)
        # How soon it goes is Dask's affair: on a busy machine it takes a LocalCluster more than half a minute.
        until(lambda: cluster.scheduler.adaptive_target() == 0, "no need for workers")
    here = GDMCBoostClassifier(n_estimators=4, calibration=None).fit(X, y)
    np.testing.assert_array_equal(model.train_loss_, here.train_loss_)


# Two workers, because Dask never takes away the only one that holds data.
@pytest.mark.parametrize(
    ("n_rounds", "seconds", "adapt"),
    [
        pytest.param(12, 0.25, {"interval": "100ms", "wait_count": 2}, id="seconds"),
        pytest.param(24, 5, {}, id="minutes", marks=[pytest.mark.soak, pytest.mark.timeout(240)]),
    ],
)
def test_a_cluster_that_adapts_keeps_the_workers_of_a_training(n_rounds, seconds, adapt, blobs, caplog):
    """Rounds take longer than it waits."""
    X, y = blobs
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(2)
        names = {*cluster.scheduler.workers}

        def slowly(progress) -> None:
            if progress.round == 1:
                cluster.adapt(minimum=0, maximum=2, **adapt)
            time.sleep(seconds)
            assert {*cluster.scheduler.workers} == names

        with caplog.at_level(logging.INFO, "distboost"):
            model = GDMCBoostClassifier(n_estimators=n_rounds, calibration=None, callbacks=[slowly])
            model.client = client
            model.fit(X, y)
        assert "is lost" not in caplog.text
        until(lambda: cluster.scheduler.adaptive_target() == 0, "no need for workers")
