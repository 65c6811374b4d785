"""An ensemble of trees applied to raw rows."""

import numpy as np

from distboost.kernels._jit import kernel

# The values and scores of this many rows stay in the cache while all trees are applied to them.
TILE_ROWS = 512


@kernel
def add_trees(
    X, feature, threshold, missing_left, left, right, roots, values, value_offsets, first, last, scores
):
    """scores[i] += the value of the leaf that row i falls into, for the trees first .. last - 1, in this order.

    Node 0 of tree t is node roots[t] of the arrays. Children are numbered from it, and a child below 0 is leaf ~child.
    A value goes left if it is at most the threshold, or if it is missing and missing_left is set.

    All rows of a tile descend a tree together, level by level: the steps of one row depend on each other, those of different
    rows run in parallel.
    """
    # IN: X (n, D) float; nodes of all trees one after another; values (leaves of all trees, K) float64
    # OUT: scores (n, K) float64
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
                    inside[still] = j  # overwritten unless the child is a node
                    still += child >= 0
                n_inside = still
            for j in range(n):
                v, f = values[value_offsets[t] + ~node[j]], scores[start + j]
                for k in range(v.shape[0]):
                    f[k] += v[k]
