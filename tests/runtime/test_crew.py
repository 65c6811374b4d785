"""What counts as the loss of a Dask worker, and what does not."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from types import SimpleNamespace

import dask.array as da
import pytest
from distributed import Client, LocalCluster

from distboost import AdaBoostMMClassifier
from distboost.errors import WorkerError
from distboost.runtime.block import Key
from distboost.runtime.cluster import worker_session
from distboost.runtime.cluster.link import Link
from distboost.runtime.cluster.monitor import WorkerMonitor, find_unrunnable
from distboost.runtime.cluster.runtime import ClusterRuntime
from distboost.runtime.cluster.worker_session import open_sessions
from tests.faults.crews import until
from tests.ports import free_ports
from tests.programs import Program

BACK = 40.0  # seconds until the next process has taken the address


def open_sessions_here():
    return os.getpid(), len(open_sessions())


@pytest.fixture
def client():
    """Of a worker whose nanny starts it again on the same port."""
    [port] = free_ports(1)
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", worker_port=port, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_the_successor_of_a_worker_is_not_taken_for_it(client, blobs, saved, caplog, monkeypatch):
    """It dies between two questions, and is replaced under its address before anyone asks.

    Dask opens the lost worker's session again on the next one, and empty: its answers would be sums over no rows.
    """
    X, y = blobs

    def model(**parameters):
        return AdaBoostMMClassifier(calibration=None, n_estimators=6, max_depth=1, **parameters)

    before, monitors = [], []
    members = WorkerMonitor.members

    def asked(monitor):
        monitors.append(monitor)
        return members(monitor)

    monkeypatch.setattr(WorkerMonitor, "members", asked)

    def replace(progress):
        if progress.round != 3:
            return
        [(address, (pid, n_sessions))] = client.run(open_sessions_here).items()
        assert n_sessions == 1
        os.kill(pid, signal.SIGKILL)
        last = time.monotonic() + BACK
        while (found := back(address)) is None or found[0] == pid or not found[1]:
            assert time.monotonic() < last, f"nobody has taken {address} within {BACK:.0f} s"
            time.sleep(0.1)
        until(
            lambda: not monitors[-1].leaving(address), "the training knows nothing of the time between them"
        )
        before.append(pid)

    def back(address):
        try:
            return client.run(open_sessions_here, workers=[address])[address]
        except (OSError, ValueError):  # it is gone, or not there yet
            return None

    alone = model(n_jobs=1).fit(X, y)
    there = model(callbacks=[replace])
    there.client = client
    with caplog.at_level(logging.WARNING, "distboost"):
        there.fit(X, y)
    assert len(before) == 1
    assert "is lost at 'update' of round 5" in caplog.text
    assert saved(there) == saved(alone)


def test_rows_that_no_worker_may_compute(client):
    """A task waits for them in vain; where there are no workers at all, it only waits."""

    def lacking(future):
        return client.run_on_scheduler(find_unrunnable, future.key)

    lost = client.submit(sum, [1], workers=["tcp://127.0.0.1:9"], key="lost")
    waiting = client.submit(abs, client.submit(abs, lost))
    until(lambda: lacking(waiting) == ("lost", False), "the scheduler knows the tasks")
    client.retire_workers()
    assert lacking(waiting) is None
    anywhere = client.submit(abs, client.submit(sum, [2]))
    until(lambda: client.run_on_scheduler(has_task, anywhere.key), "the scheduler knows the task")
    assert lacking(anywhere) is None


def test_sessions_are_opened_while_others_close():
    """Tasks open them in threads of a worker's pool, and its event loop closes them."""

    class Host:
        exchange = SimpleNamespace(session=1)

        def close(self):
            pass

    class Worker:
        state = SimpleNamespace(nthreads=1)
        loop = SimpleNamespace(add_callback=lambda function: function())

    ours, theirs = Worker(), Worker()
    n = 300

    def open_many(worker):
        for number in range(n):
            name = f"{id(worker)}-{number}"
            worker_session._replace_sessions(
                lambda other, _, name=name: other == name,
                {name: worker_session.WorkerSession(Host(), worker)},
            )

    threads = [threading.Thread(target=open_many, args=(worker,)) for worker in (ours, theirs)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert all(session.host for session in open_sessions())
        worker_session.SessionCleanup(ours).teardown(ours)
    worker_session.SessionCleanup(ours).teardown(ours)
    assert [each.worker for each in open_sessions()] == [theirs] * n
    worker_session.SessionCleanup(theirs).teardown(theirs)
    assert not open_sessions()


def test_a_worker_that_ends_does_not_look_for_garbage():
    """Among all that the libraries have made: Dask warns and kills it if that takes 4 seconds."""
    program = (
        "import atexit, gc\n"
        "gc.unfreeze()\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0))\n"  # after those that are registered later
        "from distributed import Client\n"
        "from distboost.runtime.cluster.worker_session import run_task\n"
        "with Client(processes=False, n_workers=1, dashboard_address=':0') as client:\n"
        "    print(client.submit(run_task, abs, -1).result(), gc.get_freeze_count())\n"
    )
    assert Program(program).communicate(timeout=60) == ("1 0\nTrue\n", "")


def has_task(key, dask_scheduler=None):
    return key in dask_scheduler.tasks


def test_a_failing_computation_is_not_a_lost_worker(clients, blobs, monkeypatch, tmp_path, caplog):
    """Nor would it help to try it on every worker: the error says which rows, and what has befallen them."""
    X, y = blobs
    gone = tmp_path / "gone"

    def chunk(rows, block_info=None):
        if gone.exists() and block_info[0]["chunk-location"][0] == 3:
            raise FileNotFoundError("chunk 3 is not there")
        return rows

    place = ClusterRuntime.place

    def placed(*arguments):
        gone.touch()  # what has been scanned can no longer be binned
        return place(*arguments)

    monkeypatch.setattr(ClusterRuntime, "place", placed)
    model = AdaBoostMMClassifier(calibration=None, n_estimators=2, max_depth=1)
    model.client = clients[2]
    lazy = da.from_array(X, chunks=(40, 4)).map_blocks(chunk, dtype=X.dtype, meta=X[:0])
    with (
        caplog.at_level(logging.WARNING, "distboost"),
        pytest.raises(
            WorkerError, match=r"FileNotFoundError: chunk 3 is not there \(at 'take' of block 1 of"
        ) as caught,
    ):
        model.fit(lazy, y)
    assert caught.value.block == Key(0, 1)
    assert "is lost" not in caplog.text


@pytest.mark.parametrize("allowed", [None, False])
def test_the_client_reaches_workers_without_the_scheduler(allowed, clients, blobs, saved, monkeypatch):
    """If it can and may; a worker that cannot be reached is asked through the scheduler."""
    X, y = blobs
    sent = []
    send, reaches = Link.send, Link.reaches
    found = threading.Event()

    async def recorded(link, worker, operation, direct=False, /, **message):
        if operation == worker_session.HANDLER:
            sent.append((worker, direct))
        return await send(link, worker, operation, direct, **message)

    async def some(link, worker, operation, **message):
        here = await reaches(link, worker if worker != blind else "tcp://127.0.0.1:9", operation, **message)
        found.set()
        return here

    monkeypatch.setattr(Link, "send", recorded)
    monkeypatch.setattr(Link, "reaches", some)
    client = clients[2]
    monkeypatch.setattr(client, "direct_to_workers", allowed)
    blind, seen = client.scheduler_info()["workers"]
    model = AdaBoostMMClassifier(
        calibration=None, n_estimators=12, max_depth=1, callbacks=[lambda _: found.wait(10) and None]
    )
    model.client = client
    model.fit(da.from_array(X, chunks=(40, 4)), y)
    assert {(worker, direct) for worker, direct in sent[len(sent) // 2 :]} == {
        (blind, False), (seen, allowed is None),
    }  # fmt: skip
    assert saved(model) == saved(
        AdaBoostMMClassifier(calibration=None, n_estimators=12, max_depth=1, n_jobs=1).fit(X, y)
    )
