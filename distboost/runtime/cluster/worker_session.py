"""A training run's rows on a Dask worker, which Dask itself does not manage.

Dask's actors were made for this, but a worker that has an actor refuses to retire. So a task opens a session on the worker; the
session holds rows as long as the client keeps the task's future, and answers questions through a handler of its own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker
from distributed.comm.core import CommClosedError
from distributed.utils import sync

from distboost.data.inventory import Probe
from distboost.errors import DistboostError, StoreError, WorkerError
from distboost.process import end_promptly
from distboost.rows.messages import HistogramQuestion, UpdateQuestion
from distboost.runtime.base import Allotment, Layout
from distboost.runtime.block import Key
from distboost.runtime.cluster.compilation import report_compilation
from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.exchange import Attempt, Exchange, Reply
from distboost.runtime.cluster.gathering import Piece
from distboost.runtime.cluster.host import Host
from distboost.runtime.cluster.reduce_to_owners import (
    Actions,
    Compute,
    ReduceToOwners,
    Send,
    Settle,
    SupersededError,
)
from distboost.runtime.cluster.relay import Peer, UnansweredError, forwarder, gathered, packed, unpacked

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


HANDLER = "distboost"


class WorkerSession:
    """A host and the threads that serve it.

    Parameters
    ----------
    host : Host
    worker : distributed.Worker

    Attributes
    ----------
    token : str
        Distinguishes sessions of the same name: if a worker dies and another one takes its address, Dask runs the task again,
        and the session that it opens there holds no rows.
    """

    def __init__(self, host: Host, worker: Worker):
        self.host, self.worker = host, worker
        self.token = uuid.uuid4().hex
        self.pool = ThreadPoolExecutor(worker.state.nthreads + 1, "distboost-host")
        self.exchange = WorkerExchange(host.exchange, self.pool, sender(worker, HANDLER))
        self.closed = False

    def close(self) -> None:
        """Close the host as soon as running calls have ended, without waiting for them."""

        def end() -> None:
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.host.close()

        self.closed = True
        self.worker.loop.add_callback(self.exchange.cancel)
        threading.Thread(target=end, name="distboost-closing", daemon=True).start()


# Tasks open sessions in threads of their own, while the event loop closes others: whoever iterates or changes takes the lock.
_sessions: dict[str, WorkerSession] = {}
_sessions_lock = threading.Lock()


def open_sessions() -> list[WorkerSession]:
    """Return the sessions of this process."""
    with _sessions_lock:
        return [*_sessions.values()]


def _replace_sessions(
    is_closed: Callable[[str, WorkerSession], bool], opened: Mapping[str, WorkerSession] | None = None
) -> None:
    """Close the sessions that `is_closed` selects and add others."""
    with _sessions_lock:
        names = [name for name, session in _sessions.items() if is_closed(name, session)]
        closed = [_sessions.pop(name) for name in names]
        _sessions.update(opened or {})
    for session in closed:
        session.close()


class SessionCleanup(WorkerPlugin):
    """Closes a session when Dask forgets its task: the training is over, or its client is gone."""

    def __init__(self, worker: Worker):
        self.worker = worker

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        """Dask calls this whenever a task on the worker changes its state."""
        if start == "memory" and key in _sessions:
            _replace_sessions(lambda name, session: name == key)

    def teardown(self, worker: Worker) -> None:
        """Dask calls this when the worker closes."""
        _replace_sessions(lambda name, session: session.worker is worker)


def open_session(
    name: str,
    number: int,
    probes: list[Probe],
    layout: Layout,
    n_sets: int,
    allotment: Allotment | None,
) -> str:
    """Open a session on this worker, if it can read the arrays of its rows; return the session's token. Runs as a task."""
    worker = get_worker()
    for probe in probes:
        probe.check()
    if allotment is not None and allotment.scratch is None:
        allotment = replace(allotment, scratch=worker.local_directory)
    sync(worker.loop, _install, worker)
    session = WorkerSession(Host(number, layout, n_sets, allotment, worker.state.nthreads), worker)
    # Dask may run the task twice.
    _replace_sessions(lambda other, _: other == name, {name: session})
    return session.token


async def _install(worker: Worker) -> None:
    handlers: dict[str, Any] = worker.handlers
    handlers.setdefault(HANDLER, _answer)
    worker.plugins.setdefault(HANDLER, SessionCleanup(worker))


def _find(name: str, token: str) -> WorkerSession | None:
    """Return the session, unless it was closed or is another one of that name."""
    session = _sessions.get(name)
    return session if session is not None and session.token == token else None


async def _answer(
    session: str,
    token: str,
    method: str,
    *,
    arguments: Any,
    members: Any = (),
    fan_out: int = 1,
    timeout: float = 0.0,
) -> dict[str, Any]:
    """Handle a question: reply with the answer of the session and of the `members` below it, or with an error."""
    found = _find(session, token)
    if found is None:
        return {"gone": True}
    arguments = unpacked(arguments)
    try:
        value = _call(found, method, arguments)
        if members:
            forward = forwarder(
                found.worker, HANDLER, method, arguments=arguments, fan_out=fan_out, timeout=timeout
            )
            value = gathered(value, forward, [Peer(*member) for member in members], fan_out)
        value = await value
    except (SupersededError, UnansweredError):
        return {"gone": True}
    except (Exception, asyncio.CancelledError) as error:
        if found.closed:
            return {"gone": True}
        if isinstance(error, asyncio.CancelledError):  # the worker is closing
            raise
        return {"error": packed(located_error(error, _stage(method, arguments), found.worker.address))}
    return {"value": packed(value)}


def _stage(method: str, arguments: Sequence[Any]) -> str:
    """Return the name of a question, for messages."""
    return str(arguments[1]) if method == "answer" else method


def _call(session: WorkerSession, method: str, arguments: Sequence[Any]) -> Awaitable[Any]:
    """Call a method of the session's exchange, or one of its host in a thread."""
    if method in ("expand", "receive"):
        found: Awaitable[Any] = getattr(session.exchange, method)(*arguments)
        return found
    function = getattr(session.host, method)
    return asyncio.get_running_loop().run_in_executor(session.pool, function, *arguments)


def store_rows(
    session: str, token: str, key: Key, function: Callable[..., Any], *call: Any
) -> dict[Key, int]:
    """Make binned rows of what Dask has computed and hold them in the session; return their digest. Runs as a task."""
    found = _find(session, token)
    if found is None:
        raise WorkerLostError("its session was closed")
    try:
        return found.host.take([(key, function(*call))])
    except Exception as error:
        if found.closed:
            raise WorkerLostError("its session was closed") from error
        raise located_error(error, "take", found.worker.address) from error


def located_error(error: BaseException, stage: str, worker: str) -> DistboostError:
    """Return an error of distboost's own types that says on which worker, at which stage and in which block it was raised."""
    block = getattr(error, "block", None)
    place = f"at '{stage}'{f' of {block}' if block else ''}, on worker {worker}"
    located: DistboostError
    if isinstance(error, DistboostError):
        located = error.at(place)
    else:
        located = WorkerError(
            f"{type(error).__name__}: {error} ({place}).",
            remedy="See the worker's log; start it with more memory, or set a ``memory_limit``."
            if isinstance(error, MemoryError)
            else "See the worker's log.",
            where=block,
        )
    located.block, located.stage, located.worker = block, stage, worker  # type: ignore[attr-defined]
    return located


def run_task(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task; name the worker in the error if it cannot read or write a store."""
    end_promptly()
    report_compilation(get_worker())
    try:
        return function(*arguments)
    except StoreError as error:
        worker = get_worker().address
        located = error.at(f"on worker {worker}")
        located.worker = worker  # type: ignore[attr-defined]
        raise located from error
