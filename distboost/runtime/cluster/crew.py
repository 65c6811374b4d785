"""A crew of Dask workers: how they are hired and asked."""

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
from distboost.runtime.cluster.link import POLL, Link
from distboost.runtime.cluster.office import HANDLER, give_rows, on_worker, open_office, told
from distboost.runtime.cluster.watch import Watch
from distboost.runtime.shard import Allotment, Layout, Reading

log = logging.getLogger("distboost")

CALL_DEADLINE = 3600.0  # seconds, for an answer of a worker that gives signs of life all the time
PARCEL = 16  # blocks per thread that a worker reads by itself


class Sent(NamedTuple):
    """A task under way."""

    answer: Future
    key: str
    futures: list[Any]  # Dask's, of the task and of what it takes: without them, Dask would let go of it


class DaskTicket:
    """An answer that is to come from a worker, or from a task there: then `send` sends it once more."""

    def __init__(self, worker: str, future: Future | None = None, send: Callable[[], Sent] | None = None):
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

    def renew(self, link: Link, era_began: float) -> None:
        """What a task takes may be on a worker that was given up since, and would not come."""
        if self._send is not None and era_began > self.since:
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
class Term:
    """Where a term is served."""

    worker: str
    future: Any  # the office is open as long as this is wanted
    token: str = ""


class DaskCrew:
    """The workers of a Dask client, for one training.

    Parameters
    ----------
    link : Link
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
        link: Link,
        watch: Watch,
        items: Mapping[Key, Reading],
        layout: Layout,
        n_sets: int,
        allotment: Allotment | None,
        name: str,
    ):
        self._link, self._watch, self._items = link, watch, items
        self._host = _probes(items), layout, n_sets, allotment
        self._name = name
        self._terms: dict[int, Term] = {}

    def members(self) -> dict[str, int]:
        return self._watch.members()

    def wait(self, besides: Collection[str]) -> None:
        self._watch.wait_for_members(besides)

    def leaving(self, worker: str) -> bool:
        return self._watch.leaving(worker)

    def hire(self, worker: str, term: int) -> DaskTicket:
        key = self._office(term)
        future = self._link.submit(
            on_worker, open_office, key, *self._host, workers=[worker], key=key, retries=0
        )
        self._terms[term] = begun = Term(worker, future)

        async def opened() -> None:
            begun.token = await self._link.result(future)

        return DaskTicket(worker, self._link.start(opened()))

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
        [key], [reading] = keys, readings

        def send() -> Sent:
            call = [
                self._link.compute(renamed(argument, self._watch.era), [worker])
                if is_dask(argument)
                else argument
                for argument in reading.call
            ]
            # Never a name of before: Dask would not do again what it remembers as done.
            name = f"{self._office(term)}-{key.number}-{key.block}-{uuid.uuid4().hex}"
            future = self._link.submit(
                give_rows, self._office(term), token, key, reading.function, *call, workers=[worker], key=name
            )
            return Sent(self._link.start(self._taken(future, key, worker)), name, [*call, future])

        return DaskTicket(worker, send=send)

    async def _taken(self, future: Any, key: Key, worker: str) -> dict[Key, int]:
        """Waits for rows that Dask computes: what befalls their own tasks would befall them everywhere."""
        try:
            with located(key):
                return await self._link.result(future)
        except (DistboostError, LostError):
            raise
        except Exception as error:
            raise told(error, "take", worker) from error

    def ask(self, term: int, method: str, *arguments: Any) -> DaskTicket:
        worker, token = self._terms[term].worker, self._terms[term].token
        message = {
            "office": self._office(term),
            "token": token,
            "method": method,
            "arguments": [to_serialize(argument) for argument in arguments],
        }
        return DaskTicket(worker, self._link.start(self._asked(worker, message)))

    async def _asked(self, worker: str, message: dict[str, Any]) -> Any:
        reply = await self._link.send(worker, HANDLER, **message)
        if reply is None or "gone" in reply:  # None: a worker that has never had an office
            raise LostError("it was restarted, or given up before")
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
                    ticket.give_up(self._link, why)
                else:
                    ticket.renew(self._link, self._watch.era_began)
            self._watch.check_tasks(
                {
                    ticket.key: ticket.since
                    for ticket in tickets
                    if ticket.key is not None and not self._watch.leaving(ticket.worker)
                }
            )

    def dismiss(self, term: int, lost: bool) -> None:
        ended = self._terms.pop(term)
        if lost:
            self._watch.doubt(ended.worker)
        self._link.release([ended.future])

    def close(self) -> None:
        for term in list(self._terms):
            self.dismiss(term, lost=False)

    def _office(self, term: int) -> str:
        return f"{self._name}-{term}"


def _probes(items: Mapping[Key, Reading]) -> list[Probe]:
    """One of each array that workers read."""
    firsts = [reading for key, reading in items.items() if key.block == 0]
    found = [
        argument.probe() for reading in firsts for argument in reading.call if hasattr(argument, "probe")
    ]
    return [probe for probe in found if probe is not None]


def _travels(argument: Any) -> bool:
    return is_dask(argument) or isinstance(argument, np.ndarray)
