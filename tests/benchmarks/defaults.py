"""Every estimator at its defaults beside other libraries at theirs: ``python -m tests.benchmarks.defaults``.

Accuracy and log-loss on 18 data sets: the official test rows of six, and for the others all rows in five stratified folds, each
held out once, in three random orders if there are fewer than 1,000 rows. With ``--best``, each estimator is also trained with
other sizes of its trees and other learning rates, for the same number of rounds: how far is the default from the best of them?
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import click
import lightgbm
import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import RepeatedStratifiedKFold

from distboost.errors import DistboostError
from distboost.estimators.factory import estimator
from distboost.registry import ALGORITHMS
from tests.benchmarks.datasets import FOLDER, Split, official
from tests.benchmarks.results import table

FEW = 1000  # rows: below, folds are repeated
TINY = 1e-15  # the least probability of the log-loss

RIVALS: dict[str, Callable[[], Any]] = {
    "LightGBM": partial(lightgbm.LGBMClassifier, verbose=-1, n_jobs=2),
    "HistGradientBoosting": partial(HistGradientBoostingClassifier, random_state=0),
    "random forest": partial(RandomForestClassifier, random_state=0, n_jobs=2),
}

# Settings that are compared with the default, one parameter at a time; then the best of both together.
SIZES: dict[str, list[dict[str, Any]]] = {
    "gamble": [{"max_leaf_nodes": n} for n in (15, 31, 63, 127, 255)],
    "gradboost": [],
    "multiboost": [],
}
DEPTHS: list[dict[str, Any]] = [{"max_depth": d} for d in (1, 2, 3, 4, 6, 8)]
RATES: list[dict[str, Any]] = [{"learning_rate": rate} for rate in (1.0, 0.5, 0.2)]

made = partial(datasets.make_classification, random_state=0)
ALL_ROWS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "iris": partial(datasets.load_iris, return_X_y=True),
    "wine": partial(datasets.load_wine, return_X_y=True),
    "breast cancer": partial(datasets.load_breast_cancer, return_X_y=True),
    "digits": partial(datasets.load_digits, return_X_y=True),
    "noisy": partial(made, 2000, 20, n_informative=8, n_redundant=4, n_classes=5, flip_y=0.1),
    "imbalanced": partial(
        made, 4000, 20, n_informative=8, n_classes=4, weights=[0.85, 0.1, 0.04, 0.01], flip_y=0.02
    ),
    "60 classes": partial(
        made, 10_000, 30, n_informative=20, n_classes=60, n_clusters_per_class=1, class_sep=2.0, flip_y=0.02
    ),
}
OFFICIAL = ("letter", "pendigits", "satimage", "optdigits", "shuttle", "vowel")
FOLDED = ("vehicle", "glass", "soybean", "segment", "splice")
NAMES = (*OFFICIAL, *FOLDED, *ALL_ROWS)


@cache
def splits(name: str) -> list[Split]:
    """The rows to train on and to test on."""
    if name in OFFICIAL:
        return [official(name)]
    times = 3 if len(rows(name)[1]) < FEW else 1
    return [split for order in orders(name, times) for split in order]


def orders(name: str, times: int) -> list[list[Split]]:
    """Five folds of a data set without official test rows, in several random orders."""
    X, y = rows(name)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=times, random_state=0).split(X, y)
    return [[Split(X[a], y[a], X[b], y[b]) for a, b in islice(folds, 5)] for _ in range(times)]


def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows of such a data set, and their classes."""
    return ALL_ROWS[name]() if name in ALL_ROWS else _file(name)


def _file(name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(FOLDER / f"{name}.npz") as file:
        return file["X"].astype(np.float64), file["y"].astype(np.int64)


def judge(make: Callable[[], Any], held_out: list[Split]) -> tuple[float, float]:
    """Accuracy and log-loss over all test rows. A class that no training row has is left out of the log-loss."""
    right, losses = [], []
    for split in held_out:
        model = make().fit(split.X, split.y)
        P = model.predict_proba(split.X_test)
        known = np.isin(split.y_test, model.classes_)
        right.append(model.predict(split.X_test) == split.y_test)
        place = np.searchsorted(model.classes_, split.y_test[known])
        losses.append(-np.log(np.maximum(P[known, place], TINY)))
    return float(np.concatenate(right).mean()), float(np.concatenate(losses).mean())


def settings(algorithm: str, accuracy: Callable[[dict[str, Any]], float]) -> Iterator[dict[str, Any]]:
    """The settings that are compared with the default of an estimator: `accuracy` tells how good each is."""
    best: list[dict[str, Any]] = []
    for options in (SIZES.get(algorithm, DEPTHS), RATES):
        found = {json.dumps(option): accuracy(option) for option in options}
        yield from options
        best += [json.loads(max(found, key=found.__getitem__))] if found else []
    yield {name: value for option in best for name, value in option.items()}


class Book:
    """What was measured, kept in a file: an interrupted run goes on."""

    def __init__(self, file: Path | None):
        self.file = file
        self.found: dict[str, list[float]] = json.loads(file.read_text()) if file and file.exists() else {}

    def get(self, who: str, name: str, make: Callable[..., Any], **options: Any) -> tuple[float, float]:
        """Accuracy and log-loss of `make(**options)` on a data set."""
        key = f"{who} | {name} | {json.dumps(options, sort_keys=True)}"
        return self.keep(key, lambda: judge(partial(make, **options), splits(name)))

    def keep(self, key: str, measure: Callable[[], tuple[float, float]]) -> tuple[float, float]:
        """What was measured under this key, or is now."""
        if key not in self.found:
            try:
                self.found[key] = list(measure())
            except (
                DistboostError
            ) as error:  # fixed votes have no learning rate, and AdaBoost.MO at most 12 classes
                click.echo(f"{key}: {error}", err=True)
                self.found[key] = [0.0, np.inf]
            click.echo(f"{key}: {self.found[key]}", err=True)
            if self.file:
                self.file.write_text(json.dumps(self.found, indent=0) + "\n")
        accuracy, loss = self.found[key]
        return accuracy, loss


def beside_others(book: Book, algorithms: list[str], names: list[str]) -> str:
    """Accuracy and log-loss at the defaults."""
    rows = []
    makers = {**RIVALS, **{each: estimator(each) for each in algorithms}}
    for name in names:
        cells = [book.get(who, name, make) for who, make in makers.items()]
        rows.append([name, *(f"{100 * accuracy:.1f}, {loss:.3f}" for accuracy, loss in cells)])
    return table(["accuracy %, log-loss", *makers], rows)


def beside_best(book: Book, algorithms: list[str], names: list[str]) -> str:
    """The default's accuracy, and the best setting's with its distance."""
    rows = []
    for each in algorithms:
        make = estimator(each)
        for name in names:
            default, _ = book.get(each, name, make)

            def accuracy(
                option: dict[str, Any], make: Any = make, each: str = each, name: str = name
            ) -> float:
                return book.get(each, name, make, calibration=None, **option)[0]

            found = {json.dumps(option): accuracy(option) for option in settings(each, accuracy)}
            best = max(found, key=found.__getitem__)
            rows.append(
                [each, name, f"{100 * default:.1f}", f"{100 * (found[best] - default):.1f}", f"`{best}`"]
            )
    return table(["estimator", "data", "default %", "best is above by", "best setting"], rows)


@click.command()
@click.option("--data", "names", multiple=True, type=click.Choice(NAMES), help="All if not given.")
@click.option(
    "--algorithm", "algorithms", multiple=True, type=click.Choice(list(ALGORITHMS)), help="All if not given."
)
@click.option("--best", is_flag=True, help="Compare each default with other settings.")
@click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Where figures are kept; none is measured twice."
)
def main(names: tuple[str, ...], algorithms: tuple[str, ...], best: bool, file: Path | None) -> None:
    """Measures every estimator at its defaults, and prints a table."""
    warnings.filterwarnings("ignore")  # the libraries' own
    show = beside_best if best else beside_others
    click.echo(show(Book(file), list(algorithms or ALGORITHMS), list(names or NAMES)))


if __name__ == "__main__":
    main()
