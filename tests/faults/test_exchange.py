"""Workers are lost while they exchange histograms: what they have sent may have reached some owners and not others."""

from __future__ import annotations

import logging
import re
import signal
import threading
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path

import pytest

from tests.faults import traps
from tests.faults.crews import until
from tests.faults.rounds import at
from tests.faults.stages import QUESTIONS, STAGES, WORK, exchange
from tests.faults.trainings import TRAININGS, fit, fit_alone
from tests.faults.traps import Trap

pytestmark = pytest.mark.timeout(60)

TIMEOUT = 3.0
LOST = r"worker tcp://\S+ is lost at '(\w+)' of round (\d+)"


@pytest.fixture(autouse=True)
def owned_by_workers(monkeypatch):
    exchange(monkeypatch)
    yield
    traps.take_down()  # those in this process


@pytest.fixture(scope="module")
def expected(data, tmp_path_factory):
    """expected(name): the model's file of a training run in this process."""
    return cache(lambda name: fit_alone(TRAININGS[name], data, tmp_path_factory.mktemp("expected")))


@dataclass(frozen=True)
class Level:
    """A question of the training "levels".

    Attributes
    ----------
    question : int
        Its number.
    asked : tuple of (str, str)
        As what, and in which round.
    """

    question: int
    asked: tuple[str, str]


LEVELS = {
    "the first level": Level(1, ("histogram", "1")),
    "the first level, with an update": Level(7, ("update", "3")),
    "a middle level": Level(8, ("histogram", "3")),
}
FIRST, WITH_UPDATE, MIDDLE = LEVELS


def strike(three, folder: Path, level: str, stage: str, trap: Trap) -> None:
    """Lay a trap for the workers when a question is to be asked: its calls are counted from there on."""

    def lay() -> None:
        three.client.run(traps.set_up, str(folder), STAGES, {stage: trap})

    here = {"question": Trap(LEVELS[level].question, what=lay)}
    traps.set_up(str(folder), QUESTIONS, here)


# Of three workers, each makes two pieces for the other owners, and is sent two: six in all.
PIECES = 6


def hold(folder: str, stage: str, number: int) -> None:
    """On a worker: let it go no further until so many calls of a stage have begun."""
    until(lambda: traps.counted(Path(folder), stage) >= number, f"{number} calls: {stage}", 10.0)


def die_late(folder: str) -> None:
    """On a worker that makes a piece: it dies when all other pieces have been added."""
    hold(folder, "a piece is added", PIECES - 1)
    signal.raise_signal(signal.SIGKILL)


# What happens to a worker: the stage, and the trap for a folder.
DEATHS = {
    "an owner, between contributions": ("a piece is added", lambda folder: Trap(1, after=True)),
    "an owner, when others have all": ("a piece is added", lambda folder: Trap(PIECES)),
    "a contributor, after half of its shares": (
        "a piece is made",
        lambda folder: Trap(1, what=partial(die_late, folder)),
    ),
    "a contributor, before its first share": ("rows are summed", lambda folder: Trap(1, after=True)),
    "an owner, before its answer": ("splits are searched", lambda folder: Trap(1)),
    "an owner, after others have answered": ("splits are searched", lambda folder: Trap(3, after=True)),
    "a worker that has not begun": ("attempt begins", lambda folder: Trap(2)),
}
# Of two groups, one has two members, each of which collects some parts of the group's sums.
DEATHS_IN_GROUPS = {
    "a member, before it shares": ("a group's piece is made", lambda folder: Trap(1)),
    "a collector, when it has its group's sums": ("a piece is added", lambda folder: Trap(2, after=True)),
    "a collector, before it passes them on": ("a piece is made", lambda folder: Trap(1)),
    "an owner, between groups": ("a piece is added", lambda folder: Trap(4, after=True)),
}
# Relayed questions go from the coordinator to one worker, and on to the next: who is lost is only known when all are asked again.
WAYS = {
    "direct": (DEATHS, {}),
    "relayed": (DEATHS, {"fan_out": 1}),
    "in groups": (DEATHS_IN_GROUPS, {"group_size": lambda n: 2}),
}
BY_DEFAULT = {
    ("direct", "an owner, between contributions", MIDDLE),
    ("direct", "a contributor, after half of its shares", WITH_UPDATE),
    ("relayed", "a worker that has not begun", MIDDLE),
}


def default_or_soak(cases, chosen):
    return [pytest.param(*case, marks=[] if case in chosen else pytest.mark.soak) for case in cases]


@pytest.mark.parametrize(
    ("way", "death", "level"),
    default_or_soak(
        [(way, death, level) for way, (deaths, _) in WAYS.items() for death in deaths for level in LEVELS],
        BY_DEFAULT,
    ),
)
def test_killed(way, death, level, three, expected, data, tmp_path, monkeypatch, caplog):
    deaths, options = WAYS[way]
    exchange(monkeypatch, **options)
    stage, trap = deaths[death]
    strike(three, tmp_path, level, stage, trap(str(tmp_path)))
    with caplog.at_level(logging.INFO, "distboost"):
        assert fit(TRAININGS["levels"], data, three.client, tmp_path) == expected("levels")
    [dead] = traps.struck(tmp_path, stage)
    assert three.exit_of(dead) == -signal.SIGKILL
    assert re.findall(LOST, caplog.text) == [LEVELS[level].asked]
    # A worker that waits for the dead one's sums may say so before the relay ends.
    told = "a relayed question is asked again directly" in caplog.text, "cannot reach it" in caplog.text
    assert any(told) if way == "relayed" else not told[0]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "stage", "part", "options"),
    [
        *product(
            ("gd", "corrective"),
            ("leaf sums", "update", "histogram"),
            (0.1, 0.4, 0.7),
            ({"pays": False, "fan_out": 1}, {"fan_out": 1}),
        ),
        *product(
            ("best first", "whole", "corrective", "gd", "streaming"),
            ("a piece is made", "a piece is added"),
            (0.2, 0.8),
            ({},),
        ),
        *product(("whole",), ("a node is searched",), (0.2, 0.8), ({},)),
    ],
)
def test_killed_in_other_trainings(name, stage, part, options, three, expected, data, tmp_path, monkeypatch):
    """At some part of all calls of a stage."""
    exchange(monkeypatch, **options)
    stages = {stage: {**WORK, **STAGES}[stage]}
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    three.client.run(traps.set_up, str(undisturbed), stages, {})
    fit(TRAININGS[name], data, three.client, tmp_path)
    number = max(int(part * traps.counted(undisturbed, stage)), 1)
    three.client.run(traps.set_up, str(tmp_path), stages, {stage: Trap(number, after=True)})
    assert fit(TRAININGS[name], data, three.client, tmp_path) == expected(name)
    [dead] = traps.struck(tmp_path, stage)
    assert three.exit_of(dead) == -signal.SIGKILL


STOPS = {"an owner": "a piece is added", "a contributor": "a piece is made"}


@pytest.mark.parametrize(
    ("who", "level", "fan_out"),
    default_or_soak(
        [(who, level, fan_out) for who in STOPS for level in LEVELS for fan_out in (None, 1)],
        {("an owner", MIDDLE, None)},
    ),
)
def test_stopped(who, level, fan_out, three, expected, data, tmp_path, monkeypatch, caplog):
    """In the middle of an exchange: the others wait no longer than `worker_timeout`."""
    exchange(monkeypatch, fan_out=fan_out)
    strike(three, tmp_path, level, STOPS[who], Trap(1, what=signal.SIGSTOP))
    try:
        content = fit(TRAININGS["levels"], data, three.client, tmp_path, worker_timeout=TIMEOUT)
    finally:
        for name in three.alive():
            three.signal(name, signal.SIGCONT)
    assert content == expected("levels")
    assert len(traps.struck(tmp_path, STOPS[who])) == 1
    assert re.search(LOST, caplog.text).groups() == LEVELS[level].asked
    assert f"(no response for {TIMEOUT:g} s)" in caplog.text


def test_an_owner_retires(three, expected, data, tmp_path, caplog):
    """Between two levels of a tree: another worker sums the histograms of its features again."""
    retired = []

    def retire() -> None:
        retired.append(three.pid(next(iter(three.there()))))
        three.client.retire_workers([next(iter(three.there().values()))])

    traps.set_up(str(tmp_path), QUESTIONS, {"question": Trap(LEVELS[MIDDLE].question, what=retire)})
    with caplog.at_level(logging.INFO, "distboost"):
        content = fit(TRAININGS["levels"], data, three.client, tmp_path)
    assert content == expected("levels")
    assert three.exit_of(retired[0]) == 0
    assert "are summed again for 1 lost parts" in caplog.text


@pytest.mark.soak
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("stage", ["a piece is made", "a piece is added"])
def test_a_worker_retires_in_the_middle_of_an_exchange(stage, level, three, expected, data, tmp_path):
    struck, retired = (tmp_path / stage).with_suffix(".struck"), tmp_path / "a worker retires"

    def retire() -> None:
        until(lambda: struck.exists() and struck.read_text().endswith("\n"), "a worker is struck")
        [pid] = traps.struck(tmp_path, stage)
        [name] = [name for name in three.alive() if three.pid(name) == pid]
        three.client.retire_workers([three.there()[name]])
        retired.write_text(".")

    strike(three, tmp_path, level, stage, Trap(1, what=partial(hold, str(tmp_path), retired.name, 1)))
    thread = threading.Thread(target=retire)
    thread.start()
    try:
        assert fit(TRAININGS["levels"], data, three.client, tmp_path) == expected("levels")
    finally:
        thread.join(30)
    [pid] = traps.struck(tmp_path, stage)
    assert three.exit_of(pid) == 0


def test_two_workers_cannot_reach_each_other(three, expected, data, tmp_path, caplog):
    """One of them is treated as lost until the tree is complete; then the coordinator, which reaches both, adds histograms."""
    first, second, _ = three.there().values()
    three.client.run(_cut, second, workers=[first])
    try:
        assert fit(TRAININGS["gd"], data, three.client, tmp_path) == expected("gd")
    finally:
        three.client.run(_mend, workers=[first])
    assert (
        f"worker {second} is lost at 'histogram' of round 1 (another worker cannot reach it)" in caplog.text
    )


def test_a_worker_that_answers_nobody_is_not_reported_as_cut_off(three, expected, data, tmp_path, caplog):
    """It is dead for all that others know. The network between the others is as good as before: they exchange histograms."""
    first, second, _ = three.there()

    def strike() -> None:
        three.client.run(_cut, three.there()[second], workers=[three.there()[first]])
        three.signal(second, signal.SIGSTOP)

    traps.set_up(str(tmp_path), QUESTIONS, {"question": Trap(LEVELS[FIRST].question, what=strike)})
    try:
        content = fit(TRAININGS["levels"], data, three.client, tmp_path, worker_timeout=TIMEOUT)
    finally:
        three.signal(second, signal.SIGCONT)
        three.client.run(_mend, workers=[three.there()[first]])
    assert content == expected("levels")
    assert re.search(LOST, caplog.text).groups() == LEVELS[FIRST].asked
    assert "(another worker cannot reach it)" in caplog.text
    assert "workers cannot reach each other" not in caplog.text


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
    assert fit(TRAININGS[name], data, three.client, tmp_path, callbacks=callbacks) == expected(name)


def _mend(dask_worker=None) -> None:
    del dask_worker.rpc.connect
