"""The squared lengths of the sides of splits, and what they tell of values: against Python's integers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from distboost.kernels.gains import DIRECTION, NO_CONTEXT
from distboost.kernels.lanes import LANES
from distboost.kernels.side_lanes import pass_bins
from distboost.kernels.simd import padded, padded_sums

LAST_DIGIT = Fraction(1, 2**53)
pair_values, may_exceed = DIRECTION.pair_values, DIRECTION.may_exceed


@njit
def squares_of(left, way, sums, bins, parent, n_sums):
    """The squares of all thresholds after these bins."""
    squares = np.empty((2, bins.shape[0]))
    for i in range(0, bins.shape[0], LANES):
        pass_bins(left, way, sums, bins, i, parent, n_sums, squares, i)
    return squares


def square(S):
    return sum(x * x for x in S)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_sums=st.integers(1, 40),
    others=st.integers(1, 2),
    largest=st.sampled_from([2, 2**20, 2**56]),
    way=st.integers(0, 1),
)
def test_squares_of_both_sides(seed, n_sums, others, largest, way):
    """Channels of rows and weights, and padding, do not count, whatever they hold."""
    rng = np.random.default_rng(seed)
    width = padded_sums(n_sums + others)
    sums = rng.integers(-largest, largest, (20, width))
    left, parent = rng.integers(-largest, largest, (2, width)), rng.integers(-largest, largest, (1, width))
    bins = rng.permutation(20)[:16]
    sides = [left[way] + passed for passed in np.cumsum(sums[bins], axis=0)]
    other = left[1 - way].copy()
    found = squares_of(left, way, sums, bins, parent, n_sums)
    np.testing.assert_array_equal(left[way], sides[-1])
    np.testing.assert_array_equal(left[1 - way], other)
    for t, L in enumerate(sides):
        for side, S in enumerate((L, parent[0] - L)):
            exact = square(S[:n_sums].tolist())
            assert abs(Fraction(found[side, t]) - exact) <= (n_sums + 6) * LAST_DIGIT * exact


@pytest.mark.parametrize("n", range(2, 41))
def test_no_value_above_the_best_is_missed(n):
    """Of each split by itself, where its value is the next number above the best. Far below the best, none is looked at."""
    rng = np.random.default_rng(n)
    for largest in (3, 2**30, 2**61):
        sums = np.zeros((200, padded_sums(n + 1)), np.int64)
        sums[:, :n] = rng.integers(-largest, largest, (200, n))
        parent = np.zeros((1, sums.shape[1]), np.int64)
        parent[0, :n] = rng.integers(-largest, largest, n)
        sides = np.zeros((2, 200, padded(n)))
        sides[0, :, :n], sides[1, :, :n] = sums[:, :n], parent[0, :n] - sums[:, :n]
        values = np.empty(200)
        pair_values(*sides, 200, n, NO_CONTEXT, values)
        for b, value in enumerate(values):
            squares = squares_of(np.zeros_like(parent), 0, sums, np.full(LANES, b), parent, n)
            if value > 0:
                assert may_exceed(squares, 1, n, np.nextafter(value, 0))
            assert not may_exceed(squares, 1, n, np.nextafter(value * (1 + n * 2.0**-40), np.inf))
