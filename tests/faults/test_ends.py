"""What no other worker can make good ends with one error, in time, that says what happened and what to do."""

from __future__ import annotations

import signal
import time

import pytest
from distributed import WorkerPlugin

from distboost.errors import ClusterError, StoreError, WorkerError
from distboost.runtime.block import Key
from distboost.runtime.cluster import crew, monitor
from tests.faults import traps
from tests.faults.crews import replaced
from tests.faults.rounds import at
from tests.faults.trainings import TRAININGS, fit
from tests.faults.traps import Stage, Trap

pytestmark = pytest.mark.timeout(60)

TRAINING = TRAININGS["long"]
TIMEOUT = 3.0
SLACK = 10.0


@pytest.fixture
def lost():
    """lost(do) is a callback's work that notes when it was done: in lost.when."""

    class Lost:
        def __call__(self, do):
            def work() -> None:
                do()
                self.when = time.monotonic()

            return work

    return Lost()


@pytest.mark.parametrize("when", ["in a round", "in the scan"])
def test_all_workers_die(when, three, lost, data, tmp_path, monkeypatch):
    monkeypatch.setattr(monitor, "WORKERS_DEADLINE", TIMEOUT)

    def kill_all() -> None:
        for name in three.alive():
            three.kill(name)

    stage = Stage("distboost.data.scan:scan_features")
    callbacks = [at(10, lost(kill_all))]
    if when == "in the scan":
        three.client.run(traps.set_up, str(tmp_path), {"sample": stage}, {"sample": Trap(0)})
        callbacks, lost.when = [], time.monotonic()
    with pytest.raises(
        ClusterError, match=r"the scheduler at tcp://\S+ had no worker within 3 s. Start workers: dask worker"
    ):
        fit(TRAINING, data, three.client, tmp_path, callbacks=callbacks, worker_timeout=TIMEOUT)
    assert time.monotonic() - lost.when <= TIMEOUT + SLACK


class Poison(WorkerPlugin):
    """Whoever bins a row dies, also those who come later."""

    name = "poison"

    def __init__(self, folder: str, stages: dict[str, Stage], traps: dict[str, Trap]):
        self.laid = folder, stages, traps

    def setup(self, worker) -> None:
        traps.set_up(*self.laid)


@pytest.mark.parametrize("stage", ["bin", "sample"])
def test_a_block_that_kills_everyone_who_takes_it(stage, three, data, tmp_path):
    """Not for ever: a few workers are lost, then there is an error."""
    stages = {
        "bin": Stage("distboost.data.ingest:bin_rows"),
        "sample": Stage("distboost.data.scan:scan_features"),
    }
    three.client.register_plugin(Poison(str(tmp_path), stages, {stage: Trap(0)}))
    try:
        with (
            replaced(three, 3),
            pytest.raises(ClusterError, match=r"lost .*Check the workers' logs: they may run out of memory"),
        ):
            fit(TRAINING, data, three.client, tmp_path)
    finally:
        three.restore(0)
        three.client.unregister_worker_plugin("poison")
    assert len(traps.struck(tmp_path, stage)) <= 3 * crew.MOST_RECENT_LOSSES
    assert all(three.exit_of(dead) == -signal.SIGKILL for dead in traps.struck(tmp_path, stage))


KERNELS = {
    "histogram": Stage("distboost.runtime.parts:StoredPart.begin"),
    "update": Stage("distboost.weights.margin:MarginWeights.risk"),
    "take": Stage("distboost.data.ingest:bin_rows"),
}


NOUGHT = ZeroDivisionError("nought"), WorkerError, "ZeroDivisionError: nought .*See the worker's log."
TOO_MUCH = (
    MemoryError("too much"),
    WorkerError,
    "MemoryError: too much .*start it with more memory, or set a memory_limit",
)
GONE = (
    StoreError("rows 0 to 9 are gone.", remedy="Bin again."),
    StoreError,
    r"rows 0 to 9 are gone \(at .*\)\. Bin again",
)


@pytest.mark.parametrize(
    ("stage", "what", "kind", "message"),
    [
        ("histogram", *NOUGHT),
        ("update", *NOUGHT),
        ("take", *NOUGHT),
        ("histogram", *TOO_MUCH),
        ("take", *GONE),
    ],
)
def test_an_exception_on_a_worker(stage, what, kind, message, three, data, tmp_path):
    """It would be the same on any other: the training ends, and the error says where."""
    address = three.there().popitem()[1]
    three.client.run(traps.set_up, str(tmp_path), KERNELS, {stage: Trap(0, what=what)}, workers=[address])
    with pytest.raises(kind, match=message) as caught:
        fit(TRAINING, data, three.client, tmp_path)
    assert (caught.value.stage, caught.value.worker) == (stage, address)
    assert isinstance(caught.value.block, Key) or stage == "histogram"
    assert f"at '{stage}'" in str(caught.value)
    assert str(caught.value).count(address) == 1


def test_an_error_of_a_store_in_a_task(three, data, tmp_path):
    """It says on which worker it was met: it may be the disk of that machine."""
    address = three.there().popitem()[1]
    stage, gone = (
        Stage("distboost.data.scan:scan_features"),
        StoreError("rows 0 to 9 are gone.", remedy="Bin again."),
    )
    three.client.run(
        traps.set_up, str(tmp_path), {"sample": stage}, {"sample": Trap(0, what=gone)}, workers=[address]
    )
    with pytest.raises(
        StoreError, match=rf"^rows 0 to 9 are gone \(on worker {address}\)\. Bin again\.$"
    ) as caught:
        fit(TRAINING, data, three.client, tmp_path)
    assert caught.value.worker == address
