"""Row statistics and their sums over leaves: each against loops over rows and classes.

The twins work on Python's integers, so that nothing can overflow in them.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest

from distboost.data.blocks import BinnedRows
from distboost.kernels import histogram
from distboost.kernels.exponential import exponentials
from distboost.kernels.response import WINDOW, WINDOWS
from distboost.runtime.block import Block
from distboost.weighting import (
    ClassPairs,
    ClassSums,
    HitsAndMisses,
    LineSides,
    MarginWeights,
    ResponseWeights,
    Scale,
)

WEIGHTS = {
    "ones": lambda rng, n: np.ones(n),
    "whole": lambda rng, n: rng.integers(0, 5, n).astype(float),  # some of them 0
    "fractions": lambda rng, n: rng.choice([0.0, 0.3, 1.7, 255.9], n),
}
UNIT = 2.0**20


def exp(x):
    """The library's exponential of any array, which its own test compares with NumPy's."""
    x = np.asarray(x, np.float64)
    out = np.empty((1, x.size))
    exponentials(x.reshape(1, -1), out)
    return out.reshape(x.shape)


def times(weight, q):
    """weight * q as an integer; exact for a whole weight."""
    return int(weight) * int(q) if weight == int(weight) else round(float(weight) * float(q))


class Case(NamedTuple):
    block: Block
    leaves: np.ndarray  # nodes 3, 1, 2 of the partition; node 2 is empty
    shift: float

    def rows(self, leaf):
        a, b = self.block.spans[self.leaves[leaf]]
        return self.block.order[a:b].tolist()

    def scale(self, bits):
        return Scale(self.shift, bits)

    def e(self, i, s):
        """e[i, k] = exp(-s (F[i, y] - F[i, k]) - shift), and 0 for the row's own class."""
        F, y = self.block.scores[i], self.block.labels[i]
        e = exp(s * (F - F[y]).astype(np.float64) - self.shift)
        e[y] = 0.0
        return e

    def w(self, i, s):
        """w_i = exp(-s F[i, y_i] - shift)."""
        return float(exp(-s * float(self.block.scores[i, self.block.labels[i]]) - self.shift))


def case_of(n, n_classes, dtype, weights, spread=2.0):
    rng = np.random.default_rng([n, n_classes])
    rows = BinnedRows(
        0,
        rng.integers(0, 6, (n, 3)).astype(np.uint8),
        rng.integers(0, n_classes, n).astype(np.int32),
        WEIGHTS[weights](rng, n),
    )
    block = Block(rows, n_classes, dtype)
    block.scores[:] = rng.normal(scale=spread, size=(n, n_classes))
    block.start_tree(None)
    rng.shuffle(block.order)
    used = len(block.order)
    block.spans[:4] = [(0, used), (0, used // 3), (used // 3, used // 3), (used // 3, used)]
    return Case(block, np.array([3, 1, 2]), float(2 * spread * 4 + math.log(n_classes)))


@pytest.fixture(
    params=[
        *itertools.product([40], [2, 3, 9], ["float64", "float32"], ["ones", "whole", "fractions"]),
        (0, 3, "float64", "ones"),
        (1, 2, "float64", "whole"),
        (12, 70, "float64", "fractions"),
    ],
    ids=lambda p: f"{p[0]} rows, {p[1]} classes, {p[2]}, {p[3]}",
)
def case(request):
    return case_of(*request.param)


# Statistics per row.


def naive_residuals(case, s, bits, unit):
    """V[i, k] = -e[i, k], V[i, y_i] = their sum; then 1 for the row; then the row's own weight."""
    block, K = case.block, case.block.n_classes
    out = np.zeros((block.n_rows, K + 1 + (unit > 0)), object)
    for i in block.order.tolist():
        q = [times(block.weights[i], x) for x in np.rint(case.e(i, s) * 2.0**bits)]
        out[i, :K] = [-x for x in q]
        out[i, block.labels[i]] = sum(q)
        out[i, K] = 1
        if unit:
            out[i, K + 1] = round(float(block.weights[i]) * unit)
    return out.astype(np.int64)


def naive_responses(case, s, bits):
    out = np.zeros(case.block.n_rows, object)
    for i in case.block.order.tolist():
        out[i] = times(case.block.weights[i], np.rint(case.w(i, s) * 2.0**bits))
    return out.astype(np.int64)


@pytest.mark.parametrize("unit", [0.0, UNIT])
def test_residuals(case, unit):
    MarginWeights(0.5).statistics(case.block, case.block.order, case.scale(22), unit)
    out, expected = case.block.buffers["statistics"], naive_residuals(case, 0.5, 22, unit)
    np.testing.assert_array_equal(out[:, : expected.shape[1]], expected)
    assert not out[:, expected.shape[1] :].any()
    assert not out[:, : case.block.n_classes].sum(axis=1).any()  # a row's residuals sum to 0


def test_response_weights(case):
    ResponseWeights(0.25).statistics(case.block, case.block.order, case.scale(45), 0.0)
    np.testing.assert_array_equal(case.block.buffers["statistics"], naive_responses(case, 0.25, 45))


def test_a_residual_of_the_heaviest_row_fits_its_type():
    """The largest weight and the finest scale: V reaches 2^30 and no further."""
    n_classes = 65
    rows = BinnedRows(0, np.zeros((1, 1), np.uint8), np.zeros(1, np.int32), np.array([256.0]))
    block = Block(rows, n_classes, "float64")
    weighting = MarginWeights(0.5)
    scale = Scale(weighting.initial_shift(n_classes), weighting.histogram_bits)
    weighting.statistics(block, np.zeros(1, np.int32), scale, UNIT)
    V = block.buffers["statistics"][0, :n_classes]
    assert V[0] == 2**30
    assert V.sum() == 0
    assert block.buffers["statistics"][0, n_classes + 1] == 256 * UNIT


# Histograms.


def naive_histogram(case, statistics, features, offsets, slots, nodes, pool):
    """np.add.at, node by node and feature by feature."""
    pool = pool.copy()
    for slot, node in zip(slots, nodes, strict=True):
        rows = case.block.order[slice(*case.block.spans[node])]
        for d in features:
            np.add.at(pool[slot], offsets[d] + case.block.bins[rows, d], statistics[rows])
    return pool


def class_channels(case, values, unit, width):
    """One number per row, in the channel of the row's class, then the count and the row's own weight."""
    block = case.block
    out = np.zeros((block.n_rows, width), np.int64)
    out[np.arange(block.n_rows), block.labels] = values
    out[:, block.n_classes] = 1
    if unit:
        out[:, block.n_classes + 1] = np.rint(block.weights * unit)
    return out


@pytest.mark.parametrize("unit", [0.0, UNIT])
@pytest.mark.parametrize("weighting", [MarginWeights(0.5), ResponseWeights(0.25)], ids=["dense", "by class"])
def test_histogram(case, weighting, unit):
    block = case.block
    weighting.statistics(block, block.order, case.scale(22), unit)
    offsets = np.array([0, 6, 12, 18])
    features, slots, nodes = np.array([0, 2]), np.array([4, 1, 2]), np.array([1, 2, 3])
    width = -(-(block.n_classes + 1 + (unit > 0)) // 8) * 8
    pool = np.random.default_rng(0).integers(-(2**40), 2**40, (5, 18, width))  # what is there is added to
    statistics = block.buffers["statistics"]
    if statistics.ndim == 1:
        statistics = class_channels(case, statistics, unit, width)
    expected = naive_histogram(case, statistics, features, offsets, slots, nodes, pool)
    weighting.histogram(block, block.spans[nodes], features, offsets, unit, slots, pool)
    np.testing.assert_array_equal(pool, expected)


def test_histogram_sums_do_not_overflow():
    """More in one bin than 32 bits hold, of both signs."""
    n = 64
    statistics = np.zeros((n, 8), np.int32)
    statistics[:, 0], statistics[:, 7] = 2**30, -(2**31)
    pool = np.zeros((1, 2, 8), np.int64)
    one = np.array([0])
    histogram.dense_histogram(
        np.ones((n, 1), np.uint8), np.arange(n, dtype=np.int32), one, one + n, statistics, one, np.array([0, 2]), one, pool
    )  # fmt: skip
    assert pool[0, 1, [0, 7]].tolist() == [n * 2**30, -n * 2**31]
    assert not pool[0, 0].any()


def test_clear():
    pool = np.random.default_rng(0).integers(1, 9, (4, 10, 8))
    expected = pool.copy()
    expected[np.ix_([3, 1], [0, 1, 2, 7, 8, 9])] = 0
    histogram.clear(np.array([0, 2]), np.array([0, 3, 7, 10]), np.array([3, 1]), pool)
    np.testing.assert_array_equal(pool, expected)


# Sums over the rows of each leaf.


def sums(case, reduction, bits=40):
    out = np.zeros(reduction.shape(len(case.leaves), case.block.n_classes), np.int64)
    reduction.add(case.block, case.leaves, case.scale(bits), out)
    return out


def margin_terms(case, s, bits):
    """(leaf, row, class k, e[i, k] as a whole number) of all leaves, rows and classes."""
    for leaf in range(len(case.leaves)):
        for i in case.rows(leaf):
            for k, q in enumerate(np.rint(case.e(i, s) * 2.0**bits)):
                yield leaf, i, k, q


def test_class_pairs(case):
    expected = np.zeros((3, case.block.n_classes, case.block.n_classes), object)
    for leaf, i, k, q in margin_terms(case, 0.5, 40):
        expected[leaf, case.block.labels[i], k] += times(case.block.weights[i], q)
    np.testing.assert_array_equal(sums(case, ClassPairs(0.5)), expected.astype(np.int64))


def test_hits_and_misses(case):
    expected = np.zeros((3, 2, case.block.n_classes), object)
    for leaf, i, k, q in margin_terms(case, 0.5, 40):
        expected[leaf, 0, case.block.labels[i]] += times(case.block.weights[i], q)
        expected[leaf, 1, k] += times(case.block.weights[i], q)
    np.testing.assert_array_equal(sums(case, HitsAndMisses(0.5)), expected.astype(np.int64))


@pytest.mark.parametrize("step", [0.0, 0.7, 30.0])
def test_line_sides(case, step):
    """To the unit per row that rounding a sum taken in another order may cost."""
    V, s, bits = np.random.default_rng(1).normal(size=(3, case.block.n_classes)), 0.5, 40
    D = (V.max(axis=1) - V.min(axis=1)).max()
    expected, slack = np.zeros(4), 0.0
    for leaf in range(3):
        for i in case.rows(leaf):
            d = (V[leaf] - V[leaf, case.block.labels[i]]) / D
            e = np.rint(case.e(i, s) * 2.0**bits)
            right, wrong = d < 0, d > 0
            falling = e * np.exp(s * step * D * d) * right
            rising = e * np.exp(s * step * D * (d - 1)) * wrong
            sides = [falling * -d, falling * d * d, rising * d, rising * d * d]
            expected += case.block.weights[i] * np.array([side.sum() for side in sides])
            slack += case.block.weights[i] + 1
    np.testing.assert_allclose(sums(case, LineSides(s, V, step), bits), expected, rtol=1e-15, atol=slack)


def test_class_sums(case):
    """Each row's weight is in the window of its magnitude: by powers of 2^-32."""
    expected = np.zeros((3, WINDOWS, case.block.n_classes), object)
    for leaf in range(3):
        for i in case.rows(leaf):
            y = case.block.labels[i]
            exponent = -0.25 * float(case.block.scores[i, y]) - case.shift
            window = max(math.floor(-exponent / (WINDOW * math.log(2))), 0)
            w = float(exp(exponent + window * (WINDOW * math.log(2))))
            expected[leaf, window, y] += times(case.block.weights[i], np.rint(w * 2.0**45))
    np.testing.assert_array_equal(sums(case, ClassSums(0.25), 45), expected.astype(np.int64))


def magnitudes_case(exponents, labels, n_classes=2):
    """Rows in one leaf whose weights are 2^-exponent."""
    n = len(exponents)
    block = Block(
        BinnedRows(0, np.zeros((n, 1), np.uint8), np.array(labels, np.int32), np.ones(n)),
        n_classes,
        "float64",
    )
    block.scores[np.arange(n), labels] = np.array(exponents) * math.log(2)
    block.start_tree(None)
    return Case(block, np.array([0]), 0.0)


@pytest.mark.parametrize("exponent", [0, 15, 30, 31, 32, 100, 479, 500, 511, 512, 600, 767, 800, 1007])
@pytest.mark.parametrize(("n_rows", "digits"), [(4, 7), (2**20, 5)])
def test_a_leaf_of_small_weights_keeps_its_digits(exponent, n_rows, digits):
    """Weights 4 : 2 : 1 in two classes, down to e^-700, 300 orders of magnitude, at the scale of so many rows."""
    case = magnitudes_case([exponent + 0.3, exponent + 1.3, exponent + 2.3], [0, 1, 0])
    C = ClassSums.normalised(sums(case, ClassSums(1.0), Scale.fine(0.0, n_rows).bits))[0]
    assert C[1] > 0
    assert C[0] / C[1] == pytest.approx(2.5, rel=10.0**-digits)


def test_weights_far_below_the_largest_of_their_leaf_do_not_disturb_it():
    case = magnitudes_case([0, 3, 200, 900], [0, 1, 1, 0])
    C = ClassSums.normalised(sums(case, ClassSums(1.0), 58))[0]
    assert C[0] / C[1] == pytest.approx(8.0, rel=1e-12)


# Risk and errors over all rows.


@pytest.mark.parametrize("weighting", [MarginWeights(0.5), ResponseWeights(0.25)], ids=["margin", "response"])
def test_risk(case, weighting):
    block = case.block
    block.scores[::5] = 0.0  # ties: the first class wins
    expected, largest = np.zeros(1 + weighting.n_weight_sums, object), -np.inf
    for i in block.present.tolist():
        if isinstance(weighting, MarginWeights):
            window, w = 0, 0.0
            for e in case.e(i, weighting.s).tolist():
                w += e
            largest = max(largest, w)
        else:
            exponent = -weighting.s * float(block.scores[i, block.labels[i]]) - case.shift
            window = max(math.floor(-exponent / (WINDOW * math.log(2))), 0)
            w = float(exp(exponent + window * (WINDOW * math.log(2))))
            largest = max(largest, exponent)
        expected[1 + window] += times(block.weights[i], np.rint(w * 2.0**40))
        expected[0] += round(float(block.weights[i]) * UNIT) * (np.argmax(block.scores[i]) != block.labels[i])
    out, found = np.zeros(len(expected), np.int64), np.full(1, -np.inf)
    weighting.risk(block, case.scale(40), UNIT, out, found)
    assert out.tolist() == expected.tolist()
    assert found[0] == largest


@pytest.mark.parametrize("scale", [Scale(9.0, 40), Scale(4.0, 59)], ids=["coarse", "fine"])
@pytest.mark.parametrize("weighting", [MarginWeights(0.5), ResponseWeights(0.25)], ids=["margin", "response"])
def test_a_whole_weight_is_the_row_so_many_times(weighting, scale):
    """Also where the product has more digits than a float."""
    weights = np.array([0, 1, 2, 3, 1, 7] * 5)
    rng = np.random.default_rng(0)
    labels, F = rng.integers(0, 4, 30).astype(np.int32), rng.normal(size=(30, 4))

    def answer(labels, weights, F):
        block = Block(BinnedRows(0, np.zeros((len(labels), 1), np.uint8), labels, weights), 4, "float64")
        block.scores[:] = F
        block.start_tree(None)
        out, largest = np.zeros(1 + weighting.n_weight_sums, np.int64), np.full(1, -np.inf)
        weighting.risk(block, scale, UNIT, out, largest)
        reduction = ClassPairs(0.5) if isinstance(weighting, MarginWeights) else ClassSums(0.25)
        table = np.zeros(reduction.shape(1, 4), np.int64)
        reduction.add(block, np.array([0]), scale, table)
        return [*out.tolist(), *largest.tolist(), *table.ravel().tolist()]

    repeated = answer(np.repeat(labels, weights), np.ones(weights.sum()), np.repeat(F, weights, axis=0))
    assert answer(labels, weights.astype(float), F) == repeated
