"""What a newcomer measures: ``fit(X, y)`` at the defaults, everything included.

All libraries fit in one process, in turns, on two threads and for as many rounds; binning and, with distboost, the calibration
of probabilities are part of the time. Kernels are loaded by a fit that does not count.

The curve is of made rows (shells of a normal distribution, ten features of twenty are noise), 150 to a million.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from tests.benchmarks.compare import library_version, processor
from tests.benchmarks.contenders import THREADS
from tests.benchmarks.datasets import NAMES, official
from tests.benchmarks.made import Size, spheres
from tests.benchmarks.results import table

ROUNDS = 100
REPEATS = 3
CURVE = (150, 500, 1_500, 5_000, 15_000, 50_000, 150_000, 500_000, 1_000_000)  # rows
MANY_ROWS = 100_000  # from so many on, each library fits once
FEATURES, CLASSES = 20, 5
SMALL: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
}


def contenders() -> dict[str, Callable[[], Any]]:
    """A new estimator of each library, by name."""
    import lightgbm
    import xgboost

    from distboost import GDMCBoostClassifier

    common = {"n_estimators": ROUNDS, "n_jobs": THREADS}
    return {
        "distboost": lambda: GDMCBoostClassifier(**common),
        "distboost, calibration=None": lambda: GDMCBoostClassifier(calibration=None, **common),
        "LightGBM": lambda: lightgbm.LGBMClassifier(verbose=-1, **common),
        "XGBoost": lambda: xgboost.XGBClassifier(**common),
    }


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows to fit; of the UCI data sets, the published training rows."""
    return SMALL[name](return_X_y=True) if name in SMALL else official(name)[:2]


def fastest_fits(X: np.ndarray, y: np.ndarray, repeats: int = REPEATS) -> dict[str, float]:
    """The fastest of some fits of each library, in seconds. Before several, one fit does not count."""
    made = contenders()
    times: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(repeats + (repeats > 1)):
        for name, new in made.items():
            start = time.perf_counter()
            new().fit(X, y)
            times[name].append(time.perf_counter() - start)
    return {name: min(found[len(found) > 1 :]) for name, found in times.items()}


def row_of(title: str, found: dict[str, float]) -> list[str]:
    """A row of the table."""
    ratio = found["distboost"] / min(found["LightGBM"], found["XGBoost"])
    return [title, *(f"{seconds:.3f} s" for seconds in found.values()), f"{ratio:.2f}"]


@click.command()
@click.option("--data", "names", multiple=True, type=click.Choice([*SMALL, *NAMES]), default=[*SMALL, *NAMES])
@click.option("--curve", is_flag=True, help="Fit made rows of growing number instead.")
@click.option("--picture", type=click.Path(path_type=Path), help="With --curve: where the picture goes.")
def main(names: tuple[str, ...], curve: bool, picture: Path | None) -> None:
    """Prints the seconds of a fit, and what distboost's are of the faster rival's."""
    versions = ", ".join(f"{name} {library_version(name)}" for name in ("distboost", "lightgbm", "xgboost"))
    print(f"{ROUNDS} rounds, {THREADS} threads, best of {REPEATS}; {processor()}; {versions}\n", flush=True)
    rows, header = [], ["", *contenders(), "distboost / faster rival"]
    if curve:
        measured: dict[int, dict[str, float]] = {}
        for n in CURVE:
            X, y = spheres(Size(n, 1), FEATURES, CLASSES)[:2]
            measured[n] = fastest_fits(X, y, 1 if n >= MANY_ROWS else REPEATS)
            rows.append(row_of(f"{n:,}", measured[n]))
            print(*rows[-1], flush=True)
        if picture is not None:
            from tests.benchmarks.plots import draw_seconds

            draw_seconds(measured, picture)
        print()
    else:
        for name in names:
            X, y = rows_of(name)
            title = f"{name}, {X.shape[0]:,} × {X.shape[1]}, {len(np.unique(y))} classes"
            rows.append(row_of(title, fastest_fits(X, y)))
    print(table(header, rows))


if __name__ == "__main__":
    main()
