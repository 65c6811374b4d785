"""Several channels at once do what a loop over channels does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from distboost.kernels.simd import (
    LANES,
    SUM_LANES,
    add_rounded_lanes,
    advance_lanes,
    padded,
    padded_sums,
)


@njit
def advance(left, sums, parent, X, Y):
    for j in range(sums.shape[0]):
        for c in range(np.uintp(0), np.uintp(sums.shape[1]), np.uintp(SUM_LANES)):
            advance_lanes(left, sums, np.uintp(j), c, parent, X, Y, np.uintp(j))


@njit
def add_rounded(total, places, weights, factor, terms):
    for j in range(terms.shape[0]):
        for c in range(np.uintp(0), np.uintp(terms.shape[1]), np.uintp(LANES)):
            add_rounded_lanes(total, np.uintp(places[j]), c, weights[j], factor, terms, np.uintp(j))


@pytest.mark.parametrize(("n", "expected"), [(0, 0), (1, 8), (8, 8), (9, 16), (11, 16), (64, 64)])
def test_padded(n, expected):
    assert padded(n) == expected


@pytest.mark.parametrize(("n", "expected"), [(0, 0), (1, 4), (4, 4), (9, 12), (11, 12), (64, 64)])
def test_padded_sums(n, expected):
    assert padded_sums(n) == expected


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 9))
def test_advance_lanes(seed, n, groups):
    """Running sums on the left, what is missing of the parent on the right, as floats."""
    rng = np.random.default_rng(seed)
    sums = rng.integers(-(2**56), 2**56, (n, SUM_LANES * groups))
    left = rng.integers(-(2**40), 2**40, (1, SUM_LANES * groups))
    parent = rng.integers(-(2**60), 2**60, (1, SUM_LANES * groups))
    expected = left + np.cumsum(sums, axis=0)
    X, Y = np.empty(sums.shape), np.empty(sums.shape)
    advance(left, sums, parent, X, Y)
    np.testing.assert_array_equal(left[0], expected[-1])
    np.testing.assert_array_equal(X, expected.astype(float))
    np.testing.assert_array_equal(Y, (parent - expected).astype(float))


@given(st.integers(0, 2**32 - 1), st.integers(0, 20), st.integers(1, 3))
def test_add_rounded_lanes(seed, n, groups):
    """Both products are rounded to whole numbers, halves to even ones."""
    rng = np.random.default_rng(seed)
    terms = rng.choice([-1.5, -0.5, 0.0, 0.5, 0.75, 1.25, 2.5, np.pi], (n, LANES * groups))
    weights, places = rng.choice([0.0, 0.3, 0.5, 1.0, 3.0], n), rng.integers(0, 4, n)
    factor = float(rng.choice([1.0, 3.0, 2.0**40]))
    total = np.zeros((4, LANES * groups))
    expected = total.copy()
    np.add.at(expected, places, np.rint(weights[:, None] * np.rint(factor * terms)))
    add_rounded(total, places, weights, factor, terms)
    np.testing.assert_array_equal(total, expected)
