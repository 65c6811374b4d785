"""Workers are lost while they exchange histograms: what they have sent may have reached some owners and not others."""

from __future__ import annotations

import logging
import re
import signal
from functools import partial

import pytest

from distboost.runtime.cluster import owners
from tests.faults import traps
from tests.faults.rounds import at
from tests.faults.trainings import TRAININGS, fit
from tests.faults.traps import Stage, Trap

pytestmark = pytest.mark.timeout(60)

TIMEOUT = 3.0
EXCHANGE = "distboost.runtime.cluster.exchange:Exchange"
STAGES = {
    "attempt begins": Stage(f"{EXCHANGE}.begin"),
    "rows are summed": Stage(f"{EXCHANGE}.contribute"),
    "a piece is made": Stage(f"{EXCHANGE}.piece"),
    "a piece is added": Stage(f"{EXCHANGE}.receive"),
    "splits are searched": Stage(f"{EXCHANGE}.answers"),
}
LOST = r"worker tcp://\S+ is lost at '(histogram|update)' of round \d+"


@pytest.fixture(autouse=True)
def owned_by_workers(monkeypatch):
    """However small the histograms are."""
    monkeypatch.setattr(owners, "exchange_pays", lambda n_bytes, n_workers: n_workers > 1)


@pytest.fixture(scope="module")
def expected(data, tmp_path_factory):
    return {
        name: fit(TRAININGS[name], data, None, tmp_path_factory.mktemp("expected"))
        for name in ("gd", "long", "corrective")
    }


@pytest.fixture(scope="module")
def calls(workers, data, tmp_path_factory):
    """The calls of each stage in an undisturbed training."""
    folder = tmp_path_factory.mktemp("undisturbed")
    workers.restore(3)
    workers.client.run(traps.set_up, str(folder), STAGES, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owners, "exchange_pays", lambda n_bytes, n_workers: n_workers > 1)
        fit(TRAININGS["gd"], data, workers.client, folder)
    return {stage: traps.counted(folder, stage) for stage in STAGES}


# (stage, after how many calls or which part of all, whether its work is done)
MOMENTS = [
    ("a piece is made", 5, True),  # some owners have its pieces of the first tree, and others not
    ("a piece is added", 0.5, False),
]
OTHER_MOMENTS = [
    ("splits are searched", 2, True),
    ("attempt begins", 2, False),
    ("rows are summed", 0.5, True),
    ("a piece is made", 0.5, True),
    ("a piece is added", 5, True),
    ("splits are searched", 0.5, False),
]
MOMENTS += [pytest.param(*moment, marks=pytest.mark.soak) for moment in OTHER_MOMENTS]


@pytest.mark.parametrize(("stage", "moment", "after"), MOMENTS)
def test_killed(stage, moment, after, three, calls, expected, data, tmp_path, caplog):
    number = moment if isinstance(moment, int) else int(moment * calls[stage])
    three.client.run(traps.set_up, str(tmp_path), STAGES, {stage: Trap(number, after)})
    assert fit(TRAININGS["gd"], data, three.client, tmp_path) == expected["gd"]
    [dead] = traps.struck(tmp_path, stage)
    assert three.exit_of(dead) == -signal.SIGKILL
    assert re.search(LOST, caplog.text)


@pytest.mark.parametrize("moment", [pytest.param(4, marks=pytest.mark.soak), 0.5])
def test_an_owner_is_stopped(moment, three, calls, expected, data, tmp_path, caplog):
    """In the middle of an exchange: the others wait no longer than `worker_timeout`."""
    stage = "a piece is added"
    number = moment if isinstance(moment, int) else int(moment * calls[stage])
    three.client.run(traps.set_up, str(tmp_path), STAGES, {stage: Trap(number, what=signal.SIGSTOP)})
    try:
        assert fit(TRAININGS["gd"], data, three.client, tmp_path, worker_timeout=TIMEOUT) == expected["gd"]
    finally:
        for name in three.alive():
            three.signal(name, signal.SIGCONT)
    assert f"(no response for {TIMEOUT:g} s)" in caplog.text


def test_an_owner_retires(three, expected, data, tmp_path, caplog):
    """Between two levels of a tree: another worker sums the histograms of its features again."""
    begun = []

    def retire() -> None:
        three.client.retire_workers([next(iter(three.there().values()))])
        begun.append(True)

    with caplog.at_level(logging.INFO, "distboost"):
        content = fit(TRAININGS["long"], data, three.client, tmp_path, callbacks=[at(10, retire)])
    assert content == expected["long"]
    assert begun


def test_two_workers_cannot_reach_each_other(three, expected, data, tmp_path, caplog):
    """One of them is treated as lost until the tree is complete; then the coordinator, which reaches both, adds histograms."""
    first, second, _ = three.there().values()
    three.client.run(_cut, second, workers=[first])
    assert fit(TRAININGS["gd"], data, three.client, tmp_path) == expected["gd"]
    assert (
        f"worker {second} is lost at 'histogram' of round 1 (another worker cannot reach it)" in caplog.text
    )


def _cut(address: str, dask_worker=None) -> None:
    """Let connections from this worker to another one fail."""
    pool = dask_worker.rpc
    connect = pool.connect

    async def refuse(other, *arguments, **options):
        if other == address:
            raise OSError(f"no route to {address}")
        return await connect(other, *arguments, **options)

    pool.connect = refuse


@pytest.mark.soak
@pytest.mark.parametrize("name", ["corrective"])
def test_joined(name, three, expected, data, tmp_path):
    """A worker that joins owns features from the next tree on."""
    callbacks = [at(1, partial(three.begin, 1))]
    assert fit(TRAININGS[name], data, three.client, tmp_path, callbacks=callbacks) == expected[name]
