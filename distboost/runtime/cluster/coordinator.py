"""Rows on workers that may be lost at any moment: who holds which, and what is done about a loss.

Everything here is decided without I/O, through `Crew`: the same decisions are tested on a simulated crew that loses, delays
and repeats what it is told, and run on a Dask cluster.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter, deque
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from distboost.errors import ClusterError, StoreError, WorkerError
from distboost.rows.interface import HistogramQuestion, Partial, Rows, SumsQuestion, UpdateQuestion
from distboost.runtime.block import Key
from distboost.runtime.cluster.placement import excess, handed_out, total
from distboost.runtime.shard import NO_PAST, Layout
from distboost.splits.search import Histograms
from distboost.threads import Threads

log = logging.getLogger("distboost")

# That are not made good, beside one of each worker. A round makes good one of each worker: else rows that kill whoever takes
# them, or workers that die faster than a round is done, would keep a training busy for ever.
MOST_LOSSES = 10


class LostError(Exception):
    """A worker is given up, and with it what it held and was asked."""


class Ticket(Protocol):
    """What will be the answer to something asked."""

    def result(self) -> Any:
        """The answer, once there is one; raises LostError, or what the worker raised."""


T = TypeVar("T", bound=Ticket)


class Crew(Protocol[T]):
    """The workers.

    A worker that holds rows does so for a term of service, with a number of its own. Given up, it may come back for another
    term; what it says of an earlier one is not heard.
    """

    def members(self) -> Mapping[str, int]:
        """The workers that can take rows, with their threads."""

    def wait(self, besides: Collection[str]) -> None:
        """Waits until there is one besides these; raises ClusterError if none comes."""

    def leaving(self, worker: str) -> bool:
        """Whether the worker is gone or about to go."""

    def hire(self, worker: str, term: int) -> T:
        """Begins a term of service."""

    def parcels(self, keys: list[Key]) -> list[list[Key]]:
        """The blocks as they are best given."""

    def give(self, term: int, keys: list[Key]) -> T:
        """Has blocks read there; the answer is a digest of each that is held in memory."""

    def ask(self, term: int, method: str, *arguments: Any) -> T:
        """Calls a method of that term's `Host`."""

    def finished(self, tickets: Collection[T]) -> Collection[T]:
        """Waits until some have a result, and gives these; perhaps others, too, that were given or dismissed before."""

    def dismiss(self, term: int, lost: bool) -> None:
        """Ends a term: nothing of it will be heard."""

    def close(self) -> None:
        """Ends all."""


@dataclass(eq=False)
class Service:
    """A worker's term of service: the blocks that it holds."""

    term: int
    worker: str
    threads: int
    keys: set[Key] = field(default_factory=set)


class CrewRows(Rows):
    """Rows that a crew holds; an answer is the sum of theirs.

    A lost worker's blocks are read again by the others, which replay on them what the training has done (`Past`), and only these
    blocks are asked again. Every answer covers each row once, so that a loss changes no sum.

    Parameters
    ----------
    crew : Crew
    sizes : mapping of Key to int
        The blocks, and the rows of each.
    layout : Layout
    n_sets : int

    Attributes
    ----------
    losses : Counter
        Workers lost so far, by what they had been asked.
    """

    def __init__(self, crew: Crew[Any], sizes: Mapping[Key, int], layout: Layout, n_sets: int):
        self._crew, self._sizes = crew, sizes
        self._services: list[Service] = []
        self._unfit: set[str] = set()
        self._homeless = set(sizes)
        self._digests: dict[Key, int] = {}  # of the blocks as they were first read
        self._terms = itertools.count(1)
        self._past = NO_PAST
        self.losses: Counter[str] = Counter()
        self._doing, self._not_made_good, self._most_losses = "place", 0, MOST_LOSSES
        self.round = 0
        found = list(self._ask("counts"))
        counts = tuple(total([each[number] for each in found]) for number in range(n_sets))
        super().__init__(layout.n_bins, layout.n_classes, counts, Threads())

    # Questions.

    def _histogram(self, question: HistogramQuestion, histograms: Histograms, slots: list[int]) -> np.ndarray:
        histograms.pool[slots] = 0
        totals = []
        for answer, of_shard in self._ask("histogram", question, *histograms.channels):
            totals.append(of_shard)
            histograms.add(slots, answer)
        self._past = self._past.then(question)
        return np.sum(totals, axis=0)

    def _sums(self, question: SumsQuestion) -> Partial:
        answer = reduce(Partial.combined, self._ask("sums", question))
        self._past = self._past.then(question)
        return answer

    def _update(
        self, question: UpdateQuestion, histograms: Histograms | None, slots: list[int]
    ) -> tuple[Partial, np.ndarray]:
        channels = (0, 0)
        if histograms is not None:
            histograms.pool[slots] = 0
            channels = histograms.channels
        found, totals = [], []
        for answer, of_shard, root in self._ask("update", question, *channels):
            found.append(answer)
            totals.append(of_shard)
            if histograms is not None:
                histograms.add(slots, root)
        self._past = self._past.then(question)
        self._not_made_good = max(self._not_made_good - len(self._services), 0)
        return reduce(Partial.combined, found), np.sum(totals, axis=0)

    def passes(self) -> dict[str, int]:
        return dict(sum(self._ask("passes"), Counter()))

    def close(self) -> None:
        """Ends the workers' service: now, not when the last reference to it happens to go."""
        self._crew.close()
        self._services = []
        self.threads.close()

    def _ask(self, method: str, *arguments: Any) -> Generator[Any, None, None]:
        """The answers of all blocks, each block in one of them, whatever happens to the workers meanwhile."""
        self._doing = method
        self._most_losses = MOST_LOSSES + len(self._services)
        self._rebalance()
        todo = set(self._sizes)
        while todo:
            self._house(todo & self._homeless)
            asked = {}
            for service in self._services:
                wanted = todo & service.keys
                if wanted:
                    only = None if len(wanted) == len(service.keys) else frozenset(wanted)
                    asked[self._crew.ask(service.term, method, *arguments, only)] = service, wanted
            for (_, wanted), answer in self._answers(asked):
                todo -= wanted
                yield answer

    def _answers(self, asked: dict[Ticket, tuple]) -> Generator[tuple[tuple, Any], None, None]:
        """What was asked with its answer, as they come; a service (the first of what was asked) that is lost is ended."""
        while asked:
            for ticket in self._crew.finished(asked.keys()):
                if ticket not in asked:  # heard before, or of a term that has ended
                    continue
                about = asked.pop(ticket)
                try:
                    answer = ticket.result()
                except LostError as lost:
                    self._lose(about[0], lost)
                    for other in [other for other, (service, *_) in asked.items() if service is about[0]]:
                        del asked[other]
                    continue
                yield about, answer

    # Who holds which.

    def _house(self, keys: set[Key]) -> None:
        """Has blocks that nobody holds read where there is room, as they were when the last question was answered."""
        while keys:
            self._hire()
            held = {service: sum(self._sizes[key] for key in service.keys) for service in self._services}
            threads = {service: service.threads for service in self._services}
            shares = handed_out({key: self._sizes[key] for key in keys}, held, threads)
            self._prepare(shares)
            self._give({service: deque(self._crew.parcels(share)) for service, share in shares.items()})
            keys = keys & self._homeless

    def _hire(self) -> None:
        """Every worker that can takes part."""
        if not self._services:
            self._crew.wait(self._unfit)
        asked = {}
        for worker, threads in self._joined().items():
            service = Service(next(self._terms), worker, threads)
            asked[self._crew.hire(worker, service.term)] = service
        while asked:
            for ticket in self._crew.finished(asked.keys()):
                if ticket not in asked:  # of a term that has ended
                    continue
                service = asked.pop(ticket)
                try:
                    ticket.result()
                except LostError as lost:
                    self._lose(service, lost)
                except (WorkerError, StoreError) as error:
                    if not self._services and not asked:  # there is nobody else
                        raise
                    log.warning("worker %s takes no part: %s", service.worker, error)
                    self._unfit.add(service.worker)
                    self._end(service, lost=False)
                else:
                    self._services.append(service)

    def _joined(self) -> dict[str, int]:
        """The workers that could take part and do not, with their threads."""
        known = {service.worker for service in self._services} | self._unfit
        members = self._crew.members()
        return {worker: threads for worker, threads in members.items() if worker not in known}

    def _prepare(self, shares: Iterable[Service]) -> None:
        """Tells those who are to take blocks what these have gone through."""
        asked = {self._crew.ask(service.term, "recall", self._past): (service,) for service in shares}
        for _ in self._answers(asked):
            pass

    def _give(self, queues: dict[Service, deque[list[Key]]]) -> None:
        """A few parcels at a time: rows that travel are never all in memory."""
        under_way: dict[Ticket, tuple] = {}

        def send(service: Service) -> None:
            if queues[service] and service in self._services:
                parcel = queues[service].popleft()
                under_way[self._crew.give(service.term, parcel)] = service, parcel

        for service in queues:
            for _ in range(service.threads):
                send(service)
        for (service, parcel), digests in self._answers(under_way):
            self._compare(digests)
            service.keys.update(parcel)
            self._homeless.difference_update(parcel)
            send(service)

    def _compare(self, digests: dict[Key, int]) -> None:
        """Raises if blocks that were read again are not what they were."""
        for key, digest in digests.items():
            if self._digests.setdefault(key, digest) != digest:
                raise StoreError(
                    f"{key} has been read again, as a worker that held it was lost or others have joined, and has other rows "
                    f"than before (round {self.round}): the data were changed during the training, or cannot be computed again. "
                    "Restore them and go on from the checkpoint, or train again."
                )

    def _rebalance(self) -> None:
        """Workers that leave hand over their blocks; those that have joined get their share."""
        for service in list(self._services):
            if self._crew.leaving(service.worker):
                log.info(
                    "worker %s leaves: its %d blocks go to the others", service.worker, len(service.keys)
                )
                self._end(service, lost=False)
        if not self._services:  # nobody yet, or nobody anymore
            return
        joined = self._joined()
        if not joined:
            return
        log.info("%d workers have joined: %s", len(joined), ", ".join(sorted(joined)))
        threads = sum(service.threads for service in self._services) + sum(joined.values())
        asked = {}
        for service in self._services:
            fair = sum(self._sizes.values()) * service.threads / threads
            keys = excess({key: self._sizes[key] for key in service.keys}, fair)
            if keys:
                asked[self._crew.ask(service.term, "drop", keys)] = service, keys
        for (service, keys), _ in self._answers(asked):
            service.keys.difference_update(keys)
            self._homeless.update(keys)
        self._hire()  # though there may be nothing for them: else they would join again at every question

    def _lose(self, service: Service, lost: LostError) -> None:
        self.losses[self._doing] += 1
        self._not_made_good += 1
        log.warning(
            "worker %s is lost at '%s' of round %d (%s): its %d blocks are read again elsewhere",
            service.worker, self._doing, self.round, lost, len(service.keys),
        )  # fmt: skip
        self._end(service, lost=True)
        if self._not_made_good > self._most_losses:
            raise ClusterError(
                f"{self._not_made_good} workers were lost one after another with too few rounds between, the last one "
                f"{service.worker} at '{self._doing}' of round {self.round} ({lost}). Look at the workers' logs: they may run "
                "out of memory. Then go on from the checkpoint."
            ) from lost

    def _end(self, service: Service, lost: bool) -> None:
        if service in self._services:
            self._services.remove(service)
        self._homeless.update(service.keys)
        self._crew.dismiss(service.term, lost)
