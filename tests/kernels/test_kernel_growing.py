"""The pieces of `kernels.growing` and the calls by address; whole trees: tests/weak/test_weak_whole_trees.py."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from distboost.kernels.by_address import address_of, caller, kinds_of
from distboost.kernels.growing import split_blocks
from distboost.kernels.histogram import (
    RowAddresses,
    class_histogram_of_blocks,
    compact_histogram,
    narrow_histogram,
    wide_histogram,
)


def two_blocks(rng, sizes, dtype):
    """Blocks of rows with their bins, order and statistics."""
    return [
        (
            rng.integers(0, 5, (n, 3)).astype(np.uint8),
            rng.permutation(n).astype(np.int32),
            rng.integers(-(2**40), 2**40, (n, 8)).astype(dtype),
        )
        for n in sizes
    ]


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("by_class", [True, False])
def test_histograms_of_blocks(by_class, fresh):
    rng = np.random.default_rng(0)
    blocks = two_blocks(rng, (30, 7), np.int64)
    classes = [(rng.integers(0, 4, n).astype(np.int32), rng.integers(1, 9, n) / 2) for n in (30, 7)]
    rows = RowAddresses.of(blocks)
    if by_class:  # a number in the channel of the class, then the row's 1 and its weight, in halves
        numbers = [np.ascontiguousarray(statistics[:, :1]) for _, _, statistics in blocks]
        for (_, _, statistics), (labels, weights) in zip(blocks, classes, strict=True):
            statistics[:, 4:] = 0
            statistics[:, :4] = np.where(labels[:, None] == np.arange(4), statistics[:, :1], 0)
            statistics[:, 4], statistics[:, 5] = 1, 2 * weights
        own = [(*block[:2], some) for block, some in zip(blocks, numbers, strict=True)]
        rows = RowAddresses.of(own, classes, 2.0, 4)
    features, offsets, slots, none = (
        np.array([0, 2]),
        np.array([0, 5, 10, 15]),
        np.array([2, 0]),
        np.zeros(0, np.int64),
    )
    start, stop = np.array([[3, 10], [0, 4]], np.int32), np.array([[10, 30], [4, 4]], np.int32)
    pool = rng.integers(-(2**40), 2**40, (3, 15, 8))
    expected = pool.copy()
    if fresh:
        expected[np.ix_(slots, [*range(5), *range(10, 15)])] = 0
    for (bins, order, statistics), begin, end in zip(blocks, start, stop, strict=True):
        for m, slot in enumerate(slots):
            for i in order[begin[m] : end[m]]:
                for d in features:
                    expected[slot, offsets[d] + bins[i, d]] += statistics[i]
    tile = np.zeros((0, 8), np.int32)
    kernel = class_histogram_of_blocks if by_class else wide_histogram
    kernel(rows, start, stop, 0, features, none, offsets, fresh, tile, slots, pool)
    np.testing.assert_array_equal(pool, expected)


def test_a_compact_histogram_has_the_bins_with_rows_and_those_of_missing_values():
    rng = np.random.default_rng(2)
    blocks = two_blocks(rng, (30, 7), np.int32)
    for _, _, statistics in blocks:
        statistics %= 2**20
        statistics[:, 4:] = [1, 0, 0, 0]
    rows, features, offsets = RowAddresses.of(blocks), np.array([0, 2]), np.array([0, 6, 12, 18])
    start, stop = np.array([[3], [5]], np.int32), np.array([[9], [7]], np.int32)
    tile, whole = np.zeros((12, 8), np.int32), np.zeros((1, 18, 8), np.int64)
    none, slot = np.zeros(0, np.int64), np.zeros(1, np.int64)
    narrow_histogram(rows, start, stop, 128, features, none, offsets, True, tile, slot, whole)
    ends, occupied = np.full(4, -1), np.full(18, -1)
    found = rng.integers(0, 9, (18, 8))
    compact_histogram(rows, start, stop, features, offsets, tile, 4, ends, occupied, found)
    assert not tile.any()
    for d in features:
        wanted = [*np.flatnonzero(whole[0, offsets[d] : offsets[d] + 5, 4]), 5]
        places = slice(ends[d], ends[d + 1])
        assert occupied[places].tolist() == wanted
        np.testing.assert_array_equal(found[places], whole[0, offsets[d] + wanted])
    assert ends[3] < 12  # some bin is empty


def test_split_blocks():
    rng = np.random.default_rng(1)
    blocks = two_blocks(rng, (20, 9), np.int64)
    spans = np.zeros((2, 3, 2), np.int32)
    spans[:, 0, 1] = 20, 9
    before = [order.copy() for _, order, _ in blocks]
    one, sets = np.ones(1, np.int64), np.zeros((1, 0), np.uint64)
    split_blocks(
        RowAddresses.of(blocks), np.array([4, 4, 4]), spans, one - 1, one, 2 * one, np.array([True]), one, 2 * one,
        sets, np.empty(20, np.int32),
    )  # fmt: skip
    for (bins, order, _), was, own in zip(blocks, before, spans, strict=True):
        goes_left = np.isin(bins[was, 1], [0, 1, 2, 4])
        np.testing.assert_array_equal(order, np.concatenate([was[goes_left], was[~goes_left]]))
        n, n_left = len(was), goes_left.sum()
        np.testing.assert_array_equal(own, [[0, n], [0, n_left], [n_left, n]])


@njit
def double(x, factor):
    for i in range(x.shape[0]):
        x[i] *= factor


@njit
def fail(x, factor):
    raise ValueError("no")


def test_code_is_called_by_its_address():
    x = np.arange(3.0)
    call = caller(kinds_of(x, 1.0))

    @njit
    def outer(address, x, factor):
        call(address, (x, factor))

    outer(address_of(double, kinds_of(x, 1.0)), x, 2)  # an integer becomes a float, as in other calls
    np.testing.assert_array_equal(x, [0, 2, 4])
    with pytest.raises(ValueError, match="no"):
        outer(address_of(fail, kinds_of(x, 1.0)), x, 2.0)
    with pytest.raises(TypingError, match="is not"):
        outer(address_of(double, kinds_of(x, 1.0)), x.astype(int), 2.0)
