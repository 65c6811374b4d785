"""Localized similarities (Appel & Perona 2017): how similar a row is to one point, or to one point rather than to another.

A similarity is in [-1, 1]. Squared distances are summed in the order of the features. A coordinate that is missing in either of
two points adds nothing to their distance. Training and prediction call the same functions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.exponential import exp
from distboost.kernels.lanes import LANES
from distboost.kernels.simd import add_rounded_lanes

CONSTANT, ONE_POINT, TWO_POINT = 0, 1, 2

_PEAK: float = (4 / 3) ** 0.25 / (16 / 3)  # the largest value of t / (4 + t^4), at t^4 = 4/3

# A line search needs the sum of w exp(a f) over rows for any step a, without another pass. To this end, [-1, 1] is divided into
# PIECES of equal length, and t in [-1, 1] is the position of a value f in its piece. The sums of w T_m(t) in each piece, with
# Chebyshev polynomials T_m, determine the sum of w exp(a f): within a piece, exp(a f) equals its interpolation polynomial in
# TERMS Chebyshev nodes, with a relative error of 1e-13 for |a| <= 14. `algorithms.rebel.LARGEST_STEP` keeps to this bound.
PIECES, TERMS = 8, 16
_NODES = np.array([math.cos(math.pi * (p + 0.5) / TERMS) for p in range(TERMS)])
_COSINES = np.array([[math.cos(math.pi * m * (p + 0.5) / TERMS) for p in range(TERMS)] for m in range(TERMS)])

# Numbers are rounded to multiples of 2^-GRID_BITS, then added as floats over tiles of rows whose row weights sum to at most
# _TILE. In units of 2^-GRID_BITS these sums stay below 2^53, so that they are exact.
GRID_BITS = 45
_TILE = 2.0**8

# The value in `dropped` of a row that is still in the search.
_REMAINS = 2**31 - 1


class SimilarityArrays(NamedTuple):
    """T similarities in the form that the kernels read.

    Attributes
    ----------
    kind : ndarray of shape (T,), int8
        CONSTANT, ONE_POINT or TWO_POINT.
    centre : ndarray of shape (T, D), float64
        The point, or the midpoint of the two points, in the units of the features; NaN where a coordinate is missing.
    direction : ndarray of shape (T, D), float64
        Half the first point minus half the second; 0 for the other kinds and where a coordinate is missing.
    size : ndarray of shape (T,), float64
        tau, or the squared length of the direction.
    """

    kind: np.ndarray
    centre: np.ndarray
    direction: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, kind: np.ndarray, anchors: np.ndarray, tau: np.ndarray) -> SimilarityArrays:
        """Convert kinds (T,) int8, points (T, 2, D) float64 and tau (T,) float64."""
        two = kind == TWO_POINT
        centre = np.where(two[:, None], (anchors[:, 0] + anchors[:, 1]) / 2, anchors[:, 0])
        direction = np.where(two[:, None] & ~np.isnan(centre), (anchors[:, 0] - anchors[:, 1]) / 2, 0.0)
        size = np.array(tau, np.float64)
        for t in np.flatnonzero(two):
            size[t] = squared_distance(direction[t], np.zeros(direction.shape[1]))
        return cls(kind, centre, direction, size)


@kernel
def squared_distance(x, z):
    """Return |x - z|^2, over the coordinates that both points have."""
    # IN: x (D,) float; z (D,) float64; NaN: the coordinate is missing
    total = 0.0
    for d in range(x.shape[0]):
        delta = np.float64(x[d]) - z[d]
        if delta != delta:
            delta = 0.0
        total += delta * delta
    return total


@inlined
def similarity(x, kind, centre, direction, size):
    """Return the similarity of a row x; that of kind CONSTANT is 1."""
    # IN: x (D,) float; centre, direction (D,) float64
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
        value = -1.0 if value != value else value  # NaN, from inf / inf: the distance overflowed
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
    """Set out[i] to similarity t of row i, for each i in `rows`."""
    # IN: X (n, D) float; rows (r,) int32; kind, centre, direction, size: SimilarityArrays
    # OUT: out (n,) float64
    for j in range(rows.shape[0]):
        i = rows[j]
        out[i] = similarity(X[i], kind[t], centre[t], direction[t], size[t])


@kernel
def add_similarities(X, kind, centre, direction, size, sign, values, first, last, scores):
    """Add values[t] f_t(x_i), or values[t] sign f_t(x_i) if sign[t], to scores[i], for t = first .. last - 1 in this order.

    Here and below, the sign of 0 is +.
    """
    # IN: X (n, D) float; kind, centre, direction, size: SimilarityArrays; sign (T,) bool; values (T, K) float64
    # OUT: scores (n, K) float
    for i in range(X.shape[0]):
        for t in range(first, last):
            f = similarity(X[i], kind[t], centre[t], direction[t], size[t])
            if sign[t]:
                f = 1.0 if f >= 0.0 else -1.0
            for k in range(values.shape[1]):
                scores[i, k] += f * values[t, k]


# The procedure of section 5.2. Sums are over the rows in `order`. The code has one column per class, each with its own shift. The
# procedure gives each row a binary class, + or -.


@inlined
def flush(total, sum_factor, out):
    """Add the sums of a tile, times `sum_factor`, to the integers in `out`, and reset them to 0."""
    # OUT: total (R, C) float64, of whole numbers; out (R, C) int64
    for r in range(total.shape[0]):
        for c in range(total.shape[1]):
            out[r, c] += np.int64(total[r, c] * sum_factor)
            total[r, c] = 0.0


@kernel
def correlations(scores, labels, weights, order, code, shifts, factor, sum_factor, u, out):
    """Set u[i, k] = -code[y_i, k] w[i, k], with w[i, k] = exp(-code[y_i, k] F[i, k] - shifts[k]), and add products of u to `out`.

    To out[k, l], l <= k, add the sum of u[i, k] u[i, l]; to out[K, k] the sum of w[i, k] over the rows whose code is -1, and to
    out[K + 1, k] over those whose code is +1.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32; code (K, K) float64 of -1 and +1;
    #     shifts (K,) float64
    # OUT: u (n, K) float64: whole numbers in units of 1/factor; out (K + 2, K) int64, in units of 1 / (factor sum_factor)
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
    """Set v[i] = <projection, u[i]>; return the row whose separation from all others lowers the loss most, and half that loss.

    A weak learner that is 1 at row i and -1 elsewhere leaves the loss L_f = 2 sum_k sqrt(s^T s^F). largest[0] is raised to the
    largest v, and largest[1] to the largest -v.
    """
    # IN: labels (n,) int32; weights (n,) float64; order (r,) int32; code (K, K) float64 of -1 and +1; u (n, K) float64, from
    #     `correlations`; sides (2, K) float64: the sums of w over the rows whose code is -1, then +1, in the units of the
    #     columns; units (K,) float64: e^shift of each column, up to a common factor; projection (K,) float64
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
    """Measure squared distances from the anchor; return the smallest above 0, and the nearest row of the other binary class.

    The third number is the squared distance of that row; the row is -1 if there is none. A row with the anchor's coordinates
    cannot be separated from it, so it is not a neighbour. A row's binary class is + if orientation v[i] >= -tolerance.
    """
    # IN: X (n, D) float; order (r,) int32; anchor (D,) float64; v (n,) float64; positive: whether the anchor's class is +
    # OUT: distances (n,) float64: squared; dropped (n,) int32: _REMAINS for the neighbours of the other class, 0 for other rows
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
    """Drop the rows with f <= threshold; return the row of those left that is nearest to the anchor, and its squared distance.

    The drops of a round are numbered from 1. A drop may be repeated, also after later ones, and gives the same answer: it starts
    from the rows that the drops of lower number have left.
    """
    # IN: order (r,) int32; f (n,) float64; distances (n,) float64: squared
    # OUT: dropped (n,) int32: the number of the drop that removed each row, or _REMAINS
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
    """Add to out[b K + k, m] the sum of w[i, k] T_m(t) over the rows whose g = -code[y_i, k] f[i] lies in piece b, at position t.

    If `sign`, the sign of f[i] takes the place of f[i].
    """
    # IN: f (n,) float64; labels (n,) int32; weights (n,) float64; order (r,) int32; code (K, K) float64 of -1 and +1;
    #     u (n, K) float64, from `correlations`
    # OUT: out (PIECES K, TERMS) int64, in units of 1 / (factor sum_factor)
    n_classes = u.shape[1]
    total = np.zeros((PIECES * n_classes, TERMS))
    T = np.empty((2, TERMS))  # T_m at the positions of f and of -f
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
            # If f is at t in piece b, then -f is at -t in the mirrored piece.
            turned = own[k] > 0.0
            b = PIECES - 1 - piece if turned else piece
            for m in range(0, TERMS, LANES):
                add_rounded_lanes(total, b * n_classes + k, m, c, abs(u[i, k]), T, np.int64(turned))
    flush(total, sum_factor, out)


@inlined
def polynomials(t, T):
    """Set T[0, m] = T_m(t) and T[1, m] = T_m(-t), by T_m = 2 t T_{m-1} - T_{m-2}."""
    # OUT: T (2, TERMS) float64
    T[0, 0], T[0, 1] = 1.0, t
    for m in range(2, TERMS):
        T[0, m] = 2.0 * t * T[0, m - 1] - T[0, m - 2]
    for m in range(0, TERMS, 2):
        T[1, m], T[1, m + 1] = T[0, m], -T[0, m + 1]


# The line searches. They run on the coordinator.


@kernel
def line_search(S, limit, a, losses):
    """Set a[k] to the step, |a[k]| <= limit, of least loss: the sum of w[i, k] exp(a g[i, k]). Set losses[k] to that loss.

    g is as in `piece_sums`.
    """
    # IN: S (PIECES, K, TERMS) float64: the sums of `piece_sums`
    # OUT: a (K,) float64; losses (K,) float64, in the units of S
    masses = np.empty((PIECES, TERMS))
    for k in range(S.shape[1]):
        node_masses(S[:, k], masses)
        a[k] = lowest_point(masses, limit)
        losses[k] = slopes(masses, a[k])[0]


@inlined
def node_masses(S, masses):
    """Set masses[b, p] to weights at the Chebyshev nodes p of each piece b that give the same sums of T_m as the rows."""
    # IN: S (PIECES, TERMS) float64
    # OUT: masses (PIECES, TERMS) float64, in the units of S
    for b in range(PIECES):
        for p in range(TERMS):
            total = 0.0
            for m in range(1, TERMS):
                total += S[b, m] * _COSINES[m, p]
            masses[b, p] = (S[b, 0] + 2.0 * total) / TERMS


@inlined
def slopes(masses, a):
    """Return the sum of w exp(a g), and its first and second derivative with respect to a."""
    # IN: masses (PIECES, TERMS) float64
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
    """Return the zero of the slope in [-limit, limit], or an end if there is none: Newton's method in a shrinking bracket."""
    # IN: masses (PIECES, TERMS) float64
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
