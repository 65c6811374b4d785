"""Trainings beside each other, and one after another: none touches another, and none leaves anything behind."""

from __future__ import annotations

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import dask.array as da
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_info, threadpool_limits

from distboost import AdaBoostMMClassifier, GDMCBoostClassifier, REBELClassifier
from distboost.process import single_blas
from distboost.runtime.base import Allotment
from distboost.runtime.cluster.worker_session import open_sessions
from distboost.training.memory_plan import MemoryPlan

TIMES = 2
WARMED = 5  # fits until all that is made once has been made
FITS = 8
GROWTH = 1.1  # of resident memory
SPARE = 5  # threads and files: pools of others fill up as they are used; one for each fit would be more
DEADLINE = 20.0  # seconds: for what Dask lets go of in its own time


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    y = rng.integers(0, 4, 1200)
    X = rng.normal(size=(1200, 6)) + np.eye(4, 6)[y]
    return X, y


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def of_trees():
    return GDMCBoostClassifier(calibration=None, n_estimators=5, max_depth=3, subsample=0.7, n_jobs=2)


def of_similarities():
    return REBELClassifier(
        calibration=None, n_estimators=3, weak_learner="similarity", max_candidates=4, n_jobs=2
    )


def trained(make, client, rows, path) -> bytes:
    X, y = rows
    model = make()
    model.client = client
    model.fit(X, y, eval_set=(X[:300], y[:300])).save(path)
    return path.read_bytes()


def test_runs_side_by_side_equal_runs_alone(client, rows, tmp_path):
    """Two trainings and a prediction on one cluster, from three threads, again and again."""
    alone = [trained(make, None, rows, tmp_path / "alone") for make in (of_trees, of_similarities)]
    X, y = rows
    predictor = AdaBoostMMClassifier(calibration=None, n_estimators=5, max_depth=2).fit(X, y)
    predicted = predictor.predict_proba(X).tobytes()
    together = threading.Barrier(3)

    def train(make):
        together.wait(timeout=60)
        return trained(make, client, rows, tmp_path / make.__name__)

    def predict():
        together.wait(timeout=60)
        lazy = predictor.predict_proba(da.from_array(X, chunks=(100, 3)))
        return client.compute(lazy).result(timeout=60).tobytes()

    with ThreadPoolExecutor(3) as pool:
        for _ in range(TIMES):
            under_way = [
                pool.submit(train, of_trees),
                pool.submit(train, of_similarities),
                pool.submit(predict),
            ]
            assert [each.result(timeout=60) for each in under_way] == [*alone, predicted]


def test_the_last_training_frees_the_linear_algebra():
    """Its digits depend on the number of threads, and that is one for the whole process."""

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2, "blas"):
        with ExitStack() as first, ExitStack() as second:
            first.enter_context(single_blas())
            second.enter_context(single_blas())
            first.close()
            assert threads() == {1}
        assert threads() == {2}


class Held(NamedTuple):
    """What a process has."""

    own_threads: int
    sessions: int
    threads: int
    files: int
    memory: int  # resident bytes


def held() -> Held:
    gc.collect()
    process = psutil.Process()
    own = [thread.name for thread in threading.enumerate() if thread.name.startswith("distboost")]
    return Held(
        len(own), len(open_sessions()), process.num_threads(), process.num_fds(), process.memory_info().rss
    )


def everywhere(client) -> list[Held]:
    """Of this process and of the workers."""
    workers = client.run(held) if client else {}
    return [held(), *(workers[address] for address in sorted(workers))]


def at_rest(client) -> list[Held]:
    """Once all that a training run had has been let go of."""
    last = time.monotonic() + DEADLINE
    while time.monotonic() < last:
        found = everywhere(client)
        if not any(each.own_threads or each.sessions for each in found) and not (client and client.futures):
            break
        time.sleep(0.1)
    assert [(each.own_threads, each.sessions) for each in found] == [(0, 0)] * len(found)
    assert client is None or not client.futures
    return found


@pytest.mark.parametrize("on_cluster", [False, True], ids=["in this process", "on a cluster"])
def test_fits_leave_nothing_behind(on_cluster, request, rows, tmp_path, monkeypatch):
    """Rows in memory and rows that stream: threads, files, futures, sessions and memory stay what they were."""
    client = request.getfixturevalue("client") if on_cluster else None
    monkeypatch.setattr(MemoryPlan, "allotment", lambda plan, scratch, may_grow: Allotment(300, 2, scratch))

    def fit(times):
        for n in range(times):
            trained((of_trees, of_similarities)[n % 2], client, rows, tmp_path / "model")
        return at_rest(client)

    before = fit(WARMED)
    after = fit(FITS)
    for then, now in zip(before, after, strict=True):
        assert now.threads <= then.threads + SPARE
        assert now.files <= then.files + SPARE
        assert now.memory <= GROWTH * then.memory
