"""One query over a pool on disk: ``python -m tests.benchmarks.pool``.

A committee of 100 rounds of GAMBLE that was taught 500 rows asks for the 10 most useful of 5,000,000 rows of 16 features:
in this process on 2 threads, and on 2 Dask workers. The benchmark measures the time of the query, and the memory above that
of the idle processes, with libraries loaded and the committee trained.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import zarr
from dask.utils import parse_bytes
from distributed import Client, LocalCluster
from rich.console import Console
from rich.table import Table

from distboost import GAMBLEClassifier
from distboost.active import QueryByCommittee
from tests.benchmarks.memory import MemoryWatch

ROOT = Path(__file__).parents[2]
CHUNK_ROWS = 65_536
N_CLASSES = 10
N_TAUGHT = 500
ROUNDS = 100
BATCH = 10
DEADLINE = 1200.0
PLACES = ("process", "workers")


def write_pool(folder: Path, n_rows: int, n_features: int) -> None:
    """Normal features; classes are the nearest of 10 random directions."""
    if (folder / "complete").exists():
        return
    x = zarr.create_array(
        folder / "x", shape=(n_rows, n_features), chunks=(CHUNK_ROWS, n_features), dtype="f4", overwrite=True
    )
    y = zarr.create_array(folder / "y", shape=(n_rows,), chunks=(CHUNK_ROWS,), dtype="i8", overwrite=True)
    directions = np.random.default_rng(0).normal(size=(n_features, N_CLASSES))
    for start in range(0, n_rows, CHUNK_ROWS):
        stop = min(start + CHUNK_ROWS, n_rows)
        rows = np.random.default_rng((1, start)).normal(size=(stop - start, n_features))
        x[start:stop], y[start:stop] = rows, (rows @ directions).argmax(axis=1)
    (folder / "complete").touch()


@contextmanager
def client_at(place: str, worker_memory: str) -> Iterator[Client | None]:
    if place == "process":
        yield None
        return
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=worker_memory, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@click.group(invoke_without_command=True)
@click.option("--rows", default=5_000_000, show_default=True)
@click.option("--features", default=16, show_default=True)
@click.option("--data", type=click.Path(path_type=Path), help="Folder in which the pool is kept.")
@click.option("--worker-memory", default="600MB", show_default=True)
@click.pass_context
def main(context: click.Context, rows: int, features: int, data: Path | None, worker_memory: str) -> None:
    if context.invoked_subcommand:
        return
    with tempfile.TemporaryDirectory() as folder:
        found = [measured(data or Path(folder), rows, features, place, worker_memory) for place in PLACES]
    table = Table("", "seconds", "second query", "peak above idle, MB", "largest process, MB")
    for place, figures in zip(PLACES, found, strict=True):
        table.add_row(place, *(str(value) for value in figures.values() if not isinstance(value, list)))
    console = Console()
    console.print(table)
    same = found[0]["rows"] == found[1]["rows"]
    console.print(f"The rows asked for are {'the same' if same else 'NOT THE SAME'}: {found[0]['rows']}")
    sys.exit(not same)


def measured(data: Path, rows: int, features: int, place: str, worker_memory: str) -> dict[str, Any]:
    """The figures of a query in a fresh process."""
    folder = data / f"pool-{rows}x{features}"
    folder.mkdir(parents=True, exist_ok=True)
    write_pool(folder, rows, features)
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.pool", "one", str(folder), place, worker_memory],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=DEADLINE, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("place", type=click.Choice(PLACES))
@click.argument("worker_memory")
def one(folder: Path, place: str, worker_memory: str) -> None:
    """A query, and another after 10 rows more were taught; figures as JSON."""
    labels = zarr.open_array(folder / "y", mode="r")
    taught = np.random.default_rng(2).choice(labels.shape[0], N_TAUGHT, replace=False)
    limit = parse_bytes(worker_memory)
    with client_at(place, worker_memory) as client, MemoryWatch(os.getpid()) as memory:
        estimator = GAMBLEClassifier(n_estimators=ROUNDS, n_jobs=2)
        estimator.client = client
        learner = QueryByCommittee(estimator, str(folder / "x"), batch_size=BATCH)
        learner.teach(taught, labels.oindex[taught])
        learner.estimator_.predict(np.zeros((1, learner.pool.n_features)))  # kernels are loaded
        time.sleep(3)
        idle = memory.readings[-1]
        rows, first = timed(learner)
        stop = time.monotonic()
        learner.teach(rows, labels.oindex[rows])
        learner.estimator_  # noqa: B018 (trains)
        _, second = timed(learner)
        peaks = memory.process_peaks()
        above = memory.peak("rss", idle.time, stop) - idle.rss
    if place == "workers" and max(peaks.values()) > limit:
        raise SystemExit(f"a process took {max(peaks.values())} bytes, more than a worker's {limit}")
    figures = {
        "seconds": round(first, 1),
        "second": round(second, 1),
        "above_mb": round(above / 1e6),
        "largest_mb": round(max(peaks.values()) / 1e6),
        "rows": rows.tolist(),
    }
    print(json.dumps(figures))


def timed(learner: QueryByCommittee) -> tuple[np.ndarray, float]:
    started = time.perf_counter()
    rows = learner.query()
    return rows, time.perf_counter() - started


if __name__ == "__main__":
    main()
