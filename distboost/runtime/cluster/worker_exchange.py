"""The exchange of histograms on a Dask worker: pieces travel from worker to worker over Dask's own connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from distributed import Worker
from distributed.comm.core import CommClosedError

from distboost.rows.messages import HistogramQuestion, UpdateQuestion
from distboost.runtime.cluster.exchange import Attempt, Exchange, Reply
from distboost.runtime.cluster.gathering import Piece
from distboost.runtime.cluster.reduce_to_owners import Actions, Compute, ReduceToOwners, Send, Settle
from distboost.runtime.cluster.relay import Peer, packed

log = logging.getLogger("distboost")


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
        self._protocol, self._pool, self._send = ReduceToOwners(exchange), pool, send
        self._working: dict[asyncio.Task[None], Attempt] = {}

    async def expand(self, question: HistogramQuestion | UpdateQuestion, attempt: Attempt) -> Reply:
        """Take part in an attempt, which ends all earlier ones."""
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._do(self._protocol.ask(question, attempt, reply))
        try:
            return await reply
        finally:
            self._do(self._protocol.stop(reply))
            for task in [task for task, of in self._working.items() if of is attempt]:
                task.cancel()

    async def receive(self, piece: Piece) -> None:
        """Add a piece that another worker sends, once its attempt has begun."""
        added: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._do(self._protocol.arrive(piece, added))
        await added

    def cancel(self) -> None:
        """End the attempt that is under way."""
        self._do(self._protocol.stop())

    def _do(self, actions: Actions) -> None:
        for action in actions:
            if not isinstance(action, Settle):
                task = asyncio.ensure_future(self._work(action))
                self._working[task] = action.attempt
                task.add_done_callback(self._working.pop)
            elif not action.to.done():  # else it was cancelled
                if action.error is None:
                    action.to.set_result(action.value)
                else:
                    action.to.set_exception(action.error)

    async def _work(self, action: Compute | Send) -> None:
        try:
            if isinstance(action, Compute):
                call = asyncio.get_running_loop().run_in_executor(
                    self._pool, action.function, *action.arguments
                )
                actions = self._protocol.done(action, await call)
            else:
                async with asyncio.timeout(action.attempt.timeout):
                    await self._send(action.attempt.peers[action.session], action.piece)
                actions = self._protocol.done(action)
        except Exception as error:  # noqa: BLE001 (it ends the attempt)
            if isinstance(action, Send) and isinstance(error, OSError | CommClosedError | TimeoutError):
                log.info("session %d cannot be reached: %r", action.session, error)
                actions = self._protocol.unreachable(action)
            else:
                actions = self._protocol.failed(action, error)
        self._do(actions)


def sender(worker: Worker, handler: str) -> Callable[[Peer, Piece], Awaitable[None]]:
    """Return a function that sends a piece from a worker to another one's session."""

    async def send(peer: Peer, piece: Piece) -> None:
        reply = await getattr(worker.rpc(peer.address), handler)(
            session=peer.session, token=peer.token, method="receive", arguments=packed([piece])
        )
        if reply is None or "value" not in reply:
            raise CommClosedError(f"{peer.session} is closed")

    return send
