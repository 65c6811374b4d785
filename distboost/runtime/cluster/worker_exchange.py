"""The exchange of histograms on a Dask worker: pieces travel from worker to worker over Dask's own connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any

from distributed import Worker
from distributed.comm.core import CommClosedError

from distboost.rows.messages import Expanded, Expansion, HistogramQuestion, UpdateQuestion
from distboost.runtime.cluster.exchange import Attempt, Contribution, Exchange, OwnedFeatures, Reply
from distboost.runtime.cluster.gathering import Piece
from distboost.runtime.cluster.packing import packed
from distboost.runtime.cluster.relay import Peer

log = logging.getLogger("distboost")

# Pieces under way from a worker, to different ones: each takes memory here and at its owner.
SENT_AT_ONCE = 4


class SupersededError(Exception):
    """A newer attempt has begun."""


class UnreachableError(Exception):
    """Another session cannot be reached."""

    def __init__(self, session: int):
        super().__init__(session)
        self.session = session


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

    def __init__(self, exchange: Exchange, pool: Executor, send: Callable[[Peer, Piece], Awaitable[None]]):
        self._exchange, self._pool, self._send = exchange, pool, send
        self._newest = 0  # the last attempt that was asked for
        self._ready = 0  # the last attempt whose pieces can be added
        self._running: asyncio.Task[Reply] | None = None
        self._begun = asyncio.Condition()
        self._collected, self._complete = asyncio.Event(), asyncio.Event()
        self._slots = asyncio.Semaphore(SENT_AT_ONCE)

    async def expand(self, question: HistogramQuestion | UpdateQuestion, attempt: Attempt) -> Reply:
        """Take part in an attempt, which ends all earlier ones."""
        if attempt.number <= self._newest:
            raise SupersededError
        self._newest = attempt.number
        self.cancel()
        self._running = running = asyncio.ensure_future(self._expand(question, attempt))
        try:
            return await running
        except asyncio.CancelledError:
            if attempt.number != self._newest:
                raise SupersededError from None
            raise

    async def receive(self, piece: Piece) -> None:
        """Add a piece that another worker sends, once its attempt has begun."""
        async with self._begun:
            await self._begun.wait_for(lambda: self._ready >= piece.attempt)
        await self._add(piece.attempt, self._exchange.receive, piece)

    def cancel(self) -> None:
        """End the attempt that is under way."""
        if self._running is not None:
            self._running.cancel()

    def _call(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    async def _expand(self, question: HistogramQuestion | UpdateQuestion, attempt: Attempt) -> Reply:
        self._collected.clear()
        self._complete.clear()
        expansion = question.expansion
        assert expansion is not None, "a histogram is wanted"
        n_nodes = len(expansion.build)
        found = await self._contribute(question, expansion, attempt)
        assert found.totals is not None
        if not self._exchange.has_collected:
            await self._add(attempt.number, self._exchange.collect, attempt, found)
        session = self._exchange.session
        # The own parts are searched as soon as their sums are complete, while others may still be adding pieces of this process.
        working = [
            asyncio.ensure_future(work)
            for work in (
                *(self._share(attempt, other, found, n_nodes) for other in self._others(attempt, session)),
                *(self._pass_on(attempt, part, found, n_nodes) for part in _turned(attempt.collected(session), session)),
                self._answer(attempt),
            )
        ]  # fmt: skip
        try:
            *_, expanded = await asyncio.gather(*working)
        except UnreachableError as error:
            return Reply(found.totals, found.losses, None, error.session)
        finally:
            for each in working:
                each.cancel()
        return Reply(found.totals, found.losses, expanded)

    async def _contribute(
        self, question: HistogramQuestion | UpdateQuestion, expansion: Expansion, attempt: Attempt
    ) -> Contribution:
        """Sum the rows, and meanwhile begin the attempt: pieces of others may come before this process has its sums."""
        begun = self._call(self._exchange.begin, attempt, expansion)
        contributed = self._call(self._exchange.contribute, attempt, question)
        try:
            await begun
            self._note(attempt.number)
            async with self._begun:
                self._ready = attempt.number
                self._begun.notify_all()
            found: Contribution = await contributed
        finally:
            contributed.cancel()
        return found

    async def _answer(self, attempt: Attempt) -> Expanded | None:
        """Once the sums of this process's own parts are complete, search them."""
        await self._complete.wait()
        found: Expanded | None = await self._call(self._exchange.answer)
        return found

    @staticmethod
    def _others(attempt: Attempt, session: int) -> list[int]:
        """Return the other members of the group that collect parts, beginning with those that come after this one."""
        others = [other for other in attempt.group(session) if other != session and attempt.collected(other)]
        return sorted(others, key=lambda other: (other < session, other))

    async def _share(self, attempt: Attempt, collector: int, found: Contribution, n_nodes: int) -> None:
        """Bring this process's sums to a collector of its group, one piece after another."""
        async with self._slots:
            for nodes in self._exchange.spans(attempt, attempt.collected(collector), n_nodes):
                piece = await self._call(self._exchange.group_piece, attempt, collector, found, nodes)
                await self._reach(attempt, collector, piece)

    async def _pass_on(
        self, attempt: Attempt, part: OwnedFeatures, found: Contribution, n_nodes: int
    ) -> None:
        """Once the sums of its group are complete, bring those of a part to the owner."""
        await self._collected.wait()
        if part.owner == self._exchange.session:
            await self._add(attempt.number, self._exchange.keep, attempt, part, found)
            return
        async with self._slots:
            for nodes in self._exchange.spans(attempt, [part], n_nodes):
                piece = await self._call(self._exchange.piece, attempt, part, found, nodes)
                await self._reach(attempt, part.owner, piece)

    async def _reach(self, attempt: Attempt, session: int, piece: Piece) -> None:
        try:
            async with asyncio.timeout(attempt.timeout):
                await self._send(attempt.peers[session], piece)
        except (OSError, CommClosedError, TimeoutError) as error:
            log.info("session %d cannot be reached: %r", session, error)
            raise UnreachableError(session) from error

    async def _add(self, attempt: int, add: Callable[..., None], *arguments: Any) -> None:
        await self._call(add, *arguments)
        self._note(attempt)

    def _note(self, attempt: int) -> None:
        """Note which sums of an attempt are complete."""
        if attempt == self._newest:
            if self._exchange.has_collected:
                self._collected.set()
            if self._exchange.has_all:
                self._complete.set()


def _turned(parts: list[OwnedFeatures], session: int) -> list[OwnedFeatures]:
    """Return the parts in an order that begins elsewhere for each session, and ends with its own parts.

    So they do not all send to the same owner first, and no owner waits while others add their own sums.
    """
    return sorted(parts, key=lambda part: (part.owner <= session, part.owner, part.number))


def sender(worker: Worker, handler: str) -> Callable[[Peer, Piece], Awaitable[None]]:
    """Return a function that sends a piece from a worker to another one's session."""

    async def send(peer: Peer, piece: Piece) -> None:
        reply = await getattr(worker.rpc(peer.address), handler)(
            session=peer.session, token=peer.token, method="receive", arguments=packed([piece])
        )
        if reply is None or "value" not in reply:
            raise CommClosedError(f"{peer.session} is closed")

    return send
