"""A worker dies while the pool is scored: its blocks are scored by the others."""

from __future__ import annotations

import signal

import pytest

from tests.active.sessions import FORMS, committee, learner
from tests.faults import traps
from tests.faults.crews import Workers
from tests.faults.traps import Stage, Trap

STAGES = {
    "score": Stage("distboost.active.pool_search:best_of_block"),
    "take": Stage("distboost.active.pool:_load_rows"),  # the values of rows that were taught
}


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    found = Workers(tmp_path_factory.mktemp("workers"))
    yield found
    found.close()


def rows_of(problem, pool, client) -> list[int]:
    """Of a query, after 40 rows were taught."""
    _, y = problem
    found = learner(pool, committee(client=client), strategy="entropy")
    found.teach(range(40), y[:40])
    return found.query().tolist()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("form", "stage"), [("zarr, both cut", "score"), ("dask", "score"), ("zarr, few rows", "take")]
)
def test_the_same_rows(form, stage, after, workers, problem, small_blocks, tmp_path):
    pool = FORMS[form](problem[0], tmp_path)
    expected = rows_of(problem, problem[0], None)
    workers.restore(2)
    workers.client.run(traps.set_up, str(tmp_path), STAGES, {stage: Trap(4, after)})
    assert rows_of(problem, pool, workers.client) == expected
    [dead] = traps.struck(tmp_path, stage)
    assert workers.exit_of(dead) == -signal.SIGKILL
    assert traps.counted(tmp_path, stage) >= 6
