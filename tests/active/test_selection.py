"""The best of the bests of any parts are the best of all; a batch is spread as far as can be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distboost.active import QueryByCommittee, pool
from distboost.active.pool import random_rows, rows_between
from distboost.active.selection import RankedRows, select_distinct, select_diverse

UTILITIES = st.lists(
    st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1e-300, 2.0, np.inf]), min_size=1, max_size=40
)


def lot_of(row: int) -> float:
    """A number that decides ties, the same for some rows."""
    return row * 7 % 5


def candidates(utility, rows) -> RankedRows:
    rows = np.array(rows, np.int64)
    lots, scores = lot_of(rows).astype(float), np.column_stack([rows, -rows]).astype(float)
    return RankedRows(np.array(utility, float), lots, rows, scores)


@given(UTILITIES, st.integers(1, 45), st.data())
def test_any_parts_in_any_order(utility, k, data):
    n = len(utility)
    order = data.draw(st.permutations(range(n)))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=8)))
    best = RankedRows.empty(2)
    for part in np.split(np.array(order), cuts):  # some have no rows
        found = candidates([utility[row] for row in part], part).best(k)
        assert len(found.rows) == min(k, len(part))
        best = best.merged(found).best(k)
    expected = sorted(range(n), key=lambda row: (-utility[row], lot_of(row), row))[:k]
    assert best.rows.tolist() == expected
    assert best.utility.tolist() == [utility[row] for row in expected]
    assert best.scores.tolist() == [[row, -row] for row in expected]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=25), st.integers(1, 30))
def test_spread(scores, k):
    F = np.array(scores, float)
    n = len(F)
    chosen = select_diverse(
        RankedRows(-np.arange(n, dtype=float), np.zeros(n), np.arange(n), F), k
    ).rows.tolist()
    assert len(chosen) == len(set(chosen)) == min(k, n)
    assert chosen[0] == 0  # the most useful one
    for size in range(1, len(chosen)):
        distance = np.linalg.norm(F[:, None] - F[chosen[:size]], axis=2).min(axis=1)
        rest = [row for row in range(n) if row not in chosen[:size]]
        farthest = max(distance[rest])
        assert chosen[size] == next(row for row in rest if distance[row] == farthest)
    n_different = min(len(np.unique(F, axis=0)), len(chosen))
    # No duplicate while others are left.
    assert len(np.unique(F[chosen[:n_different]], axis=0)) == n_different


@given(st.integers(1, 60), st.integers(0, 2**64 - 1), st.integers(1, 60), st.data())
def test_random_rows(n_rows, draw, n, data):
    seen = np.array(sorted(data.draw(st.sets(st.integers(0, n_rows - 1)))), np.int64)
    cut = data.draw(st.integers(0, n_rows))
    rows = random_rows([(0, cut), (cut, n_rows)], seen, np.uint64(draw), n).tolist()
    assert len(rows) == len(set(rows)) == min(n, n_rows - len(seen))
    assert set(rows) <= set(range(n_rows)) - set(seen.tolist())
    order = random_rows([(0, n_rows)], np.zeros(0, np.int64), np.uint64(draw), n_rows).tolist()
    assert rows == [row for row in order if row not in seen][:n]  # what was seen moves nothing else


def test_no_random_rows_need_no_numbers(monkeypatch):
    """Of a large pool, they would take longer than a tenth of the scan."""
    monkeypatch.setattr(pool, "uniforms", None)
    assert random_rows([(0, 10**9)], np.zeros(0, np.int64), np.uint64(1), 0).tolist() == []


def test_random_rows_are_any():
    first = [
        random_rows([(0, 10)], np.zeros(0, np.int64), np.uint64(draw * 2**40 + 17), 1)[0]
        for draw in range(2000)
    ]
    assert (np.abs(np.bincount(first, minlength=10) - 200) < 60).all()


@given(st.sets(st.integers(0, 50)), st.integers(0, 50), st.integers(0, 50))
def test_seen_within(seen, first, stop):
    found = rows_between(np.array(sorted(seen), np.int64), first, stop)
    assert found.tolist() == [row for row in sorted(seen) if first <= row < stop]


def test_a_batch_has_no_near_copies_by_default():
    rng = np.random.default_rng(0)
    kinds = rng.permutation(np.repeat(np.arange(100), 10))
    X = rng.standard_normal((100, 5))[kinds] + 1e-4 * rng.standard_normal((1000, 5))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    first = np.unique(kinds, return_index=True)[1][:20]
    distinct = {}
    for diversity in ("auto", 1):
        learner = QueryByCommittee(None, X, diversity=diversity).teach(first, y[first])
        distinct[diversity] = len(set(kinds[learner.query(10)]))
    assert distinct["auto"] >= 8
    assert distinct[1] <= 3


@given(st.lists(st.integers(0, 3), max_size=25), st.integers(1, 30))
def test_the_most_useful_distinct_rows_come_first_then_copies(scores, k):
    F = np.array(scores, float).reshape(-1, 1)
    n = len(F)
    rows = select_distinct(RankedRows(-np.arange(n, dtype=float), np.zeros(n), np.arange(n), F), k).rows
    first = sorted(np.unique(F, return_index=True)[1].tolist())
    assert rows.tolist() == (first + [row for row in range(n) if row not in first])[:k]
