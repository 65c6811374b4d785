"""Exact line searches along a tree: the step that minimises an exponential risk."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distboost.rows import Rows
from distboost.weighting import LineSlopes

# Newton steps, each of which costs a pass where the slope is summed over the rows. About 8 reach the last digit.
NEWTON = 12


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
        Tz, TVz, TVVz = ((T @ x[:, :, None])[:, :, 0] for x in (z, V * z, V * V * z))
        first = u * (TVz - V * Tz)
        second = u * (TVVz - 2 * V * TVz + V * V * Tz)
        return s * float(first.sum()), s * s * float(second.sum())

    width = _width(V)
    return _newton(slope, limit / (s * width) if width > 0 else 0.0, 200)


def exact_step_over_rows(rows: Rows, leaves: np.ndarray, V: np.ndarray, s: float, limit: float) -> Step:
    """`exact_step` where a K x K table per leaf would be too large.

    Each slope is a reduction over the rows: 2 + NEWTON of them at the most.
    """
    width = _width(V)

    def slope(α: float) -> tuple[float, float]:
        first, second = rows.sums(LineSlopes(s, V, α), leaves)
        return float(first), s * width * float(second)  # both in units of s * width

    return _newton(slope, limit / (s * width) if width > 0 else 0.0, NEWTON)


def _width(V: np.ndarray) -> float:
    """The largest difference between two values of one leaf."""
    return float((V.max(axis=1) - V.min(axis=1)).max(initial=0.0))


def _newton(slope: Callable[[float], tuple[float, float]], largest: float, iterations: int) -> Step:
    """The zero in [0, largest] of an increasing slope, by Newton's method kept within a shrinking bracket."""
    if largest == 0.0:
        return Step(0.0, False)
    first, second = slope(0.0)
    if first >= 0:
        return Step(0.0, False)
    if slope(largest)[0] <= 0:  # 0: nothing is left of the few terms there are
        return Step(largest, True)
    low, high, α = 0.0, largest, 0.0
    for _ in range(iterations):
        newton = α - first / second if second > 0 else np.inf
        following = newton if low < newton < high else (low + high) / 2
        if following in (low, high) or abs(following - α) <= 1e-16 * α:
            break
        α = following
        first, second = slope(α)
        if first < 0:
            low = α
        else:
            high = α
    return Step(float(α), False)
