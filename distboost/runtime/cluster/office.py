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


class Office:
    """A host, and the threads that serve it.

    The token tells it from an office of the same name: where a worker dies and another takes its address, Dask opens one anew,
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


_offices: dict[str, Office] = {}
_changing = threading.Lock()  # tasks open offices in threads of their own


def offices() -> list[Office]:
    """Those of this process."""
    with _changing:
        return [*_offices.values()]


def _change(is_closed: Callable[[str, Office], bool], opened: Mapping[str, Office] | None = None) -> None:
    with _changing:
        closed = [name for name, office in _offices.items() if is_closed(name, office)]
        offices = [_offices.pop(name) for name in closed]
        _offices.update(opened or {})
    for office in offices:
        office.close()


class Porter(WorkerPlugin):
    """Closes an office when Dask has no use for its key: the training is over, or its client is gone."""

    def __init__(self, worker: Worker):
        self.worker = worker

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        if start == "memory" and key in _offices:
            _change(lambda name, office: name == key)

    def teardown(self, worker: Worker) -> None:
        _change(lambda name, office: office.worker is worker)


def open_office(
    name: str, probes: list[Probe], layout: Layout, n_sets: int, allotment: Allotment | None
) -> str:
    """Makes room for rows on this worker, if it sees the arrays that they are read from; the office's token."""
    worker = get_worker()
    for probe in probes:
        probe.check()
    if allotment is not None and allotment.scratch is None:
        allotment = replace(allotment, scratch=worker.local_directory)
    sync(worker.loop, _install, worker)
    office = Office(Host(layout, n_sets, allotment, worker.state.nthreads), worker)
    _change(lambda other, _: other == name, {name: office})  # Dask may do a task twice
    return office.token


async def _install(worker: Worker) -> None:
    worker.handlers.setdefault(HANDLER, _answer)
    worker.plugins.setdefault(HANDLER, Porter(worker))


def _found(name: str, token: str) -> Office | None:
    """The office, unless it was given up or is another of that name."""
    office = _offices.get(name)
    return office if office is not None and office.token == token else None


async def _answer(office: str, token: str, method: str, arguments: list) -> dict[str, Any]:
    """What the handler replies."""
    found = _found(office, token)
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
        return {"error": to_serialize(told(error, method, found.worker.address))}
    return {"value": to_serialize(value)}


def give_rows(office: str, token: str, key: Key, function: Callable, *call: Any) -> dict[Key, int]:
    """A task that makes binned rows of what Dask has computed, and leaves them in the office; a digest of them."""
    found = _found(office, token)
    if found is None:
        raise LostError("its office was closed")
    try:
        return found.host.take([(key, function(*call))])
    except Exception as error:
        if found.closed:
            raise LostError("its office was closed") from error
        raise told(error, "take", found.worker.address) from error


def told(error: BaseException, stage: str, worker: str) -> DistboostError:
    """The error as the caller sees it: where it happened, and of the library's own types."""
    block = getattr(error, "block", None)
    place = f"at '{stage}'{f' of {block}' if block else ''}, on worker {worker}"
    if isinstance(error, DistboostError):
        told: DistboostError = type(error)(f"{error} ({place})")
    else:
        told = WorkerError(
            f"{type(error).__name__}: {error} ({place}). The worker's log has the rest"
            + ("; give it more memory, or a memory_limit." if isinstance(error, MemoryError) else ".")
        )
    told.block, told.stage, told.worker = block, stage, worker  # type: ignore[attr-defined]
    return told


def on_worker(function: Callable, *arguments: Any) -> Any:
    """Runs a task; an error of a store says on which worker it was met."""
    try:
        return function(*arguments)
    except StoreError as error:
        worker = get_worker().address
        told = type(error)(f"{error} (on worker {worker})")
        told.worker = worker  # type: ignore[attr-defined]
        raise told from error
