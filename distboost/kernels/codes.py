"""Weights of rows in several binary problems, one for each of the C columns of a code: w[i, c] = exp(-code[y_i, c] F[i, c]).

A row whose class has the code 0 has no part in the problem: w is 0. Every kernel divides w by `exp(shift)`, rounds it to a
multiple of `1 / factor`, then multiplies it by the row weight, as in `margin`.
"""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.exponential import exp
from distboost.kernels.margin import times
from distboost.kernels.memory import floats

# A score whose weight is 0. It is finite, so that kernels can compute with it.
ABSENT = 1e15


@inlined
def column_weights(scores, code, shift, factor, w):
    """Set w[c] = exp(-code[c] F[c] - shift), rounded to integers in units of 1/factor; 0 where the code is 0."""
    # IN: scores (C,) float; code (C,) float64 of -1, 0 and +1
    # OUT: w (C,) float64
    for c in range(scores.shape[0]):
        w[c] = np.rint(exp(-code[c] * scores[c] - shift) * factor) if code[c] != 0.0 else 0.0


@kernel
def code_sides(scores, labels, weights, order, code, shift, factor, weight_factor, out):
    """Set out[i] = (N, P, 1, row weight) for the rows in `order`: N[c] = w[i, c] if code[y_i, c] is -1, P[c] = w[i, c] if +1.

    The other number of N[c] and P[c] is 0. If weight_factor is 0, the row weight is left out.
    """
    # IN: scores (n, C) float; labels (n,) int32; weights (n,) float64; order (r,) int32; code (K, C) float64 of -1, 0 and +1
    # OUT: out (n, channels) int32, or int64 if wide: N and P in units of 1/factor, the row weight in units of
    #      1/weight_factor; channels > 2 C, or > 2 C + 1 with the row weight
    n_columns = code.shape[1]
    w = floats(n_columns)
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
    """Turn a column into a problem of two classes: set out[i] = (-F, F), F = scores[i, column], and sides[i] to the row's class.

    The class is 1 if code[y_i] is +1, and 0 if it is -1. Hence the score of the row's class is code[y_i] F. If code[y_i] is 0,
    both scores are ABSENT.
    """
    # IN: scores (n, C) float; labels (n,) int32; code (K,) float64 of -1, 0 and +1
    # OUT: out (n, 2) float64; sides (n,) int32
    for i in range(scores.shape[0]):
        own = code[labels[i]]
        out[i, 0] = -scores[i, column] if own != 0.0 else ABSENT
        out[i, 1] = scores[i, column] if own != 0.0 else ABSENT
        sides[i] = own > 0.0


@kernel
def code_risk(scores, labels, weights, code, decode, votes, shifts, factor, error_factor, out, largest):
    """Add the row weights of misclassified rows to out[0], and the weights w[i, c] to out[1 + c].

    largest[c] is raised to the largest w[i, c]. The predicted class is the one with the largest ``decode @ F[i]``, or, if
    `votes`, ``decode @ tanh(F[i])``; if `decode` is empty, the one with the largest score. Ties go to the first class.
    """
    # IN: scores (n, C) float; labels (n,) int32; weights (n,) float64; code (K, C) float64 of -1, 0 and +1; decode (K, C) or
    #     (0, 0) float64; shifts (C,) float64, one per column
    # OUT: out (1 + C,) int64: out[0] in units of 1/error_factor, out[1 + c] of e^shifts[c]/factor; largest (C,) float64, in
    #      units of e^shifts[c]
    n_columns = code.shape[1]
    f = floats(n_columns)
    for i in range(scores.shape[0]):
        if weights[i] == 0.0:
            continue
        y = labels[i]
        for c in range(n_columns):
            f[c] = scores[i, c]
            if votes:
                t = exp(-2.0 * abs(f[c]))
                f[c] = np.copysign((1.0 - t) / (1.0 + t), f[c])
        for c in range(n_columns):
            if code[y, c] == 0.0:
                continue
            w = exp(-code[y, c] * scores[i, c] - shifts[c])
            largest[c] = max(largest[c], w)
            out[1 + c] += times(weights[i], np.rint(w * factor))
        best, chosen = -np.inf, 0
        for k in range(code.shape[0]):
            score = 0.0
            if decode.shape[0] == 0:
                score = f[k]
            else:
                for c in range(n_columns):
                    score += decode[k, c] * f[c]
            if score > best:
                best, chosen = score, k
        if chosen != y:
            out[0] += np.int64(np.rint(weights[i] * error_factor))
