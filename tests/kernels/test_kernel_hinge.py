"""The multiclass hinge loss and its cutting planes, against loops over rows, stumps and classes."""

import numpy as np
import pytest

from distboost.rows.sums import Risk, Scale
from distboost.weights.hinge import CuttingPlanes, HingeLoss, MixedCuts
from tests.kernels.cases import SHAPES, UNIT, case_name, case_of, prepared, times
from tests.kernels.test_kernel_corrective import MISSING, outputs, scores_of, stumps_of

pytestmark = pytest.mark.pairwise

BITS = 45


@pytest.fixture(params=SHAPES, ids=case_name)
def case(request):
    return case_of(*request.param)


def cut_of(F, y):
    """(loss, the classes that attain it)."""
    losses = {k: 1 + (F[k] - F[y]) for k in range(len(F)) if k != y}
    loss = max(losses.values())
    return max(loss, 0.0), [k for k in losses if losses[k] == loss and loss > 0]


def vector(F, y, weight, share=1.0):
    """A row's cut, in units of 2^-BITS: the classes that attain the loss share it."""
    _, attained = cut_of(F, y)
    V = [0] * len(F)
    for k in attained:
        V[k] = -times(weight, np.rint(share / len(attained) * 2.0**BITS))
    V[y] = -sum(V)
    return V


def test_losses(case):
    block, shift = case.block, 3.0
    out, largest, errors, total, most = np.zeros(2, np.int64), np.zeros(1), 0.0, 0.0, 0.0
    Risk(HingeLoss(), np.array([shift]), 2.0**BITS, 1.0, out, largest).add(block)
    for i in block.order:
        F, y = block.scores[i].astype(float), block.labels[i]
        loss, _ = cut_of(F, y)
        errors += round(block.weights[i] * (F.argmax() != y))
        total, most = total + block.weights[i] * loss, max(most, 1 + loss)
    assert out[0] == errors
    np.testing.assert_allclose(out[1] * 2.0**-BITS * np.exp(shift), total, rtol=1e-12)
    np.testing.assert_allclose(largest[0] * np.exp(shift), most, rtol=1e-14)


@pytest.mark.parametrize("n_stumps", [0, 1, 7])
def test_planes(case, n_stumps):
    """To the last digit. Coefficients of 0 and 1 make ties."""
    block, K, stumps = case.block, case.block.n_classes, stumps_of(n_stumps)
    W = np.random.default_rng(1).integers(0, 2, (n_stumps, K)) / 4
    h = outputs(block, stumps)
    F = scores_of(h, W)
    expected = np.zeros((K, n_stumps + 1, K), object)
    for i in block.order.tolist():
        y, V = block.labels[i], vector(F[i], block.labels[i], block.weights[i])
        expected[y, :-1] += np.array([[int(x) * v for v in V] for x in h[i]], object).reshape(n_stumps, K)
        expected[y, -1, 0] += times(block.weights[i], 2.0**BITS) if any(V) else 0
    found = CuttingPlanes(stumps, MISSING, W).answer(block, np.zeros(1, np.int64), Scale(0.0, BITS)).sums
    np.testing.assert_array_equal(found, expected.astype(np.int64))


@pytest.mark.parametrize("unit", [0.0, UNIT])
def test_mixed_cuts(case, unit):
    block, K, stumps = case.block, case.block.n_classes, stumps_of(4)
    rng = np.random.default_rng(2)
    W, shares = rng.integers(0, 3, (3, 4, K)) / 4, rng.choice([0.0, 0.1, 0.3], (3, K))
    out = prepared(case, MixedCuts(stumps, MISSING, W, shares), BITS, unit, 0.0)
    h = outputs(block, stumps)
    F = [scores_of(h, W_p) for W_p in W]
    for i in block.order:
        y, w = block.labels[i], block.weights[i]
        V = sum(np.array(vector(F_p[i], y, w, share)) for F_p, share in zip(F, shares[:, y], strict=True))
        np.testing.assert_allclose(out[i, :K], V.astype(float), rtol=0, atol=4 * K * max(w, 1))
        assert out[i, :K].sum() == 0
        np.testing.assert_array_equal(out[i, K : K + 2], [1, np.rint(w * unit)])
