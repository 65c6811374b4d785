"""The time of a prediction, distboost beside LightGBM and XGBoost: ``python -m tests.benchmarks.predicting [--data letter ...]``.

All models have 100 rounds. The trees of distboost are as deep as those of XGBoost: 6. Each library predicts the labels of the
same rows, as float64 and as float32. They take turns, and the fastest of some repeats counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from tests.benchmarks.contenders import Contender, Distboost, LightGBM, XGBoost
from tests.benchmarks.datasets import Split, official
from tests.benchmarks.made import Size, made

ROUNDS, DEPTH = 100, 6
TRAIN_ROWS = 100_000  # of the large data: more rows make no larger trees
LETTER_ROWS = 100_000
LONG = 3.0  # seconds: a library that takes longer is not repeated


def letter() -> Split:
    """The letters, and all of them again and again to predict."""
    split = official("letter")
    X, y = np.concatenate([split.X, split.X_test]), np.concatenate([split.y, split.y_test])
    again = np.arange(LETTER_ROWS) % len(y)
    return Split(X, y, X[again], y[again])


def spheres() -> Split:
    """A million rows of ten features to predict."""
    return made("spheres-10", Size(TRAIN_ROWS, 1_000_000))


DATA: dict[str, Callable[[], Split]] = {"letter": letter, "spheres-10": spheres}


def seconds(contenders: list[Contender], X: np.ndarray, repeats: int) -> list[float]:
    """The fastest prediction of each."""
    best = [np.inf] * len(contenders)
    for _ in range(1 + repeats):
        for number, contender in enumerate(contenders):
            if np.isfinite(best[number]) and best[number] > LONG:
                continue
            start = time.perf_counter()
            contender.model.predict(X)
            best[number] = min(best[number], time.perf_counter() - start)
    return best


def predictions_table(name: str, split: Split, n_threads: int, repeats: int) -> Table:
    """Seconds of each library, and what they are of distboost's."""
    contenders: list[Contender] = [
        Distboost(n_threads, max_depth=DEPTH),
        *(XGBoost(strategy, n_threads) for strategy in ("multi_output_tree", "one_output_per_tree")),
        LightGBM(n_threads),
    ]
    for contender in contenders:
        contender.fit(split.X, split.y, ROUNDS)
    title = f"{name}: seconds to predict {len(split.y_test):,} rows, {n_threads} threads"
    table = Table("", "float64", "/ distboost", "float32", "/ distboost", title=title, title_justify="left")
    times = [seconds(contenders, split.X_test.astype(dtype), repeats) for dtype in (np.float64, np.float32)]
    for contender, *of_types in zip(contenders, *times, strict=True):
        ratios = (own / type_times[0] for own, type_times in zip(of_types, times, strict=True))
        cells = (f"{number:.3f}" for pair in zip(of_types, ratios, strict=True) for number in pair)
        table.add_row(contender.name, *cells)
    return table


@click.command()
@click.option(
    "--data", "names", multiple=True, type=click.Choice(list(DATA)), default=list(DATA), show_default=True
)
@click.option("--threads", default=2, show_default=True)
@click.option("--repeats", default=5, show_default=True)
def main(names: tuple[str, ...], threads: int, repeats: int) -> None:
    """Prints how long each library predicts."""
    for name in names:
        Console(width=110).print(predictions_table(name, DATA[name](), threads, repeats))


if __name__ == "__main__":
    main()
