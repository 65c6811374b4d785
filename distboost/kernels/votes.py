"""The game for the 0-1 loss, in which the scores of a row count the votes for each class."""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.margin import times


@kernel
def vote_gains(costs, labels, weights, order, factor, weight_factor, out):
    """Set out[i, k] = costs[j, y_i] - costs[j, k] for i = order[j], then 1 and the row weight, as `margin.residuals` does."""
    # IN: costs (r, K) float64, in [0, 1]; labels (n,) int32; weights (n,) float64; order (r,) int32
    # OUT: out (n, channels) int64, in units of 1/factor, the row weight in units of 1/weight_factor;
    #      channels > K, or > K + 1 with the row weight
    n_classes = costs.shape[1]
    for j in range(order.shape[0]):
        i = order[j]
        own = costs[j, labels[i]]
        for k in range(n_classes):
            out[i, k] = times(weights[i], np.rint((own - costs[j, k]) * factor))
        out[i, n_classes] = 1
        if weight_factor > 0.0:
            out[i, n_classes + 1] = np.int64(np.rint(weights[i] * weight_factor))


@kernel
def vote_risk(scores, labels, weights, factor, error_factor, out):
    """Add the row weights of misclassified rows to out[0] and out[1].

    The predicted class is the first of those with the most votes. In out[1], a tie is an error too.
    """
    # IN: scores (n, K) float; labels (n,) int32; weights (n,) float64
    # OUT: out (2,) int64: out[0] in units of 1/error_factor, out[1] of 1/factor
    for i in range(scores.shape[0]):
        if weights[i] == 0.0:
            continue
        y = labels[i]
        wrong, tied = False, False
        for k in range(scores.shape[1]):
            wrong |= scores[i, k] > scores[i, y] or (scores[i, k] == scores[i, y] and k < y)
            tied |= scores[i, k] >= scores[i, y] and k != y
        if wrong:
            out[0] += np.int64(np.rint(weights[i] * error_factor))
        if tied:
            out[1] += times(weights[i], factor)
