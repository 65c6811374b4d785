"""What labels tell: the error without a test set, labels that may be wrong, and what to do next."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

from distboost import GDMCBoostClassifier
from distboost.active import QueryByCommittee, resume
from distboost.active.advice import interval
from distboost.errors import DataError
from tests.active.commands import SMALL, label, run

CENTRES = np.eye(4)[:3]


def rows(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(scale=0.45, size=(n, 4)) + CENTRES[y], y


def learner(X, **parameters):
    final = GDMCBoostClassifier(n_estimators=4, max_depth=2, n_jobs=1)
    return QueryByCommittee(ExtraTreesClassifier(n_estimators=25), X, final=final, n_initial=20, **parameters)


def taught(found, y, n):
    while len(found.labelled_) < n:
        some = found.query()
        found.teach(some, y[some])
    return found


def test_the_interval_has_the_true_error():
    """In nine of ten runs at least; it does not know that labels of hard rows are among those learned from."""
    held = 0
    X_test, y_test = rows(4000, 1000)
    for seed in range(20):
        X, y = rows(1500, seed)
        found = taught(learner(X, audit=0.4, batch_size=24, random_state=seed), y, 140)
        error = found.advice().error
        assert error.n_rows == len(set(found.labelled_) & found.ledger.audited) == 48
        held += error.low <= 1 - found.model_.score(X_test, y_test) <= error.high
    assert held >= 18


@pytest.mark.parametrize(("audit", "share"), [(0.1, 0.1), (0.25, 0.25), (1.0, 1.0), (0.0, 0.0)])
def test_random_rows_have_their_share(audit, share):
    X, y = rows(600, 0)
    found = taught(learner(X, audit=audit, batch_size=7), y, 160)
    assert len(found.ledger.audited) == pytest.approx(share * (len(found.labelled_) - 20), abs=1)
    assert found.ledger.audited <= set(found.labelled_)


def test_random_rows_survive_in_the_log(tmp_path):
    X, y = rows(300, 0)
    found = taught(learner(X, audit=0.3, log=tmp_path / "log"), y, 60)
    again = resume(tmp_path / "log", X)
    assert again.ledger.audited == found.ledger.audited != set()
    assert again.advice() == found.advice()


def test_wrong_labels_are_doubted():
    X, y = rows(600, 0)
    X = CENTRES[y] + (X - CENTRES[y]) / 4  # so far apart that only a wrong label looks wrong
    wrong = np.random.default_rng(1).choice(200, 12, replace=False)
    labels = np.array(["a", "b", "c"])[np.where(np.isin(np.arange(600), wrong), (y + 1) % 3, y)]
    final = GDMCBoostClassifier(n_estimators=20, max_depth=3, n_jobs=1)
    found = QueryByCommittee(None, X, final=final).teach(range(200), labels[:200])
    doubts = found.advice().doubts
    assert set(wrong) <= {doubt.row for doubt in doubts[:16]}
    assert [doubt.probability for doubt in doubts] == sorted(doubt.probability for doubt in doubts)
    assert all(doubt.label == labels[doubt.row] != doubt.rather for doubt in doubts)
    assert f"at {len(doubts)} labels" in found.advice().next_steps[0]


def test_right_labels_are_hardly_doubted():
    """Though the rows asked for are the hard ones."""
    X, y = load_digits(return_X_y=True)
    found = QueryByCommittee(ExtraTreesClassifier(n_estimators=25), X, batch_size=50)
    while len(found.labelled_) < 300:
        rows = found.query()
        found.teach(rows, y[rows])
    assert len(found.advice().doubts) <= 3


def test_models_of_the_folds_weigh_classes():
    """As the final model does, also those that a fold lacks."""
    X, y = rows(300, 0)
    y[:2] = 7
    final = GDMCBoostClassifier(n_estimators=4, max_depth=2, n_jobs=1, class_weight={0: 1e-6, 7: 2.0})
    found = QueryByCommittee(None, X, final=final, start="random", strategy="random")
    error = taught(found, y, 200).advice().error
    assert error.n_rows == 200
    assert error.error >= (found.labels_ == 0).mean()  # no row is told to be of a class that weighs nothing


def test_what_to_do_next():
    X, y = rows(900, 0)
    y[:3] = 7
    found = learner(X, start="random").teach(range(30), y[:30])
    assert found.advice().error is None
    steps = " ".join(found.advice().next_steps)
    assert "Label more rows of 7" in steps
    assert "Set audit=0.1" in steps
    found = taught(learner(X, strategy="random", start="random"), y, 400)
    advice = found.advice()
    assert advice.error.n_rows == 400
    assert abs(advice.gain) < 0.05
    assert "stop" in advice.next_steps[-1] or "still falling" in advice.next_steps[-1]


@pytest.mark.parametrize("audit", [-0.1, 1.5, "a tenth", None])
def test_a_share_that_is_none(audit):
    with pytest.raises(DataError, match=r"audit is .*, expected a number of 0 to 1"):
        learner(rows(30, 0)[0], audit=audit)


def test_interval_of_none_and_of_all():
    assert interval(0, 10)[0] == 0
    assert interval(10, 10)[1] == 1
    assert 0 < interval(3, 10)[0] < 0.3 < interval(3, 10)[1] < 1


def test_on_the_command_line(data, files, blobs):
    run("ask", *files, "--x", data / "x", *SMALL, "--audit", 0.5)
    for _ in range(6):
        label(files[3], blobs[1])
        run("tell", "--log", files[1], "--labels", files[3])
        run("ask", *files)
    said = run("advise", "--log", files[1])
    assert "random rows" in said
    assert "not known well" in said
