"""Weights of rows from their margins: e[i, k] = exp(-s (F[i, y_i] - F[i, k])) for k != y_i, and e[i, y_i] = 0.

A link turns e into the weight u of a loss. Every kernel divides u by `exp(shift)`, so that the weights of a row sum to at most 1,
and rounds it to a multiple of `1 / factor`: the sums over rows are then integers, and exact. The kernel multiplies by the row
weight after the rounding, so that a row of integer weight w counts exactly like w rows.
"""

import numpy as np

from distboost.kernels._jit import compiled, inlined, kernel
from distboost.kernels.exponential import exp, log1p
from distboost.kernels.lanes import LANES
from distboost.kernels.memory import floats, integers
from distboost.kernels.simd_exp import exp_rows, is_beaten
from distboost.kernels.simd_rows import add_times_row, put_row
from distboost.kernels.tiles import EXPONENTIAL, LOGISTIC, tile_of, unit_of, weigh


@inlined
def times(weight, q):
    """Return weight * q as an integer: exact if the weight is an integer, else rounded."""
    whole = np.int64(weight)
    if whole == weight:
        return whole * np.int64(q)
    return np.int64(np.rint(weight * q))


@inlined
def parts(weight):
    """Return the factors of `times`, (multiple, fraction): times(weight, q) = multiple int(rint(fraction q)) for a whole q."""
    whole = np.int64(weight)
    return (whole, 1.0) if whole == weight else (np.int64(1), weight)


@kernel
def linked_weights(scores, y, s, link, u):
    """Set u[k] to the weights of a row of class y by the logistic or softmax link, u[y] = 0; return the row's loss.

    No exponential exceeds 1, so that none overflows.
    """
    # IN: scores (K,) float
    # OUT: u (K,) float64
    own = scores[y]
    loss = 0.0
    if link == LOGISTIC:
        for k in range(scores.shape[0]):
            x = s * (scores[k] - own)
            t = exp(-abs(x))
            u[k] = (1.0 if x > 0.0 else t) / (1.0 + t)
            if k != y:
                loss += max(x, 0.0) + log1p(t)
    else:
        highest, total, rest = own, 0.0, 0.0
        for k in range(scores.shape[0]):
            highest = max(highest, scores[k])
        for k in range(scores.shape[0]):
            u[k] = exp(s * (scores[k] - highest))
            total += u[k]
            if k != y:
                rest += u[k]
        loss = s * (highest - own) + log1p(total - 1.0) if highest > own else log1p(rest)
        for k in range(scores.shape[0]):
            u[k] /= total
    u[y] = 0.0
    return loss


@compiled
def put_residuals(labels, weights, order, first, n, u, unit, own, weight_factor, out):
    """Set out[i] as `residuals` does, for a tile's rows; return the sum of all u[i, k]."""
    # IN: labels (n_rows,) int32; weights (n_rows,) float64; order (r,) int32; u (n or more, K) float64: of `weigh`
    # OUT: out (n_rows, channels) int32, or int64 if wide
    n_classes = u.shape[1]
    of_all = np.int64(0)
    for t in range(n):
        i = order[first + t]
        y = labels[i]
        whole = put_row(out, i, u, t, unit, *parts(weights[i]))
        of_all += whole
        if own == 1.0:
            out[i, y] = whole
        else:
            total = 0.0
            for k in range(n_classes):
                total += np.rint(u[t, k] * unit)
            out[i, y] = times(weights[i], np.rint(own * total))
        out[i, n_classes] = 1
        if weight_factor > 0.0:
            out[i, n_classes + 1] = np.int64(np.rint(weights[i] * weight_factor))
    return of_all


@kernel
def residuals(
    scores, labels, weights, order, s, link, own, shift, factor, weight_factor, out, risk_factor, error_factor,
    risk, largest,
):  # fmt: skip
    """Set out[i] = (V[i, 0], ..., V[i, K-1], 1, row weight): V[i, y_i] = own sum_k u[i, k], V[i, k] = -u[i, k] for k != y_i.

    If weight_factor is 0, the row weight is left out. Return the sum of all u[i, k], an integer in units of 1/factor. If `out`
    has no rows, leave all that out.

    With the exponential link, add the row weights of misclassified rows to risk[0], and sum_k e[i, k] of all rows to risk[1],
    unless `risk` is empty. largest[0] is raised to the largest sum_k e[i, k] of one row. The predicted class is the one with the
    largest score; ties go to the first class.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32: the rows in use; 0 <= own <= 1
    # OUT: out (n, channels) int32, or int64 if wide: V in units of 1/factor, the row weight in units of 1/weight_factor;
    #      channels > K, or > K + 1 with the row weight; risk (2,) or (0,) int64: risk[0] in units of 1/error_factor, risk[1] of
    #      e^shift/risk_factor; largest (1,) float64, in units of e^shift
    u, size = tile_of(scores.shape[1])
    totals, judged = floats(size), integers(2)
    unit = unit_of(link, shift, factor)
    of_all = np.int64(0)
    for first in range(0, order.shape[0], size):
        n = min(size, order.shape[0] - first)
        weigh(scores, labels, order, first, n, s, link, shift, u)
        if risk.shape[0]:
            add_risk(
                scores, labels, weights, order, first, n, u, totals, risk_factor, error_factor, judged, risk,
                largest,
            )  # fmt: skip
        if out.shape[0]:
            of_all += put_residuals(labels, weights, order, first, n, u, unit, own, weight_factor, out)
    if risk.shape[0]:
        risk[0] += judged[1]
    return of_all


@kernel
def projected_residuals(scores, labels, weights, order, s, link, code, shift, factor, weight_factor, out):
    """Set out[i] = (sum_k (code[y_i] - code[k]) u[i, k] / 2, 1, row weight); if weight_factor is 0, leave the last out."""
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32; code (K,) float64, between -1 and 1
    # OUT: out (n, channels) int32, or int64 if wide, in the units of `residuals`
    n_classes = scores.shape[1]
    u, size = tile_of(n_classes)
    unit = unit_of(link, shift, factor)
    for first in range(0, order.shape[0], size):
        n = min(size, order.shape[0] - first)
        weigh(scores, labels, order, first, n, s, link, shift, u)
        for t in range(n):
            i = order[first + t]
            y = labels[i]
            total = 0.0
            for k in range(n_classes):
                total += (code[y] - code[k]) * np.rint(u[t, k] * unit)
            out[i, 0] = times(weights[i], np.rint(total / 2.0))
            out[i, 1] = 1
            if weight_factor > 0.0:
                out[i, 2] = np.int64(np.rint(weights[i] * weight_factor))


@kernel
def class_pairs(scores, labels, weights, rows, leaf, s, link, shift, factor, groups, out):
    """Add to out[g, y, k] the sum of u[i, k] over the rows i of class y in the leaves l with groups[l] = g."""
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; rows, leaf (r,) int32: row rows[j] is in leaf leaf[j];
    #     groups (leaves,) int64
    # OUT: out (groups, K, K) int64, in units of 1/factor
    u, size = tile_of(scores.shape[1])
    unit = unit_of(link, shift, factor)
    for first in range(0, rows.shape[0], size):
        n = min(size, rows.shape[0] - first)
        weigh(scores, labels, rows, first, n, s, link, shift, u)
        for t in range(n):
            i = rows[first + t]
            add_times_row(out, groups[leaf[first + t]], labels[i], u, t, unit, *parts(weights[i]))


@kernel
def level_pairs(scores, labels, weights, rows, leaf, s, link, shift, factor, levels, out):
    """Add to out[l, a, b] the sum of u[i, k] over the rows i of leaf l with levels[y_i] = a, and the k with levels[k] = b."""
    # IN: as in `class_pairs`; levels (K,) int64
    # OUT: out (leaves, n_levels, n_levels) int64, in units of 1/factor
    n_classes = scores.shape[1]
    u, size = tile_of(n_classes)
    unit = unit_of(link, shift, factor)
    for first in range(0, rows.shape[0], size):
        n = min(size, rows.shape[0] - first)
        weigh(scores, labels, rows, first, n, s, link, shift, u)
        for t in range(n):
            i = rows[first + t]
            sums = out[leaf[first + t], levels[labels[i]]]
            for k in range(n_classes):
                sums[levels[k]] += times(weights[i], np.rint(u[t, k] * unit))


@kernel
def hits_and_misses(scores, labels, weights, order, spans, leaves, s, link, shift, factor, out):
    """Add up the weights that leaf l gets right, out[l, 0, c], and wrong, out[l, 1, c], if it votes for class c.

    The first is the sum of sum_k u[i, k] over its rows of class c, the second the sum of u[i, c] over its other rows.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32;
    #     spans (nodes, 2) int32; leaves (leaves,) int64
    # OUT: out (leaves, 2, K) int64, in units of 1/factor
    n_classes = scores.shape[1]
    u, size = tile_of(n_classes)
    unit = unit_of(link, shift, factor)
    for m in range(leaves.shape[0]):
        start, stop = spans[leaves[m]]
        for first in range(start, stop, size):
            n = min(size, stop - first)
            weigh(scores, labels, order, first, n, s, link, shift, u)
            for t in range(n):
                i = order[first + t]
                out[m, 0, labels[i]] += add_times_row(out, m, 1, u, t, unit, *parts(weights[i]))


@kernel
def line_sides(scores, labels, weights, order, spans, leaves, s, shift, factor, values, step, out):
    """Add up the risk's slope along a tree's leaf values, after a step: the terms that fall with the step, and those that rise.

    Let v be the values of the row's leaf, D the largest difference v[k] - v[y] of any leaf, d = (v[k] - v[y_i]) / D, and
    a = s step D. Each row i and class k adds

    * if d < 0: e[i, k] |d| exp(a d) to out[0], and e[i, k] d^2 exp(a d) to out[1];
    * if d > 0: e[i, k] d exp(a (d - 1)) to out[2], and e[i, k] d^2 exp(a (d - 1)) to out[3];
    * if d = 0: e[i, k] to out[4].

    No term exceeds e[i, k], so that no sum overflows.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32;
    #     spans (nodes, 2) int32; leaves (leaves,) int64; values (leaves, K) float64
    # OUT: out (5,) int64, in units of 1/factor
    n_classes = scores.shape[1]
    e, size = tile_of(n_classes)
    z = floats(n_classes)
    largest = 0.0
    for m in range(leaves.shape[0]):
        largest = max(largest, values[m].max() - values[m].min())
    a = s * step * largest
    for m in range(leaves.shape[0]):
        v = (values[m] - values[m].min()) / largest
        for k in range(n_classes):
            z[k] = exp(a * (v[k] - 1.0))
        start, stop = spans[leaves[m]]
        for first in range(start, stop, size):
            n = min(size, stop - first)
            weigh(scores, labels, order, first, n, s, EXPONENTIAL, shift, e)
            for t in range(n):
                i = order[first + t]
                y = labels[i]
                fall, fall2, rise, rise2, flat = 0.0, 0.0, 0.0, 0.0, 0.0
                for k in range(n_classes):
                    d = v[k] - v[y]
                    q = np.rint(e[t, k] * factor)
                    term = q * z[k] * d
                    flat += q if d == 0.0 else 0.0
                    if d < 0.0:
                        fall -= term
                        fall2 += term * d
                    else:
                        rise += term
                        rise2 += term * d
                down, up = exp(a * (1.0 - v[y])), exp(-a * v[y])
                out[0] += times(weights[i], np.rint(down * fall))
                out[1] += times(weights[i], np.rint(down * fall2))
                out[2] += times(weights[i], np.rint(up * rise))
                out[3] += times(weights[i], np.rint(up * rise2))
                out[4] += times(weights[i], flat)


@kernel
def table_sides(T, values, s, step, out):
    """Add up out[:4] of `line_sides` from the sums of `class_pairs`. Here d is not divided by D, nor the rising part by e^a."""
    # IN: T (leaves, K, K) float64: the sums of e, by leaf and pair of classes; values (leaves, K) float64
    # OUT: out (4,) float64, in the units of T
    n_classes = values.shape[1]
    z = floats(n_classes)
    for m in range(values.shape[0]):
        v = values[m]
        for k in range(n_classes):
            z[k] = exp(s * step * v[k])
        for y in range(n_classes):
            fall, fall2, rise, rise2 = 0.0, 0.0, 0.0, 0.0
            for k in range(n_classes):
                d = v[k] - v[y]
                term = T[m, y, k] * z[k] * d
                fall -= min(term, 0.0)
                fall2 += min(term, 0.0) * d
                rise += max(term, 0.0)
                rise2 += max(term, 0.0) * d
            u = exp(-s * step * v[y])
            out[0] += u * fall
            out[1] += u * fall2
            out[2] += u * rise
            out[3] += u * rise2


@compiled
def add_risk(scores, labels, weights, order, first, n, e, totals, factor, error_factor, judged, out, largest):
    """Do what `residuals` does for the risk, for a tile's rows. The weights of misclassified rows go to judged[1]."""
    # IN: as in `residuals`; e (n or more, K) float64: of `weigh`
    # OUT: totals (n or more,) float64: sum_k e[t, k]; judged, out (2,) int64; largest (1,) float64
    losses, most = np.int64(0), largest[0]
    for t in range(n):
        i = order[first + t]
        total = 0.0
        for k in range(e.shape[1]):
            total += e[t, k]
        totals[t] = total
        most = max(most, total)
        losses += times(weights[i], np.rint(total * factor))
        # Without a branch, nothing is mispredicted.
        judged[np.intp(is_beaten(scores, i, labels[i]))] += np.int64(np.rint(weights[i] * error_factor))
    out[1] += losses
    largest[0] = most


@kernel
def link_risk(scores, labels, weights, s, link, shifts, factor, error_factor, out, largest):
    """Do what `residuals` does for the risk, for the other links: the loss of each row is added to out[1].

    largest[0] is raised to the largest sum_k u[i, k] of one row, largest[1] to the largest loss of one row.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; shifts (2,) float64: of the weights, of the loss
    # OUT: out (2,) int64: out[0] in units of 1/error_factor, out[1] of e^shifts[1]/factor;
    #      largest (2,) float64, in units of e^shifts
    n_classes = scores.shape[1]
    u = floats(n_classes)
    u_unit, loss_unit = exp(-shifts[0]), exp(-shifts[1])
    for i in range(scores.shape[0]):
        if weights[i] == 0.0:
            continue
        y = labels[i]
        loss = linked_weights(scores[i], y, s, link, u)
        total = 0.0
        wrong = False
        for k in range(n_classes):
            total += u[k]
            wrong |= scores[i, k] > scores[i, y] or (scores[i, k] == scores[i, y] and k < y)
        largest[0] = max(largest[0], total * u_unit)
        largest[1] = max(largest[1], loss * loss_unit)
        out[1] += times(weights[i], np.rint(loss * loss_unit * factor))
        if wrong:
            out[0] += np.int64(np.rint(weights[i] * error_factor))


@kernel
def logistic_slopes(scores, labels, weights, order, spans, leaves, shift, factor, signs, centre, nodes, out):
    """Add up logistic weights by side, pair of classes and node of a grid, as they are after the margins have grown by d.

    out[h, y, r, m] is the sum of E e^-d / (1 + E e^-d) over the rows of class y != r in the leaves of sign -1 (h = 0) or +1
    (h = 1), with E = exp(F[i, r] - F[i, y]) and d = sign (centre[y] - centre[r]) + nodes[m].
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32;
    #     spans (nodes, 2) int32; leaves (leaves,) int64;
    #     signs (leaves,) float64, -1 or +1; centre (K,) float64; nodes (M,) float64
    # OUT: out (2, K, K, M) int64, in units of e^shift/factor
    n_classes = scores.shape[1]
    n_nodes = nodes.shape[0]
    q = floats(n_nodes)
    z = floats(n_nodes)
    for t in range(n_nodes):
        z[t] = exp(-nodes[t])
    shifted_factor = exp(-shift) * factor
    for m in range(leaves.shape[0]):
        side = np.int64(signs[m] > 0.0)
        for j in range(spans[leaves[m], 0], spans[leaves[m], 1]):
            i = order[j]
            y = labels[i]
            for r in range(n_classes):
                if r == y:
                    continue
                x = scores[i, r] - scores[i, y] - signs[m] * (centre[y] - centre[r])
                # t is e^x or e^-x, whichever is at most 1: it does not overflow.
                t = exp(-abs(x))
                for k in range(n_nodes):
                    if x > 0.0:
                        q[k] = np.rint(z[k] / (z[k] + t) * shifted_factor)
                    else:
                        q[k] = np.rint(t * z[k] / (1.0 + t * z[k]) * shifted_factor)
                for k in range(n_nodes):
                    out[side, y, r, k] += times(weights[i], q[k])


@kernel
def pair_slopes(scores, labels, weights, order, spans, leaves, logs, factor, values, steps, out):
    """Add up the slope of the logistic loss along a tree's leaf values, after each of eight steps: see `softmax.softmax_slopes`.

    A row adds the sum of u[k] (v[k] - v[y_i]) / D over k != y_i to out[c], where u[k] = E / (1 + E), E = exp(z[k] - z[y_i]) and
    z = F[i] + steps[c] v. out[8] is that of `softmax_slopes`.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32;
    #     spans (nodes, 2) int32; leaves (leaves,) int64; values (leaves, K) float64; logs, steps (8,) float64
    # OUT: out (9,) int64
    n_classes = scores.shape[1]
    t, size = tile_of(n_classes)
    z = floats(n_classes * LANES).reshape(n_classes, LANES)
    units, slopes = floats(LANES), floats(LANES)
    for c in range(LANES):
        units[c] = exp(-logs[c]) * factor
    largest = 0.0
    for m in range(leaves.shape[0]):
        largest = max(largest, values[m].max() - values[m].min())
    for m in range(leaves.shape[0]):
        v = (values[m] - values[m].min()) / largest
        for k in range(n_classes):
            for c in range(LANES):
                z[k, c] = exp(steps[c] * largest * (v[k] - 1.0))
        start, stop = spans[leaves[m]]
        for first in range(start, stop, size):
            n = min(size, stop - first)
            for j in range(n):
                i = order[first + j]
                for k in range(n_classes):
                    t[j, k] = -abs(scores[i, k] - scores[i, labels[i]])
            exp_rows(t, n)
            for j in range(n):
                i = order[first + j]
                y = labels[i]
                slopes[:] = 0.0
                is_alone = True
                for k in range(n_classes):
                    if k == y:
                        continue
                    d = v[k] - v[y]
                    is_alone &= d < 0.0
                    # E = e^x z[k] / z[y], x = F[i, k] - F[i, y]. t is e^x or e^-x, whichever is at most 1: it does not overflow.
                    own, other = (t[j, k], 1.0) if scores[i, k] > scores[i, y] else (1.0, t[j, k])
                    for c in range(LANES):
                        slopes[c] += d * (other * z[k, c] / (own * z[y, c] + other * z[k, c]))
                for c in range(LANES):
                    out[c] += times(weights[i], np.rint(slopes[c] * units[c]))
                if not is_alone:
                    out[LANES] += times(weights[i], factor)
