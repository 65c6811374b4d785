"""Random sequences of what a user does, with crashes between: nothing taught is lost, nothing is offered twice."""

from __future__ import annotations

import math
import shutil
import tempfile
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


class Session(RuleBasedStateMachine):
    """A learner with a log, beside a model of it."""

    @initialize(strategy=st.sampled_from(["random", "margin", "votes"]))
    def begin(self, strategy):
        self.strategy = strategy
        self.folder = Path(tempfile.mkdtemp())
        self.model: dict[str, Any] = {"labelled": [], "labels": [], "asked": [], "queries": 0, "open": N}
        self.earlier: list[dict[str, Any]] = []  # the model before each line of the log but the first
        self.learner = self.made(self.folder / "log")

    def teardown(self):
        shutil.rmtree(self.folder)

    def made(self, log):
        return learner(
            X, committee(1), n_initial=5, batch_size=3, strategy=self.strategy, classes=CLASSES, log=log
        )

    def seen(self) -> set[int]:
        return {*self.model["labelled"], *self.model["asked"]}

    def happened(self, **now: Any) -> None:
        """A line was added to the log, after which the model is another."""
        self.earlier.append(deepcopy(self.model))
        self.model.update(now)
        self.model["open"] = N - len(self.seen())

    def expect_refusal(self, call: Any) -> None:
        log = (self.folder / "log").read_bytes()
        with pytest.raises(DataError):
            call()
        assert (self.folder / "log").read_bytes() == log

    @rule(n=st.none() | st.integers(1, MOST))
    def query(self, n):
        left = self.model["open"]
        wanted = n or (3 if self.model["labelled"] else 5)
        begun = self.model["labelled"] or self.model["asked"]
        if not left or (wanted > left and (n is not None or not begun)):
            self.expect_refusal(lambda: self.learner.query(n))
            return
        self.offered(self.learner.query(n).tolist(), min(wanted, left))

    def offered(self, rows: list[int], n: int) -> None:
        assert len(rows) == len(set(rows)) == n
        assert set(rows) <= set(range(N)) - self.seen()
        self.happened(asked=self.model["asked"] + rows, queries=self.model["queries"] + 1)

    @rule(data=st.data())
    def teach(self, data):
        """Some of the rows that were asked for, and some that were not, in any order."""
        untaught = sorted(set(range(N)) - set(self.model["labelled"]))
        asked = data.draw(st.lists(st.sampled_from(self.model["asked"]), unique=True, max_size=MOST)
                          if self.model["asked"] else st.just([]))  # fmt: skip
        others = data.draw(
            st.lists(st.sampled_from(untaught), unique=True, max_size=2) if untaught else st.just([])
        )
        rows = data.draw(st.permutations(sorted({*asked, *others})))
        labels = data.draw(st.lists(st.sampled_from(CLASSES), min_size=len(rows), max_size=len(rows)))
        assert self.learner.teach(rows, labels) is self.learner
        if rows:
            self.happened(
                labelled=self.model["labelled"] + rows,
                labels=self.model["labels"] + labels,
                asked=[row for row in self.model["asked"] if row not in rows],
            )

    @precondition(lambda self: 0 < len(self.model["labelled"]) < N)
    @rule(kind=st.sampled_from(sorted(BAD)))
    def teach_badly(self, kind):
        open_row = min(set(range(N)) - set(self.model["labelled"]))
        rows, labels = BAD[kind](open_row, self.model["labelled"][-1])
        self.expect_refusal(lambda: self.learner.teach(rows, labels))

    @rule()
    def crash(self):
        self.learner = self.made(self.folder / "log")

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
        self.learner = self.made(log)

    @rule()
    def save(self):
        """What is saved goes on in the same way."""
        copy = self.folder / "copy"
        self.learner.save(copy)
        resumed = self.made(copy)
        assert state(resumed) == self.model
        if self.model["open"]:
            rows = self.learner.query(1).tolist()
            assert resumed.query(1).tolist() == rows
            self.offered(rows, 1)
            assert copy.read_bytes() == (self.folder / "log").read_bytes()

    @invariant()
    def is_as_the_model(self):
        assert state(self.learner) == self.model


def test_any_sequence():
    run_state_machine_as_test(
        Session, settings=settings(max_examples=30, stateful_step_count=25, derandomize=True, database=None)
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
