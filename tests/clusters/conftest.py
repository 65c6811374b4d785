"""A training run of about a minute, which clusters repeat."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import zarr

from distboost import GDMCBoostClassifier

ROWS, FEATURES, CLASSES, ROUNDS = 100_000, 16, 10, 400


class Training(NamedTuple):
    """A folder with arrays `x` and `y`, how to train on them, and the file of the model."""

    data: Path
    rounds: int
    model: bytes


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    """A training run that this process has done."""
    folder = tmp_path_factory.mktemp("training")
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, FEATURES))
    y = rng.integers(CLASSES, size=ROWS)
    X = (centres[y] + 2 * rng.normal(size=(ROWS, FEATURES))).astype(np.float32)
    zarr.create_array(folder / "x", data=X, chunks=(10_000, FEATURES))
    zarr.create_array(folder / "y", data=y, chunks=(10_000,))
    model = GDMCBoostClassifier(n_estimators=ROUNDS, calibration=None).fit(f"{folder}/x", f"{folder}/y")
    model.save(f"{folder}/model")
    return Training(folder, ROUNDS, Path(f"{folder}/model").read_bytes())
