"""A crew of Dask workers: how they are watched, hired and asked.

Rows are not held by Dask's actors, though these were made for it: a worker that has an actor refuses to retire. A worker's rows
lie beside Dask instead, for as long as the result of the task that made room for them is wanted, and are asked by a
handler of their own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Client, KilledWorker, Worker, WorkerPlugin, get_worker
from distributed.comm import CommClosedError
from distributed.protocol import to_serialize
from distributed.utils import sync

from distboost.data.sources import is_dask
from distboost.errors import ClusterError, DistboostError, WorkerError
from distboost.runtime.block import Key, located
from distboost.runtime.coordinator import LostError
from distboost.runtime.host import Host
from distboost.runtime.shard import Allotment, Layout, Reading

log = logging.getLogger("distboost")

# Seconds.
POLL = 0.25
LOOK = 1.0  # between looks at the scheduler's list of workers
WORKERS_DEADLINE = 60.0  # for the first worker
CALL_DEADLINE = 3600.0  # for an answer of a worker that gives signs of life all the time

MISSES = 3  # signs of life that fail to come, one after another, until a worker is given up
PARCEL = 16  # blocks per thread that a worker reads by itself

HANDLER = "distboost"

LOSSES = (
    OSError,
    KilledWorker,
    CancelledError,
    asyncio.CancelledError,
)  # what tells of a worker that is gone


# On a worker.


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


class Porter(WorkerPlugin):
    """Closes an office when Dask has no use for its key: the training is over, or its client is gone."""

    def __init__(self, worker: Worker):
        self.worker = worker

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        if start == "memory" and key in _offices:
            _offices.pop(key).close()

    def teardown(self, worker: Worker) -> None:
        for name in [name for name, office in _offices.items() if office.worker is worker]:
            _offices.pop(name).close()


def open_office(name: str, layout: Layout, n_sets: int, allotment: Allotment | None) -> str:
    """Makes room for rows on this worker; the office's token."""
    worker = get_worker()
    if allotment is not None and allotment.scratch is None:
        allotment = replace(allotment, scratch=worker.local_directory)
    sync(worker.loop, _install, worker)
    _offices[name] = office = Office(Host(layout, n_sets, allotment, worker.state.nthreads), worker)
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
        return {"error": to_serialize(_told(error, method, found.worker.address))}
    return {"value": to_serialize(value)}


def give_rows(office: str, token: str, key: Key, function: Callable, *call: Any) -> None:
    """A task that makes binned rows of what Dask has computed, and leaves them in the office."""
    found = _found(office, token)
    if found is None:
        raise LostError("its office was closed")
    try:
        found.host.take([(key, function(*call))])
    except Exception as error:
        if found.closed:
            raise LostError("its office was closed") from error
        raise _told(error, "take", found.worker.address) from error


def _told(error: BaseException, stage: str, worker: str) -> DistboostError:
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


# At the client.


class Watch:
    """Which workers there are, and which of them give signs of life.

    Parameters
    ----------
    client : distributed.Client
    timeout : float
        Seconds without a sign of life after which a worker is given up.

    Attributes
    ----------
    given_up_at : float
        When a worker was given up last (`time.monotonic`).
    """

    def __init__(self, client: Client, timeout: float):
        self.client, self.timeout = client, timeout
        self.given_up_at = -1.0
        now = time.monotonic()
        self._workers: dict[str, dict] = client.scheduler_info(n_workers=-1)["workers"]
        self._heard = dict.fromkeys(self._workers, now)
        self._misses: dict[str, int] = {}
        self._doubted: dict[str, float] = {}
        self._pings: dict[str, asyncio.Task] = {}
        self._silent = 0  # looks, one after another, that the scheduler did not answer
        self._deserted_for = 0.0  # seconds in which no worker gave a sign of life, by looks
        self._looking = start(client, self._look())

    def members(self) -> dict[str, int]:
        """The workers that can work, with their threads."""
        return {
            address: info["nthreads"]
            for address, info in sorted(self._workers.items())
            if info.get("status", "running") == "running" and self._is_well(address)
        }

    def known(self) -> Collection[str]:
        """The workers that the scheduler knows, those among them that give no sign of life too."""
        return self._workers.keys()

    def leaving(self, worker: str) -> bool:
        """Whether it is gone, or about to go."""
        info = self._workers.get(worker)
        return info is None or info.get("status", "running") not in ("running", "paused")

    def doubt(self, worker: str) -> None:
        """It has no work until it gives a new sign of life."""
        self._doubted[worker] = time.monotonic()

    def verdict(self, worker: str) -> str | None:
        """Why a worker that owes an answer is given up, if it is."""
        self.check()
        if worker not in self._workers:
            return "it has left the cluster"
        if self._misses.get(worker, 0) >= MISSES:
            return f"no sign of life for {self.timeout:g} s"
        return None

    def check(self) -> None:
        """Raises if the scheduler is gone, or has been without workers for long."""
        if self._deserted_for > WORKERS_DEADLINE:
            raise self._deserted()
        if self.client.status in ("closed", "closing") or self._silent >= MISSES:
            raise ClusterError(
                f"the scheduler at {_address(self.client)} does not answer. Start a cluster, then go on from the checkpoint with "
                "fit(..., resume=True), if there is one."
            )

    def wait_for_members(self, besides: Collection[str] = ()) -> dict[str, int]:
        """The workers that can work, without these, once there is one."""
        last = time.monotonic() + WORKERS_DEADLINE
        while not (found := {name: n for name, n in self.members().items() if name not in besides}):
            self.check()
            if time.monotonic() > last:
                raise self._deserted()
            time.sleep(POLL)
        return found

    def _deserted(self) -> ClusterError:
        return ClusterError(
            f"the scheduler at {_address(self.client)} had no worker within {WORKERS_DEADLINE:.0f} s. "
            "Start some: dask worker <scheduler address>."
        )

    def close(self) -> None:
        self._looking.cancel()

    def _is_well(self, worker: str) -> bool:
        heard = self._heard.get(worker)
        return (
            heard is not None
            and heard > self._doubted.get(worker, -1.0)
            and self._misses.get(worker, 0) < MISSES
        )

    async def _look(self) -> None:
        try:
            while True:
                await self._ask_scheduler()
                # A thousand workers need not be asked every second.
                pause = max(LOOK, len(self._workers) / 200)
                if any(self._misses.get(address, 0) < MISSES for address in self._workers):
                    self._deserted_for = 0.0
                elif not self._silent:
                    self._deserted_for += pause
                for address in self._workers:
                    if address not in self._pings or self._pings[address].done():
                        self._pings[address] = asyncio.ensure_future(self._ping(address))
                for gone in self._pings.keys() - self._workers.keys():
                    self._pings.pop(gone).cancel()
                await asyncio.sleep(pause)
        finally:
            for ping in self._pings.values():
                ping.cancel()

    async def _ask_scheduler(self) -> None:
        scheduler: Any = self.client.scheduler
        try:
            found = await asyncio.wait_for(scheduler.identity(n_workers=-1), self.timeout / MISSES)
        except Exception as error:  # whatever it is, nothing was learned
            log.debug("the scheduler did not answer: %r", error)
            self._silent += 1
        else:
            self._workers, self._silent = found["workers"], 0

    async def _ping(self, worker: str) -> None:
        began = time.monotonic()
        try:
            await asyncio.wait_for(send(self.client, worker, "identity"), self.timeout / MISSES)
        except Exception:
            self._misses[worker] = self._misses.get(worker, 0) + 1
            if self._misses[worker] == MISSES:
                self.given_up_at = time.monotonic()
        else:
            self._misses[worker], self._heard[worker] = 0, began


def start(client: Client, work: Coroutine) -> Future:
    """Runs a coroutine on the client's event loop."""
    loop: Any = client.loop
    return asyncio.run_coroutine_threadsafe(work, loop.asyncio_loop)


def send(client: Client, worker: str, operation: str, **message: Any) -> Awaitable[Any]:
    """A message to a worker: through the scheduler, unless the client talks to workers itself."""
    scheduler: Any = client.scheduler
    if client.direct_to_workers:
        return getattr(client.rpc(worker), operation)(**message)
    return scheduler.proxy(worker=worker, msg={"op": operation, **message})


def _address(client: Client) -> str:
    return str(client.scheduler.address) if client.scheduler else "?"


def unrunnable(key: str, dask_scheduler: Any = None) -> str | None:
    """A task on the scheduler that the given one waits for and no worker may run, if there is one."""
    todo, seen = [dask_scheduler.tasks.get(key)], set()
    while todo:
        task = todo.pop()
        if task is None or task in seen:
            continue
        if task.state == "no-worker":
            return str(task.key)
        seen.add(task)
        todo += [other for other in task.dependencies if other.state in ("waiting", "no-worker")]
    return None


class DaskTicket:
    """An answer that is to come from a worker, or from a task there."""

    def __init__(self, worker: str, future: Future, key: str | None = None):
        self.worker, self.future, self.key = worker, future, key
        self.since = time.monotonic()
        self.given_up: str | None = None

    def give_up(self, why: str) -> None:
        self.given_up = why
        self.future.cancel()

    def result(self) -> Any:
        if self.given_up is not None:
            raise LostError(self.given_up)
        try:
            return self.future.result(timeout=0)
        except (DistboostError, LostError):
            raise
        except LOSSES as error:
            raise LostError(f"{type(error).__name__}: {error}") from error
        except Exception as error:
            raise WorkerError(
                f"worker {self.worker} cannot take part: {type(error).__name__}: {error}. Has it this version of distboost?"
            ) from error


@dataclass
class Term:
    """Where a term is served."""

    worker: str
    future: Any  # the office is open as long as this is wanted
    token: str = ""


class DaskCrew:
    """The workers of a Dask client, for one training.

    Parameters
    ----------
    client : distributed.Client
    watch : Watch
    items : mapping of Key to Reading
        How each block is read; may have dask collections among its arguments.
    layout, n_sets, allotment
        As for `Host`.
    name : str
        Of the training: several may share a cluster.
    """

    def __init__(
        self,
        client: Client,
        watch: Watch,
        items: Mapping[Key, Reading],
        layout: Layout,
        n_sets: int,
        allotment: Allotment | None,
        name: str,
    ):
        self._client, self._watch, self._items = client, watch, items
        self._host = layout, n_sets, allotment
        self._name = name
        self._terms: dict[int, Term] = {}
        self._checked = time.monotonic()

    def members(self) -> dict[str, int]:
        return self._watch.members()

    def wait(self, besides: Collection[str]) -> None:
        self._watch.wait_for_members(besides)

    def leaving(self, worker: str) -> bool:
        return self._watch.leaving(worker)

    def hire(self, worker: str, term: int) -> DaskTicket:
        key = self._office(term)
        future = self._client.submit(
            open_office, key, *self._host, workers=[worker], key=key, pure=False, retries=0
        )
        self._terms[term] = begun = Term(worker, future)

        async def opened() -> None:
            begun.token = await future

        return DaskTicket(worker, start(self._client, opened()))

    def parcels(self, keys: list[Key]) -> list[list[Key]]:
        """Blocks whose rows travel go one by one; those that the worker reads itself, many at a time."""
        if any(_travels(argument) for argument in self._items[keys[0]].call):
            return [[key] for key in keys]
        n = PARCEL * max(self._watch.members().values(), default=1)
        return [keys[i : i + n] for i in range(0, len(keys), n)]

    def give(self, term: int, keys: list[Key]) -> DaskTicket:
        readings = [self._items[key] for key in keys]
        if len(keys) > 1 or not any(is_dask(argument) for argument in readings[0].call):
            return self.ask(term, "take", list(zip(keys, readings, strict=True)))
        worker, token = self._terms[term].worker, self._terms[term].token
        [reading] = readings
        call = [
            self._client.compute(argument, workers=[worker], allow_other_workers=True, optimize_graph=False)
            if is_dask(argument)
            else argument
            for argument in reading.call
        ]
        # Never a key of before: Dask would not do again what it remembers as done.
        key = f"{self._office(term)}-{keys[0].number}-{keys[0].block}-{uuid.uuid4().hex}"
        future = self._client.submit(
            give_rows, self._office(term), token, keys[0], reading.function, *call,
            workers=[worker], key=key, pure=False,
        )  # fmt: skip
        return DaskTicket(worker, start(self._client, _taken(future, keys[0], worker)), key)

    def ask(self, term: int, method: str, *arguments: Any) -> DaskTicket:
        worker, token = self._terms[term].worker, self._terms[term].token
        message = {
            "office": self._office(term),
            "token": token,
            "method": method,
            "arguments": [to_serialize(argument) for argument in arguments],
        }
        return DaskTicket(worker, start(self._client, self._asked(worker, message)))

    async def _asked(self, worker: str, message: dict[str, Any]) -> Any:
        reply = await send(self._client, worker, HANDLER, **message)
        if reply is None or "gone" in reply:  # None: a worker that has never had an office
            raise ConnectionError("it was restarted, or given up before")
        if "error" in reply:
            raise reply["error"]
        return reply["value"]

    def finished(self, tickets: Collection[DaskTicket]) -> list[DaskTicket]:
        while True:
            wait([ticket.future for ticket in tickets], timeout=POLL, return_when=FIRST_COMPLETED)
            done = [ticket for ticket in tickets if ticket.future.done()]
            if done:
                return done
            for ticket in tickets:
                why = self._watch.verdict(ticket.worker)
                if why is None and time.monotonic() - ticket.since > CALL_DEADLINE:
                    why = f"no answer within {CALL_DEADLINE:.0f} s"
                if why is not None:
                    ticket.give_up(why)
            self._check_tasks(tickets)

    def _check_tasks(self, tickets: Collection[DaskTicket]) -> None:
        """Raises if a task waits for rows that Dask has lost and cannot compute again."""
        now: float = time.monotonic()
        if now < self._checked + self._watch.timeout:
            return
        self._checked = now
        for ticket in tickets:
            if ticket.key is None or now - ticket.since < self._watch.timeout or ticket.future.done():
                continue
            try:
                lost = start(self._client, self._unrunnable(ticket.key)).result(timeout=self._watch.timeout)
            except (
                OSError,
                TimeoutError,
            ):  # whether the scheduler is gone is the watch's to say; asked again later
                return
            if lost is not None and not self._watch.leaving(ticket.worker):
                raise ClusterError(
                    f"rows of a dask array are lost with their worker: {lost} may run on no worker that there is. Persist with "
                    "allow_other_workers=True, or give fit zarr arrays, which any worker can read again."
                )

    async def _unrunnable(self, key: str) -> str | None:
        return await self._client.run_on_scheduler(unrunnable, key)

    def dismiss(self, term: int, lost: bool) -> None:
        ended = self._terms.pop(term)
        if lost:
            self._watch.doubt(ended.worker)
        ended.future.release()

    def close(self) -> None:
        for term in list(self._terms):
            self.dismiss(term, lost=False)

    def _office(self, term: int) -> str:
        return f"{self._name}-{term}"


async def awaited(future: Any) -> Any:
    """The result of a Dask future."""
    return await future.result()


async def _taken(future: Any, key: Key, worker: str) -> None:
    """Waits for rows that Dask computes: what befalls their own tasks would befall them everywhere."""
    try:
        with located(key):
            await awaited(future)
    except (DistboostError, LostError):
        raise
    except Exception as error:
        if is_of_the_cluster(error):
            raise
        raise _told(error, "take", worker) from error


def is_of_the_cluster(error: BaseException) -> bool:
    """Whether a task's error tells of a lost worker, and not of something that the task has met with."""
    return isinstance(error, LOSSES) and (
        not isinstance(error, OSError) or isinstance(error, CommClosedError)
    )


def _travels(argument: Any) -> bool:
    return is_dask(argument) or isinstance(argument, np.ndarray)
