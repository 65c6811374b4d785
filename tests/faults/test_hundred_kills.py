"""A hundred workers are killed during twenty trainings.

The seed in a test's name decides what is trained, when workers are killed, and which ones.
``python -m pytest tests/faults/test_hundred_kills.py -m soak -s -k "seed-1"`` shows a part of them.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import defaultdict
from functools import cache, partial
from pathlib import Path

import pytest
from distributed import WorkerPlugin

from distboost import (
    AdaBoostMMClassifier,
    CDMCBoostClassifier,
    GAMBLEClassifier,
    GDMCBoostClassifier,
    Progress,
    REBELClassifier,
)
from distboost.baselines import AdaBoostMOClassifier, MultiBoostClassifier
from tests.faults import traps
from tests.faults.crews import replaced, until
from tests.faults.stages import STAGES, WORK, exchange
from tests.faults.trainings import STREAMING, Training, fit_alone, fit_freely
from tests.faults.traps import Trap

N_WORKERS, N_TRAININGS, KILLS = 4, 20, 5  # kills in each run
# Moments drawn for them, the first of which come about: the last calls may not, as fewer workers send fewer pieces.
MOMENTS, PART = 14, 0.7

# Before a training run begins there is nothing to lose: scans are done again, as test_killed.py shows.
EVERYWHERE = {name: stage for name, stage in WORK.items() if name not in ("scan", "sample")} | STAGES


def resident(make, kind: str, **options) -> Training:
    return Training(partial(make, calibration=None, **options), kind)


def streamed(make, **options) -> Training:
    return Training(
        partial(make, calibration=None, max_bins=16, **options), "store", options={"memory_limit": STREAMING}
    )


MANY = [
    resident(GDMCBoostClassifier, "zarr", n_estimators=12, max_depth=4, subsample=0.8),
    resident(CDMCBoostClassifier, "numpy", n_estimators=12, max_depth=3, max_features=0.5, random_state=1),
    resident(AdaBoostMMClassifier, "dask", n_estimators=12, max_depth=3),
    resident(GAMBLEClassifier, "zarr", n_estimators=10, max_leaf_nodes=6),
    resident(REBELClassifier, "dask", n_estimators=6, max_depth=2),
    resident(REBELClassifier, "zarr", n_estimators=6, weak_learner="similarity", max_candidates=4),
    resident(MultiBoostClassifier, "zarr", n_estimators=6),
    resident(AdaBoostMOClassifier, "numpy", n_estimators=8, max_depth=2),
    streamed(GDMCBoostClassifier, n_estimators=12, max_depth=3),
    streamed(AdaBoostMMClassifier, n_estimators=12, max_depth=2),
]


class Fate(WorkerPlugin):
    """Traps for all workers, also those that come later. Each notes that it is there."""

    name = "fate"

    def __init__(self, folder: Path, laid: dict[str, list[Trap]]):
        self.folder, self.laid = folder, laid

    def setup(self, worker) -> None:
        traps.set_up(str(self.folder), EVERYWHERE, self.laid)
        (self.folder / "alive" / str(os.getpid())).touch()


def kill(folder: Path, place: int) -> None:
    """On a worker: kill the one in some place of those that there are, unless enough have been killed."""
    for number in range(KILLS):
        try:
            (folder / f"kill {number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        there = sorted((folder / "alive").iterdir())
        chosen = there[place % len(there)]
        chosen.rename(folder / "dead" / chosen.name)
        os.kill(int(chosen.name), signal.SIGKILL)
        return


@pytest.fixture(scope="module")
def train(workers, data):
    """train(number, folder, laid): the model's file, trained by workers of which some are killed."""

    def complete(progress: Progress) -> None:
        """Every other round begins with all workers, so that calls are not much fewer than without losses."""
        if progress.round % 2 == 0:
            until(lambda: len(workers.there()) == N_WORKERS, "all workers")

    def content(number: int, folder: Path, laid: dict[str, list[Trap]]) -> bytes:
        for name in ("alive", "dead"):
            (folder / name).mkdir()
        workers.restore(N_WORKERS)
        workers.client.register_plugin(Fate(folder, laid))
        try:
            with replaced(workers, N_WORKERS):
                return fit_freely(
                    MANY[number], data, workers.client, folder,
                    callbacks=[complete], wait_for_workers=N_WORKERS,
                )[0]  # fmt: skip
        finally:
            workers.client.unregister_worker_plugin(Fate.name)

    return content


@pytest.fixture(scope="module")
def undisturbed(train, data, tmp_path_factory):
    """undisturbed(number): the model's file, trained in this process, and the calls of each stage on the workers."""

    def run(number: int) -> tuple[bytes, dict[str, int]]:
        folder = tmp_path_factory.mktemp("undisturbed")
        with pytest.MonkeyPatch.context() as patch:
            exchange(patch)
            expected = fit_alone(MANY[number], data, folder)
            assert train(number, folder, {}) == expected
        return expected, {stage: traps.counted(folder, stage) for stage in EVERYWHERE}

    return cache(run)


@pytest.mark.soak
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", range(N_TRAININGS), ids="seed-{}".format)
def test_killed(seed, workers, train, undisturbed, tmp_path, monkeypatch):
    chance, number = random.Random(seed), seed % len(MANY)
    expected, n_calls = undisturbed(number)
    # The second time, groups of two workers, and relays: from the coordinator to two workers, from each to one more.
    exchange(monkeypatch, **({} if seed < len(MANY) else {"group_size": lambda n: 2, "fan_out": 2}))
    laid, stages = defaultdict(list), sorted(stage for stage in n_calls if n_calls[stage])
    for _ in range(MOMENTS):
        stage = chance.choice(stages)
        call = chance.randint(1, max(1, int(PART * n_calls[stage])))
        who = partial(kill, tmp_path, chance.randrange(N_WORKERS))
        laid[stage].append(Trap(call, after=chance.random() < 0.5, what=who))
    began = time.monotonic()
    content = train(number, tmp_path, laid)
    dead = [int(file.name) for file in (tmp_path / "dead").iterdir()]
    struck = [stage for stage in laid if (tmp_path / stage).with_suffix(".struck").exists()]
    print(f"seed {seed}: {len(dead)} killed in {time.monotonic() - began:.1f} s, at {', '.join(struck)}")
    assert content == expected
    assert [workers.exit_of(pid) for pid in dead] == KILLS * [-signal.SIGKILL]
