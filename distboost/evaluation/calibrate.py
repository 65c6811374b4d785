"""The methods of calibration, each from sums over rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from distboost.evaluation import temperature, vector
from distboost.evaluation.temperature import TemperatureSums, fit_temperature
from distboost.evaluation.vector import VectorSums, fit_vector
from distboost.model.calibration import TEMPERATURE, VECTOR, Calibration, check_method

# What to sum over rows: called with the scores F (n, K), the class indices (n,) and the weights (n,) of a block.
ScoreSums = TemperatureSums | VectorSums

# The most passes over the rows.
PASSES = {TEMPERATURE: temperature.PASSES, VECTOR: temperature.PASSES + vector.PASSES}


def fit_calibration(method: str, sums: Callable[[ScoreSums], np.ndarray], n_classes: int) -> Calibration:
    """Return the calibration by a method; `sums(wanted)` returns the sums over all rows."""
    check_method(method, n_classes)
    T, rows = fit_temperature(sums)
    if method == TEMPERATURE:
        return Calibration(TEMPERATURE, T)
    return fit_vector(sums, T, rows, n_classes)
