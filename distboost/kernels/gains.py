"""The value of a split, from the sums L and R over its two sides. Its gain is value(L, R) - value(parent).

The sums are integers. Hence a value does not depend on where or in which order they were added, and ties are exact.

A gain is defined in one place, here or in any other module: as a function of the sums, decorated with `of_sides` or `of_split`,
or as a `Gain` of two compiled functions. The search for the best split is compiled for each gain in use.
"""

# ruff: noqa: N802 (a decorated function is a constant)

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from distboost.kernels._jit import compiled, inlined
from distboost.kernels.lanes import LANES
from distboost.kernels.memory import floats
from distboost.kernels.simd import add_squares

_LANES = np.uintp(LANES)

NO_CONTEXT = np.zeros((2, 1))


def context_of(constants: tuple[float, ...], mass_channel: int, unit: float) -> np.ndarray:
    """Return the context of a gain with constants, (2, k) float64: these, then the channel of the rows' mass and its unit."""
    context = np.zeros((2, max(len(constants), 2)))
    context[0, : len(constants)], context[1, :2] = constants, (mass_channel, unit)
    return context


# If rows have only a few different weights, the sums of many splits differ only by the rounding of each weight. So values that
# are linear in the sums are rounded to multiples of GRID before they are compared. For wide statistics, whose sums reach 2^61,
# the grid is coarser than the rounding errors, and finer than other differences.
GRID = 2.0**25

# Even if L and R are parallel, the computed |L| + |R| may exceed |L + R| by a few units in the last place. Other sums of roots
# have the same error. An improvement of at most this fraction of the node's value is rounding noise.
NOISE = 2.0**-40


class Gain:
    """Compares splits by the value of their two sides minus the value of the unsplit node.

    A gain is a constant of its module, and it is pickled by name.

    Parameters
    ----------
    name, module : str
        The names of the constant and of its module.
    pair_values : compiled function
        pair_values(L, R, m, n, context, out) sets out[t] to the value of the split with sums L[t] and R[t], for t < m. L and R,
        (candidates, channels) float64, hold n sums of the statistic in their first channels, and may be overwritten. `context`,
        (2, k) float64, is the argument of `Rows.best_split`, or `context_of` the constants in the tree's `SplitRules`. `out` is
        (candidates,) float64.
    own_value : compiled function
        own_value(S, n, context) returns the value of an unsplit node with sums S, (channels,) int64, and the largest improvement
        that counts as rounding noise: two floats.
    source : function
        The Python function that the gain is compiled from. If its file or another one in the same folder changes, the search is
        compiled again.
    degree : int, default=1
        A common factor c of all sums multiplies the gain by c^degree.
    may_exceed : compiled function, optional
        may_exceed(squares, m, n, best) returns whether any of m splits may have a value above `best`. squares, (2, candidates)
        float64, holds |L|^2 and |R|^2, with a relative error of at most (n + 6) 2^-53. It must return True if `pair_values` would
        set a value above `best`, to the last bit, and it must not allocate. It saves the search most values.
    has_signs : bool, default=False
        Whether leaves have signs, and the value is that of the whole tree: see `trees.whole_tree` and `kernels.signed_leaves`.
    """

    def __init__(
        self,
        name: str,
        module: str,
        pair_values: Any,
        own_value: Any,
        source: Callable[..., Any],
        degree: int = 1,
        may_exceed: Any = None,
        has_signs: bool = False,
    ):
        self.__name__: str = name
        self.__module__ = module
        self.__doc__ = source.__doc__
        self.pair_values, self.own_value, self.source = pair_values, own_value, source
        self.degree, self.may_exceed, self.has_signs = degree, may_exceed, has_signs

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
    """Round a value to a multiple of `GRID`."""
    return np.rint(value / GRID) * GRID


def _of(gain: Callable[..., Any]) -> Callable[[Any], Any]:
    """Decorate a function that a gain's search calls, and name it after the gain.

    In the source, these functions have one name for all gains. Numba distinguishes them by counting the functions that a process
    compiles; in code that several processes compiled, the counts may be the same.
    """

    def named(function: Any) -> Any:
        function.__qualname__ = f"{gain.__module__}.{gain.__name__}.{function.__name__}".replace(".", "_")
        return compiled(function)

    return named


def of_sides(*, grid: bool = False, noise: float = 0.0) -> Callable[[Callable[..., Any]], Gain]:
    """Make a gain of a function value(S, n) of the n sums over one side: a split has the value value(L, n) + value(R, n).

    Parameters
    ----------
    grid : bool, default=False
        Round values to multiples of `GRID`. Use it for values that are linear in the sums of wide statistics.
    noise : float, default=0.0
        A split must improve on its node by more than this fraction of the node's value. Use `NOISE` for sums of roots.

    Returns
    -------
    decorator : callable
        Turns the function into a `Gain` of the same name.

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

        @_of(function)
        def pair_values(L, R, m, n, context, out):
            for t in range(m):
                out[t] = np.float64(value(L[t], n)) + np.float64(value(R[t], n))

        @_of(function)
        def pair_values_on_grid(L, R, m, n, context, out):
            for t in range(m):
                out[t] = on_grid(value(L[t], n) + value(R[t], n))

        @_of(function)
        def own_value(S, n, context):
            own = np.float64(value(S, n))
            return own, abs(own) * noise

        @_of(function)
        def own_value_on_grid(S, n, context):
            return on_grid(np.float64(value(S, n))), 0.0

        pairs, own = (pair_values_on_grid, own_value_on_grid) if grid else (pair_values, own_value)
        return Gain(function.__name__, function.__module__, pairs, own, function)

    return decorate


def of_split(*, grid: bool = False) -> Callable[[Callable[..., Any]], Gain]:
    """Make a gain of a function value(L, R, n) of both sides' n sums. It is the gain itself: an unsplit node has the value 0.

    Parameters
    ----------
    grid : bool, default=False
        Round values to multiples of `GRID`. Use it for values that are linear in the sums of wide statistics.

    Returns
    -------
    decorator : callable
        Turns the function into a `Gain` of the same name.
    """

    def decorate(function: Callable[..., Any]) -> Gain:
        value = inlined(function)

        @_of(function)
        def pair_values(L, R, m, n, context, out):
            for t in range(m):
                out[t] = value(L[t], R[t], n)

        @_of(function)
        def pair_values_on_grid(L, R, m, n, context, out):
            for t in range(m):
                out[t] = on_grid(value(L[t], R[t], n))

        pairs = pair_values_on_grid if grid else pair_values
        return Gain(function.__name__, function.__module__, pairs, nothing_unsplit, function)

    return decorate


@compiled
def nothing_unsplit(S, n, context):
    """Return the value 0 for any unsplit node, without noise."""
    return 0.0, 0.0


@of_sides(grid=True)
def CODEWORD(S, n):
    """max_k S[k]: the value of the best leaf that votes for one class."""
    best = S[0]
    for k in range(1, n):
        best = max(best, S[k])
    return best


@of_sides(grid=True)
def PLAUSIBLE(S, n):
    """sum_k max(S[k], 0): the value of the best leaf that votes for any set of classes."""
    total = 0.0
    for k in range(n):
        total += max(np.float64(S[k]), 0.0)
    return total


@inlined
def square(S, n):
    """|S|^2."""
    total = 0.0
    for k in range(n):
        x = np.float64(S[k])
        total += x * x
    return total


@inlined
def squares(L, R, m, n, left, right):
    """Set left[t] = |L[t]|^2 and right[t] = |R[t]|^2, for eight thresholds at a time."""
    left[:] = 0.0
    right[:] = 0.0
    for t in range(np.uintp(0), np.uintp(m), _LANES):
        for c in range(np.uintp(0), np.uintp(n), _LANES):
            add_squares(L, t, c, np.uintp(n), left)
            add_squares(R, t, c, np.uintp(n), right)


@inlined
def direction_value(S, n):
    """|S|, the Euclidean norm: the value of the best leaf among all unit vectors."""
    return np.sqrt(square(S, n))


@compiled
def direction_pairs(L, R, m, n, context, out):
    """Set out[t] = |L[t]| + |R[t]|."""
    right = floats(out.shape[0])
    squares(L, R, m, n, out, right)
    for t in range(m):
        out[t] = np.sqrt(out[t]) + np.sqrt(right[t])


@compiled
def direction_unsplit(S, n, context):
    value = direction_value(S, n)
    return value, value * NOISE


@compiled
def direction_may_exceed(squares, m, n, best):
    """Return whether |L| + |R| may exceed `best` for any of the squares |L|^2, |R|^2."""
    # Let u = 2^-53. All terms are positive, so relative errors add up: (|L| + |R|)^2 as computed here is at most (n + 10) u too
    # small, and the square of a value of `direction_pairs` is at most (n + 6) u too large. The limit allows for 8 (n + 10) u.
    limit = best * best * (1.0 - (n + 10) * 2.0**-50)
    found = False
    for t in range(m):
        left, right = squares[0, t], squares[1, t]
        found |= left + right + 2.0 * np.sqrt(left * right) > limit
    return found


DIRECTION = Gain(
    "DIRECTION",
    __name__,
    direction_pairs,
    direction_unsplit,
    direction_value.py_func,
    may_exceed=direction_may_exceed,
)


@inlined
def newton_value(total, S, context):
    """|S|^2 / (mass + l2), where total = |S|^2: what the best leaf lowers the loss by, if its curvature is that of its mass.

    The mass is the number of rows, or their weight.
    """
    # IN: context (2, k) float64: of the constant l2
    mass = np.float64(S[np.intp(context[1, 0])])
    # The weight of light rows may be rounded to 0.
    return total / (max(mass, 1.0) * context[1, 1] + context[0, 0])


@compiled
def newton_pairs(L, R, m, n, context, out):
    """Set out[t] to the sum of `newton_value` over the two sides."""
    right = floats(out.shape[0])
    squares(L, R, m, n, out, right)
    for t in range(m):
        out[t] = newton_value(out[t], L[t], context) + newton_value(right[t], R[t], context)


@compiled
def newton_unsplit(S, n, context):
    worth = newton_value(square(S, n), S, context)
    return worth, worth * NOISE


NEWTON = Gain("NEWTON", __name__, newton_pairs, newton_unsplit, newton_value.py_func, degree=2)


@of_split()
def LEAST_SQUARES(L, R, n):
    """W_L W_R / (W_L + W_R) |L / W_L - R / W_R|^2: the decrease of the weighted squared error, computed without cancellation.

    L and R are weights summed by class, and W_L and W_R the sums of L and R.
    """
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


@of_split()
def RESPONSES(L, R, n):
    """W_L W_R / (W_L + W_R) (L / W_L - R / W_R)^2: the decrease of the weighted squared error of one response.

    The sums of each side are (w z, w), for the response z and its weight w.
    """
    W_L, W_R = L[1], R[1]
    if W_L <= 0.0 or W_R <= 0.0:
        return 0.0
    d = L[0] / W_L - R[0] / W_R
    return W_L / (W_L + W_R) * W_R * d * d


@inlined
def pair_channel(K, r, s):
    """The channel of the curvature of the classes r and s: see `weights.softmax.PairCurvatures`."""
    high = max(r, s)
    return K + high * (high - 1) // 2 + min(r, s)


@inlined
def best_pair(L, R, K):
    """The class r of largest V[r], and the class s of largest (V[r] - V[s])^2 / C[r, s]; both from the sums of both sides."""
    # On the grid, classes tie whose sums are equal but for the rounding of L + R.
    r, V_r = 0, on_grid(L[0] + R[0])
    for k in range(1, K):
        V_k = on_grid(L[k] + R[k])
        if V_k > V_r:
            r, V_r = k, V_k
    s, best = 0, -1.0
    for k in range(K):
        if k != r:
            pair = pair_channel(K, r, k)
            d, c = V_r - on_grid(L[k] + R[k]), on_grid(L[pair] + R[pair])
            value = d * d / c if c > 0.0 else 0.0
            if value > best:
                s, best = k, value
    return r, s


@of_split()
def CLASS_PAIR(L, R, n):
    """C_L C_R / (C_L + C_R) (V_L / C_L - V_R / C_R)^2, of the slopes V = V[r] - V[s] and curvatures C of one pair of classes.

    The pair (r, s) is the best of the node. This is the loss that Newton's steps for it save on both sides, but for one in the
    node, without cancellation, and times a constant. The sums are those of `weights.softmax.PairCurvatures`.
    """
    K = np.int64((np.sqrt(8.0 * n + 1.0) - 1.0) / 2.0)  # n = K (K + 1) / 2
    r, s = best_pair(L, R, K)
    pair = pair_channel(K, r, s)
    C_L, C_R = L[pair], R[pair]
    if C_L <= 0.0 or C_R <= 0.0:
        return 0.0
    d = (L[r] - L[s]) / C_L - (R[r] - R[s]) / C_R
    return C_L / (C_L + C_R) * C_R * d * d


@of_split(grid=True)
def CLASS_STUMP(L, R, n):
    """max_k |R[k] - L[k]|: the value of the best stump that votes for or against a single class."""
    best = 0.0
    for k in range(n):
        best = max(best, abs(R[k] - L[k]))
    return best


@of_split()
def DIRECTION_STUMP(L, R, n):
    """|R - L|, the Euclidean norm: the value of the best stump among all unit vectors."""
    total = 0.0
    for k in range(n):
        total += (R[k] - L[k]) * (R[k] - L[k])
    return np.sqrt(total)


# The gains below take sums (N, P): for each class, the weight of the rows that need the vote -1, then of those that need +1.


@of_sides(grid=True)
def VOTES(S, n):
    """sum_k |P[k] - N[k]|: the value of the best leaf that votes -1 or +1 for each class."""
    half = n // 2
    total = 0.0
    for k in range(half):
        total += abs(np.float64(S[half + k]) - np.float64(S[k]))
    return total


@of_split(grid=True)
def VOTES_STUMP(L, R, n):
    """sum_k |(P - N)_R[k] - (P - N)_L[k]|: the value of the best stump with votes of -1 or +1, opposite on its two sides."""
    half = n // 2
    total = 0.0
    for k in range(half):
        total += abs((R[half + k] - R[k]) - (L[half + k] - L[k]))
    return total


@of_sides(grid=True)
def LABEL_VOTES(S, n):
    """max_k (P[k] - N[k]): what the best leaf that votes +1 for one class and -1 for all others is worth."""
    half = n // 2
    best = -np.inf
    for k in range(half):
        best = max(best, np.float64(S[half + k]) - np.float64(S[k]))
    return best


@of_sides(noise=NOISE)
def REAL_VOTES(S, n):
    """-2 sum_k sqrt(P[k] N[k]): minus the loss after the best real-valued votes."""
    half = n // 2
    total = 0.0
    for k in range(half):
        total += np.sqrt(np.float64(S[k]) * np.float64(S[half + k]))
    return -2.0 * total


@inlined
def whole_tree_value(L, R, n, context):
    """-2 sum_k sqrt(right[k] wrong[k]): minus the loss of the whole tree after the split, with the better signs of its two sides.

    right and wrong are the weights by class that all leaves together get right and wrong. A leaf of sign + gets P right and N
    wrong, a leaf of sign - gets N right and P wrong. The two sides have opposite signs.
    """
    # IN: L, R (2 K,) float64; context (2, K + 1) float64: the weights that the other leaves get right, then wrong; its last
    #     column holds the value of the tree without the split
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


WHOLE_TREE = Gain(
    "WHOLE_TREE",
    __name__,
    whole_tree_pairs,
    whole_tree_unsplit,
    whole_tree_value.py_func,
    has_signs=True,
)


@inlined
def saved(d, w):
    """d^2 / w, or 0 without rows."""
    return d * d / w if w > 0.0 else 0.0


@inlined
def shared_value(L, R, n, context):
    """The value of a split for the classes that share it and one class more, the best: how much less the squared error is.

    A constant a fitted to rows of weight w and mean label d / w saves d^2 / w: here on each side for the classes that share the
    stump, and once for every other class.
    """
    # IN: L, R (2 K,) float64; context (2, K) float64: whether a class shares the stump, and what a constant of its own saves
    half = n // 2
    d_L, w_L, d_R, w_R, alone = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(half):
        if context[0, k] > 0.0:
            d_L += L[half + k] - L[k]
            w_L += L[half + k] + L[k]
            d_R += R[half + k] - R[k]
            w_R += R[half + k] + R[k]
        else:
            alone += context[1, k]
    best = 0.0
    for k in range(half):
        if context[0, k] == 0.0:
            left = saved(d_L + (L[half + k] - L[k]), w_L + (L[half + k] + L[k]))
            right = saved(d_R + (R[half + k] - R[k]), w_R + (R[half + k] + R[k]))
            best = max(best, left + right + alone - context[1, k])
    return best


@compiled
def shared_pairs(L, R, m, n, context, out):
    for t in range(m):
        out[t] = shared_value(L[t], R[t], n, context)


SHARED_STUMP = Gain("SHARED_STUMP", __name__, shared_pairs, nothing_unsplit, shared_value.py_func)
