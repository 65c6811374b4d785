"""The rows of each node of a growing tree."""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.simd_rows import prefetch_number

AHEAD = 64  # how many rows before their turn bins are brought into the cache: those of a column lie far apart


@inlined
def goes_left(b, split_bin, missing_bin, missing_left):
    """Return whether a row in bin b goes left: a missing value if `missing_left`, any other value if b <= split_bin."""
    return missing_left if b == missing_bin else b <= split_bin


@kernel
def split_spans(
    bins, missing_bin, order, spans, node, feature, split_bin, missing_left, left, right, scratch
):
    """Divide the span of each split node between its children. The rows of a child keep their order.

    In NumPy, for one node: ``rows = order[a:b]; order[a:b] = concatenate([rows[goes_left], rows[~goes_left]])``.
    """
    # IN: bins (n, D) uint8; missing_bin (D,) int64; node, feature, split_bin, left, right (m,) int64; missing_left (m,) bool
    # OUT: order (r,) int32; spans (nodes, 2) int32; scratch (r,) int32: working memory
    for m in range(node.shape[0]):
        a, b = spans[node[m], 0], spans[node[m], 1]
        d, threshold, toleft = feature[m], split_bin[m], missing_left[m]
        missing = missing_bin[d]
        n_left = a
        n_right = 0
        for j in range(a, b):
            i = order[j]
            if j + AHEAD < order.shape[0]:
                prefetch_number(bins, order[j + AHEAD], d)
            # Write the row to both sides, but advance only one: without a branch, nothing is mispredicted.
            is_left = goes_left(np.int64(bins[i, d]), threshold, missing, toleft)
            order[n_left] = i
            scratch[n_right] = i
            n_left += is_left
            n_right += not is_left
        for j in range(n_right):
            order[n_left + j] = scratch[j]
        spans[left[m], 0], spans[left[m], 1] = a, n_left
        spans[right[m], 0], spans[right[m], 1] = n_left, b


@kernel
def leaf_of_binned(bins, missing_bin, feature, split_bin, missing_left, left, right, rows, out):
    """Set out[j] to the leaf that row rows[j] falls into, from the row's bins. A child below 0 is the leaf ~child."""
    # IN: bins (n, D) uint8; missing_bin (D,) int64; the tree's m inner nodes: feature, split_bin, left, right (m,) int32,
    #     missing_left (m,) bool; rows (r,) int32
    # OUT: out (r,) int32
    for j in range(rows.shape[0]):
        i = rows[j]
        node = 0 if feature.shape[0] else -1
        while node >= 0:
            d = feature[node]
            is_left = goes_left(np.int64(bins[i, d]), split_bin[node], missing_bin[d], missing_left[node])
            node = left[node] if is_left else right[node]
        out[j] = ~node
