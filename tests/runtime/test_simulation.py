"""Schedules of losses, each drawn by its seed: the model is always that of a training run that nothing has happened to."""

from __future__ import annotations

import logging
import math
import os
import random
import re
from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone

import distboost
from distboost import baselines
from distboost.errors import ClusterError, StoreError
from distboost.estimators import fitting
from distboost.runtime.cluster import owners, questions
from distboost.runtime.cluster.crew import MOST_RECENT_LOSSES
from distboost.runtime.local import LocalRuntime
from tests.runtime.simulated import SimulatedRuntime
from tests.runtime.simulated_machines import MOST_MACHINES, Trouble

REPLAYED = "SCHEDULE"  # environment variable: the seed of the only schedule to run
STORY = 40  # events told of a schedule that fails

MODELS = [
    distboost.GDMCBoostClassifier(calibration=None, n_estimators=4, max_depth=2, subsample=0.7),
    distboost.REBELClassifier(calibration=None, n_estimators=3, weak_learner="similarity", max_candidates=4),
    distboost.AdaBoostMMClassifier(calibration=None, n_estimators=4, max_depth=2),
    baselines.MultiBoostClassifier(calibration=None, n_estimators=3, nu=0.05),
    baselines.OneVsAllAdaBoostClassifier(calibration=None, n_estimators=3, max_depth=2, subsample=0.8),
    distboost.GDMCBoostClassifier(
        calibration=None, n_estimators=4, max_depth=2, subsample=0.4, sampling="weight"
    ),
]

# Who owns the histograms of a growing tree, and how many workers are a group.
OWNERS = {
    "owned by the coordinator": (False, 1),
    "owned by the workers": (True, 1),
    "workers in groups, with relays": (True, 2),
}

ASKED = ("counts", "histogram", "sums", "update")
MOVED = ("set_replay_log", "take", "drop")
LOSSES = {
    f"{fate}: {method}"
    for fate in ("killed", "frozen", "request lost", "answer lost")
    for method in ("open_session", *MOVED, *ASKED)
}
RELAYS = {"relay failed: sums"}
PIECES = {"piece lost", "piece twice", "piece late", "attempt refused"}
EXCHANGED = {
    "killed: expand", "frozen: expand", "request lost: expand", "answer lost: expand", "request twice: expand", *PIECES,
}  # fmt: skip
EVENTS = LOSSES | RELAYS | {f"request twice: {method}" for method in (*MOVED, *ASKED)} | {
    "answer twice",
    "answer late",
    "refused",
    "joined",
    "came back",
    "leaves",
    "killed: idle",
    "frozen: idle",
    "lost while another's rows are read",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    """(X, y, X', y'): training and evaluation rows, so few that a training run takes milliseconds."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 100)
    X = rng.normal(size=(100, 3)) + np.eye(3)[y]
    return X[:70], y[:70], X[70:], y[70:]


@pytest.fixture(
    params=[
        # Those of workers in groups are much the same.
        pytest.param(how, id=name, marks=[pytest.mark.soak] * (name == "owned by the workers"))
        for name, how in OWNERS.items()
    ]
)
def exchanged(request, monkeypatch):
    """Whether workers exchange histograms."""
    exchanged, size = request.param
    monkeypatch.setattr(owners, "exchange_pays", lambda n_bytes, n_workers: exchanged)
    monkeypatch.setattr(owners, "group_size", lambda n_workers: min(size, n_workers))
    if size > 1:
        monkeypatch.setattr(questions, "FAN_OUT", 2)
    return exchanged


@pytest.fixture
def trained(monkeypatch, rows, saved, exchanged):
    """trained(model, runtime): the bytes of the model, and its losses on rows that it has not learned from."""

    def train(model, runtime):
        monkeypatch.setattr(fitting, "open_runtime", lambda *_, **_named: nullcontext(runtime))
        X, y, *evaluation = rows
        model.fit(X, y, eval_set=tuple(evaluation))
        return saved(model), model.eval_loss_.tolist()

    return train


def follow(trained, seeds) -> Counter[str]:
    """Runs these schedules; how often what has happened in them."""
    alone = [trained(model, LocalRuntime(1)) for model in MODELS]
    told: Counter[str] = Counter()
    for seed in seeds:
        model, expected = MODELS[seed % len(MODELS)], alone[seed % len(MODELS)]
        runtime = SimulatedRuntime(seed, Trouble.any(random.Random(seed)))
        try:
            assert trained(model, runtime) == expected
        except BaseException as error:
            error.add_note(f"Schedule {seed}, {model}; again: {REPLAYED}={seed} python -m pytest {__file__}")
            error.add_note("\n".join(map(str, runtime.workers.story[-STORY:])))
            raise
        told.update(event.what for event in runtime.workers.story)
    return told


def events(exchanged: bool) -> set[str]:
    """What may happen."""
    rare = {
        event for event in EVENTS if event.endswith((": histogram", ": update"))
    }  # only while there is one worker
    return (EVENTS - rare) | EXCHANGED if exchanged else EVENTS


def test_no_schedule_changes_the_model(trained, exchanged):
    if REPLAYED in os.environ:
        follow(trained, [int(os.environ[REPLAYED])])
        return
    told = follow(trained, range(100))
    assert (
        len({event for event in events(exchanged) if not told[event]}) <= 4
    )  # rare ones: the soak sees them all


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_no_schedule_of_many_changes_the_model(trained, exchanged):
    told = follow(trained, range(1000, 3000))
    assert min(told[event] for event in events(exchanged)) >= 10


def test_a_seed_is_a_schedule(trained):
    stories = []
    for _ in range(2):
        runtime = SimulatedRuntime(7, Trouble(MOST_RECENT_LOSSES, 0.1, 0.2))
        trained(MODELS[0], runtime)
        stories.append(runtime.workers.story)
    assert stories[0] == stories[1]
    assert len(stories[0]) > MOST_RECENT_LOSSES


@pytest.mark.parametrize("first", [0, 10, 40])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_losses_without_end_end_the_training(trained, model, first):
    """From one request on, every worker is lost that is asked: it is not tried for ever."""
    runtime = SimulatedRuntime(first, Trouble(doomed=first))
    with pytest.raises(ClusterError, match=r"(\d+) workers were lost within few rounds") as caught:
        trained(model, runtime)
    assert MOST_RECENT_LOSSES < int(str(caught.value).split()[0]) <= 2 * MOST_RECENT_LOSSES
    assert runtime.workers.n_requests <= first + 10 * MOST_RECENT_LOSSES


@pytest.mark.parametrize("seed", range(3))
def test_constant_loss_ends_the_training(trained, caplog, seed):
    """Though each question by itself would be answered in the end: no more is lost than rounds have made good."""
    model = MODELS[3]  # many questions a round
    runtime = SimulatedRuntime(seed, Trouble(losses=10**9, chance=0.06, bustle=0.2))
    with pytest.raises(ClusterError, match="lost within few rounds"):
        trained(model, runtime)
    rounds = int(re.findall(r"of round (\d+)", caplog.text)[-1])
    assert caplog.text.count("is lost at") <= MOST_RECENT_LOSSES + 1 + MOST_MACHINES * rounds


def test_losses_that_rounds_make_good(trained, exchanged):
    """A training run of many rounds survives many times as many losses as a short one may have."""
    model = clone(MODELS[2]).set_params(n_estimators=150)
    expected = trained(model, LocalRuntime(1))
    # With fewer questions in a round, each is more dangerous.
    seed, chance = (3, 0.05) if exchanged else (2, 0.03)
    runtime = SimulatedRuntime(seed, Trouble(losses=10**9, chance=chance))
    assert trained(model, runtime) == expected
    assert sum(event.what in LOSSES | EXCHANGED for event in runtime.workers.story) > 3 * MOST_RECENT_LOSSES


@pytest.mark.parametrize("doomed", [math.inf, 12])
def test_an_unfit_worker_is_asked_once(trained, caplog, doomed):
    """It gets no rows; when all others are lost, yet another is waited for."""
    runtime = SimulatedRuntime(5, Trouble(doomed=doomed, unfit=frozenset({"worker-0"})))
    if doomed < math.inf:
        with pytest.raises(ClusterError, match="no worker has come"):
            trained(MODELS[0], runtime)
    else:
        assert trained(MODELS[0], runtime) == trained(MODELS[0], LocalRuntime(1))
    assert caplog.text.count("worker worker-0 cannot take part: it has another version") == 1
    assert runtime.workers.blocks_given["worker-0"] == 0 < runtime.workers.blocks_given["worker-1"]


def test_workers_without_rows_join_once(trained, caplog):
    """Where there are more workers than blocks, a newcomer stays without, and is not welcomed at every question."""
    runtime = SimulatedRuntime(1, Trouble())
    runtime.n_parallel = 1
    model = clone(MODELS[0]).set_params(callbacks=[lambda progress: runtime.workers.add_worker()])
    with caplog.at_level(logging.INFO, "distboost"):
        assert trained(model, runtime) == trained(MODELS[0], LocalRuntime(1))
    assert caplog.text.count("1 workers have joined") == model.n_estimators - 1


class OtherRows(SimulatedRuntime):
    """Of the training rows, every block has other labels when it is read again."""

    def place(self, sets, layout, allotment=None):
        training, *others = sets
        read: Counter[int] = Counter()

        def changing(*call):
            found = training.function(*call)
            read[found.first] += 1
            return found if read[found.first] == 1 else found._replace(labels=(found.labels + 1) % 3)

        return super().place([training._replace(function=changing), *others], layout, allotment)


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_read_again_as_others_end_the_training(trained, seed):
    runtime = OtherRows(seed, Trouble(losses=10, chance=0.1))
    with pytest.raises(StoreError, match="its rows have changed"):
        trained(MODELS[2], runtime)
