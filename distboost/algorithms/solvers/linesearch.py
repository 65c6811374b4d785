"""Exact line searches along a tree: the step that minimises an exponential or a logistic risk.

The slope of the risk is P - N. N is the falling part, from pairs of a row and a class that the tree gets right; P is the rising
part, from pairs that it gets wrong. Pairs of equal values do not change the risk. At the best step, N = P. As a function of the
step, ln N - ln P is nearly linear (exactly, if the risk is exponential and all margins have the same size, as in AdaBoost), so
Newton's method finds its zero in few steps.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from distboost.kernels import margin
from distboost.rows.messages import Rows
from distboost.rows.sums import spread
from distboost.weights.margin import LineSides, MarginWeights
from distboost.weights.softmax import SoftmaxSlopes

# The largest number of Newton steps where each costs a pass over the rows. About 5 reach the last digit.
NEWTON = 12

# Where `zero_of_many` looks first, in parts of the largest step, and then, in an interval from -1 to 1.
FIRST = np.append(0.0, 2.0 ** np.arange(-6, 1))
CHEBYSHEV = np.cos(np.pi * (np.arange(8) + 0.5) / 8)[::-1]

# The largest number of interpolations, each but the last followed by a pass over the rows. Mostly 2.
BATCHES = 6


class BestStep(NamedTuple):
    """The best step; `unbounded` if the risk falls to 0 beyond the limit, where the step was cut off."""

    step: float
    unbounded: bool


def exact_step(T: np.ndarray, V: np.ndarray, s: float, limit: float) -> BestStep:
    """argmin over α >= 0 of sum T[l, y, k] exp(-s α (V[l, y] - V[l, k])), to the last digit.

    Parameters
    ----------
    T : ndarray of shape (leaves, K, K)
        Sums of e[i, k] over the rows of class y in leaf l.
    V : ndarray of shape (leaves, K)
        The leaves' values; their sum over classes is 0.
    s : float
        The margin scale.
    limit : float
        The largest exponent s α (V[l, y] - V[l, k]) that a step may reach.
    """

    def balance(α: float) -> tuple[float, float]:
        sides = np.zeros(4)
        margin.table_sides(T, V, s, α, sides)
        value, slope = _balance(*sides.tolist())
        return value, -s * slope

    width = spread(V)
    step = _zero(balance, limit / (s * width) if width > 0 else 0.0, 100)
    if not step.unbounded:
        return step
    flat = T[V[:, :, None] == V[:, None, :]].sum()
    return BestStep(step.step, bool(flat == 0))


def exact_step_over_rows(
    rows: Rows, leaves: np.ndarray, V: np.ndarray, weighting: MarginWeights, limit: float
) -> BestStep:
    """`exact_step` for problems whose K x K table per leaf would be too large.

    Each evaluation is a reduction over the rows; there are at most 2 + NEWTON.
    """
    s = weighting.s
    width = spread(V)
    flat = 0.0

    def balance(α: float) -> tuple[float, float]:
        nonlocal flat
        *sides, flat = rows.sums(LineSides(weighting, V, α), leaves).tolist()
        value, slope = _balance(*sides)
        # The reduction divides P by e^(s α width) and differences of values by width.
        return value - s * α * width, -s * width * slope

    step = _zero(balance, limit / (s * width) if width > 0 else 0.0, NEWTON)
    return BestStep(step.step, step.unbounded and flat == 0)


def step_by_slopes(
    rows: Rows,
    leaves: np.ndarray,
    V: np.ndarray,
    of: type[SoftmaxSlopes],
    limit: float,
    longest: float = np.inf,
) -> BestStep:
    """argmin over 0 <= α <= longest of the risk of the scores F + α V: see `exact_step_over_rows`.

    `of`: the reduction that gives the risk's slope, after eight steps.
    """
    width = spread(V)
    if width == 0:
        return BestStep(0.0, False)
    mixed = 0.0

    def slopes(steps: np.ndarray) -> np.ndarray:
        nonlocal mixed
        reduction = of(V, steps)
        *found, mixed = rows.sums(reduction, leaves)
        real: np.ndarray = np.array(found) * np.exp(reduction.logs(rows.shift_of(reduction)))
        return real

    step = zero_of_many(slopes, min(limit / width, longest))
    return BestStep(step.step, step.unbounded and step.step < longest and mixed == 0)


def _balance(N: float, dN: float, P: float, dP: float) -> tuple[float, float]:
    """ln(N / P) and minus its slope, dN / N + dP / P. The logarithm is infinite if P is 0, minus infinity if N is 0."""
    slope = (dN / N if N > 0 else 0.0) + (dP / P if P > 0 else 0.0)
    if N <= 0:
        return -np.inf, slope
    return float(np.log(N) - np.log(P)) if P > 0 else np.inf, slope


def _zero(balance: Callable[[float], tuple[float, float]], largest: float, iterations: int) -> BestStep:
    """The zero in [0, largest] of a decreasing function, by Newton's method inside a shrinking bracket.

    `balance` returns the function's value and slope.
    """
    if largest == 0.0:
        return BestStep(0.0, False)
    value, slope = balance(0.0)
    if value <= 0:
        return BestStep(0.0, False)
    low, high, α = 0.0, np.inf, 0.0
    for _ in range(iterations):
        following = α - value / slope if slope < 0 else np.inf
        if following >= largest and high == np.inf:
            # The zero may be beyond the end.
            following = largest
        elif not low <= following <= high:
            following = (low + high) / 2
        # Newton's method squares the relative error: the next step would be below rounding.
        last = abs(following - α) <= 1e-9 * α
        α = following
        if last:
            break
        value, slope = balance(α)
        if value > 0:
            low = α
        else:
            high = α
        if low == largest:
            return BestStep(largest, True)
    return BestStep(float(α), False)


def zero_of_many(values: Callable[[np.ndarray], np.ndarray], largest: float) -> BestStep:
    """The zero in [0, largest] of an increasing function that is evaluated at eight points at once.

    The first points are a power of two apart. Then the zero of the polynomial through the points around it is the middle of the
    next eight, which lie as closely as the polynomial is exact. The function is analytic, so that the second time is mostly the
    last.
    """
    x = largest * FIRST
    y = values(x)
    if y[0] >= 0:
        return BestStep(0.0, False)
    if y[-1] <= 0:
        return BestStep(largest, True)
    for _ in range(BATCHES):
        after = int(np.argmax(y > 0))
        coarse, α = (_interpolated_zero(x, y, after, n) for n in (6, 8))
        error = abs(α - coarse)
        if error <= 1e-10 * α:
            break
        # The polynomials agree more closely than either of them is exact.
        radius = max(4 * error, 1e-4 * α)
        low, high = max(x[after - 1], α - radius), min(x[after], α + radius)
        following = (low + high) / 2 + (high - low) / 2 * CHEBYSHEV
        x, y = np.append(x, following), np.append(y, values(following))
        order = np.argsort(x)
        x, y = x[order], y[order]
    return BestStep(α, False)


def _interpolated_zero(x: np.ndarray, y: np.ndarray, after: int, n: int) -> float:
    """The zero between x[after - 1] and x[after] of the polynomial through the n points around them."""
    first = min(max(after - n // 2, 0), len(x) - n)
    nodes, values = x[first : first + n].tolist(), y[first : first + n].tolist()

    def polynomial(at: float) -> float:
        """Neville's scheme, which has the given values' signs at the nodes whatever the rounding."""
        p = values
        for distance in range(1, n):
            p = [
                ((at - a) * right - (at - b) * left) / (b - a)
                for a, b, (left, right) in zip(nodes, nodes[distance:], pairwise(p), strict=False)
            ]
        return float(p[0])

    return float(brentq(polynomial, x[after - 1], x[after], xtol=1e-300, rtol=4 * np.finfo(float).eps))
