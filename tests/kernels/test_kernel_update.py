"""Scores move, while training (by leaf) and in prediction (by raw values)."""

import numpy as np
import pytest

from distboost.kernels import predict, update
from distboost.model.trees import NO_CATEGORIES
from tests.kernels.cases import read_only


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_classes", [2, 3, 26])
def test_add_by_leaf(dtype, n_classes):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, n_classes)).astype(dtype)
    values = rng.normal(size=(3, n_classes))
    order = rng.permutation(20)[:16].astype(np.int32)  # four rows are in no leaf
    leaf = rng.integers(0, 3, 16).astype(np.int32)
    expected = scores.copy()
    for i, m in zip(order, leaf, strict=True):
        expected[i] = (expected[i].astype(np.float64) + values[m]).astype(dtype)
    update.add_by_leaf(scores, order, leaf, values)
    np.testing.assert_array_equal(scores, expected)


# Three trees over two features; the second is a single leaf.
TREES = [
    {"nodes": [(0, 0.5, True, ~0, 1), (1, -1.0, False, ~1, ~2)], "values": [[1, 2], [3, 4], [5, 6.5]]},
    {"nodes": [], "values": [[0.1, -0.1]]},
    {"nodes": [(1, np.inf, False, ~0, ~1)], "values": [[7, 7], [1e-3, 8]]},
]


def naive_scores(row, trees):
    """The sum of the values of the leaves that the row reaches."""
    F = np.zeros(2)
    for tree in trees:
        node = 0 if tree["nodes"] else ~0
        while node >= 0:
            feature, threshold, missing_left, left, right = tree["nodes"][node]
            x = float(row[feature])
            goes_left = x in threshold if isinstance(threshold, set) else x <= threshold
            node = left if (missing_left if np.isnan(x) else goes_left) else right
        F += tree["values"][~node]
    return F


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("first", "last"), [(0, 3), (0, 0), (1, 2), (2, 3), (0, 1)])
def test_add_trees(dtype, first, last):
    beside = [-1.0, np.nextafter(np.float32(-1), np.float32(0)), 0.5, 0.6, -7, 1e30, np.nan]
    X = np.array([(a, b) for a in beside for b in beside], dtype)
    nodes = [node for tree in TREES for node in tree["nodes"]]
    feature, threshold, missing_left, left, right = map(np.array, zip(*nodes, strict=True))
    roots = np.cumsum([0, *(len(tree["nodes"]) for tree in TREES)])
    offsets = np.cumsum([0, *(len(tree["values"]) for tree in TREES)])
    values = np.concatenate([np.array(tree["values"], float) for tree in TREES])
    scores = np.zeros((len(X), 2))
    predict.add_trees(
        read_only(X),
        feature.astype(np.int32),
        threshold,
        missing_left,
        left.astype(np.int32),
        right.astype(np.int32),
        *NO_CATEGORIES.values(),
        roots,
        values,
        offsets,
        first,
        last,
        scores,
    )
    np.testing.assert_array_equal(scores, [naive_scores(row, TREES[first:last]) for row in X])


@pytest.mark.parametrize("missing_left", [False, True])
def test_add_trees_that_split_categories(missing_left):
    """Of bins on both sides of each word of a set."""
    sets = [{0.0, 63.0, 64.0, 254.0}, {1.0, 64.0, 191.0}]
    nodes = [(0, sets[0], missing_left, 1, ~0), (1, 0.5, True, 2, ~1), (0, sets[1], not missing_left, ~2, ~3)]
    tree = {"nodes": nodes, "values": [[1, 2], [3, 4], [5, 6], [7, 8]]}
    codes = [0, 1, 63, 64, 191, 192, 254, np.nan]
    X = np.array([(a, b) for a in codes for b in (0, 1, np.nan)], float)
    words = np.zeros((2, 4), np.uint64)
    for m, bins in enumerate(sets):
        for b in map(int, bins):
            words[m, b // 64] |= np.uint64(1) << np.uint64(b % 64)
    feature, _, missing, left, right = zip(*nodes, strict=True)
    integers = (np.array(column, np.int32) for column in (left, right, [0, -1, 1]))
    scores = np.zeros((len(X), 2))
    predict.add_trees(
        read_only(X), np.array(feature, np.int32), np.array([np.nan, 0.5, np.nan]), np.array(missing), *integers, words,
        np.array([0, 3]), np.array(tree["values"], float), np.array([0, 4]), 0, 1, scores,
    )  # fmt: skip
    np.testing.assert_array_equal(scores, [naive_scores(row, [tree]) for row in X])
