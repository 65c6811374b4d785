"""The coefficients of stage-wise multiclass boosting (Paisitkriangkrai, Shen & van den Hengel), solved to the optimum.

A weak learner h in {-1, +1} adds h(x_i) w_r to a row's scores. Its coefficients w minimise

    log sum_{i,r} E[i, r] exp(-h_i (w_y - w_r)) + nu |w|_1,  w >= 0        (eq. 13, exponential loss)
    sum_{i,r} log(1 + E[i, r] exp(-h_i (w_y - w_r))) + nu |w|_1,  w >= 0   (eq. 14, logistic loss)

where y = y_i and E[i, r] = exp(-(F[i, y] - F[i, r])). Only differences of w matter to the losses, so that w >= 0 takes nothing
from the weak learners: any w may be shifted until its smallest entry is 0, which is also what nu > 0 asks for. For nu = 0 it is
the choice among equals. With K = 2 and nu = 0, w_1 - w_0 of a learner that says +1 for class 1 is AdaBoost's
alpha = 1/2 ln((1 - eps) / eps) of eq. 16.

Rows of class a with h = +1, seen against class b, have the margin w_a - w_b, and so have rows of class b with h = -1, seen
against class a. Both losses are therefore sums over ordered pairs (a, b) of convex functions of w_a - w_b; their Hessians are
Laplacians of a weighted graph of the classes, positive definite but for the shift of a component of that graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.fft import dct
from scipy.sparse.csgraph import connected_components

# Chebyshev interpolation on [-RADIUS, RADIUS]. The poles of u(d) = E e^-d / (1 + E e^-d), at d = ln E +- i pi and on, are
# simple and lie on or outside the Bernstein ellipse of
#     rho = pi / RADIUS + sqrt(1 + (pi / RADIUS)^2).
# The residues of the nearest two bound the error at NODES points by 4 / pi rho^-NODES: 8.5e-11. It is below 1e-9 u(d) too,
# however small u(d) may be. A radius of 1.5 with 15 points or of 1 with 12 costs as many divisions: it takes more passes.
RADIUS = 2.0
NODES = 19
POINTS = RADIUS * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)

# Passes over the rows, at the most; more than 3 are rare. Past the extrapolations, each starts at the minimum that the last one
# found, so that the loss falls.
PASSES = 100
EXTRAPOLATIONS = 10

# Along a change of the differences of w by a, a sum of exponentials or of logistic losses bends at most e^a times as much as
# at its start. Newton's step, cut to a = 1, therefore lowers it by 1 - (e - 2) of the decrement at least: no line search.
LARGEST_CHANGE = 1.0
NEWTON = 200

# The error left by a Newton step of this size is its square.
SMALL = 1e-9
ROUNDING = 64 * np.finfo(float).eps


class Coefficients(NamedTuple):
    w: np.ndarray  # (K,) float64, the smallest 0
    unbounded: bool  # the loss falls on beyond the limit: w was cut off
    passes: int  # evaluations over the rows


class _Derivatives(NamedTuple):
    """Of a loss without its l1 norm; the gradient is rise - fall."""

    fall: np.ndarray  # (K,), >= 0
    rise: np.ndarray  # (K,), >= 0
    hessian: np.ndarray  # (K, K)


class _Box(NamedTuple):
    lower: np.ndarray  # (K,)
    upper: np.ndarray  # (K,)


def exponential_coefficients(T: np.ndarray, constant: float, nu: float, limit: float) -> Coefficients:
    """argmin over w in [0, limit]^K of log(constant + sum T[h, y, r] exp(-h (w_y - w_r))) + nu sum(w): eq. 13.

    Parameters
    ----------
    T : ndarray of shape (2, K, K)
        Sums of E[i, r] over the rows of class y of which the weak learner says -1 (T[0]) or +1 (T[1]); 0 where r = y.
    constant : float
        The sum of the terms r = y, which w does not change. A factor common to T and `constant` does not matter.
    nu : float
        Weight of the l1 norm.
    limit : float
        The largest coefficient. Where the weak learner makes no error on a class, no finite one is the best.

    Returns
    -------
    Coefficients
        `passes` is 0.
    """
    A = _by_margin(T)
    if not A.any():
        return Coefficients(np.zeros(len(A)), False, 0)
    w = _exponential_minimum(_log(A), np.log(constant) if constant > 0 else -np.inf, nu, limit)
    return _coefficients(w, limit, 0)


def logistic_coefficients(
    evaluate: Callable[[np.ndarray, np.ndarray], np.ndarray], K: int, nu: float, limit: float
) -> Coefficients:
    """argmin over w in [0, limit]^K of sum_{h,y,r} phi_hyr(h (w_y - w_r)) + nu sum(w): eq. 14.

    phi_hyr(d) is the sum of log(1 + E[i, r] e^-d) over the rows of class y with h(x_i) = h. No finite table of sums gives it.
    But it is a smooth function of one number: its slope at a few Chebyshev points, which one pass over the rows finds for all
    h, y and r, tells it everywhere within a radius. A solution farther away takes another pass, from there.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(centre, nodes)`` with arrays of shapes (K,) and (M,) returns U of shape (2, K, K, M): U[h, y, r, m] is the
        sum of u = E[i, r] e^-d / (1 + E[i, r] e^-d) at d = h (centre[y] - centre[r]) + nodes[m] over the rows of class y
        with h(x_i) = h, index 0 for -1 and 1 for +1. What it returns for r = y is ignored.
    K : int
        Number of classes.
    nu, limit : float
        As in `exponential_coefficients`; nu is in the units of U.
    """
    centre, w = np.zeros(K), np.zeros(K)
    for passes in range(1, PASSES + 1):
        U = _by_margin(evaluate(centre, POINTS))
        w, u, inside = _minimum_around(centre, U, nu, limit, w)
        if inside or passes == PASSES:
            break
        if passes <= EXTRAPOLATIONS:
            w = _extrapolated(u, w, nu, limit)
        centre = np.maximum(w - RADIUS / 4, 0.0)
    return _coefficients(w, limit, passes)


def _coefficients(w: np.ndarray, limit: float, passes: int) -> Coefficients:
    # The smallest is at 0 already, to rounding.
    return Coefficients(w - w.min(), bool(_reaches(w, limit).any()), passes)


def _by_margin(T: np.ndarray) -> np.ndarray:
    """Sums over (h, y, r) as sums over the pairs (a, b) of which the margin is w_a - w_b: (+1, a, b) and (-1, b, a)."""
    A = T[1] + np.swapaxes(T[0], 0, 1)
    A[np.diag_indices(len(A))] = 0.0
    return A


def _differences(w: np.ndarray) -> np.ndarray:
    return w[:, None] - w[None, :]


def _derivatives(u: np.ndarray, curvature: np.ndarray) -> _Derivatives:
    """From minus the slope and from the curvature, both >= 0, of every pair's loss as a function of w_a - w_b."""
    hessian = -(curvature + curvature.T)
    hessian[np.diag_indices(len(u))] -= hessian.sum(axis=1)
    return _Derivatives(u.sum(axis=1), u.sum(axis=0), hessian)


def _minimum_around(
    centre: np.ndarray, U: np.ndarray, nu: float, limit: float, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The minimiser in centre + [0, RADIUS]^K, u there, and whether it is that of [0, limit]^K.

    Within that box, all differences of w are within RADIUS of the centre's.
    """
    pairs = _interpolants(U, centre)

    def derivatives(w: np.ndarray) -> _Derivatives:
        return _derivatives(*pairs(w))

    box = _Box(centre, np.minimum(centre + RADIUS, limit))
    w = _minimise(derivatives, nu, box, _components(U.max(axis=-1) > 0), start)
    cut = ((w <= box.lower) & (w > 0)) | (_reaches(w, box.upper) & (box.upper < limit))
    return w, pairs(w)[0], not cut.any()


def _interpolants(U: np.ndarray, centre: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """u and the curvature of every pair's logistic loss, where the differences of w are within RADIUS of the centre's."""
    series = dct(np.moveaxis(U, -1, 0), axis=0) / NODES
    series[0] /= 2
    slope = chebyshev.chebder(series) / RADIUS

    def pairs(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        basis = chebyshev.chebvander(_differences(w - centre) / RADIUS, NODES - 1)
        u = np.einsum("abm,mab->ab", basis, series)
        curvature = -np.einsum("abm,mab->ab", basis[..., :-1], slope)
        # Where every u of a pair is next to 1, the curvature is smaller than its interpolant's error.
        return u, np.maximum(curvature, 1e-8 * u)

    return pairs


def _extrapolated(u: np.ndarray, w: np.ndarray, nu: float, limit: float) -> np.ndarray:
    """The minimiser if every pair's loss went on from here as an exponential.

    A logistic loss has the slope -u and a curvature of at most u. As the exponential has u, this does not go too far.
    """
    log_A = _log(u) + _differences(w)
    # log(constant + sum) is constant + sum / constant where the constant is as large as this.
    log_constant = log_A.max() + 30.0
    return _exponential_minimum(log_A, log_constant, nu * np.exp(-log_constant), limit)


def _exponential_minimum(log_A: np.ndarray, log_constant: float, nu: float, limit: float) -> np.ndarray:
    """argmin over w in [0, limit]^K of log(constant + sum A[a, b] exp(-(w_a - w_b))) + nu sum(w)."""

    def derivatives(w: np.ndarray) -> _Derivatives:
        exponent = log_A - _differences(w)
        largest = max(exponent.max(), log_constant)
        u = np.exp(exponent - largest)
        u /= np.exp(log_constant - largest) + u.sum()  # eq. 11
        fall, rise, hessian = _derivatives(u, u)
        # The same minimum is that of exp(objective) = (constant + sum A exp(..)) exp(nu sum(w)), a sum of exponentials. Its
        # Newton step is better behaved than that of the logarithm, which is flat far from the minimum.
        cross = nu * (rise - fall)
        return _Derivatives(fall, rise, hessian + cross + cross[:, None] + nu * nu)

    K = len(log_A)
    box = _Box(np.zeros(K), np.full(K, limit))
    return _minimise(derivatives, nu, box, _components(log_A > -np.inf), np.zeros(K))


def _log(A: np.ndarray) -> np.ndarray:
    """log, and -inf without a warning at 0."""
    return np.log(A, out=np.full(A.shape, -np.inf), where=A > 0)


def _components(linked: np.ndarray) -> list[np.ndarray]:
    """The sets of classes that have losses between them. In each, w can be shifted."""
    n, label = connected_components(linked, directed=False)
    return [np.flatnonzero(label == c) for c in range(n)]


def _reaches(w: np.ndarray, end: np.ndarray | float) -> np.ndarray:
    return w >= end - SMALL


def _minimise(
    derivatives: Callable[[np.ndarray], _Derivatives],
    nu: float,
    box: _Box,
    components: list[np.ndarray],
    w: np.ndarray,
) -> np.ndarray:
    """argmin of the loss + nu sum(w) in a box, by Newton's method from w.

    It needs no value of the loss, so that it ends at the rounding of the gradient, class by class.
    """
    w = np.clip(w, *box)
    for _ in range(NEWTON):
        fall, rise, hessian = derivatives(w)
        gradient, rounding = rise - fall + nu, ROUNDING * (fall + rise)
        step = _newton_step(gradient, hessian, _Box(box.lower - w, box.upper - w), components, rounding)
        change = np.ptp(step)
        if (np.abs(gradient) <= rounding)[step != 0].all():
            break
        w = np.clip(w + step * (LARGEST_CHANGE / max(change, LARGEST_CHANGE)), *box)
        if change <= SMALL:
            break
    return w


def _newton_step(
    g: np.ndarray, H: np.ndarray, box: _Box, components: list[np.ndarray], rounding: np.ndarray
) -> np.ndarray:
    """argmin of g'd + d'H d / 2 over lower <= d <= upper, where lower <= 0 <= upper.

    The primal-dual active set method (Hintermüller, Ito & Kunisch, 2002): entries that leave the box are fixed at its side,
    entries that are pushed off it are freed. H is an M-matrix but for terms in nu: a few rounds do. Should they go in circles,
    entries change one at a time: that ends for every positive definite H (Murty, 1974).
    """
    lower, upper = box
    # Classes that hang together by links below rounding would be singular too.
    H = H + np.diag(ROUNDING / 4 * np.diag(H) + np.finfo(float).tiny)
    low = (lower == 0) & (g >= -rounding)
    high = (upper == 0) & (g <= rounding) & ~low
    for attempt in range(20 * len(g)):
        d = np.where(low, lower, np.where(high, upper, 0.0))
        free = ~(low | high)
        # A component that is free as a whole is singular: one entry stays, then all go down as far as they can.
        adrift = [c for c in components if free[c].all()]
        for c in adrift:
            free[c[0]] = False
        d[free] = np.linalg.solve(H[np.ix_(free, free)], -(g + H @ d)[free])
        push = g + H @ d
        still_low = (low & (push >= -rounding)) | (free & (d < lower))
        still_high = (high & (push <= rounding)) | (free & (d > upper))
        for c in adrift:
            d[c] -= (d - lower)[c].min()
            still_low[c[np.argmin((d - lower)[c])]] = True
        changed = np.flatnonzero((still_low != low) | (still_high != high))
        if len(changed) == 0:
            break
        if attempt >= len(g):
            changed = changed[-1:]
        low[changed], high[changed] = still_low[changed], still_high[changed]
    return np.clip(d, lower, upper)
