"""The scheduler dies, or freezes: whatever goes on, it ends with one error that says so, as soon as that can be known."""

from __future__ import annotations

import logging
import os
import signal
import time

import pytest
import zarr

import distboost
from distboost.errors import ClusterError
from distboost.estimators import writing
from distboost.estimators.evaluating import confusion
from tests.active.sessions import committee, learner
from tests.faults import traps
from tests.faults.crews import Workers
from tests.faults.rounds import Slowly, at
from tests.faults.trainings import TRAININGS, fit
from tests.faults.traps import Stage, Trap

pytestmark = pytest.mark.timeout(60)

TIMEOUT = 3.0
AT_ONCE = 3.0  # seconds, on a machine that is busy
SLACK = 5.0  # seconds beside the timeout
SILENT = r"the scheduler at tcp://\S+ does not answer\. .*resume=True"

STAGES = {
    "versions": Stage("distboost.runtime.cluster.versions:installed"),
    "limits": Stage("distboost.runtime.cluster.runtime:_spill_limit"),
    "scan": Stage("distboost.data.scan:scan_labels"),
    "bin": Stage("distboost.data.ingest:bin_rows"),
    "round": Stage("distboost.runtime.shard:Shard.update"),
    "write block": Stage("distboost.data.store.layout:StoredBlocks.write"),
    "query": Stage("distboost.active.pool_search:best_of_block"),
    "predict into": Stage("distboost.prediction.streamed:predict_into"),
    "evaluate": Stage("distboost.evaluation.sums:judge_part"),
}


def train(data, client, folder):
    fit(TRAININGS["long"], data, client, folder, worker_timeout=TIMEOUT)


def train_slowly(data, client, folder):
    """Messages go from the client to the workers, so rounds do not need the scheduler."""

    def fail() -> None:
        raise AssertionError("all rounds were trained without the scheduler")

    training = TRAININGS["long"]
    callbacks = [Slowly(1, lambda: False), at(training.make().n_estimators, fail)]
    fit(training, data, client, folder, worker_timeout=TIMEOUT, callbacks=callbacks)


def train_on_dask(data, client, folder):
    fit(TRAININGS["corrective"], data, client, folder, worker_timeout=TIMEOUT)


def train_on_numpy(data, client, folder):
    fit(TRAININGS["mm"], data, client, folder, worker_timeout=TIMEOUT)


def bin_into_store(data, client, folder):
    distboost.bin(data.x_url, data.y_url, str(folder / "binned"), client=client)


def query(data, client, folder):
    pool = zarr.open_array(data.x_url, mode="r")
    asked = learner(pool, committee(client=client, worker_timeout=TIMEOUT), strategy="entropy")
    asked.teach(range(40), data.y[:40])
    asked.query()


def predict_into(data, client, folder):
    writing.write_predictions(
        data.model, data.x_url, str(folder / "out"), proba=True, overwrite=False, client=client
    )


def evaluate(data, client, folder):
    confusion(data.model, data.x_url, data.y_url, client=client)


CASES = [
    (train, "versions"),
    (train, "limits"),
    (train, "scan"),
    (train, "bin"),
    (train, "round"),
    (train_on_dask, "scan"),
    (train_on_dask, "bin"),
    (train_on_numpy, "scan"),
    (bin_into_store, "write block"),
    (query, "query"),
    (predict_into, "predict into"),
    (evaluate, "evaluate"),
]
FREEZES = [
    (train, "versions"),
    (train, "scan"),
    (train_slowly, "round"),
    (query, "query"),
]


@pytest.fixture
def two(tmp_path):
    """Two workers and a scheduler, which are not needed afterwards."""
    workers = Workers(tmp_path)
    workers.restore(2)
    yield workers
    workers.close()


def ends(job, stage, what, two, data, folder) -> float:
    """The seconds from the scheduler's end to the error."""
    trap = Trap(2 if stage == "round" else 1, what=what, whom=two.scheduler.pid)
    two.client.run(traps.set_up, str(folder), STAGES, {stage: trap})
    with pytest.raises(ClusterError, match=SILENT):
        job(data, two.client, folder)
    ended = time.time()
    return ended - os.stat((folder / stage).with_suffix(".struck")).st_mtime


@pytest.mark.parametrize(("job", "stage"), CASES, ids=lambda each: getattr(each, "__name__", each))
def test_killed(job, stage, two, data, tmp_path):
    assert ends(job, stage, signal.SIGKILL, two, data, tmp_path) <= AT_ONCE


@pytest.mark.parametrize(("job", "stage"), FREEZES, ids=lambda each: getattr(each, "__name__", each))
def test_stopped(job, stage, two, data, tmp_path):
    assert ends(job, stage, signal.SIGSTOP, two, data, tmp_path) <= TIMEOUT + SLACK


@pytest.mark.parametrize(
    ("what", "job"),
    [
        (signal.SIGKILL, train),
        (signal.SIGKILL, bin_into_store),
        (signal.SIGSTOP, query),
    ],
)
def test_gone_before(what, job, two, data, tmp_path):
    os.kill(two.scheduler.pid, what)
    began = time.monotonic()
    with pytest.raises(ClusterError, match=SILENT):
        job(data, two.client, tmp_path)
    assert time.monotonic() - began <= TIMEOUT + SLACK


@pytest.mark.parametrize("what", [signal.SIGKILL, signal.SIGSTOP])
def test_gone_while_a_training_waits_for_workers(what, two, data, tmp_path, caplog):
    struck = []

    class Strike(logging.Filter):
        def filter(self, record):
            if "2 of 3 are there" in record.getMessage() and not struck:
                os.kill(two.scheduler.pid, what)
                struck.append(time.monotonic())
            return True

    strike = Strike()
    log = logging.getLogger("distboost")
    log.addFilter(strike)
    try:
        with caplog.at_level(logging.INFO, "distboost"), pytest.raises(ClusterError, match=SILENT):
            fit(TRAININGS["long"], data, two.client, tmp_path, worker_timeout=TIMEOUT, wait_for_workers=3)
    finally:
        log.removeFilter(strike)
    assert time.monotonic() - struck[0] <= (AT_ONCE if what == signal.SIGKILL else TIMEOUT + SLACK)


def test_a_closed_client(two, data, tmp_path):
    two.client.close()
    with pytest.raises(ClusterError, match=r"the given client is closed\. Connect a new one"):
        train(data, two.client, tmp_path)


def test_a_client_that_is_closed_meanwhile(two, data, tmp_path):
    def close(progress):
        if progress.round == 3:
            two.client.close()

    with pytest.raises(ClusterError, match=SILENT):
        fit(TRAININGS["long"], data, two.client, tmp_path, callbacks=[close])
