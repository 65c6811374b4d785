"""The rows of each node of a growing tree."""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.categories import in_set
from distboost.kernels.memory import integers
from distboost.kernels.simd import prefetch

ONE = np.uintp(1)
AHEAD = np.uintp(
    64
)  # rows: their bins are fetched into the cache in advance, as those of a column lie far apart


@inlined
def goes_left(b, split_bin, missing_bin, missing_left, sets, m):
    """Return whether a row in bin b goes left: a missing value if `missing_left`, any other value if b <= split_bin.

    If split_bin < 0, split m is one of categories: a row goes left if set m has its bin.
    """
    if split_bin < 0:
        return in_set(sets, m, b)
    return missing_left if b == missing_bin else b <= split_bin


@kernel
def split_spans(
    bins, missing_bin, order, spans, node, feature, split_bin, missing_left, left, right, sets, scratch
):
    """Divide the span of each split node between its children. The rows of a child keep their order.

    In NumPy, for one node: ``rows = order[a:b]; order[a:b] = concatenate([rows[goes_left], rows[~goes_left]])``.
    """
    # IN: bins (n, D) uint8; missing_bin (D,) int64; node, feature, split_bin, left, right (m,) int64; missing_left (m,) bool;
    #     sets (m, SET_WORDS) uint64, which are read where split_bin < 0
    # OUT: order (r,) int32; spans (nodes, 2) int32; scratch (r,) int32: working memory
    is_left = np.empty(256, np.uint8)  # by bin
    last = np.uintp(order.shape[0] - 1)
    for m in range(node.shape[0]):
        d = np.uintp(feature[m])
        for b in range(256):
            is_left[b] = goes_left(b, split_bin[m], missing_bin[d], missing_left[m], sets, m)
        # Unsigned numbers: an index that may be negative costs as much as the rest of the loop.
        start, stop = np.uintp(spans[node[m], 0]), np.uintp(spans[node[m], 1])
        n_left, n_right = start, np.uintp(0)
        for j in range(start, stop):
            i = np.uintp(order[j])
            prefetch(bins, np.uintp(order[min(j + AHEAD, last)]), d)
            # Write the row to both sides, but advance only one: without a branch, nothing is mispredicted.
            left_rows = np.uintp(is_left[bins[i, d]])
            order[n_left] = i
            scratch[n_right] = i
            n_left += left_rows
            n_right += ONE - left_rows
        for j in range(n_right):
            order[n_left + j] = scratch[j]
        spans[left[m], 0], spans[left[m], 1] = start, n_left
        spans[right[m], 0], spans[right[m], 1] = n_left, stop


@kernel
def number_nodes(inner, left, right, numbers, leaves):
    """Number the inner nodes of a tree and its leaves in the order of their parents: see `trees.tree.numbered`."""
    # IN: inner, left, right (m,) int64
    # OUT: numbers (2, m) int32: of the left and the right children; leaves (m + 1,) int64
    number = integers(right.max() + 1 if right.shape[0] else 1)
    for m in range(inner.shape[0]):
        number[inner[m]] = m
    n = 0
    leaves[0] = 0
    for m in range(inner.shape[0]):
        for side in range(2):
            child = right[m] if side == 1 else left[m]
            numbers[side, m] = number[child]
            if number[child] == 0:  # the root, 0, is no child
                leaves[n] = child
                n += 1
                numbers[side, m] = -n


@kernel
def number_rows(order, spans, leaves, out):
    """Set out[i] to l for the rows i of node leaves[l]."""
    # IN: order (r,) int32; spans (nodes, 2) int32; leaves (leaves,) int64
    # OUT: out (n,) int32
    for leaf in range(leaves.shape[0]):
        start, stop = spans[leaves[leaf]]
        for j in range(np.uintp(start), np.uintp(stop)):
            out[np.uintp(order[j])] = leaf
