"""An ensemble of trees applied to raw rows."""

import numpy as np

from distboost.kernels._jit import kernel

TILE_ROWS = 512  # whose values and scores stay in the cache while one tree after another is applied to them


@kernel
def add_trees(
    X, feature, threshold, missing_left, left, right, roots, values, value_offsets, first, last, scores
):
    """scores[i] += the value of the leaf that row i falls into, for the trees first .. last - 1, in their order.

    Node 0 of tree t is node roots[t] of the arrays; children are counted from it, and a child below 0 is leaf ~child.
    A value goes left if it is at most the threshold, or is missing and missing values go left.

    Rows go down a tree together, a level at a time: the steps of one row must wait for each other, those of many need not.
    """
    # IN: X (n, D) float; nodes of all trees one after another; values (leaves of all trees, K) float64
    # OUT: scores (n, K) float64
    size = min(TILE_ROWS, X.shape[0])
    node, inside = np.empty(size, np.int32), np.empty(size, np.int32)
    for start in range(0, X.shape[0], TILE_ROWS):
        n = min(TILE_ROWS, X.shape[0] - start)
        for t in range(first, last):
            root = roots[t]
            n_inside = n if roots[t + 1] > root else 0  # rows that are not in a leaf yet
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
                    inside[still] = j  # kept if the next one does not take its place
                    still += np.int64(child >= 0)
                n_inside = still
            for j in range(n):
                v, f = values[value_offsets[t] + ~node[j]], scores[start + j]
                for k in range(v.shape[0]):
                    f[k] += v[k]
