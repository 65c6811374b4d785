"""Chooses the setting that the comparison runs distboost with: ``python -m tests.benchmarks.choose_setting``.

The test rows are never seen: the training rows are cut into five folds, each held out once. LightGBM is trained with
its defaults on the others. A setting is rated by the seconds until distboost is as accurate, over all rows held out, as
LightGBM after its 100 rounds, as a ratio to LightGBM's seconds. Chosen is the setting of the smallest geometric mean over
the data sets; one that does not get there within `MAX_ROUNDS` counts as `MISSED`. LightGBM's own time multiplies all
settings' ratios on a data set alike: it has no part in the choice.
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

from tests.benchmarks.contenders import Contender, Distboost, LightGBM, first_round
from tests.benchmarks.datasets import NAMES, Split, folds

CHOSEN = Path(__file__).with_name("setting.json")
N_FOLDS = 5
LIGHTGBM_ROUNDS = 100  # its default
MAX_ROUNDS = 150
MISSED = 4.0  # the ratio of a setting that does not get there

GRID: list[dict[str, Any]] = [
    {"max_depth": depth, "learning_rate": rate, "max_features": features, "min_samples_leaf": rows}
    for depth, rate, features, rows in product((5, 6, 7), (1.0, 0.6), (1.0, 0.5), (1, 5))
]


def curve(contender: Contender, splits: list[Split], n_rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and accuracy after each round: sums over the folds, and the fraction of all rows held out."""
    seconds, right = np.zeros(n_rounds), np.zeros(n_rounds)
    for split in splits:
        seconds += contender.fit(split.X, split.y, n_rounds)
        right += contender.accuracies(split.X_test, split.y_test, n_rounds) * len(split.y_test)
    return seconds, right / sum(len(split.y_test) for split in splits)


def rate(name: str, settings: list[dict[str, Any]]) -> list[float]:
    """The ratio of each setting on one data set."""
    splits = folds(name, N_FOLDS)
    rival, accuracy = curve(LightGBM(), splits, LIGHTGBM_ROUNDS)
    # The fastest of three: other work on the machine only ever adds time.
    total = min(rival[-1], *(curve(LightGBM(), splits, LIGHTGBM_ROUNDS)[0][-1] for _ in range(2)))
    ratios = []
    for setting in settings:
        seconds, accuracies = curve(Distboost(**setting), splits, MAX_ROUNDS)
        number = first_round(accuracies, accuracy[-1])
        ratios.append(MISSED if number is None else seconds[number - 1] / total)
    return ratios


def table(settings: list[dict[str, Any]], ratios: np.ndarray) -> Table:
    """Settings, the best first; ratios of shape (settings, data sets)."""
    out = Table(
        "setting", *NAMES, "mean", title="Rows held out: time to LightGBM's accuracy / LightGBM's time"
    )
    overall = geometric_mean(ratios)
    for i in np.argsort(overall, kind="stable"):
        out.add_row(describe(settings[i]), *(f"{x:.2f}" for x in (*ratios[i], overall[i])))
    return out


def geometric_mean(ratios: np.ndarray) -> np.ndarray:
    """Over the data sets, of each setting."""
    return np.exp(np.log(ratios).mean(axis=1))


def describe(setting: dict[str, Any]) -> str:
    """The setting as keyword arguments."""
    return ", ".join(f"{name}={value!r}" for name, value in setting.items())


@click.command()
@click.option("--write", is_flag=True, help="Keep the chosen setting in setting.json.")
def main(write: bool) -> None:
    """Rates all settings on training rows held out and prints them, the best first."""
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
