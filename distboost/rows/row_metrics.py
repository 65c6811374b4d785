"""Means over evaluation rows of a number that each row has, such as its log-loss, from exact sums.

A number is cut into three digits of 31 bits, in units of 1, 2^-31 and 2^-62. A digit times the row's weight in units of
1/ERROR_FACTOR is below 2^61. Its upper bits and its lower 31 bits are summed apart: each sum over 2^32 rows fits int64. So the
mean does not depend on blocks, threads or workers, and a row of weight 2 counts as two rows, to the last bit.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from distboost.rows.block import BlockRows
from distboost.rows.exact import DIGIT_BITS, DIGITS, digits
from distboost.rows.sums import ERROR_FACTOR

N_SUMS = 2 * DIGITS  # integers that a metric adds to an answer
LARGEST = 2.0**DIGIT_BITS  # numbers are smaller than this

FIRST = np.zeros(1, np.int64)  # the position of the first digit of all numbers

# Metrics are computed for few rows at a time: probabilities of a whole block would take as much memory as its scores.
PIECE_NUMBERS = 2**15


class RowMetric(Protocol):
    """A number of each row: a metric is its weighted mean."""

    @property
    def name(self) -> str:
        """The name of the metric in histories."""

    def values(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the numbers, (n,) float64 between -LARGEST and LARGEST.

        `labels` are class indices, (n,) int32; `scores` those that training keeps, (n, n_scores).
        """


def add_rows(metric: RowMetric, block: BlockRows, out: np.ndarray) -> None:
    """Add the rows of a block to the sums of a metric, (N_SUMS,) int64."""
    scores, labels, weights, present = block.scores, block.labels, block.weights, block.present
    step = max(PIECE_NUMBERS // scores.shape[1], 1)
    for start in range(0, len(present), step):
        rows = present[start : start + step]
        units = np.rint(weights[rows] * ERROR_FACTOR).astype(np.int64)
        out += digit_sums(metric.values(labels[rows], scores[rows]), units)


def digit_sums(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return the sums of the digits of values, (n,) float64, times weights, (n,) int64: (N_SUMS,) int64."""
    sums = np.zeros((DIGITS, 2), np.int64)
    for pair, (_, digit) in zip(sums, digits(values, FIRST), strict=False):
        products = digit.astype(np.int64) * units
        pair[:] = (products >> DIGIT_BITS).sum(), (products & (2**DIGIT_BITS - 1)).sum()
    return sums.ravel()


def mean(sums: np.ndarray, weight_units: int) -> float:
    """Return the mean from the sums over all rows, (N_SUMS,) int64, and their total weight in units of 1/ERROR_FACTOR.

    >>> mean(digit_sums(np.array([0.25, -1.0]), np.array([2, 1])), 3)
    -0.16666666666666666
    """
    total = 0
    for upper, lower in sums.reshape(DIGITS, 2).tolist():
        total = (total << DIGIT_BITS) + (upper << DIGIT_BITS) + lower
    return total / (weight_units << DIGIT_BITS * (DIGITS - 1))
