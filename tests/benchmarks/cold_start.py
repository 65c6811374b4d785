"""The time to a first model, with and without compiled kernels, in one process and on two workers of a local Dask cluster.

python -m tests.benchmarks.cold_start

In one process, the time begins with the process. On a cluster, it begins with the call of `fit`: the client has imported
distboost, and the workers have started, but have not imported distboost.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table

_IN_PROCESS = """
import time
start = time.perf_counter()
import numpy as np
from distboost import GDMCBoostClassifier
imported = time.perf_counter()
X = np.random.default_rng(0).normal(size=(200, 4))
model = GDMCBoostClassifier(calibration=None, n_estimators=2, n_jobs=2).fit(X, np.arange(200) % 4)
model.predict(X)
done = time.perf_counter()
print(imported - start, done - imported, done - start)
"""

_ON_WORKERS = """
import time
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
    client.wait_for_workers(2)
    rng = np.random.default_rng(0)
    X = da.from_array(rng.normal(size=(20_000, 16)).astype(np.float32), chunks=(2_500, 16))
    y = da.from_array(rng.integers(0, 5, 20_000), chunks=2_500)
    start = time.perf_counter()
    from distboost import GDMCBoostClassifier
    imported = time.perf_counter()
    GDMCBoostClassifier(calibration=None, n_estimators=2, max_depth=3).fit(X, y)
    done = time.perf_counter()
print(imported - start, done - imported, done - imported)
"""


class Case(NamedTuple):
    """A first training: the program, and limits in seconds with an empty cache of kernels and a full one."""

    name: str
    program: str
    cold_limit: float
    warm_limit: float


CASES = (
    Case("one process", _IN_PROCESS, 15.0, 3.0),
    Case("two Dask workers", _ON_WORKERS, 12.0, 3.0),
)


class Start(NamedTuple):
    """Seconds of a start."""

    imported: float
    fitted: float
    counted: float  # those that the limit is for


def starts(program: str) -> tuple[Start, Start]:
    """Measure a program in new processes, with an empty cache of kernels and again with the one that it left."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        return _start(program, environment), _start(program, environment)


def _start(program: str, environment: dict[str, str]) -> Start:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return Start(*map(float, done.stdout.split()))


def cold_start_table() -> Table:
    """Seconds to a first model, for all cases."""
    title = "Start of distboost: seconds to a first model"
    table = Table("", "import", "first fit", "counted", "limit", title=title)
    for case in CASES:
        limits = {"empty cache (compiles)": case.cold_limit, "after that": case.warm_limit}
        for (state, limit), start in zip(limits.items(), starts(case.program), strict=True):
            table.add_row(f"{case.name}, {state}", *(f"{x:.2f} s" for x in start), f"{limit:.0f} s")
    return table


@click.command()
def main() -> None:
    """Measures the time to a first model in new processes."""
    Console(width=120).print(cold_start_table())


if __name__ == "__main__":
    main()
