"""Parameters out of their range."""

import re

import dask.array as da
import numpy as np
import pytest

from distboost import AdaBoostMMClassifier, GDMCBoostClassifier
from distboost.errors import DistboostError, LimitError
from tests.bad_input.forms import CHUNK


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_estimators": 0},
        {"n_estimators": 2.5},
        {"learning_rate": 0.0},
        {"learning_rate": -0.1},
        {"learning_rate": np.nan},
        {"learning_rate": np.inf},
        {"max_bins": 1},
        {"max_bins": 256},
        {"validation_fraction": 0.0},
        {"validation_fraction": 1.0},
        {"validation_fraction": "0.1"},
        {"min_samples_leaf": 0},
        {"min_weight_fraction_leaf": 0.51},
        {"subsample": 0.0},
        {"subsample": 1.5},
        {"max_features": 0},
        {"max_features": 1.5},
        {"max_leaf_nodes": 1},
        {"max_depth": 0},
        {"class_weight": "heavy"},
        {"early_stopping_rounds": 0},
        {"score_dtype": "float16"},
        {"missing_chunks": "maybe"},
        {"memory_limit": 0},
        {"n_jobs": 0},
        {"n_jobs": -2},
        {"random_state": "seed"},
    ],
    ids=str,
)
def test_bad_parameter(model, data, parameters):
    ((name, value),) = parameters.items()
    with pytest.raises(
        ValueError, match=rf"The '{name}' parameter of \w+ must be .*Got {re.escape(repr(value))}"
    ):
        model.set_params(**parameters).fit(*data)


def test_a_memory_limit_that_is_not_a_number_of_bytes(model, data):
    with pytest.raises(DistboostError, match=r"memory_limit.*'plenty'"):
        model.set_params(memory_limit="plenty").fit(*data)


def test_unknown_leaf(data):
    with pytest.raises(
        ValueError, match=r"The 'leaf' parameter of GDMCBoostClassifier must be .*Got 'stump'"
    ):
        GDMCBoostClassifier(leaf="stump").fit(*data)


@pytest.mark.parametrize("limit", [300_000_000, "300MB"], ids=["number", "text"])
def test_memory_limit_too_small(model, data, stored, limit):
    """Not even enough for the libraries."""
    with pytest.raises(
        LimitError,
        match=r"memory_limit is 300 MB per process, but 240 rows of 4 features and .*classes take \d+ MB.*Raise the limit",
    ):
        model.set_params(memory_limit=limit).fit(stored(data[0], "x"), stored(data[1], "y"))


def test_memory_limit_is_checked_before_a_row_is_read(model, data):
    def read(block):
        raise AssertionError("a row was read")

    X = da.from_array(data[0], chunks=(CHUNK, 4)).map_blocks(read, meta=np.empty((0, 4)))
    with pytest.raises(LimitError, match=r"memory_limit is 0.001 MB per process, but 240 rows"):
        model.set_params(memory_limit=1000).fit(X, data[1])


@pytest.mark.parametrize("limit", ["0", "-1", "-2GB"])
def test_memory_limit_below_one_byte(model, data, limit):
    with pytest.raises(LimitError, match=rf"memory_limit is '{limit}'\. Set a number of bytes"):
        model.set_params(memory_limit=limit).fit(*data)


def test_memory_limit_large_enough(model, data):
    assert model.set_params(memory_limit="1GB").fit(*data).n_iter_ == 2


def test_no_labels(model, data):
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None"):
        model.fit(data[0])


@pytest.mark.parametrize(
    "values", [[0.1, np.nan], [0.1, np.inf], [0.1, -0.1], [0, 0.1], ["a", "b"], [[0.1], [0.1]]]
)
@pytest.mark.parametrize("name", ["edge", "alphas"])
def test_a_sequence_with_an_invalid_step(name, values, data):
    model = AdaBoostMMClassifier(strategy="fixed", n_estimators=2, calibration=None, **{name: values})
    with pytest.raises(DistboostError, match=rf"{name} is \[.* Set .*numbers above 0"):
        model.fit(*data)


@pytest.mark.parametrize("weight", ["heavy", None, [1, 2]])
def test_a_class_weight_that_is_not_a_number(model, data, weight):
    with pytest.raises(DistboostError, match=r"class_weight is \{.*Pass finite weights"):
        model.set_params(class_weight={0: weight}).fit(*data)
