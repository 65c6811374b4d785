"""Workers come and go while a training run is under way."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from distboost import GDMCBoostClassifier
from distboost.runtime.cluster.monitor import REFRESH_INTERVAL
from tests.faults.crews import until
from tests.faults.rounds import Slowly, at, blocks_held
from tests.faults.trainings import TRAININGS, fit

pytestmark = pytest.mark.timeout(60)

TRAINING = TRAININGS["long"]


@pytest.fixture(scope="module")
def expected(data, tmp_path_factory):
    return fit(TRAINING, data, None, tmp_path_factory.mktemp("expected"))


@pytest.fixture
def trained(workers, data, tmp_path, caplog):
    """trained(callbacks): the model's file, and what was logged."""

    def run(*callbacks, **how) -> tuple[bytes, str]:
        with caplog.at_level(logging.INFO, "distboost"):
            content = fit(TRAINING, data, workers.client, tmp_path, callbacks=callbacks, **how)
        return content, caplog.text

    return run


def holds(workers, *names) -> bool:
    """Whether these workers hold blocks."""
    there, held = workers.there(), blocks_held(workers.client)
    return all(held.get(there.get(name, ""), 0) for name in names)


def test_a_worker_that_joins_gets_blocks(workers, expected, trained):
    workers.restore(2)
    new = []
    joined = Slowly(6, lambda: holds(workers, *new))
    content, log = trained(at(5, lambda: new.extend(workers.begin())), joined)
    assert content == expected
    assert joined.done
    assert "1 workers have joined" in log
    assert "is lost" not in log


def test_a_training_begins_with_as_many_workers_as_it_waits_for(workers, expected, trained, caplog):
    workers.restore(1)

    class Come(logging.Filter):
        def filter(self, record):
            if "1 of 3 are there" in record.getMessage():
                workers.begin(2)
            return True

    come = Come()
    logging.getLogger("distboost").addFilter(come)
    try:
        content, log = trained(wait_for_workers=3)
    finally:
        logging.getLogger("distboost").removeFilter(come)
    assert content == expected
    assert "training on 3 Dask workers with 3 threads" in log
    assert "have joined" not in log


def test_a_worker_that_retires_hands_its_blocks_over(three, expected, trained):
    address = three.there().popitem()[1]

    def retire() -> None:
        three.client.retire_workers([address])
        assert address not in three.there().values()
        time.sleep(1.5 * REFRESH_INTERVAL)  # the training has seen it by then

    content, log = trained(at(5, retire))
    assert content == expected
    assert f"worker {address} leaves: its 4 blocks go to the others" in log
    assert "is lost" not in log


def test_a_worker_whose_lifetime_ends(workers, expected, trained):
    """It may be gone before the training sees it go: then it is lost like any other."""
    workers.restore(2)
    new = []
    held = Slowly(6, lambda: holds(workers, *new))
    left = Slowly(6, lambda: held.done and new[0] not in workers.there())
    content, _ = trained(at(5, lambda: new.extend(workers.begin(lifetime="4s"))), held, left)
    assert content == expected
    assert held.done
    assert left.done


def test_a_cluster_that_shrinks_and_grows(three, expected, trained):
    """From three workers to one, and to three again: one dies, one retires, two come."""
    first, second, third = three.alive()
    new = []
    retired = Slowly(11, lambda: second not in three.there())
    grown = Slowly(31, lambda: holds(three, third, *new))
    content, log = trained(
        at(5, lambda: three.kill(first)),
        at(10, lambda: three.client.retire_workers([three.there()[second]])),
        retired,
        at(30, lambda: new.extend(three.begin(2))),
        grown,
    )
    assert content == expected
    assert retired.done
    assert grown.done
    assert "is lost at" in log


@pytest.mark.parametrize("n", [1, pytest.param(3, marks=pytest.mark.soak)])
def test_all_workers_are_replaced(n, three, expected, trained):
    """For a moment nobody holds a row."""

    def replace() -> None:
        for name in three.alive():
            three.kill(name)
        three.begin(n)

    before = {*three.alive()}
    content, _ = trained(at(20, replace))
    assert content == expected
    assert not before & {*three.alive()}


def waits_for(gate: str, nth: int, chunk: np.ndarray) -> np.ndarray:
    """The chunk; where it is computed for the nth time, when the gate has been opened."""
    name = hashlib.sha256(chunk.tobytes()).hexdigest()
    Path(gate, f"{name}-{uuid.uuid4().hex}").touch()
    if len(list(Path(gate).glob(f"{name}-*"))) == nth:
        Path(gate, "reached").touch()
        until(Path(gate, "open").exists, "the gate is open")
    return chunk


@pytest.mark.parametrize(
    ("which", "nth"), [("y", 1), ("X", 1), ("X", 2)], ids=["labels", "features", "placing"]
)
def test_a_moment_without_workers(which, nth, workers, data, tmp_path):
    """Dask never gives the tasks of that moment to workers that come later, though they may run anywhere."""
    workers.restore(1)
    found = dict(zip(("X", "y"), data.of("dask"), strict=True))
    found[which] = found[which].map_blocks(partial(waits_for, str(tmp_path), nth), meta=found[which]._meta)

    def replace() -> None:
        until((tmp_path / "reached").exists, "a chunk is computed")
        workers.kill(workers.alive()[0])
        until(lambda: not workers.there(), "the scheduler knows")
        (tmp_path / "open").touch()
        workers.begin()

    model = GDMCBoostClassifier(calibration=None, n_estimators=3, worker_timeout=5.0)
    model.client = workers.client
    other = threading.Thread(target=replace)
    other.start()
    model.fit(*found.values())
    other.join()
    alone = GDMCBoostClassifier(calibration=None, n_estimators=3, n_jobs=1).fit(data.X, data.y)
    model.save(tmp_path / "there")
    alone.save(tmp_path / "alone")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "alone").read_bytes()
