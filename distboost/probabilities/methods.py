"""The methods of calibration, each from sums over rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from distboost.data.source import spans
from distboost.model.learned import TEMPERATURE, VECTOR, Calibration, check_method
from distboost.probabilities import temperature, vector
from distboost.probabilities.temperature import TemperatureSums, fit_temperature
from distboost.probabilities.vector import VectorSums, fit_vector

# What to sum over rows: called with the scores F (n, K), the class indices (n,) and the weights (n,) of a block.
ScoreSums = TemperatureSums | VectorSums

# The most scores that are summed over together: an array of them, of which the sums make dozens, stays in the cache.
PIECE_SCORES = 2**15

# The most passes over the rows.
PASSES = {TEMPERATURE: temperature.PASSES, VECTOR: temperature.PASSES + vector.PASSES}


def sums_of_scores(wanted: ScoreSums, F: np.ndarray, codes: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the sums over any number of rows with the scores F (n, K), (wanted.size(K),) int64."""
    n_classes = F.shape[1]
    sums = np.zeros(wanted.size(n_classes), np.int64)
    for a, b in spans(0, len(codes), max(PIECE_SCORES // n_classes, 1)):
        sums += wanted(F[a:b], codes[a:b], w[a:b])
    return sums


def fit_calibration(method: str, sums: Callable[[ScoreSums], np.ndarray], n_classes: int) -> Calibration:
    """Return the calibration by a method; `sums(wanted)` returns the sums over all rows."""
    check_method(method, n_classes)
    T, rows = fit_temperature(sums)
    if method == TEMPERATURE:
        return Calibration(TEMPERATURE, T)
    return fit_vector(sums, T, rows, n_classes)
