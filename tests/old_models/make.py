"""Write models of every public estimator to this folder, for `test_old_models.py`. Run it before a change of the file format.

    python -m tests.old_models.make 3

The argument is the new format version, whose number the files begin with. Files of earlier versions stay as they are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from distboost import registry
from distboost.estimators.factory import estimator

FOLDER = Path(__file__).parent
NAMES = np.array(["one", "two", "three"])
LATER = (
    "samme-r", "logitboost", "aoso-logitboost", "adaboost-m2", "adaboost-mr", "all-pairs", "output-code", "jointboost",
    "structboost",
)  # fmt: skip


def models():
    """Yield the name of each model, and the estimator with its parameters."""
    for name in (*registry.PAPERS, *registry.BASELINES):
        if name in LATER:
            continue
        yield name, estimator(name)(n_estimators=3)
    mm, rebel = estimator("adaboost-mm"), estimator("rebel")
    yield "codeword", estimator("gd-mcboost")(n_estimators=3, leaf="codeword", max_depth=2, learning_rate=0.5)
    yield "logistic", estimator("stagewise")(n_estimators=3, loss="logistic")
    yield "os", mm(n_estimators=3, strategy="os-exponential", edge=0.1)
    yield "similarity", rebel(n_estimators=3, weak_learner="similarity")


def later():
    """As `models`, for what came with version 3 or since: other calibrations, and estimators."""
    for name in LATER:
        yield name, estimator(name)(n_estimators=3)
    yield "label", estimator("adaboost-mh")(n_estimators=3, vote="label")
    yield "vector", estimator("gd-mcboost")(n_estimators=3, calibration="vector")
    yield "gd-logistic", estimator("gd-mcboost")(n_estimators=3, loss="logistic")
    yield "cd-means", estimator("cd-mcboost")(n_estimators=4, loss="logistic", leaf="mean", max_depth=2)


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + np.eye(3, 4)[y]
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def main(version: str) -> None:
    X, y = rows()
    predictions = {"X": X}
    for name, model in (*models(), *later()):
        X_whole = np.nan_to_num(X)
        given = X_whole if name == "similarity" else X  # distances need all values
        model.fit(given[:40], NAMES[y[:40]], eval_set=(given[40:], NAMES[y[40:]]))
        model.save(FOLDER / f"{version}-{name}.model")
        predictions[f"{name} scores"] = model.scores(given)
        predictions[f"{name} probabilities"] = model.predict_proba(given)
        predictions[f"{name} losses"] = np.array([model.train_loss_, model.eval_loss_])
    np.savez_compressed(FOLDER / f"{version}.npz", **predictions)


if __name__ == "__main__":
    main(sys.argv[1])
