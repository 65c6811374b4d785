"""Rows on a Dask worker, beside what Dask holds there.

They are not held by Dask's actors, though these were made for it: a worker that has an actor refuses to retire. A worker's rows
lie there for as long as the result of the task that made room for them is wanted, and are asked by a handler of their own.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker
from distributed.protocol import to_serialize
from distributed.utils import sync

from distboost.data.inventory import Probe
from distboost.errors import DistboostError, StoreError, WorkerError
from distboost.runtime.block import Key
from distboost.runtime.cluster.coordinator import LostError
from distboost.runtime.cluster.host import Host
from distboost.runtime.shard import Allotment, Layout

HANDLER = "distboost"


class WorkerSession:
    """A host, and the threads that serve it.

    The token tells it from a session of the same name: where a worker dies and another takes its address, Dask opens one anew,
    and empty.
    """

    def __init__(self, host: Host, worker: Worker):
        self.host, self.worker = host, worker
        self.token = uuid.uuid4().hex
        self.pool = ThreadPoolExecutor(worker.state.nthreads + 1, "distboost-host")
        self.closed = False

    def close(self) -> None:
        """Not before what is under way is done, and without waiting for it."""

        def end() -> None:
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.host.close()

        self.closed = True
        threading.Thread(target=end, name="distboost-closing", daemon=True).start()


_sessions: dict[str, WorkerSession] = {}
_sessions_lock = threading.Lock()  # tasks open open_sessions in threads of their own


def open_sessions() -> list[WorkerSession]:
    """Those of this process."""
    with _sessions_lock:
        return [*_sessions.values()]


def _change(
    is_closed: Callable[[str, WorkerSession], bool], opened: Mapping[str, WorkerSession] | None = None
) -> None:
    with _sessions_lock:
        closed = [name for name, session in _sessions.items() if is_closed(name, session)]
        open_sessions = [_sessions.pop(name) for name in closed]
        _sessions.update(opened or {})
    for session in open_sessions:
        session.close()


class SessionCleanup(WorkerPlugin):
    """Closes a session when Dask has no use for its key: the training is over, or its client is gone."""

    def __init__(self, worker: Worker):
        self.worker = worker

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        if start == "memory" and key in _sessions:
            _change(lambda name, session: name == key)

    def teardown(self, worker: Worker) -> None:
        _change(lambda name, session: session.worker is worker)


def open_session(
    name: str, probes: list[Probe], layout: Layout, n_sets: int, allotment: Allotment | None
) -> str:
    """Makes room for rows on this worker, if it sees the arrays that they are read from; the session's token."""
    worker = get_worker()
    for probe in probes:
        probe.check()
    if allotment is not None and allotment.scratch is None:
        allotment = replace(allotment, scratch=worker.local_directory)
    sync(worker.loop, _install, worker)
    session = WorkerSession(Host(layout, n_sets, allotment, worker.state.nthreads), worker)
    _change(lambda other, _: other == name, {name: session})  # Dask may do a task twice
    return session.token


async def _install(worker: Worker) -> None:
    worker.handlers.setdefault(HANDLER, _answer)
    worker.plugins.setdefault(HANDLER, SessionCleanup(worker))


def _found(name: str, token: str) -> WorkerSession | None:
    """The session, unless it was given up or is another of that name."""
    session = _sessions.get(name)
    return session if session is not None and session.token == token else None


async def _answer(session: str, token: str, method: str, arguments: list) -> dict[str, Any]:
    """What the handler replies."""
    found = _found(session, token)
    if found is None:
        return {"gone": True}
    loop = asyncio.get_running_loop()
    try:
        value = await loop.run_in_executor(found.pool, getattr(found.host, method), *arguments)
    except (Exception, asyncio.CancelledError) as error:
        if found.closed:
            return {"gone": True}
        if isinstance(error, asyncio.CancelledError):  # the worker itself ends
            raise
        return {"error": to_serialize(located_error(error, method, found.worker.address))}
    return {"value": to_serialize(value)}


def store_rows(session: str, token: str, key: Key, function: Callable, *call: Any) -> dict[Key, int]:
    """A task that makes binned rows of what Dask has computed, and leaves them in the session; a digest of them."""
    found = _found(session, token)
    if found is None:
        raise LostError("its session was closed")
    try:
        return found.host.take([(key, function(*call))])
    except Exception as error:
        if found.closed:
            raise LostError("its session was closed") from error
        raise located_error(error, "take", found.worker.address) from error


def located_error(error: BaseException, stage: str, worker: str) -> DistboostError:
    """The error as the caller sees it: where it happened, and of the library's own types."""
    block = getattr(error, "block", None)
    place = f"at '{stage}'{f' of {block}' if block else ''}, on worker {worker}"
    if isinstance(error, DistboostError):
        found: DistboostError = type(error)(f"{error} ({place})")
    else:
        found = WorkerError(
            f"{type(error).__name__}: {error} ({place}). The worker's log has the rest"
            + ("; give it more memory, or a memory_limit." if isinstance(error, MemoryError) else ".")
        )
    found.block, found.stage, found.worker = block, stage, worker  # type: ignore[attr-defined]
    return found


def run_task(function: Callable, *arguments: Any) -> Any:
    """Runs a task; an error of a store says on which worker it was met."""
    try:
        return function(*arguments)
    except StoreError as error:
        worker = get_worker().address
        located = type(error)(f"{error} (on worker {worker})")
        located.worker = worker  # type: ignore[attr-defined]
        raise located from error
