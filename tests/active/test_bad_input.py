"""What cannot be right is refused, with the value, the limit and the remedy, and changes nothing."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.linear_model import LinearRegression

import distboost
from distboost.active import QueryByCommittee
from distboost.errors import DataError
from tests.active.sessions import FORMS, committee, learner, state

# Rows 0 to 19 are taught as 0 to 3; row 20 was asked for.
TEACHINGS = {
    "row outside": ([20, 300], [1, 1], r"row 300 is not in the pool, which has rows 0 to 299"),
    "row before": ([-1], [1], r"row -1 is not in the pool, which has rows 0 to 299"),
    "row twice": ([20, 21, 20], [1, 1, 1], r"row 20 is given twice. Teach each row once"),
    "row taught": (
        [20, 7],
        [1, 1],
        r"row 7 was taught already, as \d at .*: *\d\d.*\. Teach each row once, or",
    ),
    "rows no integers": (
        [20.0],
        [1],
        r"rows are an array of type float64 and shape \(1,\): pass a list of row n",
    ),
    "rows a mask": (np.arange(300) == 20, [1], r"rows are an array of type bool and shape \(300,\)"),
    "rows text": (["20"], [1], r"rows are an array of type <U2"),
    "rows a table": ([[20, 21]], [1, 1], r"rows are an array of type int64 and shape \(1, 2\)"),
    "rows a number": (20, [1], r"rows are an array of type int64 and shape \(\)"),
    "label None": ([20, 21], [1, None], r"a label is None. Teach only the rows whose label is known"),
    "label NaN": ([20, 21], [1, np.nan], r"a label is nan. Teach only the rows whose label is known"),
    "label NA": (
        [20, 21],
        pd.Series([1, pd.NA], dtype="Int64"),
        r"a label is <NA>. Teach only the rows whose",
    ),
    "label NaT": (
        [20],
        [np.datetime64("NaT")],
        r"a label is .*NaT.*Teach only the rows whose label is known",
    ),
    "label infinite": ([20], [-np.inf], r"a label is -inf. Pass integers or text"),
    "label not whole": ([20, 21], [1.0, 0.25], r"a label is 0.25. Pass integers or text"),
    "label a date": (
        [20],
        [datetime.date(2020, 1, 1)],
        r"a label is datetime.date\(2020, 1, 1\)\. Pass numbers or t",
    ),
    "label bytes": ([20], [b"a"], r"cannot store labels of type \|S1, such as b'a'\. Pass numbers or text"),
    "label too large": (
        [20],
        [2**70],
        r"cannot store labels of type object, such as 1180591620717411303424",
    ),
    "labels not exact": (
        [20, 21],
        [2**63 + 1, -1],
        r"cannot store labels of type float64, such as 922337203685",
    ),
    "labels mixed": ([20, 21], [1, "a"], r"the label 1 is a number, but the label 'a' is text"),
    "labels of another kind": ([20], ["a"], r"the label \d is a number, but the label 'a' is text"),
    "too few labels": ([20, 21], [1], r"1 labels for 2 rows: pass one for each"),
    "too many labels": ([20], [1, 2], r"2 labels for 1 rows: pass one for each"),
    "labels a table": (
        [20, 21],
        [[1, 2], [1, 2]],
        r"labels of shape \(2, 2\): pass a list, one for each row",
    ),
    "labels ragged": ([20, 21], [[1], [1, 2]], r"a label is \[1\]. Pass numbers or text"),
    "label a number": ([20], 1, r"labels of shape \(\): pass a list, one for each row"),
    "labels a set": ([20], {1}, r"labels of shape \(\): pass a list, one for each row"),
    "undeclared class": (
        [20, 21],
        [1, 4],
        r"the label 4 of row 21 is none of the classes \[0, 1, 2, 3\]. Correct it",
    ),
}


@pytest.mark.parametrize("kind", TEACHINGS)
def test_teaching(kind, problem, tmp_path):
    X, y = problem
    found = learner(X, classes=range(4), log=tmp_path / "log").teach(range(20), y[:20])
    first = found.query(1)
    before, log = state(found), (tmp_path / "log").read_bytes()
    rows, labels, message = TEACHINGS[kind]
    with pytest.raises(DataError, match=message):
        found.teach(rows, labels)
    assert state(found) == before
    assert (tmp_path / "log").read_bytes() == log
    assert found.teach(first, y[first]).estimator_.n_iter_ == 3
    assert state(learner(X, classes=range(4), log=tmp_path / "log")) == state(found)


def test_text_is_not_a_declared_number(problem):
    """NumPy would compare the two as text."""
    with pytest.raises(DataError, match=r"the label '1' of row 3 is none of the classes \[1, 2\]"):
        learner(problem[0], classes=[1, 2]).teach([3], ["1"])


def test_teaching_no_rows_is_not_an_error(problem, tmp_path):
    found = learner(problem[0], log=tmp_path / "log")
    log = (tmp_path / "log").read_bytes()
    assert found.teach([], []) is found
    assert (tmp_path / "log").read_bytes() == log


PARAMETERS = {
    "estimator": (
        {"estimator": LinearRegression()},
        r"the estimator is LinearRegression\(\), expected a classifier with predict_proba",
    ),
    "a class": (
        {"estimator": distboost.GAMBLEClassifier},
        r"the estimator is <class .*>, expected a classifier",
    ),
    "early stopping": (
        {"estimator": committee(early_stopping_rounds=3)},
        r"the estimator has early_stopping_rounds=3, but a committee has no eval_set",
    ),
    "strategy": (
        {"strategy": "best"},
        r"strategy is 'best', expected one of 'margin', 'entropy', 'averaged-margin', 'random', or a function",
    ),
    "start": ({"start": "best"}, r"start is 'best', expected one of 'kmeans', 'random'"),
    "final": ({"final": LinearRegression()}, r"final is a LinearRegression, expected one of distboost's"),
    "rounds of a forest": (
        {"estimator": None, "warm_start": True},
        r"warm_start=True, but the committee is a ExtraTreesClassifier, which has no rounds to keep",
    ),
    "no fraction": ({"pool_fraction": 0.0}, r"pool_fraction is 0.0, expected a number above 0 and at most 1"),
    "large fraction": (
        {"pool_fraction": 1.5},
        r"pool_fraction is 1.5, expected a number above 0 and at most 1",
    ),
    "NaN fraction": ({"pool_fraction": np.nan}, r"pool_fraction is nan, expected a number above 0"),
    "text fraction": ({"pool_fraction": "all"}, r"pool_fraction is 'all', expected a number above 0"),
    "batch_size": ({"batch_size": 0}, r"batch_size is 0, expected a whole number of at least 1"),
    "part of a row": ({"batch_size": 2.5}, r"batch_size is 2.5, expected a whole number of at least 1"),
    "true": ({"batch_size": True}, r"batch_size is True, expected a whole number of at least 1"),
    "large batch": (
        {"batch_size": 301},
        r"batch_size is 301, but pool has 300 rows. Ask for fewer at once",
    ),
    "n_initial": ({"n_initial": -3}, r"n_initial is -3, expected a whole number of at least 1"),
    "diversity": ({"diversity": 0}, r"diversity is 0, expected a whole number of at least 1"),
    "one class": ({"classes": [1, 1]}, r"classes are \[1\]. Pass at least 2"),
    "mixed classes": ({"classes": [1, "a"]}, r"the label 1 is a number, but the label 'a' is text"),
    "unknown class": ({"classes": [1, None]}, r"a label is None"),
    "classes a text": ({"classes": "ab"}, r"labels of shape \(\): pass a list"),
    "random_state": ({"random_state": None}, r"random_state is None, expected a whole number of at least 0"),
    "part of a seed": ({"random_state": 1.5}, r"random_state is 1.5, expected a whole number of at least 0"),
    "log elsewhere": (
        {"log": "s3://bucket/log"},
        r"the log 's3://bucket/log' is not on a local disk, as it must be",
    ),
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_parameters(kind, problem):
    parameters, message = PARAMETERS[kind]
    with pytest.raises(DataError, match=message):
        QueryByCommittee(**{"estimator": committee(), "pool": problem[0], **parameters})


POOLS = {
    "one dimension": (lambda X: X[:, 0], r"pool has the shape \(300,\), expected \(rows, features\)"),
    "no rows": (
        lambda X: X[:0],
        r"pool has the shape \(0, 6\), expected \(rows, features\), at least 1 of each",
    ),
    "no features": (lambda X: X[:, :0], r"pool has the shape \(300, 0\)"),
    "text": (lambda X: np.full((300, 2), "a"), r"pool of type <U1 cannot be read as numbers"),
    "complex": (lambda X: X * 1j, r"pool: Complex data not supported"),
    "nowhere": (lambda X: "/nowhere/x.zarr", r"pool: there is no zarr array at '/nowhere/x.zarr'"),
}


@pytest.mark.parametrize("kind", POOLS)
def test_pools(kind, problem):
    make, message = POOLS[kind]
    with pytest.raises(DataError, match=message):
        learner(make(problem[0]))


def test_a_binned_store_as_a_pool_is_refused(problem, tmp_path):
    store = distboost.bin(problem[0], problem[1], str(tmp_path / "store"))
    for pool in (store, str(store)):
        with pytest.raises(
            DataError, match=r"pool: .* is a binned store.* pass the array that it was made from"
        ):
            learner(pool)


# Queries.


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", True])
def test_invalid_sizes(n, problem):
    found = learner(problem[0])
    with pytest.raises(DataError, match=rf"n is {n!r}, expected a whole number of at least 1"):
        found.query(n)
    assert found.n_queries_ == 0


def test_more_than_there_are(problem, tmp_path):
    X, y = problem
    found = learner(X[:25], n_initial=26, log=tmp_path / "log")
    before = (tmp_path / "log").read_bytes()
    with pytest.raises(
        DataError, match=r"n_initial is 26, but only 25 rows of pool are left to ask for. Ask for at m"
    ):
        found.query()
    with pytest.raises(
        DataError, match=r"n is 26, but only 25 rows of pool are left to ask for. Ask for at most 25"
    ):
        found.query(26)
    assert found.n_queries_ == 0
    assert (tmp_path / "log").read_bytes() == before
    rows = found.query(23)
    found.teach(rows, y[rows])
    with pytest.raises(
        DataError, match=r"n is 3, but only 2 rows of pool are left to ask for. Ask for at most 2"
    ):
        found.query(3)
    assert len(found.query()) == 2  # as many as there are
    with pytest.raises(
        DataError, match=r"no row is left to ask for: 23 of the 25 rows of pool were taught, 2 were asked"
    ):
        found.query()
    assert found.n_queries_ == 2
    assert found.teach(found.asked_, [0, 1]).n_open_ == 0


@pytest.mark.parametrize(
    ("form", "n_jobs", "value"),
    [
        ("numpy", 1, np.inf),
        ("zarr, both cut", 2, -np.inf),
        ("dask, columns", 1, -np.inf),
        ("path", 2, np.inf),
    ],
)
def test_an_infinite_value(n_jobs, form, value, problem, small_blocks, tmp_path):
    """Found when its block is scored; nothing was asked then. Corrected, the work goes on."""
    X, y = np.array(problem[0]), problem[1]
    X[213, 4] = value
    X[290, 0] = -value  # their sum is no number
    log = tmp_path / "log"
    found = learner(FORMS[form](X, tmp_path), committee(n_jobs=n_jobs), log=log).teach(range(40), y[:40])
    before, content = state(found), log.read_bytes()
    with pytest.raises(
        DataError, match=r"pool.* contains an infinite value \(inf\) in row 213, column 4: -?inf"
    ):
        found.query()
    assert state(found) == before
    said = json.loads(log.read_bytes().removeprefix(content)[9:])
    assert "infinite value" in said["error"]
    X[[213, 290], [4, 0]] = 0
    mended = learner(X, committee(n_jobs=n_jobs), log=log)
    assert len(mended.query()) == 10


def test_an_infinite_value_on_a_worker(problem, small_blocks, clients, tmp_path):
    X, y = np.array(problem[0]), problem[1]
    X[17, 2] = np.inf
    found = learner(FORMS["path"](X, tmp_path), committee(client=clients[2])).teach(range(20, 40), y[20:40])
    with pytest.raises(
        DataError, match=r"pool .*contains an infinite value \(inf\) in row 17, column 2: inf"
    ):
        found.query()
    assert found.n_queries_ == 0


def test_large_values_are_not_infinite(problem):
    """Though their sum is."""
    X, y = np.array(problem[0]), problem[1]
    X[100:110, 3] = np.finfo(float).max
    assert len(learner(X).teach(range(40), y[:40]).query()) == 10


def test_a_chunk_that_cannot_be_read(problem, tmp_path):
    X, y = problem
    pool = zarr.create_array(str(tmp_path / "x"), data=X, chunks=(50, 6))
    found = learner(pool).teach(range(40), y[:40])
    chunk = tmp_path / "x" / "c" / "4" / "0"
    content = chunk.read_bytes()
    chunk.write_bytes(content[: len(content) // 2])
    with pytest.raises(
        OSError, match=r"chunk c/4/0, rows 200 to 249 of pool .*had [0-9]+ bytes when the store was listed"
    ):
        found.query()
    assert found.n_queries_ == 0
    chunk.write_bytes(content)
    assert found.query().tolist() == learner(X).teach(range(40), y[:40]).query().tolist()


@pytest.mark.parametrize("form", ["numpy", "path", "frame"])
def test_an_infinite_value_among_the_rows_taught(form, problem, tmp_path):
    X, y = np.array(problem[0]), problem[1]
    X[33, 2] = np.inf
    found = learner(pd.DataFrame(X) if form == "frame" else FORMS[form](X, tmp_path)).teach(
        range(30, 50), y[30:50]
    )
    with pytest.raises(
        DataError, match=r"pool.* contains an infinite value \(inf\) in row 33, column 2: inf"
    ):
        found.query()


@pytest.mark.parametrize("given", [3, "valid", ([[1.0]], [1], [1.0])])
def test_an_evaluation_set_that_is_not_a_pair(given, problem):
    with pytest.raises(
        DataError, match=r"eval_set is a \w+, expected rows and their labels: eval_set=\(X, y\)"
    ):
        learner(problem[0]).run(problem[1], eval_set=given, max_labels=30)


def test_a_missing_label_of_an_evaluation_set(problem):
    y = np.where(np.arange(len(problem[1])) == 7, np.nan, problem[1])
    with pytest.raises(DataError, match=r"eval_set y has a missing label \(NaN\) in row 7"):
        learner(problem[0]).run(problem[1], eval_set=(problem[0], y), max_labels=30)
