"""Rows in compressed form: scanned and binned as the dense rows are."""

import numpy as np
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from distboost.kernels import binning, sparse
from tests.kernels.test_kernel_binning import bins_of, naive_distinct, read_only

VALUES = st.sampled_from([0.0, 0.0, 0.0, -0.0, np.nan, -2.0, 0.5, 1.0, 3.0, 1e30])


@st.composite
def compressed(draw):
    """(rows, (indptr, columns, values)): some zeros are stored, and a row's columns are in any order."""
    X = draw(hnp.arrays(np.float64, st.tuples(st.integers(0, 20), st.integers(1, 4)), elements=VALUES))
    stored = (X != 0) | draw(hnp.arrays(bool, X.shape))
    columns = [np.array(draw(st.permutations(np.flatnonzero(row).tolist())), np.int64) for row in stored]
    values = [x[some] for x, some in zip(X, columns, strict=True)]
    indptr = np.cumsum([0, *map(len, columns)], dtype=np.int64)
    return X, (
        indptr,
        np.concatenate([*columns, np.empty(0, np.int64)]),
        np.concatenate([*values, np.empty(0)]),
    )


@given(compressed())
def test_stores_twice(given):
    X, (indptr, columns, _) = given
    assert not sparse.stores_twice(indptr, columns, X.shape[1])
    if len(columns):
        row = int(np.searchsorted(indptr, 0, side="right")) - 1
        indptr[row + 1 :] += 1
        assert sparse.stores_twice(indptr, np.append(columns[:1], columns), X.shape[1])


@given(compressed(), st.integers(2, 5), st.data())
def test_distinct_stored(given, limit, data):
    X, (indptr, columns, values) = given
    weights = data.draw(hnp.arrays(np.float64, len(X), elements=st.sampled_from([0.0, 0.5, 2.0])))
    n_features = X.shape[1]
    table, used = np.zeros((n_features, 16)), np.zeros((n_features, 16), bool)
    counts, stored = np.zeros((2, n_features), np.int64)
    sparse.distinct_stored(indptr, columns, values, weights, limit, table, used, counts, stored)
    there = (
        scipy.sparse.csr_array((np.ones(len(values)), columns, indptr), shape=X.shape).toarray().astype(bool)
    )
    np.testing.assert_array_equal(stored, there[weights > 0].sum(axis=0))
    for d in range(n_features):
        expected = naive_distinct(X[there[:, d], d], weights[there[:, d]], limit)
        if expected is None:
            assert counts[d] == limit + 1
        else:
            assert counts[d] == len(expected)
            np.testing.assert_array_equal(np.sort(table[d, used[d]]), expected)


@given(compressed(), st.data())
def test_bin_stored(given, data):
    X, entries = given
    edges = [
        np.unique(data.draw(hnp.arrays(np.float64, st.integers(0, 20), elements=st.floats(-9, 9))))
        for _ in X.T
    ]
    joined, offsets = np.concatenate([np.empty(0), *edges]), np.cumsum([0, *map(len, edges)])
    of_zero, out = np.empty((1, X.shape[1]), np.uint8), np.empty(X.shape, np.uint8)
    binning.bin_rows(read_only(np.zeros(of_zero.shape)), joined, offsets, of_zero)
    sparse.bin_stored(*entries, joined, offsets, of_zero[0], out)
    np.testing.assert_array_equal(out, bins_of(X, edges))
