"""The leaf of a tree that each row falls into."""

import mmap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distboost.kernels.categories import SET_WORDS
from distboost.rows.messages import NO_SETS, Splits
from distboost.runtime.block import Grown
from distboost.trees import tree as trees
from distboost.trees.tree import BinnedTree
from tests.kernels.test_kernel_partition import has_bins, random_set


def naive_leaf(row, missing_bin, tree):
    """Follow the children until one is a leaf."""
    feature, split_bin, missing_left, left, right, sets = tree
    node = 0 if len(feature) else -1
    while node >= 0:
        b = row[feature[node]]
        goes_left = missing_left[node] if b == missing_bin[feature[node]] else b <= split_bin[node]
        if split_bin[node] < 0:
            goes_left = has_bins(sets[node], [b])[0]
        node = left[node] if goes_left else right[node]
    return ~node


def random_tree(rng, n_inner, n_features, n_bins):
    """Grown by splitting random leaves."""
    left, right = np.full(n_inner, 0, np.int32), np.full(n_inner, 0, np.int32)
    open_ends = [None]
    for node in range(n_inner):
        end = open_ends.pop(rng.integers(len(open_ends)))
        if end is not None:
            end[0][end[1]] = node
        open_ends += [(left, node), (right, node)]
    for leaf, (side, node) in enumerate(e for e in open_ends if e is not None):
        side[node] = ~leaf
    return (
        rng.integers(0, n_features, n_inner).astype(np.int32),
        rng.integers(-1, n_bins, n_inner).astype(np.int32),
        rng.random(n_inner) < 0.5,
        left,
        right,
        np.array([random_set(rng) for _ in range(n_inner)], np.uint64).reshape(n_inner, SET_WORDS),
    )


@pytest.mark.parametrize("form", ["descends", "chooses", "categories"])
@given(seed=st.integers(0, 2**32 - 1), n_inner=st.integers(0, 40), n_features=st.integers(1, 40))
def test_leaves_of_binned_rows(form, seed, n_inner, n_features):
    """Of all rows of an array, or of some in any order: with few columns, the last rows end before the lanes do."""
    rng = np.random.default_rng(seed)
    n_bins, n = int(rng.integers(1, 256)), int(rng.integers(1, 200))
    missing_bin = np.full(n_features, n_bins)
    bins = rng.integers(0, n_bins + 1, (n, n_features)).astype(np.uint8)
    binned = BinnedTree(*random_tree(rng, n_inner, n_features, n_bins))
    if form != "categories":
        binned = binned._replace(bin=np.maximum(binned.bin, 0), sets=NO_SETS)
    rows = np.arange(n) if rng.random() < 0.5 else rng.choice(n, int(rng.integers(0, n + 1)), replace=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trees, "MOST_GROUPS", 3 if form == "chooses" else 0)
        leaf = binned.leaves_of(bins, missing_bin, rows.astype(np.int32))
    assert leaf.tolist() == [naive_leaf(bins[i], missing_bin, binned) for i in rows]


@pytest.mark.parametrize("n_features", [1, 15, 17])
def test_nothing_is_read_behind_the_last_row(n_features, tmp_path):
    """The array ends where a file has been cut: the system ends a process that reads behind it."""
    n = mmap.PAGESIZE // n_features
    (tmp_path / "bins").write_bytes(bytes(2 * mmap.PAGESIZE))
    with (tmp_path / "bins").open("r+b") as file:
        memory = np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint8)
        file.truncate(mmap.PAGESIZE)
    bins = memory[: mmap.PAGESIZE][-n * n_features :].reshape(n, n_features)
    bins[:] = np.random.default_rng(0).integers(0, 9, bins.shape)
    last = n_features - 1
    splits = [[last, 0], [3, 5], [False, True], [1, ~1], [~0, ~2]]
    binned = BinnedTree(*(np.array(column) for column in splits))
    missing_bin = np.full(n_features, 8)
    expected = [naive_leaf(row, missing_bin, binned) for row in bins]
    for first in range(64):
        leaf = binned.leaves_of(bins, missing_bin, np.arange(first, n, dtype=np.int32))
        assert leaf.tolist() == expected[first:]


@pytest.mark.parametrize("n_inner", [255, 256])
def test_leaves_of_trees_that_just_fit_in_a_byte_and_of_larger_ones(n_inner):
    rng = np.random.default_rng(0)
    missing_bin = np.full(4, 200)
    bins = rng.integers(0, 201, (300, 4)).astype(np.uint8)
    binned = BinnedTree(*random_tree(rng, n_inner, 4, 200))
    binned = binned._replace(bin=np.maximum(binned.bin, 0))
    leaf = binned.leaves_of(bins, missing_bin, np.arange(300, dtype=np.int32))
    expected = [naive_leaf(row, missing_bin, binned) for row in bins]
    assert leaf.tolist() == expected
    assert max(expected) > 128


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
def test_the_tree_of_a_block_follows_from_its_splits(seed, n_splits, in_one):
    """As they do split by split; splits may come together."""
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 5, (200, 3)).astype(np.uint8)
    missing_bin = np.full(3, 4)
    splits, sets, leaves = [], [], [0]
    for number in range(n_splits):
        node = leaves.pop(int(rng.integers(len(leaves))))
        left = 2 * number + 1
        splits.append(
            (node, int(rng.integers(3)), int(rng.integers(-1, 4)), bool(rng.integers(2)), left, left + 1)
        )
        sets.append(rng.integers(0, 2**64, 4, np.uint64))
        leaves += [left, left + 1]
    grown = Grown(is_gathered=True)
    for some in [range(n_splits)] if in_one else [[number] for number in range(n_splits)]:
        part = Splits.of([splits[number] for number in some])
        part = part._replace(sets=np.array([sets[number] for number in some]))
        grown = grown.followed_by(part, missing_bin)
    rows = np.flatnonzero(rng.random(200) < 0.9).astype(np.int32)
    tree, nodes = grown.tree()
    leaf = tree.leaves_of(bins, missing_bin, rows)
    expected = np.zeros(200, int)
    for (node, d, b, missing_left, left, right), bits in zip(splits, sets, strict=True):
        goes_left = np.where(bins[:, d] == 4, missing_left, bins[:, d] <= b)
        if b < 0:
            goes_left = (bits[0] >> bins[:, d].astype(np.uint64)) & np.uint64(1) == 1
        expected = np.where(expected == node, np.where(goes_left, left, right), expected)
    assert nodes[leaf].tolist() == expected[rows].tolist()
