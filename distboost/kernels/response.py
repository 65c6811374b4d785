"""Weights from the score of a row's own class: w_i = exp(-s F[i, y_i]); GAMBLE has s = 1 / (K - 1).

They are multiplied by `exp(-shift)`, rounded to multiples of `1 / factor`, then multiplied by the row's own weight: see `margin`.
"""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.exponential import exp
from distboost.kernels.margin import times

WINDOW = 16  # bits of magnitude that share an accumulator
WINDOWS = 64
LN2 = 0.6931471805599453


@kernel
def response_weights(scores, labels, weights, order, s, shift, factor, out):
    """out[i] = w_i = exp(-s F[i, y_i] - shift)."""
    # OUT: out (n,) int64, in units of 1/factor
    for j in range(order.shape[0]):
        i = order[j]
        w = np.rint(exp(-s * scores[i, labels[i]] - shift) * factor)
        out[i] = times(weights[i], w)


@inlined
def windowed(exponent, last):
    """The window b, at most `last`, of the weight e^exponent, and the weight times 2^(WINDOW b)."""
    b = min(max(np.int64(-exponent / (WINDOW * LN2)), 0), last)
    return b, exp(exponent + b * (WINDOW * LN2))


@kernel
def class_sums(scores, labels, weights, order, spans, leaves, s, shift, factor, out):
    """Sums of w_i per leaf, window of magnitude and class: with windows, a leaf of small weights loses no digits.

    out[l, b, c] = sum of 2^(WINDOW b) exp(-s F[i, c] - shift) over the rows i of class c in leaf l whose weight lies between
    2^-(WINDOW (b + 1)) and 2^-(WINDOW b).
    """
    # OUT: out (leaves, windows, K) int64, in units of 1/factor
    last = out.shape[1] - 1
    for m in range(leaves.shape[0]):
        for j in range(spans[leaves[m], 0], spans[leaves[m], 1]):
            i = order[j]
            y = labels[i]
            b, w = windowed(-s * scores[i, y] - shift, last)
            out[m, b, y] += times(weights[i], np.rint(w * factor))


@kernel
def response_risk(scores, labels, weights, s, shift, factor, error_factor, out, largest):
    """Add misclassified rows' weights to out[0], in units of 1/error_factor, and w_i to out[1 + its window]: see `margin.risk`.

    largest[0] becomes the largest exponent -s F[i, y_i] - shift.
    """
    # OUT: out (1 + windows,) int64; largest (1,) float64
    last = out.shape[0] - 2
    for i in range(scores.shape[0]):
        if weights[i] == 0.0:
            continue
        y = labels[i]
        own = scores[i, y]
        exponent = -s * own - shift
        wrong = False
        for k in range(scores.shape[1]):
            wrong |= scores[i, k] > own or (scores[i, k] == own and k < y)
        largest[0] = max(largest[0], exponent)
        b, w = windowed(exponent, last)
        out[1 + b] += times(weights[i], np.rint(w * factor))
        if wrong:
            out[0] += np.int64(np.rint(weights[i] * error_factor))
