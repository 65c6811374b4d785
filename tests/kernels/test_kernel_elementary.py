"""Exponentials and logarithms of arrays: accurate, and the same as those in kernels."""

import numpy as np
import pytest
from scipy import special

from distboost.kernels import elementary
from distboost.kernels.exponential import exponentials, logarithms

SCORES = np.random.default_rng(0).normal(size=(999, 7)) * 10.0 ** np.arange(-4, 3)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 1), (3, 40), (999, 7)])
def test_numbers_are_those_of_kernels(shape):
    x = np.random.default_rng(1).uniform(-700, 700, shape)
    expected = np.empty(shape)
    exponentials(x, expected)
    np.testing.assert_array_equal(elementary.exp(x), expected)
    logs = np.empty(x.size)
    logarithms(np.abs(x).ravel(), logs)
    np.testing.assert_array_equal(elementary.log1p(np.abs(x)), logs.reshape(shape))


def test_arguments_stay_as_they_are():
    x = SCORES.copy()
    for function in (elementary.exp, elementary.softmax, elementary.log_sigmoid, elementary.tanh):
        function(x)
        np.testing.assert_array_equal(x, SCORES)


def test_exponentials_that_underflow_are_0():
    np.testing.assert_array_equal(elementary.exp(np.array([[-700.1, -1e300, -np.inf]])), np.zeros((1, 3)))


def test_tanh_is_that_of_numpy():
    np.testing.assert_allclose(elementary.tanh(SCORES), np.tanh(SCORES), rtol=0, atol=3e-16)
    np.testing.assert_array_equal(elementary.tanh(np.array([[0.0, 800.0, -800.0]])), [[0.0, 1.0, -1.0]])


@pytest.mark.parametrize("order", ["C", "F"])
def test_softmax_is_that_of_scipy(order):
    found = elementary.softmax(np.array(SCORES, order=order))
    np.testing.assert_allclose(found, special.softmax(SCORES, axis=1), rtol=1e-14, atol=1e-300)


def test_log_sigmoid_is_that_of_scipy():
    x = np.concatenate([SCORES, 700 * np.sign(SCORES), 0 * SCORES])
    np.testing.assert_allclose(elementary.log_sigmoid(x), special.log_expit(x), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log_losses_keep_their_digits(dtype):
    eps = np.finfo(dtype).eps
    small = np.geomspace(eps, 0.5, 2000)
    p = np.concatenate([small, 1 - small]).astype(dtype)
    expected = -np.log(p.astype(np.longdouble)).astype(np.float64)
    np.testing.assert_allclose(elementary.log_losses(p), expected, rtol=1e-15)
