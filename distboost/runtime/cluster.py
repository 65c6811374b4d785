"""Rows on a Dask cluster: one actor per worker holds that worker's blocks."""

from __future__ import annotations

import uuid
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from distributed import Client, Future, get_worker
from distributed.client import _current_client

from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.data.sources import is_dask
from distboost.errors import ClusterError, DistboostError
from distboost.rows import HistogramQuestion, Partial, RowCounts, Rows, SumsQuestion, UpdateQuestion
from distboost.runtime.placement import count_rows, shares, total
from distboost.runtime.shard import Shard
from distboost.threads import Threads
from distboost.weak.splits import Histograms

# Seconds. Every wait has a deadline: past it, the worker is reported instead of waited for.
WORKERS_DEADLINE = 60.0
CALL_DEADLINE = 600.0
INGEST_DEADLINE = 3600.0


class ShardActor:
    """A shard that lives on a worker and answers over the network."""

    def __init__(
        self,
        training: list[BinnedRows],
        evaluation: list[BinnedRows],
        n_bins,
        n_classes,
        n_scores,
        score_dtype,
    ):
        self._threads = Threads(get_worker().state.nthreads)
        self._shard = Shard(training, evaluation, n_bins, n_classes, n_scores, score_dtype, self._threads)

    def histogram(self, question: HistogramQuestion, n_channels: int, padded: int) -> np.ndarray:
        """The nodes' histograms, without unused channels."""
        m = len(question.build)
        sums = np.zeros((m, int(self._shard.offsets[-1]), padded), np.int64)
        self._shard.histogram(question, sums, np.arange(m))
        return np.ascontiguousarray(sums[:, :, :n_channels])

    def sums(self, question: SumsQuestion) -> Partial:
        return self._shard.sums(question)

    def update(self, question: UpdateQuestion) -> Partial:
        return self._shard.update(question)

    def passes(self) -> Counter[str]:
        return self._shard.passes

    def close(self) -> None:
        self._threads.close()


class ClusterRuntime:
    """The workers of a Dask client."""

    def __init__(self, client: Client):
        self.client = client
        self.address = client.scheduler.address if client.scheduler else "?"
        self.workers = self._workers()
        self.n_parallel = sum(self.workers.values())
        self.n_processes = len(self.workers)
        self.name = f"distboost-{uuid.uuid4().hex[:12]}"  # several trainings may share a cluster

    def __str__(self) -> str:
        return f"on {len(self.workers)} Dask workers with {self.n_parallel} threads ({self.address})"

    def _workers(self) -> dict[str, int]:
        """Address and number of threads of each worker."""
        try:
            self.client.wait_for_workers(1, timeout=WORKERS_DEADLINE)
        except TimeoutError as error:
            raise ClusterError(
                f"the scheduler at {self.address} had no worker within {WORKERS_DEADLINE:.0f} s. "
                "Start some: dask worker <scheduler address>."
            ) from error
        return dict(sorted(self.client.nthreads().items()))

    def map(
        self, function: Callable[..., Any], calls: Iterable[tuple], at_once: int | None = None
    ) -> list[Any]:
        return list(self.each(function, calls, at_once))

    def each(
        self, function: Callable[..., Any], calls: Iterable[tuple], at_once: int | None = None
    ) -> Generator[Any, None, None]:
        """The answers in order. With `at_once`, each worker has so many calls at most, the untaken answers among them.

        (The scheduler gives the calls of a worker that is lost to the others, beside their own.)
        """
        # Else a few calls per thread, so that the parts of a large array are never all in memory.
        slots = deque(list(self.workers) * at_once if at_once else [None] * (4 * self.n_parallel))
        window: deque[tuple[Future, str | None]] = deque()
        try:
            for call in calls:
                if not slots:
                    future, worker = window.popleft()
                    slots.append(worker)
                    yield self._result(future)
                worker = slots.popleft()
                window.append((self._submit(function, call, worker, strictly=False), worker))
            while window:
                yield self._result(window.popleft()[0])
        finally:
            self.client.cancel([future for future, _ in window])

    def share(self, value: Any) -> Any:
        return self.client.scatter([value], hash=False, broadcast=True)[0]

    def _submit(
        self, function: Callable[..., Any], call: tuple, worker: str | None = None, strictly: bool = True
    ) -> Future:
        return self.client.submit(
            function,
            *(self._sent(argument, worker, strictly) for argument in call),
            workers=None if worker is None else [worker],
            allow_other_workers=worker is not None and not strictly,
            key=f"{self.name}-{function.__name__}-{uuid.uuid4().hex}",
            pure=False,
        )

    def _sent(self, part: Any, worker: str | None, strictly: bool) -> Any:
        """An argument as it travels: parts of dask arrays are computed, large arrays go straight to the worker."""
        workers = None if worker is None else [worker]
        if is_dask(part):
            return self.client.compute(
                part, workers=workers, allow_other_workers=bool(workers) and not strictly
            )
        if isinstance(part, np.ndarray):
            return self.client.scatter(part, workers=workers, hash=False)
        return part

    def _result(self, future: Future) -> Any:
        try:
            return future.result(timeout=INGEST_DEADLINE)
        except (DistboostError, ValueError, TypeError):
            raise
        except TimeoutError as error:
            raise ClusterError(
                f"{future.key} was not done within {INGEST_DEADLINE:.0f} s. Look at the workers' logs."
            ) from error
        except Exception as error:
            raise ClusterError(
                f"{future.key} failed on the cluster: {type(error).__name__}: {error}"
            ) from error

    def place(
        self,
        sets: list[BinnedSet],
        n_bins: np.ndarray,
        n_classes: int,
        score_dtype: str,
        n_scores: int | None = None,
    ) -> Rows:
        """Bins the rows on the workers that will hold them, and starts an actor on each."""
        addresses = list(self.workers)
        counts = []
        blocks: list[list[list[Future]]] = []  # of each set, worker by worker
        for part in sets:
            of_workers = [
                [self._submit(part.function, part.calls[block], address) for block in share]
                for address, share in zip(
                    addresses, shares(len(part.calls), list(self.workers.values())), strict=True
                )
            ]
            counts.append(total(self.map(count_rows, [(f,) for futures in of_workers for f in futures])))
            blocks.append(of_workers)
        none: list[list[Future]] = [[] for _ in addresses]
        training, evaluation = [*blocks, none][:2]
        futures = [
            self.client.submit(
                ShardActor,
                training[number],
                evaluation[number],
                n_bins,
                n_classes,
                n_scores or n_classes,
                score_dtype,
                actor=True,
                workers=[address],
                key=f"{self.name}-shard-{uuid.uuid4().hex}",
                pure=False,
            )
            for number, address in enumerate(addresses)
        ]
        with _current(self.client):  # an actor binds to the current client, and there may be others
            actors = [self._result(future) for future in futures]
        return ClusterRows(self.client, futures, actors, addresses, n_bins, n_classes, tuple(counts))

    def close(self) -> None:
        """The client and its workers are the caller's."""


class ClusterRows(Rows):
    """Shards on workers; an answer is the sum of theirs."""

    def __init__(
        self,
        client: Client,
        futures: list[Future],
        actors: list[Any],
        addresses: list[str],
        n_bins: np.ndarray,
        n_classes: int,
        counts: tuple[RowCounts, ...],
    ):
        super().__init__(n_bins, n_classes, counts, Threads())
        self._client = client
        self._futures = futures
        self._actors = dict(zip(addresses, actors, strict=True))

    def _ask(self, method: str, *arguments: Any) -> Iterable[Any]:
        """The answers of all actors, in the order they were started; all of them work at once."""
        with _current(self._client):
            futures = {address: getattr(actor, method)(*arguments) for address, actor in self._actors.items()}
        for address, future in futures.items():
            try:
                yield future.result(timeout=CALL_DEADLINE)
            except DistboostError:
                raise
            except TimeoutError as error:
                raise ClusterError(
                    f"worker {address} did not answer '{method}' of round {self.round} within {CALL_DEADLINE:.0f} s."
                ) from error
            except Exception as error:
                raise ClusterError(
                    f"worker {address} was lost or failed at '{method}' of round {self.round}: "
                    f"{type(error).__name__}: {error}. Look at that worker's log, then train again."
                ) from error

    def _histogram(self, question: HistogramQuestion, histograms: Histograms, slots: list[int]) -> None:
        pool = histograms.pool
        n_channels = histograms.n_used
        pool[slots] = 0
        for answer in self._ask("histogram", question, n_channels, pool.shape[2]):
            for slot, sums in zip(slots, answer, strict=True):
                pool[slot, :, :n_channels] += sums

    def _reduce(self, kind: str, question: SumsQuestion | UpdateQuestion) -> Partial:
        first, *others = self._ask(kind, question)
        for other in others:
            first = first.combined(other)
        return first

    def passes(self) -> dict[str, int]:
        return dict(sum(self._ask("passes"), Counter()))

    def close(self) -> None:
        """Ends the actors: now, not when the last reference to them happens to go."""
        with suppress(ClusterError):  # a worker that is gone has nothing left to end
            list(self._ask("close"))
        self._client.cancel(self._futures, force=True)
        self._actors, self._futures = {}, []
        self.threads.close()


@contextmanager
def _current(client: Client) -> Iterator[None]:
    """Makes the client this thread's current one.

    `Client.as_current` also sets Dask's global configuration, and two trainings in two threads would leave it set: computations
    of the user's without a client would then fail.
    """
    token = _current_client.set(client)
    try:
        yield
    finally:
        _current_client.reset(token)
