"""The workers of a Dask client: they implement the coordinator's `Workers`."""

from __future__ import annotations

import asyncio
import logging
import operator
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, CancelledError, Future, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from distboost.data.inventory import Probe
from distboost.data.sparse import SparseRows
from distboost.errors import DistboostError, WorkerError
from distboost.inputs.dask_array import DaskPart
from distboost.inputs.frame import FrameRows
from distboost.runtime.base import Allotment, Layout, Reading
from distboost.runtime.block import Key, located
from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.link import POLL_INTERVAL, Link
from distboost.runtime.cluster.monitor import WorkerMonitor
from distboost.runtime.cluster.relay import Peer, packed, unpacked
from distboost.runtime.cluster.worker_session import (
    HANDLER,
    located_error,
    open_session,
    run_task,
    store_rows,
)

log = logging.getLogger("distboost")

CALL_DEADLINE = 3600.0  # seconds, for an answer of a worker that keeps answering pings
QUESTIONS = ("answer", "expand", "search")  # each is sent to all workers
BATCH = 16  # blocks per thread, of those that a worker reads by itself


class SentTask(NamedTuple):
    """A task that was submitted."""

    answer: Future[Any]
    key: str
    # Dask's futures of the task and its arguments. They are kept because Dask forgets tasks without a future.
    futures: list[Any]


class DaskRequest:
    """A request to a worker: a message, or a task to be run there.

    Parameters
    ----------
    worker : str
        Its address.
    future : Future, optional
        Of the reply to a message.
    others : tuple of str
        The addresses of workers below this one, which are asked too.
    send : callable, optional
        Submits a task; called again if the task must be submitted again.

    Attributes
    ----------
    since : float
        When it was sent last (`time.monotonic`).
    key : str or None
        The task's key; None for a message.
    """

    def __init__(
        self,
        worker: str,
        future: Future[Any] | None = None,
        send: Callable[[], SentTask] | None = None,
        others: tuple[str, ...] = (),
    ):
        self.worker, self._send = worker, send
        self.workers = worker, *others
        self.since = time.monotonic()
        self.key: str | None = None
        self._given_up: str | None = None
        self._futures: list[Any] = []
        if send is not None:
            future, self.key, self._futures = send()
        assert future is not None
        self.future = future

    def give_up(self, link: Link, reason: str) -> None:
        """Stop waiting: from now on, `result` raises WorkerLostError."""
        self._given_up = reason
        self.future.cancel()
        link.release(self._futures)

    def renew(self, link: Link, generation_began: float) -> None:
        """Submit a task again if a worker was given up since: its arguments may be on that worker and never arrive."""
        if self._send is not None and generation_began > self.since:
            self.future.cancel()
            link.release(self._futures)
            self.future, self.key, self._futures = self._send()
            self.since = time.monotonic()

    def result(self) -> Any:
        """Return the answer; raise WorkerLostError, or the error that the worker raised."""
        if self._given_up is not None:
            raise WorkerLostError(self._given_up)
        try:
            return self.future.result(timeout=0)
        except (DistboostError, WorkerLostError):
            raise
        except CancelledError as error:
            raise WorkerLostError("the request was cancelled") from error
        except Exception as error:
            raise WorkerError(
                f"worker {self.worker} cannot take part: {type(error).__name__}: {error}.",
                remedy="Check that it runs the same distboost version.",
            ) from error


@dataclass
class RemoteSession:
    """An open session, seen from the client."""

    worker: str
    future: Any  # the session stays open as long as this is kept
    token: str = ""
    direct: bool = False  # whether messages need not go through the scheduler
    probing: asyncio.Task[None] | None = None


class DaskWorkers:
    """The workers of a Dask client, for one run.

    Parameters
    ----------
    link : Link
    monitor : WorkerMonitor
    items : mapping of Key to Reading
        How each block is read. Arguments of a reading may be dask collections.
    layout, n_sets, allotment
        As for `Host`.
    name : str
        Of the training: several may share a cluster.
    """

    def __init__(
        self,
        link: Link,
        monitor: WorkerMonitor,
        items: Mapping[Key, Reading],
        *,
        layout: Layout,
        n_sets: int,
        allotment: Allotment | None,
        name: str,
    ):
        self._link, self._monitor, self._items = link, monitor, items
        self.timeout = link.timeout
        self._host_arguments = _probes(items), layout, n_sets, allotment
        self._name = name
        self._sessions: dict[int, RemoteSession] = {}
        self._question: tuple[tuple[Any, ...], Any] | None = None  # the last one, as it was sent

    def members(self) -> dict[str, int]:
        """Return the workers that can take rows, with their numbers of threads."""
        self._monitor.check()  # answers may come without the scheduler
        return self._monitor.members()

    def wait(self, excluded: Collection[str]) -> None:
        """Wait until there is a worker that is not excluded."""
        self._monitor.wait_for_members(excluded)

    def leaving(self, worker: str) -> bool:
        """Whether a worker has left or is about to leave."""
        return self._monitor.leaving(worker)

    def answers(self, session_id: int) -> bool:
        """Ask the worker of a session for a sign of life, and wait for it."""
        session = self._sessions[session_id]
        return self._monitor.answers(session.worker, session.direct)

    def open_session(self, worker: str, session_id: int) -> DaskRequest:
        """Open a session on a worker."""
        name = self._session_name(session_id)
        future = self._link.submit(
            run_task,
            *(open_session, name, session_id, *self._host_arguments),
            workers=[worker],
            key=name,
            retries=0,
        )
        self._sessions[session_id] = session = RemoteSession(worker, future)

        async def opened() -> None:
            session.token = await self._link.result(future)
            session.probing = asyncio.ensure_future(self._probe(session, name))

        return DaskRequest(worker, self._link.start(opened()))

    def batches(self, keys: list[Key]) -> list[list[Key]]:
        """Split blocks into batches: one block each if the client sends their rows, many if the worker reads them itself."""
        if any(_is_sent(argument) for argument in self._items[keys[0]].call):
            return [[key] for key in keys]
        n = BATCH * max(self._monitor.members().values(), default=1)
        return [keys[i : i + n] for i in range(0, len(keys), n)]

    def load(self, session_id: int, keys: list[Key]) -> DaskRequest:
        """Have a worker read blocks and hold them; the answer is a digest of each that stays in memory."""
        readings = [self._items[key] for key in keys]
        if len(keys) > 1 or not any(isinstance(argument, DaskPart) for argument in readings[0].call):
            return self.ask(session_id, "take", list(zip(keys, readings, strict=True)))
        session, name = self._sessions[session_id], self._session_name(session_id)
        [key], [reading] = keys, readings

        def send() -> SentTask:
            call = [
                self._link.compute(argument, [session.worker], self._monitor.generation)
                if isinstance(argument, DaskPart)
                else argument
                for argument in reading.call
            ]
            # A new key each time: Dask does not run a task again whose key it remembers as done.
            task_key = f"{name}-{key.number}-{key.block}-{uuid.uuid4().hex}"
            future = self._link.submit(
                store_rows,
                *(name, session.token, key, reading.function, *call),
                workers=[session.worker],
                key=task_key,
            )
            answer = self._link.start(self._stored(future, key, session.worker))
            return SentTask(answer, task_key, [*call, future])

        return DaskRequest(session.worker, send=send)

    async def _stored(self, future: Any, key: Key, worker: str) -> Any:
        """Wait for rows that Dask computes. An error in their own tasks is not a lost worker: any worker would raise it."""
        try:
            with located(key):
                return await self._link.result(future)
        except (DistboostError, WorkerLostError):
            raise
        except Exception as error:
            raise located_error(error, "take", worker) from error

    async def _probe(self, session: RemoteSession, name: str) -> None:
        """Find out whether the client can reach a worker without the scheduler."""
        message = {"session": name, "token": session.token, "method": "is_here", "arguments": []}
        session.direct = await self._link.reaches(session.worker, HANDLER, **message)

    def ask(self, session_id: int, method: str, *arguments: Any) -> DaskRequest:
        """Call a method of the session's `Host`."""
        return self.relay([session_id], 1, method, *arguments)

    def relay(self, session_ids: list[int], fan_out: int, method: str, *arguments: Any) -> DaskRequest:
        """Call a method of several sessions: the first one asks the others. The answer is the combined one."""
        first, *others = session_ids
        session = self._sessions[first]
        message = {
            "session": self._session_name(first),
            "token": session.token,
            "method": method,
            "members": [self.peer(other) for other in others],
            "fan_out": fan_out,
            "timeout": self.timeout,
            "arguments": self._sent(arguments) if method in QUESTIONS else packed(arguments),
        }
        below = tuple(self._sessions[other].worker for other in others)
        return DaskRequest(session.worker, self._link.start(self._reply(session, message)), others=below)

    def _sent(self, arguments: tuple[Any, ...]) -> Any:
        """Return the packed arguments of a question, which are packed once for all workers."""
        if self._question is None or not _identical(self._question[0], arguments):
            self._question = arguments, packed(arguments)
        return self._question[1]

    def peer(self, session_id: int) -> Peer:
        """Return how other sessions address a session."""
        session = self._sessions[session_id]
        return Peer(session.worker, self._session_name(session_id), session.token)

    async def _reply(self, session: RemoteSession, message: dict[str, Any]) -> Any:
        reply = await self._link.send(session.worker, HANDLER, session.direct, **message)
        if reply is None or "gone" in reply:  # None: no session was ever opened on the worker
            raise WorkerLostError(
                "it was restarted, or given up before, or a worker below it has not answered"
            )
        if "error" in reply:
            raise unpacked(reply["error"])
        return unpacked(reply["value"])

    def finished(self, requests: Collection[DaskRequest], together: bool = False) -> list[DaskRequest]:
        """Wait until some of the requests have a result, and return these."""
        while True:
            wait(
                [request.future for request in requests],
                timeout=POLL_INTERVAL,
                return_when=FIRST_EXCEPTION if together else FIRST_COMPLETED,
            )
            done = [request for request in requests if request.future.done()]
            if done:
                return done
            for request in requests:
                reasons = map(self._monitor.failure_reason, request.workers)
                reason = next((reason for reason in reasons if reason is not None), None)
                if reason is None and time.monotonic() - request.since > CALL_DEADLINE:
                    reason = f"no answer within {CALL_DEADLINE:.0f} s"
                if reason is not None:
                    request.give_up(self._link, reason)
                else:
                    request.renew(self._link, self._monitor.generation_began)
            self._monitor.check_tasks(
                {
                    request.key: request.since
                    for request in requests
                    if request.key is not None and not self._monitor.leaving(request.worker)
                }
            )

    def close_session(self, session_id: int, lost: bool) -> None:
        """Close a session; if its worker was lost, give that no work until it responds again."""
        session = self._sessions.pop(session_id)
        if lost:
            self._monitor.suspect(session.worker)
        self._link.release([session.future])

    def close(self) -> None:
        """Close all sessions."""
        for session_id in list(self._sessions):
            self.close_session(session_id, lost=False)

    def _session_name(self, session_id: int) -> str:
        return f"{self._name}-{session_id}"


def _probes(items: Mapping[Key, Reading]) -> list[Probe]:
    """Return a probe of each array that workers read themselves."""
    firsts = [reading for key, reading in items.items() if key.block == 0]
    found = [
        argument.probe() for reading in firsts for argument in reading.call if hasattr(argument, "probe")
    ]
    return [probe for probe in found if probe is not None]


def _identical(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _is_sent(argument: Any) -> bool:
    """Whether an argument holds rows that are sent to the worker."""
    return isinstance(argument, DaskPart | np.ndarray | FrameRows | SparseRows)
