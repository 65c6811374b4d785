"""GD-MCBoost's losses beside LightGBM, with wrong labels and with a rare class: `python -m tests.benchmarks.losses FILE.npz ..`.

Each file holds X, y and n_train, the number of its first rows that are for training (0 or all: four fifths of the rows, drawn at
random). Labels are drawn anew for a share of the training rows; those of the test rows are right. For the rare class, 19 of 20
training rows of class 0 are left out, and its test rows weigh a twentieth. LightGBM must be installed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.metrics import accuracy_score, log_loss

from distboost import GDMCBoostClassifier

ROUNDS = 100
RARE = 1 / 20

SETTINGS = {
    "exponential": {},
    "logistic": {"loss": "logistic"},
    "logistic, 0.3": {"loss": "logistic", "learning_rate": 0.3},
    "softmax": {"loss": "softmax"},
    "softmax, 0.3": {"loss": "softmax", "learning_rate": 0.3},
    "softmax, 0.1": {"loss": "softmax", "learning_rate": 0.1},
    "newton": {"loss": "softmax", "leaf": "newton"},
    "newton, 0.3": {"loss": "softmax", "leaf": "newton", "learning_rate": 0.3},
    "newton, 0.1": {"loss": "softmax", "leaf": "newton", "learning_rate": 0.1},
}


class Data(NamedTuple):
    """Training and test rows; the test rows have weights."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    w_test: np.ndarray


def read(path: str) -> Data:
    """Return the rows of a file."""
    with np.load(path) as file:
        X, y, n = file["X"], file["y"], int(file["n_train"])
    if n in (0, len(y)):
        order = np.random.default_rng(0).permutation(len(y))
        X, y, n = X[order], y[order], len(y) * 4 // 5
    return Data(X[:n], y[:n], X[n:], y[n:], np.ones(len(y) - n))


def with_wrong_labels(data: Data, share: float) -> Data:
    """Return the data with the labels of a share of the training rows drawn anew."""
    rng = np.random.default_rng(1)
    wrong = rng.random(len(data.y)) < share
    return data._replace(y=np.where(wrong, rng.integers(0, data.y.max() + 1, len(data.y)), data.y))


def with_a_rare_class(data: Data) -> Data:
    """Return the data with few rows of class 0."""
    kept = (data.y > 0) | (np.random.default_rng(1).random(len(data.y)) < RARE)
    return data._replace(X=data.X[kept], y=data.y[kept], w_test=np.where(data.y_test == 0, RARE, 1.0))


def measure(data: Data) -> None:
    """Print the test accuracy and the log-loss of each setting, and the recall of class 0."""
    models = {
        name: GDMCBoostClassifier(n_estimators=ROUNDS, calibration=None, **given)
        for name, given in SETTINGS.items()
    }
    models["LightGBM"] = LGBMClassifier(n_estimators=ROUNDS, n_jobs=1, verbose=-1)
    for name, model in models.items():
        P = np.asarray(model.fit(data.X, data.y).predict_proba(data.X_test))
        found = P.argmax(axis=1)
        accuracy = accuracy_score(data.y_test, found, sample_weight=data.w_test)
        loss = log_loss(data.y_test, P, sample_weight=data.w_test)
        recall = (found == 0)[data.y_test == 0].mean()
        print(
            f"  {name:14s} {100 * accuracy:6.2f} % {loss:7.4f}   recall of class 0: {100 * recall:6.2f} %",
            flush=True,
        )


def main(paths: list[str]) -> None:
    """Measure on each file."""
    for path in paths:
        data = read(path)
        cases = {
            f"{share:.0%} of the labels drawn anew": with_wrong_labels(data, share) for share in (0, 0.1, 0.2)
        }
        cases["a rare class"] = with_a_rare_class(data)
        for name, case in cases.items():
            print(f"{Path(path).stem}, {name}")
            measure(case)


if __name__ == "__main__":
    main(sys.argv[1:])
