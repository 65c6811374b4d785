"""The coefficients of stage-wise multiclass boosting (Paisitkriangkrai, Shen & van den Hengel), solved to the optimum.

A weak learner h in {-1, +1} adds h(x_i) w_r to a row's scores. Its coefficients w minimise

    log sum_{i,r} E[i, r] exp(-h_i (w_y - w_r)) + nu |w|_1,  w >= 0        (eq. 13, exponential loss)
    sum_{i,r} log(1 + E[i, r] exp(-h_i (w_y - w_r))) + nu |w|_1,  w >= 0   (eq. 14, logistic loss)

where y = y_i and E[i, r] = exp(-(F[i, y] - F[i, r])). The losses depend only on differences of w. So w >= 0 is no restriction:
any w can be shifted until its smallest entry is 0. The minimum for nu > 0 has this form; for nu = 0, it is chosen among all
minima. With K = 2 and nu = 0, w_1 - w_0 of a learner that is +1 for class 1 is AdaBoost's alpha = 1/2 ln((1 - eps) / eps) of
eq. 16.

The margin against class b of a row of class a with h = +1 grows by w_a - w_b. So does the margin against class a of a row of
class b with h = -1. Both losses are therefore sums over ordered pairs (a, b) of convex functions of w_a - w_b. Their Hessians
are Laplacians of a weighted graph of the classes, positive definite except for shifts of a connected component of that graph.
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
# The residues of the nearest two bound the error at NODES points by 4 / pi rho^-NODES: 8.5e-11. The error is below 1e-9 u(d) too,
# however small u(d) is. A radius of 1.5 with 15 points, or of 1 with 12, costs as many divisions in all, because it needs more
# passes.
RADIUS = 2.0
NODES = 19
POINTS = RADIUS * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)

# The largest number of passes over the rows; more than 3 are rare. After the first EXTRAPOLATIONS passes, each starts at the
# minimum that the last one found, so that the loss falls.
PASSES = 100
EXTRAPOLATIONS = 10

# If the differences of w change by at most a, the curvature of a sum of exponentials or of logistic losses grows by a factor of
# at most e^a. Newton's step, cut to a = 1, therefore lowers the sum by at least 1 - (e - 2) of the decrement: no line search is
# needed.
LARGEST_CHANGE = 1.0
NEWTON = 200

# After a Newton step of this size, the error is about its square.
SMALL = 1e-9
ROUNDING = 64 * np.finfo(float).eps


class Coefficients(NamedTuple):
    """The coefficients of a weak learner.

    Attributes
    ----------
    w : ndarray of shape (K,), float64
        The smallest entry is 0.
    unbounded : bool
        The loss still falls at the limit, where w was cut off.
    passes : int
        Evaluations over the rows.
    """

    w: np.ndarray
    unbounded: bool
    passes: int


class _Derivatives(NamedTuple):
    """Derivatives of a loss without its l1 norm: the gradient is rise - fall, both (K,) and >= 0; the Hessian is (K, K)."""

    fall: np.ndarray
    rise: np.ndarray
    hessian: np.ndarray


class _Box(NamedTuple):
    """lower <= w <= upper, both (K,)."""

    lower: np.ndarray
    upper: np.ndarray


def exponential_coefficients(T: np.ndarray, constant: float, nu: float, limit: float) -> Coefficients:
    """argmin over w in [0, limit]^K of log(constant + sum T[h, y, r] exp(-h (w_y - w_r))) + nu sum(w): eq. 13.

    Parameters
    ----------
    T : ndarray of shape (2, K, K)
        Sums of E[i, r] over the rows of class y for which the weak learner is -1 (T[0]) or +1 (T[1]); 0 for r = y.
    constant : float
        The sum of the terms r = y, which do not depend on w. A common factor of T and `constant` does not matter.
    nu : float
        Weight of the l1 norm.
    limit : float
        The largest coefficient. If the weak learner makes no error on a class, the best coefficient is infinite.

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

    phi_hyr(d) is the sum of log(1 + E[i, r] e^-d) over the rows of class y with h(x_i) = h. No finite table of sums determines
    it. But it is a smooth function of one number. One pass over the rows finds its slope at a few Chebyshev points for all h, y
    and r, and interpolation gives it everywhere within a radius. A solution farther away needs another pass, centred there.

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
    # The smallest entry is 0 up to rounding.
    return Coefficients(w - w.min(), bool(_reaches(w, limit).any()), passes)


def _by_margin(T: np.ndarray) -> np.ndarray:
    """Sums over pairs (a, b) whose margin grows by w_a - w_b, (K, K, ...): those over (h, y, r) = (+1, a, b) and (-1, b, a)."""
    A: np.ndarray = T[1] + np.swapaxes(T[0], 0, 1)
    A[np.diag_indices(len(A))] = 0.0
    return A


def _differences(w: np.ndarray) -> np.ndarray:
    """w_a - w_b, (K, K)."""
    differences: np.ndarray = w[:, None] - w[None, :]
    return differences


def _derivatives(u: np.ndarray, curvature: np.ndarray) -> _Derivatives:
    """From each pair's loss as a function of w_a - w_b: u (K, K) is minus its slope; u and the curvature (K, K) are >= 0."""
    hessian = -(curvature + curvature.T)
    hessian[np.diag_indices(len(u))] -= hessian.sum(axis=1)
    return _Derivatives(u.sum(axis=1), u.sum(axis=0), hessian)


def _minimum_around(
    centre: np.ndarray, U: np.ndarray, nu: float, limit: float, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The minimiser w in centre + [0, RADIUS]^K, u at w, and whether w is also the minimiser in [0, limit]^K.

    In that box, no difference of w is farther than RADIUS from that of the centre.
    """
    pairs = _interpolants(U, centre)

    def derivatives(w: np.ndarray) -> _Derivatives:
        return _derivatives(*pairs(w))

    box = _Box(centre, np.minimum(centre + RADIUS, limit))
    w = _minimise(derivatives, nu, box, _components(U.max(axis=-1) > 0), start)
    cut = ((w <= box.lower) & (w > 0)) | (_reaches(w, box.upper) & (box.upper < limit))
    return w, pairs(w)[0], not cut.any()


def _interpolants(U: np.ndarray, centre: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """A function that gives u and the curvature of each pair's logistic loss at any w in the box of `_minimum_around`."""
    series = dct(np.moveaxis(U, -1, 0), axis=0) / NODES
    series[0] /= 2
    slope = chebyshev.chebder(series) / RADIUS

    def pairs(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        basis = chebyshev.chebvander(_differences(w - centre) / RADIUS, NODES - 1)
        u = np.einsum("abm,mab->ab", basis, series)
        curvature = -np.einsum("abm,mab->ab", basis[..., :-1], slope)
        # If all u of a pair are close to 1, the curvature is smaller than the error of its interpolant.
        return u, np.maximum(curvature, 1e-8 * u)

    return pairs


def _extrapolated(u: np.ndarray, w: np.ndarray, nu: float, limit: float) -> np.ndarray:
    """The minimiser if each pair's loss were an exponential with the same value u of minus its slope at w.

    The curvature of a logistic loss is at most u, that of the exponential is u. So the step is not too long.
    """
    log_A = _log(u) + _differences(w)
    # For a constant this large, log(constant + sum) is log(constant) + sum / constant.
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
        # exp(objective) = (constant + sum A exp(..)) exp(nu sum(w)) has the same minimum and is a sum of exponentials. Newton's
        # method converges faster on it than on its logarithm, which is flat far from the minimum.
        cross = nu * (rise - fall)
        return _Derivatives(fall, rise, hessian + cross + cross[:, None] + nu * nu)

    K = len(log_A)
    box = _Box(np.zeros(K), np.full(K, limit))
    return _minimise(derivatives, nu, box, _components(log_A > -np.inf), np.zeros(K))


def _log(A: np.ndarray) -> np.ndarray:
    """log A, which is -inf at 0, without a warning."""
    logs: np.ndarray = np.log(A, out=np.full(A.shape, -np.inf), where=A > 0)
    return logs


def _components(linked: np.ndarray) -> list[np.ndarray]:
    """The connected components of the classes: a shift of w within one does not change the loss."""
    n, label = connected_components(linked, directed=False)
    return [np.flatnonzero(label == c) for c in range(n)]


def _reaches(w: np.ndarray, end: np.ndarray | float) -> np.ndarray:
    """Which entries of w are at the end, up to the solver's error."""
    return w >= end - SMALL


def _minimise(
    derivatives: Callable[[np.ndarray], _Derivatives],
    nu: float,
    box: _Box,
    components: list[np.ndarray],
    w: np.ndarray,
) -> np.ndarray:
    """argmin of the loss + nu sum(w) in a box, by Newton's method from w.

    It does not use the loss itself. It stops where each entry of the gradient is at its rounding error.
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

    The primal-dual active set method (Hintermüller, Ito & Kunisch, 2002): entries that leave the box are fixed at its boundary,
    entries that the gradient pushes inwards are freed. H is an M-matrix except for terms in nu, so a few iterations suffice. If
    they cycle, entries change one at a time, which ends for every positive definite H (Murty, 1974).
    """
    lower, upper = box
    # Components that are linked only by weights below rounding would make H singular too.
    H = H + np.diag(ROUNDING / 4 * np.diag(H) + np.finfo(float).tiny)
    low = (lower == 0) & (g >= -rounding)
    high = (upper == 0) & (g <= rounding) & ~low
    for attempt in range(20 * len(g)):
        d = np.where(low, lower, np.where(high, upper, 0.0))
        free = ~(low | high)
        # H is singular on a component whose entries are all free: one entry is fixed, then all are shifted down to the boundary.
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
