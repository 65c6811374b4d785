"""Asking an oracle until there is a reason to stop."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import zarr
from sklearn.metrics import cohen_kappa_score

from distboost.active import labelling
from distboost.errors import DataError
from tests.active.sessions import committee, learner, state


def test_target_error(problem):
    X, y = problem
    found = learner(X, committee(10))
    curve = found.run(y, eval_set=(X, y), target_error=0.35)
    assert curve.outcome == "target error"
    assert (curve.error[:-1] > 0.35).all()
    assert curve.error[-1] <= 0.35
    assert curve.error[-1] == pytest.approx(1 - found.estimator_.score(X, y))
    assert curve.n_labelled.tolist() == list(range(20, len(found.labelled_) + 1, 10))
    assert curve.strategy == "margin"
    assert (curve.seconds > 0).all()
    assert found.run(y, eval_set=(X, y), target_error=0.35).outcome == "target error"
    assert len(found.labelled_) == curve.n_labelled[-1]  # nothing was asked


@pytest.mark.parametrize("budget", [3, 20, 27, 30, 300])
def test_label_budget(budget, problem):
    X, y = problem
    found = learner(X)
    curve = found.run(y, max_labels=budget)
    assert curve.outcome == "label budget"
    assert len(found.labelled_) == budget
    assert len(found.asked_) == 0
    assert np.isnan(curve.error).all()
    assert found.run(y, max_labels=budget).outcome == "label budget"
    assert len(found.labelled_) == budget
    if budget < 300:
        assert found.run(y, max_labels=budget + 1).outcome == "label budget"
        assert len(found.labelled_) == budget + 1


@pytest.mark.parametrize("budget", [1, 3, 5])
def test_a_budget_holds_for_rows_that_were_asked_before(budget, problem):
    """Also where one class only is known, and nothing can be trained."""
    X, _ = problem
    found = learner(X)
    asked = found.query()
    found.teach(asked[:3], [1, 1, 1])
    assert found.run(np.ones(300), max_labels=budget).outcome == "label budget"
    assert found.labelled_.tolist() == asked[: max(budget, 3)].tolist()
    assert found.asked_.tolist() == asked[max(budget, 3) :].tolist()


@pytest.mark.parametrize("strategy", ["margin", "random"])
def test_pool_exhausted(strategy, problem):
    """Each row is asked for once; the last batch has fewer."""
    X, y = problem
    found, told = learner(X[:75], strategy=strategy), []

    def oracle(rows):
        told.append(rows.tolist())
        return y[rows]

    curve = found.run(oracle)
    assert curve.outcome == "pool exhausted"
    assert list(map(len, told)) == [20, 10, 10, 10, 10, 10, 5]
    assert sorted(chain(*told)) == list(range(75))
    assert found.labelled_.tolist() == list(chain(*told))
    assert found.labels_.tolist() == y[found.labelled_].tolist()
    assert found.n_open_ == 0
    assert found.run(oracle).outcome == "pool exhausted"
    assert len(told) == 7


def test_a_budget_of_more_than_the_pool_has(problem):
    """Also where less than a batch is left of both."""
    X, y = problem
    found = learner(X[:25])
    assert found.run(y[:25], max_labels=28).outcome == "pool exhausted"
    assert sorted(found.labelled_) == list(range(25))


def test_a_pool_of_one_class_is_exhausted(problem):
    X, _ = problem
    found = learner(X[:25])
    curve = found.run(np.zeros(25), callbacks=[lambda curve: pytest.fail("nothing was trained")])
    assert curve.outcome == "pool exhausted"
    assert len(curve.points) == 0
    assert found.run(np.zeros(25)).outcome == "pool exhausted"


def test_stabilised(problem):
    """The mean agreement of the last 3 committees, each with the one before, on the pool: it has less than STOP_ROWS rows."""
    X, y = problem
    found, predicted = learner(X), []
    callbacks = [lambda curve: predicted.append(found.estimator_.predict(X))]
    found.run(y, max_labels=150, callbacks=callbacks)
    kappa = [cohen_kappa_score(a, b) for a, b in zip(predicted[1:], predicted[:-1], strict=True)]
    means = [np.mean(kappa[end - 3 : end]) for end in range(3, len(kappa) + 1)]
    assert len(X) <= labelling.STOP_ROWS
    for goal in (min(means), max(means[:-1]), max(means)):
        first = next(place for place, mean in enumerate(means) if mean >= goal)
        curve = learner(X).run(y, stabilised=goal, max_labels=300)
        assert curve.outcome == "stabilised"
        assert len(curve.points) == first + 4  # 3 agreements are of 4 committees
    assert learner(X).run(y, stabilised=1.0, max_labels=100).outcome == "label budget"


def test_one_class_predicted_for_all_is_agreement():
    """Cohen's kappa is not defined then."""
    curve = learner(np.zeros((300, 2))).run(np.arange(300) % 10 == 0, stabilised=1.0)
    assert curve.outcome == "stabilised"
    assert len(curve.points) == 4


def test_callbacks(problem):
    X, y = problem
    seen = []

    def watch(curve):
        seen.append(curve.n_labelled.tolist())
        return "a string does not stop it"

    def stop(curve):
        return np.bool_(len(curve.points) == 3)

    curve = learner(X).run(y, callbacks=[stop, watch])
    assert curve.outcome == "callback"
    assert seen == [[20], [20, 30], [20, 30, 40]]  # every one is told, the last time too


def test_what_comes_first_names_the_outcome(problem):
    X, y = problem
    curve = learner(X).run(
        y, eval_set=(X, y), target_error=0.99, max_labels=20, callbacks=[lambda curve: True]
    )
    assert curve.outcome == "target error"
    curve = learner(X).run(y, eval_set=(X, y), max_labels=20, callbacks=[lambda curve: True])
    assert curve.outcome == "label budget"


class GoneError(Exception):
    """The labeller has left."""


@pytest.mark.parametrize("failing", [1, 2, 4])
def test_an_oracle_that_raises(failing, problem, tmp_path):
    """What it raises is passed on, nothing is lost, and the same rows are asked again."""
    X, y = problem
    expected = learner(X)
    expected.run(y, max_labels=70)
    found, told = learner(X, log=tmp_path / "log"), []

    def oracle(rows):
        told.append(rows.tolist())
        if len(told) == failing:
            raise GoneError
        return y[rows]

    with pytest.raises(GoneError):
        found.run(oracle, max_labels=70)
    assert found.asked_.tolist() == told[-1]
    assert len(found.labelled_) == sum(map(len, told[:-1]))
    again = learner(X, log=tmp_path / "log")
    assert state(again) == state(found)
    assert again.run(oracle, max_labels=70).outcome == "label budget"
    assert told[failing - 1] == told[failing]
    assert state(again) == state(expected)


BAD_ANSWERS = {
    "too few": (
        lambda y: y[1:],
        r"asked for 20 rows and answered with labels of shape \(19,\).*one label for each",
    ),
    "too many": (lambda y: [*y, 0], r"asked for 20 rows and answered with labels of shape \(21,\)"),
    "a column": (lambda y: y[:, None], r"asked for 20 rows and answered with labels of shape \(20, 1\)"),
    "nothing": (lambda y: None, r"asked for 20 rows and answered with labels of shape \(\)"),
    "unknown": (lambda y: [None, *y[1:]], r"a label is None. Teach only the rows whose label is known"),
    "infinite": (lambda y: [np.inf, *y[1:]], r"a label is inf. Pass integers or text"),
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_a_bad_answer(kind, problem):
    X, y = problem
    found = learner(X)
    answer, message = BAD_ANSWERS[kind]
    with pytest.raises(DataError, match=message):
        found.run(lambda rows: answer(y[rows]))
    assert len(found.labelled_) == 0
    assert len(found.asked_) == 20
    assert found.run(y, max_labels=50).outcome == "label budget"


def test_oracles_of_every_kind(problem, tmp_path):
    X, y = problem
    stored = zarr.create_array(str(tmp_path / "y"), data=y, chunks=(17,))
    expected = learner(X)
    expected.run(y, max_labels=60)
    for oracle in (y.tolist(), stored, str(tmp_path / "y"), lambda rows: y[rows].tolist()):
        found = learner(X)
        found.run(oracle, max_labels=60)
        assert state(found) == state(expected)


def test_lazy_evaluation_rows(problem, tmp_path):
    X, y = problem
    stored = [zarr.create_array(str(tmp_path / name), data=data, chunks=(40, *data.shape[1:]))
              for name, data in (("x", X), ("y", y))]  # fmt: skip
    expected = learner(X).run(y, eval_set=(X, y), max_labels=40).error.tolist()
    assert learner(X).run(y, eval_set=tuple(stored), max_labels=40).error.tolist() == expected
    urls = str(tmp_path / "x"), str(tmp_path / "y")
    assert learner(X).run(y, eval_set=urls, max_labels=40).error.tolist() == expected


BAD_GOALS = {
    "no eval_set": ({"target_error": 0.1}, r"target_error=0.1 needs rows to measure it on"),
    "percent": ({"target_error": 5, "eval_set": 1}, r"target_error is 5, expected a fraction: 0.05 is 5 %"),
    "no agreement": ({"stabilised": 0}, r"stabilised is 0, expected an agreement above 0 and at most 1"),
    "too much agreement": ({"stabilised": 1.1}, r"stabilised is 1.1, expected an agreement above 0"),
    "no labels": ({"max_labels": 0}, r"max_labels is 0, expected a whole number of at least 1"),
    "part of a label": ({"max_labels": 2.5}, r"max_labels is 2.5, expected a whole number of at least 1"),
    "a text as an error": (
        {"target_error": "5 %", "eval_set": 1},
        r"target_error is '5 %', expected a fraction",
    ),
    "a text as an agreement": ({"stabilised": "high"}, r"stabilised is 'high', expected an agreement"),
    "no function": ({"callbacks": [3]}, r"callbacks has 3, which is not callable"),
    "fewer labels": ({"eval_set": "short"}, r"the eval_set has 300 rows and labels of shape \(299,\)"),
    "nothing": ({"eval_set": "empty"}, r"the eval_set has 0 rows and labels of shape \(0,\)"),
}


@pytest.mark.parametrize("kind", BAD_GOALS)
def test_bad_goals(kind, problem):
    X, y = problem
    sets = {"short": (X, y[1:]), "empty": (X[:0], y[:0]), 1: (X, y)}
    parameters, message = BAD_GOALS[kind]
    parameters = {name: sets[value] if name == "eval_set" else value for name, value in parameters.items()}
    found = learner(X)
    with pytest.raises(DataError, match=message):
        found.run(y, **parameters)
    assert found.n_queries_ == 0


def test_evaluation_labels_of_another_kind(problem):
    """Every prediction would be wrong. What was taught by then is kept."""
    X, y = problem
    found = learner(X)
    with pytest.raises(
        DataError, match=r"labels of the eval_set, such as .*'\d'.*not of the kind that was taught"
    ):
        found.run(y, eval_set=(X, y.astype(str)), target_error=0.1)
    assert len(found.labelled_) == 20
    assert found.run(y, eval_set=(X, y), max_labels=30).outcome == "label budget"


@pytest.mark.parametrize("shape", [(299,), (301,), (300, 1)])
def test_an_oracle_of_another_length(shape, problem):
    found = learner(problem[0])
    with pytest.raises(
        DataError, match=r"oracle has labels of shape .*the pool has 300 rows: pass one for each, or"
    ):
        found.run(np.zeros(shape))
    assert found.n_queries_ == 0


def test_progress_bar(problem, capsys):
    X, y = problem
    learner(X, verbose=1).run(y, eval_set=(X, y), max_labels=40)
    said = capsys.readouterr().out
    assert "GAMBLEClassifier, margin" in said
    assert "40/40 labels, error" in said
