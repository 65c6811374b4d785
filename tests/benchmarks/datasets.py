"""The data sets of the benchmarks, with their official splits."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(__file__).parents[2] / "examples" / "data"
NAMES = ("letter", "pendigits", "satimage", "optdigits")


class Split(NamedTuple):
    """Rows to learn from and rows to measure on; labels are 0 .. K - 1."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def __str__(self) -> str:
        return (
            f"{len(self.y)} + {len(self.y_test)} rows, {self.X.shape[1]} features, {self.y.max() + 1} classes"
        )


def official(name: str) -> Split:
    """The published training and test rows."""
    with np.load(FOLDER / f"{name}.npz") as file:
        X, y, n = file["X"].astype(np.float64), file["y"].astype(np.int64), int(file["n_train"])
    return Split(X[:n], y[:n], X[n:], y[n:])


def folds(name: str, n_folds: int, seed: int = 0) -> list[Split]:
    """The training rows, each held out in one of the splits; the test rows stay unseen."""
    split = official(name)
    parts = np.array_split(np.random.default_rng(seed).permutation(len(split.y)), n_folds)
    held = [np.isin(np.arange(len(split.y)), part) for part in parts]
    return [Split(split.X[~h], split.y[~h], split.X[h], split.y[h]) for h in held]
