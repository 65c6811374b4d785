"""Magnitudes, draws and divided statistics, and rows sorted by their leaves."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from distboost.kernels import random, sampling
from distboost.rows.messages import RowCounts
from distboost.rows.sampling import sample_bits, threshold
from distboost.rows.sums import Risk, narrow_bits
from distboost.weights.margin import EXPONENTIAL, LOGISTIC, SOFTMAX, MarginWeights, Residuals
from distboost.weights.sampled import MAGNITUDES, Magnitudes
from tests.kernels.cases import UNIT, case_of

NUMBERS = st.lists(
    st.one_of(st.integers(0, 40), st.integers(0, 2**30), st.integers(0, 2**60)), min_size=1, max_size=60
).map(lambda numbers: [int(float(m)) for m in numbers])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_largest_entry_of_each_row_in_use(dtype):
    statistics = np.random.default_rng(0).integers(-(2**30), 2**30, (9, 8)).astype(dtype)
    order = np.array([7, 2, 3], np.int32)
    out = np.full(9, -1.0)
    sampling.largest_entries(statistics, order, 5, out)
    expected = [max(map(abs, row[:5].tolist())) if i in order else -1 for i, row in enumerate(statistics)]
    assert out.tolist() == expected


def tallied(magnitudes):
    out = np.zeros((sampling.N_BINS, 2), np.int64)
    sampling.tally(np.array(magnitudes, np.float64), np.arange(len(magnitudes), dtype=np.int32), out)
    return out


@given(NUMBERS)
@example([0, 1, 2])
def test_magnitudes_are_counted_by_exponent_and_mantissa(magnitudes):
    expected = np.zeros((sampling.N_BINS, 2), object)
    for m in filter(None, magnitudes):
        mantissa, exponent = math.frexp(m)  # m = mantissa 2^exponent, 1/2 <= mantissa < 1
        b = (exponent - 1) * 16 + math.floor((mantissa * 2 - 1) * 16)
        expected[b] += np.array([1, m], object)
    assert tallied(magnitudes).tolist() == expected.tolist()


@given(NUMBERS, st.floats(0.01, 1))
def test_threshold(magnitudes, fraction):
    """The probabilities sum to the wanted number of rows, or to less: by a sixteenth of the rows around the threshold at most."""
    wanted = fraction * len(magnitudes)
    T = threshold(tallied(magnitudes), wanted)
    heavy = [m for m in magnitudes if m]
    if len(heavy) <= wanted:
        assert T == 1
        return
    expected = sum(min(Fraction(1), Fraction(m, T)) for m in heavy)
    assert expected <= Fraction(wanted) * (1 + Fraction(1, 2**50))
    around = sum(1 for m in heavy if T * 7 / 8 <= m <= T * 9 / 8)
    assert expected >= Fraction(wanted) * (T - 1) / T - Fraction(around, 16) - Fraction(1, 2**30)
    assert max(heavy) / fraction + 1 >= T


@given(NUMBERS, st.floats(0.001, 1), st.booleans(), st.booleans())
@example([5] * 10, 0.7, False, False)
def test_divided_statistics_fit(magnitudes, fraction, wide, weighted):
    """Statistics that fill the bits they are prepared with fit the bits of the histograms once they are divided."""
    n = 10_000
    counts = RowCounts(n, n * 2**22 * (100 if weighted else 1), weighted)
    full = 61 - math.ceil(math.log2(counts.weight)) if wide else narrow_bits(counts.weight)
    bits = sample_bits(full, wide, counts, fraction)
    largest = 2 ** (bits.prepared + (8 if weighted else 0))
    scaled = np.array([m * largest // max(*magnitudes, 1) for m in magnitudes], np.int64)
    T = min(threshold(tallied(scaled), fraction * len(scaled)), bits.largest)
    statistics = np.repeat(scaled[:, None], 8, axis=1)
    # Entries that exceed the magnitude, by rounding, are cut off.
    statistics[:, 1] += 40
    rows = np.flatnonzero(scaled).astype(np.int32)
    sampling.divide(statistics, rows, 8, scaled.astype(float), float(T), bits.unit)
    statistics = statistics[rows]
    if wide:
        assert n * int(statistics.max(initial=0)) <= 2**61 * (1 + 2**-40)
    else:
        assert statistics.max(initial=0) <= 2**full * (256 if weighted else 1)
        assert largest <= 2**30


@pytest.mark.parametrize("first", [0, 12345])
def test_draw(first):
    rng = np.random.default_rng(1)
    magnitudes = rng.integers(0, 50, 400).astype(float)
    rows = np.flatnonzero(rng.random(400) < 0.8).astype(np.int32)
    out = np.empty(len(rows), np.int32)
    key = random.key(3, random.ROW_SUBSAMPLE, 2)
    n = sampling.draw(key, first, magnitudes, 70.0, rows, out)
    u = random.uniforms(key, first, 400)
    assert out[:n].tolist() == [i for i in rows if u[i] * 70 < magnitudes[i]]
    assert 0 < n < len(rows)
    everyone = sampling.draw(key, first, magnitudes, 1.0, rows, out)
    assert out[:everyone].tolist() == [i for i in rows if magnitudes[i]]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_divide(dtype):
    magnitudes = np.array([10.0, 3, 5, 100])
    statistics = np.array([[10, -10, 3, 1], [4, -1, 2, 1], [5, 0, -5, 1], [110, -60, -40, 1]], dtype)
    sampling.divide(statistics, np.array([0, 1, 3], np.int32), 3, magnitudes, 20.0, 0.5)
    expected = [[10, -10, 3, 1], [10, round(-20 / 6), round(40 / 6), 1], [5, 0, -5, 1], [50, -30, -20, 1]]
    assert statistics.tolist() == expected


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 9))
def test_rows_sorted_by_leaf(seed, n, n_leaves):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(60)[:n]).astype(np.int32)
    leaf = rng.integers(0, n_leaves, n).astype(np.int32)
    order, spans = np.full(n, -1, np.int32), np.full((n_leaves, 2), -1, np.int32)
    sampling.sort_by_leaf(rows, leaf, order, spans)
    for number in range(n_leaves):
        assert order[slice(*spans[number])].tolist() == rows[leaf == number].tolist()


@pytest.mark.parametrize("link", [EXPONENTIAL, LOGISTIC, SOFTMAX])
@pytest.mark.parametrize("weights", ["ones", "fractions"])
def test_magnitudes_of_residuals(link, weights):
    """That of the row's own class, but for the rounding of each weight; those that the risk finds are the same."""
    case = case_of(50, 7, "float64", weights)
    block, weighting = case.block, MarginWeights(0.7, link)
    statistic, scale = Residuals(weighting, wide=True), case.scale(30)
    rows = block.present
    found = np.zeros(block.n_rows)
    statistic.magnitudes(block, rows, scale, 0.0, found)
    statistic.prepare(block, rows, scale, 0.0)
    own = block.kept("statistics")[rows, block.labels[rows]]
    np.testing.assert_allclose(found[rows], own, atol=4 * max(block.weights.max(), 1))
    n_shifts = len(weighting.initial_shifts(7))
    out, largest = np.zeros(2, np.int64), np.zeros(n_shifts)
    shifts = np.full(n_shifts, case.shift)
    risk = Risk(weighting, shifts, 2.0**30, UNIT, out, largest)
    Magnitudes(statistic).prepare_with_risk(risk, block, rows, scale, 0.0)
    assert block.kept(MAGNITUDES).tolist() == found.tolist()
    alone, most = np.zeros(2, np.int64), np.zeros(n_shifts)
    Risk(weighting, shifts, 2.0**30, UNIT, alone, most).add(block)
    assert (out.tolist(), largest.tolist()) == (alone.tolist(), most.tolist())
