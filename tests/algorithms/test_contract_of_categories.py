"""The contract of every algorithm on features with categories: tests of `test_contract`, with other rows and parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from distboost import registry
from distboost.errors import DataError
from tests.algorithms.subjects import Subject
from tests.algorithms.test_contract import (  # noqa: F401 (fixtures, and tests that are collected here too)
    Problem,
    arrays,
    content,
    little_memory,
    model,
    on_some,
    test_a_resumed_training_is_the_uninterrupted_one,
    test_a_run_on_some_rows_resumes_from_a_checkpoint,
    test_chunks_and_threads_change_nothing,
    test_draws_do_not_depend_on_chunks,
    test_losses_and_errors_are_those_of_the_scores,
    test_rounds_begun_by_the_update_before_are_the_same,
    test_save_and_load,
    test_stages_end_with_the_scores,
    test_streaming_changes_nothing,
    test_whole_weights_are_repeated_rows,
    urls,
)

CATEGORICAL = [0, 2, 3]  # of 8, 12 and 30 categories


@dataclass(frozen=True)
class WithCategories(Subject):
    """An algorithm that is told which features have categories."""

    @property
    def parameters(self) -> dict[str, Any]:
        return {**super().parameters, "calibration": None, "categorical_features": CATEGORICAL}


OF_EACH_GROWTH = [
    ("gd-mcboost", "best first"),
    ("gd-mcboost", "newton"),
    ("rebel", "depth 2"),
    ("adaboost-mh", "real"),
]
SUBJECTS = [WithCategories(name, "") for name in registry.ALGORITHMS] + [
    WithCategories(*one) for one in OF_EACH_GROWTH
]


@pytest.fixture(scope="module", params=SUBJECTS, ids=str)
def subject(request):
    return request.param


@pytest.fixture(scope="module")
def problem():
    """4 classes; three features say something of them by categories in no order, one by a number; some values are missing."""
    rng = np.random.default_rng(1)
    y = np.sort(rng.integers(0, 4, 480))
    sizes = (8, 12, 30)
    columns = [rng.permutation(size)[rng.integers(0, size // 4, 480) * 4 + y] for size in sizes]
    X = np.column_stack([columns[0], y + rng.normal(size=480), columns[1], columns[2], rng.normal(size=480)])
    X[:, CATEGORICAL] = X[:, CATEGORICAL] * 3 - 7
    noisy = rng.random(X.shape) < 0.3
    X[noisy] = rng.permutation(X)[noisy]
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.where(rng.random(480) < 0.1, rng.integers(0, 4, 480), y)
    test = np.arange(480) % 3 == 0
    X[test, 3] += np.where(rng.random(test.sum()) < 0.05, 1000, 0)  # unknown categories
    return Problem(X[~test], y[~test], X[test], y[test])


def test_categories_are_split(model):  # noqa: F811
    """With sets of several categories; features without categories still have thresholds."""
    nodes = model.learned_.ensemble.arrays()
    is_set = nodes["category_set"] >= 0
    assert is_set.any()
    np.testing.assert_array_equal(np.isin(nodes["feature"], CATEGORICAL), is_set)


def test_similarities_refuse_categories(problem):
    subject = WithCategories("rebel", "similarity")
    with pytest.raises(DataError, match=r"similarities.*categorical_features=None"):
        subject.make().fit(problem.X, problem.y)
