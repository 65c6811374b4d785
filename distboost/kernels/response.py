"""Weights that depend only on the score of a row's class: w_i = exp(-s F[i, y_i]). GAMBLE uses s = 1 / (K - 1).

Every kernel divides w_i by `exp(shift)`, rounds it to a multiple of `1 / factor`, then multiplies it by the row weight, as in
`margin`. Weights may differ by many orders of magnitude. Where this matters, they are summed in *windows*: window b holds the
weights between 2^-(WINDOW (b + 1)) and 2^-(WINDOW b), which are multiplied by 2^(WINDOW b) before they are rounded.
"""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.exponential import exp
from distboost.kernels.margin import times

WINDOW = 16  # the weights in a window are within a factor of 2^WINDOW
WINDOWS = 64
LN2 = 0.6931471805599453


@kernel
def response_weights(scores, labels, weights, order, s, shift, factor, out):
    """Set out[i] = exp(-s F[i, y_i] - shift), times the row weight, for the rows in `order`."""
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32
    # OUT: out (n,) int64, in units of 1/factor
    for j in range(order.shape[0]):
        i = order[j]
        w = np.rint(exp(-s * scores[i, labels[i]] - shift) * factor)
        out[i] = times(weights[i], w)


@inlined
def windowed(exponent, last):
    """Return the window b of the weight e^exponent, at most `last`, and the weight times 2^(WINDOW b)."""
    b = min(max(np.int64(-exponent / (WINDOW * LN2)), 0), last)
    return b, exp(exponent + b * (WINDOW * LN2))


@kernel
def class_sums(scores, labels, weights, order, spans, leaves, s, shift, factor, out):
    """Add to out[l, b, c] the weights w_i of the rows of class c in leaf l that belong to window b.

    With windows, the sums of a leaf of light rows are as precise as those of other leaves.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64; order (r,) int32; spans (nodes, 2) int32;
    #     leaves (leaves,) int64
    # OUT: out (leaves, windows, K) int64: out[:, b] in units of 2^-(WINDOW b) e^shift/factor
    last = out.shape[1] - 1
    for m in range(leaves.shape[0]):
        for j in range(spans[leaves[m], 0], spans[leaves[m], 1]):
            i = order[j]
            y = labels[i]
            b, w = windowed(-s * scores[i, y] - shift, last)
            out[m, b, y] += times(weights[i], np.rint(w * factor))


@kernel
def response_risk(scores, labels, weights, s, shift, factor, error_factor, out, largest):
    """Add the row weights of misclassified rows to out[0], as `margin.residuals` does, and w_i to out[1 + b] for its window b.

    largest[0] is raised to the largest exponent -s F[i, y_i] - shift.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64
    # OUT: out (1 + windows,) int64: out[0] in units of 1/error_factor, out[1 + b] of 2^-(WINDOW b) e^shift/factor;
    #      largest (1,) float64
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
