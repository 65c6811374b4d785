"""The crew of a training run: the workers that hold its rows, which of them holds which blocks, and how a loss is handled.

This module does no I/O of its own, only calls of `Workers`. So the same code runs on a Dask cluster and, in the tests, on
simulated workers that lose, delay and repeat messages.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter, deque
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from distboost.errors import ClusterError, StoreError, WorkerError
from distboost.io.phases import SILENT, Advance, Phases
from distboost.rows.messages import EMPTY_LOG
from distboost.runtime.block import Key
from distboost.runtime.cluster.placement import distribute, excess

log = logging.getLogger("distboost")

# A run fails when the count of lost workers exceeds this number plus the number of workers. Each completed round lowers the
# count by the number of workers. Without this limit, rows that kill every worker that reads them, or workers that die faster
# than rounds end, would keep a training run busy forever.
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

    Attributes
    ----------
    timeout : float
        Seconds within which a healthy worker answers another one.
    """

    timeout: float

    def members(self) -> Mapping[str, int]:
        """Return the workers that can take rows, with their numbers of threads."""

    def wait(self, excluded: Collection[str]) -> None:
        """Wait until there is a worker that is not excluded; raise ClusterError if none comes."""

    def leaving(self, worker: str) -> bool:
        """Whether the worker has left or is about to leave."""

    def answers(self, session_id: int) -> bool:
        """Ask the worker of a session for a sign of life, and wait for it."""

    def open_session(self, worker: str, session_id: int) -> T:
        """Open a session on a worker."""

    def batches(self, keys: list[Key]) -> list[list[Key]]:
        """Split blocks into batches of a good size for one request each."""

    def load(self, session_id: int, keys: list[Key]) -> T:
        """Have a session read blocks; the answer is a digest of each block that stays in memory."""

    def ask(self, session_id: int, method: str, *arguments: Any) -> T:
        """Call a method of the session's `Host`."""

    def relay(self, session_ids: list[int], fan_out: int, method: str, *arguments: Any) -> T:
        """Call a method of several sessions, through the first of them; the answer is the combined one."""

    def peer(self, session_id: int) -> Any:
        """Return how other sessions address a session."""

    def finished(self, requests: Collection[T], together: bool = False) -> Collection[T]:
        """Wait until some requests have a result, and return these.

        With `together`, it may wait a little longer: for all of them, or for one that is lost. To be woken once for all answers
        to a question takes less time. The result may also contain requests that were returned before or whose session is closed.
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


class Crew:
    """The sessions that hold the rows of a training run.

    If a worker is lost, other workers read its blocks again and replay the training on them (`ReplayLog`).

    Parameters
    ----------
    workers : Workers
    sizes : mapping of Key to int
        The number of rows of each block.
    phases : Phases, optional
        Who is told how many rows the workers have read.

    Attributes
    ----------
    sessions : list of Session
    replay_log : ReplayLog
        Of the training up to the last answered question.
    round : int
        The current round, for messages.
    losses : Counter
        The number of workers lost so far, by the question that was being asked.
    """

    def __init__(self, workers: Workers[Any], sizes: Mapping[Key, int], phases: Phases = SILENT):
        self.workers, self._sizes, self._phases = workers, sizes, phases
        self.sessions: list[Session] = []
        self.replay_log = EMPTY_LOG
        self.round = 0
        self.losses: Counter[str] = Counter()
        self._rejected: set[str] = set()  # workers that cannot take part
        # Workers that are alive, but others cannot reach them: they take part only if there are no others.
        self._cut_off: set[str] = set()
        self._unassigned = set(sizes)
        self._digests: dict[Key, int] = {}  # digests of the blocks when they were first read
        self._session_ids = itertools.count(1)
        self._stage, self._recent_losses, self._most_recent_losses = "place", 0, MOST_RECENT_LOSSES

    # Questions.

    def begin(self, stage: str) -> None:
        """Begin a question: workers that leave hand their blocks over, and workers that have joined get their share."""
        self._stage = stage
        self._most_recent_losses = MOST_RECENT_LOSSES + len(self.sessions)
        self._rebalance()

    def settle(self) -> None:
        """See that all blocks are held."""
        while self._unassigned:  # a session may be lost while others read the blocks of an earlier one
            self.assign(set(self._unassigned))

    @property
    def is_cut(self) -> bool:
        """Whether there are workers that answer this process, but others cannot reach them."""
        return bool(self._cut_off)

    def readmit(self) -> None:
        """Let workers that others cannot reach take part again."""
        self._cut_off.clear()

    def cut_off(self, session_id: int) -> None:
        """Treat a worker that others cannot reach as lost. Most often it has just died: then the network is not to blame."""
        for session in [session for session in self.sessions if session.id == session_id]:
            if self.workers.answers(session_id):
                self._cut_off.add(session.worker)
            self._lose(session, WorkerLostError("another worker cannot reach it"))

    def round_ended(self) -> None:
        """Make losses good: only many of them within few rounds end a training run."""
        self._recent_losses = max(self._recent_losses - len(self.sessions), 0)

    def close(self) -> None:
        """Close the workers' sessions, without waiting for garbage collection."""
        self.workers.close()
        self.sessions = []

    def answers(
        self, asked: dict[Request, tuple[Session, About]], until_loss: bool = False
    ) -> Generator[tuple[Session, About, Any], None, None]:
        """Yield session, subject and answer of each request as it finishes; end sessions that are lost.

        With `until_loss`, the first loss is the end.
        """
        while asked:
            for request in self.workers.finished(asked.keys(), together=until_loss):
                if request not in asked:  # it was handled before, or its session is closed
                    continue
                session, about = asked.pop(request)
                try:
                    answer = request.result()
                except WorkerLostError as lost:
                    self._lose(session, lost)
                    if until_loss:
                        return
                    for other in [other for other, (its, _) in asked.items() if its is session]:
                        del asked[other]
                    continue
                yield session, about, answer

    # Which worker holds which blocks.

    def assign(self, keys: set[Key]) -> None:
        """Have workers read blocks that no worker holds, and replay the training on them up to the last answered question."""
        if not keys:
            return
        with self._phases.begin("load", self._n_rows(keys), "rows") as advance:
            self._assign(keys, advance)

    def _n_rows(self, keys: Iterable[Key]) -> int:
        return sum(self._sizes[key] for key in keys)

    def _assign(self, keys: set[Key], advance: Advance) -> None:
        while keys:
            self._open_sessions()
            held = {session: self._n_rows(session.keys) for session in self.sessions}
            threads = {session: session.threads for session in self.sessions}
            shares = distribute({key: self._sizes[key] for key in keys}, held, threads)
            self._prepare(shares)
            self._load(
                {session: deque(self.workers.batches(share)) for session, share in shares.items()}, advance
            )
            keys = keys & self._unassigned

    def _open_sessions(self) -> None:
        """Open a session on every worker that has none and was not rejected."""
        if not self.sessions:
            self.workers.wait(self._rejected)
        asked = {}
        for worker, threads in self._joined().items():
            session = Session(next(self._session_ids), worker, threads)
            asked[self.workers.open_session(worker, session.id)] = session
        while asked:
            for request in self.workers.finished(asked.keys()):
                if request not in asked:  # its session is closed
                    continue
                session = asked.pop(request)
                try:
                    request.result()
                except WorkerLostError as lost:
                    self._lose(session, lost)
                except (WorkerError, StoreError) as error:
                    if not self.sessions and not asked:  # no other worker is left
                        raise
                    log.warning("worker %s cannot take part: %s", session.worker, error)
                    self._rejected.add(session.worker)
                    self._end(session, lost=False)
                else:
                    self.sessions.append(session)

    def _joined(self) -> dict[str, int]:
        """Return the workers without a session that were not rejected, with their numbers of threads."""
        known = {session.worker for session in self.sessions} | self._rejected
        if self.sessions:
            known |= self._cut_off
        members = self.workers.members()
        return {worker: threads for worker, threads in members.items() if worker not in known}

    def _prepare(self, shares: Iterable[Session]) -> None:
        """Send the replay log to the sessions that will read blocks."""
        asked: dict[Request, tuple[Session, None]] = {
            self.workers.ask(session.id, "set_replay_log", self.replay_log): (session, None)
            for session in shares
        }
        for _ in self.answers(asked):
            pass

    def _load(self, queues: dict[Session, deque[list[Key]]], advance: Advance) -> None:
        """Have sessions read their blocks, a few batches at a time: the client never holds all rows that it sends."""
        under_way: dict[Request, tuple[Session, list[Key]]] = {}

        def send(session: Session) -> None:
            if queues[session] and session in self.sessions:
                batch = queues[session].popleft()
                under_way[self.workers.load(session.id, batch)] = session, batch

        for session in queues:
            for _ in range(session.threads):
                send(session)
        for session, batch, digests in self.answers(under_way):
            self._compare(digests)
            session.keys.update(batch)
            self._unassigned.difference_update(batch)
            advance(self._n_rows(batch))
            send(session)

    def _compare(self, digests: dict[Key, int]) -> None:
        """Raise StoreError if blocks that were read again have changed."""
        for key, digest in digests.items():
            if self._digests.setdefault(key, digest) != digest:
                raise StoreError(
                    f"{key} was read again in round {self.round}, since its worker was lost or workers joined, and its rows "
                    "have changed: the data were modified during the training, or computing them twice gives different values.",
                    remedy="Restore the data and continue from the checkpoint, or train again.",
                    where=key,
                )

    def _rebalance(self) -> None:
        """Take blocks from workers that leave, and give workers that have joined their share."""
        for session in list(self.sessions):
            if self.workers.leaving(session.worker):
                log.info(
                    "worker %s leaves: its %d blocks go to the others", session.worker, len(session.keys)
                )
                self._end(session, lost=False)
        if not self.sessions:  # no worker has joined yet, or all have left
            return
        joined = self._joined()
        if not joined:
            return
        log.info("%d workers have joined: %s", len(joined), ", ".join(sorted(joined)))
        threads = sum(session.threads for session in self.sessions) + sum(joined.values())
        asked: dict[Request, tuple[Session, list[Key]]] = {}
        for session in self.sessions:
            fair = sum(self._sizes.values()) * session.threads / threads
            keys = excess({key: self._sizes[key] for key in session.keys}, fair)
            if keys:
                asked[self.workers.ask(session.id, "drop", keys)] = session, keys
        for session, keys, _ in self.answers(asked):
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
                f"{self._recent_losses} workers were lost within few rounds, the last one {session.worker} at '{self._stage}' "
                f"of round {self.round} ({lost}).",
                remedy="Check the workers' logs: they may run out of memory. Then continue from the checkpoint.",
            ) from lost

    def _end(self, session: Session, lost: bool) -> None:
        if session in self.sessions:
            self.sessions.remove(session)
        self._unassigned.update(session.keys)
        self.workers.close_session(session.id, lost)
