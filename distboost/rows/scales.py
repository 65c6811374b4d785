"""Integer sums over rows: their scales, and the bits that each sum may take.

Sums of integers do not depend on their order. Every sum over all rows stays below 2^62 by construction:

* A number of a reduction or of a wide statistic is at most 1 before it is scaled by 2^bits, bits = 61 - ceil(log2 W), where W is
  the total weight of the rows. The weighted sum is at most W 2^bits <= 2^61, and rounding adds at most half of each row's
  weight, W / 2 in all.
* A number of a narrow statistic is at most 2^HISTOGRAM_BITS, its row's weight at most 2^WEIGHT_BITS: their product of 2^30 fits
  int32, and 2^32 rows fit an int64 sum. Before that, a few thousand rows are summed in int32: as many as the largest number of
  the block allows (`Statistic.histogram`).
* Residuals that are projected by signs have a bit less: their absolute values sum to 2, and all may have the same sign. Residuals
  that are rounded at random to fewer bits are off by less than 1 of these.
* Errors are counted in units of 1 / ERROR_FACTOR: 2^22 2^8 2^32 = 2^62.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

# The kernels multiply weights of misclassified rows by this factor before they round: the sum is in units of 1/ERROR_FACTOR.
ERROR_FACTOR = 2.0**22

# A statistic may lose bits because the bound on the weights is above the largest weight. These must be left, of a narrow and of a
# wide one.
FEWEST_BITS = 14
ENOUGH_BITS = 30
LOST_BITS = 8  # but this many may always be lost of a wide one

# Row weights are scaled to at most 2^8 (`WeightRule` of data), histogram inputs to at most 2^22 before they are weighted:
# |input| <= 2^30 fits int32, and 2^32 rows fit an int64 sum.
WEIGHT_BITS = 8
HISTOGRAM_BITS = 22

# With more rows than this, narrow statistics have fewer bits, so that thousands of rows can be summed in 32 bits. Sums over many
# rows need fewer: the errors of rounding average out.
FEW_ROWS = 8192
MANY_ROWS_BITS = 18

# The histograms' sums of the rows' own weights are in units of 1/LEAF_WEIGHT_FACTOR.
LEAF_WEIGHT_FACTOR = 2.0**20


@dataclass(frozen=True)
class Scale:
    """A fixed-point scale: numbers are divided by e^shift, which makes them at most 1, and rounded to multiples of 2^-bits."""

    shift: float
    bits: int

    @classmethod
    def fine(cls, shift: float, total_weight: float) -> Scale:
        """Return the finest scale for which sums over rows of this total weight stay below 2^62."""
        return cls(shift, fine_bits(total_weight))

    @property
    def factor(self) -> float:
        """2^bits: the kernels multiply by it before they round."""
        return float(2**self.bits)

    def real(self, sums: np.ndarray) -> np.ndarray:
        """Convert integer sums to real numbers, in units of e^shift."""
        return sums / float(2**self.bits)


def narrow_bits(total_weight: float) -> int:
    """Return the bits of a narrow statistic, for rows of this total weight.

    >>> narrow_bits(8192), narrow_bits(8193)
    (22, 18)
    """
    return min(HISTOGRAM_BITS if total_weight <= FEW_ROWS else MANY_ROWS_BITS, fine_bits(total_weight))


@lru_cache(64)
def most_bits(total_weight: float, wide: bool) -> int:
    """Return the bits of a statistic, for rows of this total weight."""
    return fine_bits(total_weight) if wide else narrow_bits(total_weight)


def bits_to_lose(bits: int, wide: bool) -> int:
    """Return how many of its bits a statistic may lose.

    >>> bits_to_lose(22, wide=False), bits_to_lose(18, wide=False), bits_to_lose(47, wide=True)
    (8, 4, 17)
    """
    return max(LOST_BITS, bits - ENOUGH_BITS) if wide else max(bits - FEWEST_BITS, 0)


@lru_cache(64)
def fine_bits(total_weight: float) -> int:
    """Return the bits of the finest scale for rows of this total weight."""
    return min(61 - max(math.ceil(math.log2(total_weight)), 0), 60)
