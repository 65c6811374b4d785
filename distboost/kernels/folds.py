"""Folds of a cross-validation, dealt to the rows of each class."""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.random import word


@inlined
def _shuffle(draw, hand, order):
    """Put the folds into the order of a hand (Fisher & Yates), with random numbers of the positions of this hand."""
    n_folds = len(order)
    for j in range(n_folds):
        order[j] = j
    for j in range(n_folds - 1, 0, -1):
        r = np.int64(word(draw, hand * n_folds + j) % np.uint64(j + 1))
        other = order[r]
        order[r] = order[j]
        order[j] = other


@kernel
def deal(labels, weights, before, draws, orders, out):
    """Deal folds to the rows of weight above 0: each class gets hands of all folds, in a random order."""
    # IN: labels (n,) int32; weights (n,) float64; before (n_classes,) int64: rows of each class in earlier blocks;
    #     draws (n_classes,) uint64: keys of random numbers
    # OUT: orders (n_classes, n_folds) int64: the last hand of each class; out (n,) uint8
    n_folds = orders.shape[1]
    rank = before.copy()
    for k in range(len(rank)):
        _shuffle(draws[k], rank[k] // n_folds, orders[k])
    for i in range(len(labels)):
        if weights[i] > 0:
            k = labels[i]
            place = rank[k] % n_folds
            if place == 0:
                _shuffle(draws[k], rank[k] // n_folds, orders[k])
            out[i] = orders[k, place]
            rank[k] += 1
