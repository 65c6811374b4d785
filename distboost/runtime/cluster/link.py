"""A Dask client, as distboost speaks through it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from typing import Any

from distributed import Client, KilledWorker
from distributed import Future as DaskFuture
from distributed.comm import CommClosedError

from distboost.errors import ClusterError, DistboostError
from distboost.runtime.cluster.coordinator import LostError

POLL_INTERVAL = 0.25  # seconds
LOST_TASK_ERRORS = (
    CommClosedError,
    CancelledError,
    asyncio.CancelledError,
    KilledWorker,
)  # a task's errors that tell of a lost worker


class Link:
    """The connection to a scheduler, and through it to workers.

    Dask answers a worker or a scheduler that is gone with errors of many kinds. What comes of this class is a ClusterError if the
    scheduler is gone; a LostError if something else came between, which may go well on another worker; or what a task has
    raised itself.

    Parameters
    ----------
    client : distributed.Client
    timeout : float
        Seconds in which a scheduler and workers that are well have answered.
    """

    def __init__(self, client: Client, timeout: float):
        self.client, self.timeout = client, timeout
        scheduler: Any = client.scheduler
        if scheduler is None:
            raise ClusterError(
                f"the client given is {client.status}. Connect a new one: Client(<scheduler address>)."
            )
        self.address = str(scheduler.address)

    def check(self) -> None:
        """Raises if the connection is gone: Dask may make a new one, but has forgotten what was asked through this one."""
        if self.client.status != "running":
            raise self.scheduler_gone()

    def scheduler_gone(self) -> ClusterError:
        return ClusterError(
            f"the scheduler at {self.address} does not answer. Start a cluster, then go on from the checkpoint with "
            "fit(..., resume=True), if there is one."
        )

    def start(self, work: Coroutine) -> Future:
        """Runs a coroutine on the client's event loop."""
        try:
            self.check()
            loop: Any = self.client.loop
            return asyncio.run_coroutine_threadsafe(work, loop.asyncio_loop)
        except BaseException:
            work.close()
            raise

    def answer(
        self, work: Coroutine, check: Callable[[], None] | None = None, within: float | None = None
    ) -> Any:
        """What a coroutine gives on the client's event loop; raises LostError if it takes longer than the timeout.

        `check` is called now and then, and may raise; it is `Link.check` if not given.
        """
        future = self.start(work)
        last = time.monotonic() + (within or self.timeout)
        while not wait([future], timeout=POLL_INTERVAL).done:
            (check or self.check)()
            if time.monotonic() > last:
                future.cancel()
                raise LostError(f"no answer within {within or self.timeout:g} s")
        return future.result()

    # Tasks.

    def submit(self, function: Callable[..., Any], *arguments: Any, key: str, **how: Any) -> Any:
        """The future of a task that no other is like."""
        with self._submitting():
            return self.client.submit(function, *arguments, key=key, pure=False, **how)

    def compute(self, part: Any, workers: list[str] | None) -> Any:
        """The future of a part of a dask array, which its source has optimised."""
        with self._submitting():
            return self.client.compute(
                part, workers=workers, allow_other_workers=workers is not None, optimize_graph=False
            )

    async def scatter(self, value: Any, workers: list[str] | None) -> Any:
        """The future of a value that was sent to a worker."""
        with self._translate_errors():
            return await self.client.scatter(value, workers=workers, hash=False, asynchronous=True)

    async def result(self, future: Any) -> Any:
        """What a task gives, or has raised."""
        with self._translate_errors(
            lambda error: future.status == "error" and not isinstance(error, LOST_TASK_ERRORS)
        ):
            return await future.result()

    def release(self, futures: Iterable[Any]) -> None:
        """What is not wanted anymore: Dask stops at it, if it is under way. Values that are no futures are passed over."""
        for future in futures:
            if isinstance(future, DaskFuture):
                future.release()  # from any thread, and also if the client is closed

    # Messages.

    async def send(self, worker: str, operation: str, **message: Any) -> Any:
        """What a worker says to a message: through the scheduler, unless the client talks to workers itself."""
        scheduler: Any = self.client.scheduler
        with self._translate_errors():
            if self.client.direct_to_workers:
                return await getattr(self.client.rpc(worker), operation)(**message)
            return await scheduler.proxy(worker=worker, msg={"op": operation, **message})

    async def workers(self) -> dict[str, dict]:
        """The workers that the scheduler knows."""
        scheduler: Any = self.client.scheduler
        with self._translate_errors():
            return (await scheduler.identity(n_workers=-1))["workers"]

    async def run_on_scheduler(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function gives or raises there."""
        with self._translate_errors(self._raised_by_function):
            return await self.client.run_on_scheduler(function, *arguments)

    async def run_on(self, worker: str, function: Callable[..., Any]) -> Any:
        """What a function gives or raises on a worker, outside of tasks."""
        with self._translate_errors(self._raised_by_function):
            return (await self.client.run(function, workers=[worker]))[worker]

    def _raised_by_function(self, error: BaseException) -> bool:
        """Whether a function that runs somewhere may have raised the error."""
        return self.client.status == "running" and not isinstance(error, (OSError, *LOST_TASK_ERRORS))

    @contextmanager
    def _submitting(self) -> Iterator[None]:
        self.check()
        try:
            yield
        except Exception as error:
            self.check()
            raise ClusterError(
                f"a task cannot be sent to the scheduler at {self.address}: {type(error).__name__}: {error}. "
                "Are all its arguments such that they can be pickled?"
            ) from error

    @contextmanager
    def _translate_errors(
        self, is_own: Callable[[BaseException], bool] = lambda error: False
    ) -> Iterator[None]:
        """`is_own` knows errors that are passed on."""
        try:
            yield
        except (DistboostError, LostError):
            raise
        except (Exception, asyncio.CancelledError) as error:
            if is_own(error) or (isinstance(error, asyncio.CancelledError) and _is_cancelled()):
                raise
            self.check()
            raise LostError(f"{type(error).__name__}: {error}") from error


def _is_cancelled() -> bool:
    """Whether nobody wants to hear what the coroutine that we are in has to say."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
