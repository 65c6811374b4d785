"""GD-MCBoost beside LightGBM and HistGradientBoosting on few rows, in many orders: ``python -m tests.benchmarks.orders``.

On a few hundred rows, a single order of the folds says little: between orders of wine, HistGradientBoosting's accuracy differs
by 4 % and its log-loss threefold. So each data set without official test rows is divided into five folds anew until its rows
have been tested 20,000 times in all, at most in 30 orders. All libraries are trained on the same folds. Of each difference
between two libraries, the table gives the mean over the orders and its standard error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from distboost.cli.options import parse_parameters
from distboost.estimators.factory import estimator
from tests.benchmarks.defaults import ALL_ROWS, FOLDED, RIVALS, Book, judge, orders
from tests.benchmarks.results import table

TESTED = 20_000  # rows
MOST = 30  # orders
OTHERS = ("LightGBM", "HistGradientBoosting")
OURS = "gd-mcboost"


def measured(book: Book, name: str, parameters: dict[str, Any]) -> dict[str, np.ndarray]:
    """Accuracy and log-loss of each library in each order, (n_orders, 2)."""
    ours = partial(estimator(OURS), **parameters)
    makers: dict[str, Callable[[], Any]] = {**{who: RIVALS[who] for who in OTHERS}, OURS: ours}
    every = orders(name, MOST)
    n = min(MOST, max(TESTED // sum(len(split.y_test) for split in every[0]), 1))
    found: dict[str, list[tuple[float, float]]] = {who: [] for who in makers}
    for i in range(n):
        for who, make in makers.items():
            key = f"{who} {parameters}" if who == OURS and parameters else who
            found[who].append(book.keep(f"{key} | {name} | order {i}", partial(judge, make, every[i])))
    return {who: np.array(each) for who, each in found.items()}


def row(name: str, found: dict[str, np.ndarray]) -> list[str]:
    """The line of a data set: means, and the mean differences with their errors."""
    ours = found[OURS]
    n = len(ours)
    cells = [f"{100 * each[:, 0].mean():.2f}, {each[:, 1].mean():.3f}" for each in found.values()]
    for who in OTHERS:
        above = 100 * (ours[:, 0] - found[who][:, 0])
        cells.append(f"{above.mean():+z.2f} ± {above.std(ddof=1) / n**0.5:.2f}")
    return [name, str(n), *cells]


@click.command()
@click.option(
    "--data", "names", multiple=True, type=click.Choice((*FOLDED, *ALL_ROWS)), help="All if not given."
)
@click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Where figures are kept; none is measured twice."
)
@click.option("--set", "parameters", multiple=True, help="A parameter of GD-MCBoost, such as max_depth=3.")
def main(names: tuple[str, ...], file: Path | None, parameters: tuple[str, ...]) -> None:
    """Compares the defaults in many orders, and prints a table."""
    warnings.filterwarnings("ignore")  # the libraries' own
    book = Book(file)
    rows = [
        row(name, measured(book, name, parse_parameters(parameters)))
        for name in names or (*FOLDED, *ALL_ROWS)
    ]
    click.echo(
        table(["accuracy %, log-loss", "orders", *OTHERS, OURS, *(f"above {who} by" for who in OTHERS)], rows)
    )


if __name__ == "__main__":
    main()
