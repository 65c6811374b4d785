"""The multiclass hinge loss max(0, max_k 1 + F[k] - F[y], k != y), and its cutting planes over the coefficients of stumps.

A row's *cut* at the scores F is the subgradient of its loss: the classes k that attain the maximum share a weight of 1, against
the row's own class. It is 0 where the loss is 0.
"""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.corrective import stump_scores, stump_sides
from distboost.kernels.margin import times
from distboost.kernels.memory import floats, integers


@inlined
def hinge(F, y):
    """Return the largest score of a class but y, plus 1, minus that of y."""
    highest = -np.inf
    for k in range(F.shape[0]):
        if k != y:
            highest = max(highest, F[k])
    return 1.0 + (highest - F[y])


@inlined
def cut(F, y, u):
    """Set u[k] to the weight of class k in the row's cut, u[y] = 0; return whether the loss is above 0."""
    # IN: F (K,) float64
    # OUT: u (K,) float64
    loss = hinge(F, y)
    n = 0
    for k in range(F.shape[0]):
        u[k] = 1.0 if loss > 0.0 and k != y and 1.0 + (F[k] - F[y]) == loss else 0.0
        n += u[k] > 0.0
    for k in range(F.shape[0]):
        u[k] /= max(n, 1)
    return n > 0


@kernel
def hinge_risk(scores, labels, weights, shift, factor, error_factor, out, largest):
    """Add the row weights of misclassified rows to out[0], as `margin.residuals` does, and the losses to out[1].

    largest[0] is raised to the largest 1 + loss of a row.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64
    # OUT: out (2,) int64: out[0] in units of 1/error_factor, out[1] of e^shift/factor; largest (1,) float64, in units of e^shift
    unit = np.exp(-shift)
    F = floats(scores.shape[1])
    for i in range(scores.shape[0]):
        if weights[i] == 0.0:
            continue
        y = labels[i]
        wrong = False
        for k in range(scores.shape[1]):
            F[k] = scores[i, k]
            wrong |= scores[i, k] > scores[i, y] or (scores[i, k] == scores[i, y] and k < y)
        loss = max(hinge(F, y), 0.0)
        largest[0] = max(largest[0], (1.0 + loss) * unit)
        out[1] += times(weights[i], np.rint(loss * unit * factor))
        if wrong:
            out[0] += np.int64(np.rint(weights[i] * error_factor))


@kernel
def cutting_planes(
    bins,
    missing_bin,
    labels,
    weights,
    order,
    feature,
    split_bin,
    missing_left,
    sets,
    polarity,
    W,
    factor,
    out,
):
    """Add the rows' cuts at F[i, k] = sum_t h_t(x_i) W[t, k], a plane for each class y of rows.

    out[y, t, k] is the sum of h_t(x_i) V[i, k], minus the derivative of the loss with respect to W[t, k]. V is the cut: 1 at the
    row's class, minus the weights of the others. out[y, T, 0] is the weight of the rows with a loss.
    """
    # IN: bins (n, D) uint8; missing_bin (D,) int64; labels (n,) int32; weights (n,) float64; order (r,) int32; feature,
    #     split_bin (T,) int64; missing_left (T,) bool; sets (T, SET_WORDS) uint64; polarity (T,) float64; W (T, K) float64
    # OUT: out (K, T + 1, K) int64, in units of 1/factor
    n_stumps, n_classes = W.shape
    h, F, u, V = integers(n_stumps), floats(n_classes), floats(n_classes), integers(n_classes)
    for j in range(order.shape[0]):
        i = order[j]
        y = labels[i]
        stump_sides(bins, i, missing_bin, feature, split_bin, missing_left, sets, polarity, h)
        stump_scores(h, W, F)
        if not cut(F, y, u):
            continue
        out[y, n_stumps, 0] += times(weights[i], factor)
        whole = np.int64(0)
        for k in range(n_classes):
            V[k] = -times(weights[i], np.rint(u[k] * factor))
            whole -= V[k]
        V[y] = whole
        for t in range(n_stumps):
            for k in range(n_classes):
                out[y, t, k] += h[t] * V[k]


@kernel
def mixed_cuts(
    bins, missing_bin, labels, weights, order, feature, split_bin, missing_left, sets, polarity, W, shares, factor,
    weight_factor, out,
):  # fmt: skip
    """Set out[i] = (V, 1, row weight) for the rows in `order`: V sums the row's cuts at each W[p], times shares[p, y].

    V is as in `cutting_planes`. If weight_factor is 0, the row weight is left out.
    """
    # IN: as in `cutting_planes`, but W (P, T, K) float64; shares (P, K) float64, of sum 1 at the most over P
    # OUT: out (n, channels) int64: V in units of 1/factor, the row weight in units of 1/weight_factor
    n_planes, n_stumps, n_classes = W.shape
    h, F, u, V = integers(n_stumps), floats(n_classes), floats(n_classes), floats(n_classes)
    for j in range(order.shape[0]):
        i = order[j]
        y = labels[i]
        stump_sides(bins, i, missing_bin, feature, split_bin, missing_left, sets, polarity, h)
        V[:] = 0.0
        for p in range(n_planes):
            if shares[p, y] > 0.0:
                stump_scores(h, W[p], F)
                cut(F, y, u)
                for k in range(n_classes):
                    V[k] += shares[p, y] * u[k]
        whole = np.int64(0)
        for k in range(n_classes):
            v = times(weights[i], np.rint(V[k] * factor))
            out[i, k] = -v
            whole += v
        out[i, y] = whole
        out[i, n_classes] = 1
        if weight_factor > 0.0:
            out[i, n_classes + 1] = np.int64(np.rint(weights[i] * weight_factor))
