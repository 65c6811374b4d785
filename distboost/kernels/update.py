"""The update at the end of a round: the values of a tree's leaves are added to the scores."""

from distboost.kernels._jit import kernel
from distboost.kernels.simd_rows import add_value_row


@kernel
def add_by_leaf(scores, rows, leaf, values):
    """Add values[leaf[j]] to scores[rows[j]]."""
    # IN: rows, leaf (r,) int32; values (leaves, K) float64
    # OUT: scores (n, K) float
    for j in range(rows.shape[0]):
        add_value_row(scores, rows[j], values, leaf[j])


@kernel
def add_to_column(scores, rows, leaf, values, column):
    """Add values[leaf[j], column] to scores[rows[j], column]."""
    # IN: rows, leaf (r,) int32; values (leaves, K) float64
    # OUT: scores (n, K) float
    for j in range(rows.shape[0]):
        scores[rows[j], column] += values[leaf[j], column]
