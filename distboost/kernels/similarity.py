"""Localized similarities (Appel & Perona 2017): how similar a row is to one point, or to one point rather than to another.

Squared distances are summed feature by feature, in the features' order. A coordinate that is missing on either side adds nothing.
All values are in [-1, 1]. Training and prediction call the same functions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.exponential import exp
from distboost.kernels.simd import LANES, add_rounded_lanes

CONSTANT, ONE_POINT, TWO_POINT = 0, 1, 2

_PEAK: float = (4 / 3) ** 0.25 / (16 / 3)  # the largest value of t / (4 + t^4), at t^4 = 4/3

# [-1, 1] is divided into PIECES of equal length; t in [-1, 1] is the position of a value f in its piece. With the Chebyshev
# polynomials T_m, the sums of w T_m(t) in every piece determine the sum of w exp(a f) for any a: within a piece, exp(a f) equals
# its interpolation polynomial in TERMS Chebyshev nodes up to a relative 1e-13, for |a| <= 14, which bounds the steps
# (`algorithms.rebel.LARGEST_STEP`).
PIECES, TERMS = 8, 16
_NODES = np.array([math.cos(math.pi * (p + 0.5) / TERMS) for p in range(TERMS)])
_COSINES = np.array([[math.cos(math.pi * m * (p + 0.5) / TERMS) for p in range(TERMS)] for m in range(TERMS)])

# Numbers are rounded to multiples of 2^-GRID_BITS before they are added as floats, over rows whose weights sum to at most _TILE.
# In units of 2^-GRID_BITS these sums stay below 2^53, and so are exact.
GRID_BITS = 45
_TILE = 2.0**8

# In `dropped`: the row is still in the search.
_REMAINS = 2**31 - 1


class SimilarityArrays(NamedTuple):
    """T similarities as the kernels read them.

    Attributes
    ----------
    kind : ndarray of shape (T,), int8
    centre : ndarray of shape (T, D)
        The point, or the midpoint of the two points; NaN where a coordinate is missing.
    direction : ndarray of shape (T, D)
        Half the difference of the first point and the second.
    size : ndarray of shape (T,)
        tau, or the squared length of the direction.
    """

    kind: np.ndarray
    centre: np.ndarray
    direction: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, kind: np.ndarray, anchors: np.ndarray, tau: np.ndarray) -> SimilarityArrays:
        """From kinds (T,), points (T, 2, D) and tau (T,)."""
        two = kind == TWO_POINT
        centre = np.where(two[:, None], (anchors[:, 0] + anchors[:, 1]) / 2, anchors[:, 0])
        direction = np.where(two[:, None] & ~np.isnan(centre), (anchors[:, 0] - anchors[:, 1]) / 2, 0.0)
        size = np.array(tau, np.float64)
        for t in np.flatnonzero(two):
            size[t] = squared_distance(direction[t], np.zeros(direction.shape[1]))
        return cls(kind, centre, direction, size)


@kernel
def squared_distance(x, z):
    """|x - z|^2, over the coordinates that neither lacks."""
    total = 0.0
    for d in range(x.shape[0]):
        delta = np.float64(x[d]) - z[d]
        if delta != delta:
            delta = 0.0
        total += delta * delta
    return total


@inlined
def similarity(x, kind, centre, direction, size):
    """The similarity of a row x; the constant is 1."""
    along, squared = 0.0, 0.0
    for d in range(x.shape[0]):
        delta = np.float64(x[d]) - centre[d]
        if delta != delta:
            delta = 0.0
        along += direction[d] * delta
        squared += delta * delta
    if kind == ONE_POINT:
        # f_i = (tau - |x_i - x|^2) / (tau + |x_i - x|^2)
        value = (size - squared) / (size + squared)
        value = -1.0 if value != value else value  # inf / inf
    elif kind == TWO_POINT:
        # f_ij = <d, x - m> / (4 |d|^4 + |x - m|^4), times |d|^2 / _PEAK
        ratio = squared / size
        value = along / (size * _PEAK * (4.0 + ratio * ratio))
        value = 0.0 if value != value else min(max(value, -1.0), 1.0)
    else:
        value = 1.0
    return value


@kernel
def evaluate(X, rows, kind, centre, direction, size, t, out):
    """out[i] = similarity t of row i, for each of the rows."""
    # OUT: out (n,) float64
    for j in range(rows.shape[0]):
        i = rows[j]
        out[i] = similarity(X[i], kind[t], centre[t], direction[t], size[t])


@kernel
def add_similarities(X, kind, centre, direction, size, sign, values, first, last, scores):
    """scores[i] += values[t] f_t(x_i), or values[t] sign f_t(x_i) if sign[t], for t = first .. last - 1, in this order."""
    # IN: X (n, D) float; sign (T,) bool; values (T, K) float64
    # OUT: scores (n, K) float
    for i in range(X.shape[0]):
        for t in range(first, last):
            f = similarity(X[i], kind[t], centre[t], direction[t], size[t])
            if sign[t]:
                f = 1.0 if f >= 0.0 else -1.0
            for k in range(values.shape[1]):
                scores[i, k] += f * values[t, k]


# The procedure of section 5.2. Sums are over the rows in `order`; each column has its own shift.


@inlined
def flush(total, sum_factor, out):
    """Add the sums of a tile, times `sum_factor`, to the integers in out, and set them to 0."""
    for r in range(total.shape[0]):
        for c in range(total.shape[1]):
            out[r, c] += np.int64(total[r, c] * sum_factor)
            total[r, c] = 0.0


@kernel
def correlations(scores, labels, weights, order, code, shifts, factor, sum_factor, u, out):
    """u[i, k] = -code[y_i, k] w[i, k], in units of 1/factor, w[i, k] = exp(-code[y_i, k] F[i, k] - shifts[k]).

    out[k, l] = sum of u[i, k] u[i, l] for l <= k; out[K, k] = sum of w[i, k] over the rows whose code is -1, out[K + 1, k] over
    those whose code is +1.
    """
    # OUT: u (n, K) float64; out (K + 2, K) int64, in units of 1 / (factor sum_factor)
    n_classes = scores.shape[1]
    total = np.zeros((n_classes + 2, n_classes))
    load = 0.0
    for j in range(order.shape[0]):
        i = order[j]
        c = weights[i]
        if load + c > _TILE:
            flush(total, sum_factor, out)
            load = 0.0
        load += c
        own = code[labels[i]]
        for k in range(n_classes):
            u[i, k] = -own[k] * np.rint(exp(-own[k] * scores[i, k] - shifts[k]) * factor)
            total[n_classes + np.int64(own[k] > 0.0), k] += np.rint(c * abs(u[i, k]))
        for k in range(n_classes):
            scaled = u[i, k] / factor
            for m in range(k + 1):
                total[k, m] += np.rint(c * np.rint(scaled * u[i, m]))
    flush(total, sum_factor, out)


@kernel
def isolate(labels, weights, order, code, factor, u, sides, units, projection, v, largest):
    """v[i] = <projection, u[i]>; returns the row whose separation from all others lowers the loss most, and half that loss.

    For f = 1 at row i and -1 elsewhere: L_f = 2 sum_k sqrt(s^T s^F). largest[0] becomes the largest v, largest[1] the largest -v.
    """
    # IN: sides (2, K) float64: sums of w where the code is -1, +1; units (K,): of the columns
    # OUT: v (n,) float64; largest (2,) float64
    best, chosen = np.inf, -1
    for j in range(order.shape[0]):
        i = order[j]
        own = code[labels[i]]
        x, loss = 0.0, 0.0
        for k in range(own.shape[0]):
            x += projection[k] * u[i, k]
            moved = own[k] * np.rint(weights[i] * abs(u[i, k])) / factor
            right, wrong = max(sides[0, k] + moved, 0.0), max(sides[1, k] - moved, 0.0)
            loss += units[k] * np.sqrt(right * wrong)
        v[i] = x
        largest[0] = max(largest[0], x)
        largest[1] = max(largest[1], -x)
        if loss < best:
            best, chosen = loss, i
    return chosen, best


@kernel
def surround(X, order, anchor, v, orientation, tolerance, positive, distances, dropped):
    """Squared distances from the anchor; returns the smallest above 0, and the nearest row of the other class with its distance.

    A row at the anchor itself cannot be separated from it, so it is not a neighbour. A row's binary class is + if
    orientation v[i] >= -tolerance.
    """
    # IN: positive: whether the anchor's binary class is +
    # OUT: distances (n,) float64; dropped (n,) int32
    nearest, best, chosen = np.inf, np.inf, -1
    for j in range(order.shape[0]):
        i = order[j]
        distance = squared_distance(X[i], anchor)
        distances[i] = distance
        remains = distance > 0.0 and (orientation * v[i] >= -tolerance) != positive
        dropped[i] = _REMAINS if remains else 0
        if distance > 0.0:
            nearest = min(nearest, distance)
        if remains and distance < best:
            best, chosen = distance, i
    return nearest, chosen, best


@kernel
def drop(order, f, threshold, number, distances, dropped):
    """Drop the rows with f <= threshold; return the nearest remaining row and its distance.

    `number` is that of the drop within the round. A repeated drop gives the same answer: it ignores that this drop or later ones
    have dropped rows before.
    """
    # IN: f (n,) float64
    # OUT: dropped (n,) int32: the number of the drop that removed each row
    best, chosen = np.inf, -1
    for j in range(order.shape[0]):
        i = order[j]
        if dropped[i] < number:
            continue
        remains = f[i] > threshold
        dropped[i] = _REMAINS if remains else number
        if remains and distances[i] < best:
            best, chosen = distances[i], i
    return chosen, best


@kernel
def piece_sums(f, sign, labels, weights, order, code, u, sum_factor, out):
    """out[b K + k, m] = sum of w[i, k] T_m(t) over the rows whose g = -code[y_i, k] f[i] lies in piece b, at t."""
    # IN: f (n,) float64; if `sign`, only its sign counts; u (n, K) from `correlations`
    # OUT: out (PIECES K, TERMS) int64
    n_classes = u.shape[1]
    total = np.zeros((PIECES * n_classes, TERMS))
    T = np.empty((2, TERMS))  # of f, of -f
    load = 0.0
    for j in range(order.shape[0]):
        i = order[j]
        c = weights[i]
        if load + c > _TILE:
            flush(total, sum_factor, out)
            load = 0.0
        load += c
        x = f[i]
        if sign:
            x = 1.0 if x >= 0.0 else -1.0
        piece = np.int64(min((x + 1.0) * (PIECES / 2), PIECES - 1.0))
        polynomials((x - (2 * piece + 1.0) / PIECES + 1.0) * PIECES, T)
        own = code[labels[i]]
        for k in range(n_classes):
            # -f lies in the mirrored piece, at -t.
            turned = own[k] > 0.0
            b = PIECES - 1 - piece if turned else piece
            for m in range(0, TERMS, LANES):
                add_rounded_lanes(total, b * n_classes + k, m, c, abs(u[i, k]), T, np.int64(turned))
    flush(total, sum_factor, out)


@inlined
def polynomials(t, T):
    """T[0, m] = T_m(t), T[1, m] = T_m(-t): T_m = 2 t T_{m-1} - T_{m-2}."""
    T[0, 0], T[0, 1] = 1.0, t
    for m in range(2, TERMS):
        T[0, m] = 2.0 * t * T[0, m - 1] - T[0, m - 2]
    for m in range(0, TERMS, 2):
        T[1, m], T[1, m + 1] = T[0, m], -T[0, m + 1]


# Line searches, which run on the coordinator.


@kernel
def line_search(S, limit, a, losses):
    """a[k] = argmin over |a| <= limit of the sum of w[i, k] exp(a g[i, k]), g as in `piece_sums`; losses[k] = the minimum."""
    # IN: S (PIECES, K, TERMS) float64: the sums of `piece_sums`
    # OUT: a, losses (K,) float64
    masses = np.empty((PIECES, TERMS))
    for k in range(S.shape[1]):
        node_masses(S[:, k], masses)
        a[k] = lowest_point(masses, limit)
        losses[k] = slopes(masses, a[k])[0]


@inlined
def node_masses(S, masses):
    """masses[b, p]: weights at the Chebyshev nodes p of each piece b that have the same sums of T_m as the rows."""
    for b in range(PIECES):
        for p in range(TERMS):
            total = 0.0
            for m in range(1, TERMS):
                total += S[b, m] * _COSINES[m, p]
            masses[b, p] = (S[b, 0] + 2.0 * total) / TERMS


@inlined
def slopes(masses, a):
    """The sum of w exp(a g), and its first and second derivative with respect to a."""
    h = 1.0 / PIECES
    value, slope, curvature = 0.0, 0.0, 0.0
    e = np.empty(TERMS)
    for p in range(TERMS):
        e[p] = exp(a * h * _NODES[p])
    for b in range(PIECES):
        s0, s1, s2 = 0.0, 0.0, 0.0
        for p in range(TERMS):
            term = masses[b, p] * e[p]
            s0 += term
            term *= _NODES[p]
            s1 += term
            s2 += term * _NODES[p]
        centre = (2.0 * b + 1.0) * h - 1.0
        scale = exp(a * centre)
        value += scale * s0
        slope += scale * (centre * s0 + h * s1)
        curvature += scale * (centre * centre * s0 + 2.0 * centre * h * s1 + h * h * s2)
    return value, slope, curvature


@inlined
def lowest_point(masses, limit):
    """The zero of the slope by Newton's method inside a shrinking bracket in [-limit, limit]; an end if the zero is beyond it."""
    low, high, a = -limit, limit, 0.0
    _, slope, curvature = slopes(masses, a)
    if slope < 0.0 and slopes(masses, high)[1] <= 0.0:
        return high
    if slope > 0.0 and slopes(masses, low)[1] >= 0.0:
        return low
    for _ in range(100):
        if slope > 0.0:
            high = a
        elif slope < 0.0:
            low = a
        else:
            break
        following = a - slope / curvature
        if not (low < following < high):
            following = (low + high) / 2.0
        last = abs(following - a) <= 1e-15 * max(abs(a), 1.0)
        a = following
        if last:
            break
        _, slope, curvature = slopes(masses, a)
    return a
