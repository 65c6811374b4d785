"""Exact line searches along a tree: the step that minimises an exponential risk.

The slope of the risk has a falling part N, of the rows and classes that the tree gets right, and a rising part P, of those
that it gets wrong; where both classes have the same value, the risk stays as it is. The best step makes N and P equal.
ln N - ln P is nearly a straight line in the step (exactly one where all margins are alike, as in AdaBoost), so Newton's method
takes few steps to its zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distboost.kernels import margin
from distboost.rows.interface import Rows
from distboost.weights.margin import LineSides, MarginWeights

# Newton steps, each of which costs a pass where N and P are summed over the rows. About 5 reach the last digit.
NEWTON = 12


class Step(NamedTuple):
    step: float
    unbounded: bool  # the risk falls on beyond it, down to nothing: the step was cut off


def exact_step(T: np.ndarray, V: np.ndarray, s: float, limit: float) -> Step:
    """argmin over α >= 0 of sum T[l, y, k] exp(-s α (V[l, y] - V[l, k])), to the last digit.

    Parameters
    ----------
    T : ndarray of shape (leaves, K, K)
        Sums of e[i, k] over the rows of class y in leaf l.
    V : ndarray of shape (leaves, K)
        The leaves' values, centred over classes.
    s : float
        Margin scale.
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
    """`exact_step` where a K x K table per leaf would be too large.

    Each evaluation is a reduction over the rows: 2 + NEWTON of them at the most.
    """
    s = weighting.s
    width = _width(V)
    flat = 0.0

    def balance(α: float) -> tuple[float, float]:
        nonlocal flat
        N, dN, P, dP, flat = rows.sums(LineSides(weighting, V, α), leaves)
        # P came divided by e^(s α width), distances by width.
        return _log_ratio(N, P) - s * α * width, -s * width * (_ratio(dN, N) + _ratio(dP, P))

    step = _zero(balance, limit / (s * width) if width > 0 else 0.0, NEWTON)
    return Step(step.step, step.unbounded and flat == 0)


def _width(V: np.ndarray) -> float:
    """The largest difference between two values of one leaf."""
    return float((V.max(axis=1) - V.min(axis=1)).max(initial=0.0))


def _log_ratio(N: float, P: float) -> float:
    """ln(N / P): infinite without P, minus infinity without N."""
    if N <= 0:
        return -np.inf
    return float(np.log(N) - np.log(P)) if P > 0 else np.inf


def _ratio(a: float, b: float) -> float:
    return float(a / b) if b > 0 else 0.0


def _zero(balance: Callable[[float], tuple[float, float]], largest: float, iterations: int) -> Step:
    """The zero in [0, largest] of a falling function, by Newton's method kept within a shrinking bracket."""
    if largest == 0.0:
        return Step(0.0, False)
    value, slope = balance(0.0)
    if value <= 0:
        return Step(0.0, False)
    low, high, α = 0.0, np.inf, 0.0
    for _ in range(iterations):
        following = α - value / slope if slope < 0 else np.inf
        if following >= largest and high == np.inf:
            following = largest  # is the zero beyond the end?
        elif not low <= following <= high:
            following = (low + high) / 2
        last = abs(following - α) <= 1e-9 * α  # its error is the square of this one's
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
