"""Prediction: an ensemble of trees is applied to rows of raw values."""

import numpy as np

from distboost.kernels._jit import kernel

# The values and scores of this many rows stay in the cache while all trees are applied to them.
TILE_ROWS = 512


@kernel
def add_trees(
    X, feature, threshold, missing_left, left, right, roots, values, value_offsets, first, last, scores
):
    """Add to scores[i] the value of the leaf that row i falls into, for each of the trees first .. last - 1, in this order.

    The arrays hold the nodes and the leaves of all trees, concatenated: the nodes of tree t begin at roots[t], its leaves at
    value_offsets[t]. Children are numbered within the tree, and a child below 0 is the leaf ~child. A value goes left if it is at
    most the threshold, or if it is missing and missing_left is set.

    All rows of a tile descend a tree together, level by level: the processor must execute the steps of one row in turn, but it
    can overlap the steps of different rows.
    """
    # IN: X (n, D) float; feature, left, right (nodes,) int32; threshold (nodes,) float64; missing_left (nodes,) bool;
    #     roots, value_offsets (trees + 1,) int64; values (leaves, K) float64
    # OUT: scores (n, K) float
    size = min(TILE_ROWS, X.shape[0])
    node, inside = np.empty(size, np.int32), np.empty(size, np.int32)
    for start in range(0, X.shape[0], TILE_ROWS):
        n = min(TILE_ROWS, X.shape[0] - start)
        for t in range(first, last):
            root = roots[t]
            n_inside = n if roots[t + 1] > root else 0  # rows that have not reached a leaf
            for j in range(n):
                node[j] = 0 if n_inside else -1
                inside[j] = j
            while n_inside:
                still = 0
                for m in range(n_inside):
                    j = inside[m]
                    at = root + node[j]
                    x = np.float64(X[start + j, feature[at]])
                    child = left[at] if (x <= threshold[at]) | (np.isnan(x) & missing_left[at]) else right[at]
                    node[j] = child
                    inside[still] = j  # the next row overwrites this if the child is a leaf
                    still += child >= 0
                n_inside = still
            for j in range(n):
                v, f = values[value_offsets[t] + ~node[j]], scores[start + j]
                for k in range(v.shape[0]):
                    f[k] += v[k]
