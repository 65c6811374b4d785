"""Metrics that tell the best round, and trainings that are resumed with their sets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import distboost
from distboost import GDMCBoostClassifier
from distboost.baselines import MultiBoostClassifier
from distboost.errors import DataError, ModelFormatError
from distboost.io.files import encoded, read_file
from tests.watching.sets import brier, make, own_loss


class Rising:
    """A metric that has these values, one for each round."""

    __name__ = "given"

    def __init__(self, *values):
        self.values = iter(values)

    def __call__(self, labels, P):
        return np.full(len(labels), next(self.values))


@pytest.mark.parametrize(
    ("values", "min_delta", "rounds", "best"),
    [
        ([5, 4, 3, 4, 5, 6], 0.0, 5, 3),
        ([5, 4, 4, 4, 4, 4], 0.0, 4, 2),
        ([1, 2, 3, 4, 5, 6], 0.0, 3, 1),
        ([5, 4.9, 4.8, 4.7, 4.6, 4.5], 0.0, 6, 6),
        ([5, 4.9, 4.7, 4.6, 4.4, 4.3], 0.25, 6, 5),  # better by more than 0.25 every second round
        ([5, 4.9, 4.8, 4.7, 4.6, 4.5], 1.0, 3, 1),
        ([5, 4, 3, 2, 1, 0], 1.0, 6, 5),  # by exactly 1 from round to round
        ([-1, -2, -3, -1, 0, 1], 0.0, 5, 3),
    ],
)
def test_the_best_round(values, min_delta, rounds, best, parts):
    model = make(
        n_estimators=6, eval_metric=Rising(*values), min_delta=min_delta, early_stopping_rounds=2, n_jobs=1
    ).fit(*parts[0], eval_set=tuple(part[:100] for part in parts[1]))
    assert model.eval_history_["eval"]["given"].tolist() == values[:rounds]
    assert (model.n_iter_, model.best_iteration_) == (rounds, best)
    assert model.outcome_ == ("rounds" if rounds == 6 else "early stopping")


def test_the_last_set_stops(parts):
    (X, y), _, _ = parts
    hopeless = X[:100], (y[:100] + 1) % 10
    learnable = X[:300], y[:300]
    stopping = make(n_estimators=12, early_stopping_rounds=3, eval_metric="loss")
    stopped = stopping.fit(X, y, eval_set={"learnable": learnable, "hopeless": hopeless})
    assert (stopped.outcome_, stopped.best_iteration_) == ("early stopping", 1)
    assert_array_equal(stopped.eval_loss_, stopped.eval_history_["learnable"]["loss"])
    stopped = stopping.fit(X, y, eval_set={"hopeless": hopeless, "learnable": learnable})
    assert (stopped.outcome_, stopped.best_iteration_) == ("rounds", 12)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (lambda labels, P: 0.5, r"<lambda> returned values of shape \(\) and dtype float64 for 200 rows"),
        (lambda labels, P: P, r"returned values of shape \(200, 10\)"),
        (lambda labels, P: labels.astype(str), r"dtype <U"),
        (
            lambda labels, P: np.where(labels == 3, np.nan, 0),
            r"returned nan for a row( \(.*\))?\. Return finite numbers",
        ),
        (lambda labels, P: np.full(len(P), 2.0**31), r"returned 2147483648\.0 for a row"),
    ],
)
def test_metrics_that_make_no_sense(metric, message, parts, clients):
    for client in (None, clients[2]):
        model = make(eval_metric=metric)
        model.client = client
        with pytest.raises(DataError, match=message.replace("200", r"\d+")):
            model.fit(*parts[0], eval_set=parts[1])


def test_a_function_with_the_name_of_a_metric(parts):
    def log_loss(labels, P):
        return own_loss(labels, P)

    with pytest.raises(DataError, match="a function named 'log_loss', which is also the name of a metric"):
        make(eval_metric=log_loss).fit(*parts[0], eval_set=parts[1])


# Resuming, and files.


@pytest.mark.parametrize("cls", [GDMCBoostClassifier, MultiBoostClassifier])
@pytest.mark.parametrize("metric", ["log_loss", brier], ids=["log_loss", "callable"])
def test_resumed_from_a_checkpoint(cls, metric, parts, saved, tmp_path):
    train, a, b = parts

    def trained(n, **how):
        model = cls(
            n_estimators=n, early_stopping_rounds=4, eval_metric=metric, min_delta=0.001, n_jobs=1, **how
        )
        return model.fit(*train, eval_set={"a": a, "b": b}, resume=n > 3 and "checkpoint" in how)

    whole = trained(6)
    trained(3, checkpoint=tmp_path / "checkpoint", checkpoint_every=1)
    resumed = trained(6, checkpoint=tmp_path / "checkpoint")
    assert saved(resumed) == saved(whole)
    again = distboost.load(tmp_path / "checkpoint")
    assert_array_equal(again.eval_history_["b"]["loss"], whole.eval_history_["b"]["loss"])


def test_resumed_with_other_sets(parts, saved):
    train, a, b = parts
    whole = make(n_estimators=4).fit(*train, eval_set={"b": b})
    model = make(n_estimators=2).fit(*train, eval_set={"a": a})
    assert saved(model.set_params(n_estimators=4).fit(*train, eval_set={"b": b}, resume=True)) == saved(whole)

    corrective = MultiBoostClassifier(calibration=None, n_estimators=2, n_jobs=1).fit(
        *train, eval_set={"a": a}
    )
    corrective.set_params(n_estimators=4)
    with pytest.raises(DataError, match=r"evaluated on 'a', this one on 'b'.*Pass the same eval_set"):
        corrective.fit(*train, eval_set={"b": b}, resume=True)
    corrective.fit(*train, eval_set={"a": b}, resume=True)


def test_resumed_with_another_function(parts):
    def other(labels, P):
        return brier(labels, P)

    train, a, _ = parts
    model = make(n_estimators=2, eval_metric=brier).fit(*train, eval_set=a)
    model.set_params(n_estimators=4, eval_metric=other)
    with pytest.raises(DataError, match="had the eval_metric 'brier', not 'other'"):
        model.fit(*train, eval_set=a, resume=True)
    with pytest.raises(DataError, match=r"min_delta=0\.0, not 0\.5"):
        model.set_params(eval_metric=brier, min_delta=0.5).fit(*train, eval_set=a, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        {"sets": []},
        {"sets": "ab"},
        {"sets": ["a", "a"]},
        {"sets": [1, 2]},
        {"sets": ["a", "b", "c"]},
        {"metrics": ["log_loss", 3]},
        {"metrics": []},
        {"metric": "brier"},
        {"min_delta": -1.0},
        {"min_delta": "0"},
        {"more": 1},
    ],
    ids=json.dumps,
)
def test_headers_that_do_not_fit_their_histories(change, parts, tmp_path):
    train, a, b = parts
    make(n_estimators=1, eval_metric="log_loss").fit(*train, eval_set={"a": a, "b": b}).save(tmp_path / "m")
    header, arrays = read_file(str(tmp_path / "m"))
    header["evaluation"] |= change
    (tmp_path / "m").write_bytes(encoded(header, arrays))
    with pytest.raises(ModelFormatError):
        distboost.load(tmp_path / "m")
