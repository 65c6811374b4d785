"""Sums for the multinomial logistic loss, against their formulas in extended precision."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.kernels.margin import link_risk
from distboost.kernels.tiles import SOFTMAX
from distboost.rows.sums import Risk, Scale, spread
from distboost.weights.softmax import (
    Curvatures,
    PairCurvatures,
    PairSlopes,
    SoftmaxResiduals,
    SoftmaxSlopes,
    SoftmaxWeights,
    WorkingResponses,
)
from tests.kernels.cases import SHAPES, UNIT, case_name, case_of, prepared

pytestmark = pytest.mark.pairwise

WEIGHTING = SoftmaxWeights()
BITS = 45
STEPS = np.array([0.0, 0.001, 0.3, 0.7, 1.0, 1.5, 4.0, 9.0])


@pytest.fixture(params=SHAPES, ids=case_name)
def case(request):
    made = case_of(*request.param)
    made.block.scores[:] = np.round(made.block.scores * 64) / 64  # so that 32 bits hold their differences
    return made


def probabilities(F):
    e = np.exp(np.asarray(F, np.longdouble) - max(F))
    return e / e.sum()


def assert_close(found, expected, n_rows, bits=BITS):
    """Equal to a few units of the last digit of each row's part, and to the units that it is rounded to."""
    slack = 1e3 * max(n_rows, 1) * 2.0**-bits
    np.testing.assert_allclose(found / 2.0**bits, np.asarray(expected, float), rtol=1e-13, atol=slack)


def test_curvatures(case):
    n_classes = case.block.n_classes
    expected = np.zeros((len(case.leaves), 3, n_classes), np.longdouble)
    for leaf, i in case.in_leaves():
        y, w, p = case.block.labels[i], case.block.weights[i], probabilities(case.block.scores[i])
        others = np.delete(p, y).sum()
        expected[leaf, 0, y] += w * others
        expected[leaf, 1] += w * np.where(np.arange(n_classes) == y, 0, p)
        expected[leaf, 2] += w * p * (1 - p)
    assert_close(case.sums(Curvatures(), BITS, 0.0), expected, case.block.n_rows)


@pytest.mark.parametrize("unit", [0.0, UNIT])
def test_working_responses(case, unit):
    column, limit = case.block.n_classes - 1, 4.0
    out = prepared(case, WorkingResponses(column, limit), BITS, unit, 0.0)
    for i in case.block.order:
        own, w, p = case.block.labels[i] == column, case.block.weights[i], probabilities(case.block.scores[i])
        other = (
            np.delete(p, column).sum() if own else p[column]
        )  # 1 - p of the own class, with all its digits
        curvature = other * (1 - other)
        z = np.clip((1 if own else -1) * other / curvature, -limit, limit)
        assert_close(out[i, :2], w * np.array([curvature * z, curvature]), 1)
        assert_array_equal(out[i, 2:4], [1, np.rint(w * unit)])


@pytest.mark.parametrize("unit", [0.0, UNIT])
def test_pair_curvatures(case, unit):
    K = case.block.n_classes
    out = prepared(case, PairCurvatures(), BITS, unit, 0.0)
    s, r = np.tril_indices(K, -1)
    for i in case.block.order:
        w, p = case.block.weights[i], probabilities(case.block.scores[i])
        slopes = np.eye(K)[case.block.labels[i]] - p
        curvatures = p[r] * (1 - p[r]) + p[s] * (1 - p[s]) + 2 * p[r] * p[s]
        assert_close(out[i, : K + len(s)], w * np.concatenate([slopes, curvatures / 4]), 1)
        assert_array_equal(out[i, K + len(s) :][:2], [1, np.rint(w * unit)])


def pair_weights(F, y):
    """The logistic weight of each wrong class; minus their sum for the row's own."""
    u = 1 / (1 + np.exp(F[y] - np.asarray(F, np.longdouble)))
    u[y] = 0
    u[y] = -u.sum()
    return u


WEIGHTS = {SoftmaxSlopes: lambda F, y: probabilities(F), PairSlopes: pair_weights}


@pytest.mark.parametrize("slopes_of", WEIGHTS)
def test_slopes_along_a_line(case, slopes_of):
    rng = np.random.default_rng(0)
    V = rng.choice([-1.0, -0.25, 0.5, 1.5], (len(case.leaves), case.block.n_classes))
    V[:, :2] = [-1.0, 1.5]
    D = 2.5
    expected = np.zeros(9, np.longdouble)
    for leaf, i in case.in_leaves():
        y, w, v = case.block.labels[i], case.block.weights[i], V[leaf]
        d = (v - v[y]) / D
        slopes = [WEIGHTS[slopes_of](case.block.scores[i] + step * v, y) @ d for step in STEPS]
        expected += w * np.array([*slopes, (d >= 0).sum() > 1])
    reduction = slopes_of(V, STEPS)
    found = case.sums(reduction, BITS, reduction.largest)
    units = np.append(np.full(8, np.exp(reduction.largest)), 1)
    assert_close(found * units, expected, case.block.n_rows)


def test_the_slopes_of_rows_that_are_certain():
    """No digits are lost of 1 - p of the own class, and those that are certainly wrong have a slope, too."""
    case = case_of(40, 3)
    own = np.eye(3)[case.block.labels]
    V = np.array([[1.0, 0.0, -1.0]] * 3)
    for margin in (40.0, -40.0, 300.0):
        case.block.scores[:] = margin * own
        rows = [i for _, i in case.in_leaves()]
        others = np.exp(-np.longdouble(margin))
        total = 2 * others / (1 + 2 * others)
        shift = float(np.log(total))
        scale = Scale(shift, BITS)
        assert SoftmaxSlopes(V, STEPS).shift([shift]) == shift
        out = np.zeros((3, 3, 3), np.int64)
        Curvatures().add(case.block, case.leaves, scale, out)
        assert out[:, 0].sum() / 2.0**BITS == pytest.approx(len(rows), rel=1e-12)
        logs = SoftmaxSlopes(V, STEPS).logs(shift)
        found = case.sums(SoftmaxSlopes(V, STEPS), BITS, shift)[:8] / 2.0**BITS * np.exp(logs)
        expected = np.zeros(8)
        for leaf, i in case.in_leaves():
            d = (V[leaf] - V[leaf, case.block.labels[i]]) / 2
            expected += [float(probabilities(case.block.scores[i] + step * V[leaf]) @ d) for step in STEPS]
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_pair_slopes_of_the_largest_margins():
    """Rows that are certainly wrong weigh 1 for each class above their own; none overflows."""
    case = case_of(12, 3)
    own = np.eye(3)[case.block.labels]
    V = np.array([[1.0, 0.0, -1.0]] * 3)
    for sign, weight in ((1e5, 0.0), (-1e5, 1.0)):
        case.block.scores[:] = sign * own
        expected = 0.0
        for leaf, i in case.in_leaves():
            y = case.block.labels[i]
            expected += weight * case.block.weights[i] * (V[leaf] - V[leaf, y]).sum() / 2
        reduction = PairSlopes(V, STEPS)
        found = case.sums(reduction, BITS, reduction.largest)[:8] / 2.0**BITS * 2
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_losses_are_those_of_each_row_alone(case):
    of_rows = case.block.scores, case.block.labels, case.block.weights
    given = np.array([-0.5, 2.0]), 2.0**BITS, 2.0**20
    found, expected = ((np.array([5, 7]), np.full(2, -np.inf)) for _ in range(2))
    Risk(WEIGHTING, *given, *found).add(case.block)
    link_risk(*of_rows, 1.0, SOFTMAX, *given, *expected)
    for numbers in zip(found, expected, strict=True):
        assert_array_equal(*numbers)


@pytest.mark.parametrize("margin", [40.0, 300.0])
def test_the_losses_of_rows_that_are_certain(margin):
    case = case_of(40, 3)
    case.block.scores[:] = margin * np.eye(3)[case.block.labels]
    shift = np.log(2) - margin
    out, largest = np.zeros(2, np.int64), np.zeros(2)
    Risk(WEIGHTING, np.array([shift, shift + 1]), 2.0**BITS, 1.0, out, largest).add(case.block)
    assert out[1] / 2.0**BITS == pytest.approx(case.block.weights.sum() / np.e, rel=1e-12)
    np.testing.assert_allclose(largest, [1, 1 / np.e], rtol=1e-12)


@pytest.mark.parametrize(("slopes_of", "largest"), [(SoftmaxSlopes, 0.0), (PairSlopes, np.log(3))])
@pytest.mark.parametrize("margin", [-30.0, 0.0, 30.0])
def test_the_shifts_bound_the_slopes(margin, slopes_of, largest):
    case = case_of(40, 4, spread=1.0)
    case.block.scores[:] += margin * np.eye(4)[case.block.labels]
    own = zip(case.block.scores, case.block.labels, strict=True)
    u = np.array([np.delete(WEIGHTS[slopes_of](F, y), y).sum() for F, y in own], float)
    V = np.random.default_rng(0).normal(size=(3, 4))
    reduction = slopes_of(V, STEPS)
    shift = reduction.shift([float(np.log(u.max()))])
    assert shift == min(np.log(u.max()), largest)
    assert_array_equal(reduction.logs(shift), np.minimum(shift + STEPS * spread(V), largest))
    for leaf in range(3):
        for i in case.rows(leaf):
            alone = case_rows(case, leaf, i, reduction, shift)
            assert np.abs(alone).max() <= 2.0**BITS * (1 + 1e-12)


def case_rows(case, leaf, i, reduction, shift):
    """The reduction of one row."""
    block = case.block
    start, stop = block.spans[case.leaves[leaf]]
    order = block.order[start:stop].copy()
    spans = block.spans.copy()
    block.order[start], block.spans[:] = i, 0
    block.spans[case.leaves[leaf]] = start, start + 1
    out = np.zeros(reduction.shape(3, block.n_classes), np.int64)
    reduction.add(block, case.leaves, Scale(shift, BITS), out)
    block.order[start:stop], block.spans[:] = order, spans
    return out


def test_no_bound_on_the_weights_exceeds_one():
    statistic = SoftmaxResiduals(WEIGHTING)
    assert statistic.shift([3.0, 8.0]) == 0.0
    assert statistic.shift([-3.0, 8.0]) == -3.0
