"""Integer sums over rows: their scales, and the bits that each sum may take.

Sums of integers do not depend on their order. Every sum over all rows stays below 2^62 by construction:

* A number of a reduction or of a wide statistic is at most 1 before it is scaled by 2^bits, bits = 61 - ceil(log2 W), where W is
  the total weight of the rows. The weighted sum is at most W 2^bits <= 2^61, and rounding adds at most half of each row's
  weight, W / 2 in all.
* A number of a narrow statistic is at most 2^HISTOGRAM_BITS, its row's weight at most 2^WEIGHT_BITS: their product of 2^30 fits
  int32, and 2^32 rows fit an int64 sum.
* Errors are counted in units of 1 / ERROR_FACTOR: 2^22 2^8 2^32 = 2^62.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# The kernels multiply weights of misclassified rows by this factor before they round: the sum is in units of 1/ERROR_FACTOR.
ERROR_FACTOR = 2.0**22

# The bits that a statistic may lose because the bound on the weights is above the largest weight. If the statistic has more than
# ENOUGH_BITS + LOST_BITS bits, it may lose all beyond ENOUGH_BITS.
LOST_BITS = 8
ENOUGH_BITS = 30

# Row weights are scaled to at most 2^8 (`WeightRule` of data), histogram inputs to at most 2^22 before they are weighted:
# |input| <= 2^30 fits int32, and 2^32 rows fit an int64 sum.
WEIGHT_BITS = 8
HISTOGRAM_BITS = 22

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
        return sums / self.factor


def fine_bits(total_weight: float) -> int:
    """Return the bits of the finest scale for rows of this total weight."""
    return min(61 - max(math.ceil(math.log2(total_weight)), 0), 60)
