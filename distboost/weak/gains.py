"""What a node is worth, from its sums: value(L) + value(R) - value(parent) is the gain of a split.

Sums are integers, so a value is the same wherever and in whatever order they were added, and ties are exact.
"""

import numpy as np

from distboost.kernels._jit import inlined, kernel

# The kinds of value. A new one is a constant here, its function below, and a line in `pair_values` and `own_value`.
CODEWORD, DIRECTION, LEAST_SQUARES = 0, 1, 2


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


@kernel
def pair_values(kind, L, R, m, n, out):
    """out[t] = what the two children with sums L[t] and R[t] are worth together."""
    # IN: L, R (candidates, channels) float64: m candidates, n channels are in use
    # OUT: out (candidates,) float64
    if kind == CODEWORD:
        for t in range(m):
            out[t] = codeword_value(L[t], n) + codeword_value(R[t], n)
    elif kind == DIRECTION:
        direction_pairs(L, R, m, n, out)
    else:
        for t in range(m):
            out[t] = least_squares_gain(L[t], R[t], n)


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


@kernel
def own_value(kind, S, n):
    """What a node is worth unsplit, and below which improvement a split is rounding noise.

    |L| + |R| exceeds |L + R| by a few units of the last digit even where L and R are parallel.
    """
    if kind == CODEWORD:
        return codeword_value(S, n), 0.0
    if kind == DIRECTION:
        value = direction_value(S, n)
        return value, value * 2.0**-40
    return 0.0, 0.0
