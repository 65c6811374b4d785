"""Histograms that are copied for a message and added from one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.kernels import exchange

OFFSETS = np.array([0, 3, 7, 8, 12])
FEATURES = [[0, 1, 2, 3], [1], [0, 3], [2, 3]]


def sums_of(largest: int) -> np.ndarray:
    rng = np.random.default_rng(largest % 97)
    return rng.integers(-largest, largest, (5, 12, 8), endpoint=True)


def bins_of(features) -> np.ndarray:
    return np.concatenate([np.arange(OFFSETS[d], OFFSETS[d + 1]) for d in features])


def packed(sums, features, n_channels, dtype):
    n_bins = len(bins_of(features))
    occupied = np.empty((len(sums), n_bins), bool)
    out = np.full((len(sums) * n_bins, n_channels), 7, dtype)
    n = exchange.pack(sums, np.array(features), OFFSETS, occupied, out)
    return n, occupied, out[: max(n, 0)]


@pytest.mark.parametrize("features", FEATURES, ids=str)
@pytest.mark.parametrize("empty", [0.0, 0.5, 1.0])
def test_pack(features, empty):
    sums = sums_of(2**31 - 1)
    sums[np.random.default_rng(0).random(sums.shape[:2]) < empty] = 0
    n, occupied, out = packed(sums, features, 6, np.int32)
    expected = sums[:, bins_of(features), :6]
    assert n == expected.any(axis=2).sum()
    assert_array_equal(occupied, expected.any(axis=2))
    assert_array_equal(out, expected[occupied])


def test_a_bin_is_empty_only_if_all_its_sums_are_zero():
    sums = np.zeros((1, 12, 8), np.int64)
    sums[0, 3, 5] = 1
    sums[0, 4, 0] = -1
    sums[0, 5, 6:] = 1  # in channels that are left out
    assert_array_equal(packed(sums, [1], 6, np.int32)[1], [[True, True, False, False]])


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40, -(2**62), 2**32])
def test_sums_that_do_not_fit(value):
    """Wherever they are, though not in channels or bins that are left out."""
    sums = np.zeros((2, 12, 8), np.int64)
    sums[0, 3, 6] = sums[1, 2, 0] = sums[1, 8, 0] = value
    assert packed(sums, [1, 2], 6, np.int32)[0] == 0
    sums[1, 7, 5] = value
    assert packed(sums, [1, 2], 6, np.int32)[0] == -1
    n, occupied, out = packed(sums, [1, 2], 6, np.int64)
    assert (n, occupied.sum(), occupied[1, 4]) == (1, 1, True)
    assert_array_equal(out, [[0, 0, 0, 0, 0, value]])


@pytest.mark.parametrize("fits", [2**31 - 1, -(2**31)])
def test_the_largest_that_fit(fits):
    n, _, out = packed(np.full((1, 12, 8), fits), [0], 8, np.int32)
    assert n == 3
    assert (out == fits).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_add_packed(dtype):
    pool = np.random.default_rng(0).integers(-(2**50), 2**50, (6, 12, 8))
    sums, slots = sums_of(2**31 - 1)[:3], np.array([4, 0, 5])
    sums[:, ::3] = 0
    expected = pool.copy()
    expected[slots, :, :5] += sums[:, :, :5]
    _, occupied, out = packed(sums, [0, 1, 2, 3], 5, dtype)
    fresh = np.array([False, True, False])
    expected[0] = 0
    expected[0, :, :5] = sums[1, :, :5]
    exchange.add_packed(occupied, out, slots, pool, fresh)
    assert_array_equal(pool, expected)
    assert not fresh.any()


@pytest.mark.parametrize("features", FEATURES, ids=str)
def test_add_features(features):
    sums, slots = sums_of(2**62)[:2], np.array([3, 1])
    pool = np.random.default_rng(0).integers(-(2**50), 2**50, (4, len(bins_of(features)), 8))
    expected = pool.copy()
    expected[slots] += sums[:, bins_of(features)]
    exchange.add_features(sums, np.array(features), OFFSETS, slots, pool, np.zeros(2, bool))
    assert_array_equal(pool, expected)
    fresh = np.array([False, True])
    exchange.add_features(sums, np.array(features), OFFSETS, slots, pool, fresh)
    expected[3] += sums[0, bins_of(features)]
    expected[1] = sums[1, bins_of(features)]
    assert_array_equal(pool, expected)
    assert not fresh.any()
