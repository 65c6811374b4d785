"""One run in a fresh process: reads a JSON description from stdin, writes a line of JSON for each mark.

A mark is a name, the time (time.monotonic(), which is the same clock in all processes of a machine) and further values. Marks
that were written survive if the process is killed.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any, TextIO

JOBS = {
    "distboost": ("tests.benchmarks.trainee", "train"),
    "kernel": ("tests.benchmarks.bare_kernel", "time_histogram"),
    "xgboost-external": ("tests.benchmarks.rivals", "xgboost_external"),
}

Mark = Callable[..., None]


def main() -> None:
    job = json.load(sys.stdin)
    mark = marker()
    module, name = JOBS[job["job"]]
    getattr(import_module(module), name)(job, mark)
    memory = import_module("tests.benchmarks.memory")
    mark("done", peak_resident=memory.peak_resident())


def marker() -> Mark:
    """mark(name, **values). What anybody else prints goes to stderr."""
    out: TextIO = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def mark(name: str, **values: Any) -> None:
        out.write(json.dumps({"mark": name, "time": time.monotonic(), **values}) + "\n")
        out.flush()

    return mark


def train(job: dict, mark: Mark) -> None:
    """distboost, in this process or on a cluster of its own."""
    from distboost import GDMCBoostClassifier

    with cluster(job) as client:
        level("idle", mark)
        fit(GDMCBoostClassifier(**small(job["parameters"])), client, *sample(job["n_classes"]))
        level("warm", mark)
        log = logging.getLogger("distboost")
        log.setLevel(logging.INFO)
        log.addHandler(LogMarks(mark))
        model = GDMCBoostClassifier(calibration=None, **job["parameters"], scratch=job["scratch"])
        model.callbacks = [
            lambda progress: mark("round", error=progress.train_error),
            lambda progress: mark("plan", **plan_of(model)) if progress.round == 1 else None,
        ]
        with watched(client, mark):
            mark("fit")
            fit(model, client, job["x"], job["y"])
            mark("end", outcome=model.outcome_)


def level(name: str, mark: Mark, **values: Any) -> None:
    """Marks a time up to which the memory did not change for a moment: long enough to be read."""
    time.sleep(0.1)
    mark(name, **values)


@contextmanager
def cluster(job: dict) -> Iterator[Any]:
    """A client of a new cluster, or None if the job is for this process."""
    if not job.get("workers"):
        yield None
        return
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=job["workers"],
            threads_per_worker=job.get("threads", 1),
            memory_limit=job.get("worker_memory"),
            dashboard_address=None,
            local_directory=job["scratch"],
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def watched(client: Any, mark: Mark) -> AbstractContextManager:
    """What happens to a cluster is marked, also if the training fails."""
    if client is None:
        return nullcontext()
    return import_module("tests.benchmarks.clusters").watched(client, mark)


def fit(model: Any, client: Any, x: Any, y: Any) -> None:
    model.client = client
    model.fit(x, y)


def small(parameters: dict) -> dict:
    """For a first training, after which nothing waits for the compiler."""
    kept = {
        name: value for name, value in parameters.items() if name in ("max_depth", "score_dtype", "n_jobs")
    }
    return {"n_estimators": 2, **kept}


def sample(n_classes: int) -> tuple[Any, Any]:
    import numpy as np

    return np.random.default_rng(0).normal(size=(100 * n_classes, 4)), np.arange(100 * n_classes) % n_classes


def plan_of(model: Any) -> dict[str, int]:
    """What was promised of the memory; it is known when the rows have been read."""
    plan = model.memory_plan_
    names = ("n_bytes", "leader_bytes", "resident", "streamed", "window", "store_bytes", "scratch_bytes")
    return {name: getattr(plan, name) for name in names}


class LogMarks(logging.Handler):
    """Marks what distboost logs: it says what is going on before the first round."""

    def __init__(self, mark: Mark):
        super().__init__(logging.INFO)
        self.mark = mark

    def emit(self, record: logging.LogRecord) -> None:
        self.mark("log", text=record.getMessage())


if __name__ == "__main__":
    main()
