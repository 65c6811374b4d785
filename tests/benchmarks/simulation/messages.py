"""Measures on this machine what messages cost: their bytes between two workers, the rest in trainings of few rows."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from distributed import Client, LocalCluster, Worker
from scipy.optimize import nnls

from distboost.runtime.cluster.relay import packed
from tests.benchmarks.simulation import check
from tests.benchmarks.simulation.costs import Costs
from tests.benchmarks.simulation.job import Job

HANDLER = "distboost-simulate"
SIZES = {1_000: 300, 300_000: 100, 2_000_000: 40}  # bytes: messages
AT_ONCE = 4
IDLE_SECONDS = 4.0
FEW_ROWS, FEW_BINS, FEW_FEATURES = 4_000, 16, 16
WORKERS = 2, 4, 8, 16
ROUNDS, WINDOW = 82, 10


@cache
def _values(n_bytes: int) -> np.ndarray:
    """Some memory that was written to: the system has pages for it."""
    return np.random.default_rng(0).integers(0, 256, n_bytes, np.uint8)


async def _received(values: Any) -> dict[str, Any]:
    """The handler."""
    return {"value": None}


def _install(dask_worker: Worker) -> None:
    dask_worker.handlers[HANDLER] = _received


def _cpu() -> float:
    return time.process_time()


async def _send(address: str, n: int, n_bytes: int, dask_worker: Worker) -> float:
    """Send n messages from this worker; return the CPU time."""
    places, values = asyncio.Semaphore(AT_ONCE), _values(n_bytes)

    async def send() -> None:
        async with places:
            await getattr(dask_worker.rpc(address), HANDLER)(values=packed(values))

    began = _cpu()
    await asyncio.gather(*(send() for _ in range(n)))
    return _cpu() - began


def _slope(points: list[tuple[float, float]]) -> float:
    """The costs per byte, of costs by size: errors count relative to the costs."""
    sizes, seconds = np.array(points).T
    found, _ = nnls(np.stack([np.ones_like(sizes), sizes], axis=1) / seconds[:, None], np.ones_like(seconds))
    return float(found[1])


def between_workers(client: Client, workers: list[str]) -> dict[str, float]:
    """The costs per byte of sending and receiving."""
    sender, receiver = workers
    sent, received = [], []
    for n_bytes, n in SIZES.items():
        client.run(_send, receiver, 20, n_bytes, workers=[sender])  # opens connections
        before = client.run(_cpu, workers=[receiver])[receiver]
        sent.append((n_bytes, client.run(_send, receiver, n, n_bytes, workers=[sender])[sender] / n))
        received.append((n_bytes, (client.run(_cpu, workers=[receiver])[receiver] - before) / n))
    return {"send_byte": _slope(sent), "receive_byte": _slope(received)}


def idle(client: Client) -> dict[str, float]:
    """The fraction of a core that a process takes that does nothing: of a worker, and of this one with the scheduler."""
    before, began = client.run(_cpu), _cpu()
    time.sleep(IDLE_SECONDS)
    spent, after = _cpu() - began, client.run(_cpu)
    worker = float(np.mean([after[address] - before[address] for address in before]))
    return {"idle": worker / IDLE_SECONDS, "client_idle": spent / IDLE_SECONDS}


def of_bytes() -> dict[str, float]:
    """The costs per byte, on a local cluster of two workers."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(_install)
        workers = list(client.scheduler_info()["workers"])
        return {**idle(client), **between_workers(client, workers)}


def fitted(equations: list[list[float]], seconds: list[float]) -> tuple[np.ndarray, float]:
    """The costs of what was counted, and the error: errors count relative to the times."""
    return nnls(np.array(equations) / np.array(seconds)[:, None], np.ones(len(seconds)))


def of_messages(costs: Costs) -> Costs:
    """What messages cost beside their bytes: what trainings of few rows take beyond their other work."""
    free = replace(
        costs, send=0.0, receive=0.0, ask=0.0, answer=0.0, client_round=0.0, idle=0.0, client_idle=0.0
    )
    by_client, by_workers, spent, crowds = [], [], [], []
    for n in WORKERS:
        job = Job(FEW_ROWS // n, FEW_FEATURES, bins=FEW_BINS + 1)
        setting = check.settings(n)["owners"]
        with check.forced(star=False):
            real = check.real(n, job, ROUNDS, WINDOW)
        other = check.simulated(n, job, setting, free)
        n_questions = len(job.levels) + 1
        direct = n_questions * min(n, setting.fan_out) + 1  # one for the sums per leaf
        between = (n_questions + 1) * n - direct + n * other.pieces
        by_client.append([1, direct])
        by_workers.append([direct, between])
        spent.append((
            real.client_cpu - other.client_cpu - costs.client_idle * real.seconds,
            real.worker_cpu - other.worker_cpu - costs.idle * n * real.seconds,
        ))  # fmt: skip
        crowds.append(max(n / check.cores() - 1, 0.0))

    def fit(crowd: float) -> tuple[float, np.ndarray, np.ndarray]:
        """The error and the costs if messages cost so much more in a crowd."""
        factors = 1 + crowd * np.array(crowds)[:, None]
        client, workers = (np.array(column).tolist() for column in zip(*spent, strict=True))
        of_client, error = fitted(
            (np.array(by_client) * np.hstack([np.ones_like(factors), factors])).tolist(), client
        )
        of_workers, other_error = fitted((np.array(by_workers) * factors).tolist(), workers)
        return error**2 + other_error**2, of_client, of_workers

    crowd = min(np.linspace(0, 0.3, 61).tolist(), key=lambda crowd: fit(crowd)[0])
    _, (client_round, ask), (answer, message) = fit(crowd)
    return replace(
        costs, client_round=float(client_round), ask=float(ask), answer=float(answer), send=float(message) / 2,
        receive=float(message) / 2, crowd=crowd,
    )  # fmt: skip
