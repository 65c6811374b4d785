"""What a newcomer measures: ``fit(X, y)`` of small tables at the defaults, everything included.

All libraries fit in one process, in turns, on two threads and for as many rounds; binning and, with distboost, the calibration
of probabilities are part of the time. Kernels are loaded by a fit that does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from tests.benchmarks.compare import library_version, processor
from tests.benchmarks.contenders import THREADS
from tests.benchmarks.datasets import NAMES, official
from tests.benchmarks.results import table

ROUNDS = 100
REPEATS = 3
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


def fastest_fits(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """The fastest of some fits of each library, in seconds."""
    made = contenders()
    times: dict[str, list[float]] = {name: [] for name in made}
    for repeat in range(REPEATS + 1):
        for name, new in made.items():
            start = time.perf_counter()
            new().fit(X, y)
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: min(found) for name, found in times.items()}


@click.command()
@click.option("--data", "names", multiple=True, type=click.Choice([*SMALL, *NAMES]), default=[*SMALL, *NAMES])
def main(names: tuple[str, ...]) -> None:
    """Prints the seconds of a fit, and what distboost's are of the faster rival's."""
    versions = ", ".join(f"{name} {library_version(name)}" for name in ("distboost", "lightgbm", "xgboost"))
    print(f"{ROUNDS} rounds, {THREADS} threads, best of {REPEATS}; {processor()}; {versions}\n", flush=True)
    rows, header = [], ["", *contenders(), "distboost / faster rival"]
    for name in names:
        X, y = rows_of(name)
        found = fastest_fits(X, y)
        ratio = found["distboost"] / min(found["LightGBM"], found["XGBoost"])
        title = f"{name}, {X.shape[0]:,} × {X.shape[1]}, {len(np.unique(y))} classes"
        rows.append([title, *(f"{seconds:.3f} s" for seconds in found.values()), f"{ratio:.2f}"])
    print(table(header, rows))


if __name__ == "__main__":
    main()
