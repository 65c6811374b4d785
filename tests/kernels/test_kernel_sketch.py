"""Compressed residuals against a twin on Python's integers; what is right on average; the ends of their widths."""

import itertools
import math

import numpy as np
import pytest

from distboost.data.blocks import BinnedRows
from distboost.errors import DataError
from distboost.kernels import random
from distboost.kernels.simd_exp import WIDE
from distboost.kernels.sketch import draw_signs
from distboost.kernels.tiles import unit_of, weigh
from distboost.rows.sums import HISTOGRAM_BITS, Scale
from distboost.runtime.block import Block
from distboost.weights.margin import EXPONENTIAL, SOFTMAX, MarginWeights, ProjectedResiduals, Residuals
from distboost.weights.sketch import ROUNDED_FROM, CompressedResiduals, compressed
from tests.kernels.cases import SHAPES, UNIT, case_name, case_of, prepared, times

pytestmark = pytest.mark.pairwise

MASK = 2**64 - 1
FIRST = 12_345  # global number of a block's first row
LARGEST_INT32 = 2**31 - 1


@pytest.fixture(params=SHAPES, ids=case_name)
def case(request):
    made = case_of(*request.param)
    made.block.first = FIRST
    return made


def word(draw, position):
    z = (int(draw) + (position + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def sign(draw, k, c):
    return -1 if word(draw, k * 2**32 + c) >> 63 else 1


def largest(case):
    """The logarithm of the largest weight of a row."""
    F, y = case.block.scores.astype(float), case.block.labels[:, None]
    e = np.exp((F - np.take_along_axis(F, y.astype(int), 1)) / 2)
    return math.log(max((e.sum(axis=1) - 1).max(initial=0.0), 0.1))


def naive(statistic, case, scale):
    """The vectors of the rows, with their count, by row."""
    block, K, weighting = case.block, case.block.n_classes, statistic.residuals.weighting
    fine = scale.bits if statistic.few_bits is None else ROUNDED_FROM
    dropped = fine - scale.bits
    rows = {}
    for i in block.order.tolist():
        u, y = np.zeros((2 + WIDE // K, K)), int(block.labels[i])
        link, row = weighting.link, np.array([i], np.int32)
        weigh(block.scores, block.labels, row, 0, 1, weighting.s, link, scale.shift, u)
        u = np.rint(u[0] * unit_of(link, scale.shift, 2.0**fine))
        above = word(statistic.rounding, FIRST + i) % 2**dropped
        cumulated = [above]
        for k in range(K):
            cumulated.append(cumulated[-1] + times(block.weights[i], u[k]))
        V = [cumulated[k] // 2**dropped - cumulated[k + 1] // 2**dropped for k in range(K)]
        V[y] = cumulated[-1] // 2**dropped
        kept = int(V[y] > 0 or statistic.few_bits is None)
        if statistic.components is not None:
            R = [[sign(statistic.signs, k, c) for c in range(statistic.components)] for k in range(K)]
            V = [sum(V[k] * R[k][c] for k in range(K)) for c in range(statistic.components)]
        rows[i] = [*V, kept]
    return rows


@pytest.mark.parametrize(("components", "few_bits"), [*itertools.product([None, 1, 6], [None, 2, 5, 16])][1:])
@pytest.mark.parametrize("link", [EXPONENTIAL, SOFTMAX], ids=["exponential", "softmax"])
def test_equals_the_twin(case, components, few_bits, link):
    statistic = compressed(Residuals(MarginWeights(0.5, link)), components, few_bits, 7, 3)
    available = HISTOGRAM_BITS - (components is not None)
    scale = Scale(largest(case), available if few_bits is None else few_bits)
    before = case.block.order.tolist()
    expected = naive(statistic, case, scale)
    out = prepared(case, statistic, scale.bits, UNIT, scale.shift)
    n = statistic.n_sums(case.block.n_classes)
    for i, vector in expected.items():
        if vector[-1]:
            assert out[i, : n + 1].tolist() == vector
            assert out[i, n + 1] == round(case.block.weights[i] * UNIT)
        else:
            assert not out[i].any()
    # Rows without a residual are behind all others, and neither part has changed its order.
    kept = [i for i in before if expected[i][-1]]
    assert case.block.order.tolist() == kept + [i for i in before if not expected[i][-1]]
    if few_bits is None:
        return
    case.block.spans[:3] = [(0, len(before)), (0, len(kept)), (len(kept), len(before))]
    found = statistic.spans(case.block, np.array([2, 0, 1]))
    assert found.tolist() == [[len(kept)] * 2, [0, len(kept)], [0, len(kept)]]


def test_signs_depend_on_class_and_component_alone():
    key = random.key(1, random.SKETCH_SIGNS, 9)
    large, small = np.empty((300, 40), np.int32), np.empty((7, 3), np.int32)
    draw_signs(key, 40, large)
    draw_signs(key, 3, small)
    np.testing.assert_array_equal(large[:7, :3], small)
    assert set(large.ravel().tolist()) == {-1, 1}
    assert abs(large.mean()) < 5 / math.sqrt(large.size)
    products = large.T @ large / 300  # of any two components
    assert np.abs(products - np.eye(40)).max() < 5.5 / math.sqrt(300)


def mean_of(case, components, few_bits, n_rounds, what):
    """The mean over rounds of what(vectors of the rows in use), and its standard error."""
    rows = np.sort(case.block.order)
    found = []
    for round in range(n_rounds):
        statistic = compressed(Residuals(MarginWeights(0.5)), components, few_bits, 0, round)
        n = statistic.n_sums(case.block.n_classes)
        bits = few_bits or HISTOGRAM_BITS - 1
        out = prepared(case, statistic, bits, 0.0, math.log(case.block.n_classes))[rows].astype(float)
        found.append(what(out[:, :n] * (out[:, n : n + 1] > 0) / 2.0**bits))
    return np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(n_rounds)


@pytest.mark.parametrize("few_bits", [2, 4, 9])
@pytest.mark.parametrize("weights", ["ones", "whole", "fractions"])
def test_rounding_is_right_on_average(few_bits, weights):
    case = case_of(40, 9, "float64", weights)
    case.block.scores[:] /= 4
    rows = np.sort(case.block.order)
    exact = prepared(case, Residuals(MarginWeights(0.5), wide=True), 45, 0.0, math.log(9))[rows, :9] / 2.0**45
    mean, error = mean_of(case, None, few_bits, 2000, lambda V: V)
    assert (error > 0).mean() > 0.5
    unit = 2.0**-few_bits
    f = np.mod(exact / unit, 1)  # how often it is rounded up; seldom, perhaps
    assert (np.abs(mean - exact) <= unit * (5 * np.sqrt(f * (1 - f) / 2000) + 6 / 2000)).all()
    # Sums over rows, too: rows are rounded independently.
    mean, error = mean_of(case, None, few_bits, 2000, lambda V: V.sum(axis=0))
    assert (np.abs(mean - exact.sum(axis=0)) <= 4 * error + 6 * unit / 2000).all()
    assert (error * math.sqrt(2000) <= unit * math.sqrt(len(rows))).all()  # as of independent rows


@pytest.mark.parametrize("components", [1, 4])
def test_squared_lengths_of_projected_sums_are_right_on_average(components):
    case = case_of(40, 9)
    rows = np.sort(case.block.order)
    exact = prepared(case, Residuals(MarginWeights(0.5)), 21, 0.0, math.log(9))[rows, :9] / 2.0**21
    for half in (slice(0, 20), slice(20, 40)):
        mean, error = mean_of(
            case, components, None, 2000, lambda V, half=half: (V[half].sum(axis=0) ** 2).sum()
        )
        expected = (exact[half].sum(axis=0) ** 2).sum()
        assert abs(mean / components - expected) <= 4 * error / components
        assert error / mean < 0.05


@pytest.mark.parametrize("n_classes", [2, 3, 1000])
@pytest.mark.parametrize("few_bits", [None, 16])
def test_the_largest_numbers_fit(n_classes, few_bits):
    """Rows of the largest weight whose residual is as large as can be, with signs that never cancel."""
    n = 50
    labels = np.zeros(n, np.int32)
    block = Block(
        BinnedRows(0, np.zeros((n, 1), np.uint8), labels, np.full(n, 256.0)),
        n_classes,
        n_classes,
        score_dtype="float64",
    )
    block.start_tree(None)
    statistic = compressed(Residuals(MarginWeights(0.5)), 1, few_bits, 0, 0)
    signs = np.full((n_classes, 1), -1, np.int32)
    signs[0] = 1
    bits = statistic.bits(HISTOGRAM_BITS, 2.0**-12, 40.0)
    assert bits == HISTOGRAM_BITS - 1

    def aligned(key, n_components, out):
        out[:, :1] = signs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distboost.weights.sketch.sketch.draw_signs", aligned)
        statistic.prepare(block, block.order, Scale(math.log(n_classes - 1), bits), 0.0)
    out = block.kept("statistics")[:, 0]
    rounding = 256 * n_classes  # half a unit of each class, twice
    assert (out >= 2**30 - rounding).all()
    assert (out <= 2**30 + rounding).all()
    assert 2**30 + rounding < LARGEST_INT32


def test_bits():
    few = compressed(Residuals(MarginWeights(0.5)), None, 6, 0, 0)
    assert few.bits(22, 1.0, 0.0) == 6
    assert few.bits(22, 64.0, 0.0) == 0  # rows of weight 64 have 6 bits
    assert few.bits(22, 0.25, 0.0) == 8
    assert few.bits(22, 1.0, 1.5 * math.log(2)) == 8  # of the weights before the step
    assert few.bits(22, 2.0**-20, 0.0) == 22
    assert compressed(Residuals(MarginWeights(0.5)), 3, 6, 0, 0).bits(22, 2.0**-20, 0.0) == 21
    assert compressed(Residuals(MarginWeights(0.5)), 3, None, 0, 0).bits(22, 2.0**-20, 0.0) == 21


def test_only_narrow_residuals_can_be_compressed():
    weighting = MarginWeights(0.5)
    for statistic in (
        Residuals(weighting, wide=True), Residuals(weighting, own=0.5), ProjectedResiduals(weighting, np.ones(3)),
    ):  # fmt: skip
        assert compressed(statistic, None, None, 0, 0) is statistic
        with pytest.raises(DataError, match="cannot be compressed"):
            compressed(statistic, 2, None, 0, 0)
    assert isinstance(compressed(Residuals(weighting), 2, None, 0, 0), CompressedResiduals)
