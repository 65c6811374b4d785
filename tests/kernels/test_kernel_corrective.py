"""The slopes of all coefficients at once, against loops over rows, stumps and classes."""

import math

import numpy as np
import pytest

from distboost.kernels.margin import EXPONENTIAL, LOGISTIC
from distboost.rows.sums import Scale
from distboost.runtime.block import Grown
from distboost.weights.corrective import CorrectiveSlopes, Stumps
from distboost.weights.margin import ClassPairs, MarginWeights
from tests.kernels.cases import SHAPES, case_name, case_of, exp, in_order, times

pytestmark = pytest.mark.pairwise

MISSING = np.array([5, 4, 6])  # bins go up to 5: feature 2 has no missing value
BITS = 45
LINKS = pytest.mark.parametrize("link", [EXPONENTIAL, LOGISTIC], ids=["exponential", "logistic"])


@pytest.fixture(params=[shape for shape in SHAPES if shape[2] == "float64"], ids=case_name)
def case(request):
    return case_of(*request.param)


def stumps_of(n, seed=0):
    rng = np.random.default_rng(seed)
    bins, sets = rng.integers(-1, 5, n), rng.integers(0, 2**64, (n, 4), np.uint64)
    return Stumps(rng.integers(0, 3, n), bins, rng.random(n) < 0.5, sets, rng.choice([-1.0, 1.0], n))


def outputs(block, stumps):
    """h_t(x_i) in {-1, +1}, (n, T)."""
    h = np.empty((block.n_rows, len(stumps.feature)))
    for t, (d, b, missing_left, polarity) in enumerate(
        zip(stumps.feature, stumps.bin, stumps.missing_left, stumps.polarity, strict=True)
    ):
        left = np.where(block.bins[:, d] == MISSING[d], missing_left, block.bins[:, d] <= b)
        if b < 0:
            left = (stumps.sets[t, 0] >> block.bins[:, d].astype(np.uint64)) & np.uint64(1) == 1
        h[:, t] = np.where(left, -polarity, polarity)
    return h


def scores_of(h, W):
    """F[i] = sum_t h_t(x_i) W[t], from the first to the last."""
    return np.array([[in_order(h[i] * column) for column in W.T] for i in range(len(h))]).reshape(
        len(h), W.shape[1]
    )


def ask(case, reduction, bits=BITS):
    answer = reduction.answer(case.block, np.zeros(1, np.int64), Scale(reduction.shift([]), bits))
    return answer.sums[:-1], answer.sums[-1, 0], answer.maxima, answer.sums[-1, 1:]


@pytest.mark.parametrize("n_stumps", [1, 2, 7])
def test_exponential(case, n_stumps):
    """To the last digit."""
    block, K = case.block, case.block.n_classes
    stumps = stumps_of(n_stumps)
    W = np.random.default_rng(1).uniform(0, 0.5, (n_stumps, K))
    shift = 2 * float(W.sum()) / K + math.log(K)
    h = outputs(block, stumps)
    F = scores_of(h, W)
    slopes, loss, largest = np.zeros((n_stumps, K), object), 0, np.full(2, -np.inf)
    for i in block.order.tolist():
        y = block.labels[i]
        u = exp(F[i] - F[i, y] - shift)
        u[y] = 0.0
        total = in_order(u)
        largest = np.maximum(largest, total)
        V = [-times(block.weights[i], x) for x in np.rint(u * 2.0**BITS)]
        V[y] = -sum(V)
        loss += times(block.weights[i], np.rint(total * 2.0**BITS))
        slopes += np.array([[int(x) * v for v in V] for x in h[i]], object)
    reduction = CorrectiveSlopes(stumps, MISSING, W, EXPONENTIAL, shift, shift)
    found = ask(case, reduction)
    np.testing.assert_array_equal(found[0], slopes.astype(np.int64))
    assert found[1] == loss
    np.testing.assert_array_equal(found[2], largest)
    assert not found[3].any()


def test_logistic(case):
    block, K = case.block, case.block.n_classes
    stumps, W = stumps_of(5), np.random.default_rng(1).uniform(0, 0.5, (5, K))
    shift, loss_shift = math.log(K), math.log(8 * K)
    h = outputs(block, stumps)
    F = scores_of(h, W).astype(np.longdouble)
    slopes, loss, largest = np.zeros((5, K)), 0.0, np.full(2, -np.inf)
    for i in block.order:
        y = block.labels[i]
        e = np.exp(F[i] - F[i, y])
        e[y] = 0
        u = (e / (1 + e)).astype(float)
        V = np.where(np.arange(K) == y, u.sum(), -u)
        slopes += block.weights[i] * np.outer(h[i], V) / K
        row_loss = float(np.log1p(e).sum())
        loss += block.weights[i] * row_loss / (8 * K)
        largest = np.maximum(largest, [u.sum() / K, row_loss / (8 * K)])
    found = ask(case, CorrectiveSlopes(stumps, MISSING, W, LOGISTIC, shift, loss_shift))
    slack = K * (1 + block.weights.sum()) * 2.0**-BITS
    np.testing.assert_allclose(found[0] / 2.0**BITS, slopes, rtol=1e-13, atol=slack)
    np.testing.assert_allclose(found[1] / 2.0**BITS, loss, rtol=1e-14, atol=slack)
    np.testing.assert_allclose(found[2], largest, rtol=1e-14)


@LINKS
def test_slopes_are_those_of_the_loss(link):
    """By differences: moving one coefficient moves the loss by its slope."""
    case, stumps = case_of(40, 4, weights="whole"), stumps_of(3)
    W = np.random.default_rng(2).uniform(0.1, 0.6, (3, 4))

    def at(W):
        slopes, loss, _, _ = ask(case, CorrectiveSlopes(stumps, MISSING, W, link, 5.0, 5.0), 50)
        return slopes * 2.0**-50 * math.exp(5), loss * 2.0**-50 * math.exp(5)

    slopes, _ = at(W)
    for t, r in np.ndindex(3, 4):
        step = np.zeros((3, 4))
        step[t, r] = 1e-4
        numeric = (at(W + step)[1] - at(W - step)[1]) / 2e-4
        assert numeric == pytest.approx(-slopes[t, r], rel=1e-6, abs=1e-6)


@LINKS
def test_slopes_are_what_pairs_of_classes_say_of_the_scores(link):
    """Had the rows these scores, the residuals' sums by side would be the slopes."""
    case, stumps = case_of(40, 3, weights="whole"), stumps_of(3, seed=5)
    block, W = case.block, np.random.default_rng(3).uniform(0, 0.4, (3, 3))
    h = outputs(block, stumps)
    block.scores[:] = scores_of(h, W)
    slopes, _, _, _ = ask(case, CorrectiveSlopes(stumps, MISSING, W, link, 2.0, 3.0))
    for t in range(3):
        expected = np.zeros(3, np.int64)
        for sign in (-1, 1):
            block.order = np.flatnonzero((h[:, t] == sign) & (block.weights > 0)).astype(np.int32)
            block.spans[0] = 0, len(block.order)
            side = case._replace(leaves=np.array([0]))
            [T] = side.sums(ClassPairs(MarginWeights(1.0, link)), BITS, 2.0)
            expected += sign * (T.sum(axis=1) - T.sum(axis=0))
        block.start_tree(None)
        np.testing.assert_array_equal(slopes[t], expected)


def test_a_row_left_out_of_the_round_does_not_count():
    case, stumps = case_of(20, 3), stumps_of(2)
    W = np.full((2, 3), 0.2) * np.arange(3)
    reduction = CorrectiveSlopes(stumps, MISSING, W, EXPONENTIAL, 2.0, 2.0)
    whole = ask(case, reduction)
    drawn = np.arange(20) % 3 > 0
    parts = []
    for mask in (drawn, ~drawn):
        case.block.start_tree(np.flatnonzero(mask), Grown(is_gathered=False))
        parts.append(ask(case, reduction))
    np.testing.assert_array_equal(parts[0][0] + parts[1][0], whole[0])
    assert parts[0][1] + parts[1][1] == whole[1]
