"""Rows parted between nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distboost.kernels import partition
from distboost.kernels.categories import SET_WORDS


def random_set(rng):
    return rng.integers(0, 2**64, SET_WORDS, np.uint64)


def has_bins(bits, bins):
    """Whether a set of 256 bits has each bin."""
    whole = sum(int(word) << 64 * n for n, word in enumerate(bits))
    return np.array([whole >> int(b) & 1 for b in bins], bool)


def naive_split(bins, missing_bin, order, spans, splits):
    """Each split node's rows: first those that go left, then the others, both in their old order."""
    order, spans = order.copy(), spans.copy()
    for node, d, split_bin, missing_left, left, right, bits in splits:
        a, b = spans[node]
        rows = order[a:b].copy()
        goes_left = np.where(bins[rows, d] == missing_bin[d], missing_left, bins[rows, d] <= split_bin)
        if split_bin < 0:
            goes_left = has_bins(bits, bins[rows, d])
        order[a:b] = np.concatenate([rows[goes_left], rows[~goes_left]])
        middle = a + int(goes_left.sum())
        spans[left], spans[right] = (a, middle), (middle, b)
    return order, spans


def split(bins, missing_bin, order, spans, splits):
    order, spans = order.copy(), spans.copy()
    columns = [np.array(c) for c in zip(*splits, strict=True)]
    partition.split_spans(bins, missing_bin, order, spans, *columns, np.full(len(order), -1, np.int32))
    return order, spans


@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(1, 255))
def test_split_spans(seed, n, n_bins):
    rng = np.random.default_rng(seed)
    missing_bin = np.array([n_bins, 1])
    bins = np.column_stack([rng.integers(0, n_bins + 1, n), rng.integers(0, 2, n)]).astype(np.uint8)
    order = rng.permutation(n).astype(np.int32)
    spans = np.zeros((12, 2), np.int32)
    spans[0] = (0, n)

    # Two levels in two calls: a root, then both children (one of them may be empty) in one.
    def random_split(node, left):
        """By a threshold, or by a set of bins."""
        split_bin = int(rng.integers(-1, n_bins))
        return node, 0, split_bin, bool(rng.integers(2)), left, left + 1, random_set(rng)

    for splits in ([random_split(0, 1)], [(1, 1, 0, True, 3, 4, random_set(rng)), random_split(2, 5)]):
        expected = naive_split(bins, missing_bin, order, spans, splits)
        order, spans = split(bins, missing_bin, order, spans, splits)
        np.testing.assert_array_equal(order, expected[0])
        np.testing.assert_array_equal(spans, expected[1])


@pytest.mark.parametrize("missing_left", [True, False])
def test_missing_values_go_to_the_side_of_the_split(missing_left):
    bins = np.array([[0], [3], [1], [3], [2]], np.uint8)
    spans = np.array([[0, 5], [0, 0], [0, 0]], np.int32)
    order, spans = split(
        bins,
        np.array([3]),
        np.arange(5, dtype=np.int32),
        spans,
        [(0, 0, 0, missing_left, 1, 2, np.zeros(4, np.uint64))],
    )
    left = [0, 1, 3] if missing_left else [0]
    assert order[slice(*spans[1])].tolist() == left
    assert order[slice(*spans[2])].tolist() == [i for i in range(5) if i not in left]


def test_nodes_are_numbered_in_the_order_of_their_parents():
    inner = np.array([0, 2, 1, 6])  # best first: the right child of the root before the left one
    left = np.array([1, 3, 5, 7])
    numbers, leaves = np.full((2, 4), 99, np.int32), np.full(5, 99)
    partition.number_nodes(inner, left, left + 1, numbers, leaves)
    assert numbers.tolist() == [[2, ~0, ~2, ~3], [1, ~1, 3, ~4]]
    assert leaves.tolist() == [3, 4, 5, 7, 8]
    partition.number_nodes(inner[:0], inner[:0], inner[:0], numbers[:, :0].copy(), leaves[:1])
    assert leaves[0] == 0  # the root is the only leaf
