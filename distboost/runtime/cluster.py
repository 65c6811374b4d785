"""Rows on a Dask cluster: one actor per worker holds that worker's blocks."""

from __future__ import annotations

import itertools
import uuid
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import reduce
from typing import Any

import fsspec
import numpy as np
from distributed import Client, Future, Worker, get_worker, wait
from distributed.client import _current_client

from distboost.data.blocks import BinnedSet
from distboost.data.memory import give_back
from distboost.data.sources import is_dask
from distboost.errors import ClusterError, DistboostError
from distboost.rows import HistogramQuestion, Partial, RowCounts, Rows, SumsQuestion, UpdateQuestion
from distboost.runtime.placement import shares, total
from distboost.runtime.shard import Allotment, Layout, Shard, readings
from distboost.runtime.versions import check_versions
from distboost.threads import Threads
from distboost.weak.splits import Histograms

# Seconds. Every wait has a deadline: past it, the worker is reported instead of waited for.
WORKERS_DEADLINE = 60.0
CALL_DEADLINE = 600.0
INGEST_DEADLINE = 3600.0

SPILL_FRACTION = 0.7  # Dask's own default, for workers that are told not to spill


class ShardActor:
    """A shard that lives on a worker and answers over the network."""

    def __init__(self, sets: list[list], layout: Layout, allotment: Allotment | None):
        self._threads = Threads(get_worker().state.nthreads)
        if allotment is not None and allotment.scratch is None:
            allotment = replace(allotment, scratch=get_worker().local_directory)
        self._shard = Shard(sets, layout, self._threads, allotment)
        self._updated: tuple[int, tuple] | None = None
        give_back()

    def counts(self) -> tuple[RowCounts, ...]:
        return self._shard.counts

    def histogram(
        self, question: HistogramQuestion, n_channels: int, padded: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The nodes' histograms, without unused channels; the statistic's totals."""
        m = len(question.build)
        sums = np.zeros((m, int(self._shard.offsets[-1]), padded), np.int64)
        totals = self._shard.histogram(question, sums, np.arange(m))
        return _trimmed(sums, n_channels), totals

    def sums(self, question: SumsQuestion) -> Partial:
        return self._shard.sums(question)

    def update(
        self, question: UpdateQuestion, n_channels: int, padded: int
    ) -> tuple[Partial, np.ndarray, np.ndarray | None]:
        """What the update answers, and the histogram of the next tree's root, if that is known. The same when asked again."""
        if self._updated is None or self._updated[0] != question.round:
            root = None
            if question.root is not None:
                root = np.zeros((1, int(self._shard.offsets[-1]), padded), np.int64)
            found = self._shard.update(question, root, np.zeros(1, np.int64))
            self._updated = question.round, (*found, None if root is None else _trimmed(root, n_channels))
        return self._updated[1]

    def passes(self) -> Counter[str]:
        return self._shard.passes

    def close(self) -> None:
        self._shard.close()
        self._threads.close()


def _trimmed(sums: np.ndarray, n_channels: int) -> np.ndarray:
    """sums[:, :, :n_channels], in the memory of `sums`."""
    m, n_bins, _ = sums.shape
    trimmed = sums.reshape(-1)[: m * n_bins * n_channels].reshape(m, n_bins, n_channels)
    for slot in range(m):  # what is written over has been read
        trimmed[slot] = sums[slot, :, :n_channels].copy()
    return trimmed


def _allowance(dask_worker: Worker) -> int:
    """Bytes that this worker may take before it spills; 0: as many as there are."""
    manager = dask_worker.memory_manager
    return int((manager.memory_spill_fraction or SPILL_FRACTION) * (manager.memory_limit or 0))


def _is_there(url: str) -> bool:
    filesystem, path = fsspec.core.url_to_fs(url)
    return filesystem.exists(path)


class ClusterRuntime:
    """The workers of a Dask client."""

    def __init__(self, client: Client):
        self.client = client
        self.address = client.scheduler.address if client.scheduler else "?"
        self.workers = self._workers()
        check_versions(client, self.workers)
        self.n_parallel = sum(self.workers.values())
        self.n_processes = len(self.workers)
        self.name = f"distboost-{uuid.uuid4().hex[:12]}"  # several trainings may share a cluster

    on_cluster = True

    def limit(self, memory_limit: int | None) -> int | None:
        """What a worker may take: no more than what Dask lets it have before it spills."""
        allowed = self.client.run(_allowance, workers=list(self.workers)).values()
        return min([limit for limit in [*allowed, memory_limit or 0] if limit], default=None)

    def check_shared(self, url: str) -> None:
        """Raises unless all workers see what is at a path or URL."""
        seen = self.client.run(_is_there, url, workers=list(self.workers))
        blind = [address for address, sees in seen.items() if not sees]
        if blind:
            raise ClusterError(
                f"rows that do not fit in memory go to {url}, which worker {blind[0]} does not see ({len(blind)} of {len(seen)} "
                "workers). Give a directory or URL that all workers share: scratch=..."
            )

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

    def place(self, sets: list[BinnedSet], layout: Layout, allotment: Allotment | None = None) -> Rows:
        """Starts an actor on each worker, which bins or reads that worker's rows."""
        addresses = list(self.workers)
        capacities = list(self.workers.values())
        held = {address: [[], []] for address in addresses}  # type: dict[str, list[list]]
        for number, part in enumerate(sets):
            for address, share in zip(addresses, shares(len(part.calls), capacities), strict=True):
                held[address][number] = readings(part, share)
        if allotment is None:
            self._bin(held)
        futures = [
            self.client.submit(
                ShardActor,
                held.pop(address)[: len(sets)],
                layout,
                allotment,
                actor=True,
                workers=[address],
                key=f"{self.name}-shard-{uuid.uuid4().hex}",
                pure=False,
            )
            for address in addresses
        ]
        with _current(self.client):  # an actor binds to the current client, and there may be others
            actors = [self._result(future) for future in futures]
        return ClusterRows(self.client, futures, actors, addresses, layout, len(sets))

    def _bin(self, held: dict[str, list[list]]) -> None:
        """Puts binned rows on the workers in place of readings, a few at a time: raw rows are never all in memory."""
        queues = [
            deque((address, part, block) for part in parts for block in range(len(part)))
            for address, parts in held.items()
        ]
        window: deque[Future] = deque()
        for turn in itertools.zip_longest(*queues):
            for address, part, block in filter(None, turn):
                if len(window) >= 2 * self.n_parallel:
                    self._wait(window.popleft())
                part[block] = self._submit(part[block].function, part[block].call, address)
                window.append(part[block])
        for future in window:
            self._wait(future)

    def _wait(self, future: Future) -> None:
        """Until it is done; raises what it raised."""
        with _current(self.client), suppress(TimeoutError):  # told by the result
            wait(future, timeout=INGEST_DEADLINE)
        if future.status != "finished":
            self._result(future)

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
        layout: Layout,
        n_sets: int,
    ):
        self._client = client
        self._futures = futures
        self._actors = dict(zip(addresses, actors, strict=True))
        self.round = 0
        found = list(self._ask("counts"))
        counts = tuple(total([each[number] for each in found]) for number in range(n_sets))
        super().__init__(layout.n_bins, layout.n_classes, counts, Threads())

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

    def _histogram(self, question: HistogramQuestion, histograms: Histograms, slots: list[int]) -> np.ndarray:
        histograms.pool[slots] = 0
        totals = []
        for answer, of_shard in self._ask("histogram", question, *histograms.channels):
            totals.append(of_shard)
            histograms.add(slots, answer)
        return np.sum(totals, axis=0)

    def _sums(self, question: SumsQuestion) -> Partial:
        return reduce(Partial.combined, self._ask("sums", question))

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
        return reduce(Partial.combined, found), np.sum(totals, axis=0)

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
