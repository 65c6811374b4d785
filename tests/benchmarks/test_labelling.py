"""The labelling benchmark measures what its page says."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks import labelling
from tests.benchmarks.labelling_page import Found
from tests.benchmarks.labelling_sets import COPIES, TABLES


def test_rare_rows_and_copies_are_counted():
    rare, copies = TABLES["rare"](), TABLES["near-copies"]()
    share = np.mean(rare.kinds >= 0)
    assert 0.005 < share <= 0.01
    assert set(np.unique(copies.kinds, return_counts=True)[1]) == {COPIES}


@pytest.mark.parametrize("way", ["default", "random rows", "GAMBLE, random start"])
def test_a_way_labels_new_rows_up_to_each_count(way, monkeypatch):
    monkeypatch.setattr(labelling, "COUNTS", [50, 60])
    steps = [np.array(labelled) for labelled, _ in labelling.WAYS[way](TABLES["noisy"](), 0)]
    assert [len(np.unique(rows)) for rows in steps] == [50, 60]
    np.testing.assert_array_equal(steps[1][:50], steps[0])


def found_of(errors, seconds) -> Found:
    runs = {str(seed): {"wrong": each, "seconds": seconds} for seed, each in enumerate(errors)}
    kept = {
        "labels": [50, 60, 100],
        "targets": {"a": {"wrong": 9, "test_rows": 100}},
        "runs": {"a": {"default": runs}},
    }
    return Found(kept)


def test_failures_count_with_all_labels():
    found = found_of([[20, 10, 5], [20, 15, 11]], [1, 2, 3])
    assert found.labels_to(found.errors("a", "default"), found.target("a")).tolist() == [60, 100]


def test_errors_at_equal_seconds_are_those_of_the_last_classifier():
    found = found_of([[20, 10, 5], [30, 14, 11]], [1, 2, 3])
    assert found.at_seconds("a", "default", 2.5) == pytest.approx(0.12)
    assert np.isnan(found.at_seconds("a", "default", 0.5))
