"""GD-MCBoost beside other boosting libraries, in one run: ``python -m tests.benchmarks.compare``.

Every library is fitted for 200 rounds with two threads, binning included. The time is taken after every round; accuracies are
measured afterwards, so that they are not part of the times. Each fit is repeated, the libraries taking turns, and the fastest
time to each round counts, because other work on the machine only adds time. The spread, the median over the fastest time, shows
how much it added: repeat a run with spreads far above 1 on a quieter machine.
"""

from __future__ import annotations

import json
import platform
import warnings
from importlib.metadata import version
from typing import NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from tests.benchmarks.choose_setting import CHOSEN, LIGHTGBM_ROUNDS, describe
from tests.benchmarks.cold_start import cold_start_table
from tests.benchmarks.contenders import (
    THREADS,
    Contender,
    Distboost,
    LightGBM,
    ScikitLearn,
    XGBoost,
    first_round,
)
from tests.benchmarks.datasets import NAMES, Split, official

CHECKPOINTS = (20, 50, 100, 200)
LONGEST = 400  # rounds within which distboost has to become as accurate as LightGBM
LIMIT, LIMIT_EACH = 0.5, 1.0  # of the median ratio, and of each


class Run(NamedTuple):
    """One library on one data set: seconds and test accuracy after each round."""

    seconds: np.ndarray
    accuracies: np.ndarray
    spread: float  # the median over the fastest time of the repeats: far above 1 if the machine was busy


class Race(NamedTuple):
    """When distboost reaches the accuracy of LightGBM's defaults."""

    accuracy: float
    lightgbm_seconds: float
    n_rounds: int | None  # None: not within `LONGEST` rounds
    seconds: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.lightgbm_seconds if self.n_rounds else np.inf


def run_all(contenders: list[Contender], split: Split, repeats: int) -> list[Run]:
    """Fits all contenders in turn, `repeats` times."""
    n_rounds = max(CHECKPOINTS)
    times = np.array([[each.fit(split.X, split.y, n_rounds) for each in contenders] for _ in range(repeats)])
    accuracies = [each.accuracies(split.X_test, split.y_test, n_rounds) for each in contenders]
    totals = times[:, :, -1]
    spreads = np.median(totals, axis=0) / totals.min(axis=0)
    return [Run(*found) for found in zip(times.min(axis=0), accuracies, spreads, strict=True)]


def race(distboost: Distboost, own: Run, rival: Run, split: Split) -> Race:
    """Find the first round at which distboost is as accurate as LightGBM after its default rounds."""
    goal = float(rival.accuracies[LIGHTGBM_ROUNDS - 1])
    if first_round(own.accuracies, goal) is None:  # a longer fit of the same model
        seconds = distboost.fit(split.X, split.y, LONGEST)
        own = Run(seconds, distboost.accuracies(split.X_test, split.y_test, LONGEST), own.spread)
    number = first_round(own.accuracies, goal)
    seconds_taken = float(own.seconds[number - 1]) if number else np.nan
    return Race(goal, float(rival.seconds[LIGHTGBM_ROUNDS - 1]), number, seconds_taken)


def accuracy_table(name: str, split: Split, contenders: list[Contender], runs: list[Run]) -> Table:
    """Test accuracy and seconds at the checkpoints."""
    table = Table("", *(f"{n} rounds" for n in CHECKPOINTS), "spread", title=f"{name}: {split}")
    for contender, run in zip(contenders, runs, strict=True):
        cells = [f"{100 * run.accuracies[n - 1]:.2f} %  {run.seconds[n - 1]:5.2f} s" for n in CHECKPOINTS]
        table.add_row(contender.name, *cells, f"{run.spread:.2f}")
    return table


def race_table(races: dict[str, Race]) -> Table:
    """The ratios, and their median."""
    title = f"Time to the test accuracy of LightGBM after {LIGHTGBM_ROUNDS} rounds"
    table = Table("", "accuracy", "LightGBM", "distboost", "rounds", "ratio", title=title)
    for name, found in races.items():
        own = (f"{found.seconds:.3f} s", str(found.n_rounds)) if found.n_rounds else ("never", f"> {LONGEST}")
        table.add_row(
            name,
            f"{100 * found.accuracy:.2f} %",
            f"{found.lightgbm_seconds:.3f} s",
            *own,
            f"{found.ratio:.2f}",
        )
    ratios = [found.ratio for found in races.values()]
    kept = np.median(ratios) <= LIMIT and max(ratios) <= LIMIT_EACH
    table.add_section()
    verdict = f"median (limits: median {LIMIT}, each {LIMIT_EACH}: {'met' if kept else 'not met'})"
    table.add_row(verdict, "", "", "", "", f"{np.median(ratios):.2f}")
    return table


def print_heading(console: Console, setting: dict) -> None:
    packages = ", ".join(f"{p} {_version(p)}" for p in ("distboost", "lightgbm", "xgboost", "scikit-learn"))
    console.print(f"{packages}; Python {platform.python_version()}, {THREADS} threads each")
    console.print(f"distboost: {describe(setting)} on all data sets; the others with their defaults\n")


def _version(package: str) -> str:
    if package == "distboost":
        from distboost import __version__

        return __version__
    if package == "xgboost":  # two distributions hold this module
        import xgboost

        return xgboost.__version__
    return version(package)


@click.command()
@click.option("--repeats", default=5, show_default=True, help="Fits of each library; the fastest counts.")
@click.option(
    "--data", multiple=True, type=click.Choice(NAMES), default=NAMES, help="Data sets; all if not given."
)
def main(repeats: int, data: tuple[str, ...]) -> None:
    """Trains all libraries side by side and prints accuracies, times and ratios."""
    warnings.filterwarnings("ignore")  # the libraries' own
    console = Console(width=120)
    setting = json.loads(CHOSEN.read_text())
    print_heading(console, setting)
    console.print(cold_start_table())
    Distboost(**setting).fit(np.arange(40.0).reshape(20, 2), np.arange(20) % 4, 2)  # no compilation below
    races = {}
    for name in data:
        split = official(name)
        distboost, rival = Distboost(**setting), LightGBM()
        contenders = [
            distboost, rival, XGBoost("one_output_per_tree"), XGBoost("multi_output_tree"), ScikitLearn(),
        ]  # fmt: skip
        runs = run_all(contenders, split, repeats)
        console.print(accuracy_table(name, split, contenders, runs))
        races[name] = race(distboost, runs[0], runs[1], split)
    console.print(race_table(races))


if __name__ == "__main__":
    main()
