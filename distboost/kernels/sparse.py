"""Rows in compressed form: scanned and binned by their stored entries. An entry that is not stored is 0."""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.binning import add_distinct


@kernel
def stores_twice(indptr, columns, n_columns):
    """Return whether a row stores some column twice."""
    # IN: indptr (n + 1,) int64; columns (m,) int64: those of row i are columns[indptr[i]:indptr[i + 1]], in any order
    last = np.full(n_columns, -1, np.int64)
    for i in range(indptr.shape[0] - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if last[columns[k]] == i:
                return True
            last[columns[k]] = i
    return False


@kernel
def distinct_stored(indptr, columns, values, weights, limit, table, used, counts, stored):
    """Do the same as `binning.distinct_values` for the stored entries of rows, and count them. No entry is infinite.

    In NumPy: ``stored += np.bincount(columns[weights > 0])``, with the weight of each entry's row.
    """
    # IN: indptr (n + 1,) int64; columns (m,) int64: no row stores one twice; values (m,) float64; weights (n,) float64; limit
    # OUT: table, used, counts: see distinct_values; stored (D,) int64
    for i in range(weights.shape[0]):
        if weights[i] == 0.0:
            continue
        for k in range(indptr[i], indptr[i + 1]):
            d = columns[k]
            stored[d] += 1
            if counts[d] <= limit and not np.isnan(values[k]):
                counts[d] += add_distinct(values[k], limit, counts[d], table[d], used[d])


@kernel
def bin_stored(indptr, columns, values, edges, edge_offsets, of_zero, out):
    """Do the same as `binning.bin_rows` for rows in compressed form; `of_zero` has the bin of 0 of each feature."""
    # IN: indptr (n + 1,) int64; columns (m,) int64: no row stores one twice; values (m,) float64; edges, edge_offsets: see
    #     bin_rows; of_zero (D,) uint8
    # OUT: out (n, D) uint8
    for i in range(out.shape[0]):
        for d in range(out.shape[1]):
            out[i, d] = of_zero[d]
        for k in range(indptr[i], indptr[i + 1]):
            d, x = columns[k], values[k]
            first, stop = edge_offsets[d], edge_offsets[d + 1]
            low, high = first, stop
            while low < high:
                middle = (low + high) // 2
                if edges[middle] < x:
                    low = middle + 1
                else:
                    high = middle
            out[i, d] = stop - first + 1 if np.isnan(x) else low - first
