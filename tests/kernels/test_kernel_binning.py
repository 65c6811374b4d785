"""From numbers to bins: each kernel against NumPy."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from distboost.kernels import binning
from tests.kernels.cases import read_only

FINITE = st.floats(allow_nan=False, allow_infinity=False)
FEW = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 5e-324, 1.0, 1.5, 1e308, np.nan])


def naive_bins(x, edges):
    """The number of edges below x; the bin after the last for a missing value."""
    return np.where(np.isnan(x), len(edges) + 1, np.searchsorted(edges, x, side="left"))


def bins_of(X, edges):
    out = np.empty(X.shape, np.uint8)
    offsets = np.cumsum([0, *map(len, edges)])
    binning.bin_rows(read_only(X), np.concatenate([np.empty(0), *edges]), offsets, out)
    return out


@given(st.data())
def test_bin_rows(data):
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    edges = [
        np.unique(data.draw(hnp.arrays(np.float64, st.integers(0, 20), elements=FINITE))) for _ in range(3)
    ]
    with np.errstate(over="ignore"):
        near = [v for e in edges for x in e for v in (x, np.nextafter(x, -np.inf), np.nextafter(x, np.inf))]
        values = st.one_of(FINITE, st.sampled_from([*near, np.nan]))
        X = data.draw(hnp.arrays(np.float64, (12, 3), elements=values)).astype(dtype)
    expected = np.column_stack([naive_bins(x.astype(np.float64), e) for x, e in zip(X.T, edges, strict=True)])
    np.testing.assert_array_equal(bins_of(X, edges), expected)


@pytest.mark.parametrize("n_edges", [0, 1, 2, 253, 254])
def test_bin_rows_at_every_edge_and_beside_it(n_edges):
    edges = np.arange(n_edges) / 8
    x = np.concatenate([edges, np.nextafter(edges, -1), np.nextafter(edges, 99), [-9, 99, np.nan]])
    np.testing.assert_array_equal(bins_of(x[:, None], [edges])[:, 0], naive_bins(x, edges))


def test_bin_rows_without_rows():
    assert bins_of(np.empty((0, 2)), [np.arange(3.0), np.empty(0)]).shape == (0, 2)


@given(st.data())
def test_bytes_are_binned_and_found_as_other_numbers(data):
    X = data.draw(hnp.arrays(np.uint8, (data.draw(st.integers(0, 30)), 3)))
    edges = [
        np.unique(data.draw(hnp.arrays(np.float64, st.integers(0, 20), elements=st.floats(-9, 300))))
        for _ in range(3)
    ]
    out, offsets = np.empty(X.shape, np.uint8), np.cumsum([0, *map(len, edges)])
    binning.bin_bytes(read_only(X), np.concatenate([np.empty(0), *edges]), offsets, out)
    np.testing.assert_array_equal(out, bins_of(X.astype(float), edges))
    weights = data.draw(hnp.arrays(np.float64, len(X), elements=st.sampled_from([0.0, 0.5, 2.0])))
    present = np.zeros((256, 3), bool)
    binning.distinct_bytes(read_only(X), weights, present)
    for x, there in zip(X.T, present.T, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(there), np.unique(x[weights > 0]))


# Distinct values.


def distinct(X, weights, limit):
    """(values per feature or None if there are too many, position of the first infinite value)."""
    n_features = X.shape[1]
    size = 1 << (2 * limit + 2).bit_length()
    table, used = np.zeros((n_features, size)), np.zeros((n_features, size), bool)
    counts, infinite = np.zeros(n_features, np.int64), np.full(2, -1, np.int64)
    binning.distinct_values(read_only(X), weights, limit, table, used, counts, infinite)
    return [
        np.sort(t[u]) if c <= limit else None for t, u, c in zip(table, used, counts, strict=True)
    ], infinite


def naive_distinct(x, weights, limit):
    values = np.unique(x[(weights > 0) & ~np.isnan(x)].astype(np.float64) + 0.0)
    return values if len(values) <= limit else None


@given(st.data())
def test_distinct_values(data):
    n, limit = data.draw(st.integers(0, 40)), data.draw(st.integers(2, 12))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    with np.errstate(over="ignore"):
        X = data.draw(hnp.arrays(np.float64, (n, 2), elements=st.one_of(FEW, st.floats(-1e30, 1e30)))).astype(
            dtype
        )
    X[np.isinf(X)] = 7.0
    weights = data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0])))
    found, infinite = distinct(X, weights, limit)
    assert infinite.tolist() == [-1, -1]
    for values, x in zip(found, X.T, strict=True):
        expected = naive_distinct(x, weights, limit)
        assert (values is None) == (expected is None)
        if values is not None:
            np.testing.assert_array_equal(values, expected)


def test_negative_zero_and_zero_are_one_value():
    for x in ([0.0, -0.0], [-0.0, 0.0], [-0.0]):
        (values,), _ = distinct(np.array(x)[:, None], np.ones(len(x)), 4)
        assert values.tobytes() == np.zeros(1).tobytes()


@pytest.mark.parametrize("n_values", [254, 255, 256, 257, 5000])
def test_exactly_as_many_values_as_the_limit_are_kept(n_values):
    x = np.random.default_rng(0).permutation(np.tile(np.arange(n_values) * math.pi, 2))
    (values,), _ = distinct(x[:, None], np.ones(len(x)), 255)
    if n_values > 255:
        assert values is None
    else:
        np.testing.assert_array_equal(values, np.unique(x))


@given(st.data())
def test_merge_distinct(data):
    """Parts of two features, one after another: what is known in the end are the values of all, if they are not too many."""
    limit = data.draw(st.integers(1, 8))
    known, counts = np.empty((2, limit)), np.zeros(2, np.int64)
    expected = [np.empty(0), np.empty(0)]
    for _ in range(data.draw(st.integers(1, 4))):
        parts = [
            np.array(sorted(data.draw(st.sets(st.integers(-6, 6), max_size=9))), float) for _ in range(2)
        ]
        sizes = np.array([min(len(values), limit + 1) for values in parts])
        given_values = np.concatenate([np.empty(0), *(values for values in parts if len(values) <= limit)])
        binning.merge_distinct(given_values, sizes, limit, known, counts)
        expected = [np.union1d(*pair) for pair in zip(expected, parts, strict=True)]
    for values, n, all_values in zip(known, counts.tolist(), expected, strict=True):
        assert n == min(len(all_values), limit + 1)
        if n <= limit:
            np.testing.assert_array_equal(values[:n], all_values)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_infinite_value_is_found_even_past_the_limit(value, dtype):
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(dtype)
    for row, column in ((31, 0), (30, 2), (30, 1), (40, 1)):
        X[row, column] = value
    assert distinct(X, np.ones(50), 4)[1].tolist() == [30, 1]


# Edges.


@pytest.mark.parametrize("present", [0, 1, 500])
@pytest.mark.parametrize("missing", [0, 7])
def test_equal_values_are_added_up(present, missing):
    rng = np.random.default_rng(present)
    values, weights = rng.integers(0, 60, present).astype(float), rng.random(present + missing)
    expected, index = np.unique(values, return_inverse=True)
    totals = np.bincount(index, weights[:present], len(expected))
    column = np.append(values, np.full(missing, np.nan))
    order = np.argsort(column, kind="stable")
    column, sums = column[order], weights[order]
    n = binning.add_up_equal(column, sums)
    np.testing.assert_array_equal(column[:n], expected)
    np.testing.assert_array_equal(sums[:n], totals)


@given(st.data())
def test_whole_numbers_are_counted_as_they_would_be_sorted(data):
    """The sums have the same bits: equal values are added in the same order."""
    first = data.draw(st.sampled_from([-(2.0**51), -7.0, 0.0, 2.0**40]))
    n = data.draw(st.integers(0, 60))
    values = first + data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([*range(12), 49, np.nan])))
    weights = data.draw(hnp.arrays(np.float64, n, elements=st.floats(1e-9, 1e9)))
    order = np.argsort(values, kind="stable")
    expected, sums = values[order], weights[order]
    n_expected = binning.add_up_equal(expected, sums)
    counted, totals = values.copy(), weights.copy()
    assert binning.count_whole(counted, totals, np.empty(50)) == n_expected
    np.testing.assert_array_equal(counted[:n_expected], expected[:n_expected])
    np.testing.assert_array_equal(totals[:n_expected], sums[:n_expected])


@pytest.mark.parametrize(
    "values", [[0.0, 50.0], [1.0, 2.5], [2.0**53, 2.0**53 + 2], [-1e308, 1e308]], ids=str
)
def test_other_numbers_are_not_counted(values):
    counted, totals = np.array(values), np.ones(2)
    assert binning.count_whole(counted, totals, np.empty(50)) == -1
    assert (counted.tolist(), totals.tolist()) == (values, [1.0, 1.0])


def naive_quantile_edges(values, weights, max_bins):
    """Bins filled one after another up to an equal share of what is left; values as heavy as a bin stand apart."""
    heavy = weights >= weights.sum() / max_bins
    bins_left, weight_left = max_bins - int(heavy.sum()), weights[~heavy].sum()
    cuts, filled = [], 0.0
    share = weight_left / bins_left if bins_left else np.inf
    for j in range(len(values) - 1):
        filled += weights[j]
        weight_left -= 0.0 if heavy[j] else weights[j]
        before_heavy = heavy[j + 1] and filled >= share / 2
        if (heavy[j] or filled >= share or before_heavy) and len(cuts) < max_bins - 1:
            cuts.append(j)
            filled = 0.0
            if not heavy[j]:
                bins_left -= 1
                share = weight_left / bins_left if bins_left else np.inf
    return np.array([(values[j] + values[j + 1]) / 2 for j in cuts])


def quantile_edges(values, weights, max_bins):
    out = np.full(max_bins - 1, np.nan)
    n = binning.quantile_edges(values.astype(np.float64), weights.astype(np.float64), max_bins, out)
    return out[:n]


QUANTILE_CASES = [
    pytest.param(m, max_bins, kind, id=f"{m} values, {max_bins} bins, {kind}")
    for (m, max_bins), kind in itertools.product(
        [(3, 2), (20, 4), (300, 255), (1000, 16), (5000, 255)], ["equal", "counts", "heavy"]
    )
]


def quantile_case(m, kind):
    rng = np.random.default_rng(m)
    weights = {
        "equal": np.ones(m),
        "counts": rng.integers(1, 9, m).astype(float),
        "heavy": np.where(rng.random(m) < 0.02, m, 1.0),
    }[kind]
    return rng.choice(10 * m, m, replace=False).cumsum() / 4.0, weights


@pytest.mark.parametrize(("m", "max_bins", "kind"), QUANTILE_CASES)
def test_quantile_edges(m, max_bins, kind):
    values, weights = quantile_case(m, kind)
    edges = quantile_edges(values, weights, max_bins)
    np.testing.assert_array_equal(edges, naive_quantile_edges(values, weights, max_bins))
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize(("m", "max_bins", "kind"), QUANTILE_CASES)
def test_the_unit_of_the_weights_does_not_move_the_edges(m, max_bins, kind):
    values, weights = quantile_case(m, kind)
    expected = quantile_edges(values, weights, max_bins)
    for unit in (2.0**-20, 2.0**20):
        np.testing.assert_array_equal(quantile_edges(values, weights * unit, max_bins), expected)


def test_bins_of_equal_weights_are_equally_full():
    edges = quantile_edges(np.arange(1000), np.ones(1000), 10)
    np.testing.assert_array_equal(np.bincount(np.searchsorted(edges, np.arange(1000))), np.full(10, 100))


def test_a_heavy_value_shares_its_bin_with_nothing_after_it():
    weights = np.ones(100)
    weights[40] = 1000
    edges = quantile_edges(np.arange(100), weights, 8)
    assert 40.5 in edges
    assert 39.5 in edges


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.0, 1.0),
        (1.0, np.nextafter(1.0, 2)),
        (-5e-324, 0.0),
        (0.0, 5e-324),
        (-1.7e308, 1.7e308),
        (1.6e308, 1.7e308),
        (-1.7e308, -1.6e308),
        (np.nextafter(np.finfo(float).max, 0), np.finfo(float).max),
    ],
)
def test_a_midpoint_parts_its_neighbours(a, b):
    middle = binning.midpoint(a, b)
    assert a <= middle < b


@given(FINITE, FINITE)
def test_any_midpoint_parts_its_neighbours(a, b):
    a, b = sorted([a, b])
    if a < b:
        middle = binning.midpoint(a, b)
        assert a <= middle < b
        if max(abs(a), abs(b)) < 1e300 and b - a > 1e-290:
            assert middle == pytest.approx(a + (b - a) / 2, rel=1e-12, abs=(b - a) * 1e-12)
