"""Requests and tasks that are lost, without a cluster."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import CancelledError, Future
from types import SimpleNamespace

import pytest
from distributed.comm import CommClosedError

from distboost.errors import ClusterError, DataError, WorkerError
from distboost.runtime.cluster import monitor, tasks
from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.link import Link
from distboost.runtime.cluster.workers import DaskRequest


def answered(error: Exception) -> DaskRequest:
    future = Future()
    future.set_exception(error)
    return DaskRequest("tcp://a:1", future)


def test_a_cancelled_request_is_that_of_a_lost_worker():
    future = Future()
    future.cancel()
    with pytest.raises(WorkerLostError, match="the request was cancelled"):
        DaskRequest("tcp://a:1", future).result()


def test_a_task_sent_before_a_worker_was_given_up_is_sent_again():
    sent, released = [], []
    link = SimpleNamespace(release=released.extend)

    def send():
        sent.append(Future())
        return sent[-1], f"key {len(sent)}", [f"input {len(sent)}"]

    request, message = DaskRequest("tcp://a:1", send=send), answered(KeyError("x"))
    for asked in (request, message):
        asked.renew(link, asked.since)
    assert (len(sent), request.key, released) == (1, "key 1", [])
    since = request.since
    for asked in (request, message):
        asked.renew(link, asked.since + 1e-9)
    assert (len(sent), request.key, released) == (2, "key 2", ["input 1"])
    assert request.future is sent[1]
    assert sent[0].cancelled()
    assert request.since >= since
    request.give_up(link, "it is silent")
    assert released == ["input 1", "input 2"]
    with pytest.raises(WorkerLostError, match="it is silent"):
        request.result()


def test_errors_of_requests():
    for error in (WorkerLostError("gone"), DataError("bad rows")):
        with pytest.raises(type(error)) as found:
            answered(error).result()
        assert found.value is error
    with pytest.raises(
        WorkerError, match=r"worker tcp://a:1 cannot take part: KeyError: 'x'\. Check that it"
    ):
        answered(KeyError("x")).result()


@pytest.mark.parametrize("n_losses", [0, 1, 9, 10])
def test_a_task_that_is_lost_is_submitted_again_so_many_times(n_losses, caplog):
    submitted, released, shared = [], [], tasks.Shared(7)

    def submit(function, arguments, worker, suffix):
        submitted.append(suffix)
        assert shared.future is None  # its worker may be gone, too
        shared.future = "sent"
        return SimpleNamespace(
            workers=None, inputs=[], future=SimpleNamespace(key=f"task-{suffix}"), since=1.0
        )

    def wait(call):
        if len(submitted) < n_losses:
            raise WorkerLostError("it is gone")
        return "answer"

    link = SimpleNamespace(release=released.extend)
    of = SimpleNamespace(link=link, _wait=wait, _submit=submit)
    shared.future = "sent"
    call = SimpleNamespace(
        function=abs, arguments=[shared], own_inputs=["input"], future=SimpleNamespace(key="task"), since=0.0
    )
    if n_losses == 10:
        with pytest.raises(
            ClusterError, match=r"^task-.* was lost 10 times with its workers, .*: it is gone\. Check"
        ):
            tasks.ClusterTasks._result(of, call)
    else:
        assert tasks.ClusterTasks._result(of, call) == "answer"
    assert len(submitted) == len(set(submitted)) == min(n_losses, 9)
    assert len(released) == 2 * n_losses
    assert caplog.text.count("it is submitted again") == min(n_losses, 9)


@pytest.mark.parametrize(
    ("status", "error", "own"),
    [
        ("error", KeyError("x"), True),
        ("error", OSError("of the task"), True),
        ("error", CommClosedError("cut"), False),
        ("lost", OSError("of the client"), False),
        ("cancelled", CancelledError("key"), False),
    ],
    ids=repr,
)
def test_an_error_of_a_task_is_its_own_unless_it_was_lost(status, error, own):
    link = Link.__new__(Link)
    link.check = lambda: None

    async def result():
        raise error

    with pytest.raises(type(error) if own else WorkerLostError) as found:
        asyncio.run(link.result(SimpleNamespace(status=status, result=result)))
    assert (found.value is error) == own


@pytest.mark.parametrize(
    ("silent", "healthy", "none_responds"),
    [("", "ab", False), ("a", "b", False), ("ab", "", True), ("", "", True)],
    ids=["healthy", "one silent", "both silent", "no worker"],
)
def test_there_are_no_workers_if_none_responds(silent, healthy, none_responds, monkeypatch):
    monkeypatch.setattr(monitor, "REFRESH_INTERVAL", 0.01)
    listed = []

    async def workers():
        listed.append(1)
        if len(listed) > 12:
            raise InterruptedError
        return {worker: {"nthreads": 1} for worker in silent + healthy}

    async def send(worker, operation, direct):
        if worker in silent:
            raise WorkerLostError("it is silent")

    link = SimpleNamespace(
        timeout=20.0, workers=workers, send=send, run=asyncio.run, start=lambda work: work.close()
    )
    found = monitor.WorkerMonitor(link)
    with pytest.raises(InterruptedError):
        asyncio.run(found._refresh())
    assert (found._seconds_without_workers > 0) == none_responds
    assert found.members() == dict.fromkeys(healthy, 1)


@pytest.fixture
def watching(monkeypatch):
    """watching(workers): the monitor of a scheduler that describes its workers so, which the test may change; no time passes."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, sleep=lambda seconds: clock.pass_(seconds))

    def pass_(seconds):
        clock.now += seconds
        clock.at.pop(clock.now, lambda: None)()

    clock.pass_, clock.at = pass_, {}
    monkeypatch.setattr(monitor, "time", clock)

    def begin(workers, check=lambda: None):
        async def listed():
            return workers

        link = SimpleNamespace(
            address="tcp://a:1",
            timeout=20.0,
            workers=listed,
            run=asyncio.run,
            start=lambda work: work.close(),
            check=check,
        )
        return monitor.WorkerMonitor(link), clock

    return begin


def worker(status="running"):
    return {"nthreads": 2, "status": status}


def test_as_many_workers_as_wanted_are_waited_for(watching, caplog):
    """Also if there is none for longer than a run waits for a first one; each change is logged, and every half minute."""
    found, clock = watching({})
    found._seconds_without_workers = 2 * monitor.WORKERS_DEADLINE

    def come(*names):
        found._workers |= {name: worker() for name in names}
        found._last_seen |= dict.fromkeys(names, clock.now)

    clock.at = {100.0: lambda: come("a"), 500.0: lambda: come("b", "c", "d")}
    with caplog.at_level(logging.INFO, "distboost"):
        assert found.wait_for_number(3) == dict.fromkeys("abcd", 2)
    assert clock.now == 500.0
    found.check()
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "waiting for workers at tcp://a:1: 0 of 3 are there (waited 0 s of at most 600 s)"
    assert "waiting for workers at tcp://a:1: 1 of 3 are there (waited 100 s of at most 600 s)" in said
    assert len(said) == 4 + 14  # after 0, 30, 60, 90, 100, 130, ... s, give or take a poll


def test_workers_that_cannot_take_work_do_not_count(watching):
    states = {"a": worker(), "b": worker("paused"), "c": worker("closing_gracefully"), "d": worker()}
    found, clock = watching(states)
    found.suspect("d")
    with pytest.raises(
        ClusterError,
        match=r"^the scheduler at tcp://a:1 had 1 of 2 workers after 600 s; 3 more can take no work, as they are paused, "
        r"leaving or silent\. Start more \(dask worker tcp://a:1\), .*: wait_for_workers\.$",
    ):
        found.wait_for_number(2)
    assert 600 < clock.now < 601
    states["b"] = worker()
    assert found.wait_for_number(2) == {"a": 2, "b": 2}
    assert found.wait_for_number(1) == {"a": 2, "b": 2}


def test_a_scheduler_that_is_gone_is_not_waited_for(watching):
    def gone():
        raise ClusterError("it is gone")

    with pytest.raises(ClusterError, match="it is gone"):
        watching({"a": worker()}, gone)[0].wait_for_number(2)
