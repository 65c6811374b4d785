"""A worker that is stopped, not dead: its connections stay open, and it may go on at any time."""

from __future__ import annotations

import logging
import signal
import time

import numpy as np
import pytest
import zarr

import distboost
from tests.faults import traps
from tests.faults.crews import until
from tests.faults.rounds import Slowly, at, blocks_held
from tests.faults.trainings import TRAININGS, fit
from tests.faults.traps import Stage, Trap

pytestmark = pytest.mark.timeout(60)

TIMEOUT = 3.0
SLACK = 10.0  # seconds beside the undisturbed time and the timeout

STAGES = {
    "scan": Stage("distboost.data.scan:scan_labels"),
    "sample": Stage("distboost.data.scan:scan_features"),
    "bin": Stage("distboost.data.ingest:bin_rows"),
    "write block": Stage("distboost.data.store.layout:StoredBlocks.write"),
}


@pytest.fixture(scope="module")
def expected(data, tmp_path_factory):
    return {
        name: fit(TRAININGS[name], data, None, tmp_path_factory.mktemp("expected"))
        for name in ("long", "mm", "corrective")
    }


@pytest.mark.parametrize(
    "timeout", [TIMEOUT, pytest.param(30.0, marks=[pytest.mark.soak, pytest.mark.timeout(180)])]
)
def test_stopped_in_training(timeout, three, expected, data, tmp_path, caplog):
    """It goes on while the training does: what it says late is not heard, and then it takes part again."""
    name, address = three.there().popitem()
    back = Slowly(31, lambda: blocks_held(three.client).get(address))
    callbacks = [
        at(10, lambda: three.signal(name, signal.SIGSTOP)),
        at(30, lambda: three.signal(name, signal.SIGCONT)),
        back,
    ]
    with caplog.at_level(logging.WARNING, "distboost"):
        content = fit(
            TRAININGS["long"], data, three.client, tmp_path, callbacks=callbacks, worker_timeout=timeout
        )
    assert content == expected["long"]
    assert back.done
    assert (
        f"worker {address} is lost at 'histogram' of round 11 (no response for {timeout:g} s)" in caplog.text
    )
    assert caplog.text.count("is lost") == 1


IN_INGEST = [
    ("long", "sample"),
    ("long", "bin"),
    ("corrective", "bin"),
    pytest.param("long", "scan", marks=pytest.mark.soak),
    pytest.param("mm", "bin", marks=pytest.mark.soak),
    pytest.param("corrective", "sample", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("training", "stage"), IN_INGEST)
def test_stopped_in_ingest(training, stage, three, expected, data, tmp_path, caplog):
    three.client.run(traps.set_up, str(tmp_path), STAGES, {stage: Trap(1, what=signal.SIGSTOP)})
    began = time.monotonic()
    content = fit(TRAININGS[training], data, three.client, tmp_path, worker_timeout=TIMEOUT)
    seconds = time.monotonic() - began
    assert content == expected[training]
    assert len(traps.struck(tmp_path, stage)) == 1
    assert "was lost" in caplog.text or "is lost" in caplog.text
    assert seconds <= 2 * TIMEOUT + SLACK


# Not the last call: how many there are differs from run to run.
@pytest.mark.parametrize("part", [0.0, 0.5], ids=["first", "middle"])
def test_stopped_in_a_chunk_of_many_blocks(part, three, data, tmp_path):
    """Others wait for the chunk too, and Dask leaves it where it is for minutes."""
    training, stages = TRAININGS["tall chunks"], {"chunk": Stage("tests.faults.trainings:as_it_is")}
    three.client.run(traps.set_up, str(tmp_path / "undisturbed"), stages, {})
    (tmp_path / "undisturbed").mkdir()
    undisturbed = fit(training, data, three.client, tmp_path, worker_timeout=TIMEOUT)
    number = 1 + round(part * (traps.counted(tmp_path / "undisturbed", "chunk") - 1))
    three.client.run(traps.set_up, str(tmp_path), stages, {"chunk": Trap(number, what=signal.SIGSTOP)})
    began = time.monotonic()
    content = fit(training, data, three.client, tmp_path, worker_timeout=TIMEOUT)
    assert time.monotonic() - began <= 2 * TIMEOUT + SLACK
    assert content == undisturbed
    assert len(traps.struck(tmp_path, "chunk")) == 1


@pytest.mark.soak
@pytest.mark.timeout(180)
def test_stopped_while_it_writes_a_block(three, data, tmp_path):
    """With the default timeout. When it goes on, it writes the same bytes again."""
    three.client.run(traps.set_up, str(tmp_path), STAGES, {"write block": Trap(2, what=signal.SIGSTOP)})
    store = distboost.bin(data.x_url, data.y_url, str(tmp_path / "store"), max_bins=16, client=three.client)
    [stopped] = [name for name in three.alive() if three.pid(name) in traps.struck(tmp_path, "write block")]
    three.signal(stopped, signal.SIGCONT)
    until(lambda: three.client.run(traps.take_down), "all workers are well")
    for name in ("bins", "labels", "weights"):
        here, there = (zarr.open_array(f"{url}/{name}", mode="r")[:] for url in (store, data.store))
        np.testing.assert_array_equal(here, there)
