"""Exact line searches along a tree: the step that minimises an exponential risk.

The slope of the risk is P - N. N is the falling part, from pairs of a row and a class that the tree gets right; P is the rising
part, from pairs that it gets wrong. Pairs of equal values do not change the risk. At the best step, N = P. As a function of the
step, ln N - ln P is nearly linear (exactly, if all margins have the same size, as in AdaBoost), so Newton's method finds its
zero in few steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distboost.kernels import margin
from distboost.rows.interface import Rows
from distboost.weights.margin import LineSides, MarginWeights

# The largest number of Newton steps where each costs a pass over the rows. About 5 reach the last digit.
NEWTON = 12


class Step(NamedTuple):
    """The best step; `unbounded` if the risk falls to 0 beyond the limit, where the step was cut off."""

    step: float
    unbounded: bool


def exact_step(T: np.ndarray, V: np.ndarray, s: float, limit: float) -> Step:
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
        N, dN, P, dP = sides
        return _log_ratio(N, P), -s * (_ratio(dN, N) + _ratio(dP, P))

    width = _width(V)
    step = _zero(balance, limit / (s * width) if width > 0 else 0.0, 100)
    flat = T[V[:, :, None] == V[:, None, :]].sum()
    return Step(step.step, step.unbounded and flat == 0)


def exact_step_over_rows(
    rows: Rows, leaves: np.ndarray, V: np.ndarray, weighting: MarginWeights, limit: float
) -> Step:
    """`exact_step` for problems whose K x K table per leaf would be too large.

    Each evaluation is a reduction over the rows; there are at most 2 + NEWTON.
    """
    s = weighting.s
    width = _width(V)
    flat = 0.0

    def balance(α: float) -> tuple[float, float]:
        nonlocal flat
        N, dN, P, dP, flat = rows.sums(LineSides(weighting, V, α), leaves)
        # The reduction divides P by e^(s α width) and differences of values by width.
        return _log_ratio(N, P) - s * α * width, -s * width * (_ratio(dN, N) + _ratio(dP, P))

    step = _zero(balance, limit / (s * width) if width > 0 else 0.0, NEWTON)
    return Step(step.step, step.unbounded and flat == 0)


def _width(V: np.ndarray) -> float:
    """The largest difference between two values of one leaf."""
    return float((V.max(axis=1) - V.min(axis=1)).max(initial=0.0))


def _log_ratio(N: float, P: float) -> float:
    """ln(N / P); infinite if P is 0, minus infinity if N is 0."""
    if N <= 0:
        return -np.inf
    return float(np.log(N) - np.log(P)) if P > 0 else np.inf


def _ratio(a: float, b: float) -> float:
    """a / b; 0 if b is 0."""
    return float(a / b) if b > 0 else 0.0


def _zero(balance: Callable[[float], tuple[float, float]], largest: float, iterations: int) -> Step:
    """The zero in [0, largest] of a decreasing function, by Newton's method inside a shrinking bracket.

    `balance` returns the function's value and slope.
    """
    if largest == 0.0:
        return Step(0.0, False)
    value, slope = balance(0.0)
    if value <= 0:
        return Step(0.0, False)
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
            return Step(largest, True)
    return Step(float(α), False)
