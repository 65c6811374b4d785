"""Rows weighted by their margins: e[i, k] = exp(-s (F[i, y_i] - F[i, k])) for k != y_i, and e[i, y_i] = 0.

Every kernel works with e scaled down by `exp(shift)`, which keeps a row's total at most 1, and rounds it to a multiple of
`1 / scale`; the sums are then integers and exact. A row's weight multiplies after the rounding, so that an integer weight
is the row repeated.
"""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.exponential import exp


@inlined
def times(weight, q):
    """weight * q as an integer: exact for an integer weight, else rounded."""
    whole = np.int64(weight)
    if whole == weight:
        return whole * np.int64(q)
    return np.int64(np.rint(weight * q))


@inlined
def margin_weights(scores, y, s, shift, scale, e):
    """e[k] = exp(-s (F[y] - F[k]) - shift) as a whole multiple of 1/scale (stored times scale); e[y] = 0."""
    own = scores[y]
    for k in range(scores.shape[0]):
        e[k] = np.rint(exp(s * (scores[k] - own) - shift) * scale)
    e[y] = 0.0


@kernel
def residuals(scores, labels, weights, order, s, shift, scale, weight_unit, out):
    """out[i] = (V[i, 0], ..., V[i, K-1], 1, weights[i], 0...): V[i, y_i] = sum_k e[i, k], V[i, k] = -e[i, k] otherwise.

    The row's own weight, in units of 1/weight_unit, is left out where weight_unit is 0.
    """
    # IN: scores (n, K) float64; labels (n,) int32; weights (n,) float64; order: the rows in use
    # OUT: out (n, C) int32, C > K (C > K + 1 with the weight)
    n_classes = scores.shape[1]
    e = np.empty(n_classes)
    for j in range(order.shape[0]):
        i = order[j]
        y = labels[i]
        margin_weights(scores[i], y, s, shift, scale, e)
        total = np.int64(0)
        for k in range(n_classes):
            q = times(weights[i], e[k])
            out[i, k] = -q
            total += q
        out[i, y] = total
        out[i, n_classes] = 1
        if weight_unit > 0.0:
            out[i, n_classes + 1] = np.int64(np.rint(weights[i] * weight_unit))


@kernel
def class_pairs(scores, labels, weights, order, spans, leaves, s, shift, scale, out):
    """out[l, y, k] = sum of e[i, k] over the rows i of class y in leaf l."""
    # OUT: out (leaves, K, K) int64
    n_classes = scores.shape[1]
    e = np.empty(n_classes)
    for m in range(leaves.shape[0]):
        for j in range(spans[leaves[m], 0], spans[leaves[m], 1]):
            i = order[j]
            y = labels[i]
            margin_weights(scores[i], y, s, shift, scale, e)
            for k in range(n_classes):
                out[m, y, k] += times(weights[i], e[k])


@kernel
def hits_and_misses(scores, labels, weights, order, spans, leaves, s, shift, scale, out):
    """out[l, 0, c] = sum over rows of class c in leaf l of sum_k e[i, k]; out[l, 1, c] = sum over the other rows of e[i, c].

    What a leaf that votes for class c gets right and wrong.
    """
    # OUT: out (leaves, 2, K) int64
    n_classes = scores.shape[1]
    e = np.empty(n_classes)
    for m in range(leaves.shape[0]):
        for j in range(spans[leaves[m], 0], spans[leaves[m], 1]):
            i = order[j]
            y = labels[i]
            margin_weights(scores[i], y, s, shift, scale, e)
            for k in range(n_classes):
                q = times(weights[i], e[k])
                out[m, 1, k] += q
                out[m, 0, y] += q


@kernel
def line_sides(scores, labels, weights, order, spans, leaves, s, shift, scale, values, step, out):
    """The falling and the rising part of the risk's slope along a tree's leaf values, after a step.

    With d = (v[k] - v[y_i]) / D for the row's leaf, D the largest such difference of any leaf, and a = s step D, over rows and
    classes: out[0] = sum of e[i, k] |d| exp(a d) where d < 0, out[1] = the same of d^2; out[2] = sum of e[i, k] d exp(a (d - 1))
    where d > 0, out[3] = the same of d^2. No term is above e[i, k].
    """
    # IN: values (leaves, K) float64
    # OUT: out (4,) int64, in units of 1/scale
    n_classes = scores.shape[1]
    e, z = np.empty(n_classes), np.empty(n_classes)
    largest = 0.0
    for m in range(leaves.shape[0]):
        largest = max(largest, values[m].max() - values[m].min())
    a = s * step * largest
    for m in range(leaves.shape[0]):
        v = (values[m] - values[m].min()) / largest
        for k in range(n_classes):
            z[k] = exp(a * (v[k] - 1.0))
        for j in range(spans[leaves[m], 0], spans[leaves[m], 1]):
            i = order[j]
            y = labels[i]
            margin_weights(scores[i], y, s, shift, scale, e)
            fall, fall2, rise, rise2 = 0.0, 0.0, 0.0, 0.0
            for k in range(n_classes):
                d = v[k] - v[y]
                term = e[k] * z[k] * d
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


@kernel
def table_sides(T, values, s, step, out):
    """`line_sides` from the sums of e by leaf and pair of classes; d is not divided by D, nor the rising part by e^a."""
    # IN: T (leaves, K, K) float64, as `class_pairs` gives it; values (leaves, K) float64
    # OUT: out (4,) float64
    n_classes = values.shape[1]
    z = np.empty(n_classes)
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


@kernel
def risk(scores, labels, weights, s, shift, scale, unit, out, largest):
    """Adds the rows' classification errors, in units of 1/unit, to out[0] and their total margin weight to out[1].

    largest[0] becomes the largest total sum_k e[i, k] of one row. The prediction is the first class of largest score.
    """
    # OUT: out (2,) int64; largest (1,) float64
    n_classes = scores.shape[1]
    e = np.empty(n_classes)
    for i in range(scores.shape[0]):
        if weights[i] == 0.0:
            continue
        y = labels[i]
        own = scores[i, y]
        total = 0.0
        n_above = 0
        for k in range(n_classes):
            e[k] = exp(s * (scores[i, k] - own) - shift)
            n_above += (scores[i, k] > own) | ((scores[i, k] == own) & (k < y))
        e[y] = 0.0
        for k in range(n_classes):
            total += e[k]
        largest[0] = max(largest[0], total)
        out[1] += times(weights[i], np.rint(total * scale))
        if n_above > 0:
            out[0] += np.int64(np.rint(weights[i] * unit))
