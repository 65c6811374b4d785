"""One query over a pool on disk: ``python -m tests.benchmarks.pool``.

A committee that was taught 250 rows, of 100 randomised trees (the default) or of 100 rounds of GAMBLE, asks for the 10 most
useful of 5,000,000 rows of 16 features, or of a tenth of them: in this process on 2 threads, and on 2 Dask workers. The benchmark
measures the time of the query, the CPU time and the bytes that this process needs, and the memory above that of the idle
processes, with libraries loaded and the committee trained.
"""

from __future__ import annotations

import json
import os
import re
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
from sklearn.ensemble import ExtraTreesClassifier

from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.active import QueryByCommittee
from distboost.active.strategies import committee_of
from tests.benchmarks.memory import MemoryWatch

ROOT = Path(__file__).parents[2]
CHUNK_ROWS = 65_536
N_CLASSES = 10
N_TAUGHT = 250
ROUNDS = 100
BATCH = 10
DEADLINE = 1200.0
PLACES = ("process", "workers")
COMMITTEES = {
    "trees": lambda: ExtraTreesClassifier(n_estimators=100),
    "gamble": lambda: GAMBLEClassifier(n_estimators=ROUNDS, n_jobs=2),
}
CASES = [("process", 1.0), ("process", 0.1), ("workers", 1.0), ("workers", 0.1)]


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
    table = Table(
        "committee", "place", "pool_fraction", "seconds", "second query", "CPU seconds", "MB read",
        "peak above idle, MB", "largest process, MB",
    )  # fmt: skip
    asked: dict[tuple[str, float], list[int]] = {}
    same = True
    with tempfile.TemporaryDirectory() as folder:
        for committee in COMMITTEES:
            for place, fraction in CASES:
                figures = measured(
                    data or Path(folder), rows, features, committee, place, fraction, worker_memory
                )
                found = figures.pop("rows")
                same = same and asked.setdefault((committee, fraction), found) == found
                table.add_row(committee, place, str(fraction), *map(str, figures.values()))
    console = Console(width=130)
    console.print(table)
    console.print(f"The rows asked for in both places are {'the same' if same else 'NOT THE SAME'}.")
    sys.exit(not same)


def measured(
    data: Path, rows: int, features: int, committee: str, place: str, fraction: float, worker_memory: str
) -> dict[str, Any]:
    """The figures of a query in a fresh process."""
    folder = data / f"pool-{rows}x{features}"
    folder.mkdir(parents=True, exist_ok=True)
    write_pool(folder, rows, features)
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.pool", "one", str(folder), committee, place, str(fraction),
         worker_memory],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=DEADLINE, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("committee", type=click.Choice(list(COMMITTEES)))
@click.argument("place", type=click.Choice(PLACES))
@click.argument("fraction", type=float)
@click.argument("worker_memory")
def one(folder: Path, committee: str, place: str, fraction: float, worker_memory: str) -> None:
    """A query, and another after 10 rows more were taught; figures as JSON."""
    labels = zarr.open_array(folder / "y", mode="r")
    taught = np.random.default_rng(2).choice(labels.shape[0], N_TAUGHT, replace=False)
    limit = parse_bytes(worker_memory)
    with client_at(place, worker_memory) as client, MemoryWatch(os.getpid()) as memory:
        learner = QueryByCommittee(
            COMMITTEES[committee](),
            str(folder / "x"),
            batch_size=BATCH,
            pool_fraction=fraction,
            final=GDMCBoostClassifier(n_jobs=2),
        )
        learner.home.client = client
        learner.teach(taught, labels.oindex[taught])
        warm = committee_of(learner.estimator_)
        warm.scores(np.zeros((100, learner.pool.n_features), np.float32))  # kernels are loaded
        time.sleep(3)
        idle, before = memory.readings[-1], bytes_read()
        begun = time.process_time()
        rows, first = timed(learner)
        cpu, read = time.process_time() - begun, bytes_read() - before
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
        "cpu": round(cpu, 1) if place == "process" else "",
        "read_mb": round(read / 1e6) if place == "process" else "",
        "above_mb": round(above / 1e6),
        "largest_mb": round(max(peaks.values()) / 1e6),
        "rows": rows.tolist(),
    }
    print(json.dumps(figures))


def bytes_read() -> int:
    """The bytes that this process has read of files."""
    return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])


def timed(learner: QueryByCommittee) -> tuple[np.ndarray, float]:
    started = time.perf_counter()
    rows = learner.query()
    return rows, time.perf_counter() - started


if __name__ == "__main__":
    main()
