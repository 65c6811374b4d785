"""Committees that are not distboost's: any classifier with `predict_proba`, and the model that is handed over."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from distboost import GDMCBoostClassifier, load
from distboost.active import QueryByCommittee, resume
from distboost.active.strategies import Classifier, committee_of
from distboost.baselines import SAMMEClassifier
from distboost.errors import DataError
from tests.active.commands import asked, label, run
from tests.active.sessions import FORMS
from tests.active.sessions import asked as rows_of

# What version 1 asked for next.
NEXT_OF_VERSION_1 = [
    19, 107, 198, 207, 81, 131, 56, 66, 70, 89, 31, 60, 113, 126, 140, 152, 176, 213, 235, 247, 268, 50, 187, 226, 270, 11, 34,
    37, 44, 45,
]  # fmt: skip

TREES = ExtraTreesClassifier(10)


def learner(pool, estimator=TREES, **parameters):
    final = GDMCBoostClassifier(n_estimators=3, n_jobs=1)
    return QueryByCommittee(estimator, pool, final=final, n_initial=20, batch_size=8, **parameters)


def test_the_most_useful_rows_by_its_probabilities(problem):
    X, y = problem
    found = learner(X).teach(range(100), y[:100])
    trees = ExtraTreesClassifier(10, random_state=0).fit(X[:100], y[:100])
    P = np.sort(trees.predict_proba(X[100:]), axis=1)
    margin, rows = P[:, -1] - P[:, -2], found.query()
    assert_array_equal(margin[rows - 100], np.sort(margin)[:8])  # in this order
    assert len(set(rows)) == 8


@pytest.mark.parametrize(
    "forest",
    [
        TREES,
        ExtraTreesClassifier(15, min_samples_leaf=3, n_jobs=2),
        ExtraTreesClassifier(15, max_leaf_nodes=9),
        RandomForestClassifier(15),
        RandomForestClassifier(15, max_depth=1, class_weight="balanced"),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_a_forest_has_the_probabilities_that_scikit_learn_computes(forest, dtype, problem):
    """To the last bit, and each tree has."""
    X, y = problem
    X = np.nan_to_num(10 * X).astype(dtype) if dtype == "i2" else X.astype(dtype)
    fitted = clone(forest).set_params(random_state=0).fit(X[:150], np.array(list("abcd"))[y[:150]])
    committee = committee_of(fitted)
    assert not isinstance(committee, Classifier)
    assert_array_equal(
        committee.scores(X), clone(fitted).set_params(n_jobs=1).fit(X[:150], y[:150]).predict_proba(X)
    )
    for tree, member in zip(fitted.estimators_, committee.members(X), strict=True):
        assert_array_equal(member, tree.predict_proba(X))


@pytest.mark.parametrize("sparse", [True, False])
def test_a_forest_at_the_end_of_a_pipeline(sparse, problem):
    X, y = problem
    X = np.round(2 * X)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=sparse)
    fitted = make_pipeline(encoder, ExtraTreesClassifier(10, random_state=0)).fit(X[:150], y[:150])
    committee = committee_of(fitted)
    assert not isinstance(committee, Classifier)
    assert_array_equal(committee.scores(X), fitted.predict_proba(X))
    trees = fitted[-1].estimators_
    for tree, member in zip(trees, committee.members(X), strict=True):
        assert_array_equal(member, tree.predict_proba(fitted[0].transform(X)))


@pytest.mark.parametrize("kind", ["frame", "codes"])
def test_categories_have_no_order_for_a_forest(kind):
    """Of 24 letters, every other one is of the same class."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 24, (800, 3))
    y = codes[:, 0] % 2
    pool = pd.DataFrame(np.array(list("abcdefghijklmnopqrstuvwx"))[codes], dtype="category")
    named = "from_dtype" if kind == "frame" else [0, 1, 2]
    final = GDMCBoostClassifier(n_estimators=2, categorical_features=named)
    found = QueryByCommittee(None, pool if kind == "frame" else codes.astype(float), final=final)
    found.teach(range(200), y[:200])
    assert np.mean(found.estimator_.predict(codes) == y) > 0.98


def test_equally_useful_rows_are_asked_for_in_random_order(tmp_path):
    """The first ones would be of one class if the pool is sorted."""
    X = np.repeat([1.0, 2.0], 500)[:, None] * np.ones(3)
    pools = X, zarr.create_array(str(tmp_path / "x"), data=X, chunks=(40, 3))
    rows, in_chunks = (learner(pool, diversity=1).teach([0, 999], [0, 1]).query(100) for pool in pools)
    assert_array_equal(rows, in_chunks)
    assert 30 < (rows < 500).sum() < 70
    assert len(set(rows // 100)) == 10
    assert set(learner(X, diversity=1, random_state=1).teach([0, 999], [0, 1]).query(100)) != set(rows)


@pytest.mark.parametrize(("form", "n_workers"), [("zarr, both cut", 2), ("dask, columns", 0)])
def test_the_same_rows_wherever_the_pool_is_scored(form, n_workers, problem, tmp_path, clients, small_blocks):
    X, y = problem
    found = learner(FORMS[form](X, tmp_path))
    found.home.client = clients[n_workers] if n_workers else None
    assert rows_of(found, y) == rows_of(learner(X), y)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(SimpleImputer(), LogisticRegression()),
        BaggingClassifier(DecisionTreeClassifier(max_depth=3), 5),
    ],
    ids=["without members", "of any members"],
)
@pytest.mark.parametrize("strategy", ["entropy", "averaged-margin"])
def test_any_classifier_and_strategy(estimator, strategy, problem):
    X, y = problem
    first, second = (rows_of(learner(X, estimator, strategy=strategy), y) for _ in range(2))
    assert first == second  # also without a seed of its own
    assert len({row for rows in first for row in rows}) == 20 + 8 + 8


@pytest.mark.parametrize("way", ["bagging", "boosting"])
def test_query_by_bagging_and_by_boosting(way, problem):
    """The rows on which the members' votes for two classes differ least (Abe & Mamitsuka 1998)."""
    X, y = problem
    X = np.nan_to_num(X)
    bagging = BaggingClassifier(DecisionTreeClassifier(), 20, random_state=0)
    estimator = bagging if way == "bagging" else SAMMEClassifier(n_estimators=20, n_jobs=1)
    rows = learner(X, estimator, diversity=1).teach(range(100), y[:100]).query()
    fitted = clone(estimator).fit(X[:100], y[:100])
    if way == "bagging":
        votes = sum(
            tree.predict(X)[:, None] == np.arange(len(fitted.classes_)) for tree in fitted.estimators_
        )
    else:
        votes = fitted.decision_function(X)
    votes = np.sort(votes.astype(float), axis=1)
    margin = votes[:, -1] - votes[:, -2]
    assert_array_equal(np.sort(margin[rows]), np.sort(margin[100:])[:8])


def test_a_strategy_of_ones_own(problem):
    X, y = problem
    shapes = set()

    def later(probabilities, members, rows):
        shapes.add((probabilities.shape[1], members.shape[0], members.shape[2]))
        np.testing.assert_allclose(members.mean(axis=0), probabilities, atol=1e-12)
        return rows

    found = learner(X, strategy=later).teach(range(100), y[:100])
    assert_array_equal(found.query(), np.arange(299, 291, -1))
    assert shapes == {(4, 10, 4)}
    with pytest.raises(DataError, match=r"returned an array of shape \(\) for \d+ rows. Return one number"):
        learner(X, strategy=lambda *_: 0.0).teach(range(100), y[:100]).query()


def test_the_model_is_the_final_one(problem, tmp_path):
    X, y = problem
    found = learner(X).teach(range(100), y[:100])
    expected = GDMCBoostClassifier(n_estimators=3, n_jobs=1).fit(X[:100], y[:100])
    assert found.model_.digest() == expected.digest()
    assert found.model_.calibration_ == expected.calibration_ is not None
    assert found.run(y, eval_set=(X, y), max_labels=100).error[-1] == 1 - expected.score(X, y)


def test_work_is_resumed_from_its_log(problem, tmp_path):
    X, y = problem
    zarr.create_array(tmp_path / "x", data=X)
    expected = rows_of(learner(X), y, 4)
    some = learner(X, log=tmp_path / "log")
    assert rows_of(some, y, 2) + rows_of(resume(tmp_path / "log", X), y, 2) == expected
    own = learner(X, LogisticRegression(), strategy=max_of_members, log=tmp_path / "own").teach([1], [2])
    del own
    with pytest.raises(DataError, match=r"by .*max_of_members.* Pass that function"):
        resume(tmp_path / "own", X)
    with pytest.raises(DataError, match=r"a committee of the class sklearn.*LogisticRegression. Pass one"):
        resume(tmp_path / "own", X, strategy=max_of_members)
    again = resume(tmp_path / "own", X, estimator=LogisticRegression(), strategy=max_of_members)
    assert again.labelled_.tolist() == [1]


def max_of_members(probabilities, members, rows):
    return members.max(axis=(0, 2))


def test_a_log_of_version_1_is_continued(problem, tmp_path):
    """Its committee is one of distboost's, its first rows were random, and its larger batches not diverse."""
    X, y = problem
    log = Path(shutil.copy(Path(__file__).with_name("version-1.log"), tmp_path / "log"))
    found = resume(log, X)
    assert (found.start, found.diversity, found.final) == ("random", 1, None)
    assert_array_equal(y[found.labelled_], found.labels_)
    assert found.query().tolist() == NEXT_OF_VERSION_1
    assert resume(log, X).asked_.tolist() == NEXT_OF_VERSION_1


# Where work begins


def test_the_first_rows_are_of_all_kinds():
    """Also where random rows would miss some: fifty groups, of which one has half of the rows."""
    rng = np.random.default_rng(0)
    group = np.where(rng.random(2000) < 0.5, 0, rng.integers(1, 20, 2000))
    X = 20.0 * rng.normal(size=(20, 6))[group] + rng.normal(size=(2000, 6))
    central = learner(X).query(20)
    assert len(set(group[central])) > len(set(group[learner(X, start="random").query(20)]))
    assert len(set(group[central])) >= 17
    assert_array_equal(central, learner(X).query(20))


def test_the_first_rows_need_no_values(problem):
    """Missing values, constants and features without any value."""
    X = problem[0].copy()
    X[:, 0], X[:, 1] = np.nan, 7.0
    assert len(set(learner(X).query())) == 20
    assert len(set(learner(np.ones((300, 2))).query())) == 20


# On the command line


def test_by_default(data, files, blobs, tmp_path):
    run("ask", *files, "--x", data / "x", "--n-initial", 12, "--batch-size", 4)
    log, out = files[1], files[3]
    for _ in range(2):
        label(out, blobs[1])
        run("tell", "--log", log, "--labels", out)
        run("ask", *files)
    learner = QueryByCommittee(None, f"{data}/x", n_initial=12, batch_size=4, audit=0.1)
    assert np.concatenate(rows_of(learner, blobs[1], 2)).tolist() == resume(log).labelled_.tolist()
    assert asked(out) == learner.query().tolist()
    run("model", "--log", log, "--model", tmp_path / "model")
    assert type(load(tmp_path / "model")) is GDMCBoostClassifier
    assert load(tmp_path / "model").digest() == learner.model_.digest()
