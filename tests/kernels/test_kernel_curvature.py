"""The second derivatives of vector scaling against their definition."""

import numpy as np
import pytest
from scipy.special import softmax

from distboost.kernels.curvature import SMALL, add_curvatures


def definition(p, g, w):
    n_classes = p.shape[1]
    found = np.zeros((2 * n_classes, 2 * n_classes))
    for p_i, g_i, w_i in zip(p, g, w, strict=True):
        by_logits = np.diag(p_i) - np.outer(p_i, p_i)
        logits = np.hstack([np.diag(g_i), np.eye(n_classes)])  # their derivatives by scales and shifts
        found += w_i * logits.T @ by_logits @ logits
    return found


@pytest.mark.parametrize("n_classes", [2, 3, 30])
@pytest.mark.parametrize("sure", [1, 30])
def test_second_derivatives(n_classes, sure):
    rng = np.random.default_rng(0)
    g, w = rng.normal(size=(20, n_classes)), rng.random(20)
    p = softmax(sure * g, axis=1)
    out = np.zeros((2 * n_classes, 2 * n_classes), np.int64)
    add_curvatures(p, g, w, 2.0**36, out)
    lower = np.tril(np.ones(out.shape, bool))
    np.testing.assert_allclose(
        out[lower] / 2.0**36, definition(p, g, w)[lower], atol=1e-9 + 20 * 10 * SMALL * (sure > 1)
    )
    assert not out[~lower].any()


def test_a_row_of_weight_two_is_two_rows():
    rng = np.random.default_rng(0)
    g, w = rng.normal(size=(20, 3)), rng.integers(0, 257, 20)
    p = softmax(g, axis=1)
    out = np.zeros((2, 6, 6), np.int64)
    add_curvatures(p, g, w.astype(float), 2.0**36, out[0])
    add_curvatures(p.repeat(w, axis=0), g.repeat(w, axis=0), np.ones(w.sum()), 2.0**36, out[1])
    np.testing.assert_array_equal(out[0], out[1])
