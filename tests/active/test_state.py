"""Random sequences of what a user does, with crashes between: nothing taught is lost, nothing is offered twice."""

from __future__ import annotations

import math
import shutil
import tempfile
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from distboost.errors import DataError
from tests.active.sessions import committee, learner, state

N, CLASSES = 30, ["a", "b", "c"]
X = np.round(np.random.default_rng(0).normal(size=(N, 3)), 1)
MOST = 6

BAD = {
    "twice": lambda open_row, taught: ([open_row, open_row], ["a", "a"]),
    "outside": lambda open_row, taught: ([open_row, N], ["a", "a"]),
    "negative": lambda open_row, taught: ([-1], ["a"]),
    "taught": lambda open_row, taught: ([taught], ["a"]),
    "no number": lambda open_row, taught: ([1.5], ["a"]),
    "None": lambda open_row, taught: ([open_row], [None]),
    "NaN": lambda open_row, taught: ([open_row], [math.nan]),
    "number": lambda open_row, taught: ([open_row], [1]),
    "of no class": lambda open_row, taught: ([open_row], ["d"]),
    "length": lambda open_row, taught: ([open_row], ["a", "b"]),
}


class Model:
    """What a log says, told in another way."""

    def __init__(self):
        self.labels: dict[int, str] = {}
        self.opinions: dict[int, dict[str | None, str]] = {}
        self.settled: set[int] = set()
        self.again: set[int] = set()  # of the rows asked for: those that have a label
        self.leases: dict[int, tuple[str | None, float]] = {}  # rows asked for: of whom, and until when
        self.skipped: set[int] = set()
        self.unsure: set[tuple[int, str | None]] = set()
        self.known: set[int] = set()
        self.queries = 0

    def asked(self, now: float) -> list[int]:
        return [row for row, (_, until) in self.leases.items() if now < until and row not in self.again]

    def differ(self) -> set[int]:
        return {
            row for row in self.labels if len({*self.opinions[row].values()}) > 1 and row not in self.settled
        }

    def to_compare(self, by: str, now: float) -> tuple[set[int], set[int]]:
        """Rows that one other person told, and those on which people differ, that nobody has now."""
        held = {row for row, (_, until) in self.leases.items() if now < until}
        free = {row for row in self.labels if row not in held}
        single = {
            row for row in free - self.settled if len(told := self.opinions[row]) == 1 and by not in told
        }
        return single, self.differ() & free

    def free(self, by: str | None, now: float) -> set[int]:
        taken = {
            *self.labels,
            *self.asked(now),
            *self.skipped,
            *(row for row, who in self.unsure if who == by),
        }
        return set(range(N)) - taken

    def state(self, now: float) -> dict[str, Any]:
        return {
            "labelled": list(self.labels),
            "labels": list(self.labels.values()),
            "asked": self.asked(now),
            "queries": self.queries,
            "open": len(self.free(None, now)),
        }

    def told(self, rows: list[int], labels: list[str], by: str | None) -> None:
        for row, label in zip(rows, labels, strict=True):
            self.labels.setdefault(row, label)
            self.opinions.setdefault(row, {})[by] = label

    def answered(self, rows: list[int]) -> None:
        for row in rows:
            self.leases.pop(row, None)
            self.again.discard(row)

    def forgotten(self, rows: list[int]) -> None:
        for row in rows:
            self.skipped.discard(row)
            self.settled.discard(row)
        self.unsure = {(row, who) for row, who in self.unsure if row not in rows}


class Session(RuleBasedStateMachine):
    """Two learners with one log, beside a model of it."""

    clock: Any

    @initialize(strategy=st.sampled_from(["random", "margin", "averaged-margin"]))
    def begin(self, strategy):
        self.strategy = strategy
        self.folder = Path(tempfile.mkdtemp())
        self.model = Model()
        self.earlier: list[Model] = []  # the model before each line of the log but the first
        self.crash()

    def teardown(self):
        shutil.rmtree(self.folder)

    def made(self, log):
        return learner(
            X,
            committee(1),
            n_initial=5,
            batch_size=3,
            strategy=self.strategy,
            start="random",
            classes=CLASSES,
            log=log,
        )

    @contextmanager
    def happens(self, rows: list[int] | None = None):
        """A line is added to the log, after which the model is another, unless it is about no rows."""
        if rows is None or rows:
            self.earlier.append(deepcopy(self.model))
        yield
        if rows:
            self.model.known.update(rows)

    def expect_refusal(self, call: Any) -> None:
        log = (self.folder / "log").read_bytes()
        with pytest.raises(DataError):
            call()
        assert (self.folder / "log").read_bytes() == log

    def drawn(self, data: Any, rows: Any, most: int = 3) -> list[int]:
        return data.draw(
            st.lists(st.sampled_from(sorted(rows)), unique=True, max_size=most) if rows else st.just([])
        )

    @rule(who=st.sampled_from([0, 1]))
    def another_acts(self, who):
        self.learner = self.learners[who]
        self.learner.ledger.update()

    @rule(hours=st.sampled_from([0.1, 0.7, 3]))
    def time_passes(self, hours):
        self.clock.now += hours * 3600

    @rule(
        n=st.none() | st.integers(1, MOST),
        who=st.sampled_from([0, 1]),
        by=st.sampled_from([None, "ann", "bob"]),
    )
    def query(self, n, who, by):
        self.learner = self.learners[who]
        free = self.model.free(by, self.clock.now)
        wanted = n or (3 if self.model.labels else 5)
        begun = self.model.known

        def call():
            return self.learner.query(n) if by is None else self.learner.lease(n, by=by)

        if not free or (wanted > len(free) and (n is not None or not begun)):
            self.expect_refusal(call)
            return
        self.offered(call().tolist(), min(wanted, len(free)), by)

    def offered(self, rows: list[int], n: int, by: str | None = None) -> None:
        assert len(rows) == len(set(rows)) == n
        assert set(rows) <= self.model.free(by, self.clock.now)
        with self.happens(rows):
            self.model.queries += 1
            self.model.answered(rows)
            self.model.leases |= dict.fromkeys(rows, (by, math.inf if by is None else self.clock.now + 3600))

    @rule(
        data=st.data(),
        who=st.sampled_from([0, 1]),
        by=st.sampled_from(["ann", "bob", "carol"]),
        conflicts=st.booleans(),
    )
    def second_opinion(self, data, who, by, conflicts):
        """Asked for, and perhaps told; what is told changes no label."""
        now = self.clock.now
        single, differ = self.model.to_compare(by, now)
        wanted = differ if conflicts else single
        if not wanted:
            return
        self.learner, n = self.learners[who], min(2, len(wanted))
        rows = self.learner.lease(n, by=by, overlap=1.0, conflicts=conflicts).tolist()
        assert len(rows) == n
        assert set(rows) <= wanted
        with self.happens(rows):
            self.model.answered(rows)
            self.model.leases |= dict.fromkeys(rows, (by, now + 3600))
            self.model.again |= set(rows)
        rows = [row for row in self.drawn(data, rows) if by not in self.model.opinions[row]]
        labels = data.draw(st.lists(st.sampled_from(CLASSES), min_size=len(rows), max_size=len(rows)))
        self.learner.teach(rows, labels, by=by)
        with self.happens(rows):
            self.model.answered(rows)
            self.model.told(rows, labels, by)

    @rule(data=st.data(), who=st.sampled_from([0, 1]))
    def teach(self, data, who):
        """Some of the rows that were asked for, and some that were not, in any order."""
        self.learner = self.learners[who]
        asked = self.drawn(data, set(self.model.leases) - self.model.again, MOST)
        others = self.drawn(data, set(range(N)) - set(self.model.labels), 2)
        rows = data.draw(st.permutations(sorted({*asked, *others})))
        labels = data.draw(st.lists(st.sampled_from(CLASSES), min_size=len(rows), max_size=len(rows)))
        by = data.draw(st.none() | st.just("ann"))
        assert self.learner.teach(rows, labels, by=by) is self.learner
        with self.happens(rows):
            self.model.answered(rows)
            self.model.forgotten(rows)
            self.model.told(rows, labels, by)

    @rule(data=st.data(), who=st.sampled_from([0, 1]))
    def correct_and_withdraw(self, data, who):
        self.learner = self.learners[who]
        rows = self.drawn(data, self.model.labels)
        labels = data.draw(st.lists(st.sampled_from(CLASSES), min_size=len(rows), max_size=len(rows)))
        self.learner.correct(rows, labels, by="bob")
        with self.happens(rows):
            self.model.answered(rows)
            self.model.labels |= dict(zip(rows, labels, strict=True))
            for row, label in zip(rows, labels, strict=True):
                if self.model.opinions[row].keys() == {"bob"}:
                    self.model.opinions[row] = {"bob": label}
                else:
                    self.model.settled.add(row)
        rows = self.drawn(data, self.model.known)
        self.learner.withdraw(rows)
        with self.happens(rows):
            self.model.answered(rows)
            self.model.forgotten(rows)
            for known in (self.model.labels, self.model.opinions):
                for row in rows:
                    known.pop(row, None)

    @rule(data=st.data(), who=st.sampled_from([0, 1]), by=st.sampled_from([None, "ann"]))
    def skip_and_cannot_tell(self, data, who, by):
        self.learner = self.learners[who]
        rows = self.drawn(data, set(range(N)) - set(self.model.labels), 1)
        self.learner.skip(rows, "torn", by=by)
        with self.happens(rows):
            self.model.answered(rows)
            self.model.skipped |= set(rows)
        rows = self.drawn(data, set(range(N)) - set(self.model.labels), 2)
        self.learner.unsure(rows, by=by)
        with self.happens(rows):
            self.model.answered(rows)
            self.model.unsure |= {(row, by) for row in rows}

    @precondition(lambda self: 0 < len(self.model.labels) < N)
    @rule(kind=st.sampled_from(sorted(BAD)), who=st.sampled_from([0, 1]))
    def teach_badly(self, kind, who):
        self.learner = self.learners[who]
        self.learner.ledger.update()
        open_row = min(set(range(N)) - set(self.model.labels))
        rows, labels = BAD[kind](open_row, list(self.model.labels)[-1])
        self.expect_refusal(lambda: self.learner.teach(rows, labels))

    @rule()
    def crash(self):
        self.learners = [self.made(self.folder / "log") for _ in range(2)]
        self.learner = self.learners[0]

    @precondition(lambda self: (self.folder / "log").read_bytes().endswith(b"\n"))
    @rule(data=st.data())
    def crash_while_a_line_is_written(self, data):
        """What it says did not happen, for nobody was told."""
        log = self.folder / "log"
        content = log.read_bytes()
        begin = content.rfind(b"\n", 0, -1) + 1
        log.write_bytes(content[: data.draw(st.integers(begin, len(content) - 1))])
        if self.earlier:
            self.model = self.earlier.pop()
        self.crash()

    @rule()
    def save(self):
        """What is saved goes on in the same way."""
        copy = self.folder / "copy"
        self.learner.ledger.update()
        self.learner.save(copy)
        resumed = self.made(copy)
        assert state(resumed) == self.model.state(self.clock.now)
        if self.model.free(None, self.clock.now):
            rows = self.learner.query(1).tolist()
            assert resumed.query(1).tolist() == rows
            self.offered(rows, 1)
            assert copy.read_bytes() == (self.folder / "log").read_bytes()

    @invariant()
    def is_as_the_model(self):
        assert state(self.learner) == self.model.state(self.clock.now)
        assert set(self.learner.ledger.conflicts) == self.model.differ()


def test_any_sequence(clock, monkeypatch):
    monkeypatch.setattr(Session, "clock", clock, raising=False)
    run_state_machine_as_test(
        Session, settings=settings(max_examples=20, stateful_step_count=25, derandomize=True, database=None)
    )


def test_every_bad_teaching_is_bad_in_its_own_way():
    """A refusal for another reason would make a rule above pass for nothing."""
    found = learner(X, classes=CLASSES).teach([0], ["a"])
    said = set()
    for bad in BAD.values():
        with pytest.raises(DataError) as raised:
            found.teach(*bad(3, 0))
        said.add(str(raised.value))
    assert len(said) == len(BAD)
