"""Adds the values of a tree to the scores, at the end of a round."""

from distboost.kernels._jit import kernel


@kernel
def add_by_span(scores, order, spans, leaves, values):
    """scores[i] += values[l] for the rows i in the span of leaf l."""
    # IN: order, spans: the partition; leaves (l,): the node of each leaf; values (l, K) float64
    # OUT: scores (n, K) float64
    for m in range(leaves.shape[0]):
        v = values[m]
        for j in range(spans[leaves[m], 0], spans[leaves[m], 1]):
            f = scores[order[j]]
            for k in range(v.shape[0]):
                f[k] += v[k]


@kernel
def add_by_leaf(scores, rows, leaf, values):
    """scores[rows[j]] += values[leaf[j]]."""
    # IN: rows (r,) int32; leaf (r,) int32; values (l, K) float64
    # OUT: scores (n, K) float64
    for j in range(rows.shape[0]):
        f = scores[rows[j]]
        v = values[leaf[j]]
        for k in range(v.shape[0]):
            f[k] += v[k]
