"""What a split is worth, from the sums of its two sides: value(L, R) - value(parent) is its gain.

Sums are integers, so a value is the same wherever and in whatever order they were added, and ties are exact.
"""

import numpy as np

from distboost.kernels._jit import inlined, kernel

# The kinds of value. A new one is a constant here, its function below, and a line in `pair_values` and `own_value`.
# Kinds that end in STUMP are of a weak learner that is -1 on one side and +1 on the other, and know no parent.
CODEWORD, DIRECTION, LEAST_SQUARES, CLASS_STUMP, DIRECTION_STUMP = 0, 1, 2, 3, 4
VOTES, VOTES_STUMP, REAL_VOTES, WHOLE_TREE = 5, 6, 7, 8

NO_CONTEXT = np.zeros((2, 1))


# Sums of few different weights are often equal but for the rounding of each weight. Values that are linear in the sums are
# compared on this grid: of wide statistics, whose sums use up to 2^61, it is coarser than the rounding and finer than the rest.
GRID = 2.0**25


@inlined
def on_grid(value):
    return np.rint(value / GRID) * GRID


@inlined
def codeword_value(S, n):
    """max_k S[k]: the best leaf that is a class."""
    best = S[0]
    for k in range(1, n):
        best = max(best, S[k])
    return np.float64(best)


@inlined
def direction_value(S, n):
    """|S| (Euclidean): the best leaf over all unit vectors."""
    total = 0.0
    for k in range(n):
        x = np.float64(S[k])
        total += x * x
    return np.sqrt(total)


@inlined
def least_squares_gain(L, R, n):
    """W_L W_R / (W_L + W_R) |c_L - c_R|^2, c = C / W: the fall in the weighted squared error, without cancellation."""
    W_L = 0.0
    W_R = 0.0
    for k in range(n):
        W_L += np.float64(L[k])
        W_R += np.float64(R[k])
    if W_L == 0.0 or W_R == 0.0:
        return 0.0
    distance = 0.0
    for k in range(n):
        d = np.float64(L[k]) / W_L - np.float64(R[k]) / W_R
        distance += d * d
    return W_L / (W_L + W_R) * W_R * distance


@inlined
def class_stump_value(L, R, n):
    """max_k |R[k] - L[k]|: the best stump and class."""
    best = 0.0
    for k in range(n):
        best = max(best, abs(R[k] - L[k]))
    return best


@inlined
def direction_stump_value(L, R, n):
    """|R - L| (Euclidean)."""
    total = 0.0
    for k in range(n):
        total += (R[k] - L[k]) * (R[k] - L[k])
    return np.sqrt(total)


# The following are of sums (N, P): by class, the weights of the rows to be voted against, then of those to be voted for.


@inlined
def votes_value(S, n):
    """sum_k |P[k] - N[k]|: the best vote of -1 or +1 for each class."""
    half = n // 2
    total = 0.0
    for k in range(half):
        total += abs(np.float64(S[half + k]) - np.float64(S[k]))
    return total


@inlined
def votes_stump_value(L, R, n):
    """sum_k |(P - N)_R[k] - (P - N)_L[k]|: the best votes that one stump turns round."""
    half = n // 2
    total = 0.0
    for k in range(half):
        total += abs((R[half + k] - R[k]) - (L[half + k] - L[k]))
    return total


@inlined
def real_votes_value(S, n):
    """-2 sum_k sqrt(P[k] N[k]): less the loss after the best real-valued votes."""
    half = n // 2
    total = 0.0
    for k in range(half):
        total += np.sqrt(np.float64(S[k]) * np.float64(S[half + k]))
    return -2.0 * total


@inlined
def whole_tree_value(L, R, n, context):
    """-2 sum_k sqrt(right[k] wrong[k]), of the better of the two stumps on these sides with the context's leaves beside it.

    A leaf of sign + is right about P and wrong about N; context holds what the other leaves are right and wrong about and, in
    its last column, what the tree is worth unsplit.
    """
    half = n // 2
    rising, falling = 0.0, 0.0
    for k in range(half):
        right, wrong = context[0, k], context[1, k]
        rising += np.sqrt((right + L[k] + R[half + k]) * (wrong + L[half + k] + R[k]))
        falling += np.sqrt((right + L[half + k] + R[k]) * (wrong + L[k] + R[half + k]))
    return -2.0 * min(rising, falling)


@kernel
def pair_values(kind, L, R, m, n, context, out):
    """out[t] = what the two children with sums L[t] and R[t] are worth together."""
    # IN: L, R (candidates, channels) float64: m candidates, n channels are in use; context of WHOLE_TREE
    # OUT: out (candidates,) float64
    if kind == CODEWORD:
        for t in range(m):
            out[t] = on_grid(codeword_value(L[t], n) + codeword_value(R[t], n))
    elif kind == DIRECTION:
        direction_pairs(L, R, m, n, out)
    elif kind == LEAST_SQUARES:
        for t in range(m):
            out[t] = least_squares_gain(L[t], R[t], n)
    elif kind == CLASS_STUMP:
        for t in range(m):
            out[t] = on_grid(class_stump_value(L[t], R[t], n))
    elif kind == DIRECTION_STUMP:
        for t in range(m):
            out[t] = direction_stump_value(L[t], R[t], n)
    elif kind == VOTES:
        for t in range(m):
            out[t] = on_grid(votes_value(L[t], n) + votes_value(R[t], n))
    elif kind == VOTES_STUMP:
        for t in range(m):
            out[t] = on_grid(votes_stump_value(L[t], R[t], n))
    elif kind == REAL_VOTES:
        for t in range(m):
            out[t] = real_votes_value(L[t], n) + real_votes_value(R[t], n)
    else:
        for t in range(m):
            out[t] = whole_tree_value(L[t], R[t], n, context)


@inlined
def direction_pairs(L, R, m, n, out):
    """|L| + |R|; the roots are taken several at a time."""
    for t in range(m):
        left, right = 0.0, 0.0
        for k in range(n):
            left += L[t, k] * L[t, k]
            right += R[t, k] * R[t, k]
        L[t, 0], R[t, 0] = left, right
    for t in range(m):
        out[t] = np.sqrt(L[t, 0]) + np.sqrt(R[t, 0])


NOISE = 2.0**-40


@kernel
def own_value(kind, S, n, context):
    """What a node is worth unsplit, and below which improvement a split is rounding noise.

    |L| + |R| exceeds |L + R| by a few units of the last digit even where L and R are parallel; so do sums of roots.
    """
    if kind == CODEWORD:
        return on_grid(codeword_value(S, n)), 0.0
    if kind == DIRECTION:
        value = direction_value(S, n)
        return value, value * NOISE
    if kind == VOTES:
        return on_grid(votes_value(S, n)), 0.0
    if kind == REAL_VOTES:
        value = real_votes_value(S, n)
        return value, -value * NOISE
    if kind == WHOLE_TREE:
        value = context[0, n // 2]
        return value, -value * NOISE
    return 0.0, 0.0
