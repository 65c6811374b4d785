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
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distboost.errors import DataError
from distboost.kernels.elementary import exp
from distboost.rows.exact import POSITIONS, few_exact_sums, real_numbers, rounded

# The limits of T.
LOWEST, HIGHEST = 2.0**-20, 2.0**20

PARTS = 10  # into which a pass divides the interval that has the root
PASSES = 4  # the last interval is 28 / 10^4 wide, in units of log T

N_CELLS = 4  # of `Moments`, followed by one for each temperature


class TemperatureSums(NamedTuple):
    """The sums over rows from which the derivatives of the log-loss at some temperatures follow.

    They are exact: (POSITIONS, N_CELLS + n_temperatures) int64, flattened. Those of several blocks are added.
    """

    temperatures: tuple[float, ...]

    def size(self, n_classes: int) -> int:
        """Return the number of sums."""
        return POSITIONS * (N_CELLS + len(self.temperatures))

    def __call__(self, F: np.ndarray, codes: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return the sums over some rows.

        Parameters
        ----------
        F : ndarray of shape (n, K), float64
            Scores.
        codes : ndarray of shape (n,)
            Class indices.
        w : ndarray of shape (n,), float64
            Weights.

        Returns
        -------
        sums : ndarray of shape (size(K),), int64
        """
        D = F.max(axis=1, keepdims=True) - F
        own = D[np.arange(len(D)), codes]
        terms = [(w > 0).astype(np.float64), w, w * rounded(own), w * rounded(D.mean(axis=1))]
        for T in self.temperatures:
            E = exp(D * (-1 / T))
            total = E.sum(axis=1)  # at least 1: that of the largest score
            E *= D
            terms.append(w * rounded(E.sum(axis=1) / total))
        cells = np.repeat(np.arange(len(terms)), len(w))
        return few_exact_sums(cells, np.concatenate(terms), len(terms)).ravel()


class Moments(NamedTuple):
    """What the rows are beside their temperature.

    Attributes
    ----------
    n_rows, weight : float
        The rows of a weight above 0, and their total weight.
    own, mean : float
        The weighted sums of the distances D of a row's own class, and of the mean of its classes, from its largest score.
    """

    n_rows: float
    weight: float
    own: float
    mean: float

    @property
    def n_counted(self) -> float:
        """The number of rows that they count as: a row of weight 2 is two rows, but weights below 1 are no fewer rows."""
        return max(self.n_rows, self.weight)

    @property
    def smoothing(self) -> float:
        """The weight of the row whose label is all classes, as a share of all rows."""
        return 1 / (1 + self.n_counted)

    @property
    def spread(self) -> float:
        """The mean distance of a row's scores from its largest."""
        return self.mean / self.weight


def moments(sums: Callable[[TemperatureSums], np.ndarray]) -> Moments:
    """Return the moments of rows over which `sums` adds up."""
    return _numbers(sums(TemperatureSums(())))[0]


def fit_temperature(sums: Callable[[TemperatureSums], np.ndarray]) -> tuple[float, Moments]:
    """Find the temperature of least smoothed log-loss, and the moments of the rows.

    `sums(wanted)` returns the sums over all rows. It is called up to PASSES times.
    """
    low, high = math.log(LOWEST), math.log(HIGHEST)
    logs = np.linspace(low, high, PARTS + 1)
    known: dict[float, float] = {}  # by log T: how far the expected D lies above that of the labels
    for _ in range(PASSES):
        new = [log for log in logs.tolist() if log not in known]
        rows, expected = _numbers(sums(TemperatureSums(tuple(math.exp(log) for log in new))))
        if not rows.n_rows:
            raise DataError(
                "all rows have weight 0, so no rows are left to calibrate on.",
                remedy="Set a weight above 0 for some.",
            )
        wanted = (1 - rows.smoothing) * rows.own + rows.smoothing * rows.mean
        known |= {log: found - wanted for log, found in zip(new, expected, strict=True)}
        if known[low] >= 0 or known[high] <= 0:
            # No root within the limits. If all scores of each row are equal, every T gives the same probabilities.
            return 1.0 if rows.mean == 0 else LOWEST if known[low] >= 0 else HIGHEST, rows
        below = max(log for log, value in known.items() if value < 0)
        above = min(log for log, value in known.items() if value >= 0)
        logs = np.linspace(below, above, PARTS + 1)
    a, b = known[below], known[above]
    return math.exp(below + (above - below) * (a / (a - b))), rows


def _numbers(sums: np.ndarray) -> tuple[Moments, list[float]]:
    """Return the sums as real numbers: the moments, and the expected D at each temperature."""
    found = real_numbers(sums.reshape(POSITIONS, -1)).tolist()
    return Moments(*found[:N_CELLS]), found[N_CELLS:]
