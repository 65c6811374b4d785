"""The library's own e^x and ln(1 + x)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distboost.kernels.exponential import exponentials, logarithms

POINTS = np.concatenate(
    [
        np.random.default_rng(0).uniform(-700, 709, 20_000),
        np.random.default_rng(1).uniform(-1, 1, 5_000),
        np.arange(-1000, 1001) * np.log(2) / 2,  # where the reduction changes sides
        [0.0, -0.0, 1.0, -1.0, 1e-300, -1e-300, 5e-324, -700.0, 709.0],
    ]
)
POINTS = POINTS[(POINTS >= -700) & (POINTS <= 709)]


def e(x):
    x = np.atleast_2d(np.asarray(x, np.float64))
    out = np.empty(x.shape)
    exponentials(x, out)
    return out[0]


def test_is_within_one_unit_of_the_last_digit():
    expected = np.exp(POINTS.astype(np.longdouble))
    error = np.abs(e(POINTS) - expected) / np.spacing(expected.astype(np.float64))
    assert error.max() <= 1.0


def test_is_exact_at_zero():
    np.testing.assert_array_equal(e([0.0, -0.0]), [1.0, 1.0])


@pytest.mark.parametrize("x", [-700.0, -700.1, -745.0, -1e4, -1e300, -np.inf])
def test_stays_at_its_lowest_value(x):
    np.testing.assert_array_equal(e(x), e(-700.0))
    assert e(x)[0] > 0


@given(st.integers(0, 5000), st.integers(1, 70), st.integers(1, 9))
def test_depends_on_the_number_alone(start, length, rows):
    """Not on its place, nor on the array's length, shape or strides."""
    one_by_one = np.array([e(x)[0] for x in POINTS[start : start + length]])
    np.testing.assert_array_equal(e(POINTS[start : start + length]), one_by_one)
    wide = np.repeat(POINTS[start : start + length, None], rows, axis=1)
    expected = np.repeat(one_by_one[:, None], rows, axis=1)
    for view in (np.s_[:], np.s_[::-1], np.s_[:, ::2], np.s_[1:, 1:]):
        for turn in (np.asarray, np.transpose):
            out = np.empty(turn(wide[view]).shape)
            exponentials(turn(wide[view]), out)
            np.testing.assert_array_equal(out, turn(expected[view]))


# ln(1 + x)

FACTORS = np.concatenate([[1, 1 - 2.0**-53, 1 + 2.0**-52], np.linspace(0.9, 1.1, 41)])
NUMBERS = np.concatenate(
    [
        10.0 ** np.random.default_rng(2).uniform(-320, 300, 20_000),
        np.random.default_rng(3).uniform(0, 4, 20_000),
        (np.exp2(np.arange(-60, 61) / 2)[:, None] * FACTORS).ravel(),  # where the exponent changes
        (np.exp2(np.arange(1, 60) / 2)[:, None] * FACTORS).ravel() - 1,
        [0.0, 5e-324, 2.3e-308, 1e-16, 1.1e-16, 2.2e-16, 1.0, 2.0**53 - 1, 2.0**53, 1e300],
    ]
)
NUMBERS = NUMBERS[(NUMBERS >= 0) & (NUMBERS <= 1e300)]


def ln1p(x):
    x = np.atleast_1d(np.asarray(x, np.float64))
    out = np.empty(x.shape)
    logarithms(x, out)
    return out


def test_logarithm_is_within_two_units_of_the_last_digit():
    expected = np.log1p(NUMBERS.astype(np.longdouble))
    error = np.abs(ln1p(NUMBERS) - expected) / np.spacing(expected.astype(np.float64))
    assert error.max() <= 2.0


def test_logarithm_is_exact_at_zero_and_of_the_smallest():
    np.testing.assert_array_equal(ln1p([0.0, 5e-324, 1e-300]), [0.0, 5e-324, 1e-300])


def test_logarithm_undoes_the_exponential():
    x = np.linspace(1e-3, 600, 5000)
    np.testing.assert_allclose(ln1p(e(x) - 1), x, rtol=1e-12)


@given(st.integers(0, 5000), st.integers(1, 70), st.integers(1, 3))
def test_logarithm_depends_on_the_number_alone(start, length, step):
    part = NUMBERS[start : start + length : step]
    np.testing.assert_array_equal(ln1p(part), [ln1p(x)[0] for x in part])
    np.testing.assert_array_equal(ln1p(part[::-1]), ln1p(part)[::-1])
