"""Rows of which only some bins are stored: histograms, divisions and leaves are those of all bins."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.kernels import leaves, partition
from distboost.kernels.histogram import FEWEST_ROWS, Target
from distboost.kernels.simd import padded, padded_sums
from distboost.kernels.stored_bins import CHUNK
from distboost.rows import stored_bins
from distboost.rows.stored_bins import StoredBins
from distboost.rows.summands import Summands, add_histograms

N_BINS = 5  # of a feature, with that of missing values


@pytest.fixture(autouse=True)
def whatever_the_size(monkeypatch):
    monkeypatch.setattr(stored_bins, "FEWEST_FEATURES", 1)
    monkeypatch.setattr(stored_bins, "MOST_STORED", 1.0)


def rows(seed):
    """(rng, bins, the same stored): some rows and columns have usual bins only, others none. Some have more than a chunk."""
    rng = np.random.default_rng(seed)
    n, n_columns = rng.integers(1, 40), rng.integers(1, 9)
    n_before = seed % 4 // 3 * (CHUNK - 4)
    n_features = n_before + n_columns
    usual = rng.integers(0, N_BINS, n_features).astype(np.uint8)
    bins = rng.integers(0, N_BINS, (n, n_features)).astype(np.uint8)
    share = np.append(np.full(n_before, 0.99), rng.choice([0.0, 0.5, 0.9, 1.0], n_columns))
    is_usual = rng.random((n, n_features)) < share
    bins = np.where(is_usual, usual, bins)
    found = StoredBins.of(bins, usual)
    assert found is not None
    return rng, bins, found


def nodes(rng, n):
    """(order, spans): rows of three nodes, one of them empty."""
    order = rng.permutation(n).astype(np.int32)[: rng.integers(0, n + 1)]
    cut = rng.integers(0, len(order) + 1)
    return order, np.array([[0, cut], [cut, cut], [cut, len(order)]], np.int32)


@pytest.mark.parametrize("seed", range(20))
def test_all_bins_come_back(seed):
    _, bins, stored = rows(seed)
    assert_array_equal(stored.all(), bins)
    assert len(stored.value) == np.count_nonzero(bins != stored.usual)


@pytest.mark.parametrize("kind", ["int32", "int64", "by class"])
@pytest.mark.parametrize("seed", range(20))
def test_histograms(kind, seed):
    """Of some features, added to what is there or in its place, together with rows that hold all bins."""
    rng, bins, stored = rows(seed)
    (n, n_features), n_classes = bins.shape, 3
    order, spans = nodes(rng, n)
    known, n_channels = {}, int(rng.integers(5, 90))
    if kind == "by class":
        vectors = rng.integers(-(2**40), 2**40, n)
        known = {
            "classes": rng.integers(0, n_classes, n).astype(np.int32),
            "weights": rng.integers(1, 4, n) / 2,
            "n_classes": 3,
        }
    else:
        vectors = np.zeros((n, padded(n_channels)), kind)
        vectors[:, :n_channels] = rng.integers(-(2**20), 2**20, (n, n_channels))
    dense = Summands(bins, order, spans, vectors, np.ones(n_features, bool), 2.0**20, **known)
    features = np.flatnonzero(rng.random(n_features) < 0.8)[rng.integers(0, 3) :]
    offsets, slots = np.arange(n_features + 1) * N_BINS, np.array([2, 0, 3])
    pool = np.zeros((4, offsets[-1], padded_sums(n_channels)), np.int64)
    add_histograms([dense], Target(np.arange(n_features), offsets, slots, pool, True), 2.0)
    expected, fresh = pool.copy(), bool(rng.integers(2))
    if len(features):
        add_histograms([dense, dense], Target(features, offsets, slots, expected, fresh), 2.0)
        mixed = [dense._replace(bins=stored), dense if seed % 2 else dense._replace(bins=stored)]
        add_histograms(mixed, Target(features, offsets, slots, pool, fresh), 2.0)
    assert_array_equal(pool, expected)


def test_no_sum_overflows():
    """Sums of 32 bits are added to those of 64 bits before they could exceed 2^31 - 1."""
    n, largest = 1000, 2**31 // FEWEST_ROWS - 1
    bins = np.zeros((n, 2), np.uint8)
    bins[::3, 1] = 1
    order, spans = np.arange(n, dtype=np.int32), np.array([[0, n]], np.int32)
    vectors = np.full((n, 8), largest, np.int32) * np.array([1, -1] * 4, np.int32)
    some = Summands(StoredBins.of(bins, bins[1]), order, spans, vectors, np.ones(2, bool), float(largest))
    pool = np.empty((1, 4, 8), np.int64)
    for fresh, times in ((True, 1), (False, 2)):
        add_histograms([some], Target(np.arange(2), np.array([0, 2, 4]), np.zeros(1, int), pool, fresh), 0.0)
        counts = times * np.array([n, 0, n - len(bins[::3]), len(bins[::3])])
        assert_array_equal(pool[0], counts[:, None] * vectors[0].astype(np.int64))


@pytest.mark.parametrize("seed", range(20))
def test_divisions_and_leaves(seed):
    rng, bins, stored = rows(seed)
    n, n_features = bins.shape
    order, spans = nodes(rng, n)
    spans = np.concatenate([spans, np.zeros((4, 2), np.int32)])
    sets = rng.integers(0, 2**5, (2, 4)).astype(np.uint64)
    feature, missing_bin = rng.integers(0, n_features, 2), np.full(n_features, N_BINS - 1)
    split_bin, missing_left = np.array([rng.integers(0, 4), -1]), rng.random(2) < 0.5
    splits = np.array([0, 2]), feature, split_bin, missing_left, np.array([3, 5]), np.array([4, 6]), sets
    found = order.copy(), spans.copy()
    partition.split_spans(bins, missing_bin, order, spans, *splits, np.empty_like(order))
    stored_bins.kernels.split_stored(
        *stored.rows, stored.usual, missing_bin, *found, *splits, np.empty_like(order)
    )
    assert_array_equal(found[0], order)
    assert_array_equal(found[1], spans)

    tree = np.column_stack([feature, split_bin, np.where(missing_left, missing_bin[feature], -1)])
    tree = np.concatenate([tree, np.zeros((3, 3), np.int64)])
    child, present = (
        np.array([[1, 2], [3, 4], [2, 2], [3, 3], [4, 4]], np.int32),
        np.arange(n, dtype=np.int32),
    )
    expected, leaf = np.empty((2, n), np.int32)
    leaves.descend(bins, tree, sets, child, present, expected)
    stored_bins.kernels.descend_stored(*stored.rows, stored.usual, tree, sets, child, present, leaf)
    assert_array_equal(leaf, expected)
