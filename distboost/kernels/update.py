"""The update at the end of a round: the values of a tree's leaves are added to the scores."""

from distboost.kernels._jit import kernel
from distboost.kernels.simd_rows import add_value_row, prefetch_row

AHEAD = 16  # how many rows before their turn scores are brought into the cache: a leaf's rows lie anywhere


@kernel
def add_by_span(scores, order, spans, leaves, values):
    """Add values[l] to scores[i] for the rows i of leaf l, which lie partitioned by the tree."""
    # IN: order (r,) int32; spans (nodes, 2) int32; leaves (leaves,) int64; values (leaves, K) float64
    # OUT: scores (n, K) float
    for m in range(leaves.shape[0]):
        for j in range(spans[leaves[m], 0], spans[leaves[m], 1]):
            if j + AHEAD < order.shape[0]:
                prefetch_row(scores, order[j + AHEAD])
            add_value_row(scores, order[j], values, m)


@kernel
def add_by_leaf(scores, rows, leaf, values):
    """Add values[leaf[j]] to scores[rows[j]]."""
    # IN: rows, leaf (r,) int32; values (leaves, K) float64
    # OUT: scores (n, K) float
    for j in range(rows.shape[0]):
        add_value_row(scores, rows[j], values, leaf[j])
