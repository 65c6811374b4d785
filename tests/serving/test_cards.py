"""What follows from numbers alone: percentiles, and the order of rows."""

from __future__ import annotations

import numpy as np

from distboost.active import QueryByCommittee
from distboost.serving import cards
from distboost.serving.cards import CardMaker, Percentiles
from distboost.serving.training import interleaved


def test_percentiles():
    sample = np.array([[1.0, np.nan], [2.0, np.nan], [2.0, np.nan], [np.nan, np.nan]])
    found = Percentiles(sample).of(np.array([[2.0, 1.0], [0.0, 1.0], [9.0, 1.0], [np.nan, 1.0]]))
    np.testing.assert_array_equal(found[:, 0], [2 / 3, 0, 1, np.nan])
    assert np.isnan(found[:, 1]).all()


def test_each_part_of_a_ranking_has_its_share_of_random_rows():
    rows = interleaved([*range(90), *range(900, 910)], set(range(900, 910)))
    assert [row for row in rows if row < 900] == list(range(90))
    for start in range(0, 100, 20):
        assert sum(row >= 900 for row in rows[start : start + 20]) == 2


def test_cards_of_wide_rows_are_compared_with_the_latest_labels(monkeypatch):
    monkeypatch.setattr(cards, "NEAR_VALUES", 4 * 30)
    X = np.repeat(np.arange(20, dtype=np.float32)[:, np.newaxis], 30, axis=1)
    learner = QueryByCommittee(None, X)
    maker = CardMaker(learner.pool, learner.home, None, None, 0)
    [card] = maker.cards([3], dict.fromkeys([3, 2, 4, 19, 18, 17, 16], "a"))
    assert [near["row"] for near in card["near"]] == [16, 17, 18]
