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


@pytest.mark.parametrize("features", FEATURES, ids=str)
def test_narrow(features):
    sums = sums_of(2**31 - 1)
    out = np.empty((5, int(np.diff(OFFSETS)[features].sum()), 6), np.int32)
    assert exchange.narrow(sums, np.array(features), OFFSETS, out)
    bins = np.concatenate([np.arange(OFFSETS[d], OFFSETS[d + 1]) for d in features])
    assert_array_equal(out, sums[:, bins, :6])


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40, -(2**62), 2**32])
def test_sums_that_do_not_fit(value):
    """Wherever they are, though not in channels or bins that are left out."""
    sums = np.zeros((2, 12, 8), np.int64)
    features, narrow, wide = np.array([1, 2]), np.empty((2, 5, 6), np.int32), np.empty((2, 5, 6), np.int64)
    sums[0, 3, 6] = sums[1, 2, 0] = sums[1, 8, 0] = value
    assert exchange.narrow(sums, features, OFFSETS, narrow)
    sums[1, 7, 5] = value
    assert not exchange.narrow(sums, features, OFFSETS, narrow)
    assert exchange.narrow(sums, features, OFFSETS, wide)
    assert_array_equal(wide, sums[:, 3:8, :6])


@pytest.mark.parametrize("fits", [2**31 - 1, -(2**31)])
def test_the_largest_that_fit(fits):
    sums = np.full((1, 12, 8), fits)
    out = np.empty((1, 3, 8), np.int32)
    assert exchange.narrow(sums, np.array([0]), OFFSETS, out)
    assert (out == fits).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_add(dtype):
    pool = np.random.default_rng(0).integers(-(2**50), 2**50, (6, 12, 8))
    expected, piece, slots = pool.copy(), sums_of(2**31 - 1)[:3, :, :5].astype(dtype), np.array([4, 0, 5])
    expected[slots, :, :5] += piece
    exchange.add(piece, slots, pool)
    assert_array_equal(pool, expected)
