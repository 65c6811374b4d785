"""Chooses distboost's setting for the comparison: ``python -m tests.benchmarks.choose_setting``.

Test rows are not used. The training rows of a small data set are divided into five folds, each held out once; of a large one,
some training rows are learnt from and some others held out. The other libraries are trained with their defaults. The score of a
setting is the time until distboost reaches the accuracy of the most accurate of them over all held-out rows, divided by the time
of that one; a setting that does not reach the accuracy scores `MISSED`. The rival's time is a common factor of all scores on a
data set, so it does not affect the choice.

The leaves, and with them the loss, are those with the smaller score on each data set. All else is the same on all data sets: what
has the smallest geometric mean of these scores.
"""

from __future__ import annotations

import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from tests.benchmarks.contenders import RIVALS, Contender, Distboost, contender
from tests.benchmarks.datasets import NAMES, Split, folds
from tests.benchmarks.made import Size, made
from tests.benchmarks.results import first_round, table
from tests.benchmarks.suite import PLANS

CHOSEN = Path(__file__).with_name("chosen.json")
N_FOLDS = 5
MISSED = 4.0  # the score of a setting that does not reach the accuracy


class Trial(NamedTuple):
    """How settings are rated on a data set: rounds of the others and of distboost, and rows if not all."""

    rival_rounds: int
    own_rounds: int
    size: Size | None = None

    def splits(self, name: str) -> list[Split]:
        return folds(name, N_FOLDS) if self.size is None else [made(name, self.size)]


TRIALS: dict[str, Trial] = {
    **dict.fromkeys(NAMES, Trial(100, 100)),
    "spheres-10": Trial(30, 60, Size(200_000, 20_000)),
    "spheres-64": Trial(30, 60, Size(100_000, 20_000)),
    "images": Trial(30, 60, Size(20_000, 5_000)),
    "mixture": Trial(20, 40, Size(50_000, 10_000)),
}

GRID: list[dict[str, Any]] = [
    {"max_depth": depth, "learning_rate": rate, "max_features": features}
    for depth, rate, features in product((5, 6, 7, 8), (1.0, 0.6), (1.0, 0.5))
]
LEAVES: tuple[dict[str, Any], ...] = ({}, {"loss": "softmax", "leaf": "newton"})
SETTINGS = [{**setting, **leaves} for leaves, setting in product(LEAVES, GRID)]


def curve(fitted: Contender, splits: list[Split], n_rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds after each round, summed over the folds, and the accuracy over all held-out rows."""
    seconds, right = np.zeros(n_rounds), np.zeros(n_rounds)
    for split in splits:
        seconds += fitted.fit(split.X, split.y, n_rounds)
        right += fitted.accuracies(split.X_test, split.y_test, n_rounds) * len(split.y_test)
    return seconds, right / sum(len(split.y_test) for split in splits)


def rate(name: str, settings: list[dict[str, Any]]) -> list[float]:
    """The score of each setting on one data set."""
    trial = TRIALS[name]
    splits = trial.splits(name)
    reached = []
    for rival in RIVALS:
        seconds, accuracies = curve(contender(rival), splits, trial.rival_rounds)
        reached.append((accuracies[-1], -seconds[-1], rival))
    accuracy, minus_seconds, rival = max(reached)
    click.echo(f"{name}: {100 * accuracy:.2f} %, {-minus_seconds:.2f} s by {rival}", err=True)
    ratios = []
    for setting in settings:
        seconds, accuracies = curve(Distboost(**setting), splits, trial.own_rounds)
        number = first_round(accuracies, accuracy)
        ratios.append(MISSED if number is None else float(-seconds[number - 1] / minus_seconds))
    return ratios


def choose(scores: dict[str, list[float]]) -> tuple[str, dict[str, dict[str, Any]]]:
    """What the grid scores on each data set, the best first; and the chosen setting of each data set."""
    by_leaves = np.array(list(scores.values())).reshape(len(scores), len(LEAVES), len(GRID))
    ratios, leaves = by_leaves.min(axis=1).T, by_leaves.argmin(axis=1).T
    overall = np.exp(np.log(ratios).mean(axis=1))  # geometric means
    order = np.argsort(overall, kind="stable")
    rows = [
        [
            f"`{describe(GRID[i])}`",
            *(
                f"{x:.2f}{' (Newton)' if which else ''}"
                for x, which in zip(ratios[i], leaves[i], strict=True)
            ),
            f"{overall[i]:.2f}",
        ]
        for i in order
    ]
    best = order[0]
    chosen = {name: {**GRID[best], **LEAVES[which]} for name, which in zip(scores, leaves[best], strict=True)}
    return table(["setting", *scores, "mean"], rows), chosen


def describe(setting: dict[str, Any]) -> str:
    """The setting as keyword arguments."""
    return ", ".join(f"{name}={value!r}" for name, value in setting.items())


@click.command()
@click.option("--data", "names", multiple=True, type=click.Choice(list(PLANS)), help="All if not given.")
@click.option(
    "--json",
    "file",
    type=click.Path(path_type=Path),
    help="Where scores are kept; data sets already there are not rated again.",
)
@click.option("--write", is_flag=True, help="Keep the chosen setting of each data set in chosen.json.")
def main(names: tuple[str, ...], file: Path | None, write: bool) -> None:
    """Rates all settings on held-out training rows and prints them, the best first."""
    warnings.filterwarnings("ignore")  # the libraries' own
    Distboost().fit(np.arange(40.0).reshape(20, 2), np.arange(20) % 4, 2)  # compiles
    scores = json.loads(file.read_text()) if file is not None and file.exists() else {}
    for name in names or PLANS:
        if name not in scores:
            scores[name] = rate(name, SETTINGS)
            if file is not None:
                file.write_text(json.dumps(scores) + "\n")
    ranked, chosen = choose({name: scores[name] for name in PLANS if name in scores})
    click.echo(ranked)
    for name, setting in chosen.items():
        click.echo(f"{name}: {describe(setting)}")
    if write:
        CHOSEN.write_text(json.dumps(chosen, indent=2) + "\n")


if __name__ == "__main__":
    main()
