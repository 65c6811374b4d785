"""Dask workers: how their sessions are opened and how they are asked."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from distributed.protocol import to_serialize

from distboost.data.graphs import renamed
from distboost.data.inventory import Probe
from distboost.data.sources import is_dask
from distboost.errors import DistboostError, WorkerError
from distboost.runtime.block import Key, located
from distboost.runtime.cluster.coordinator import LostError
from distboost.runtime.cluster.link import POLL_INTERVAL, Link
from distboost.runtime.cluster.monitor import WorkerMonitor
from distboost.runtime.cluster.worker_session import (
    HANDLER,
    located_error,
    open_session,
    run_task,
    store_rows,
)
from distboost.runtime.shard import Allotment, Layout, Reading

log = logging.getLogger("distboost")

CALL_DEADLINE = 3600.0  # seconds, for an answer of a worker that gives signs of life all the time
BATCH = 16  # blocks per thread that a worker reads by itself


class SentTask(NamedTuple):
    """A task under way."""

    answer: Future
    key: str
    futures: list[Any]  # Dask's, of the task and of what it takes: without them, Dask would let go of it


class DaskRequest:
    """An answer that is to come from a worker, or from a task there: then `send` sends it once more."""

    def __init__(self, worker: str, future: Future | None = None, send: Callable[[], SentTask] | None = None):
        self.worker, self._send = worker, send
        self.since = time.monotonic()
        self.given_up: str | None = None
        self.key: str | None = None
        self._futures: list[Any] = []
        if send is not None:
            future, self.key, self._futures = send()
        assert future is not None
        self.future = future

    def give_up(self, link: Link, why: str) -> None:
        self.given_up = why
        self.future.cancel()
        link.release(self._futures)

    def renew(self, link: Link, generation_began: float) -> None:
        """What a task takes may be on a worker that was given up since, and would not come."""
        if self._send is not None and generation_began > self.since:
            self.future.cancel()
            link.release(self._futures)
            self.future, self.key, self._futures = self._send()
            self.since = time.monotonic()

    def result(self) -> Any:
        if self.given_up is not None:
            raise LostError(self.given_up)
        try:
            return self.future.result(timeout=0)
        except (DistboostError, LostError):
            raise
        except CancelledError as error:
            raise LostError("it was given up") from error
        except Exception as error:
            raise WorkerError(
                f"worker {self.worker} cannot take part: {type(error).__name__}: {error}. Has it this version of distboost?"
            ) from error


@dataclass
class RemoteSession:
    """A session as the coordinator sees it: on which worker it is open."""

    worker: str
    future: Any  # the session is open as long as this is wanted
    token: str = ""


class DaskWorkers:
    """The workers of a Dask client, for one training.

    Parameters
    ----------
    link : Link
    monitor : WorkerMonitor
    items : mapping of Key to Reading
        How each block is read; may have dask collections among its arguments.
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
        layout: Layout,
        n_sets: int,
        allotment: Allotment | None,
        name: str,
    ):
        self._link, self._monitor, self._items = link, monitor, items
        self._host = _probes(items), layout, n_sets, allotment
        self._name = name
        self._sessions: dict[int, RemoteSession] = {}

    def members(self) -> dict[str, int]:
        return self._monitor.members()

    def wait(self, besides: Collection[str]) -> None:
        self._monitor.wait_for_members(besides)

    def leaving(self, worker: str) -> bool:
        return self._monitor.leaving(worker)

    def open_session(self, worker: str, session_id: int) -> DaskRequest:
        key = self._session_name(session_id)
        future = self._link.submit(
            run_task, open_session, key, *self._host, workers=[worker], key=key, retries=0
        )
        self._sessions[session_id] = begun = RemoteSession(worker, future)

        async def opened() -> None:
            begun.token = await self._link.result(future)

        return DaskRequest(worker, self._link.start(opened()))

    def batches(self, keys: list[Key]) -> list[list[Key]]:
        """Blocks whose rows travel go one by one; those that the worker reads itself, many at a time."""
        if any(_travels(argument) for argument in self._items[keys[0]].call):
            return [[key] for key in keys]
        n = BATCH * max(self._monitor.members().values(), default=1)
        return [keys[i : i + n] for i in range(0, len(keys), n)]

    def load(self, session_id: int, keys: list[Key]) -> DaskRequest:
        readings = [self._items[key] for key in keys]
        if len(keys) > 1 or not any(is_dask(argument) for argument in readings[0].call):
            return self.ask(session_id, "take", list(zip(keys, readings, strict=True)))
        worker, token = self._sessions[session_id].worker, self._sessions[session_id].token
        [key], [reading] = keys, readings

        def send() -> SentTask:
            call = [
                self._link.compute(renamed(argument, self._monitor.generation), [worker])
                if is_dask(argument)
                else argument
                for argument in reading.call
            ]
            # Never a name of before: Dask would not do again what it remembers as done.
            name = f"{self._session_name(session_id)}-{key.number}-{key.block}-{uuid.uuid4().hex}"
            future = self._link.submit(
                store_rows,
                self._session_name(session_id),
                token,
                key,
                reading.function,
                *call,
                workers=[worker],
                key=name,
            )
            return SentTask(self._link.start(self._taken(future, key, worker)), name, [*call, future])

        return DaskRequest(worker, send=send)

    async def _taken(self, future: Any, key: Key, worker: str) -> dict[Key, int]:
        """Waits for rows that Dask computes: what befalls their own tasks would befall them everywhere."""
        try:
            with located(key):
                return await self._link.result(future)
        except (DistboostError, LostError):
            raise
        except Exception as error:
            raise located_error(error, "take", worker) from error

    def ask(self, session_id: int, method: str, *arguments: Any) -> DaskRequest:
        worker, token = self._sessions[session_id].worker, self._sessions[session_id].token
        message = {
            "session": self._session_name(session_id),
            "token": token,
            "method": method,
            "arguments": [to_serialize(argument) for argument in arguments],
        }
        return DaskRequest(worker, self._link.start(self._asked(worker, message)))

    async def _asked(self, worker: str, message: dict[str, Any]) -> Any:
        reply = await self._link.send(worker, HANDLER, **message)
        if reply is None or "gone" in reply:  # None: a worker that has never had a session
            raise LostError("it was restarted, or given up before")
        if "error" in reply:
            raise reply["error"]
        return reply["value"]

    def finished(self, requests: Collection[DaskRequest]) -> list[DaskRequest]:
        while True:
            wait([request.future for request in requests], timeout=POLL_INTERVAL, return_when=FIRST_COMPLETED)
            done = [request for request in requests if request.future.done()]
            if done:
                return done
            for request in requests:
                why = self._monitor.failure_reason(request.worker)
                if why is None and time.monotonic() - request.since > CALL_DEADLINE:
                    why = f"no answer within {CALL_DEADLINE:.0f} s"
                if why is not None:
                    request.give_up(self._link, why)
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
        ended = self._sessions.pop(session_id)
        if lost:
            self._monitor.suspect(ended.worker)
        self._link.release([ended.future])

    def close(self) -> None:
        for session_id in list(self._sessions):
            self.close_session(session_id, lost=False)

    def _session_name(self, session_id: int) -> str:
        return f"{self._name}-{session_id}"


def _probes(items: Mapping[Key, Reading]) -> list[Probe]:
    """One of each array that workers read."""
    firsts = [reading for key, reading in items.items() if key.block == 0]
    found = [
        argument.probe() for reading in firsts for argument in reading.call if hasattr(argument, "probe")
    ]
    return [probe for probe in found if probe is not None]


def _travels(argument: Any) -> bool:
    return is_dask(argument) or isinstance(argument, np.ndarray)
