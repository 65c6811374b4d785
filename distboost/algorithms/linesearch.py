"""Exact line searches along a tree: the step that minimises an exponential risk."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distboost.rows import Rows
from distboost.weighting import LineSlopes

# Trial steps per pass over the rows, and passes: 16^-5 of the first bracket is left, then one Newton step.
TRIALS, PASSES = 16, 5


class Step(NamedTuple):
    step: float
    unbounded: bool  # the risk falls for ever: the step was cut off


def exact_step(T: np.ndarray, V: np.ndarray, s: float, limit: float) -> Step:
    """argmin over α >= 0 of sum T[l, y, k] exp(-s α (V[l, y] - V[l, k])), to the last digit.

    Parameters
    ----------
    T : ndarray of shape (leaves, K, K)
        Sums of e[i, k] over the rows of class y in leaf l.
    V : ndarray of shape (leaves, K)
        The leaves' values.
    s : float
        Margin scale.
    limit : float
        The largest exponent s α (V[l, y] - V[l, k]) that a step may reach.
    """

    def slope(α: float) -> tuple[float, float]:
        # The exponential factorises: u_l' T_l z_l with u = exp(-s α V), z = exp(s α V).
        u, z = np.exp(-s * α * V), np.exp(s * α * V)
        Tz, TVz, TVVz = ((T @ (V**p * z)[:, :, None])[:, :, 0] for p in (0, 1, 2))
        first = u * (TVz - V * Tz)
        second = u * (TVVz - 2 * V * TVz + V * V * Tz)
        return s * float(first.sum()), s * s * float(second.sum())

    width = float((V.max(axis=1) - V.min(axis=1)).max(initial=0.0))
    return _newton(slope, limit / (s * width) if width > 0 else 0.0)


def _newton(slope: Callable[[float], tuple[float, float]], largest: float) -> Step:
    """The zero in [0, largest] of an increasing slope, by Newton's method kept within a shrinking bracket."""
    if largest == 0.0 or slope(0.0)[0] >= 0:
        return Step(0.0, False)
    if slope(largest)[0] < 0:
        return Step(largest, True)
    low, high, α = 0.0, largest, 0.0
    for _ in range(200):
        first, second = slope(α)
        if first < 0:
            low = α
        else:
            high = α
        newton = α - first / second if second > 0 else np.inf
        following = newton if low < newton < high else (low + high) / 2
        if following in (α, low, high) or abs(following - α) <= 1e-16 * α:
            return Step(float(following), False)
        α = following
    return Step(float(α), False)


def exact_step_over_rows(rows: Rows, leaves: np.ndarray, V: np.ndarray, s: float, limit: float) -> Step:
    """`exact_step` where a K x K table per leaf would be too large: PASSES + 2 reductions over the rows at the most."""
    width = float((V.max(axis=1) - V.min(axis=1)).max(initial=0.0))
    if width == 0.0:
        return Step(0.0, False)
    low, high = 0.0, limit / (s * width)
    for number in range(PASSES):
        trials = np.linspace(low, high, TRIALS + 1)
        if number:
            trials = trials[1:-1]  # the ends are known
        slopes = rows.sums(LineSlopes(s, V, trials), leaves)[:, 1]
        if number == 0 and slopes[0] >= 0:
            return Step(0.0, False)
        if number == 0 and slopes[-1] < 0:
            return Step(high, True)
        rising = int(np.searchsorted(slopes >= 0, True))
        low = trials[rising - 1] if rising > 0 else low
        high = trials[rising] if rising < len(trials) else high
    α = (low + high) / 2
    _, first, second = rows.sums(LineSlopes(s, V, np.array([α])), leaves)[0]
    # The sums are in units of the largest exponent difference.
    newton = α - first / (second * s * width) if second > 0 else α
    return Step(float(min(max(newton, low), high)), False)
