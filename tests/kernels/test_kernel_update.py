"""Scores move, while training (by leaf) and in prediction (by raw values)."""

import numpy as np
import pytest

from distboost.kernels import predict, update
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
            node = left if (missing_left if np.isnan(x) else x <= threshold) else right
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
        roots,
        values,
        offsets,
        first,
        last,
        scores,
    )
    np.testing.assert_array_equal(scores, [naive_scores(row, TREES[first:last]) for row in X])
