"""The loss and its slopes along the coefficients of all weak learners of an ensemble."""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.exponential import exp
from distboost.kernels.margin import linked_weights, times
from distboost.kernels.memory import floats, integers
from distboost.kernels.partition import goes_left
from distboost.kernels.tiles import EXPONENTIAL


@inlined
def stump_sides(bins, i, missing_bin, feature, split_bin, missing_left, sets, polarity, h):
    """Set h[t] to the value of stump t for row i: -polarity[t] on the left, +polarity[t] on the right."""
    # IN: bins (n, D) uint8; missing_bin (D,) int64; feature, split_bin (T,) int64; missing_left (T,) bool;
    #     sets (T, SET_WORDS) uint64; polarity (T,) float64
    # OUT: h (T,) int64
    for t in range(h.shape[0]):
        d = feature[t]
        b = np.int64(bins[i, d])
        left = goes_left(b, split_bin[t], missing_bin[d], missing_left[t], sets, t)
        h[t] = -np.int64(polarity[t]) if left else np.int64(polarity[t])


@inlined
def stump_scores(h, W, F):
    """Set F[k] = sum_t h[t] W[t, k]."""
    # IN: h (T,) int64; W (T, K) float64
    # OUT: F (K,) float64
    F[:] = 0.0
    for t in range(h.shape[0]):
        for k in range(F.shape[0]):
            F[k] += h[t] * W[t, k]


@kernel
def corrective_slopes(
    bins, missing_bin, labels, weights, order, feature, split_bin, missing_left, sets, polarity, W,
    link, shift, loss_shift, factor, slopes, loss, largest,
):  # fmt: skip
    """Add the sum of h_t(x_i) V[i, r] to slopes[t, r] and the loss to loss[0], at the scores F[i, r] = sum_t h_t(x_i) W[t, r].

    Stump h_t is -polarity[t] on the left and +polarity[t] on the right. V are the residuals of `margin.residuals` for s = 1 and
    own = 1, so that slopes[t, r] is minus the derivative of the loss with respect to W[t, r]. largest[0] is raised to the
    largest total weight sum_k u[i, k] of one row, and largest[1] to the largest loss of one row.

    With the exponential link, a row's loss is its total weight, and `shift` is the shift of both.
    """
    # IN: bins (n, D) uint8; missing_bin (D,) int64; labels (n,) int32; weights (n,) float64; order (r,) int32;
    #     feature, split_bin (T,) int64; missing_left (T,) bool; sets (T, SET_WORDS) uint64; polarity (T,) float64;
    #     W (T, K) float64
    # OUT: slopes (T, K) int64, in units of e^shift/factor; loss (K,) int64, of which loss[0] is used, in units of
    #      e^loss_shift/factor; largest (2,) float64, in units of e^shift and e^loss_shift
    n_stumps, n_classes = W.shape
    h = integers(n_stumps)
    F, u, V = floats(n_classes), floats(n_classes), integers(n_classes)
    unit, loss_unit = exp(-shift), exp(-loss_shift)
    for j in range(order.shape[0]):
        i = order[j]
        y = labels[i]
        stump_sides(bins, i, missing_bin, feature, split_bin, missing_left, sets, polarity, h)
        stump_scores(h, W, F)
        total, row_loss = 0.0, 0.0
        if link == EXPONENTIAL:
            for k in range(n_classes):
                u[k] = exp(F[k] - F[y] - shift)
            u[y] = 0.0
        else:
            row_loss = linked_weights(F, y, 1.0, link, u) * loss_unit
            for k in range(n_classes):
                u[k] *= unit
        for k in range(n_classes):
            total += u[k]
        if link == EXPONENTIAL:
            row_loss = total
        largest[0] = max(largest[0], total)
        largest[1] = max(largest[1], row_loss)
        whole = np.int64(0)
        for k in range(n_classes):
            V[k] = -times(weights[i], np.rint(u[k] * factor))
            whole -= V[k]
        V[y] = whole
        loss[0] += times(weights[i], np.rint(row_loss * factor))
        for t in range(n_stumps):
            for k in range(n_classes):
                slopes[t, k] += h[t] * V[k]
