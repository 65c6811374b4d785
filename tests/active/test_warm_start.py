"""A committee that keeps its rounds, and the scores of the pool that are kept with them."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from distboost import GAMBLEClassifier, GDMCBoostClassifier, REBELClassifier
from distboost.active import committee as committee_module
from distboost.active import pool_search as search
from distboost.active.pool_search import CachedScores
from distboost.baselines import GradBoostClassifier, MultiBoostClassifier
from distboost.errors import DataError, StoreError
from distboost.estimators.factory import estimator
from distboost.estimators.parameters import algorithm_of
from distboost.io import storage
from distboost.registry import ALGORITHMS
from tests.active.sessions import FORMS, asked, committee, learner, state

ESTIMATORS = {
    "gamble": lambda: committee(),
    "some rows and features": lambda: committee(subsample=0.7, max_features=0.6),
    "gd": lambda: GDMCBoostClassifier(calibration=None, n_estimators=3, max_depth=2, n_jobs=1),
    "similarities": lambda: REBELClassifier(
        calibration=None, n_estimators=3, weak_learner="similarity", n_jobs=1
    ),
}


@pytest.fixture
def scratch(tmp_path):
    return tmp_path / "scratch"


def folders(scratch):
    return [path for path in scratch.iterdir() if path.is_dir()]


def grown(pool, given, scratch, **parameters):
    client = given.client
    given = given.set_params(scratch=str(scratch))
    given.client = client
    return learner(pool, given, warm_start=True, **parameters)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rounds_are_kept_and_more_are_learned(name, problem, scratch):
    """Of all rows taught by then; the loss is that of the scores."""
    X, y = problem
    found = grown(X, ESTIMATORS[name](), scratch)
    asked(found, y, 1)
    first = found.estimator_
    before = [F.copy() for F in first.staged_scores(X)]
    asked(found, y, 2)
    now = found.estimator_
    assert now is not first
    assert now.n_iter_ == now.n_estimators == len(now.learned_.ensemble)
    assert (first.n_iter_, now.n_iter_) == (3, 9)
    np.testing.assert_array_equal(list(now.staged_scores(X))[:3], before)
    rows = found.labelled_
    assert now.train_error_[-1] == (now.predict(X[rows]) != y[rows]).mean()


def test_gambles_loss_is_that_of_the_scores(problem, scratch):
    """Large values of leaves, from rows that the bins of later rows would part elsewhere."""
    X, y = problem
    found = grown(X, committee(), scratch)
    asked(found, y, 4)
    F, rows = found.estimator_.scores(X[found.labelled_]), found.labels_
    margins = F[np.arange(len(rows)), rows]
    assert found.estimator_.train_loss_[-1] == pytest.approx(np.exp(-margins / 3).mean(), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "form"),
    [*((name, "numpy") for name in ESTIMATORS), *(("gamble", form) for form in ("zarr, both cut", "dask"))],
)
def test_kept_scores_are_those_computed_anew(
    name, form, problem, scratch, small_blocks, tmp_path, monkeypatch
):
    X, y = problem
    kept = grown(FORMS[form](X, tmp_path), ESTIMATORS[name](), scratch)
    rows = asked(kept, y, 4)
    assert len(folders(scratch)) == 1
    monkeypatch.setattr(search.PoolSearch, "_cached_scores", lambda *_: nullcontext())
    anew = learner(X, ESTIMATORS[name](), warm_start=True)
    assert asked(anew, y, 4) == rows


def test_only_new_rounds_are_scored(problem, scratch, small_blocks, monkeypatch):
    X, y = problem
    begun = []
    scores = CachedScores.scores

    def counted(self, *arguments):
        begun.append(self.n_rounds)
        return scores(self, *arguments)

    monkeypatch.setattr(CachedScores, "scores", counted)
    found = grown(X, committee(), scratch)
    asked(found, y, 4)  # the first is drawn at random
    found.query()  # of the committee of the last query, and the 10 rows taught since
    found.query()  # of the same committee
    per_query = len(begun) // 5
    assert begun[::per_query] == [0, 3, 6, 9, 12]
    (folder,) = folders(scratch)
    assert [kept.name for kept in folder.iterdir()] == ["12"]
    del found
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("n_workers", [pytest.param(1, marks=pytest.mark.soak), 3])
def test_workers_change_nothing(
    n_workers, problem, scratch, small_blocks, clients, tmp_path, saved, monkeypatch
):
    """Scored on workers, and trained there too."""
    X, y = problem
    expected = grown(X, committee(), scratch)
    rows = asked(expected, y, 3)
    monkeypatch.setattr(committee_module, "IN_PROCESS_VALUES", 0)
    found = grown(FORMS["path"](X, tmp_path), committee(client=clients[n_workers]), scratch)
    assert asked(found, y, 3) == rows
    assert saved(found.estimator_) == saved(expected.estimator_)


def test_continued_from_a_log(problem, scratch, tmp_path, saved):
    """It is grown as it was, whenever it was trained."""
    X, y = problem
    log = tmp_path / "log"
    whole = grown(X, committee(), scratch)
    asked(whole, y, 2)
    more = [row for row in range(300) if row not in whole.labelled_][:2]
    whole.teach(more, y[more]).estimator_  # noqa: B018 (trains)
    rows = asked(whole, y, 2)
    first = grown(X, committee(), scratch, log=log)
    asked(first, y, 2)
    first.teach(more, y[more]).estimator_  # noqa: B018 (trains)
    del first
    again = grown(X, committee(), scratch, log=log)
    assert asked(again, y, 2) == rows
    assert state(again) == state(whole)
    assert saved(again.estimator_) == saved(whole.estimator_)


def test_a_new_class_begins_a_new_committee(problem, scratch):
    X, y = problem
    found = grown(X, committee(), scratch)
    some = [row for row in range(60) if y[row] != 3]
    found.teach(some, y[some]).query()
    other = int(np.flatnonzero(y == 3)[-1])
    found.teach([other], y[[other]]).query()
    assert found.estimator_.n_iter_ == 3
    assert found.estimator_.classes_.tolist() == [0, 1, 2, 3]


def test_a_query_that_fails_loses_no_scores(problem, scratch, small_blocks, monkeypatch):
    """The scores of the query before are there until all new ones are."""
    X, y = problem
    expected = asked(grown(X, committee(), scratch), y, 4)
    found = grown(X, committee(), scratch)
    assert asked(found, y, 2) == expected[:2]
    rows = found.query()
    found.teach(rows, y[rows])
    calls, write = [], storage.write_array

    def full(*arguments):
        calls.append(arguments)
        if len(calls) == 7:
            raise StoreError("the disk is full")
        write(*arguments)

    monkeypatch.setattr("distboost.active.pool_search.write_array", full)
    with pytest.raises(StoreError, match="the disk is full"):
        found.query()
    assert len(found.asked_) == 0
    assert found.query().tolist() == expected[3]


@pytest.mark.parametrize("cls", [GradBoostClassifier, MultiBoostClassifier])
def test_algorithms_that_remember_more_than_scores_are_refused(cls, problem, scratch):
    X, y = problem
    found = grown(X, cls(n_estimators=2), scratch)
    asked(found, y, 1)
    found.query()
    found.teach([int(row) for row in found.asked_], y[found.asked_])
    with pytest.raises(DataError, match=rf"{cls.__name__} cannot continue on other rows.*warm_start=False"):
        found.query()


def test_algorithms_that_can_be_continued():
    """The rest could, if they said what they remember."""
    cannot = {name for name in ALGORITHMS if not algorithm_of(estimator(name)(), 3).scores_suffice}
    assert cannot == {"gradboost", "multiboost", "structboost", "adaboost-mm", "all-pairs"}


def test_no_scores_are_kept_without_a_use(problem, scratch):
    X, y = problem
    for parameters in ({"pool_fraction": 0.5}, {"strategy": "averaged-margin"}, {"strategy": "random"}):
        asked(grown(X, GAMBLEClassifier(calibration=None, n_estimators=2), scratch, **parameters), y, 3)
    assert not scratch.exists()
