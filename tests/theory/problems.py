"""Problems on which the papers' theorems are checked."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parents[2] / "examples" / "data"


@cache
def published(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, X_test, y_test) with the published split."""
    with np.load(DATA / f"{name}.npz") as file:
        X, y, n = file["X"].astype(np.float64), file["y"], int(file["n_train"])
    return X[:n], y[:n], X[n:], y[n:]


@cache
def drawn(n_classes: int, separation: float) -> tuple[np.ndarray, np.ndarray]:
    """Rounded, so that there are ties and every value has a bin; classes of unequal size."""
    rng = np.random.default_rng(n_classes)
    y = np.minimum(rng.geometric(1.5 / n_classes, 300) - 1, n_classes - 1)
    return np.round(separation * np.eye(n_classes, 6)[y] + rng.normal(size=(300, 6)), 1), y


PROBLEMS = {
    "two classes": lambda: drawn(2, 1.0),
    "overlap": lambda: drawn(5, 1.0),
    "noise": lambda: drawn(4, 0.0),
    "apart": lambda: drawn(3, 8.0),
    "glass": lambda: published("glass")[:2],
    "vehicle": lambda: published("vehicle")[:2],
    "vowel": lambda: published("vowel")[:2],
    "segment": lambda: published("segment")[:2],
    "soybean, values missing": lambda: published("soybean")[:2],
}


def settings_and_problems(names):
    """Each setting with a third of the problems, each problem with a third of the settings; the others in the soak."""
    return pytest.mark.parametrize(
        ("name", "problem"),
        [
            pytest.param(name, problem, marks=[pytest.mark.soak] * bool((i + j) % 3))
            for i, name in enumerate(names)
            for j, problem in enumerate(PROBLEMS)
        ],
        indirect=["problem"],
    )


# The textbook, on all stumps there are


def stumps(X: np.ndarray) -> np.ndarray:
    """-1 left and +1 right of every threshold: (stumps, rows)."""
    return np.concatenate([np.where(x <= np.unique(x)[:-1, None], -1.0, 1.0) for x in X.T])


def adaboost(X: np.ndarray, labels: np.ndarray, n_rounds: int) -> list[np.ndarray]:
    """The scores after each round; labels are -1 and +1."""
    F, H, stages = np.zeros(len(X)), stumps(X), []
    for _ in range(n_rounds):
        w = np.exp(-labels * F)
        edges = H @ (w * labels) / w.sum()
        best = np.argmax(np.abs(edges))
        F = F + np.arctanh(edges[best]) * H[best]  # arctanh(1 - 2 ε) = 1/2 ln((1 - ε) / ε)
        stages.append(F)
    return stages


def gentle_adaboost(X: np.ndarray, labels: np.ndarray, n_rounds: int) -> list[np.ndarray]:
    """The scores after each round of least-squares stumps."""
    F, right, stages = np.zeros(len(X)), (stumps(X) + 1) / 2, []
    for _ in range(n_rounds):
        w = np.exp(-labels * F)
        w /= w.sum()
        W = right @ w
        means = np.stack([(1 - right) @ (w * labels) / (1 - W), right @ (w * labels) / W])
        best = np.argmax((1 - W) * means[0] ** 2 + W * means[1] ** 2)
        F = F + np.where(right[best] > 0, means[1, best], means[0, best])
        stages.append(F)
    return stages


def two_classes() -> tuple[np.ndarray, np.ndarray]:
    """No stump is worse than the constant: leaves that choose their class freely choose different ones."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 4)), 1)
    return X, (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=300) > 0.5).astype(int)
