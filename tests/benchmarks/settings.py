"""Shared by the out-of-core benchmarks: data, options, running trainings, reports."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from examples.make_large import RowCount, Spheres, write
from tests.benchmarks.children import Outcome, run

DEPTH = 6

console = Console(width=130)

Outcomes = dict[str, list[Outcome]]  # of each run, its repeats


class Setting(NamedTuple):
    """Concentric spheres of some size, kept in a folder, and how they are trained on."""

    rows: int
    features: int
    classes: int
    rounds: int
    memory_limit: str
    chunk_rows: int | None
    folder: Path

    def __str__(self) -> str:
        return f"{self.rows} x {self.features}, K = {self.classes}, raw {self.raw_bytes / 1e9:.2f} GB"

    @property
    def raw_bytes(self) -> int:
        return self.rows * self.features * 4

    def data(self) -> Path:
        """The arrays, written if they are not there yet."""
        chunks = "" if self.chunk_rows is None else f"-{self.chunk_rows}"
        path = self.folder / f"spheres-{self.rows}x{self.features}-{self.classes}{chunks}.zarr"
        if not path.exists():
            console.print(f"writing {path}")
            write(Spheres(self.features, n_classes=self.classes), path, self.rows, chunk_rows=self.chunk_rows)
        return path

    def job(self, name: str = "distboost", memory_limit: str | None = None, **more: Any) -> dict[str, Any]:
        """For `children.run`; memory_limit None: everything resident."""
        path = self.data()
        parameters = {"n_estimators": self.rounds, "max_depth": DEPTH, "memory_limit": memory_limit}
        return {
            "job": name,
            "x": f"{path}/x",
            "y": f"{path}/y",
            "n_classes": self.classes,
            "parameters": parameters,
            "folder": str(self.folder),
            **more,
        }


@click.group()
def main() -> None:
    """Training out of core, measured."""
    console.print(f"Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores")


def benchmark(rows: int, features: int, classes: int, rounds: int, memory_limit: str = "1GB") -> Callable:
    """A command with these defaults. Its function takes the setting and returns its figures and the outcomes."""
    options = (
        click.option("--rows", type=RowCount(), default=rows, show_default=True),
        click.option("--features", type=RowCount(), default=features, show_default=True),
        click.option("--classes", type=click.IntRange(2), default=classes, show_default=True),
        click.option("--rounds", type=click.IntRange(2), default=rounds, show_default=True),
        click.option("--memory-limit", default=memory_limit, show_default=True, help="The estimator's."),
        click.option("--chunk-rows", type=RowCount(), help="Of the raw data; chunks of 8 MiB if not given."),
        click.option(
            "--data",
            "folder",
            type=click.Path(path_type=Path),
            help="Where arrays are kept and streamed from; a temporary folder if not given.",
        ),
        click.option("--json", "file", type=click.Path(path_type=Path), help="Where to write all figures."),
    )

    def decorate(measure: Callable[..., tuple[dict, Outcomes]]) -> click.Command:
        @wraps(measure)
        def command(rows, features, classes, rounds, memory_limit, chunk_rows, folder, file, **more):
            with _folder(folder) as data:
                setting = Setting(rows, features, classes, rounds, memory_limit, chunk_rows, data)
                figures, outcomes = measure(setting, **more)
            if file is not None:
                about = {"benchmark": measure.__name__, **setting._asdict(), "folder": None}
                file.write_text(_json({**about, **figures}, outcomes))
            sys.exit(_report_failures(outcomes))

        for option in reversed(options):
            command = option(command)
        return main.command(name=measure.__name__.replace("_", "-"))(command)

    return decorate


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="out-of-core-") as temporary:
        yield Path(temporary)


def _json(figures: dict, outcomes: Outcomes) -> str:
    trainings = {name: [outcome.as_json() for outcome in several] for name, several in outcomes.items()}
    return json.dumps({**figures, "trainings": trainings}, indent=1) + "\n"


def _report_failures(outcomes: Outcomes) -> int:
    """Prints what failed trainings wrote; their number."""
    failed = [(name, o) for name, several in outcomes.items() for o in several if o.failure]
    for name, outcome in failed:
        console.print(f"\n{name}: {outcome.failure}\n{outcome.errors}", markup=False, highlight=False)
    return len(failed)


# Running.


def in_turn(jobs: dict[str, dict], repeats: int) -> Outcomes:
    """Every job as often as told. They take turns, so that other work on the machine is in the way of all alike."""
    outcomes: Outcomes = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            outcomes[name].append(run(job))
    return outcomes


def fastest(outcomes: list[Outcome], time: Callable[[Outcome], float]) -> float:
    """The least of several times: other work only ever adds to it. NaN if none succeeded."""
    times = [time(outcome) for outcome in outcomes if not outcome.failure]
    return min(times, default=float("nan"))


# Printing.


def megabytes(n_bytes: float | None) -> str:
    return "unknown" if n_bytes is None else f"{n_bytes / 1e6:.0f} MB"


def print_pairs(title: str, pairs: dict[str, str]) -> None:
    table = Table(title=title, show_header=False, title_justify="left", min_width=len(title))
    for pair in pairs.items():
        table.add_row(*pair)
    console.print(table)


COLUMNS = {
    "before": lambda outcome: f"{outcome.ingest():.2f} s",
    "a round": lambda outcome: f"{outcome.per_round():.3f} s",
    "fit": lambda outcome: f"{outcome.total():.2f} s",
    "promised": lambda outcome: megabytes(outcome.promised()),
    "rows in memory": lambda outcome: outcome.rows_in_memory(),
    "rss": lambda outcome: megabytes(outcome.peak()),
    "anonymous": lambda outcome: megabytes(outcome.peak("anonymous")),
    "outcome": lambda outcome: outcome.failure.partition(":")[0] or "done",
}


def print_table(
    title: str, outcomes: Outcomes, extra: dict[str, Callable[[Outcome], str]] | None = None
) -> None:
    """A row for each run, of its fastest repeat: what is before the first round, a round, the whole, and the memory."""
    columns = {**COLUMNS, **(extra or {})}
    table = Table("", *columns, title=title, title_justify="left")
    for name, several in outcomes.items():
        best = min(several, key=lambda outcome: (bool(outcome.failure), outcome.per_round()))
        table.add_row(name, *(cell(best) for cell in columns.values()))
    console.print(table)
