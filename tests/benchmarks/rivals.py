"""The same trainings with XGBoost's external memory, and the times of its and LightGBM's rounds."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import xgboost
import zarr

from tests.benchmarks.trainee import level

MAX_BIN = 256


class RoundTimes(xgboost.callback.TrainingCallback):
    """Writes when each round was done to a file of its process: on Dask, callbacks run in the workers."""

    def __init__(self, folder: str):
        self.folder = folder

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self.note(epoch)
        return False

    def __call__(self, env: Any) -> None:
        """The same for LightGBM."""
        self.note(env.iteration)

    def note(self, number: int) -> None:
        with open(Path(self.folder) / f"rounds-{os.getpid()}", "a") as file:
            print(json.dumps([number, time.monotonic()]), file=file)

    def marked(self, mark: Any) -> None:
        """Marks each round when the last of the processes had done it."""
        lines = [
            line for file in Path(self.folder).glob("rounds-*") for line in file.read_text().splitlines()
        ]
        noted = [json.loads(line) for line in lines]
        for number in sorted({number for number, _ in noted}):
            mark("round", time=max(when for other, when in noted if other == number))


class Chunks(xgboost.DataIter):
    """Hands XGBoost some rows at a time; it keeps what it makes of them in files."""

    def __init__(self, x: zarr.Array, y: zarr.Array, cache: str):
        self.x, self.y, self.at = x, y, 0
        super().__init__(cache_prefix=os.path.join(cache, "pages"))

    def reset(self) -> None:
        self.at = 0

    def next(self, input_data: Any) -> bool:
        if self.at >= self.x.shape[0]:
            return False
        rows = slice(self.at, self.at + self.x.chunks[0])
        input_data(data=self.x[rows], label=self.y[rows])
        self.at = rows.stop
        return True


def xgboost_parameters(job: dict) -> dict[str, Any]:
    return {
        "objective": "multi:softprob",
        "num_class": job["n_classes"],
        "tree_method": "hist",
        "max_bin": MAX_BIN,
        "max_depth": job["parameters"]["max_depth"],
        "nthread": job.get("threads") or len(os.sched_getaffinity(0)),
    }


def xgboost_external(job: dict, mark: Any) -> None:
    """XGBoost's external memory, in one process."""
    times = RoundTimes(job["scratch"])
    level("idle", mark)
    level("warm", mark)
    mark("fit")
    chunks = Chunks(zarr.open_array(job["x"], mode="r"), zarr.open_array(job["y"], mode="r"), job["scratch"])
    data = xgboost.ExtMemQuantileDMatrix(chunks, max_bin=MAX_BIN)
    xgboost.train(xgboost_parameters(job), data, job["parameters"]["n_estimators"], callbacks=[times])
    mark("end")
    times.marked(mark)
