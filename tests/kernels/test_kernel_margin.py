"""Margin weights of every link, against their formulas in extended precision; weights along a direction; logistic slopes."""

import math

import numpy as np
import pytest

from distboost.kernels.margin import linked_weights
from distboost.rows.sums import Risk, Scale
from distboost.weights.margin import (
    EXPONENTIAL,
    LOGISTIC,
    SOFTMAX,
    ClassPairs,
    HitsAndMisses,
    LogisticSlopes,
    MarginWeights,
    ProjectedResiduals,
    Residuals,
)
from tests.kernels.cases import SHAPES, UNIT, case_name, case_of, in_order, prepared, times, whole_weights

pytestmark = pytest.mark.pairwise

LINKS = pytest.mark.parametrize("link", [LOGISTIC, SOFTMAX], ids=["logistic", "softmax"])
S = 0.7
BITS = 45


@pytest.fixture(params=SHAPES, ids=case_name)
def case(request):
    made = case_of(*request.param)
    made.block.scores[:] = np.round(made.block.scores * 64) / 64  # so that 32 bits hold their differences
    return made


def linked(F, y, s, link):
    """(u, loss) of one row: u[y] = 0."""
    F = np.asarray(F).astype(np.longdouble)
    e = np.exp(s * (F - F[y]))
    e[y] = 0
    if link == EXPONENTIAL:
        return e, e.sum()
    if link == LOGISTIC:
        return e / (1 + e), np.log1p(e).sum()
    return e / (1 + e.sum()), np.log1p(e.sum())


def assert_close(found, expected, bits, slack):
    """Equal to a few units of the last digit of each row's part, and `slack` of the units that it is rounded to."""
    np.testing.assert_allclose(found / 2.0**bits, expected, rtol=4e-15, atol=slack * 2.0**-bits)


# One row.


@LINKS
@pytest.mark.parametrize("n_classes", [2, 3, 9, 65])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1.0, 30.0, 250.0])
def test_linked_weights(link, n_classes, spread):
    rng = np.random.default_rng(n_classes)
    for _ in range(20):
        F, y = (
            np.round(rng.normal(scale=spread, size=n_classes) * 2**40) / 2**40,
            int(rng.integers(n_classes)),
        )
        u = np.empty(n_classes)
        loss = linked_weights(F, np.int32(y), 0.5, link, u)
        weights, expected = linked(F, y, 0.5, link)
        large = weights > 1e-290  # smaller ones stay where the exponential does
        np.testing.assert_allclose(u[large], weights[large].astype(float), rtol=4e-15)
        assert (u[~large] < 1e-280).all()
        assert u[y] == 0.0
        assert loss == pytest.approx(float(expected), rel=4e-15, abs=1e-280)


@LINKS
def test_links_at_the_ends(link):
    """Scores as far apart as they can come: finite, and the wrong class weighs all there is."""
    for far in (1e3, 1e6, 1e300):
        u = np.empty(3)
        loss = linked_weights(np.array([0.0, far, -far]), np.int32(0), 1.0, link, u)
        assert loss == far
        assert u[0] == 0.0
        assert u[1] == 1.0
        assert 0 <= u[2] < 1e-300
        assert 0 <= linked_weights(np.array([far, 0.0, -far]), np.int32(0), 1.0, link, u) < 1e-300
        assert (u < 1e-300).all()


@pytest.mark.parametrize("shift", [-600.0, -20.0, 0.0, 3.0])
@pytest.mark.parametrize("link", [EXPONENTIAL, LOGISTIC, SOFTMAX])
def test_weights_in_their_unit(link, shift):
    rng = np.random.default_rng(0)
    for _ in range(50):
        F = rng.normal(scale=3.0, size=5) + shift / S * (np.arange(5) != 2)
        u = whole_weights(F[None], [2], S, link, shift, 2.0**BITS)[0]
        expected = linked(F, 2, S, link)[0] * np.exp(np.longdouble(-shift))
        np.testing.assert_allclose(u / 2.0**BITS, expected.astype(float), rtol=2e-13, atol=2.0**-BITS)


# All rows.


def units(case):
    """How many roundings to whole units an entry of the sums takes part in."""
    return 1.0 + case.block.weights.sum()


@LINKS
@pytest.mark.parametrize("own", [1.0, 0.25])
@pytest.mark.parametrize(("wide", "bits"), [(False, 22), (True, BITS)])
def test_residuals(case, link, own, wide, bits):
    block, K = case.block, case.block.n_classes
    shift = math.log(K)
    out = prepared(case, Residuals(MarginWeights(S, link), own, wide), bits, UNIT, shift)
    expected = np.zeros((block.n_rows, K))
    for i in block.order:
        y = block.labels[i]
        u, _ = linked(block.scores[i], y, S, link)
        expected[i] = -u * block.weights[i] / K
        expected[i, y] = own * u.sum() * block.weights[i] / K
    assert_close(out[:, :K], expected, bits, slack=2 * K * (1 + block.weights.max(initial=0)))
    np.testing.assert_array_equal(out[block.order, K], 1)
    np.testing.assert_array_equal(out[block.order, K + 1], np.rint(block.weights[block.order] * UNIT))
    if own == 1.0:
        assert not out[:, :K].sum(axis=1).any()


@LINKS
def test_reductions(case, link):
    """Sums by pair of classes; hits and misses are those sums, to the last digit."""
    block, K = case.block, case.block.n_classes
    shift = math.log(K)
    weighting = MarginWeights(S, link)
    T = case.sums(ClassPairs(weighting), BITS, shift)
    expected = np.zeros((3, K, K))
    for leaf, i in case.in_leaves():
        u, _ = linked(block.scores[i], block.labels[i], S, link)
        expected[leaf, block.labels[i]] += (u * block.weights[i] / K).astype(float)
    assert_close(T, expected, BITS, slack=units(case))
    hits, misses = np.moveaxis(case.sums(HitsAndMisses(weighting), BITS, shift), 1, 0)
    np.testing.assert_array_equal(T.sum(axis=2), hits)
    np.testing.assert_array_equal(T.sum(axis=1), misses)
    np.testing.assert_array_equal(
        case.sums(ClassPairs(weighting, np.array([1, 0, 1])), BITS, shift), [T[1], T[0] + T[2]]
    )


@LINKS
def test_risk(case, link):
    """The loss; the largest weight and the largest loss of a row; errors, the first of equal scores being the prediction."""
    block, K = case.block, case.block.n_classes
    block.scores[::5] = 0.0
    weighting = MarginWeights(S, link)
    shifts = np.array([math.log(K), 4.0])
    total, errors, largest = np.longdouble(0), 0, np.full(2, -np.inf)
    for i in block.present:
        u, loss = linked(block.scores[i], block.labels[i], S, link)
        total += loss * block.weights[i]
        largest = np.maximum(largest, [float(u.sum()), float(loss)] * np.exp(-shifts))
        errors += round(float(block.weights[i]) * UNIT) * int(np.argmax(block.scores[i]) != block.labels[i])
    out, found = np.zeros(2, np.int64), np.full(2, -np.inf)
    Risk(weighting, shifts, 2.0**BITS, UNIT, out, found).add(block)
    assert out[0] == errors
    assert_close(out[1], float(total * np.exp(-np.longdouble(4))), BITS, slack=units(case))
    np.testing.assert_allclose(found, largest, rtol=4e-15)
    logs = weighting.log_totals(np.array([out[1] / 2.0**BITS]), shifts)
    assert logs.shape == (1,)
    np.testing.assert_allclose(np.exp(logs[0]), float(total), rtol=1e-9)
    if len(block.present):
        np.testing.assert_allclose(
            weighting.next_shifts(shifts, found), np.log(largest) + shifts, rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("link", [EXPONENTIAL, LOGISTIC, SOFTMAX])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 200])
def test_shifts_bound_what_a_round_sums(link, n_classes):
    """At first they are met by every row; after an update none is above them."""
    weighting = MarginWeights(S, link)
    rng = np.random.default_rng(n_classes)
    case = case_of(30, n_classes)
    case.block.scores[:] = 0.0
    shifts = np.array(weighting.initial_shifts(n_classes))
    for factor in (1.0, 4.0, 30.0):
        found = np.full(len(shifts), -np.inf)
        out = np.zeros(1 + weighting.n_sums(n_classes), np.int64)
        Risk(weighting, shifts, 2.0**BITS, UNIT, out, found).add(case.block)
        if not case.block.scores.any():
            np.testing.assert_allclose(found, 1.0, rtol=1e-14)
        assert (found <= 1 + 1e-14).all()
        shifts = weighting.next_shifts(shifts, found)
        values = factor * rng.normal(size=(30, n_classes))
        case.block.scores += values
        shifts = shifts + weighting.growth(values)


def test_the_shift_of_a_link_is_a_number_that_can_be_divided_by():
    """Where all rows are right by thousands, weights of e^-700 are left."""
    for link in (LOGISTIC, SOFTMAX):
        weighting = MarginWeights(1.0, link)
        shifts = weighting.next_shifts(np.array([0.0, 0.0]), np.exp([-650.0, -690.0]))
        assert (shifts >= -600).all()
        u = whole_weights(np.array([[5e3, 0.0]]), [0], 1.0, link, shifts[0], 2.0**60)
        assert np.isfinite(u).all()


# Along one direction of score space.


@pytest.mark.parametrize("unit", [0.0, UNIT])
@pytest.mark.parametrize("bits", [22, BITS])
@pytest.mark.parametrize("link", [EXPONENTIAL, LOGISTIC])
def test_projected_residuals(case, link, bits, unit):
    """sum_k (code[y_i] - code[k]) u[i, k] / 2, exactly but for the rounding of u."""
    block, K = case.block, case.block.n_classes
    code = np.random.default_rng(3).choice([-1.0, -0.25, 0.5, 1.0], K)
    shift = case.shift if link == EXPONENTIAL else math.log(K)
    out = prepared(case, ProjectedResiduals(MarginWeights(S, link), code), bits, unit, shift)
    u = whole_weights(block.scores, block.labels, S, link, shift, 2.0**bits)
    for i in block.order:
        y = block.labels[i]
        value = in_order((code[y] - code[k]) * u[i, k] for k in range(K)) / 2
        row = [
            times(block.weights[i], round(value)),
            1,
            *([round(float(block.weights[i]) * UNIT)] if unit else []),
        ]
        np.testing.assert_array_equal(out[i, : len(row)], row)
        assert not out[i, len(row) :].any()


@pytest.mark.parametrize("wide", [False, True])
def test_residuals_along_a_class_are_that_class_residuals(case, wide):
    """code = 1 at class r, 0 elsewhere: half of V[i, r]."""
    r = case.block.n_classes - 1
    bits = BITS if wide else 22
    weighting = MarginWeights(S)
    V = np.array(prepared(case, Residuals(weighting, wide=wide), bits, 0.0))
    halves = prepared(case, ProjectedResiduals(weighting, np.eye(r + 1)[r]), bits, 0.0)
    slack = case.block.weights + 1 + r
    assert (np.abs(2 * halves[:, 0] - V[:, r]) <= slack).all()


# Logistic weights after a step.


@pytest.mark.parametrize("centre", [0.0, 1.0, 20.0])
def test_logistic_slopes(case, centre):
    block, K = case.block, case.block.n_classes
    signs = np.array([1.0, -1.0, 1.0])
    c = centre * np.random.default_rng(2).uniform(size=K)
    nodes = np.array([-1.5, -0.1, 0.0, 2.0])
    reduction = LogisticSlopes(MarginWeights(1.0, LOGISTIC), signs, c, nodes)
    expected = np.zeros((2, K, K, len(nodes)))
    for leaf, i in case.in_leaves():
        y, h = block.labels[i], signs[leaf]
        F = block.scores[i].astype(np.longdouble)
        for r in range(K):
            if r != y:
                x = np.exp(F[r] - F[y] - h * (c[y] - c[r]) - nodes)
                expected[int(h > 0), y, r] += (x / (1 + x) * block.weights[i]).astype(float)
    found = case.sums(reduction, BITS, shift=0.0)
    assert_close(found, expected, BITS, slack=units(case))


def test_logistic_slopes_at_no_step_are_the_logistic_weights(case):
    K = case.block.n_classes
    weighting = MarginWeights(1.0, LOGISTIC)
    signs = np.array([-1.0, 1.0, -1.0])
    slopes = case.sums(LogisticSlopes(weighting, signs, np.zeros(K), np.zeros(1)), BITS, 0.0)
    pairs = case.sums(ClassPairs(weighting, np.array([0, 1, 0])), BITS, 0.0)
    slack = units(case)
    np.testing.assert_allclose(slopes[..., 0], pairs, rtol=4e-15, atol=slack)


def test_logistic_slopes_of_the_largest_margins_are_finite():
    case = case_of(12, 3)
    case.block.scores[:] = 1e5 * np.eye(3)[np.arange(12) % 3]
    reduction = LogisticSlopes(
        MarginWeights(1.0, LOGISTIC),
        np.array([1.0, -1.0, 1.0]),
        np.array([0.0, 27.0, 3.0]),
        np.array([-2.0, 2.0]),
    )
    found = case.sums(reduction, BITS, 0.0)
    for leaf, i in case.in_leaves():
        assert (found[int(leaf != 1), case.block.labels[i]] >= 0).all()
    assert found.max() <= 12 * 2**BITS
    assert found.min() >= 0


def test_the_shift_of_logistic_slopes_bounds_them():
    """Of weights that are all small, what a step leaves of them; never more than 1."""
    case = case_of(40, 3)
    case.block.scores[np.arange(40), case.block.labels] += 60.0
    weighting = MarginWeights(1.0, LOGISTIC)
    largest = np.full(2, -np.inf)
    Risk(weighting, np.zeros(2), 1.0, UNIT, np.zeros(2, np.int64), largest).add(case.block)
    shifts = weighting.next_shifts(np.zeros(2), largest)
    for centre in (np.zeros(3), np.array([0.0, 3.0, 1.0]), np.array([90.0, 0.0, 0.0])):
        reduction = LogisticSlopes(weighting, np.array([1.0, -1.0, 1.0]), centre, np.array([-2.0, 0.0, 2.0]))
        shift = reduction.shift(shifts)
        assert shift <= 0
        sums = case.sums(reduction, BITS, shift)
        assert 0 < sums.max() <= 40 * 2**BITS


# Scales.


def test_the_finest_scale_keeps_all_sums_within_62_bits():
    for total in (1e-3, 1.0, 2.0, 3.0, 1e6, 2.0**32):
        scale = Scale.fine(0.5, total)
        assert total * scale.factor < 2**62
        assert scale.factor >= min(2.0**60, 2.0**60 / total)
        assert scale.real(np.array([2**scale.bits])) == 1.0
