"""Accuracy against time with and without an option: ``python -m tests.benchmarks.options [--data letter ..] [--plot FILE]``.

The value of an option is chosen on the training rows: the one with the highest accuracy on a quarter of them, which is held out,
when the training without the option ends. Then each seed trains on all training rows, in turns with trainings without the
option, and is measured on the test rows. Trainings with an option have `LONGER` times as many rounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from tests.benchmarks.contenders import Distboost
from tests.benchmarks.datasets import Split, folds, official
from tests.benchmarks.made import Size, made

LONGER = 2
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "sketch": [{"sketch": k} for k in (3, 7, 15)],
    "statistic_bits": [{"statistic_bits": b} for b in (3, 4, 6, 8)],
}
DATA = {
    "letter": 100,
    "pendigits": 100,
    "satimage": 100,
    "optdigits": 100,
    "spheres-64": 30,
    "mixture": 30,
}  # rounds
SIZES = {"spheres-64": Size(50_000, 20_000), "mixture": Size(10_000, 5_000)}


class Measured(NamedTuple):
    """A training run: seconds since its beginning, and accuracy on the test rows, after each round."""

    seconds: np.ndarray
    accuracy: np.ndarray

    def accuracy_at(self, seconds: float) -> float:
        """The accuracy after the rounds that were done by then."""
        n = int(np.searchsorted(self.seconds, seconds, side="right"))
        return float(self.accuracy[n - 1]) if n else 0.0

    def seconds_to(self, accuracy: float) -> float:
        """The time to an accuracy; infinite if it is not reached."""
        reached = np.flatnonzero(self.accuracy >= accuracy)
        return float(self.seconds[reached[0]]) if len(reached) else np.inf


class Chosen(NamedTuple):
    """The value of an option, with its trainings and those without the option."""

    data: str
    option: str
    value: dict[str, Any]
    trainings: list[Measured]
    without: list[Measured]

    def row(self) -> list[str]:
        """The value, the accuracy when the training without the option ends, and the time to its accuracy."""
        end = float(np.median([run.seconds[-1] for run in self.without]))
        goal = self.without[0].accuracy[-1]
        found = np.array([run.accuracy_at(end) for run in self.trainings])
        without = float(np.median([run.seconds_to(goal) for run in self.without]))
        ratio = float(np.median([run.seconds_to(goal) for run in self.trainings])) / without
        value = ", ".join(f"{name}={value}" for name, value in self.value.items())
        return [
            self.data,
            value,
            f"{end:.2f}",
            f"{goal:.2%}",
            f"{found.mean():.2%} ± {found.std():.2%}",
            f"{ratio:.2f}" if np.isfinite(ratio) else "not reached",
        ]


def load(name: str) -> Split:
    return made(name, SIZES[name]) if name in SIZES else official(name)


def measured(split: Split, n_rounds: int, n_threads: int, **setting: Any) -> Measured:
    """Train on a split."""
    contender = Distboost(n_threads, **setting)
    seconds = contender.fit(split.X, split.y, n_rounds)
    found = [np.mean(labels == split.y_test) for labels in contender.predictions(split.X_test, n_rounds)]
    return Measured(seconds, np.array(found))


def chosen(name: str, option: str, n_threads: int) -> dict[str, Any]:
    """The value of the option, from the training rows alone."""
    split = held_out(name)
    n_rounds = DATA[name]
    end = measured(split, n_rounds, n_threads).seconds[-1]
    values = [value for value in OPTIONS[option] if value.get("sketch", 1) <= split.y.max()]
    runs = [measured(split, LONGER * n_rounds, n_threads, **value) for value in values]
    return values[int(np.argmax([run.accuracy_at(end) for run in runs]))]


def held_out(name: str) -> Split:
    """The training rows, a quarter of which is held out."""
    if name not in SIZES:
        return folds(name, 4)[0]
    split = load(name)
    n = 3 * len(split.y) // 4
    return Split(split.X[:n], split.y[:n], split.X[n:], split.y[n:])


def compared(name: str, options: list[str], n_seeds: int, n_threads: int) -> list[Chosen]:
    """The options on one data set, in turns."""
    split, n_rounds = load(name), DATA[name]
    for option in options:  # loads or compiles the kernels
        measured(Split(*(part[:500] for part in split)), 2, n_threads, **OPTIONS[option][0])
    values = {option: chosen(name, option, n_threads) for option in options}
    without, runs = [], {option: [] for option in options}
    for seed in range(n_seeds):
        without.append(measured(split, n_rounds, n_threads, random_state=seed))
        for option in options:
            how = {**values[option], "random_state": seed}
            runs[option].append(measured(split, LONGER * n_rounds, n_threads, **how))
    return [Chosen(name, option, values[option], runs[option], without) for option in options]


def table(option: str, found: list[Chosen]) -> Table:
    made = Table("data", "value", "seconds", "without", "with", "time", title=option)
    for each in found:
        made.add_row(*each.row())
    return made


def plot(found: list[Chosen], path: Path) -> None:
    """Draw the error on the test rows against time: the median of the seeds."""
    from matplotlib.figure import Figure  # part of the extra `bench`

    names = list(dict.fromkeys(each.data for each in found))
    n_rows = -(-len(names) // 3)
    figure = Figure(figsize=(11, 3 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, 3, squeeze=False).ravel()
    for panel, name in zip(axes, names, strict=False):
        own = [each for each in found if each.data == name]
        lines = [("without", own[0].without)]
        for each in own:
            value = ", ".join(f"{name}={value}" for name, value in each.value.items())
            lines.append((value, each.trainings))
        for label, runs in lines:
            n = min(len(run.seconds) for run in runs)  # training may end early
            seconds = np.median([run.seconds[:n] for run in runs], axis=0)
            errors = 100 - 100 * np.median([run.accuracy[:n] for run in runs], axis=0)
            panel.plot(seconds, errors, label=label)
        panel.set(title=name, xscale="log", yscale="log", xlabel="seconds", ylabel="error, %")
        panel.grid(alpha=0.3, which="both")
        panel.legend(frameon=False, fontsize="small")
    for panel in axes[len(names) :]:
        panel.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


@click.command(help=__doc__.partition("\n")[0] if __doc__ else None)
@click.option("--data", multiple=True, type=click.Choice(list(DATA)), default=list(DATA))
@click.option(
    "--option",
    "options",
    multiple=True,
    type=click.Choice(list(OPTIONS)),
    default=["sketch", "statistic_bits"],
)
@click.option("--seeds", default=3, show_default=True)
@click.option("--threads", default=1, show_default=True)
@click.option("--plot", "path", type=click.Path(path_type=Path), help="Write the curves to this file.")
def main(
    data: tuple[str, ...], options: tuple[str, ...], seeds: int, threads: int, path: Path | None
) -> None:
    console = Console()
    found: list[Chosen] = []
    for name in data:
        console.print(name, style="dim")
        found += compared(name, list(options), seeds, threads)
    for option in options:
        console.print(table(option, [each for each in found if each.option == option]))
    if path is not None:
        plot(found, path)


if __name__ == "__main__":
    main()
