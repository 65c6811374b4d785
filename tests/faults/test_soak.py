"""Workers die all the time. The seed in a test's name decides which and when: give it to pytest -k to see a run again."""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager

import pytest

from tests.faults.crews import Workers
from tests.faults.trainings import TRAININGS, Data, fit

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

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


@pytest.mark.parametrize("seed", range(10), ids="seed-{}".format)
def test_workers_die_all_the_time(seed, three, many, expected, tmp_path):
    with hunted(three, random.Random(seed)) as killed:
        content = fit(TRAININGS["soak"], many, three.client, tmp_path)
    print(f"seed {seed}: {len(killed)} of three workers died, and were replaced")
    assert content == expected
    assert killed
