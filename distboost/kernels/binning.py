"""From raw values to bins."""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.memory import floats


@kernel
def bin_rows(X, edges, edge_offsets, out):
    """Set out[i, d] to the bin of X[i, d]: the number of feature d's edges below it. A missing value gets one more bin, the last.

    In NumPy, for one feature: ``np.searchsorted(edges, x, side="left")``. Hence x <= edges[b] exactly if the bin of x is <= b.
    """
    # IN: X (n, D) float; edges (E,) float64: those of feature d are edges[edge_offsets[d]:edge_offsets[d + 1]], at most 254,
    #     ascending; edge_offsets (D + 1,) int64
    # OUT: out (n, D) uint8
    padded = floats(256)
    for d in range(X.shape[1]):
        n_edges = edge_offsets[d + 1] - edge_offsets[d]
        for b in range(padded.shape[0]):
            padded[b] = edges[edge_offsets[d] + b] if b < n_edges else np.inf
        for i in range(X.shape[0]):
            x = np.float64(X[i, d])
            # Binary search in eight steps without branches. After each step, at least `low` edges are below x. None is below NaN.
            low = 128 if padded[127] < x else 0
            low += 64 if padded[low + 63] < x else 0
            low += 32 if padded[low + 31] < x else 0
            low += 16 if padded[low + 15] < x else 0
            low += 8 if padded[low + 7] < x else 0
            low += 4 if padded[low + 3] < x else 0
            low += 2 if padded[low + 1] < x else 0
            low += 1 if padded[low] < x else 0
            out[i, d] = n_edges + 1 if np.isnan(x) else low


@kernel
def bin_bytes(X, edges, edge_offsets, out):
    """Do the same as `bin_rows` for bytes, by a table of the bins of all 256 values."""
    # IN: X (n, D) uint8; edges, edge_offsets: see bin_rows
    # OUT: out (n, D) uint8
    bins = np.empty((256, X.shape[1]), np.uint8)
    for d in range(X.shape[1]):
        edge = edge_offsets[d]
        for value in range(256):
            while edge < edge_offsets[d + 1] and edges[edge] < value:
                edge += 1
            bins[value, d] = edge - edge_offsets[d]
    for i in range(X.shape[0]):
        for d in range(X.shape[1]):
            out[i, d] = bins[X[i, d], d]


@kernel
def distinct_bytes(X, weights, present):
    """Set present[v, d] if feature d has the value v in some row of weight above 0."""
    # IN: X (n, D) uint8; weights (n,) float64
    # OUT: present (256, D) bool
    for i in range(X.shape[0]):
        if weights[i] > 0.0:
            for d in range(X.shape[1]):
                present[X[i, d], d] = True


@inlined
def add_distinct(x, limit, count, table, used):
    """Add x to the hash table of a feature that has `count` <= limit values; return 1 if it was not there, else 0."""
    mask = np.uint64(table.shape[0] - 1)
    bits = np.float64(x + 0.0).view(np.uint64)  # -0.0 and 0.0 are the same value
    h = bits * np.uint64(0x9E3779B97F4A7C15)
    slot = (h >> np.uint64(40)) & mask
    while used[slot] and table[slot] != x:
        slot = (slot + np.uint64(1)) & mask
    if used[slot]:
        return 0
    if count < limit:
        used[slot] = True
        table[slot] = x + 0.0
    return 1


@kernel
def distinct_values(X, weights, limit, table, used, counts, infinite):
    """Add each feature's distinct values to its hash table, at most `limit` of them; counts[d] = limit + 1: there are more.

    The tables use open addressing. Rows of weight 0 and missing values are ignored. If a feature has an infinite value, its scan
    stops there.
    """
    # IN: X (n, D) float; weights (n,) float64; size: a power of two above 2 limit
    # OUT: table (D, size) float64: the values, where used (D, size) bool; counts (D,) int64: the number of distinct values;
    #      infinite (2,) int64: row and column of the first infinite value, unchanged if there is none
    for d in range(X.shape[1]):
        for i in range(X.shape[0]):
            x = np.float64(X[i, d])
            if np.isinf(x):
                if infinite[0] < 0 or i < infinite[0]:
                    infinite[0], infinite[1] = i, d
                break
            if counts[d] > limit or weights[i] == 0.0 or np.isnan(x):
                continue
            counts[d] += add_distinct(x, limit, counts[d], table[d], used[d])


@kernel
def merge_distinct(values, sizes, limit, known, counts):
    """Merge distinct values found in other rows into each feature's known ones; counts[d] = limit + 1: there are too many.

    In NumPy, for one feature: ``np.union1d(known, values)``.
    """
    # IN: values (m,) float64: the values of feature 0 in ascending order, then those of feature 1, and so on; sizes (D,) int64:
    #     the number of each feature's values, or limit + 1 if there are too many: then `values` holds none of them
    # OUT: known (D, limit) float64: the first counts[d] of feature d are used, in ascending order; counts (D,) int64
    merged = floats(limit)
    first = 0
    for d in range(sizes.shape[0]):
        if sizes[d] > limit:
            counts[d] = limit + 1
            continue
        i, j, n = 0, first, 0
        first += sizes[d]
        while n <= limit and counts[d] <= limit and (i < counts[d] or j < first):
            a = known[d, i] if i < counts[d] else np.inf
            b = values[j] if j < first else np.inf
            i += a <= b
            j += b <= a
            if n < limit:
                merged[n] = min(a, b)
            n += 1
        if counts[d] <= limit:
            for i in range(min(n, limit)):
                known[d, i] = merged[i]
            counts[d] = n


@kernel
def add_up_equal(values, weights):
    """Replace runs of equal values by one value with the sum of their weights, in place; return the number n of distinct values.

    Afterwards, values[:n] and weights[:n] are in use. Missing values are left out.
    """
    # IN, OUT: values (m,) float64, ascending, NaN last; weights (m,) float64: the weight of each value
    n = 0
    for i in range(values.shape[0]):
        if np.isnan(values[i]):
            break
        if n > 0 and values[n - 1] == values[i]:
            weights[n - 1] += weights[i]
        else:
            values[n], weights[n] = values[i], weights[i]
            n += 1
    return n


@kernel
def count_whole(values, weights, totals):
    """Do the same as sorting and `add_up_equal` for whole numbers, in any order; return -1 if these are others, or far apart.

    The weights of equal values are added in the same order, the given one.
    """
    # IN, OUT: values (m,) float64, unchanged if the result is -1; weights (m,) float64: the weight of each value, above 0
    # OUT: totals (size,) float64: for calculations. The values must lie within a range of `size` numbers.
    least, largest = np.inf, -np.inf
    for i in range(values.shape[0]):
        x = values[i]
        if np.isnan(x):
            continue
        if x != np.floor(x):
            return -1
        least, largest = min(least, x), max(largest, x)
    if least > largest:
        return 0
    if not largest - least < totals.shape[0] or max(-least, largest) > 2.0**52:
        return -1
    n_values = np.int64(largest - least) + 1
    for value in range(n_values):
        totals[value] = 0.0
    for i in range(values.shape[0]):
        if not np.isnan(values[i]):
            totals[np.int64(values[i] - least)] += weights[i]
    n = 0
    for value in range(n_values):
        if totals[value] > 0.0:
            values[n], weights[n] = least + value, totals[value]
            n += 1
    return n


@kernel
def quantile_edges(values, weights, max_bins, out):
    """Divide a feature's values into bins of about equal weight; write the edges between bins to `out`, return their number.

    This is LightGBM's greedy binning: a value as heavy as an average bin is the last of its bin, and the other values are spread
    over the remaining bins. An edge lies midway between two neighbouring values.
    """
    # IN: values (m,) float64, ascending and distinct; weights (m,) float64: the total weight of each value, above 0
    # OUT: out (max_bins - 1,) float64
    m = values.shape[0]
    # Loops need no temporary arrays: these would be as large as the sample, and new memory causes page faults.
    limit = weights.sum() / max_bins
    n_rest = max_bins
    rest = 0.0
    for j in range(m):
        if weights[j] >= limit:
            n_rest -= 1
        else:
            rest += weights[j]
    share = rest / n_rest if n_rest > 0 else np.inf
    n_edges = 0
    filled = 0.0
    for j in range(m - 1):
        filled += weights[j]
        heavy = weights[j] >= limit
        if not heavy:
            rest -= weights[j]
        full = heavy or filled >= share or (weights[j + 1] >= limit and filled >= share / 2)
        if full and n_edges < max_bins - 1:
            out[n_edges] = midpoint(values[j], values[j + 1])
            n_edges += 1
            filled = 0.0
            if not heavy:
                n_rest -= 1
                share = rest / n_rest if n_rest > 0 else np.inf
    return n_edges


@kernel
def midpoint(a, b):
    """Return the number midway between a and b, a < b, but never b itself: `x <= midpoint` separates the two."""
    middle = 0.5 * a + 0.5 * b
    return middle if a <= middle < b else a
