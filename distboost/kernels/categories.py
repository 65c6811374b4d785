"""Splits of categories: the order in which a node's categories are scanned, the set that goes left, and the bins of values."""

import numpy as np
from numba import types

from distboost.kernels._jit import compiled, inlined, kernel
from distboost.kernels.by_address import address_of
from distboost.kernels.memory import floats

MOST_BINS = 256  # of a feature, with that of missing values
SET_WORDS = 4  # of 64 bits: a set has one bit for each bin
# Categories with fewer rows in a node are unknown there. The means of others are shrunk by as many rows of the node.
MIN_ROWS = 10
ITERATIONS = 8  # of the power method


def set_words(categorical: np.ndarray) -> int:
    """Return the words of the sets of splits, given whether each feature has categories, (D,) bool: 0 if none has."""
    return SET_WORDS if categorical.any() else 0


@inlined
def in_set(sets, m, b):
    """Return whether set m has bin b."""
    return (sets[m, b >> 6] >> np.uint64(b & 63)) & np.uint64(1) == np.uint64(1)


@compiled
def fill_set(sets, m, order, n_left, n, rest):
    """Make set m of the bins order[:n_left]. All bins that are not in order[:n] are in it if `rest`."""
    # IN: order (n,) int64
    # OUT: sets (nodes, SET_WORDS) uint64
    sets[m, :] = ~np.uint64(0) if rest else np.uint64(0)
    for i in range(n):
        b = order[i]
        bit = np.uint64(1) << np.uint64(b & 63)
        if i < n_left:
            sets[m, b >> 6] |= bit
        else:
            sets[m, b >> 6] &= ~bit


@kernel
def order_bins(sums, first, stop, n_sums, weight_channel, least, deviations, order, table):
    """Order the categories of a node by the projection of their mean statistic on its leading direction.

    order[MOST_BINS] becomes their number n. table[:n] are the sums of the bins `order`, and table[n] those of the missing values
    and of the bins with too few rows, which are unknown in this node. Ties go to the lower bin. The means, and the sums of the
    statistic in table[:n], are shrunk: see `shrink`.
    """
    # IN: sums (total bins, channels) int64: the feature's bins first .. stop - 1, then the missing values; n_sums sums of the
    #     statistic, the number of rows and their weight, which is below `least` if it is that of too few rows
    # OUT: deviations (bins, n_sums + 2) float64: working memory; order (MOST_BINS + 1,) int64; table (bins + 1, channels) int64
    n = 0
    for j in range(first, stop):
        if sums[j, n_sums] >= MIN_ROWS or sums[j, weight_channel] >= least:
            order[n] = j - first
            n += 1
    pool = floats(n_sums)
    if n_sums > 0:
        shrink(sums, first, n_sums, weight_channel, least, deviations, order, n, pool)
        project(sums, first, n_sums, weight_channel, deviations, order, n)
        sort_by(deviations, n_sums + 1, order, n)
    for c in range(sums.shape[1]):
        table[n, c] = 0
        for j in range(first, stop + 1):
            table[n, c] += sums[j, c]
        known = 0
        for i in range(n):
            table[i, c] = sums[first + order[i], c]
            known += table[i, c]
        table[n, c] -= known
        if c < n_sums:
            # The last category has what is left, so that rounding changes no total.
            for i in range(n):
                weight = np.float64(sums[first + order[i], weight_channel])
                own = np.int64(np.floor(shrunk(np.float64(table[i, c]), weight, least, pool[c])))
                table[i, c] = own if i < n - 1 else known
                known -= table[i, c]
    order[MOST_BINS] = n


# The types of its arguments.
_integer, _integers = types.int64, types.int64[:, ::1]
ORDERING = (_integers, *[_integer] * 5, types.float64[:, ::1], types.int64[::1], _integers)


def ordering_of(categorical: np.ndarray) -> int:
    """Return the address of `order_bins`, given whether each feature has categories, (D,) bool: 0 if none has."""
    return address_of(order_bins, ORDERING) if categorical.any() else 0


@inlined
def shrunk(total, weight, prior, mean):
    """Return the sum of a category's statistic after it has exchanged weight * prior / (weight + prior) with the pool."""
    return (total + prior * mean) * (weight / (weight + prior))


@compiled
def shrink(sums, first, n_sums, weight_channel, prior, deviations, order, n, pool):
    """Set deviations[i] to the mean of bin order[i], shrunk towards the mean of all bins, `pool`.

    A mean of few rows is mostly chance, and the order makes the most of chance. So each category of weight w gives the share
    prior / (w + prior) of its sums, which is less than the prior's weight, to a pool, and takes the same weight back. In NumPy,
    with sums S (n, n_sums) and weights w (n,): ``given = prior / (w + prior); mean = given @ S / (given @ w);
    S = (1 - given)[:, None] * S + np.outer(given * w, mean)``. The total remains, and no sum of weights becomes negative.
    """
    lent = 0.0
    for i in range(n):
        weight = np.float64(sums[first + order[i], weight_channel])
        given = prior / (weight + prior)
        lent += given * weight
        for c in range(n_sums):
            pool[c] += given * np.float64(sums[first + order[i], c])
    for c in range(n_sums):
        pool[c] /= max(lent, 1.0)
    for i in range(n):
        weight = np.float64(sums[first + order[i], weight_channel])
        for c in range(n_sums):
            total = np.float64(sums[first + order[i], c])
            # The weight of light rows may be rounded to 0.
            deviations[i, c] = shrunk(total, weight, prior, pool[c]) / max(weight, 1.0)


@compiled
def project(sums, first, n_sums, weight_channel, deviations, order, n):
    """Set deviations[i, n_sums + 1] to the projection of the mean deviations[i] on the leading direction of all means.

    The first entries become deviations from the mean of all rows. In NumPy, with means M (n, n_sums) and shares p (n,) of the
    weight: ``D = M - p @ M``, and the projection is D v for the leading eigenvector v of ``(D * p[:, None]).T @ D``. The power
    method begins with the heaviest deviation, so that v has the same sign on all machines. The projection of a single sum is its
    deviation.
    """
    share, along = n_sums, n_sums + 1
    total = 0.0
    for i in range(n):
        total += np.float64(sums[first + order[i], weight_channel])
    total = max(total, 1.0)
    v, following = floats(n_sums), floats(n_sums)
    for c in range(n_sums):
        mean = 0.0
        for i in range(n):
            mean += np.float64(sums[first + order[i], c])
        mean /= total
        for i in range(n):
            deviations[i, c] -= mean
    heaviest = 0.0
    for i in range(n):
        deviations[i, share] = np.float64(sums[first + order[i], weight_channel]) / total
        square = 0.0
        for c in range(n_sums):
            square += deviations[i, c] * deviations[i, c]
        if deviations[i, share] * square > heaviest:
            heaviest = deviations[i, share] * square
            for c in range(n_sums):
                v[c] = deviations[i, c] / np.sqrt(square)
    if n_sums == 1:
        v[0] = 1.0
    for _ in range(ITERATIONS if n_sums > 1 and heaviest > 0.0 else 0):
        following[:] = 0.0
        for i in range(n):
            weight = deviations[i, share] * dot(deviations, i, v)
            for c in range(n_sums):
                following[c] += weight * deviations[i, c]
        length = 0.0
        for c in range(n_sums):
            length += following[c] * following[c]
        if not (0.0 < length < np.inf):
            break
        for c in range(n_sums):
            v[c] = following[c] / np.sqrt(length)
    for i in range(n):
        deviations[i, along] = dot(deviations, i, v)


@inlined
def dot(rows, i, v):
    """Return the product of the first entries of rows[i] with v."""
    total = 0.0
    for c in range(v.shape[0]):
        total += rows[i, c] * v[c]
    return total


@inlined
def sort_by(keys, column, order, n):
    """Sort order[:n] by the keys of this column, of which row i is that of order[i]. Equal keys keep their order."""
    for i in range(1, n):
        key, b = keys[i, column], order[i]
        j = i
        while j > 0 and keys[j - 1, column] > key:
            keys[j, column], order[j] = keys[j - 1, column], order[j - 1]
            j -= 1
        keys[j, column], order[j] = key, b


@kernel
def code_values(x, values, bins, out):
    """Set out[i] to the bin of the category x[i]; missing and unknown values get NaN."""
    # IN: x (n,) float64; values (m,) float64, ascending; bins (m,) uint8: the bin of each
    # OUT: out (n,) float64
    n_values = values.shape[0]
    for i in range(x.shape[0]):
        out[i] = np.nan
        # Categories are often consecutive numbers: then this is the place.
        guess = x[i] - values[0] if n_values else np.nan
        if 0 <= guess < n_values and values[np.int64(guess)] == x[i]:
            out[i] = bins[np.int64(guess)]
            continue
        low, high = 0, n_values
        while low < high:
            middle = (low + high) >> 1
            if values[middle] < x[i]:
                low = middle + 1
            else:
                high = middle
        if low < n_values and values[low] == x[i]:
            out[i] = bins[low]
