"""A worker dies at every stage of a training run, of binning and of prediction."""

from __future__ import annotations

import re
import signal
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import distboost
from distboost import load
from distboost.estimators import writing
from distboost.model import checkpoint
from distboost.runtime.cluster import monitor
from distboost.runtime.cluster.runtime import ClusterRuntime
from tests.faults import traps
from tests.faults.crews import until
from tests.faults.stages import WORK
from tests.faults.trainings import TRAININGS, Data, fit
from tests.faults.traps import Trap

pytestmark = pytest.mark.timeout(60)

LOST = r"worker tcp://\S+ is lost at '\w+' of round \d+"
SLACK = 10.0  # seconds that a recovery may take, beside the undisturbed time once more

OF_TASKS = {"scan", "sample", "write labels", "write block", "predict", "predict into"}


def train(name: str, data: Data, client, folder: Path) -> bytes:
    return fit(TRAININGS[name], data, client, folder)


def bin_into_store(data: Data, client, folder: Path) -> dict[str, bytes]:
    distboost.bin(data.x_url, data.y_url, str(folder), client=client)
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def predict(data: Data, client, folder: Path) -> bytes:
    X, _ = data.of("dask")
    return client.compute(data.model.scores(X)).result(timeout=50).tobytes()


def predict_into(data: Data, client, folder: Path) -> bytes:
    out = writing.write_predictions(
        data.model, data.x_url, str(folder), proba=True, overwrite=False, client=client
    )
    return out[:].tobytes()


JOBS = {
    **{name: partial(train, name) for name in TRAININGS},
    "store": bin_into_store,
    "predict": predict,
    "predict into": predict_into,
}
CASES = [
    ("gd", "scan"),
    ("gd", "sample"),
    ("gd", "bin"),
    ("gd", "histogram"),
    ("gd", "split"),
    ("gd", "leaf sums"),
    ("gd", "update"),
    ("gd", "evaluate"),
    pytest.param("compressed", "histogram", marks=pytest.mark.soak),
    ("by weight", "histogram"),
    pytest.param("by weight", "leaf sums", marks=pytest.mark.soak),
    pytest.param("by weight", "update", marks=pytest.mark.soak),
    ("streaming", "load"),
    ("streaming", "histogram"),
    pytest.param("streaming", "update", marks=pytest.mark.soak),
    ("mm", "bin"),
    ("corrective", "bin"),
    ("pairs", "histogram"),
    pytest.param("codes", "histogram", marks=pytest.mark.soak),
    pytest.param("labels", "update", marks=pytest.mark.soak),
    pytest.param("class steps", "leaf sums", marks=pytest.mark.soak),
    ("logistic", "leaf sums"),
    pytest.param("logistic directions", "leaf sums", marks=pytest.mark.soak),
    ("corrective", "update"),
    ("similarities", "leaf sums"),
    ("store", "write labels"),
    ("store", "write block"),
    ("predict", "predict"),
    ("predict into", "predict into"),
]
MOMENTS = [
    pytest.param(position, after, marks=() if (position, after) == ("middle", True) else pytest.mark.soak)
    for position in ("first", "middle", "last")
    for after in (False, True)
]


@dataclass
class Undisturbed:
    """What a job comes to if nobody dies."""

    content: object
    seconds: float
    calls: dict[str, int]


@pytest.fixture(scope="module")
def undisturbed(workers, data, tmp_path_factory):
    """undisturbed(job), which is run once."""

    @lru_cache
    def run(job: str) -> Undisturbed:
        folder = tmp_path_factory.mktemp("undisturbed")
        workers.client.run(traps.set_up, str(folder), WORK, {})
        began = time.monotonic()
        content = JOBS[job](data, workers.client, folder / "out")
        seconds = time.monotonic() - began
        return Undisturbed(content, seconds, {stage: traps.counted(folder, stage) for stage in WORK})

    return run


@pytest.mark.parametrize(("position", "after"), MOMENTS)
@pytest.mark.parametrize(("job", "stage"), CASES)
def test_killed(job, stage, position, after, three, undisturbed, data, tmp_path, caplog):
    """The work is done by the others, of which nothing can be seen in what comes of it."""
    expected = undisturbed(job)
    n_calls = expected.calls[stage]
    assert n_calls > 0
    number = {"first": 1, "middle": (n_calls + 1) // 2, "last": n_calls}[position]
    three.client.run(traps.set_up, str(tmp_path), WORK, {stage: Trap(number, after)})
    began = time.monotonic()
    assert JOBS[job](data, three.client, tmp_path / "out") == expected.content
    seconds = time.monotonic() - began
    [dead] = traps.struck(tmp_path, stage)
    assert three.exit_of(dead) == -signal.SIGKILL
    if stage in OF_TASKS:  # Dask has done again what died
        assert traps.counted(tmp_path, stage) > n_calls
    else:
        assert re.search(LOST, caplog.text)
    assert seconds <= 2 * expected.seconds + SLACK


@pytest.mark.parametrize(
    "number", [pytest.param(1, marks=pytest.mark.soak), 2, pytest.param(3, marks=pytest.mark.soak)]
)
def test_killed_while_a_checkpoint_is_written(
    number, three, undisturbed, data, tmp_path, monkeypatch, caplog
):
    """The training goes on, and its last checkpoint is the model."""
    expected = undisturbed("gd")
    written, publish = count(1), checkpoint.publish

    def kill_and_publish(*arguments) -> None:
        if next(written) == number:
            three.kill(three.alive()[0])
        publish(*arguments)

    monkeypatch.setattr(checkpoint, "publish", kill_and_publish)
    kept = {"checkpoint": tmp_path / "checkpoint", "checkpoint_every": 2}
    began = time.monotonic()
    assert fit(TRAININGS["gd"], data, three.client, tmp_path, **kept) == expected.content
    assert time.monotonic() - began <= 2 * expected.seconds + SLACK
    load(tmp_path / "checkpoint").save(tmp_path / "last")
    assert (tmp_path / "last").read_bytes() == expected.content
    assert next(written) > 4
    assert re.search(LOST, caplog.text)


def test_numpy_arrays_for_a_worker_that_is_gone(three, monkeypatch):
    """The scheduler knows that it is gone, and this process not yet: the others take what was meant for it."""
    monkeypatch.setattr(monitor, "REFRESH_INTERVAL", 60.0)
    runtime = ClusterRuntime(three.client)
    try:
        gone = three.alive()[0]
        three.kill(gone)
        until(lambda: gone not in three.there(), "the scheduler knows")
        assert runtime.map(np.sum, [(np.full(5, n),) for n in range(12)], at_once=2) == [
            5 * n for n in range(12)
        ]
    finally:
        runtime.close()
