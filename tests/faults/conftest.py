"""Few clusters, since starting them takes seconds: each module has one, whose dead workers are replaced before each test."""

from __future__ import annotations

import pytest

from distboost.data import ingest
from distboost.training import memory_plan as plan
from tests.faults import traps
from tests.faults.crews import Workers
from tests.faults.trainings import BLOCK, Data


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    """Blocks of a few rows, so that each worker has several; the libraries count for nothing in a worker's memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "BLOCK_ROWS", BLOCK)
        patch.setattr(plan, "WORKER_BYTES", 0)
        patch.setattr(plan._Planner, "leader", lambda *_: ())  # it has libraries
        yield


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return Data(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    found = Workers(tmp_path_factory.mktemp("workers"))
    yield found
    found.close()


@pytest.fixture
def three(workers):
    """Three workers that are well, and as the product made them."""
    workers.restore(3)
    workers.client.run(traps.take_down)
    return workers
