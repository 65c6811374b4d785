"""An ensemble of trees applied to raw rows."""

import numpy as np

from distboost.kernels._jit import kernel


@kernel
def add_trees(
    X, feature, threshold, missing_left, left, right, roots, values, value_offsets, first, last, scores
):
    """scores[i] += the value of the leaf that row i falls into, for the trees first .. last - 1, in their order.

    Node 0 of tree t is node roots[t] of the arrays; children are counted from it, and a child below 0 is leaf ~child.
    A value goes left if it is at most the threshold, or is missing and missing values go left.
    """
    # IN: X (n, D) float; nodes of all trees one after another; values (leaves of all trees, K) float64
    # OUT: scores (n, K) float64
    for i in range(X.shape[0]):
        f = scores[i]
        for t in range(first, last):
            root = roots[t]
            node = 0 if roots[t + 1] > root else -1
            while node >= 0:
                x = np.float64(X[i, feature[root + node]])
                is_left = missing_left[root + node] if np.isnan(x) else x <= threshold[root + node]
                node = left[root + node] if is_left else right[root + node]
            v = values[value_offsets[t] + ~node]
            for k in range(v.shape[0]):
                f[k] += v[k]
