"""Workers die all the time. The seed in a test's name decides which and when: give it to pytest -k to see a run again.

Any part of the seeds by themselves: ``python -m pytest tests/faults/test_soak.py -m "soak or not soak" -s -k "seed-1"``.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import contextmanager
from functools import cache, partial

import pytest
from distributed import Client

from distboost import AdaBoostMMClassifier, GAMBLEClassifier, GDMCBoostClassifier, REBELClassifier
from distboost.baselines import MultiBoostClassifier
from distboost.errors import ClusterError
from tests.faults.crews import Workers
from tests.faults.misfortune import struck
from tests.faults.processes import Processes
from tests.faults.trainings import STREAMING, TRAININGS, Data, Training, fit, fit_alone, fit_freely

ROWS = 160_000
BETWEEN = 4.0  # seconds between two deaths, on average


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return Data(tmp_path_factory.mktemp("many"), ROWS)


@pytest.fixture(scope="module")
def expected(many, tmp_path_factory):
    return fit(TRAININGS["soak"], many, None, tmp_path_factory.mktemp("expected"))


@contextmanager
def hunted(workers: Workers, chance: random.Random):
    """Kills one of the workers now and then; another comes in its place. Gives those killed so far."""
    over, killed = threading.Event(), []

    def hunt() -> None:
        while not over.wait(chance.expovariate(1 / BETWEEN)):
            name = chance.choice(workers.alive())
            workers.kill(name)
            killed.append(name)
            workers.begin()

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        yield killed
    finally:
        over.set()
        hunter.join(10)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(10), ids="seed-{}".format)
def test_workers_die_all_the_time(seed, three, many, expected, tmp_path):
    with hunted(three, random.Random(seed)) as killed:
        content = fit(TRAININGS["soak"], many, three.client, tmp_path)
    print(f"seed {seed}: {len(killed)} of three workers died, and were replaced")
    assert content == expected
    assert killed


PAUSE = 0.05  # seconds from round to round, in which something may happen
SHORT = 3.0  # seconds without a sign of life
FEW = (6,)  # seeds of every test run


def resident(make, kind: str, **options) -> Training:
    return Training(partial(make, calibration=None, **options), kind)


def streamed(make, limit: int = STREAMING, **options) -> Training:
    return Training(partial(make, calibration=None, **options), "store", options={"memory_limit": limit})


MANY = [
    resident(GDMCBoostClassifier, "zarr", n_estimators=40, max_depth=3, subsample=0.8),
    resident(AdaBoostMMClassifier, "numpy", n_estimators=40, max_depth=2),
    resident(MultiBoostClassifier, "dask", n_estimators=8),
    resident(REBELClassifier, "zarr", n_estimators=8, weak_learner="similarity", max_candidates=4),
    resident(GAMBLEClassifier, "dask", n_estimators=40, max_leaf_nodes=4),
    streamed(GDMCBoostClassifier, n_estimators=25, max_depth=3, max_bins=16),
    streamed(AdaBoostMMClassifier, n_estimators=25, max_depth=2, max_bins=16),
    streamed(MultiBoostClassifier, n_estimators=5, max_bins=16),
    streamed(REBELClassifier, 230_000, n_estimators=25, max_depth=2, max_bins=16),
    streamed(GAMBLEClassifier, 100_000, n_estimators=25, max_leaf_nodes=4, max_bins=16),
]


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    found = Processes(tmp_path_factory.mktemp("processes"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory):
    """undisturbed(number): the model's file of that training, which is run once."""
    return cache(lambda number: fit_alone(MANY[number], data, tmp_path_factory.mktemp("undisturbed")))


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[] if seed in FEW else pytest.mark.soak) for seed in range(200)],
    ids="seed-{}".format,
)
def test_whatever_happens(seed, processes, undisturbed, data, tmp_path):
    """The model is that of the undisturbed training, or there is one error of ours: killed, stopped, retired, restarted, .."""
    number = seed % len(MANY)
    expected = undisturbed(number)
    processes.restore(3)
    began = time.monotonic()
    with Client(processes.client.scheduler.address, set_as_default=False) as client:
        with struck(processes, seed) as story:
            try:
                content, streams = fit_freely(
                    MANY[number], data, client, tmp_path,
                    callbacks=[lambda progress: time.sleep(PAUSE)], worker_timeout=SHORT,
                )  # fmt: skip
            except ClusterError as error:
                content, outcome = expected, str(error)
            else:
                outcome = f"the model, {'streamed' if streams else 'in memory'}"
        print(f"\nseed {seed}: {outcome}, after {time.monotonic() - began:.1f} s: {', '.join(story)}")
    assert content == expected
