"""Training out of core, measured: ``python -m tests.benchmarks.out_of_core NAME [--rows ...]``.

Each training runs in a fresh process. Its memory, with that of all processes it starts, is read from outside every 30
ms; the times are of a callback's time stamps inside. A first tiny training in the same process keeps the compiler out
of the figures. Times are worth what the machine's other work leaves of them: figures that are compared are taken in turns.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from examples.make_large import RowCount, Spheres, write
from tests.benchmarks.children import Cap, Outcome, run

DEPTH = 6
GIB = 2**30
START_LIMIT, ROUND_LIMIT = 90.0, 20.0  # seconds of a capped training: once, and for each round
MEMORY_TARGET, TIME_TARGET = (
    4.0,
    1.4,
)  # of Dask with everything resident: times the raw data, times in process
THROUGHPUT_TARGET, THROUGHPUT_GOAL = 0.7, 0.9  # of streaming, against everything resident

console = Console(width=130)


class Data(NamedTuple):
    """Concentric spheres of some size, kept in a folder, and how they are trained on."""

    rows: int
    features: int
    classes: int
    rounds: int
    memory_limit: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.rows} x {self.features}, K = {self.classes}, raw {self.raw_bytes / 1e9:.2f} GB"

    @property
    def raw_bytes(self) -> int:
        return self.rows * self.features * 4

    def zarr(self) -> Path:
        """The arrays, written if they are not there yet."""
        path = self.folder / f"spheres-{self.rows}x{self.features}-{self.classes}.zarr"
        if not path.exists():
            console.print(f"writing {path}")
            write(Spheres(self.features, n_classes=self.classes), path, self.rows)
        return path

    def job(self, name: str = "distboost", memory_limit: str | None = None, **more: Any) -> dict[str, Any]:
        """For `children.run`; memory_limit None: everything resident."""
        parameters = {"n_estimators": self.rounds, "max_depth": DEPTH, "memory_limit": memory_limit}
        path = self.zarr()
        return {
            "job": name,
            "x": f"{path}/x",
            "y": f"{path}/y",
            "n_classes": self.classes,
            "parameters": parameters,
            "folder": str(self.folder),
            **more,
        }


@click.group(help=__doc__.partition("\n\n")[0])
def main() -> None:
    console.print(f"Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores")


def benchmark(rows: int, features: int, classes: int, rounds: int, memory_limit: str = "1GB") -> Callable:
    """A command with these defaults. Its function takes the data and returns figures, for --json."""
    options = (
        click.option("--rows", type=RowCount(), default=rows, show_default=True),
        click.option("--features", type=RowCount(), default=features, show_default=True),
        click.option("--classes", type=click.IntRange(2), default=classes, show_default=True),
        click.option("--rounds", type=click.IntRange(2), default=rounds, show_default=True),
        click.option("--memory-limit", default=memory_limit, show_default=True, help="The estimator's."),
        click.option(
            "--data",
            type=click.Path(path_type=Path),
            help="Where arrays are kept; a temporary folder if not given.",
        ),
        click.option("--json", "file", type=click.Path(path_type=Path), help="Where to write all figures."),
    )

    def decorate(measure: Callable[..., dict]) -> Callable:
        @wraps(measure)
        def command(rows, features, classes, rounds, memory_limit, data, file, **more):
            with tempfile.TemporaryDirectory(prefix="out-of-core-") as temporary:
                folder = (data or Path(temporary)).resolve()
                folder.mkdir(parents=True, exist_ok=True)
                setting = Data(rows, features, classes, rounds, memory_limit, folder)
                figures = measure(setting, **more)
            if file is not None:
                about = {**setting._asdict(), "folder": None, "benchmark": measure.__name__}
                file.write_text(json.dumps({**about, **figures}, indent=1) + "\n")

        for option in reversed(options):
            command = option(command)
        return main.command(name=measure.__name__.replace("_", "-"))(command)

    return decorate


def megabytes(n_bytes: float | None) -> str:
    return "unknown" if n_bytes is None else f"{n_bytes / 1e6:.0f} MB"


def print_pairs(title: str, pairs: dict[str, str]) -> None:
    table = Table(title=title, show_header=False, title_justify="left")
    for pair in pairs.items():
        table.add_row(*pair)
    console.print(table)


def told(outcome: Outcome, name: str) -> str:
    """The outcome in a word; what a failed training wrote is printed."""
    if outcome.failure:
        console.print(f"{name}: {outcome.errors}", markup=False, highlight=False)
    return outcome.failure or "done"


# One process under a hard limit.

_cap_options = (
    click.option("--cap", "cap_bytes", type=RowCount(), default=GIB, show_default=True, help="Bytes."),
    click.option(
        "--cgroup",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="A control group (v2, or v1's memory controller) that you manage, for one with the limit inside it. Without "
        "it RLIMIT_DATA limits the process: address space, which is more than what is resident.",
    ),
)


def capped_options(command: Callable) -> Callable:
    for option in reversed(_cap_options):
        command = option(command)
    return command


def run_capped(data: Data, cap_bytes: int, cgroup: Path | None) -> dict:
    cap = Cap(cap_bytes, cgroup)
    outcome = run(data.job(memory_limit=data.memory_limit), cap)
    limit = START_LIMIT + ROUND_LIMIT * data.rounds
    in_time = outcome.total() <= limit
    print_pairs(
        f"{data}; memory_limit {data.memory_limit}, hard limit {megabytes(cap_bytes)} by {cap}",
        {
            "outcome": told(outcome, "training"),
            "rounds done": f"{len(outcome.rounds)} of {data.rounds}",
            "memory promised": megabytes(outcome.first("warm").get("promised")),
            "peak resident, by the kernel": megabytes(outcome.first("done").get("peak_resident")),
            "peak resident, all processes": megabytes(outcome.memory.peak()),
            "peak anonymous, all processes": megabytes(outcome.memory.peak("anonymous")),
            "peak address space for data": megabytes(outcome.memory.peak("data")),
            "peak of the cgroup": megabytes(outcome.group_peak) if cgroup else "none used",
            "before the first round": f"{outcome.ingest():.1f} s",
            "a round": f"{outcome.per_round():.2f} s",
            "in all": f"{outcome.total():.1f} s (limit {limit:.0f} s: {'kept' if in_time else 'not kept'})",
        },
    )
    return {"cap": cap_bytes, "by": str(cap), "in_time": in_time, "capped": outcome.as_json()}


@benchmark(4_200_000, 256, 5, 3)
@capped_options
def capped(data: Data, cap_bytes: int, cgroup: Path | None) -> dict:
    """Many features in one process that can take no more than 1 GiB."""
    return run_capped(data, cap_bytes, cgroup)


@benchmark(17_000_000, 16, 10, 3)
@capped_options
def many_rows(data: Data, cap_bytes: int, cgroup: Path | None) -> dict:
    """Many rows and classes under the same limit: the scores do not fit either."""
    return run_capped(data, cap_bytes, cgroup)


# Dask workers.


@benchmark(4_200_000, 256, 5, 3, "600MB")
@click.option("--workers", "n_workers", default=2, show_default=True)
def workers(data: Data, n_workers: int) -> dict:
    """Dask workers with little memory: are they paused, restarted, do they spill?"""
    limit = data.memory_limit
    outcome = run(data.job(memory_limit=limit, workers=n_workers, worker_memory=limit))
    found = outcome.first("cluster")
    own = {pid: outcome.memory.process_peaks().get(pid, 0) for pid in found.get("pids", {}).values()}
    others = {pid: peak for pid, peak in outcome.memory.process_peaks().items() if pid not in own}
    print_pairs(
        f"{data}; {n_workers} workers with {limit} each",
        {
            "outcome": told(outcome, "training"),
            "memory promised, each worker": megabytes(outcome.first("warm").get("promised")),
            "peak resident, each worker": ", ".join(map(megabytes, own.values())),
            "peak resident, client and scheduler, others": ", ".join(map(megabytes, others.values())),
            "peak spilled by Dask": ", ".join(
                megabytes(p["spilled"]) for p in found.get("peaks", {}).values()
            ),
            "statuses": ", ".join(found.get("statuses", ())),
            "restarted": str(len(found.get("restarted", ()))),
            "status changes": str(len(found.get("events", ()))),
            "warnings": "\n".join(found.get("warnings", ())) or "none",
            "before the first round": f"{outcome.ingest():.1f} s",
            "a round": f"{outcome.per_round():.2f} s",
        },
    )
    return {"workers": outcome.as_json()}


@benchmark(1_000_000, 32, 10, 10)
@click.option("--rivals", is_flag=True, help="Also xgboost.dask and lightgbm.dask.")
@click.option("--repeats", default=3, show_default=True)
def resident(data: Data, rivals: bool, repeats: int) -> dict:
    """Two Dask workers with all rows in memory, beside the same training in one process."""
    jobs = {"in process": data.job(), "on Dask": data.job(workers=2)}
    if rivals:
        jobs |= {name: data.job(name, workers=2, threads=1) for name in ("xgboost-dask", "lightgbm-dask")}
    outcomes = in_turn(jobs, repeats)
    columns = ("rss/raw", "pss/raw", "pss/raw, warm", "round", "fit")
    table = Table("peak above idle", *columns, "outcome", title=str(data), title_justify="left")
    for name, several in outcomes.items():
        ratios = [
            f"{median(o.peak(kind, above) for o in several) / data.raw_bytes:.2f}"
            for kind, above in (("rss", "idle"), ("pss", "idle"), ("pss", "warm"))
        ]
        times = [f"{fastest(several, Outcome.per_round):.3f} s", f"{fastest(several, Outcome.total):.2f} s"]
        table.add_row(name, *ratios, *times, told(several[0], name))
    rounds, fits = (
        fastest(outcomes["on Dask"], time) / fastest(outcomes["in process"], time)
        for time in (Outcome.per_round, Outcome.total)
    )
    console.print(table)
    console.print(
        f"on Dask / in process: a round {rounds:.2f}, the whole fit {fits:.2f} (target {TIME_TARGET}); "
        f"memory target {MEMORY_TARGET} x raw"
    )
    return {"round_ratio": rounds, "fit_ratio": fits, **as_json(outcomes)}


def in_turn(jobs: dict[str, dict], repeats: int) -> dict[str, list[Outcome]]:
    """Every job as often as told. They take turns, so that other work on the machine is in the way of all alike."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            outcomes[name].append(run(job))
    return outcomes


def fastest(outcomes: list[Outcome], time: Callable[[Outcome], float]) -> float:
    """The least of several times: other work only ever adds to it. NaN if none succeeded."""
    times = [time(outcome) for outcome in outcomes if not outcome.failure]
    return min(times, default=float("nan"))


def as_json(outcomes: dict[str, list[Outcome]]) -> dict[str, list[dict]]:
    return {name: [outcome.as_json() for outcome in several] for name, several in outcomes.items()}


# Streaming beside everything resident, the bare kernel, XGBoost, and itself with more rows.


@benchmark(1_000_000, 256, 5, 4, "300MB")
@click.option("--repeats", default=3, show_default=True)
def throughput(data: Data, repeats: int) -> dict:
    """Streaming from local disk, beside the same training with everything resident; the page cache is warm."""
    jobs = {"streaming": data.job(memory_limit=data.memory_limit), "resident": data.job()}
    outcomes = in_turn(jobs, repeats)
    kernel = run(
        {**data.job("kernel", n_rows=min(data.rows, 2**18), repeats=repeats), "n_features": data.features}
    )
    table = Table(
        "", "a round", "ns per row, feature and level", "peak rss", "promised", "outcome", title=str(data)
    )
    for name, several in outcomes.items():
        seconds = fastest(several, Outcome.per_round)
        cost = 1e9 * seconds / (data.rows * data.features * DEPTH)
        peak, promised = several[0].peak(), several[0].first("warm").get("promised")
        word = told(several[0], name)
        table.add_row(name, f"{seconds:.3f} s", f"{cost:.3f}", megabytes(peak), megabytes(promised), word)
    told(kernel, "kernel")
    for mark in kernel.marks:
        if mark["mark"] == "pass":
            cost = 1e9 * mark["seconds"] / (min(data.rows, 2**18) * data.features)
            table.add_row(f"histogram alone, {mark['n_threads']} threads", "", f"{cost:.3f}", "", "", "")
    console.print(table)
    ratio = fastest(outcomes["resident"], Outcome.per_round) / fastest(
        outcomes["streaming"], Outcome.per_round
    )
    console.print(
        f"streaming has {ratio:.2f} of the throughput (target {THROUGHPUT_TARGET}, goal {THROUGHPUT_GOAL})"
    )
    return {"ratio": ratio, "kernel": kernel.marks, **as_json(outcomes)}


@benchmark(1_000_000, 64, 5, 5, "500MB")
@click.option("--repeats", default=1, show_default=True)
def rival(data: Data, repeats: int) -> dict:
    """XGBoost's external memory on the same chunks, in one process each."""
    jobs = {
        "distboost": data.job(memory_limit=data.memory_limit),
        "XGBoost external memory": data.job("xgboost-external"),
    }
    outcomes = in_turn(jobs, repeats)
    columns = ("ingest", "round", "fit", "rss", "anonymous")
    table = Table(
        "", *columns, "outcome", title=f"{data}; memory_limit {data.memory_limit}", title_justify="left"
    )
    for name, several in outcomes.items():
        best = min(several, key=lambda outcome: (bool(outcome.failure), outcome.per_round()))
        table.add_row(name, *best.row(*columns), told(best, name))
    console.print(table)
    return as_json(outcomes)


@benchmark(500_000, 64, 5, 4, "300MB")
@click.option("--doublings", default=3, show_default=True)
def scaling(data: Data, doublings: int) -> dict:
    """Time and memory at n, 2n, 4n, 8n rows, streaming: time grows with the rows, memory does not."""
    sizes = [data._replace(rows=data.rows * 2**k) for k in range(doublings + 1)]
    outcomes = [run(size.job(memory_limit=data.memory_limit)) for size in sizes]
    columns = ("ingest", "round", "rss", "anonymous")
    table = Table("rows", *columns, "promised", "outcome", title=f"{data}; memory_limit {data.memory_limit}")
    for size, outcome in zip(sizes, outcomes, strict=True):
        promised = megabytes(outcome.first("warm").get("promised"))
        table.add_row(str(size.rows), *outcome.row(*columns), promised, told(outcome, str(size.rows)))
    console.print(table)
    rows = [size.rows for size in sizes]
    slope, fit = log_slope(rows, [outcome.per_round() for outcome in outcomes])
    peaks = [outcome.peak() for outcome in outcomes]
    console.print(
        f"time per round grows as rows^{slope:.3f} (R² {fit:.4f}); the largest peak of memory is "
        f"{max(peaks) / min(peaks):.2f} times the smallest"
    )
    return {"slope": slope, "r2": fit, "sizes": rows, "outcomes": [outcome.as_json() for outcome in outcomes]}


def log_slope(x: list[int], y: list[float]) -> tuple[float, float]:
    """Slope and R² of the straight line through the logarithms."""
    from scipy.stats import linregress

    if not np.all(np.isfinite(y)):
        return float("nan"), float("nan")
    line = linregress(np.log(x), np.log(y))
    return float(line.slope), float(line.rvalue**2)


if __name__ == "__main__":
    main()
