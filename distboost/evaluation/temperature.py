"""Temperature scaling (Guo et al., *On Calibration of Modern Neural Networks*, ICML 2017), from sums over rows.

The temperature T = 1 / b minimises the log-loss of softmax(b F) on labelled rows. With D = F - max F, a row's loss has the
derivative

    E_p[D] - D[y],    p = softmax(b D),

and its second derivative is a variance, so the sum has at most one root. Both terms are at most 0, so sums of their negatives are
exact (`exact`), whatever the order of the rows.

**Smoothing.** If all rows are right, the loss falls for ever as T goes to 0, and one mistake would then cost an infinite loss. So
the rows stand for one more row, whose label is all classes in equal parts: a label weighs 1 - e and each class e / K in addition,
where e = 1 / (1 + n). This is the smoothing of Platt's scaling. n is the number of rows, or their total weight if that is larger.

**Passes.** Scores are not kept, so each pass computes them again. It sums the derivative at many temperatures at once, on a
grid of log T, and the next pass divides the interval of the grid that has the root. The last interval is so short that the
straight line through its ends gives T to about six digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse import csr_array

from distboost.errors import DataError
from distboost.evaluation.exact import exact_sums, real_numbers
from distboost.model.calibration import TEMPERATURE, Calibration

# The limits of T.
LOWEST, HIGHEST = 2.0**-20, 2.0**20

PARTS = 10  # into which a pass divides the interval that has the root
PASSES = 4  # the last interval is 28 / 10^4 wide, in units of log T

# The cells of the sums, followed by one for each temperature.
ROWS, WEIGHT, OWN, MEAN = range(4)
N_CELLS = 4


def temperature_sums(
    F: np.ndarray, codes: np.ndarray, w: np.ndarray, temperatures: Sequence[float]
) -> csr_array:
    """Return the sums over some rows from which the derivatives of the log-loss follow.

    Parameters
    ----------
    F : ndarray of shape (n, K), float64
        Scores.
    codes : ndarray of shape (n,)
        Class indices.
    w : ndarray of shape (n,), float64
        Weights.
    temperatures : sequence of float

    Returns
    -------
    sums : csr_array of shape (POSITIONS, N_CELLS + n_temperatures), int64
    """
    D = F.max(axis=1, keepdims=True) - F
    own = D[np.arange(len(D)), codes]
    terms = [(w > 0).astype(np.float64), w, w * _rounded(own), w * _rounded(D.mean(axis=1))]
    for T in temperatures:
        E = np.exp(D * (-1 / T))
        total = E.sum(axis=1)  # at least 1: that of the largest score
        E *= D
        terms.append(w * _rounded(E.sum(axis=1) / total))
    cells = np.repeat(np.arange(len(terms)), len(w))
    return exact_sums(cells, np.concatenate(terms), len(terms))


def _rounded(values: np.ndarray) -> np.ndarray:
    """Round to 44 bits, so that whole weights up to 2^9 multiply exactly: a row of weight 3 adds as much as three rows."""
    mantissas, exponents = np.frexp(values)
    found: np.ndarray = np.ldexp(np.rint(np.ldexp(mantissas, 44)), exponents - 44)
    return found


def fit_temperature(sums: Callable[[Sequence[float]], csr_array]) -> Calibration:
    """Find the temperature of least smoothed log-loss.

    `sums(temperatures)` returns the sums of `temperature_sums` over all rows. It is called up to PASSES times.
    """
    low, high = math.log(LOWEST), math.log(HIGHEST)
    logs = np.linspace(low, high, PARTS + 1)
    known: dict[float, float] = {}  # by log T: how far the expected D lies above that of the labels
    for _ in range(PASSES):
        new = [log for log in logs.tolist() if log not in known]
        n_rows, weight, own, mean, *expected = real_numbers(sums([math.exp(log) for log in new])).tolist()
        if not n_rows:
            raise DataError(
                "all rows have weight 0, so no rows are left to calibrate on. Give some a weight."
            )
        share = 1 / (1 + max(n_rows, weight))
        wanted = (1 - share) * own + share * mean
        known |= {log: found - wanted for log, found in zip(new, expected, strict=True)}
        if known[low] >= 0 or known[high] <= 0:
            # No root within the limits. If all scores of each row are equal, every T gives the same probabilities.
            bound = 1.0 if mean == 0 else LOWEST if known[low] >= 0 else HIGHEST
            return Calibration(TEMPERATURE, bound)
        below = max(log for log, value in known.items() if value < 0)
        above = min(log for log, value in known.items() if value >= 0)
        logs = np.linspace(below, above, PARTS + 1)
    a, b = known[below], known[above]
    return Calibration(TEMPERATURE, math.exp(below + (above - below) * (a / (a - b))))
