"""Leaves with signs, and what a change of one of them does to the loss of the whole tree: see `trees.whole_tree`.

A leaf has the sums (N, P) of K classes, and the sign -1 or +1. A leaf of sign + gets P right and N wrong, a leaf of sign - gets N
right and P wrong. A root that is not split has the sign 0. A node that was split keeps the sign of its right side.
"""

import numpy as np

from distboost.kernels._jit import compiled, inlined, kernel
from distboost.kernels.memory import floats, integers

KEEP, FLIP = (
    0,
    2,
)  # changes of a leaf; -1 and +1: split it, so that its right side has this sign, its left side the other
LANES, MOST_ADDED, ADD = 8, 128, 0  # see `sum_in_pairs`


@kernel
def see_others(sums, child, sign, own, context):
    """Set the context of the search for the splits of a leaf. Return whether all leaves, two or more, have the same sign."""
    # IN: sums (m, channels) int64: K of N, K of P; child (n,) int64: 0 for the leaves; sign (m,) int64; own: the leaf
    # OUT: context (2, K + 1) float64: the weights that the other leaves get right and wrong, and minus the loss of the tree
    context[:] = 0.0
    n_classes, n_leaves, total = context.shape[1] - 1, 0, 0
    for leaf in range(child.shape[0]):
        if child[leaf] == 0:
            n_leaves += 1
            total += sign[leaf]
            first = n_classes if sign[leaf] > 0 else 0
            for k in range(n_classes if leaf != own else 0):
                context[0, k] += sums[leaf, first + k]
                context[1, k] += sums[leaf, n_classes - first + k]
    context[:, n_classes] = worth(context, sums[own], sums[own], -sign[own])
    return n_leaves > 1 and abs(total) == n_leaves


@kernel
def change_of(context, sums, sign, left, gain):
    """Return the change of a leaf that lowers the loss of the tree most: KEEP, FLIP, -1 or +1."""
    # IN: context (2, K + 1) float64: of the leaf, by `see_others`; sums (channels,) int64; left (channels,) int64: the left sums
    #     of its best split; gain: by which this lowers the loss; 0: there is none
    kept = context[0, context.shape[1] - 1]
    if sign != 0:
        flipped = worth(context, sums, sums, sign)
        if flipped > kept and flipped >= kept + max(gain, 0.0):
            return FLIP
    if not gain > 0:
        return KEEP
    if sign == 0 or worth(context, sums, left, 1) >= worth(context, sums, left, -1):
        return 1
    return -1


@compiled
def worth(context, sums, left, sign):
    """-L_f = -2 sum_k sqrt(right[k] wrong[k]), if the right side of a leaf has this sign, and its left side the other.

    A leaf that is not split has all its rows on the left. Before a tree has signs, its loss is the sum of all weights.
    """
    n_classes = context.shape[1] - 1
    if sign == 0:
        terms = floats(2 * n_classes)
        for c in range(2 * n_classes):
            terms[c] = sums[c]
        return -sum_in_pairs(terms)
    roots = floats(n_classes)
    # The left side gets right what begins at a, the right side what begins at b.
    a, b = (0, n_classes) if sign > 0 else (n_classes, 0)
    for k in range(n_classes):
        right = context[0, k] + left[a + k] + (sums[b + k] - left[b + k])
        wrong = context[1, k] + left[b + k] + (sums[a + k] - left[a + k])
        roots[k] = np.sqrt(right * wrong)
    return -2.0 * sum_in_pairs(roots)


@compiled
def sum_in_pairs(x):
    """Return the sum of x, (n,) float64, added in NumPy's order: halves of more than MOST_ADDED numbers are added up apart."""
    sizes, n_sizes = integers(3 * 64), 1
    totals, n_totals = floats(64), 0
    lanes, first = floats(LANES), 0
    sizes[0] = x.shape[0]
    while n_sizes > 0:
        n_sizes -= 1
        n = sizes[n_sizes]
        if n == ADD:
            n_totals -= 1
            totals[n_totals - 1] += totals[n_totals]
        elif n > MOST_ADDED:
            half = n // (2 * LANES) * LANES
            sizes[n_sizes], sizes[n_sizes + 1], sizes[n_sizes + 2] = ADD, n - half, half
            n_sizes += 3
        else:
            totals[n_totals] = sum_in_lanes(x, first, first + n, lanes)
            n_totals += 1
            first += n
    return totals[0]


@inlined
def sum_in_lanes(x, first, stop, lanes):
    """Return the sum of x[first:stop], of which each lane adds every eighth number; the last ones are added to their sum."""
    lanes[:] = 0.0
    last = stop - (stop - first) % LANES
    for i in range(first, last):
        lanes[(i - first) % LANES] += x[i]
    total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
    for i in range(last, stop):
        total += x[i]
    return total
