"""REBEL with similarities: the parameters that are tested."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distboost import REBELClassifier

ROOT = np.zeros(1, np.int64)
CASES = {
    "real": {},
    "sign": {"output": "sign"},
    "one point": {"similarity": "one-point"},
    "one point, sign": {"similarity": "one-point", "output": "sign"},
    "few candidates": {"max_candidates": 3},
}


def classifier(**parameters):
    return REBELClassifier(
        **{"calibration": None, "n_estimators": 6, "weak_learner": "similarity", **parameters}
    )


def saved(model, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()
