"""The trainings that are disturbed: what is trained, on what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr

import distboost
from distboost import (
    AdaBoostMMClassifier,
    CDMCBoostClassifier,
    GDMCBoostClassifier,
    REBELClassifier,
    StagewiseBoostClassifier,
)
from distboost.baselines import (
    AdaBoostMHClassifier,
    AllPairsClassifier,
    MultiBoostClassifier,
    OutputCodeClassifier,
)

N, D, BLOCK = 6000, 6, 500
EVALUATED = 24  # rows of a block of evaluation rows: it is told by its size
STREAMING = 150_000  # bytes of a worker, of which two blocks in memory take most


@dataclass(frozen=True)
class Training:
    """What is trained, and on which kind of data."""

    make: Callable[..., Any]
    kind: str = "zarr"
    evaluated: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


TRAININGS = {
    "gd": Training(
        lambda **how: GDMCBoostClassifier(
            calibration=None,
            n_estimators=9,
            max_depth=3,
            subsample=0.8,
            early_stopping_rounds=7,
            eval_metric="log_loss",
            learning_rate=0.3,
            **how,
        ),
        evaluated=True,
    ),
    "compressed": Training(
        lambda **how: GDMCBoostClassifier(
            calibration=None, n_estimators=8, max_depth=3, sketch=2, statistic_bits=4, **how
        )
    ),
    "by weight": Training(
        lambda **how: GDMCBoostClassifier(
            calibration=None, n_estimators=5, max_depth=3, subsample=0.3, sampling="weight", **how
        )
    ),
    "streaming": Training(
        lambda **how: GDMCBoostClassifier(calibration=None, n_estimators=5, max_depth=3, max_bins=16, **how),
        "store",
        options={"memory_limit": STREAMING},
    ),
    "mm": Training(
        lambda **how: AdaBoostMMClassifier(calibration=None, n_estimators=8, max_depth=2, **how), "numpy"
    ),
    "corrective": Training(
        lambda **how: MultiBoostClassifier(calibration=None, n_estimators=3, **how), "dask"
    ),
    "pairs": Training(lambda **how: AllPairsClassifier(calibration=None, n_estimators=3, max_depth=2, **how)),
    "codes": Training(lambda **how: OutputCodeClassifier(calibration=None, n_estimators=3, **how)),
    "labels": Training(
        lambda **how: AdaBoostMHClassifier(calibration=None, n_estimators=4, vote="label", max_depth=3, **how)
    ),
    "class steps": Training(
        lambda **how: StagewiseBoostClassifier(calibration=None, n_estimators=4, class_step=0.3, **how)
    ),
    "logistic": Training(
        lambda **how: CDMCBoostClassifier(
            calibration=None, n_estimators=6, loss="logistic", leaf="mean", max_depth=2, **how
        )
    ),
    "logistic directions": Training(
        lambda **how: GDMCBoostClassifier(
            calibration=None, n_estimators=4, loss="logistic", max_depth=2, **how
        )
    ),
    "tall chunks": Training(
        lambda **how: AdaBoostMMClassifier(calibration=None, n_estimators=5, max_depth=2, **how), "tall"
    ),
    "similarities": Training(
        lambda **how: REBELClassifier(calibration=None, n_estimators=2, weak_learner="similarity", **how),
        "zarr",
    ),
    "soak": Training(
        lambda **how: GDMCBoostClassifier(calibration=None, n_estimators=100, max_depth=6, **how)
    ),
    # Each tree has three levels of histograms: on a cluster, questions 1, 4, 7 .. are about a root.
    "levels": Training(
        lambda **how: GDMCBoostClassifier(calibration=None, n_estimators=6, max_depth=3, **how)
    ),
    "best first": Training(
        lambda **how: GDMCBoostClassifier(calibration=None, n_estimators=4, max_leaf_nodes=6, **how)
    ),
    "whole": Training(lambda **how: REBELClassifier(calibration=None, n_estimators=3, max_depth=2, **how)),
    "long": Training(
        lambda **how: GDMCBoostClassifier(calibration=None, n_estimators=60, max_depth=2, **how)
    ),
}


def as_it_is(chunk: np.ndarray) -> np.ndarray:
    return chunk


class Data:
    """The same rows in every kind."""

    def __init__(self, folder: Path, n: int = N):
        rng = np.random.default_rng(0)
        self.folder = folder
        self.X = rng.normal(size=(n, D)).astype(np.float32)
        self.y = np.digitize(self.X[:, 0] + self.X[:, 1] * self.X[:, 2] + rng.normal(0, 0.5, n), [-1, 0, 1])
        self.X[rng.random(self.X.shape) < 0.03] = np.nan
        self.x_url, self.y_url = str(folder / "x"), str(folder / "y")
        zarr.create_array(self.x_url, data=self.X, chunks=(BLOCK, D))
        zarr.create_array(self.y_url, data=self.y, chunks=(BLOCK,))

    def of(self, kind: str) -> tuple:
        """X and y; y is None for a binned store."""
        if kind == "store":
            return self.store, None
        return {
            "zarr": (self.x_url, self.y_url),
            "numpy": (self.X, self.y),
            "tall": (
                da.from_array(self.X, chunks=(len(self.X) // 2, D)).map_blocks(as_it_is),
                da.from_array(self.y, chunks=BLOCK),
            ),
            "dask": (da.from_array(self.X, chunks=(BLOCK, D)), da.from_array(self.y, chunks=BLOCK)),
        }[kind]

    @cached_property
    def store(self) -> str:
        url = str(self.folder / "store")
        distboost.bin(self.x_url, self.y_url, url, max_bins=16)
        return url

    @property
    def evaluation(self) -> dict[str, tuple]:
        """Two sets, the second with weights."""
        n = 3 * EVALUATED
        weights = np.arange(n) % 3
        return {"first": (self.X[:n], self.y[:n]), "second": (self.X[n : 2 * n], self.y[n : 2 * n], weights)}

    @cached_property
    def model(self) -> Any:
        return GDMCBoostClassifier(calibration=None, n_estimators=10, max_depth=3).fit(self.X, self.y)


def fit(training: Training, data: Data, client: Any, folder: Path, **how: Any) -> bytes:
    """The bytes of the model's file."""
    content, streams = fit_freely(training, data, client, folder, **how)
    assert streams == (training.kind == "store")
    return content


def fit_freely(training: Training, data: Data, client: Any, folder: Path, **how: Any) -> tuple[bytes, bool]:
    """The same, and whether rows were streamed: with more workers than usual, all may fit in memory."""
    model = training.make(**{**training.options, **how})
    model.client = client
    content = _fitted(model, training, data, folder)
    return content, model.memory_plan_.streamed > 0


def fit_alone(training: Training, data: Data, folder: Path) -> bytes:
    """The same, trained in this process and in memory."""
    return _fitted(training.make(n_jobs=1), training, data, folder)


def _fitted(model: Any, training: Training, data: Data, folder: Path) -> bytes:
    X, y = data.of(training.kind)
    model.fit(X, y, eval_set=data.evaluation if training.evaluated else None)
    folder.mkdir(exist_ok=True)
    model.save(folder / "model")
    return (folder / "model").read_bytes()
