"""Binary problems side by side: each kernel against loops over rows and columns."""

import numpy as np
import pytest

from distboost.kernels import codes
from distboost.kernels.elementary import tanh
from distboost.kernels.histogram import Target
from distboost.kernels.response import WINDOW
from distboost.rows.summands import add_histograms
from distboost.rows.sums import Risk, Scale
from distboost.weights.codes import (
    CodeSides,
    CodeWeights,
    ColumnSides,
    ColumnSums,
    all_pairs,
    exhaustive,
    one_against_all,
)
from distboost.weights.response import add_windows
from tests.kernels.cases import UNIT, WEIGHTS, case_of, exp, in_order, prepared, times

pytestmark = pytest.mark.pairwise

BITS = 45


def decoded(code):
    """With itself to decode by."""
    return CodeWeights(code, decode=code)


WEIGHTINGS = {
    "2 classes": CodeWeights(one_against_all(2)),
    "5 classes": CodeWeights(one_against_all(5)),
    "70 classes": CodeWeights(one_against_all(70)),
    "3 columns": decoded(exhaustive(3)),
    "7 columns": decoded(exhaustive(4)),
    "1 column": decoded(exhaustive(2)),
    "6 pairs": decoded(all_pairs(4)),
    "6 pairs' votes": CodeWeights(all_pairs(4), decode=all_pairs(4), votes=True),
}


@pytest.fixture(params=WEIGHTINGS.values(), ids=WEIGHTINGS)
def weighting(request):
    return request.param


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture(params=WEIGHTS)
def case(request, weighting, dtype):
    return case_of(30, len(weighting.code), dtype, request.param, n_scores=weighting.n_columns)


def w(case, weighting, i, shift):
    """w[i, c] = exp(-code[y_i, c] F[i, c] - shift), by the library's exponential."""
    code = weighting.code[case.block.labels[i]]
    return np.abs(code) * exp(-code * case.block.scores[i].astype(np.float64) - shift)


def naive_sides(case, weighting, bits):
    """(N, P) of every row as Python's integers."""
    C = weighting.n_columns
    out = np.zeros((case.block.n_rows, 2 * C), object)
    for i in case.block.order.tolist():
        for c, x in enumerate(np.rint(w(case, weighting, i, case.shift) * 2.0**bits)):
            positive = weighting.code[case.block.labels[i], c] > 0
            out[i, c + C * positive] = times(case.block.weights[i], x)
    return out.astype(np.int64)


def test_one_against_all():
    np.testing.assert_array_equal(one_against_all(3), [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])


@pytest.mark.parametrize("unit", [0.0, UNIT])
@pytest.mark.parametrize("bits", [BITS, 22])
def test_code_sides(case, weighting, unit, bits):
    out, n = prepared(case, CodeSides(weighting), bits, unit), 2 * weighting.n_columns
    np.testing.assert_array_equal(out[:, :n], naive_sides(case, weighting, bits))
    np.testing.assert_array_equal(out[case.block.order, n], 1)
    if unit:
        own = np.rint(case.block.weights[case.block.order] * unit)
        np.testing.assert_array_equal(out[case.block.order, n + 1], own)
    assert not out[:, n + 1 + (unit > 0) :].any()


def test_two_classes(case, weighting):
    block = case.block
    for column in range(weighting.n_columns):
        code = np.ascontiguousarray(weighting.code[:, column])
        out, sides = np.empty((block.n_rows, 2)), np.empty(block.n_rows, np.int32)
        codes.two_classes(block.scores, block.labels, code, column, out, sides)
        F = block.scores[:, column].astype(np.float64)
        taken = code[block.labels] != 0
        np.testing.assert_array_equal(out, np.where(taken[:, None], np.column_stack([-F, F]), codes.ABSENT))
        np.testing.assert_array_equal(sides, code[block.labels] > 0)
        own = out[np.arange(block.n_rows), sides]
        np.testing.assert_array_equal(own[taken], (code[block.labels] * F)[taken])


@pytest.mark.parametrize("unit", [0.0, UNIT])
def test_a_column_alone_is_its_part_of_all(case, weighting, unit):
    """Its histogram, and its sums by leaf, which are finer."""
    block = case.block
    offsets, features, slots, nodes = (
        np.array([0, 6, 12, 18]), np.array([0, 2]), np.array([1, 0, 2]), np.array([1, 2, 3]),
    )  # fmt: skip
    C, more = weighting.n_columns, 1 + (unit > 0)

    def histogram(statistic, n_channels):
        pool = np.zeros((3, 18, -(-n_channels // 8) * 8), np.int64)
        prepared(case, statistic, BITS, unit)
        summands = statistic.summands(block, block.spans[nodes], case.scale(BITS), unit)
        add_histograms([summands], Target(features, offsets, slots, pool, False), unit)
        return pool

    everything = histogram(CodeSides(weighting), 2 * C + more)
    sides, all_sums = naive_sides(case, weighting, BITS), np.zeros((3, 2 * C), np.int64)
    for leaf, i in case.in_leaves():
        all_sums[leaf] += sides[i]
    for column in range(0, C, 3):
        channels = [column, C + column, *range(2 * C, 2 * C + more)]
        alone = histogram(ColumnSides(weighting, column), 2 + more)
        np.testing.assert_array_equal(alone[:, :, : 2 + more], everything[:, :, channels])
        sums = add_windows(case.sums(ColumnSums(weighting, column), BITS))
        slack = 1 + block.weights.sum()
        np.testing.assert_allclose(sums, all_sums[:, [column, C + column]], rtol=1e-13, atol=slack)


def test_sums_of_a_column_keep_the_digits_of_small_weights():
    """A leaf whose weights are 2^-600 of the largest: 4 : 2 : 1 on the two sides."""
    weighting = CodeWeights(one_against_all(3))
    case = case_of(3, 3)
    case.block.labels[:] = [0, 1, 0]
    case.block.scores[:, 0] = (600 + np.array([0.3, 1.3, 2.3])) * np.log(2) * [1, -1, 1]
    case.block.start_tree(None)
    case = case._replace(leaves=np.array([0]))
    sums = case.sums(ColumnSums(weighting, 0), 58, shift=0.0)
    assert sums[0, : 600 // WINDOW].sum() == 0
    against, own = sums[0, 600 // WINDOW :].astype(float).T @ 2.0 ** (-WINDOW * np.arange(64 - 600 // WINDOW))
    assert own / against == pytest.approx(2.5, rel=1e-9)


def test_code_risk(case, weighting):
    block, C = case.block, weighting.n_columns
    block.scores[::4] = 0.0  # ties: the first class wins
    shifts = case.shift + np.linspace(0.0, 2.0, C)
    expected, largest = np.zeros(1 + C, object), np.full(C, -np.inf)
    for i in block.present.tolist():
        y, F = block.labels[i], block.scores[i].astype(np.float64)
        weights = w(case, weighting, i, shifts)
        largest = np.maximum(largest, weights)
        for c, x in enumerate(np.rint(weights * 2.0**40)):
            expected[1 + c] += times(block.weights[i], x)
        votes = tanh(F[None])[0] if weighting.votes else F
        G = F if weighting.decode is None else [in_order(row * votes) for row in weighting.decode]
        expected[0] += round(float(block.weights[i]) * UNIT) * int(np.argmax(G) != y)
    out, found = np.zeros(1 + C, np.int64), np.full(C, -np.inf)
    Risk(weighting, shifts, 2.0**40, UNIT, out, found).add(block)
    assert out.tolist() == expected.tolist()
    np.testing.assert_array_equal(found, largest)
    np.testing.assert_allclose(weighting.next_shifts(shifts, found), shifts + np.log(largest), rtol=1e-13)
    logs = weighting.log_totals(out[1:] / 2.0**40, shifts)
    expected_total = sum(block.weights[i] * w(case, weighting, i, 0.0) for i in block.present)
    slack = (30 + block.weights.sum()) * np.exp(shifts) * 2.0**-40
    assert (np.abs(np.exp(logs) - expected_total) <= slack + 1e-12 * expected_total).all()


def test_shifts_bound_what_a_round_sums(weighting):
    """Column by column: met by every row at first, and not exceeded after any update."""
    rng = np.random.default_rng(0)
    case = case_of(30, len(weighting.code), n_scores=weighting.n_columns)
    case.block.scores[:] = 0.0
    shifts = np.array(weighting.initial_shifts(len(weighting.code)))
    assert shifts.shape == (weighting.n_columns,)
    for factor in (1.0, 3.0, 30.0):
        found = np.full(len(shifts), -np.inf)
        out = np.zeros(1 + weighting.n_sums(len(weighting.code)), np.int64)
        Risk(weighting, shifts, 2.0**40, UNIT, out, found).add(case.block)
        if not case.block.scores.any():
            np.testing.assert_array_equal(found, 1.0)
        assert (found <= 1 + 1e-14).all()
        assert (found > 0).all()
        shifts = weighting.next_shifts(shifts, found)
        assert CodeSides(weighting).shift(shifts) == shifts.max()
        assert ColumnSides(weighting, 0).shift(shifts) == ColumnSums(weighting, 0).shift(shifts) == shifts[0]
        values = factor * rng.normal(size=(30, weighting.n_columns))
        case.block.scores += values
        shifts = shifts + weighting.growth(values)


@pytest.mark.parametrize("scale", [Scale(3.0, 40), Scale(3.0, 59)], ids=["coarse", "fine"])
def test_a_whole_weight_is_the_row_so_many_times(scale):
    weighting = decoded(exhaustive(4))
    case = case_of(30, 4, weights="whole", n_scores=7)
    block = case.block
    many = block.weights.astype(int)
    rows = np.repeat(np.arange(30), many)
    again = case_of(len(rows), 4, n_scores=7)
    again.block.scores[:], again.block.labels[:] = block.scores[rows], block.labels[rows]
    found = []
    for one in (case, again):
        one.block.start_tree(None)
        out, largest = np.zeros(8, np.int64), np.full(7, -np.inf)
        Risk(weighting, np.full(7, scale.shift), scale.factor, UNIT, out, largest).add(one.block)
        one = one._replace(leaves=np.array([0]))
        sides = prepared(one, CodeSides(weighting), scale.bits, 0.0, scale.shift)[one.block.order]
        sides[:, 14] = 0  # the number of rows
        sums = one.sums(ColumnSums(weighting, 2), scale.bits, scale.shift)
        found.append([*out.tolist(), *largest.tolist(), *sides.sum(axis=0).tolist(), *sums.ravel().tolist()])
    assert found[0] == found[1]
