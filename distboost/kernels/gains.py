"""What a split is worth, from the sums of its two sides: value(L, R) - value(parent) is its gain.

Sums are integers, so a value is the same wherever and in whatever order they were added, and ties are exact.

A gain is one definition, here or in any other module: a function of the sums, decorated with `of_sides` or `of_split`, or a
`Gain` of two kernels. The search for the best split is compiled for each gain that is used.
"""

# ruff: noqa: N802 (a decorated function is a constant)

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from distboost.kernels._jit import compiled, inlined

NO_CONTEXT = np.zeros((2, 1))

# Sums of few different weights are often equal but for the rounding of each weight. Values that are linear in the sums are
# compared on this grid: of wide statistics, whose sums use up to 2^61, it is coarser than the rounding and finer than the rest.
GRID = 2.0**25

# |L| + |R| exceeds |L + R| by a few units of the last digit even where L and R are parallel; so do sums of roots. A split that
# improves on its node by less than this fraction of the node's value is rounding noise.
NOISE = 2.0**-40


class Gain:
    """How splits are compared: what the two sides of a split are worth, less what the node is worth unsplit.

    A gain is a constant of its module. It is pickled by name.

    Parameters
    ----------
    name, module : str
        Of the constant.
    pair_values : compiled function
        pair_values(L, R, m, n, context, out) sets out[t] to the value of the split with sums L[t] and R[t], for t < m. L and R
        (candidates, channels) float64 may be written to; their first n channels are sums of the statistic. `context` (2, k)
        float64 is what `Rows.best_split` was given. out: (candidates,) float64.
    own_value : compiled function
        own_value(S, n, context) returns the value of a node with sums S, (channels,) int64, unsplit, and the largest improvement
        that is rounding noise.
    source : function
        The file of this Python function, and those beside it, are what the gain is compiled from.
    """

    def __init__(self, name: str, module: str, pair_values: Any, own_value: Any, source: Callable[..., Any]):
        self.__name__: str = name
        self.__module__ = module
        self.__doc__ = source.__doc__
        self.pair_values, self.own_value, self.source = pair_values, own_value, source

    def __repr__(self) -> str:
        return f"{self.__module__}.{self.__name__}"

    def __reduce__(self) -> str:
        if getattr(sys.modules.get(self.__module__), self.__name__, None) is not self:
            raise TypeError(
                f"{self!r} cannot be pickled: a gain must be a constant of the module that defines it"
            )
        name: str = self.__name__
        return name


@inlined
def on_grid(value):
    return np.rint(value / GRID) * GRID


def of_sides(*, grid: bool = False, noise: float = 0.0) -> Callable[[Callable[..., Any]], Gain]:
    """Make a gain of a function value(S, n) of n sums: a split is worth value(L, n) + value(R, n).

    Parameters
    ----------
    grid : bool, default=False
        Compare values on `GRID`. For values that are linear in the sums of wide statistics.
    noise : float, default=0.0
        The improvement, as a fraction of the node's value, that a split must exceed: `NOISE` for sums of roots.

    Returns
    -------
    decorator : callable
        Turns the function into the `Gain` of its name.

    Examples
    --------
    >>> @of_sides()
    ... def SQUARES(S, n):
    ...     return (S[:n] * S[:n]).sum()
    >>> SQUARES.own_value(np.array([3, 4]), 2, NO_CONTEXT)
    (25.0, 0.0)
    """

    def decorate(function: Callable[..., Any]) -> Gain:
        value = inlined(function)

        @compiled
        def pair_values(L, R, m, n, context, out):
            for t in range(m):
                out[t] = np.float64(value(L[t], n)) + np.float64(value(R[t], n))

        @compiled
        def pair_values_on_grid(L, R, m, n, context, out):
            for t in range(m):
                out[t] = on_grid(value(L[t], n) + value(R[t], n))

        @compiled
        def own_value(S, n, context):
            own = np.float64(value(S, n))
            return own, abs(own) * noise

        @compiled
        def own_value_on_grid(S, n, context):
            return on_grid(np.float64(value(S, n))), 0.0

        pairs, own = (pair_values_on_grid, own_value_on_grid) if grid else (pair_values, own_value)
        return Gain(function.__name__, function.__module__, pairs, own, function)

    return decorate


def of_split(*, grid: bool = False) -> Callable[[Callable[..., Any]], Gain]:
    """Make a gain of a function value(L, R, n) of both sides' n sums, which is the gain itself: no split is worth 0.

    Parameters
    ----------
    grid : bool, default=False
        Compare values on `GRID`. For values that are linear in the sums of wide statistics.

    Returns
    -------
    decorator : callable
        Turns the function into the `Gain` of its name.
    """

    def decorate(function: Callable[..., Any]) -> Gain:
        value = inlined(function)

        @compiled
        def pair_values(L, R, m, n, context, out):
            for t in range(m):
                out[t] = value(L[t], R[t], n)

        @compiled
        def pair_values_on_grid(L, R, m, n, context, out):
            for t in range(m):
                out[t] = on_grid(value(L[t], R[t], n))

        pairs = pair_values_on_grid if grid else pair_values
        return Gain(function.__name__, function.__module__, pairs, nothing_unsplit, function)

    return decorate


@compiled
def nothing_unsplit(S, n, context):
    return 0.0, 0.0


@of_sides(grid=True)
def CODEWORD(S, n):
    """max_k S[k]: the best leaf that is a class."""
    best = S[0]
    for k in range(1, n):
        best = max(best, S[k])
    return best


@inlined
def direction_value(S, n):
    """|S| (Euclidean): the best leaf over all unit vectors."""
    total = 0.0
    for k in range(n):
        x = np.float64(S[k])
        total += x * x
    return np.sqrt(total)


@compiled
def direction_pairs(L, R, m, n, context, out):
    """|L| + |R|; the roots are taken several at a time."""
    for t in range(m):
        left, right = 0.0, 0.0
        for k in range(n):
            left += L[t, k] * L[t, k]
            right += R[t, k] * R[t, k]
        L[t, 0], R[t, 0] = left, right
    for t in range(m):
        out[t] = np.sqrt(L[t, 0]) + np.sqrt(R[t, 0])


@compiled
def direction_unsplit(S, n, context):
    value = direction_value(S, n)
    return value, value * NOISE


DIRECTION = Gain("DIRECTION", __name__, direction_pairs, direction_unsplit, direction_value.py_func)


@of_split()
def LEAST_SQUARES(L, R, n):
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


@of_split(grid=True)
def CLASS_STUMP(L, R, n):
    """max_k |R[k] - L[k]|: the best stump and class."""
    best = 0.0
    for k in range(n):
        best = max(best, abs(R[k] - L[k]))
    return best


@of_split()
def DIRECTION_STUMP(L, R, n):
    """|R - L| (Euclidean)."""
    total = 0.0
    for k in range(n):
        total += (R[k] - L[k]) * (R[k] - L[k])
    return np.sqrt(total)


# The following are of sums (N, P): by class, the weights of the rows to be voted against, then of those to be voted for.


@of_sides(grid=True)
def VOTES(S, n):
    """sum_k |P[k] - N[k]|: the best vote of -1 or +1 for each class."""
    half = n // 2
    total = 0.0
    for k in range(half):
        total += abs(np.float64(S[half + k]) - np.float64(S[k]))
    return total


@of_split(grid=True)
def VOTES_STUMP(L, R, n):
    """sum_k |(P - N)_R[k] - (P - N)_L[k]|: the best votes that one stump turns round."""
    half = n // 2
    total = 0.0
    for k in range(half):
        total += abs((R[half + k] - R[k]) - (L[half + k] - L[k]))
    return total


@of_sides(noise=NOISE)
def REAL_VOTES(S, n):
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


@compiled
def whole_tree_pairs(L, R, m, n, context, out):
    for t in range(m):
        out[t] = whole_tree_value(L[t], R[t], n, context)


@compiled
def whole_tree_unsplit(S, n, context):
    value = context[0, n // 2]
    return value, -value * NOISE


WHOLE_TREE = Gain("WHOLE_TREE", __name__, whole_tree_pairs, whole_tree_unsplit, whole_tree_value.py_func)
