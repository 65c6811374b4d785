"""Rows on workers that may fail at any moment: which worker holds which blocks, and how a loss is handled.

This module does no I/O of its own, only calls of `Workers`. So the same code runs on a Dask cluster and, in the tests, on
simulated workers that lose, delay and repeat messages.
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
from distboost.rows.messages import HistogramQuestion, SumsQuestion, UpdateQuestion
from distboost.rows.reduced import Reduced
from distboost.runtime.block import Key
from distboost.runtime.cluster.placement import distribute, excess, total
from distboost.runtime.coordinated import CoordinatedRows
from distboost.runtime.layout import Layout
from distboost.runtime.replay import EMPTY_LOG
from distboost.splits.histograms import Histograms
from distboost.threads import Threads

log = logging.getLogger("distboost")

# A training fails when the count of lost workers exceeds this number plus the number of workers. Each completed round lowers the
# count by the number of workers. Without this limit, rows that kill every worker that reads them, or workers that die faster
# than rounds end, would keep a training busy forever.
MOST_RECENT_LOSSES = 10


class WorkerLostError(Exception):
    """A worker is lost, with the blocks that it held and all requests to it."""


class Request(Protocol):
    """A pending request to a worker."""

    def result(self) -> Any:
        """Return the answer of a finished request; raise WorkerLostError, or the error that the worker raised."""


T = TypeVar("T", bound=Request)
About = TypeVar("About")


class Workers(Protocol[T]):
    """The interface of the workers.

    A worker holds rows in a session, which has a unique id. A worker that was given up may return in another session; answers
    of its earlier session are ignored.
    """

    def members(self) -> Mapping[str, int]:
        """Return the workers that can take rows, with their numbers of threads."""

    def wait(self, excluded: Collection[str]) -> None:
        """Wait until there is a worker that is not excluded; raise ClusterError if none comes."""

    def leaving(self, worker: str) -> bool:
        """Whether the worker has left or is about to leave."""

    def open_session(self, worker: str, session_id: int) -> T:
        """Open a session on a worker."""

    def batches(self, keys: list[Key]) -> list[list[Key]]:
        """Split blocks into batches of a good size for one request each."""

    def load(self, session_id: int, keys: list[Key]) -> T:
        """Have a session read blocks; the answer is a digest of each block that stays in memory."""

    def ask(self, session_id: int, method: str, *arguments: Any) -> T:
        """Call a method of the session's `Host`."""

    def finished(self, requests: Collection[T]) -> Collection[T]:
        """Wait until some requests have a result, and return these.

        The result may also contain requests that were returned before or whose session is closed.
        """

    def close_session(self, session_id: int, lost: bool) -> None:
        """Close a session: its answers are ignored from now on."""

    def close(self) -> None:
        """Close all sessions."""


@dataclass(eq=False)
class Session:
    """A worker's session: the blocks that it holds."""

    id: int
    worker: str
    threads: int
    keys: set[Key] = field(default_factory=set)


class DistributedRows(CoordinatedRows):
    """Rows that workers hold. The answer to a question is the sum of the workers' answers.

    If a worker is lost, other workers read its blocks again and replay the training on them (`ReplayLog`). The coordinator then
    repeats its question for these blocks only. So every sum counts each row exactly once, and a loss changes no sum.

    Parameters
    ----------
    workers : Workers
    sizes : mapping of Key to int
        The number of rows of each block.
    layout : Layout
    n_sets : int

    Attributes
    ----------
    losses : Counter
        The number of workers lost so far, by the question that was being asked.
    """

    def __init__(self, workers: Workers[Any], sizes: Mapping[Key, int], layout: Layout, n_sets: int):
        self._workers, self._sizes = workers, sizes
        self._sessions: list[Session] = []
        self._rejected: set[str] = set()
        self._unassigned = set(sizes)
        self._digests: dict[Key, int] = {}  # digests of the blocks when they were first read
        self._session_ids = itertools.count(1)
        self._replay_log = EMPTY_LOG
        self.losses: Counter[str] = Counter()
        self._stage, self._recent_losses, self._most_recent_losses = "place", 0, MOST_RECENT_LOSSES
        self.round = 0
        found = list(self._ask("counts"))
        counts = tuple(total([each[number] for each in found]) for number in range(n_sets))
        super().__init__(layout.n_bins, layout.n_classes, counts, Threads())

    # Questions.

    def _histogram(self, question: HistogramQuestion, histograms: Histograms, slots: list[int]) -> np.ndarray:
        histograms.pool[slots] = 0
        totals: list[np.ndarray] = []
        for answer, of_shard in self._ask("histogram", question, *histograms.channels):
            totals.append(of_shard)
            histograms.add(slots, answer)
        self._replay_log = self._replay_log.with_question(question)
        return sum(totals[1:], totals[0])

    def _sums(self, question: SumsQuestion) -> Reduced:
        answer: Reduced = reduce(Reduced.combined, self._ask("sums", question))
        self._replay_log = self._replay_log.with_question(question)
        return answer

    def _update(
        self, question: UpdateQuestion, histograms: Histograms | None, slots: list[int]
    ) -> tuple[Reduced, np.ndarray]:
        channels = (0, 0)
        if histograms is not None:
            histograms.pool[slots] = 0
            channels = histograms.channels
        found: list[Reduced] = []
        totals: list[np.ndarray] = []
        for answer, of_shard, root in self._ask("update", question, *channels):
            found.append(answer)
            totals.append(of_shard)
            if histograms is not None:
                histograms.add(slots, root)
        self._replay_log = self._replay_log.with_question(question)
        self._recent_losses = max(self._recent_losses - len(self._sessions), 0)
        return reduce(Reduced.combined, found), sum(totals[1:], totals[0])

    def passes(self) -> dict[str, int]:
        return dict(sum(self._ask("passes"), Counter()))

    def close(self) -> None:
        """Close the workers' sessions, without waiting for garbage collection."""
        self._workers.close()
        self._sessions = []
        self.threads.close()

    def _ask(self, method: str, *arguments: Any) -> Generator[Any, None, None]:
        """Yield answers that together cover each block exactly once, even if workers are lost meanwhile."""
        self._stage = method
        self._most_recent_losses = MOST_RECENT_LOSSES + len(self._sessions)
        self._rebalance()
        todo = set(self._sizes)
        while todo:
            self._assign(todo & self._unassigned)
            asked: dict[Request, tuple[Session, set[Key]]] = {}
            for session in self._sessions:
                wanted = todo & session.keys
                if wanted:
                    only = None if len(wanted) == len(session.keys) else frozenset(wanted)
                    asked[self._workers.ask(session.id, method, *arguments, only)] = session, wanted
            for _, wanted, answer in self._answers(asked):
                todo -= wanted
                yield answer

    def _answers(
        self, asked: dict[Request, tuple[Session, About]]
    ) -> Generator[tuple[Session, About, Any], None, None]:
        """Yield session, subject and answer of each request as it finishes; end sessions that are lost."""
        while asked:
            for request in self._workers.finished(asked.keys()):
                if request not in asked:  # it was handled before, or its session is closed
                    continue
                session, about = asked.pop(request)
                try:
                    answer = request.result()
                except WorkerLostError as lost:
                    self._lose(session, lost)
                    for other in [other for other, (its, _) in asked.items() if its is session]:
                        del asked[other]
                    continue
                yield session, about, answer

    # Which worker holds which blocks.

    def _assign(self, keys: set[Key]) -> None:
        """Have workers read blocks that no worker holds, and replay the training on them up to the last answered question."""
        while keys:
            self._open_sessions()
            held = {session: sum(self._sizes[key] for key in session.keys) for session in self._sessions}
            threads = {session: session.threads for session in self._sessions}
            shares = distribute({key: self._sizes[key] for key in keys}, held, threads)
            self._prepare(shares)
            self._load({session: deque(self._workers.batches(share)) for session, share in shares.items()})
            keys = keys & self._unassigned

    def _open_sessions(self) -> None:
        """Open a session on every worker that has none and was not rejected."""
        if not self._sessions:
            self._workers.wait(self._rejected)
        asked = {}
        for worker, threads in self._joined().items():
            session = Session(next(self._session_ids), worker, threads)
            asked[self._workers.open_session(worker, session.id)] = session
        while asked:
            for request in self._workers.finished(asked.keys()):
                if request not in asked:  # its session is closed
                    continue
                session = asked.pop(request)
                try:
                    request.result()
                except WorkerLostError as lost:
                    self._lose(session, lost)
                except (WorkerError, StoreError) as error:
                    if not self._sessions and not asked:  # no other worker is left
                        raise
                    log.warning("worker %s cannot take part: %s", session.worker, error)
                    self._rejected.add(session.worker)
                    self._end(session, lost=False)
                else:
                    self._sessions.append(session)

    def _joined(self) -> dict[str, int]:
        """Return the workers without a session that were not rejected, with their numbers of threads."""
        known = {session.worker for session in self._sessions} | self._rejected
        members = self._workers.members()
        return {worker: threads for worker, threads in members.items() if worker not in known}

    def _prepare(self, shares: Iterable[Session]) -> None:
        """Send the replay log to the sessions that will read blocks."""
        asked: dict[Request, tuple[Session, None]] = {
            self._workers.ask(session.id, "set_replay_log", self._replay_log): (session, None)
            for session in shares
        }
        for _ in self._answers(asked):
            pass

    def _load(self, queues: dict[Session, deque[list[Key]]]) -> None:
        """Have sessions read their blocks, a few batches at a time: the client never holds all rows that it sends."""
        under_way: dict[Request, tuple[Session, list[Key]]] = {}

        def send(session: Session) -> None:
            if queues[session] and session in self._sessions:
                batch = queues[session].popleft()
                under_way[self._workers.load(session.id, batch)] = session, batch

        for session in queues:
            for _ in range(session.threads):
                send(session)
        for session, batch, digests in self._answers(under_way):
            self._compare(digests)
            session.keys.update(batch)
            self._unassigned.difference_update(batch)
            send(session)

    def _compare(self, digests: dict[Key, int]) -> None:
        """Raise StoreError if blocks that were read again have changed."""
        for key, digest in digests.items():
            if self._digests.setdefault(key, digest) != digest:
                raise StoreError(
                    f"{key} was read again in round {self.round}, since its worker was lost or workers joined, and its rows have "
                    "changed: the data were modified during the training, or computing them twice gives different values. "
                    "Restore the data and continue from the checkpoint, or train again."
                )

    def _rebalance(self) -> None:
        """Take blocks from workers that leave, and give workers that have joined their share."""
        for session in list(self._sessions):
            if self._workers.leaving(session.worker):
                log.info(
                    "worker %s leaves: its %d blocks go to the others", session.worker, len(session.keys)
                )
                self._end(session, lost=False)
        if not self._sessions:  # no worker has joined yet, or all have left
            return
        joined = self._joined()
        if not joined:
            return
        log.info("%d workers have joined: %s", len(joined), ", ".join(sorted(joined)))
        threads = sum(session.threads for session in self._sessions) + sum(joined.values())
        asked: dict[Request, tuple[Session, list[Key]]] = {}
        for session in self._sessions:
            fair = sum(self._sizes.values()) * session.threads / threads
            keys = excess({key: self._sizes[key] for key in session.keys}, fair)
            if keys:
                asked[self._workers.ask(session.id, "drop", keys)] = session, keys
        for session, keys, _ in self._answers(asked):
            session.keys.difference_update(keys)
            self._unassigned.update(keys)
        # Even if there are no blocks for them: otherwise they would count as joined at every question.
        self._open_sessions()

    def _lose(self, session: Session, lost: WorkerLostError) -> None:
        self.losses[self._stage] += 1
        self._recent_losses += 1
        log.warning(
            "worker %s is lost at '%s' of round %d (%s): its %d blocks are read again elsewhere",
            session.worker, self._stage, self.round, lost, len(session.keys),
        )  # fmt: skip
        self._end(session, lost=True)
        if self._recent_losses > self._most_recent_losses:
            raise ClusterError(
                f"{self._recent_losses} workers were lost within few rounds, the last one {session.worker} at '{self._stage}' of "
                f"round {self.round} ({lost}). Check the workers' logs: they may run out of memory. Then continue from the "
                "checkpoint."
            ) from lost

    def _end(self, session: Session, lost: bool) -> None:
        if session in self._sessions:
            self._sessions.remove(session)
        self._unassigned.update(session.keys)
        self._workers.close_session(session.id, lost)
