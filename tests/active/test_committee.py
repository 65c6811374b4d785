"""The committee: what it is trained on, and what it knows of the classes."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from distboost.errors import DataError
from tests.active.sessions import FORMS, asked, committee, learner, state


def test_trained_on_what_was_taught_in_that_order(problem, saved):
    X, y = problem
    rows = [250, 3, 77, 120, 4, 9, 45, 201, 288, 30]
    found = learner(X).teach(rows[:6], y[rows[:6]]).teach(rows[6:], y[rows[6:]])
    assert found.labelled_.tolist() == rows
    assert found.labels_.tolist() == y[rows].tolist()
    assert saved(found.estimator_) == saved(committee().fit(X[rows], y[rows]))
    found.teach([0], y[:1])
    assert saved(found.estimator_) == saved(committee().fit(X[[*rows, 0]], y[[*rows, 0]]))


@pytest.mark.parametrize("form", FORMS)
def test_the_same_model_from_any_pool(form, problem, small_blocks, tmp_path, assert_same_model):
    """Rows in no order, of several chunks, in several turns."""
    X, y = problem
    found = learner(FORMS[form](X, tmp_path), committee(n_jobs=2))
    for rows in ([299, 0, 150], [31, 30, 33, 32], list(range(200, 155, -1))):
        found.teach(rows, y[rows])
        assert found.estimator_.n_iter_ == 3
    assert_same_model(found.estimator_, committee().fit(X[found.labelled_], y[found.labelled_]))


def test_the_estimator_is_not_touched(problem, tmp_path):
    X, y = problem
    given = committee(checkpoint=str(tmp_path / "checkpoint"))
    before = given.get_params()
    found = learner(X, given)
    asked(found, y, 2)
    assert given.get_params() == before
    assert not hasattr(given, "classes_")
    assert not (tmp_path / "checkpoint").exists()
    assert found.estimator_ is not given


def test_trained_once(problem):
    X, y = problem
    rounds = []
    found = learner(X, committee(callbacks=[rounds.append])).teach(range(30), y[:30])
    assert not rounds
    first = found.estimator_
    assert found.estimator_ is first
    found.query()
    assert len(rounds) == 3
    found.teach([100], y[[100]])
    assert found.estimator_ is not first
    assert len(rounds) == 6


# Classes.


def test_text_labels(problem):
    X, y = problem
    names = np.array(["birch", "oak", "ash", "lime"])[y]
    found = learner(X, committee(6))
    found.run(names, max_labels=80)
    assert found.labels_.tolist() == names[found.labelled_].tolist()
    assert found.estimator_.classes_.tolist() == ["ash", "birch", "lime", "oak"]
    assert found.estimator_.score(X, names) > 0.5


def test_classes_are_discovered(problem):
    X, y = problem
    found = learner(X)
    for classes in ([0, 2], [0, 2, 3], [0, 1, 2, 3]):
        rows = [row for row in np.flatnonzero(np.isin(y, classes))[:60] if row not in found.labelled_]
        found.teach(rows, y[rows])
        assert found.estimator_.classes_.tolist() == classes
        assert len(found.query()) == 10


def test_declared_classes_need_not_all_be_known(problem):
    X, y = problem
    found = learner(X, classes=["d", "a", "b", "c", "e"])
    names = np.array(list("abcd"))[y]
    found.teach([0, 1, 2], names[:3])
    assert found.estimator_.classes_.tolist() == sorted(set(names[:3]))
    assert found.classes.tolist() == list("abcde")
    with pytest.raises(DataError, match="the label 'f' of row 9 is none of the classes"):
        found.teach([9], ["f"])


def test_with_fewer_than_two_classes_rows_are_random(problem):
    """As if no strategy had been given."""
    X, _ = problem
    found, control = learner(X), learner(X, strategy="random")
    assert found.query().tolist() == control.query().tolist()
    for one in (found, control):
        one.teach(one.asked_, np.ones(20))
    with pytest.raises(
        NotFittedError, match=r"needs rows of at least 2 classes, but was taught 20 rows of 1\. Teach it"
    ):
        found.estimator_  # noqa: B018
    rows = found.query()
    assert rows.tolist() == control.query().tolist()
    for one in (found, control):
        one.teach(rows, np.arange(10) % 2)
    assert found.query().tolist() != control.query().tolist()


def test_nothing_taught(problem):
    found = learner(problem[0])
    with pytest.raises(NotFittedError, match=r"was taught 0 rows of 0"):
        found.estimator_  # noqa: B018
    assert found.labelled_.tolist() == found.labels_.tolist() == found.asked_.tolist() == []
    assert found.n_open_ == 300


def test_rows_never_asked_for_may_be_taught(problem):
    X, y = problem
    found = learner(X)
    asked_for = found.query()
    other = next(row for row in range(300) if row not in asked_for)
    found.teach([other, asked_for[3]], y[[other, asked_for[3]]])
    assert found.asked_.tolist() == [*asked_for[:3], *asked_for[4:]]
    assert found.n_open_ == 300 - 21
    assert other not in found.query()


# Data frames.


def test_a_data_frame(problem):
    X, y = problem
    frame = pd.DataFrame(X, columns=list("uvwxyz"), index=np.arange(300)[::-1] * 7)
    found, array = learner(frame), learner(X)
    assert asked(found, y) == asked(array, y)  # rows are told by their position
    assert found.estimator_.feature_names_in_.tolist() == list("uvwxyz")
    assert found.estimator_.predict(frame).tolist() == array.estimator_.predict(X).tolist()
    with pytest.raises(ValueError, match="feature names"):
        found.estimator_.predict(frame[list("zyxwvu")])


def test_a_data_frame_of_mixed_numbers(problem):
    X, y = problem
    frame = pd.DataFrame({"whole": np.arange(300) % 7, "part": X[:, 0], "true": y > 1})
    values = frame.to_numpy(dtype=float)
    assert asked(learner(frame), y) == asked(learner(values), y)


# Copies.


@pytest.mark.parametrize("form", ["numpy", "zarr, both cut", "dask", "path"])
def test_pickled(form, problem, tmp_path, saved):
    X, y = problem
    found = learner(FORMS[form](X, tmp_path), committee(client=object()) if form == "numpy" else None)
    asked(found, y, 2)
    again = pickle.loads(pickle.dumps(found))
    assert again.estimator.client is None
    assert state(again) == state(found)
    assert saved(again.estimator_) == saved(found.estimator_)
    assert again.query().tolist() == found.query().tolist()


def test_pickled_with_a_log(problem, tmp_path):
    """Both go on, with the same file."""
    X, y = problem
    found = learner(X, log=tmp_path / "log")
    again = pickle.loads(pickle.dumps(found))
    rows = again.query()
    assert not set(found.query()) & set(rows)
    again.teach(rows, y[rows])
    assert state(learner(X, log=tmp_path / "log")) == state(again)


def test_weights_of_classes_that_are_not_known_yet(problem, saved):
    X, y = problem
    rows = [row for row in range(40) if y[row] != 3]
    found = learner(X, committee(class_weight={0: 2.0, 3: 5.0})).teach(rows, y[rows])
    assert saved(found.estimator_) == saved(committee(class_weight={0: 2.0}).fit(X[rows], y[rows]))
    found.teach(range(40, 80), y[40:80])
    rows += range(40, 80)
    assert saved(found.estimator_) == saved(committee(class_weight={0: 2.0, 3: 5.0}).fit(X[rows], y[rows]))
