"""The time of a round, distboost beside LightGBM: ``python -m tests.benchmarks.rounds [--data letter ...]``.

Each training runs in a process of its own. They take turns of a few rounds, so that other work on the machine affects all alike:
the ratios of a run are comparable, the milliseconds of two runs are not. Binning, the first rounds and the first round of each
turn are not counted: after a pause the caches are cold, and Linux may run both threads of a process on one core for a while.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from tests.benchmarks.contenders import RIVALS, THREADS, Distboost, LightGBM
from tests.benchmarks.datasets import Split
from tests.benchmarks.racer import Racer, racer, save
from tests.benchmarks.suite import PLANS, data

DEFAULT = ("spheres-10", "images", "letter")
TURN, SHORT_TURN = 10, 4  # rounds; short turns on data of more values than LARGE
LARGE = 5_000_000
MOST = 10_000  # rounds
ENOUGH = 100  # rounds: as many as the libraries train by default. Where little is left to learn, later trees are smaller.


class Entry(NamedTuple):
    name: str
    n_threads: int

    def __str__(self) -> str:
        return f"{self.name}, {self.n_threads} thread{'s' if self.n_threads > 1 else ''}"


@contextmanager
def saved(split: Split) -> Iterator[str]:
    """A temporary folder with the data, for racers."""
    with tempfile.TemporaryDirectory() as folder:
        yield save(split, Path(folder))


def time_rounds(split: Split, entries: list[Entry], setting: dict, seconds: float) -> list[np.ndarray]:
    """Seconds of single rounds, of each entry: those that the slowest one does in some seconds, at most ENOUGH."""
    turn = SHORT_TURN if split.X.size > LARGE else TURN
    with ExitStack() as stack:
        folder = stack.enter_context(saved(split))
        racers: list[Racer] = []
        for name, n_threads in entries:
            job = {"contender": name, "n_threads": n_threads, "data": folder, "n_rounds": MOST}
            own = setting if name == Distboost.name else {}
            found = stack.enter_context(racer(**job, setting=own, pause=turn, accuracies=False))
            found.read()  # one after the other, so that nothing is loaded while another fits
            racers.append(found)
        ends = [found.go()["seconds"] for found in racers]  # binning and the first turn
        spent = 0.0
        while (spent < seconds and len(ends[0]) < ENOUGH) or len(ends[0]) < 3 * turn:
            ends = [found.go()["seconds"] for found in racers]
            spent = max(times[-1] - times[turn - 1] for times in ends)
    return [np.diff(times)[turn - 1 :].reshape(-1, turn)[:, 1:].ravel() for times in ends]


def rounds_table(title: str, entries: list[Entry], times: list[np.ndarray]) -> Table:
    """Milliseconds per round, and what they are of those of the last entry."""
    title = f"{title}: ms per round, {len(times[0])} rounds"
    table = Table("", "median", "/ last", "best", "/ last", title=title, title_justify="left")
    figures = np.array([[np.median(found), found.min()] for found in times])
    for entry, (middle, best), (ratio, best_ratio) in zip(
        entries, figures, figures / figures[-1], strict=True
    ):
        cells = (f"{1e3 * middle:.1f}", f"{ratio:.3f}", f"{1e3 * best:.1f}", f"{best_ratio:.3f}")
        table.add_row(str(entry), *cells)
    return table


@click.command()
@click.option(
    "--data", "names", multiple=True, type=click.Choice(list(PLANS)), default=DEFAULT, show_default=True
)
@click.option(
    "--rival",
    "rivals",
    multiple=True,
    type=click.Choice(list(RIVALS)),
    default=[LightGBM.name],
    show_default=True,
)
@click.option(
    "--threads", multiple=True, type=int, default=(1, THREADS), show_default=True, help="Of each library."
)
@click.option("--setting", default="{}", help="distboost's parameters, as JSON; its defaults if not given.")
@click.option(
    "--seconds", default=6.0, show_default=True, help="Of the slowest training's rounds, per data set."
)
def main(
    names: tuple[str, ...], rivals: tuple[str, ...], threads: tuple[int, ...], setting: str, seconds: float
) -> None:
    """Prints the time of a round of each library. They take turns; the last rival's last number of threads is what the others
    are compared with."""
    entries = [Entry(name, n) for name in (Distboost.name, *rivals) for n in threads]
    for name in names:
        split = data(name)
        times = time_rounds(split, entries, json.loads(setting), seconds)
        Console(width=110).print(rounds_table(f"{name}, {split}", entries, times))


if __name__ == "__main__":
    main()
