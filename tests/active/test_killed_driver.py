"""The process that asks is killed, at any point: with its log, the rows and labels are those of one that was not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.active.sessions import state
from tests.forked import Forks
from tests.moments import Moment

N_INITIAL, BATCH, BUDGET = 12, 6, 36
WRITING = ["distboost.active.ledger:LabelLog.append", "distboost.active.ledger:LabelLog._write"]
N_LINES = 1 + 2 * 5  # the header; asked and taught, five times

# Each line tells of a session, which runs in a process of its own: forked, for importing and compiling take longest. That kills
# itself at the n-th line of its log: before it is written, in the middle, or before anybody is told that it was; or in the n-th
# block scored.
SERVER = """
import json, os, signal
import numpy as np
from distboost.active import ledger, records
from distboost.active import pool_search as search
from tests.active.sessions import committee, learner

def die(at, n, kill):
    if kill == [at, n]:
        os.kill(os.getpid(), signal.SIGKILL)

def watch(kill):
    append, score, lines, blocks = ledger.LabelLog.append, search.best_of_block, [], []
    def counted(log, *given):
        lines.append(given)
        die("before", len(lines), kill)
        if kill == ["within", len(lines)]:
            line = records.to_line(given[0]()).encode()
            with open(log.path, "ab") as file:
                file.write(line[:len(line) * 2 // 3])
            die("within", len(lines), kill)
        done = append(log, *given)
        die("after", len(lines), kill)
        return done
    def scored(*arguments):
        blocks.append(arguments)
        die("scoring", len(blocks), kill)
        return score(*arguments)
    ledger.clock = lambda: 1.8e9
    ledger.LabelLog.append, search.best_of_block = counted, scored

def do(line):
    data, log, strategy, kill = json.loads(line)
    watch(kill)
    arrays = np.load(data)
    rule = "margin" if strategy == "team" else strategy
    found = learner(arrays["X"], committee(2), n_initial=%d, batch_size=%d, strategy=rule, log=log)
    if strategy == "team":
        return team(found, arrays["y"])
    found.run(arrays["y"], max_labels=%d)

def team(found, y):
    "Ann gets two labels of each batch wrong and skips a row, Bob corrects them. Then he has second opinions, one of which Ann"
    "refuses, and withdraws two labels."
    while True:
        asked, labelled = found.asked_of("ann"), found.labelled_
        wrong = labelled[found.labels_ != y[labelled]]
        last = (found.ledger.events or [{}])[-1]
        if "skipped" in last:
            found.unsure(last["skipped"]["rows"], by="ann")
        elif len(wrong):
            found.correct(wrong, y[wrong], by="bob")
        elif len(asked) > 1:
            found.teach(asked[:-1], [*(y[asked[:2]] + 1) %% 4, *y[asked[2:-1]]], by="ann", seconds=3)
        elif len(asked):
            found.skip(asked, "torn", by="ann")
        elif len(labelled) < 30:
            found.lease(by="ann")
        elif any("withdrawn" in event for event in found.ledger.events):
            return
        elif len(again := found.asked_of("bob")):
            found.teach(again, [(y[again[0]] + 1) %% 4, *y[again[1:]]], by="bob")
        elif found.ledger.conflicts:
            found.correct(found.ledger.conflicts, y[found.ledger.conflicts], by="ann")
        elif not any("again" in event for event in found.ledger.events):
            found.lease(2, by="bob", overlap=1.0)
        else:
            found.withdraw(labelled[:2], by="bob")
""" % (N_INITIAL, BATCH, BUDGET)  # noqa: UP031 (it has braces of its own)


class Sessions:
    """Runs sessions that are killed."""

    def __init__(self, data):
        self.data = str(data)
        self.forks = Forks(SERVER)

    def run(self, log, strategy="margin", kill=None) -> bool:
        """Whether the session came to its end; `kill` is the point where it is killed, or a moment."""
        if isinstance(kill, Moment):
            return self.forks.run(self._told(log, strategy), kill)
        return self.forks.run(self._told(log, strategy, kill))

    def moments(self, log, functions, seed) -> list[Moment]:
        return self.forks.moments(self._told(log, "margin"), functions, seed)

    def _told(self, log, strategy, kill=None):
        return json.dumps([self.data, str(log), strategy, kill])


@pytest.fixture(scope="module")
def sessions(problem, tmp_path_factory):
    data = tmp_path_factory.mktemp("data") / "problem.npz"
    np.savez(data, X=problem[0], y=problem[1])
    found = Sessions(data)
    return found


@pytest.fixture(scope="module")
def whole(sessions, tmp_path_factory):
    """whole(strategy): the log of a session that nobody disturbs."""
    known = {}

    def content(strategy: str) -> bytes:
        if strategy not in known:
            log = tmp_path_factory.mktemp("whole") / "log"
            assert sessions.run(log, strategy)
            known[strategy] = log.read_bytes()
            assert strategy == "team" or known[strategy].count(b"\n") == N_LINES
        return known[strategy]

    return content


SOME = {"before": (1, 4), "within": (2, N_LINES), "after": (1, 4)}
OTHERS = {moment: {*range(1, N_LINES + 1)} - {*numbers} for moment, numbers in SOME.items()}


@pytest.mark.parametrize(
    ("moment", "numbers"),
    [*SOME.items(), *(pytest.param(*others, marks=pytest.mark.soak) for others in OTHERS.items())],
)
def test_killed_at_each_line_of_the_log(moment, numbers, sessions, whole, tmp_path):
    for number in numbers:
        log = tmp_path / f"{number}"
        assert not sessions.run(log, kill=[moment, number])
        n_known = number - (moment != "after")
        expected = b"".join(whole("margin").splitlines(keepends=True)[:n_known])
        there = log.read_bytes() if log.exists() else b""
        assert there[: len(expected)] == expected
        assert (len(there) > len(expected)) == (moment == "within")
        assert sessions.run(log)
        assert log.read_bytes() == whole("margin")


@pytest.mark.parametrize("number", [1, 3])
def test_killed_while_the_pool_is_scored(number, sessions, whole, tmp_path):
    assert not sessions.run(tmp_path / "log", kill=["scoring", number])
    assert (tmp_path / "log").read_bytes().count(b"\n") == 1 + 2 * number  # nothing of that query
    assert sessions.run(tmp_path / "log")
    assert (tmp_path / "log").read_bytes() == whole("margin")


@pytest.mark.parametrize("strategy", [pytest.param("margin", marks=pytest.mark.soak), "random"])
def test_killed_again_and_again(strategy, sessions, whole, tmp_path):
    """Each process writes a line or two, and dies while it writes the next."""
    log, attempts = tmp_path / "log", 0
    while not sessions.run(log, strategy, ["within", 2 + attempts % 2]):
        attempts += 1
        assert attempts < 30
    assert attempts >= 7
    assert log.read_bytes() == whole(strategy)


@pytest.mark.parametrize("moment", ["before", "within", "after"])
def test_killed_at_lines_of_a_team(moment, sessions, whole, tmp_path):
    """A lease, labels, their correction, and what was withdrawn: nothing is lost, and nothing happens twice."""
    lines = whole("team").splitlines(keepends=True)
    kinds = ["asked", "taught", "corrected", "skipped", "unsure", "again", "withdrawn"]
    places = {
        kind: next(n for n, line in enumerate(lines, 1) if f'"{kind}"'.encode() in line) for kind in kinds
    }
    for kind in kinds if moment == "within" else kinds[1:4:2]:
        log = tmp_path / kind
        assert not sessions.run(log, "team", [moment, places[kind]])
        known = b"".join(lines[: places[kind] - (moment != "after")])
        assert log.read_bytes().startswith(known)
        assert (len(log.read_bytes()) > len(known)) == (moment == "within")
        assert sessions.run(log, "team")
        assert log.read_bytes() == whole("team"), kind


@pytest.mark.soak
def test_killed_at_any_line_that_writes(sessions, whole, tmp_path):
    """In one of the appends: the log is that from before it, or has its line."""
    moments = sessions.moments(tmp_path / "whole", WRITING, seed=2)
    assert len(moments) > 10
    for number, moment in enumerate(moments):
        log = tmp_path / f"{number}"
        assert not sessions.run(log, kill=moment)
        there = log.read_bytes() if log.exists() else b""
        lines = whole("margin").splitlines(keepends=True)
        assert there in (b"".join(lines[: moment.call - 1]), b"".join(lines[: moment.call])), moment
        assert sessions.run(log)
        assert log.read_bytes() == whole("margin"), moment


def test_a_log_is_what_its_writer_knew(sessions, whole, problem, tmp_path):
    """The log of another process, read here."""
    from tests.active.sessions import committee, learner

    log = tmp_path / "log"
    assert not sessions.run(log, kill=["after", 6])
    found = learner(problem[0], committee(2), n_initial=N_INITIAL, batch_size=BATCH, log=log)
    assert state(found)["queries"] == 3
    assert len(found.labelled_) == N_INITIAL + BATCH
    assert len(found.asked_) == BATCH
    assert found.labels_.tolist() == problem[1][found.labelled_].tolist()
    found.run(problem[1], max_labels=BUDGET)
    assert log.read_bytes() == whole("margin")
