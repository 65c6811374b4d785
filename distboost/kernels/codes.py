"""Weights of rows in several binary problems: w[i, c] = exp(-code[y_i, c] F[i, c]).

They are multiplied by `exp(-shift)`, rounded to multiples of `1 / factor`, then multiplied by the row's own weight: see `margin`.
"""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.exponential import exp
from distboost.kernels.margin import times


@inlined
def column_weights(scores, code, shift, factor, w):
    """w[c] = exp(-code[c] F[c] - shift) as a whole multiple of 1/factor (stored times factor)."""
    for c in range(scores.shape[0]):
        w[c] = np.rint(exp(-code[c] * scores[c] - shift) * factor)


@kernel
def code_sides(scores, labels, weights, order, code, shift, factor, weight_factor, out):
    """out[i] = (N[i], P[i], 1, weights[i], 0...): w[i, c] is in N[i, c] if code[y_i, c] is -1, in P[i, c] if it is +1."""
    # IN: scores (n, C) float64; code (K, C) of -1 and +1
    # OUT: out (n, channels) int32, or int64 if wide
    n_columns = code.shape[1]
    w = np.empty(n_columns)
    for j in range(order.shape[0]):
        i = order[j]
        y = labels[i]
        column_weights(scores[i], code[y], shift, factor, w)
        for c in range(n_columns):
            q = times(weights[i], w[c])
            positive = code[y, c] > 0.0
            out[i, c] = 0 if positive else q
            out[i, n_columns + c] = q if positive else 0
        out[i, 2 * n_columns] = 1
        if weight_factor > 0.0:
            out[i, 2 * n_columns + 1] = np.int64(np.rint(weights[i] * weight_factor))


@kernel
def two_classes(scores, labels, code, column, out, sides):
    """out[i] = (-F, F) of the column; sides[i] = 1 if the code of the row's class is +1. The own side has score code F."""
    # IN: code (K,) of -1 and +1
    # OUT: out (n, 2) float64; sides (n,) int32
    for i in range(scores.shape[0]):
        out[i, 0] = -scores[i, column]
        out[i, 1] = scores[i, column]
        sides[i] = code[labels[i]] > 0.0


@kernel
def code_risk(scores, labels, weights, code, decode, shifts, factor, error_factor, out, largest):
    """Add the weights of misclassified rows to out[0], in units of 1/error_factor, and the weights w[i, c] to out[1 + c].

    largest[c] becomes the largest w[i, c]. The prediction is the first class of largest ``decode @ F[i]``; if `decode` is empty,
    of largest score.
    """
    # IN: shifts (C,) float64, one per column
    # OUT: out (1 + C,) int64; largest (C,) float64
    n_columns = code.shape[1]
    for i in range(scores.shape[0]):
        if weights[i] == 0.0:
            continue
        y = labels[i]
        for c in range(n_columns):
            w = exp(-code[y, c] * scores[i, c] - shifts[c])
            largest[c] = max(largest[c], w)
            out[1 + c] += times(weights[i], np.rint(w * factor))
        best, chosen = -np.inf, 0
        for k in range(code.shape[0]):
            score = 0.0
            if decode.shape[0] == 0:
                score = np.float64(scores[i, k])
            else:
                for c in range(n_columns):
                    score += decode[k, c] * scores[i, c]
            if score > best:
                best, chosen = score, k
        if chosen != y:
            out[0] += np.int64(np.rint(weights[i] * error_factor))
