"""Row statistics and their sums over leaves: each against loops over rows and classes."""

import math

import numpy as np
import pytest

from distboost.data.blocks import BinnedRows
from distboost.kernels import histogram
from distboost.kernels.histogram import RowAddresses, Target, tile_for
from distboost.kernels.response import WINDOW, WINDOWS
from distboost.rows.summands import add_histograms
from distboost.rows.sums import HISTOGRAM_BITS, Risk, Scale
from distboost.runtime.block import Block
from distboost.weights.margin import (
    ClassPairs,
    HitsAndMisses,
    LevelPairs,
    LineSides,
    MarginWeights,
    Residuals,
)
from distboost.weights.response import ClassSums, ClassWeights, ResponseWeights, add_windows, normalised
from tests.kernels.cases import SHAPES, UNIT, Case, case_name, case_of, exp, in_order, prepared, times

pytestmark = pytest.mark.pairwise


@pytest.fixture(params=SHAPES, ids=case_name)
def case(request):
    return case_of(*request.param)


# Statistics per row.


def naive_residuals(case, s, bits, unit, own=1.0):
    """V[i, k] = -e[i, k], V[i, y_i] = `own` of their sum; then 1 for the row; then the row's own weight."""
    block, K = case.block, case.block.n_classes
    out = np.zeros((block.n_rows, K + 1 + (unit > 0)), object)
    for i in block.order.tolist():
        e = np.rint(case.e(i, s) * 2.0**bits)
        q = [times(block.weights[i], x) for x in e]
        out[i, :K] = [-x for x in q]
        out[i, block.labels[i]] = sum(q) if own == 1.0 else times(block.weights[i], round(own * in_order(e)))
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
@pytest.mark.parametrize(("wide", "bits"), [(False, 22), (True, 22), (True, 50)])
def test_residuals(case, unit, wide, bits):
    out = prepared(case, Residuals(MarginWeights(0.5), wide=wide), bits, unit)
    expected = naive_residuals(case, 0.5, bits, unit)
    assert out.dtype == (np.int64 if wide else np.int32)
    np.testing.assert_array_equal(out[:, : expected.shape[1]], expected)
    assert not out[:, expected.shape[1] :].any()
    assert not out[:, : case.block.n_classes].sum(axis=1).any()  # a row's residuals sum to 0


@pytest.mark.parametrize("unit", [0.0, UNIT])
def test_a_vector_has_room_for_its_sums_the_count_and_the_weight(unit):
    """In whole groups of eight numbers, and in no more of them than it takes."""
    for n_classes in range(2, 26):
        rows = BinnedRows(0, np.zeros((3, 1), np.uint8), np.zeros(3, np.int32), np.ones(3))
        block = Block(rows, n_classes, n_classes, score_dtype="float64")
        for wide, dtype in ((False, np.int32), (True, np.int64)):
            found = Residuals(MarginWeights(0.5), wide=wide).buffer(block, unit)
            assert (len(found), found.dtype) == (3, dtype)
            needed = n_classes + 1 + (unit > 0)
            assert found.shape[1] in range(needed, needed + 8)
            assert found.shape[1] % 8 == 0


@pytest.mark.parametrize("own", [0.0, 0.3, 1 - 2.0**-30])
@pytest.mark.parametrize(("wide", "bits"), [(False, 22), (True, 50)])
def test_residuals_with_a_part_of_the_own_class(case, own, wide, bits):
    statistic = Residuals(MarginWeights(1.0), own, wide)
    out = prepared(case, statistic, bits, UNIT)
    expected = naive_residuals(case, 1.0, bits, UNIT, own)
    np.testing.assert_array_equal(out[:, : expected.shape[1]], expected)
    # The total has nothing of `own`: it is that of all rows' e.
    whole = naive_residuals(case, 1.0, bits, 0.0)[:, :-1]
    block = case.block
    total = statistic.prepare(block, block.order, Scale(case.shift, bits), UNIT)
    assert list(total) == [whole[whole > 0].sum()]


def test_response_weights(case):
    ClassWeights(ResponseWeights(0.25)).prepare(case.block, case.block.order, case.scale(45), 0.0)
    np.testing.assert_array_equal(case.block.buffers["class statistics"], naive_responses(case, 0.25, 45))


@pytest.mark.parametrize("wide", [False, True])
def test_a_residual_of_the_heaviest_row_fits_its_type(wide):
    """The largest weight and the finest scale: V reaches 2^30 and no further; 2^61 if it is wide."""
    n_classes = 65
    rows = BinnedRows(0, np.zeros((1, 1), np.uint8), np.zeros(1, np.int32), np.array([256.0]))
    block = Block(rows, n_classes, n_classes, score_dtype="float64")
    weighting = MarginWeights(0.5)
    scale = Scale.fine(weighting.initial_shifts(n_classes)[0], 256.0)
    if not wide:
        scale = Scale(scale.shift, HISTOGRAM_BITS)
    statistic = Residuals(weighting, wide=wide)
    statistic.prepare(block, np.zeros(1, np.int32), scale, UNIT)
    out = statistic.buffer(block, UNIT)[0]
    V = out[:n_classes]
    assert V[0] == (2**61 if wide else 2**30)
    assert V.sum() == 0
    assert out[n_classes + 1] == 256 * UNIT


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


STATISTICS = {
    "dense": Residuals(MarginWeights(0.5)),
    "wide": Residuals(MarginWeights(0.5), wide=True),
    "by class": ClassWeights(ResponseWeights(0.25)),
}


@pytest.mark.parametrize("unit", [0.0, UNIT])
@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=STATISTICS)
def test_histogram(case, statistic, unit):
    block = case.block
    scale = case.scale(40 if statistic.wide else 22)
    statistic.prepare(block, block.order, scale, unit)
    offsets = np.array([0, 6, 12, 18])
    features, slots, nodes = np.array([0, 2]), np.array([4, 1, 2]), np.array([1, 2, 3])
    width = -(-(block.n_classes + 1 + (unit > 0)) // 8) * 8
    pool = np.random.default_rng(0).integers(-(2**40), 2**40, (5, 18, width))  # what is there is added to
    if "class statistics" in block.buffers:
        values = class_channels(case, block.buffers["class statistics"], unit, width)
    else:
        values = statistic.buffer(block, unit)
    expected = naive_histogram(case, values, features, offsets, slots, nodes, pool)
    summands = statistic.summands(block, block.spans[nodes], scale, unit)
    add_histograms([summands], Target(features, offsets, slots, pool, False), unit)
    np.testing.assert_array_equal(pool, expected)


@pytest.mark.parametrize(("dtype", "high", "low"), [("i4", 2**30, -(2**31)), ("i8", 2**56, -(2**57) + 1)])
def test_histogram_sums_do_not_overflow(dtype, high, low):
    """More in one bin than 32 bits hold, of both signs."""
    n = 64
    statistics = np.zeros((n, 8), dtype)
    statistics[:, 0], statistics[:, 7] = high, low
    pool = np.zeros((1, 2, 8), np.int64)
    one = np.array([0])
    start, stop = np.array([[0], [n]], np.int32)
    histogram.dense_histogram(
        np.ones((n, 1), np.uint8), np.arange(n, dtype=np.int32), start, stop, statistics, one, np.array([0, 2]), one, pool
    )  # fmt: skip
    assert pool[0, 1, [0, 7]].tolist() == [n * high, n * low]
    assert not pool[0, 0].any()


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("tile_rows", [1, 3, 100])
def test_narrow_histogram(case, tile_rows, fresh):
    """By way of tiles, and with `fresh` in place of what is there."""
    block = case.block
    statistics = np.random.default_rng(1).integers(-(2**18), 2**18, (block.n_rows, 16)).astype(np.int32)
    offsets = np.array([0, 6, 12, 18])
    features, slots, nodes = np.array([0, 2]), np.array([4, 1, 2]), np.array([1, 2, 3])
    pool = np.random.default_rng(0).integers(-(2**40), 2**40, (5, 18, 16))
    target = Target(features, offsets, slots, pool, fresh)
    expected = pool.copy()
    if fresh:
        expected[np.ix_(slots, [*range(6), *range(12, 18)])] = 0
    expected = naive_histogram(case, statistics, features, offsets, slots, nodes, expected)
    start, stop = np.ascontiguousarray(block.spans[nodes].T)
    tile = tile_for(target)
    rows = RowAddresses.of([(block.bins, block.order, statistics)])
    spans = start[None], stop[None]
    histogram.narrow_histogram(
        rows, *spans, tile_rows, features, np.zeros(0, np.int64), offsets, fresh, tile, slots, pool
    )
    np.testing.assert_array_equal(pool, expected)
    assert tile.shape == (12, 16)
    assert tile.ctypes.data % 64 == 0
    assert not tile.any()


@pytest.mark.parametrize("tile_rows", [1000, 2500])
def test_narrow_histogram_of_several_tiles(tile_rows):
    """More features than fit in one, and more rows than stay in the cache."""
    n, n_features, width = 3000, 40, 16
    assert 4 * width * 256 * n_features > histogram.TILE_BYTES
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 256, (n, n_features)).astype(np.uint8)
    statistics = rng.integers(-(2**18), 2**18, (n, width)).astype(np.int32)
    features, offsets, one = np.arange(n_features), np.arange(n_features + 1) * 256, np.zeros(1, np.int64)
    expected = np.zeros((1, 256 * n_features, width), np.int64)
    for d in features:
        np.add.at(expected[0], offsets[d] + bins[:, d].astype(np.int64), statistics)
    target = Target(features, offsets, one, np.zeros_like(expected), True)
    order = rng.permutation(n).astype(np.int32)
    rows = RowAddresses.of([(bins, order, statistics)])
    spans, tile = (np.zeros((1, 1), np.int32), np.full((1, 1), n, np.int32)), tile_for(target)
    histogram.narrow_histogram(
        rows, *spans, tile_rows, features, np.zeros(0, np.int64), offsets, True, tile, one, target.pool
    )
    np.testing.assert_array_equal(target.pool, expected)
    assert not tile.any()


@pytest.mark.parametrize("weight", [0.9, 1.0, 7.0])
@pytest.mark.parametrize("bits", [18, 22])
def test_tiles_do_not_overflow(bits, weight):
    """Rows as heavy as they may be, all in one bin, as many as fill several tiles."""
    n, n_classes = 20_000, 5
    ones = np.full(n, weight)
    block = Block(
        BinnedRows(0, np.zeros((n, 1), np.uint8), np.zeros(n, np.int32), ones),
        n_classes,
        n_classes,
        score_dtype="float64",
    )
    statistic = Residuals(MarginWeights(0.5))
    scale = Scale(statistic.weighting.initial_shifts(n_classes)[0], bits)
    statistic.prepare(block, block.present, scale, UNIT)
    out = statistic.buffer(block, UNIT)
    assert np.abs(out).max() <= statistic.largest(block, scale, UNIT)
    pool = np.empty((1, 2, out.shape[1]), np.int64)
    target = Target(np.array([0]), np.array([0, 2]), np.array([0]), pool, True)
    block.start_tree(None)
    add_histograms([statistic.summands(block, block.spans[:1], scale, UNIT)], target, UNIT)
    np.testing.assert_array_equal(pool[0, 0], out.sum(axis=0, dtype=np.int64))
    assert pool[0, 0, 0] > 2**31


def test_clear():
    pool = np.random.default_rng(0).integers(1, 9, (4, 10, 8))
    expected = pool.copy()
    expected[np.ix_([3, 1], [0, 1, 2, 7, 8, 9])] = 0
    histogram.clear(np.array([0, 2]), np.array([0, 3, 7, 10]), np.array([3, 1]), pool)
    np.testing.assert_array_equal(pool, expected)


# Sums over the rows of each leaf.


def margin_terms(case, s, bits):
    """(leaf, row, class k, e[i, k] as a whole number) of all leaves, rows and classes."""
    for leaf, i in case.in_leaves():
        for k, q in enumerate(np.rint(case.e(i, s) * 2.0**bits)):
            yield leaf, i, k, q


@pytest.mark.parametrize("groups", [None, [0, 1, 0], [1, 1, 1], [2, 0, 1]], ids=str)
def test_class_pairs(case, groups):
    """By leaf, or by groups of leaves; a group that has no leaf is 0."""
    groups = None if groups is None else np.array(groups)
    n_groups = 3 if groups is None else groups.max() + 1
    expected = np.zeros((n_groups, case.block.n_classes, case.block.n_classes), object)
    for leaf, i, k, q in margin_terms(case, 0.5, 40):
        group = leaf if groups is None else groups[leaf]
        expected[group, case.block.labels[i], k] += times(case.block.weights[i], q)
    found = case.sums(ClassPairs(MarginWeights(0.5), groups))
    np.testing.assert_array_equal(found, expected.astype(np.int64))


def test_level_pairs(case):
    """Those of classes, added up by the levels of a code."""
    levels = np.arange(case.block.n_classes) % 2
    pairs = case.sums(ClassPairs(MarginWeights(0.5)))
    expected = np.zeros((len(pairs), 2, 2), np.int64)
    for a, b in np.ndindex(pairs.shape[1:]):
        expected[:, levels[a], levels[b]] += pairs[:, a, b]
    np.testing.assert_array_equal(case.sums(LevelPairs(MarginWeights(0.5), levels)), expected)


def test_hits_and_misses(case):
    expected = np.zeros((3, 2, case.block.n_classes), object)
    for leaf, i, k, q in margin_terms(case, 0.5, 40):
        expected[leaf, 0, case.block.labels[i]] += times(case.block.weights[i], q)
        expected[leaf, 1, k] += times(case.block.weights[i], q)
    found = case.sums(HitsAndMisses(MarginWeights(0.5)))
    np.testing.assert_array_equal(found, expected.astype(np.int64))


@pytest.mark.parametrize("step", [0.0, 0.7, 30.0])
def test_line_sides(case, step):
    """To the unit per row that rounding a sum taken in another order may cost."""
    V, s, bits = np.random.default_rng(1).normal(size=(3, case.block.n_classes)), 0.5, 40
    V[0, 1] = V[0, 0]  # two classes that the step does not part
    D = (V.max(axis=1) - V.min(axis=1)).max()
    expected, slack = np.zeros(5), 0.0
    for leaf, i in case.in_leaves():
        d = (V[leaf] - V[leaf, case.block.labels[i]]) / D
        e = np.rint(case.e(i, s) * 2.0**bits)
        right, wrong = d < 0, d > 0
        falling = e * np.exp(s * step * D * d) * right
        rising = e * np.exp(s * step * D * (d - 1)) * wrong
        sides = [falling * -d, falling * d * d, rising * d, rising * d * d, e * (d == 0)]
        expected += case.block.weights[i] * np.array([side.sum() for side in sides])
        slack += case.block.weights[i] + 1
    found = case.sums(LineSides(MarginWeights(s), V, step), bits)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=slack)


def test_class_sums(case):
    """Each row's weight is in the window of its magnitude: by powers of 2^-WINDOW."""
    expected = np.zeros((3, WINDOWS, case.block.n_classes), object)
    for leaf, i in case.in_leaves():
        y = case.block.labels[i]
        exponent = -0.25 * float(case.block.scores[i, y]) - case.shift
        window = max(math.floor(-exponent / (WINDOW * math.log(2))), 0)
        w = float(exp(exponent + window * (WINDOW * math.log(2))))
        expected[leaf, window, y] += times(case.block.weights[i], np.rint(w * 2.0**45))
    found = case.sums(ClassSums(ResponseWeights(0.25)), 45)
    np.testing.assert_array_equal(found, expected.astype(np.int64))
    # Added up, or each leaf for itself, they are the weights but for a factor.
    weights = np.zeros((3, case.block.n_classes))
    for leaf, i in case.in_leaves():
        weights[leaf, case.block.labels[i]] += case.block.weights[i] * case.w(i, 0.25)
    np.testing.assert_allclose(add_windows(found) / 2.0**45, weights, rtol=1e-8)
    for mine, theirs in zip(normalised(found), weights, strict=True):
        np.testing.assert_allclose(mine * theirs.sum(), theirs * mine.sum(), rtol=1e-8)


def magnitudes_case(exponents, labels, n_classes=2):
    """Rows in one leaf whose weights are 2^-exponent."""
    n = len(exponents)
    block = Block(
        BinnedRows(0, np.zeros((n, 1), np.uint8), np.array(labels, np.int32), np.ones(n)),
        n_classes,
        n_classes,
        score_dtype="float64",
    )
    block.scores[np.arange(n), labels] = np.array(exponents) * math.log(2)
    block.start_tree(None)
    return Case(block, np.array([0]), 0.0)


@pytest.mark.parametrize("exponent", [0, 15, 30, 31, 32, 100, 479, 500, 511, 512, 600, 767, 800, 1007])
@pytest.mark.parametrize(("n_rows", "digits"), [(4, 7), (2**20, 5)])
def test_a_leaf_of_small_weights_keeps_its_digits(exponent, n_rows, digits):
    """Weights 4 : 2 : 1 in two classes, down to e^-700, 300 orders of magnitude, at the scale of so many rows."""
    case = magnitudes_case([exponent + 0.3, exponent + 1.3, exponent + 2.3], [0, 1, 0])
    C = normalised(case.sums(ClassSums(ResponseWeights(1.0)), Scale.fine(0.0, n_rows).bits))[0]
    assert C[1] > 0
    assert C[0] / C[1] == pytest.approx(2.5, rel=10.0**-digits)


def test_weights_far_below_the_largest_of_their_leaf_do_not_disturb_it():
    case = magnitudes_case([0, 3, 200, 900], [0, 1, 1, 0])
    C = normalised(case.sums(ClassSums(ResponseWeights(1.0)), 58))[0]
    assert C[0] / C[1] == pytest.approx(8.0, rel=1e-12)


# Risk and errors over all rows.


@pytest.mark.parametrize("weighting", [MarginWeights(0.5), ResponseWeights(0.25)], ids=["margin", "response"])
def test_risk(case, weighting):
    block = case.block
    block.scores[::5] = 0.0  # ties: the first class wins
    expected, largest = np.zeros(1 + weighting.n_sums(block.n_classes), object), -np.inf
    for i in block.present.tolist():
        if isinstance(weighting, MarginWeights):
            window, w = 0, in_order(case.e(i, weighting.s))
            largest = max(largest, w)
        else:
            exponent = -weighting.s * float(block.scores[i, block.labels[i]]) - case.shift
            window = max(math.floor(-exponent / (WINDOW * math.log(2))), 0)
            w = float(exp(exponent + window * (WINDOW * math.log(2))))
            largest = max(largest, exponent)
        expected[1 + window] += times(block.weights[i], np.rint(w * 2.0**40))
        expected[0] += round(float(block.weights[i]) * UNIT) * (np.argmax(block.scores[i]) != block.labels[i])
    out, found = np.zeros(len(expected), np.int64), np.full(1, -np.inf)
    Risk(weighting, np.array([case.shift]), 2.0**40, UNIT, out, found).add(block)
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
        block = Block(
            BinnedRows(0, np.zeros((len(labels), 1), np.uint8), labels, weights), 4, 4, score_dtype="float64"
        )
        block.scores[:] = F
        block.start_tree(None)
        out, largest = np.zeros(1 + weighting.n_sums(4), np.int64), np.full(1, -np.inf)
        Risk(weighting, np.array([scale.shift]), scale.factor, UNIT, out, largest).add(block)
        reduction = (ClassPairs if isinstance(weighting, MarginWeights) else ClassSums)(weighting)
        table = np.zeros(reduction.shape(1, 4), np.int64)
        reduction.add(block, np.array([0]), scale, table)
        return [*out.tolist(), *largest.tolist(), *table.ravel().tolist()]

    repeated = answer(np.repeat(labels, weights), np.ones(weights.sum()), np.repeat(F, weights, axis=0))
    assert answer(labels, weights.astype(float), F) == repeated
