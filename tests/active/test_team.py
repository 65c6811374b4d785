"""Several people label one pool: who has which row, corrections, and what the committee learns from."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr

from distboost.active import pool_search, resume
from distboost.active.advice import agreements_of
from distboost.active.ledger import Ledger
from distboost.active.records import to_line
from distboost.errors import DataError, StoreError
from tests.active.sessions import committee, learner, state


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def two(problem, log):
    """Two learners of one log."""
    return [learner(problem[0], log=log) for _ in range(2)]


def taught(found, y, n=40):
    rows = found.query(n)
    return found.teach(rows, y[rows])


# Who has which row.


def test_what_would_be_asked_is_not_yet(two, problem):
    ann, bob = two
    for _ in range(2):  # the start; then by a committee
        rows, _, more = ann.ranked(10, 6)
        assert not {*rows.tolist()} & {*more.tolist()}
        assert (len(rows), len(more), ann.n_queries_) == (10, 6, bob.n_queries_)
        np.testing.assert_array_equal(bob.query(10), rows)
        bob.teach(rows, problem[1][rows])


def test_an_answer_is_recorded_once(two, log):
    ann, bob = (found.ledger for found in two)
    ann.answer("one").teach([3], ["a"], "ann", 1.0)
    bob.answer("one").teach([3], ["a"], "ann", 1.0)
    bob.answer("two").correct([3], ["b"], "bob")
    ann.answer("one").teach([3], ["a"], "ann")
    ann.answer("two").skip([5], by="ann")
    assert (ann.labelled, ann.skipped) == ({3: "b"}, {})
    with pytest.raises(DataError, match="answer is 'no name'"):
        ann.answer("no name").skip([5])
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines, lines[-1]]))
    with pytest.raises(StoreError, match="the answer 'two' was recorded before"):
        bob.update()


def test_people_get_different_rows(two, problem):
    ann, bob = two
    taught(ann, problem[1])
    rows = ann.lease(by="ann"), bob.lease(7, by="bob"), ann.query(5), bob.lease(by="ann")
    assert len({*np.concatenate(rows).tolist()}) == 10 + 7 + 5 + 10
    ann.ledger.update()
    assert ann.asked_of("ann").tolist() == [*rows[0], *rows[3]]
    assert bob.asked_of("bob").tolist() == rows[1].tolist()
    assert ann.asked_of().tolist() == rows[2].tolist()
    assert ann.n_open_ == 300 - 40 - 32


@pytest.mark.parametrize("strategy", ["margin", "random"])
def test_rows_taken_during_a_search_are_replaced(strategy, problem, log, monkeypatch):
    """The second search is for the missing rows only, and nothing fails."""
    X, y = problem
    ann, bob = [learner(X, log=log, strategy=strategy) for _ in range(2)]
    taught(ann, y)
    wanted, found = [], ann._found

    def meanwhile(n, by):
        rows, audit = found(n, by)
        wanted.append(n)
        if len(wanted) == 1:
            bob.teach(rows[:3], y[rows[:3]], by="bob").skip(rows[3:4])
            bob.lease(4, by="bob")
        return rows, audit

    monkeypatch.setattr(ann, "_found", meanwhile)
    rows = ann.lease(by="ann")
    assert len(set(rows.tolist())) == 10
    assert wanted[0] == 10
    assert 4 <= wanted[1] <= 8
    assert not set(rows.tolist()) & {
        *bob.labelled_.tolist(),
        *bob.asked_of("bob").tolist(),
        *bob.ledger.skipped,
    }
    assert state(ann) == state(learner(X, log=log, strategy=strategy))


def test_a_lease_ends(two, problem, clock):
    ann, bob = two
    taught(ann, problem[1])
    rows = ann.lease(by="ann", hours=2)
    clock.now += 7199
    assert not set(bob.lease(by="bob").tolist()) & set(rows.tolist())
    clock.now += 1
    assert ann.asked_of("ann").size == 0
    again = bob.lease(by="bob")
    assert again.tolist() == rows.tolist()  # still the most useful ones
    ann.teach(rows[:1], problem[1][rows[:1]], by="ann")  # she took her time, and that is welcome
    bob.ledger.update()
    assert bob.asked_of("bob").tolist()[-9:] == rows[1:].tolist()


def test_a_clock_that_goes_back_changes_nothing(two, clock):
    ann, bob = two
    rows = ann.lease(by="ann")
    clock.now -= 10**6
    assert not set(bob.lease(by="bob").tolist()) & set(rows.tolist())
    times = [event["at"] for event in bob.ledger.events]
    assert times == sorted(times)


def test_the_last_rows_are_shared(problem, log):
    ann, bob = [learner(problem[0][:25], log=log) for _ in range(2)]
    ann.lease(20, by="ann")
    assert len(bob.query()) == 5
    with pytest.raises(
        DataError, match=r"no row is left to ask for: 0 of the 25 rows of .* taught, 25 were asked for, 0 sk"
    ):
        ann.lease(by="ann")


@pytest.mark.parametrize("hours", [0, -1, np.nan, "1", 1e9])
def test_leases_that_cannot_be(hours, two):
    with pytest.raises(DataError, match=r"hours is .*, expected a number above 0"):
        two[0].lease(by="ann", hours=hours)


@pytest.mark.parametrize("by", ["", " ann", "a\nb", 3, "x" * 2000])
def test_names_that_cannot_be(by, two):
    with pytest.raises(DataError, match=r"by is .*Pass the name of a person"):
        two[0].teach([1], [1], by=by)
    assert two[0].n_open_ == 300


def test_a_lease_is_of_somebody(two):
    with pytest.raises(DataError, match=r"by is None. Pass the name of the person"):
        two[0].lease(5)
    assert len(two[0].lease(5, "ann")) == len(two[0].asked_of("ann")) == 5


@pytest.mark.parametrize("seconds", [-1, np.nan, "3", np.inf])
def test_times_that_cannot_be(seconds, two):
    with pytest.raises(DataError, match=r"seconds are .*Pass a number of at least 0"):
        two[0].teach([1], [1], seconds=seconds)
    two[0].teach([1], [1], seconds=np.float32(2))
    assert two[0].ledger.events[-1]["seconds"] == 2.0


def test_a_refusal_says_who_did_what(two, clock):
    ann, bob = two
    ann.teach([5], [1], by="ann")
    for call in (
        lambda: bob.teach([5], [2], by="bob"),
        lambda: bob.skip([5]),
        lambda: bob.unsure([5], by="bob"),
    ):
        with pytest.raises(
            DataError, match=r"row 5 was taught already, as 1 by 'ann' at 2027-01-15 .*correct it"
        ):
            call()
    bob.withdraw([5], by="bob")
    with pytest.raises(DataError, match=r"row 5 has no label to correct by 'bob' at 2027"):
        ann.correct([5], [2])
    with pytest.raises(DataError, match=r"row 6 was neither asked for nor taught"):
        ann.withdraw([6])
    assert ann.n_open_ == bob.n_open_ == 300


def test_writers_at_once(problem, log):
    """Nothing fails, no label is lost, and no row is labelled twice."""
    people = [learner(problem[0], strategy="random", log=log) for _ in range(4)]

    def work(number):
        for _ in range(6):
            rows = people[number].lease(5, by=f"person {number}")
            people[number].teach(rows, rows % 4, by=f"person {number}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    found = learner(problem[0], strategy="random", log=log)
    assert len(found.labelled_) == len(set(found.labelled_.tolist())) == 4 * 6 * 5
    assert (found.labels_ == found.labelled_ % 4).all()


def test_a_log_that_was_replaced_is_noticed(two, log):
    ann, bob = two
    content = log.read_bytes()
    ann.teach([1], [1])
    log.write_bytes(content)
    bob.teach([2], [1])
    content = log.read_bytes()
    for call in (ann.query, lambda: ann.teach([3], [1])):
        with pytest.raises(StoreError, match=r"the log .*log no longer has the lines that were read from it"):
            call()
    assert log.read_bytes() == content


# Two people on one row.


def test_second_opinions(two, problem, log, saved):
    """They are of others' rows, each person's once, and change no label; those that differ wait for a correction."""
    ann, bob = two
    y = problem[1]
    first = ann.lease(30, by="ann")
    ann.teach(first, y[first], by="ann")
    before = saved(ann.estimator_)
    seen = []
    for n in (3, 3, 2, 2):
        rows = bob.lease(n, by="bob", overlap=0.4)
        again = sorted(set(rows) & set(first))
        assert bob.asked_of("bob").tolist() == rows.tolist()
        assert set(rows[len(rows) - len(again) :]) == set(again)  # they come last
        bob.teach(again, (y[again] + 1) % 4 if n == 2 else y[again], by="bob")
        bob.withdraw(bob.asked_of("bob"))
        seen += again
    assert len(seen) == len(set(seen)) == 4
    assert bob.labels_.tolist() == y[first].tolist()
    assert saved(bob.estimator_) == before
    again = resume(log, problem[0])
    [agreement] = again.advice().agreement
    assert (agreement.people, agreement.n_rows) == (("ann", "bob"), 4)
    assert again.advice().conflicts == again.ledger.conflicts == [row for row in first if row in seen[2:]]
    assert "Settle 2 rows" in again.advice().next_steps[0]
    carol = again.lease(by="carol", conflicts=True)
    assert sorted(carol) == sorted(seen[2:])
    again.correct(carol, (y[carol] + 1) % 4, by="carol")
    with pytest.raises(DataError, match="there is no row on which people differ"):
        again.lease(by="ann", conflicts=True)
    bob.ledger.update()
    assert bob.ledger.conflicts == []
    assert saved(again.estimator_) != before
    assert bob.withdraw(carol).n_open_ == 300 - 28
    assert agreements_of(bob.ledger.opinions)[0].n_rows == 2


def test_second_opinions_of_the_last_rows(problem, log):
    X, y = problem[0][:20], problem[1]
    ann, bob = [learner(X, log=log) for _ in range(2)]
    ann.teach(ann.lease(by="ann"), y[ann.asked_of("ann")], by="ann")
    assert len(bob.lease(by="bob", overlap=0.5)) == 5
    bob.teach(bob.asked_of("bob"), [3] * 5, by="bob")
    with pytest.raises(DataError, match=r"row \d+ was taught already, as \d by 'ann'"):
        bob.teach(bob.labelled_, [3] * 20, by="bob")
    with pytest.raises(DataError, match="no row is left to ask for"):
        bob.lease(by="bob")
    with pytest.raises(DataError, match=r"overlap is 2, expected a number of 0 to 1"):
        bob.lease(by="bob", overlap=2)


def test_a_slip_is_no_conflict(two, problem):
    """Who corrects her own label changes her mind; who corrects another's settles it."""
    ann, bob = two
    ann.teach(range(20), [0, 1] * 10, by="ann").correct([0], [1], by="ann").correct([1], [2], by="bob")
    rows = bob.lease(18, by="bob", overlap=1.0)
    assert set(rows) == set(range(20)) - {1} - (set(range(20)) - set(rows))
    assert 1 not in bob.lease(2, by="bob", overlap=1.0)
    bob.teach([0], [1], by="bob")
    assert bob.ledger.conflicts == []


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("aabb", "aabb", 1.0), ("aabb", "abab", 0.0), ("aaab", "aabb", 0.5), ("aaaa", "aaaa", 1.0)],
)
def test_kappa(first, second, expected):
    opinions = {
        row: {"ann": a, "bob": b, None: "c"} for row, (a, b) in enumerate(zip(first, second, strict=True))
    }
    assert agreements_of(opinions) == [(("ann", "bob"), 4, pytest.approx(expected))]


# What is known of a row.


def test_skipped_unsure_and_withdrawn(two, problem):
    ann, bob = two
    for row in range(299):
        (ann if row % 2 else bob).ledger.skip([row], "blurred")
    with pytest.raises(DataError, match="at most 1"):
        ann.lease(2, by="ann")
    assert ann.lease(1, by="ann").tolist() == [299]
    ann.unsure([299], by="ann")
    with pytest.raises(DataError, match="no row is left"):
        ann.lease(by="ann")
    assert bob.lease(by="bob").tolist() == [299]
    bob.teach([299], [1], by="bob").withdraw([299], by="bob")
    assert ann.lease(by="ann").tolist() == [299]
    ann.withdraw([7])
    assert bob.query().tolist() == [7]
    assert ann.ledger.skipped[8] == "blurred"


def test_the_committee_learns_from_the_labels_as_they_are(problem, log, saved):
    X, y = problem
    wrong = np.where(np.arange(300) % 5 == 0, (y + 1) % 4, y)
    found = learner(X, log=log).teach(range(50), wrong[:50], by="ann", seconds=61.5)
    first = saved(found.estimator_)
    found.correct(range(0, 50, 5), y[:50:5], by="bob")
    assert saved(found.estimator_) == saved(committee().fit(X[:50], y[:50])) != first
    found.withdraw([49, 30, 3])
    rows = [row for row in range(50) if row not in (49, 30, 3)]
    assert found.labelled_.tolist() == rows
    assert saved(found.estimator_) == saved(committee().fit(X[rows], y[rows]))
    found.teach([3, 200], y[[3, 200]])
    expected = saved(committee().fit(X[[*rows, 3, 200]], y[[*rows, 3, 200]]))
    assert saved(found.estimator_) == saved(resume(log, X).estimator_) == expected


@pytest.mark.parametrize("act", ["correct", "withdraw", "seed"])
def test_a_committee_that_grows_cannot_unlearn(act, problem, log):
    X, y = problem
    found = learner(X, log=log, warm_start=True).teach(range(30), y[:30])
    before = log.read_bytes()
    given = {"correct": ([1], [2]), "withdraw": ([1],), "seed": (X[:2], y[:2])}
    with pytest.raises(
        DataError, match=r"warm_start=True\) keeps what it learned: labels can neither be corrected"
    ):
        getattr(found, act)(*given[act])
    assert log.read_bytes() == before


def test_a_committee_that_grows_with_two_people(problem, log, saved):
    """Its runs are those of the log, whoever made them."""
    X, y = problem
    ann, bob = [learner(X, log=log, warm_start=True) for _ in range(2)]
    for found in (ann, bob, ann, ann, bob):
        rows = found.query(12)
        found.teach(rows, y[rows], by="ann")
    again = learner(X, log=log, warm_start=True)
    assert saved(bob.estimator_) == saved(again.estimator_)
    ann.ledger.update()
    assert saved(ann.estimator_) == saved(again.estimator_)


# Seeds.


@pytest.mark.parametrize("form", ["array", "frame", "path"])
def test_rows_from_outside_the_pool(form, problem, log, tmp_path, saved):
    X, y = problem
    pool, seeds = X[:200], X[200:230]
    given = {"array": seeds, "frame": pd.DataFrame(seeds), "path": tmp_path / "seeds"}[form]
    if form == "path":
        zarr.create_array(str(given), data=seeds, chunks=(7, 6))
    found = learner(pool, log=log).seed(given, y[200:230], by="ann")
    assert saved(found.estimator_) == saved(committee().fit(seeds, y[200:230]))
    rows = found.query()
    assert len(rows) == 10  # the committee chooses them
    found.teach(rows, y[rows])
    expected = committee().fit(np.concatenate([seeds, X[rows]]), np.concatenate([y[200:230], y[rows]]))
    assert saved(found.estimator_) == saved(resume(log, pool).estimator_) == saved(expected)
    assert found.labelled_.tolist() == rows.tolist()


def test_seeds_beside_float32(problem, saved):
    X, y = problem[0].astype("f4"), problem[1]
    found = learner(X[:200]).seed(X[200:], y[200:]).teach(range(9), y[:9])
    expected = committee().fit(np.concatenate([X[200:], X[:9]]), np.concatenate([y[200:], y[:9]]))
    assert saved(found.estimator_) == saved(expected)


SEEDS = {
    "features": (lambda X: (X[:3, :5], [0, 1, 2]), "the seeds have 5 features, but the pool has 6"),
    "labels": (lambda X: (X[:3], [0, 1]), r"has 3 rows, but 2|2 labels for 3 rows"),
    "infinite": (lambda X: (np.full((1, 6), np.inf), [0]), "infinite value"),
    "class": (lambda X: (X[:2], [0, 9]), "the label 9 of row 1 of the seeds is none of the classes"),
    "many": (lambda X: (np.zeros((2**18, 6)), np.zeros(2**18, int)), "the seeds have 1572864 values.*zarr array"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SEEDS)
def test_seeds_that_cannot_be(kind, problem, log):
    found = learner(problem[0], log=log, classes=range(4))
    before = log.read_bytes()
    make, message = SEEDS[kind]
    with pytest.raises(DataError, match=message):
        found.seed(*make(problem[0]))
    assert log.read_bytes() == before


# The pool and the settings.


def test_settings_may_change(two, problem, log):
    ann, bob = two
    taught(ann, problem[1])
    bob.batch_size = 3
    bob.strategy = "random"
    assert len(ann.query()) == 3
    assert (ann.strategy, ann.batch_size) == ("random", 3)
    again = resume(log, problem[0], diversity=4)
    assert (again.strategy, again.batch_size, again.diversity) == ("random", 3, 4)
    said = [json.loads(line[9:]) for line in log.read_text().splitlines()]
    assert [event["setting"] for event in said if "setting" in event] == [
        {"batch_size": 3}, {"strategy": "random"}, {"diversity": 4},
    ]  # fmt: skip
    with pytest.raises(DataError, match="batch_size is 301"):
        bob.batch_size = 301
    assert ann.batch_size == 3


def by_number(probabilities, members, rows):
    return -rows.astype(float)


def test_a_function_that_others_ask_by(two, problem):
    ann, bob = two
    taught(ann, problem[1])
    bob.strategy = by_number
    assert bob.query(2).tolist() == sorted(set(range(300)) - set(ann.labelled_.tolist()))[:2]
    with pytest.raises(DataError, match=r"asks by .*by_number now, which is none of .*Pass that function"):
        ann.query()
    ann.strategy = by_number
    assert len(ann.query()) == 10


@pytest.fixture
def growing(problem, tmp_path):
    """A pool of 250 rows on disk, and a function that appends the others."""
    array = zarr.create_array(str(tmp_path / "pool"), data=problem[0][:250], chunks=(40, 6))
    return str(tmp_path / "pool"), lambda: array.append(problem[0][250:])


def test_a_pool_that_grows(growing, problem, log, saved):
    X, y = problem
    path, grow = growing
    ann, bob = [learner(path, log=log) for _ in range(2)]
    taught(ann, y)
    grow()
    ann.extend(by="ann")
    assert ann.n_open_ == 300 - 40
    ann.teach(range(250, 300), y[250:])
    assert bob.n_open_ == 250
    assert len(bob.query()) == 10  # it opens the pool again
    assert saved(bob.estimator_) == saved(committee().fit(X[bob.labelled_], y[bob.labelled_]))
    assert state(resume(log, path)) == state(bob)
    with pytest.raises(DataError, match=r"its pool is \[300, 6\], not \[250, 6\]"):
        resume(log, X[:250])
    with pytest.raises(DataError, match="the pool has 250 rows, but the log knows of 300"):
        ann.extend(X[:250])


def test_a_pool_that_grew_meanwhile(growing, problem, log):
    path, grow = growing
    taught(learner(path, log=log), problem[1])
    grow()
    with pytest.raises(DataError, match=r"its pool is \[250, 6\], not \[300, 6\].*extend=True"):
        resume(log, path)
    found = resume(log, path, extend=True)
    assert found.n_open_ == 300 - 40
    assert len(found.query(260)) == 260
    assert state(resume(log, path, extend=True)) == state(found)


# Logs of version 1.


def test_a_log_of_version_1_is_a_teams(problem, tmp_path, saved):
    X, y = problem
    log = tmp_path / "log"
    log.write_bytes((Path(__file__).parent / "version-1.log").read_bytes())
    ann, bob = [resume(log, X) for _ in range(2)]
    row = ann.labelled_[3]
    ann.correct([row], [(y[row] + 1) % 4], by="ann")
    rows = bob.lease(by="bob")
    assert bob.labels_[3] == (y[row] + 1) % 4
    assert len(rows) == 30
    assert state(resume(log, X)) == state(bob)


def test_a_search_that_fails_is_recorded(two, problem, log, monkeypatch):
    taught(two[0], problem[1])

    def fails(*arguments):
        raise OSError("no route")

    monkeypatch.setattr(pool_search.PoolSearch, "best", fails)
    with pytest.raises(OSError, match="no route"):
        two[0].lease(by="ann")
    event = two[0].ledger.events[-1]
    assert (event["error"], event["by"]) == ("OSError: no route", "ann")
    assert learner(problem[0], log=log).n_open_ == 260


def test_a_log_of_a_strategy_that_is_gone(problem, tmp_path):
    """Its labels are there. It asks for rows by another strategy, as soon as one is set."""
    X, y = problem
    log = tmp_path / "log"
    log.write_text(to_line({**learner(X).ledger.header, "strategy": "votes"}))
    Ledger.from_log(log).teach(range(50), y[:50])
    with pytest.raises(DataError, match=r"asks by votes, which is none of margin, .*Pass .*strategy"):
        resume(log, X)
    found = resume(log, X, strategy="margin")
    assert len(found.query()) == 10
    assert resume(log, X).strategy == "margin"
