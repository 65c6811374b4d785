"""Chooses distboost's setting for the comparison: ``python -m tests.benchmarks.choose_setting``.

Test rows are not used: the training rows are divided into five folds, each held out once. LightGBM is trained with its
defaults on the others. The score of a setting is the time until distboost reaches the accuracy of LightGBM after its 100
rounds, over all held-out rows, divided by LightGBM's time. The setting with the smallest geometric mean over the data sets is
chosen; one that does not reach the accuracy within `MAX_ROUNDS` scores `MISSED`. LightGBM's time is a common factor of all
scores on a data set, so it does not affect the choice.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from tests.benchmarks.contenders import Contender, Distboost, LightGBM
from tests.benchmarks.datasets import NAMES, Split, folds
from tests.benchmarks.results import first_round

CHOSEN = Path(__file__).with_name("setting.json")
N_FOLDS = 5
LIGHTGBM_ROUNDS = 100  # its default
MAX_ROUNDS = 150
MISSED = 4.0  # the score of a setting that does not reach the accuracy

GRID: list[dict[str, Any]] = [
    {"max_depth": depth, "learning_rate": rate, "max_features": features, "min_samples_leaf": rows}
    for depth, rate, features, rows in product((5, 6, 7), (1.0, 0.6), (1.0, 0.5), (1, 5))
]


def curve(contender: Contender, splits: list[Split], n_rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds after each round, summed over the folds, and the accuracy over all held-out rows."""
    seconds, right = np.zeros(n_rounds), np.zeros(n_rounds)
    for split in splits:
        seconds += contender.fit(split.X, split.y, n_rounds)
        right += contender.accuracies(split.X_test, split.y_test, n_rounds) * len(split.y_test)
    return seconds, right / sum(len(split.y_test) for split in splits)


def rate(name: str, settings: list[dict[str, Any]]) -> list[float]:
    """The score of each setting on one data set."""
    splits = folds(name, N_FOLDS)
    rival, accuracy = curve(LightGBM(), splits, LIGHTGBM_ROUNDS)
    # The fastest of three, because other work on the machine only adds time.
    total = min(rival[-1], *(curve(LightGBM(), splits, LIGHTGBM_ROUNDS)[0][-1] for _ in range(2)))
    ratios = []
    for setting in settings:
        seconds, accuracies = curve(Distboost(**setting), splits, MAX_ROUNDS)
        number = first_round(accuracies, accuracy[-1])
        ratios.append(MISSED if number is None else seconds[number - 1] / total)
    return ratios


def table(settings: list[dict[str, Any]], ratios: np.ndarray) -> Table:
    """Settings and scores (settings, data sets), the best first."""
    out = Table(
        "setting", *NAMES, "mean", title="Held-out rows: time to LightGBM's accuracy / LightGBM's time"
    )
    overall = geometric_mean(ratios)
    for i in np.argsort(overall, kind="stable"):
        out.add_row(describe(settings[i]), *(f"{x:.2f}" for x in (*ratios[i], overall[i])))
    return out


def geometric_mean(ratios: np.ndarray) -> np.ndarray:
    """The geometric mean over the data sets, for each setting."""
    return np.exp(np.log(ratios).mean(axis=1))


def describe(setting: dict[str, Any]) -> str:
    """The setting as keyword arguments."""
    return ", ".join(f"{name}={value!r}" for name, value in setting.items())


@click.command()
@click.option("--write", is_flag=True, help="Keep the chosen setting in setting.json.")
def main(write: bool) -> None:
    """Rates all settings on held-out training rows and prints them, the best first."""
    console = Console(width=110)
    Distboost().fit(np.arange(40.0).reshape(20, 2), np.arange(20) % 4, 2)  # compiles
    ratios = np.array([rate(name, GRID) for name in NAMES]).T
    console.print(table(GRID, ratios))
    chosen = GRID[int(np.argmin(geometric_mean(ratios)))]
    console.print(f"chosen: {describe(chosen)}")
    if write:
        CHOSEN.write_text(json.dumps(chosen, indent=2) + "\n")


if __name__ == "__main__":
    main()
