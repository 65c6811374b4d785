"""The calls of a Dask client that distboost uses, with Dask's errors translated."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from distributed import Client, KilledWorker
from distributed import Future as DaskFuture
from distributed.comm.core import CommClosedError

from distboost.errors import ClusterError, DistboostError
from distboost.inputs.dask_array import Cluster, DaskPart
from distboost.runtime.cluster.crew import WorkerLostError

log = logging.getLogger("distboost")

POLL_INTERVAL = 0.25  # seconds between checks while waiting

# Errors of a task that mean that its worker was lost.
LOST_TASK_ERRORS = (CommClosedError, CancelledError, asyncio.CancelledError, KilledWorker)

T = TypeVar("T")


class Link:
    """The connection to a scheduler and, through it, to workers.

    Dask reports a lost worker or scheduler with many kinds of errors. The methods of this class raise one of three: ClusterError
    if the scheduler is gone; WorkerLostError if something else failed, which may succeed on another worker; or the error that a
    task raised itself.

    Parameters
    ----------
    client : distributed.Client
    timeout : float
        Seconds within which a healthy scheduler or worker answers.
    """

    def __init__(self, client: Client, timeout: float):
        # Any: many methods of a client have no types, and return a value or a coroutine.
        self.client: Any = client
        self.timeout = timeout
        scheduler: Any = client.scheduler
        if scheduler is None:
            raise ClusterError(
                f"the given client is {client.status}.",
                remedy="``connect|Connect a new one: Client(<scheduler address>)``.",
                value=client.status,
            )
        self.address = str(scheduler.address)
        if client.asynchronous:
            raise ClusterError(
                f"the client of the scheduler at {self.address} is asynchronous: its answers arrive in the event loop of this "
                "thread, which cannot run while a training run waits for them.",
                remedy="Connect with Client(address), or call in another thread: await asyncio.to_thread(model.fit, X, y).",
                where=self.address,
            )

    def check(self) -> None:
        """Raise ClusterError if the connection is gone.

        Dask may reconnect, but it forgets the tasks that were submitted through the old connection.
        """
        if self.client.status != "running":
            raise self.scheduler_gone()

    def scheduler_gone(self) -> ClusterError:
        """Return the error for a scheduler that does not answer."""
        return ClusterError(
            f"the scheduler at {self.address} does not answer.",
            remedy="Start a cluster, then continue from the checkpoint, if there is one, with ``resume=True``.",
            where=self.address,
        )

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the client's event loop."""
        try:
            self.check()
            return asyncio.run_coroutine_threadsafe(work, self.client.loop.asyncio_loop)
        except BaseException:
            work.close()
            raise

    def run(
        self,
        work: Coroutine[Any, Any, T],
        check: Callable[[], None] | None = None,
        timeout: float | None = None,
    ) -> T:
        """Run a coroutine on the client's event loop and return its result.

        Parameters
        ----------
        work : coroutine
        check : callable, optional
            Called every `POLL_INTERVAL`; may raise to stop waiting. `Link.check` by default.
        timeout : float, optional
            Seconds; the link's own by default.

        Raises
        ------
        WorkerLostError
            After the timeout.
        """
        future = self.start(work)
        timeout = timeout or self.timeout
        deadline = time.monotonic() + timeout
        while not wait([future], timeout=POLL_INTERVAL).done:
            (check or self.check)()
            if time.monotonic() > deadline:
                future.cancel()
                raise WorkerLostError(f"no answer within {timeout:g} s")
        return future.result()

    # Tasks.

    def submit(self, function: Callable[..., Any], *arguments: Any, key: str, **options: Any) -> Any:
        """Submit a task under a key that no other task has, and return its future."""
        with self._submitting():
            return self.client.submit(function, *arguments, key=key, pure=False, **options)

    def compute(self, part: DaskPart, workers: list[str] | None, mark: str) -> Any:
        """Return the future of a part of a dask array, whose tasks get names of their own for each mark.

        The source of the part has optimised the graph already.
        """
        if part.keeper is not None:
            part.keeper.check_reader(self._cluster)
        with self._submitting():
            return self.client.compute(
                part.renamed(mark),
                workers=workers,
                allow_other_workers=workers is not None,
                optimize_graph=False,
            )

    @cached_property
    def _cluster(self) -> Cluster:
        return Cluster.of(self.client)

    async def scatter(self, value: Any, workers: list[str] | None) -> Any:
        """Send a value to one of the workers and return its future."""
        with self._translated():
            return await self.client.scatter(value, workers=workers, hash=False, asynchronous=True)

    async def result(self, future: Any) -> Any:
        """Return the result of a task, or raise the task's own error."""

        def raised_by_task(error: BaseException) -> bool:
            return future.status == "error" and not isinstance(error, LOST_TASK_ERRORS)

        with self._translated(raised_by_task):
            return await future.result()

    def release(self, values: Iterable[Any]) -> None:
        """Release the Dask futures among the values: Dask cancels their tasks if nobody else needs them."""
        for value in values:
            if isinstance(value, DaskFuture):
                future: Any = value
                future.release()  # works from any thread, also after the client was closed

    # Messages.

    async def reaches(self, worker: str, operation: str, **message: Any) -> bool:
        """Return whether a message to a worker needs no scheduler. It must have a value as its reply.

        A client behind an ingress cannot connect to workers, or may even reach something else at their addresses.
        """
        if self.client.direct_to_workers is not None:
            return bool(self.client.direct_to_workers)
        try:
            reply = await asyncio.wait_for(
                getattr(self.client.rpc(worker), operation)(**message), self.timeout
            )
        except Exception as error:  # noqa: BLE001 (whatever it is, there is another way)
            log.info("messages to %s go through the scheduler: %r", worker, error)
            return False
        return isinstance(reply, dict) and "value" in reply

    async def send(self, worker: str, operation: str, direct: bool = False, /, **message: Any) -> Any:
        """Call a handler of a worker and return its reply, directly or through the scheduler."""
        with self._translated():
            if direct or self.client.direct_to_workers:
                return await getattr(self.client.rpc(worker), operation)(**message)
            return await self.client.scheduler.proxy(worker=worker, msg={"op": operation, **message})

    async def workers(self) -> dict[str, dict[str, Any]]:
        """Return the scheduler's description of each worker, by address."""
        with self._translated():
            identity = await self.client.scheduler.identity(n_workers=-1)
            return dict(identity["workers"])

    async def run_on_scheduler(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function on the scheduler; return its result or raise its error."""
        with self._translated(self._raised_by_function):
            return await self.client.run_on_scheduler(function, *arguments)

    async def run_on(self, worker: str, function: Callable[..., Any]) -> Any:
        """Run a function on a worker, not as a task; return its result or raise its error."""
        with self._translated(self._raised_by_function):
            return (await self.client.run(function, workers=[worker]))[worker]

    def _raised_by_function(self, error: BaseException) -> bool:
        """Whether a function that ran elsewhere may have raised the error, rather than Dask."""
        return self.client.status == "running" and not isinstance(error, (OSError, *LOST_TASK_ERRORS))

    @contextmanager
    def _submitting(self) -> Iterator[None]:
        self.check()
        try:
            yield
        except Exception as error:
            self.check()
            raise ClusterError(
                f"a task cannot be sent to the scheduler at {self.address}: {type(error).__name__}: {error}.",
                remedy="Check that all its arguments can be pickled.",
                where=self.address,
            ) from error

    @contextmanager
    def _translated(self, is_own: Callable[[BaseException], bool] = lambda error: False) -> Iterator[None]:
        """Translate Dask's errors to ClusterError and WorkerLostError, but for those that `is_own` selects."""
        try:
            yield
        except (DistboostError, WorkerLostError):
            raise
        except (Exception, asyncio.CancelledError) as error:
            if is_own(error) or (isinstance(error, asyncio.CancelledError) and _is_cancelling()):
                raise
            self.check()
            raise WorkerLostError(f"{type(error).__name__}: {error}") from error


def _is_cancelling() -> bool:
    """Whether the current coroutine was itself cancelled, rather than something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
