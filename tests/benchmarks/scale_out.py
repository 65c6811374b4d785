"""A round of a training run on 1 to 16 workers: its time, and what it costs the process that leads the training.

    python -m tests.benchmarks.scale_out

The scheduler and the client are in this process. So its CPU time, and the bytes that it sends and receives, are what each round
costs the coordinator of a cluster. All workers share the cores of this machine: nothing becomes faster by more workers than
cores, but the cost of each further worker shows.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import click
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from rich.console import Console
from rich.table import Table
from tornado.iostream import IOStream

from distboost import GDMCBoostClassifier
from distboost.runtime.cluster import owners

IDLE_SECONDS = 3.0
SKIPPED = 2  # rounds at the beginning that are not counted: connections are opened


class Round(NamedTuple):
    """Medians over the rounds."""

    milliseconds: float
    cpu: float = float("nan")  # milliseconds of this process
    megabytes: float = float("nan")  # through this process


class Traffic:
    """Counts the bytes that this process sends and receives over Dask's connections."""

    def __init__(self) -> None:
        self.n_bytes = 0
        for name in ("read_from_fd", "write_to_fd"):
            setattr(IOStream, name, self._counted(getattr(IOStream, name)))

    def _counted(self, method: Callable[..., int | None]) -> Callable[..., int | None]:
        def counted(*arguments: Any) -> int | None:
            n = method(*arguments)
            self.n_bytes += n or 0
            return n

        return counted


def problem(n_rows: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose class depends on some features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    signal = X[:, : min(n_features, 2 * n_classes)]
    weights = rng.normal(size=(signal.shape[1], n_classes))
    return X, (signal @ weights + rng.normal(size=(n_rows, n_classes))).argmax(axis=1)


def medians(marks: list[tuple[float, float, float]]) -> Round:
    """Medians of the differences between rounds: of seconds, CPU seconds and bytes."""
    seconds, cpu, n_bytes = np.median(np.diff(np.array(marks)[SKIPPED:], axis=0), axis=0)
    return Round(1e3 * seconds, 1e3 * cpu, n_bytes / 1e6)


def idle(seconds: float) -> float:
    """The part of a core that this process takes while its cluster has nothing to do: heartbeats of the workers."""
    before = time.process_time()
    time.sleep(seconds)
    return (time.process_time() - before) / seconds


def ours(
    client: Client | None, X: Any, y: Any, depth: int, n_rounds: int, traffic: Traffic, n_threads: int = 1
) -> Round:
    marks: list[tuple[float, float, float]] = []

    def mark(progress: Any) -> None:
        marks.append((time.perf_counter(), time.process_time(), float(traffic.n_bytes)))

    model = GDMCBoostClassifier(
        calibration=None, n_estimators=n_rounds, max_depth=depth, n_jobs=n_threads, callbacks=[mark]
    )
    if client is not None:
        model.client = client
    model.fit(X, y)
    return medians(marks)


def xgboost_dask(client: Client, X: Any, y: Any, depth: int, n_rounds: int) -> Round:
    import xgboost.dask

    from tests.benchmarks.rivals import RoundTimes

    with tempfile.TemporaryDirectory() as folder:
        data = xgboost.dask.DaskQuantileDMatrix(client, X, y, max_bin=256)
        parameters = {
            "objective": "multi:softprob", "num_class": int(y.max().compute()) + 1, "max_depth": depth, "tree_method": "hist",
        }  # fmt: skip
        times = RoundTimes(folder)
        xgboost.dask.train(client, parameters, data, n_rounds, callbacks=[times])
        return median_round(times)


def lightgbm_dask(client: Client, X: Any, y: Any, depth: int, n_rounds: int) -> Round:
    import lightgbm

    from tests.benchmarks.rivals import RoundTimes

    with tempfile.TemporaryDirectory() as folder:
        model = lightgbm.DaskLGBMClassifier(
            client=client,
            n_estimators=n_rounds,
            max_depth=depth,
            num_leaves=2**depth,
            max_bin=255,
            verbosity=-1,
        )
        times = RoundTimes(folder)
        model.fit(X, y, callbacks=[times])
        return median_round(times)


def median_round(times: Any) -> Round:
    """The median of the rounds that a `RoundTimes` has noted."""
    noted: list[tuple[int, float]] = []
    times.marked(lambda _, time: noted.append((len(noted), time)))
    return Round(1e3 * float(np.median(np.diff([when for _, when in noted])[SKIPPED:])))


RIVALS = {"lightgbm.dask": lightgbm_dask, "xgboost.dask": xgboost_dask}


@click.command()
@click.option("--rows", default=200_000, show_default=True)
@click.option("--features", default=64, show_default=True)
@click.option("--classes", default=10, show_default=True)
@click.option("--depth", default=6, show_default=True)
@click.option("--rounds", default=12, show_default=True)
@click.option(
    "--workers", default="1,2,4,8,16", show_default=True, help="Numbers of workers, of one thread each."
)
@click.option(
    "--owners",
    "owned_by",
    type=click.Choice(["auto", "client", "workers"]),
    default="auto",
    show_default=True,
)
@click.option(
    "--in-process", default="1", show_default=True, help="Numbers of threads of trainings without workers."
)
@click.option(
    "--repeats", default=1, show_default=True, help="Of all trainings, in turns; the fastest count."
)
@click.option("--rivals/--no-rivals", default=False, help="Also LightGBM's and XGBoost's Dask modules.")
def main(
    rows: int,
    features: int,
    classes: int,
    depth: int,
    rounds: int,
    workers: str,
    owned_by: str,
    in_process: str,
    repeats: int,
    rivals: bool,
) -> None:
    """Measure rounds on local Dask workers."""
    if owned_by != "auto":
        owners.exchange_pays = lambda n_bytes, n_workers: owned_by == "workers" and n_workers > 1
    X, y = problem(rows, features, classes)
    traffic, console = Traffic(), Console()
    alone: dict[int, Round] = {}
    led: dict[int, Measured] = {}
    for _ in range(repeats):
        for n in map(int, in_process.split(",")):
            found = ours(None, X, y, depth, rounds, traffic, n)
            alone[n] = min(found, alone.get(n, found))
        for n in map(int, workers.split(",")):
            measured = on_workers(n, X, y, depth, rounds, traffic, RIVALS if rivals else {}, console)
            led[n] = min(measured, led.get(n, measured))
        console.print(table(f"{rows} x {features}, K = {classes}", alone, led))


class Measured(NamedTuple):
    """A training run on workers, and the rivals'."""

    round: Round
    idle: float  # CPU milliseconds of this process per round if nothing is to do
    rivals: dict[str, str]


def on_workers(
    n: int,
    X: np.ndarray,
    y: np.ndarray,
    depth: int,
    rounds: int,
    traffic: Traffic,
    rivals: dict[str, Callable[..., Round]],
    console: Console,
) -> Measured:
    with (
        LocalCluster(n_workers=n, threads_per_worker=1, memory_limit=0, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        chunks = -(-len(X) // (2 * n))
        lazy = (
            da.from_array(X, chunks=(chunks, X.shape[1])).persist(),
            da.from_array(y, chunks=chunks).persist(),
        )
        found = ours(client, *lazy, depth, rounds, traffic)
        at_rest = idle(IDLE_SECONDS) * found.milliseconds
        others = {}
        for name, rival in rivals.items():
            try:
                others[name] = f"{rival(client, *lazy, depth, rounds).milliseconds:.0f}"
            except Exception as error:  # noqa: BLE001 (a rival that fails is a result)
                console.print(f"{name} on {n} workers: {error!r}")
                others[name] = "failed"
        return Measured(found, at_rest, others)


def table(title: str, alone: dict[int, Round], led: dict[int, Measured]) -> Table:
    """All rounds; those on n workers also as a ratio to those in process on n threads."""
    rivals = next(iter(led.values())).rivals
    headers = ["ms per round", "/ in process", "client and scheduler: CPU ms", "of these, idle", "MB"]
    out = Table("workers", *headers, *(f"{name}: ms" for name in rivals), title=title)
    for n, found in alone.items():
        out.add_row(f"none: {n} thread{'s' if n > 1 else ''}", f"{found.milliseconds:.0f}")
    for n, (found, at_rest, others) in led.items():
        ratio = f"{found.milliseconds / alone[n].milliseconds:.2f}" if n in alone else ""
        cells = [f"{found.milliseconds:.0f}", ratio, f"{found.cpu:.0f}", f"{at_rest:.0f}"]
        out.add_row(str(n), *cells, f"{found.megabytes:.2f}", *others.values())
    return out


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
