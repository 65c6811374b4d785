"""How useful a row is, against formulas written down from what the estimators say; and every estimator as a committee."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from distboost import REBELClassifier
from distboost.active.selection import RankedRows
from distboost.active.strategies import UTILITIES, Judged, committee_of
from distboost.baselines import AllPairsClassifier
from distboost.estimators.factory import estimator
from distboost.registry import ALGORITHMS
from tests.active.sessions import asked, committee, learner

MAKERS = {
    **{
        name: lambda name=name: estimator(name)(calibration=None, n_estimators=4, n_jobs=1)
        for name in ALGORITHMS
    },
    # What a round's pairs vote alone is no difference of two scores.
    "all-pairs": lambda: AllPairsClassifier(calibration=None, n_estimators=4, n_jobs=1, decoding="sum"),
    "rebel, similarity": lambda: REBELClassifier(
        calibration=None, n_estimators=3, weak_learner="similarity", n_jobs=1
    ),
}


def margin(model, X) -> np.ndarray:
    return np.array([sorted(F)[-2] - sorted(F)[-1] for F in model.scores(X)])


def entropy(model, X) -> np.ndarray:
    P = model.predict_proba(X)
    return -np.where(P > 0, P * np.log(np.where(P > 0, P, 1)), 0).sum(axis=1)


def averaged_margin(model, X) -> np.ndarray:
    stages = [np.zeros((len(X), model.n_classes_)), *model.staged_scores(X)]
    members = [np.sort(after - before, axis=1) for before, after in pairwise(stages)]
    return np.mean([F[:, -2] - F[:, -1] for F in members], axis=0)


NAIVE = {"margin": margin, "entropy": entropy, "averaged-margin": averaged_margin}


@pytest.fixture(scope="module", params=MAKERS)
def model(request, problem):
    X, y = problem
    return MAKERS[request.param]().fit(X[:150], y[:150])


@pytest.mark.parametrize("strategy", NAIVE)
def test_formula(strategy, model, problem):
    X = problem[0][150:]
    members = committee_of(model)
    F = members.decoded(members.scores(X))
    utility = UTILITIES[strategy](Judged(members, X, F, np.arange(150, 300)))
    assert utility.shape == (len(X),)
    assert_allclose(utility, NAIVE[strategy](model, X), rtol=1e-9, atol=1e-12)
    # A leaf of AdaBoost.MM votes for one class, always by the same margin.
    assert len(np.unique(utility)) > 1 or strategy == "averaged-margin"


@pytest.mark.parametrize("strategy", NAIVE)
@pytest.mark.parametrize("name", MAKERS)
def test_every_estimator(name, strategy, problem):
    """Its most useful rows, by the committee that the learner shows."""
    X, y = problem
    found = learner(X, MAKERS[name](), strategy=strategy, diversity=1).teach(range(60), y[:60])
    model, open_rows = found.estimator_, np.arange(60, 300)
    assert type(model) is type(found.estimator)
    assert_array_equal(model.predict(X), MAKERS[name]().fit(X[:60], y[:60]).predict(X))
    rows = found.query()
    utility = NAIVE[strategy](model, X)
    least = utility[rows].min()
    assert set(rows) <= set(open_rows)
    assert (utility[open_rows] > least + 1e-9).sum() <= 10
    found.teach(rows, y[rows])
    assert len(found.query()) == 10


def test_margin_is_that_of_the_paper(problem):
    """u(x) = 1 / (F_k - F_j) puts the rows in the same order."""
    X, y = problem
    found = learner(X).teach(range(60), y[:60])
    F = np.sort(found.estimator_.scores(X[60:]), axis=1)
    with np.errstate(divide="ignore"):
        u = 1 / (F[:, -1] - F[:, -2])
    best = RankedRows(u, np.zeros(240), np.arange(60, 300), np.zeros((240, 0))).best(10)
    assert found.query().tolist() == best.rows.tolist()


def test_two_classes(problem):
    X, y = problem
    for strategy in NAIVE:
        rows = asked(learner(X, strategy=strategy), np.array(["no", "yes"])[y % 2], 2)
        assert len({*rows[0], *rows[1]}) == 30


def test_probabilities_of_0_have_no_entropy():
    """They are not NaN."""
    X = np.repeat(np.arange(4.0), 10)[:, None]
    y = np.repeat([0, 1, 2, 2], 10)
    found = learner(X, committee(600), strategy="entropy", batch_size=2)
    found.teach(range(0, 40, 3), y[::3])
    assert found.estimator_.predict_proba(X).min() == 0
    assert found.query().tolist() == [1, 2]
