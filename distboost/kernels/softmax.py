"""Sums over rows for the multinomial logistic loss, log sum_k exp(F[i, k] - F[i, y_i]).

p[i] is the softmax of a row's scores. As in `margin`, numbers are divided by `exp(shift)`, rounded to multiples of `1 / factor`,
and only then multiplied by the row weight. 1 - p[i, y_i] is the sum of the other classes' p: of a row that is nearly certain, the
difference would lose all digits.
"""

import numpy as np

from distboost.kernels._jit import compiled, kernel
from distboost.kernels.exponential import exp
from distboost.kernels.lanes import LANES
from distboost.kernels.margin import parts, put_residuals, times
from distboost.kernels.memory import floats, integers
from distboost.kernels.simd import prefetch_row
from distboost.kernels.simd_exp import WIDE, divide_row, exp_rows, is_beaten, log1p_rows, subtract_row
from distboost.kernels.simd_rows import add_slopes, add_times_row
from distboost.kernels.tiles import SOFTMAX, TILE_ROWS, tile_of, unit_of, weigh


@compiled
def exponentials_below_one(scores, order, first, n, e):
    """Set e[t, k] = exp(F[i, k] - max_l F[i, l]) for the rows i = order[first + t], t < n."""
    # IN: scores (n_rows, K) float; order (r,) int32
    # OUT: e (n or more, K) float64: of `tile_of`
    for t in range(n):
        i = order[first + t]
        highest = scores[i, 0]
        for k in range(1, scores.shape[1]):
            highest = max(highest, scores[i, k])
        subtract_row(scores, i, highest, 1.0, 0.0, e, t)
        if first + t + n < order.shape[0]:
            prefetch_row(scores, order[first + t + n])
    exp_rows(e, n)


@compiled
def weigh_with_losses(scores, labels, order, first, n, s, u, losses):
    """Set u[t] as `tiles.weigh` does for the softmax link, and losses[0, t] to the row's loss, t < n."""
    # IN: scores (n_rows, K) float; labels (n_rows,) int32; order (r,) int32
    # OUT: u (n or more, K) float64: of `tile_of`; losses (2, TILE_ROWS) float64
    n_classes = scores.shape[1]
    for t in range(n):
        i = order[first + t]
        highest = scores[i, 0]
        for k in range(1, n_classes):
            highest = max(highest, scores[i, k])
        subtract_row(scores, i, highest, s, 0.0, u, t)
        losses[0, t] = s * (highest - scores[i, labels[i]])
    exp_rows(u, n)
    for t in range(n):
        y = labels[order[first + t]]
        total, others = 0.0, 0.0
        for k in range(n_classes):
            total += u[t, k]
            others += u[t, k] if k != y else 0.0
        # Where no score is higher than the own class's, the own exponential is 1, beside which small others would lose digits.
        losses[1, t] = total - 1.0 if losses[0, t] > 0.0 else others
        divide_row(u, t, total)
        u[t, y] = 0.0
    log1p_rows(losses[1:], 1)
    for t in range(n):
        losses[0, t] += losses[1, t]


@compiled
def add_losses(
    scores, labels, weights, order, first, n, u, losses, units, factor, error_factor, judged, out, largest
):
    """Do what `risk` does, for a tile's rows. The row weights go to judged[1] if the row is misclassified, else to judged[0]."""
    # IN: as in `risk`; u (n or more, K), losses (2, TILE_ROWS) float64: of `weigh_with_losses`; units (2,) float64
    # OUT: judged, out (2,) int64; largest (2,) float64
    for t in range(n):
        i = order[first + t]
        total = 0.0
        for k in range(u.shape[1]):
            total += u[t, k]
        loss = losses[0, t] * units[1]
        largest[0] = max(largest[0], total * units[0])
        largest[1] = max(largest[1], loss)
        out[1] += times(weights[i], np.rint(loss * factor))
        judged[np.intp(is_beaten(scores, i, labels[i]))] += np.int64(np.rint(weights[i] * error_factor))


@kernel
def risk(scores, labels, weights, order, s, shifts, factor, error_factor, out, largest):
    """Do what `margin.link_risk` does, for the softmax link."""
    # IN: as in `margin.link_risk`; order (r,) int32: the rows in use
    # OUT: out (2,) int64, largest (2,) float64: as in `margin.link_risk`
    u, size = tile_of(scores.shape[1])
    losses, judged = floats(2 * TILE_ROWS).reshape(2, TILE_ROWS), integers(2)
    units = np.array([exp(-shifts[0]), exp(-shifts[1])])
    for first in range(0, order.shape[0], size):
        n = min(size, order.shape[0] - first)
        weigh_with_losses(scores, labels, order, first, n, s, u, losses)
        add_losses(
            scores, labels, weights, order, first, n, u, losses, units, factor, error_factor, judged, out, largest
        )  # fmt: skip
    out[0] += judged[1]


@kernel
def risk_and_residuals(
    scores,
    labels,
    weights,
    order,
    s,
    shifts,
    factor,
    error_factor,
    out,
    largest,
    own,
    shift,
    unit_factor,
    weight_factor,
    statistics,
):
    """Do what `risk` and then `margin.residuals` do with the softmax link; the residuals are in units of e^shift/unit_factor."""
    # IN: as in `risk` and `margin.residuals`
    # OUT: out (2,) int64, largest (2,) float64: as in `risk`; statistics (n, channels) int32, or int64 if wide
    u, size = tile_of(scores.shape[1])
    losses, judged = floats(2 * TILE_ROWS).reshape(2, TILE_ROWS), integers(2)
    units = np.array([exp(-shifts[0]), exp(-shifts[1])])
    unit = unit_of(SOFTMAX, shift, unit_factor)
    of_all = np.int64(0)
    for first in range(0, order.shape[0], size):
        n = min(size, order.shape[0] - first)
        weigh_with_losses(scores, labels, order, first, n, s, u, losses)
        add_losses(
            scores, labels, weights, order, first, n, u, losses, units, factor, error_factor, judged, out, largest
        )  # fmt: skip
        of_all += put_residuals(labels, weights, order, first, n, u, unit, own, weight_factor, statistics)
    out[0] += judged[1]
    return of_all


@kernel
def curvatures(scores, labels, weights, order, spans, leaves, shift, factor, out):
    """Add up the sums of `margin.hits_and_misses` by leaf, out[l, :2], and the curvatures p[i, k] (1 - p[i, k]), out[l, 2, k]."""
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32;
    #     spans (nodes, 2) int32; leaves (leaves,) int64
    # OUT: out (leaves, 3, K) int64, in units of e^shift/factor
    n_classes = scores.shape[1]
    u, size = tile_of(n_classes)
    unit = unit_of(SOFTMAX, shift, factor)
    for m in range(leaves.shape[0]):
        start, stop = spans[leaves[m]]
        for first in range(start, stop, size):
            n = min(size, stop - first)
            weigh(scores, labels, order, first, n, 1.0, SOFTMAX, 0.0, u)
            for t in range(n):
                i = order[first + t]
                y = labels[i]
                out[m, 0, y] += add_times_row(out, m, 1, u, t, unit, *parts(weights[i]))
                others = 0.0
                for k in range(n_classes):
                    others += u[t, k]
                    u[t, k] *= 1.0 - u[t, k]
                u[t, y] = others * (1.0 - others)
                add_times_row(out, m, 2, u, t, unit, *parts(weights[i]))


@kernel
def working_responses(scores, labels, weights, order, column, limit, shift, factor, weight_factor, out):
    """Set out[i] = (w z, w, 1, row weight), for w = p[k] (1 - p[k]) and z = ([k = y_i] - p[k]) / w of the class k = column.

    z is clipped to +-limit. If weight_factor is 0, the row weight is left out.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32; limit >= 1
    # OUT: out (n, channels) int64: w z, w in units of e^shift/factor, the row weight in units of 1/weight_factor
    u, size = tile_of(scores.shape[1])
    unit = unit_of(SOFTMAX, shift, factor)
    for first in range(0, order.shape[0], size):
        n = min(size, order.shape[0] - first)
        weigh(scores, labels, order, first, n, 1.0, SOFTMAX, 0.0, u)
        for t in range(n):
            i = order[first + t]
            others = u[t, column]
            sign = -1.0
            if labels[i] == column:
                sign = 1.0
                for k in range(scores.shape[1]):
                    others += u[t, k]
            w = others * (1.0 - others)
            out[i, 0] = times(weights[i], np.rint(sign * min(others, limit * w) * unit))
            out[i, 1] = times(weights[i], np.rint(w * unit))
            out[i, 2] = 1
            if weight_factor > 0.0:
                out[i, 3] = np.int64(np.rint(weights[i] * weight_factor))


@kernel
def pair_curvatures(scores, labels, weights, order, shift, factor, weight_factor, out):
    """Set out[i] = (V, C, 1, row weight): V[k] = [k = y_i] - p[k], and a quarter of the curvature of each pair of classes.

    That of classes r < s is p[r] (1 - p[r]) + p[s] (1 - p[s]) + 2 p[r] p[s], at most 4 (1 - p[y_i]). The pairs are ordered by s,
    then r. If weight_factor is 0, the row weight is left out.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32
    # OUT: out (n, channels) int64: V, C in units of e^shift/factor, the row weight in units of 1/weight_factor
    n_classes = scores.shape[1]
    u, size = tile_of(n_classes)
    q = floats(n_classes)
    unit = unit_of(SOFTMAX, shift, factor)
    for first in range(0, order.shape[0], size):
        n = min(size, order.shape[0] - first)
        weigh(scores, labels, order, first, n, 1.0, SOFTMAX, 0.0, u)
        for t in range(n):
            i = order[first + t]
            y = labels[i]
            others = 0.0
            for k in range(n_classes):
                others += u[t, k]
                q[k] = u[t, k] * (1.0 - u[t, k])
                out[i, k] = times(weights[i], np.rint(-u[t, k] * unit))
            out[i, y] = times(weights[i], np.rint(others * unit))
            q[y] = others * (1.0 - others)
            u[t, y] = 1.0 - others
            m = n_classes
            for s in range(n_classes):
                for r in range(s):
                    c = (q[r] + q[s] + 2.0 * u[t, r] * u[t, s]) / 4.0
                    out[i, m] = times(weights[i], np.rint(c * unit))
                    m += 1
            out[i, m] = 1
            if weight_factor > 0.0:
                out[i, m + 1] = np.int64(np.rint(weights[i] * weight_factor))


@kernel
def softmax_slopes(scores, labels, weights, order, spans, leaves, logs, factor, values, steps, out):
    """Add up the loss's slope along a tree's leaf values, after each of eight steps.

    Let v be the values of the row's leaf, D the largest difference v[k] - v[l] of any leaf, and p the softmax of
    F[i] + steps[c] v. Each row adds the sum of p[k] (v[k] - v[y_i]) / D over k != y_i to out[c], in units of e^logs[c]/factor: it
    does not exceed the sum of p[k]. A row with another class of v[k] >= v[y_i] adds 1 to out[8], in units of 1/factor: no step
    parts it from this class. The exponentials of the scores serve all steps.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32;
    #     spans (nodes, 2) int32; leaves (leaves,) int64; values (leaves, K) float64; logs, steps (8,) float64
    # OUT: out (9,) int64
    n_classes = scores.shape[1]
    e, size = tile_of(n_classes)
    z = np.zeros((n_classes + WIDE // LANES, LANES))
    zv = np.zeros((n_classes, LANES))
    units = floats(LANES)
    for c in range(LANES):
        units[c] = exp(-logs[c]) * factor
    largest = 0.0
    for m in range(leaves.shape[0]):
        largest = max(largest, values[m].max() - values[m].min())
    for m in range(leaves.shape[0]):
        v = (values[m] - values[m].min()) / largest
        for k in range(n_classes):
            for c in range(LANES):
                z[k, c] = steps[c] * largest * (v[k] - 1.0)
        exp_rows(z, n_classes)
        for k in range(n_classes):
            for c in range(LANES):
                zv[k, c] = z[k, c] * v[k]
        top = np.argmax(v)
        is_alone = (v == v[top]).sum() == 1
        start, stop = spans[leaves[m]]
        for first in range(start, stop, size):
            n = min(size, stop - first)
            exponentials_below_one(scores, order, first, n, e)
            for t in range(n):
                i = order[first + t]
                y = labels[i]
                own, e[t, y] = e[t, y], 0.0
                add_slopes(out, e, t, own, z, zv, y, v[y], units, *parts(weights[i]))
                if not (is_alone and y == top):
                    out[LANES] += times(weights[i], factor)
