"""The same trainings with XGBoost and LightGBM: out of core, and on Dask."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import xgboost
import zarr

from tests.benchmarks.trainee import cluster, level, sample

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


def xgboost_dask(job: dict, mark: Any) -> None:
    """XGBoost on a cluster, everything resident."""
    import dask.array as da
    from xgboost import dask as on_dask

    def fit(x: Any, y: Any, n_rounds: int, callbacks: list) -> None:
        data = on_dask.DaskQuantileDMatrix(client, x, y, max_bin=MAX_BIN)
        on_dask.train(client, xgboost_parameters(job), data, n_rounds, callbacks=callbacks)

    times = RoundTimes(job["scratch"])
    with cluster(job) as client:
        level("idle", mark)
        fit(*map(da.from_array, sample(job["n_classes"])), 2, [])
        level("warm", mark)
        mark("fit")
        fit(da.from_zarr(job["x"]), da.from_zarr(job["y"]), job["parameters"]["n_estimators"], [times])
        mark("end")
    times.marked(mark)


def lightgbm_dask(job: dict, mark: Any) -> None:
    """LightGBM on a cluster, everything resident."""
    import dask.array as da
    from lightgbm.dask import DaskLGBMClassifier

    def model(n_rounds: int) -> DaskLGBMClassifier:
        depth = job["parameters"]["max_depth"]
        return DaskLGBMClassifier(
            n_estimators=n_rounds, max_depth=depth, num_leaves=2**depth, max_bin=MAX_BIN - 1, verbose=-1
        )

    times = RoundTimes(job["scratch"])
    with cluster(job):
        level("idle", mark)
        x, y = sample(job["n_classes"])
        model(2).fit(da.from_array(x, chunks=(len(x) // 2, -1)), da.from_array(y, chunks=len(x) // 2))
        level("warm", mark)
        mark("fit")
        x, y = da.from_zarr(job["x"]), da.from_zarr(job["y"])
        model(job["parameters"]["n_estimators"]).fit(x, y, callbacks=[times])
        mark("end")
    times.marked(mark)
