"""The rows that are asked for, and their order, depend on neither place nor form of the pool."""

from __future__ import annotations

import numpy as np
import pytest

from distboost.active import committee as committee_module
from distboost.active import pool, pool_search
from distboost.active.pool import Pool
from tests.active.sessions import FORMS, asked, committee, learner

WAYS = {
    "margin": {},
    "entropy": {"strategy": "entropy"},
    "averaged-margin": {"strategy": "averaged-margin"},
    "random": {"strategy": "random"},
    "fraction": {"pool_fraction": 0.3},
    "diversity": {"diversity": 4},
    "all": {"strategy": "entropy", "pool_fraction": 0.5, "diversity": 3, "random_state": 7},
}
# Who reads and scores a block does not know how many others there are.
CASES = [("2 threads", way) for way in WAYS] + [("2 workers", "all")]
CASES += [pytest.param(place, "all", marks=pytest.mark.soak) for place in ("1 worker", "3 workers")]


@pytest.fixture(scope="module")
def expected(problem, tmp_path_factory):
    """expected(way, form): the rows of three queries in one block and one thread.

    The form decides only if a fraction of the pool is drawn: whole chunks of it are.
    """
    known = {}

    def found(way: str, form: str = "numpy") -> list[list[int]]:
        form = form if "pool_fraction" in WAYS[way] else "numpy"
        if (way, form) not in known:
            pool = FORMS[form](problem[0], tmp_path_factory.mktemp("pool"))
            known[way, form] = asked(learner(pool, **WAYS[way]), problem[1])
        return known[way, form]

    return found


@pytest.fixture
def at(request):
    """at(place): a committee there."""

    def made(place: str):
        n, kind = place.split()
        if kind.startswith("thread"):
            return committee(n_jobs=int(n))
        return committee(client=request.getfixturevalue("clients")[int(n)])

    return made


@pytest.mark.parametrize(("place", "way"), CASES)
def test_anywhere(place, way, at, expected, problem, small_blocks, tmp_path):
    pool = FORMS["zarr, both cut"](problem[0], tmp_path)
    assert len(list(Pool(pool).spans())) > 10
    assert asked(learner(pool, at(place), **WAYS[way]), problem[1], 2) == expected(way, "zarr, both cut")[:2]


def test_trained_on_a_cluster(at, expected, problem, tmp_path, monkeypatch):
    monkeypatch.setattr(committee_module, "ONE_THREAD_VALUES", 0)
    pool = FORMS["path"](problem[0], tmp_path)
    found = learner(pool, at("3 workers"))
    assert asked(found, problem[1], 2) == expected("margin")[:2]
    assert found.estimator_.client is at("3 workers").client


# How rows are read from chunks is the same on workers; what they are told differs.
TOLD = {"numpy", "zarr, both cut", "zarr in memory", "dask", "path"}


@pytest.mark.parametrize(
    ("place", "way", "form"),
    [
        *(("2 threads", "all", form) for form in FORMS),
        *(
            pytest.param("3 workers", "all", form, marks=[] if form in TOLD else pytest.mark.soak)
            for form in FORMS
        ),
    ],
)
def test_in_any_form(place, way, form, at, expected, problem, small_blocks, tmp_path):
    pool = FORMS[form](problem[0], tmp_path)
    assert asked(learner(pool, at(place), **WAYS[way]), problem[1], 2) == expected(way, form)[:2]


def test_the_ways_differ(expected):
    """Else the tests above would compare nothing."""
    rows = [str(expected(way)) for way in WAYS]
    assert len(set(rows)) == len(rows)
    first = [expected(way)[0] for way in WAYS if way != "all"]
    assert all(some == first[0] for some in first)  # the seed alone decides


@pytest.mark.parametrize("rows_at_once", [1, 7, 100])
def test_rows_scored_at_once(rows_at_once, expected, problem, monkeypatch):
    monkeypatch.setattr(pool_search, "ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(pool, "RANDOM_ROWS", 3 * rows_at_once)
    for way in ("averaged-margin", "all", "random"):
        assert asked(learner(problem[0], **WAYS[way]), problem[1]) == expected(way)


def test_a_small_part_of_the_pool_is_widened_until_it_has_enough_rows(problem):
    X, y = problem
    found = learner(X, pool_fraction=1e-9, n_initial=290)
    assert [len(rows) for rows in asked(found, y, 2)] == [290, 10]
    assert np.array_equal(np.sort(found.labelled_), np.arange(300))


def test_batches_of_any_size(problem):
    """The most useful 30 begin with the most useful 10."""
    X, y = problem
    some, more = learner(X, diversity=1), learner(X, diversity=1)
    asked(some, y, 1), asked(more, y, 1)
    assert more.query(30)[:10].tolist() == some.query().tolist()
    assert len(np.intersect1d(some.asked_, some.query(20))) == 0


def test_another_seed_asks_for_other_rows(problem):
    X, _ = problem
    assert learner(X, random_state=1).query().tolist() != learner(X).query().tolist()
