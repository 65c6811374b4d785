"""Vector scaling (Guo et al. 2017), held near the temperature by a penalty, from sums over rows.

With T the temperature of the rows (`temperature`) and G = F - mean F, the mean over the row's classes, the probabilities are

    p = softmax(a * G / T + b),

with a scale a_k and a shift b_k for each class.

**The penalty.** Let s be the mean of a row's largest G / T. Then (a_k - 1) s and b_k are about the changes of a typical row's
logit. a and b minimise the sum of the log-losses of the rows, with the smoothed labels of the temperature, plus

    PENALTY / 2 sum_k ((a_k - 1) s)^2 + b_k^2.

A row that is undecided between two classes has the curvature 1/4 by the shift of either. So 4 PENALTY such rows
hold each of these numbers, or a prior with the standard deviation 1 / sqrt(PENALTY). The rows count as many as they do for the
smoothing.

**The fit.** The objective is strictly convex. Newton's method begins at the temperature, and each pass over the rows sums the
first and the second derivatives at a point. The first ones are exact. The second ones only say where to look next: they are
whole numbers on a grid that cannot overflow. If the objective rises towards the end of a step, the next pass looks before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distboost.kernels.curvature import add_curvatures
from distboost.kernels.elementary import softmax
from distboost.model.learned import VECTOR, Calibration, centred
from distboost.probabilities.temperature import Moments
from distboost.process import single_blas
from distboost.rows.exact import POSITIONS, few_exact_sums, real_numbers, rounded

PENALTY = 16.0

PASSES = 10  # the most; mostly 3 or 4
CLOSE = 1e-3  # after a step as short as this, the next one would be about its square
LONGEST = 2.0  # change of a logit in one step
TOO_FAR = 0.25  # of the slope at the beginning of a step, upwards at its end

# The limits of the second derivatives.
MOST_BITS = 36
FARTHEST = 16.0  # in units of the spread: scores that are farther from their mean count as if they were not


class VectorSums(NamedTuple):
    """The sums over rows from which the derivatives of the log-loss of softmax(slopes * g + shifts) by both follow.

    They are whole numbers: of the first derivatives, exact sums of the terms above 0 and of those below, by the slopes and by the
    shifts, (POSITIONS, 4 K); then the second derivatives, (2 K, 2 K).

    Attributes
    ----------
    slopes, shifts : ndarray of shape (K,), float64
    spread : float
        g are the scores less their mean, in this unit.
    smoothing : float
        The weight of all classes in equal parts in the label of a row.
    factor : float
        Second derivatives are in units of 1 / factor.
    unit : float
        A power of two: the unit of the weights in second derivatives.
    """

    slopes: np.ndarray
    shifts: np.ndarray
    spread: float
    smoothing: float
    factor: float
    unit: float

    def size(self, n_classes: int) -> int:
        """Return the number of sums."""
        return POSITIONS * 4 * n_classes + (2 * n_classes) ** 2

    def __call__(self, F: np.ndarray, codes: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return the sums over some rows, as `TemperatureSums` does."""
        n, n_classes = F.shape
        g = centred(F) / self.spread
        p = softmax(g * self.slopes + self.shifts)
        second = np.zeros((2 * n_classes, 2 * n_classes), np.int64)
        add_curvatures(p, np.clip(g, -FARTHEST, FARTHEST), w / self.unit, self.factor, second)
        p -= self.smoothing / n_classes
        p[np.arange(n), codes] -= 1 - self.smoothing
        terms = np.concatenate([p * g, p], axis=1)
        cells = np.arange(2 * n_classes) + 2 * n_classes * (terms < 0)
        values = w[:, None] * rounded(np.abs(terms))
        first = few_exact_sums(cells.ravel(), values.ravel(), 4 * n_classes)
        return np.concatenate([first.ravel(), second.ravel()])


class _VectorDerivatives(NamedTuple):
    """The first and the second derivatives of the objective, (2 K,) and the lower triangle of (2 K, 2 K)."""

    first: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, sums: np.ndarray, wanted: VectorSums, point: np.ndarray, rows: Moments) -> _VectorDerivatives:
        """Return the derivatives at a point, for which the `wanted` sums are these."""
        n_first = sums.size - point.size**2
        up, down = np.split(real_numbers(sums[:n_first].reshape(POSITIONS, -1)), 2)
        second = sums[n_first:].reshape(point.size, point.size) * (wanted.unit / wanted.factor)
        each = rows.n_counted / rows.weight
        return cls(
            each * (up - down) + PENALTY * point,
            each * second + PENALTY * np.eye(point.size),
        )

    def step(self) -> np.ndarray:
        """Return Newton's step, shortened if it is too long, (2 K,)."""
        with single_blas():  # the last digits depend on the number of threads
            values, vectors = np.linalg.eigh(self.second)
            # No curvature is smaller than the penalty's, but for rounding.
            found: np.ndarray = -(vectors @ ((vectors.T @ self.first) / np.maximum(values, PENALTY)))
        longest = float(np.abs(found).max())
        return found * (LONGEST / max(longest, LONGEST))


def fit_vector(
    sums: Callable[[VectorSums], np.ndarray], temperature: float, rows: Moments, n_classes: int
) -> Calibration:
    """Find the penalised scales and shifts of least smoothed log-loss, for rows of this temperature and these moments.

    `sums(wanted)` returns the sums over all rows. It is called up to PASSES times.
    """
    # Equal scores leave the shifts only.
    spread = rows.spread if rows.spread > 0 else 1.0
    slope = spread / temperature
    # The mean weight is at least 1 in this unit, and whole weights are whole.
    unit = 2.0 ** min(math.floor(math.log2(rows.weight / rows.n_rows)), 0)
    # A row's second derivatives are below FARTHEST^2.
    most = max(rows.weight / unit, 1.0) * FARTHEST**2
    factor = 2.0 ** min(62 - math.ceil(math.log2(most)), MOST_BITS)

    def at(point: np.ndarray) -> _VectorDerivatives:
        d, shifts = np.split(point, 2)
        wanted = VectorSums(slope + d, shifts, spread, rows.smoothing, factor, unit)
        return _VectorDerivatives.of(sums(wanted), wanted, point, rows)

    point, step = np.zeros(2 * n_classes), None
    found = at(point)
    for _ in range(PASSES - 1):
        if step is None:
            step = found.step()
        if np.abs(step).max() <= CLOSE:
            point = point + step
            break
        there = at(point + step)
        # 1 at the beginning of the step, 0 at the least value along it.
        remains = (there.first @ step) / (found.first @ step)
        if remains < -TOO_FAR:
            step = step / (1 - remains)
        else:
            point, found, step = point + step, there, None
    d, shifts = np.split(point, 2)
    return Calibration(VECTOR, temperature, tuple((1 + d / slope).tolist()), tuple(shifts.tolist()))
