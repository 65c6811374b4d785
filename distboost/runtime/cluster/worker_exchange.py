"""The exchange of histograms on a Dask worker: pieces travel from worker to worker over Dask's own connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, NamedTuple

from distributed import Worker
from distributed.comm.core import CommClosedError

from distboost.rows.messages import Expansion, HistogramQuestion, UpdateQuestion
from distboost.runtime.cluster.exchange import Attempt, Contribution, Exchange, Part, Piece, Reply

log = logging.getLogger("distboost")

# Pieces under way from a worker, of different parts: each takes memory here and at its owner.
SENT_AT_ONCE = 4


class Peer(NamedTuple):
    """A session on a worker, as others address it."""

    address: str
    session: str
    token: str


class SupersededError(Exception):
    """A newer attempt has begun."""


class UnreachableError(Exception):
    """An owner cannot be reached."""

    def __init__(self, owner: int):
        super().__init__(owner)
        self.owner = owner


class WorkerExchange:
    """Runs a session's part in the exchange. Nothing here holds a thread while it waits for another worker.

    Parameters
    ----------
    exchange : Exchange
    pool : Executor
        The threads that compute.
    send : callable
        send(peer, piece) sends a piece and waits until it was added.
    """

    def __init__(self, exchange: Exchange, pool: Executor, send: Callable[[Peer, Piece], Awaitable[bool]]):
        self._exchange, self._pool, self._send = exchange, pool, send
        self._newest = 0  # the last attempt that was asked for
        self._ready = 0  # the last attempt whose pieces can be added
        self._running: asyncio.Task[Reply] | None = None
        self._begun = asyncio.Condition()
        self._complete = asyncio.Event()
        self._slots = asyncio.Semaphore(SENT_AT_ONCE)

    async def expand(
        self,
        question: HistogramQuestion | UpdateQuestion,
        expansion: Expansion,
        attempt: Attempt,
        session: int,
    ) -> Reply:
        """Take part in an attempt, which ends all earlier ones."""
        if attempt.number <= self._newest:
            raise SupersededError
        self._newest = attempt.number
        self.cancel()
        self._running = running = asyncio.ensure_future(self._expand(question, expansion, attempt, session))
        try:
            return await running
        except asyncio.CancelledError:
            if attempt.number != self._newest:
                raise SupersededError from None
            raise

    async def receive(self, piece: Piece) -> bool:
        """Add a piece that another worker sends, once its attempt has begun; return whether nothing is missing here."""
        async with self._begun:
            await self._begun.wait_for(lambda: self._ready >= piece.attempt)
        return await self._add(piece)

    def cancel(self) -> None:
        """End the attempt that is under way."""
        if self._running is not None:
            self._running.cancel()

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def _expand(
        self,
        question: HistogramQuestion | UpdateQuestion,
        expansion: Expansion,
        attempt: Attempt,
        session: int,
    ) -> Reply:
        self._complete.clear()
        await self._call(self._exchange.begin, attempt, expansion, session)
        async with self._begun:
            self._ready = attempt.number
            self._begun.notify_all()
        n_nodes = len(expansion.build)
        found: Contribution = await self._call(self._exchange.contribute, attempt, question, n_nodes)
        assert found.totals is not None
        # Each worker begins with another owner: they do not all send to the same one.
        parts = sorted(attempt.parts, key=lambda part: (part.owner < session, part.owner, part.number))
        sending = [
            asyncio.ensure_future(self._deliver(attempt, part, found, n_nodes, session)) for part in parts
        ]
        try:
            await asyncio.gather(*sending)
        except UnreachableError as error:
            return Reply(found.totals, found.losses, {}, error.owner)
        finally:
            for each in sending:
                each.cancel()
        if any(part.owner == session for part in attempt.parts):
            await self._complete.wait()
        answers = await self._call(self._exchange.answers)
        return Reply(found.totals, found.losses, answers)

    async def _deliver(
        self, attempt: Attempt, part: Part, found: Contribution, n_nodes: int, session: int
    ) -> None:
        """Bring this process's sums of a part to its owner, one piece after another."""
        async with self._slots:
            for nodes in self._exchange.spans(attempt, part, n_nodes):
                piece = await self._call(self._exchange.piece, attempt, part, found, nodes, session)
                if part.owner == session:
                    await self._add(piece)
                    continue
                try:
                    await asyncio.wait_for(self._send(attempt.peers[part.owner], piece), attempt.timeout)
                except (OSError, CommClosedError, TimeoutError) as error:
                    log.info("session %d cannot be reached: %r", part.owner, error)
                    raise UnreachableError(part.owner) from error

    async def _add(self, piece: Piece) -> bool:
        complete = await self._call(self._exchange.receive, piece)
        if complete and piece.attempt == self._newest:
            self._complete.set()
        return bool(complete)


def sender(
    worker: Worker, handler: str, serialized: Callable[[Any], Any]
) -> Callable[[Peer, Piece], Awaitable[bool]]:
    """Return a function that sends a piece from a worker to another one's session."""

    async def send(peer: Peer, piece: Piece) -> bool:
        reply = await getattr(worker.rpc(peer.address), handler)(
            session=peer.session, token=peer.token, method="receive", arguments=[serialized(piece)]
        )
        if reply is None or "value" not in reply:
            raise CommClosedError(f"{peer.session} is closed")
        return bool(reply["value"])

    return send
