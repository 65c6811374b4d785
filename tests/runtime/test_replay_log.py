"""Blocks that come late, or go and come back, are after their past what they would be if they had been there all the time."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import distboost
from distboost import baselines
from distboost.estimators import fitting
from distboost.rows.messages import EMPTY_LOG
from distboost.runtime.base import Allotment, readings
from distboost.runtime.block import Key
from distboost.runtime.cluster.host import Host
from distboost.runtime.local import LocalRuntime
from distboost.runtime.whole_trees import WholeTrees
from tests.weak.histogram_slots import tree_of

N_BLOCKS = 5
N_ROWS, N_EVALUATED = 120, 40

MODELS = {
    "trees": distboost.GDMCBoostClassifier(calibration=None, n_estimators=3, max_depth=3, subsample=0.6),
    "best first": distboost.CDMCBoostClassifier(
        calibration=None, n_estimators=3, max_depth=None, max_leaf_nodes=4
    ),
    "stumps": distboost.AdaBoostMMClassifier(calibration=None, n_estimators=4, max_depth=1),
    "similarities": distboost.REBELClassifier(
        calibration=None, n_estimators=3, weak_learner="similarity", max_candidates=4
    ),
    "committee": baselines.OneVsAllAdaBoostClassifier(
        calibration=None, n_estimators=2, max_depth=2, subsample=0.8
    ),
    "class statistics": distboost.GAMBLEClassifier(calibration=None, n_estimators=3, max_leaf_nodes=4),
    "drawn by weight": distboost.AdaBoostMMClassifier(
        calibration=None, n_estimators=3, max_depth=2, subsample=0.5, sampling="weight"
    ),
    "corrective": baselines.MultiBoostClassifier(calibration=None, n_estimators=3, nu=0.05),
}


class Recording(LocalRuntime):
    """Keeps the questions of a training run, as a `Host` is asked them."""

    def place(self, sets, layout, allotment=None):
        rows = super().place(sets, layout, allotment)
        self.sets, self.layout, self.asked = sets, layout, []

        def record(name):
            answer = getattr(rows, f"_{name}")

            def recorded(question):
                found = answer(question)
                channels = () if name == "sums" else (0, 0)
                if channels and question.expansion is not None:
                    channels = tree_of(rows).histograms.channels
                self.asked.append(("histogram" if name == "expand" else name, question, channels))
                return found

            setattr(rows, f"_{name}", recorded)

        for name in ("expand", "sums", "update"):
            record(name)
        return rows


@cache
def recorded(name, seed):
    """(items, layout, questions, answers): a training run, and what a host that has all blocks says to it."""
    rng = np.random.default_rng(seed)
    n = N_ROWS + N_EVALUATED
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 3)) + np.eye(3)[y]
    weights = rng.integers(0, 3, N_ROWS).astype(float)
    where = Recording(1)
    where.n_parallel = N_BLOCKS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "open_runtime", lambda *_, **_named: nullcontext(where))
        patch.setattr(WholeTrees, "suits", lambda *_: False)  # no question has the splits of whole trees
        MODELS[name].fit(X[:N_ROWS], y[:N_ROWS], weights, eval_set=(X[N_ROWS:], y[N_ROWS:]))
    items = {
        Key(number, block): reading
        for number, part in enumerate(where.sets)
        for block, reading in enumerate(readings(part))
    }
    host = Host(1, where.layout, 2, None, 1)
    host.take(items.items())
    answers = [getattr(host, method)(question, *channels) for method, question, channels in where.asked]
    host.close()
    return items, where.layout, where.asked, answers


def assert_same(found, expected):
    """Of what a host answers: arrays, numbers and tuples of them."""
    if isinstance(expected, tuple):
        assert type(found) is type(expected)
        for mine, theirs in zip(found, expected, strict=True):
            assert_same(mine, theirs)
    else:
        assert_array_equal(found, expected)


@pytest.mark.parametrize("streamed", [False, True], ids=["resident", "streamed"])
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8)
@given(draw=st.data())
def test_late_rows_answer_like_early_ones(name, streamed, draw, tmp_path_factory):
    items, layout, asked, answers = recorded(name, draw.draw(st.integers(0, 2), "data"))
    when = st.integers(0, len(asked) - 1)
    come = {key: draw.draw(when, f"{key} comes") for key in items}
    comes_back = {key: draw.draw(st.none() | when, f"{key} goes and comes back") for key in items}
    allotment = Allotment(N_ROWS // 3, 2, str(tmp_path_factory.getbasetemp())) if streamed else None
    host = Host(1, layout, 2, allotment, 1)
    here, past = set(), EMPTY_LOG
    try:
        for n, ((method, question, channels), expected) in enumerate(zip(asked, answers, strict=True)):
            back = {key for key in here if comes_back[key] == n}
            new = {key for key in items if come[key] == n} | back
            host.drop(back)
            host.set_replay_log(past)
            host.take((key, items[key]) for key in sorted(new))
            here |= new
            answer = getattr(host, method)(question, *channels)
            if len(here) == len(items):
                assert_same(answer, expected)
            past = past.with_question(question)
    finally:
        host.close()
    assert len(here) == len(items)
