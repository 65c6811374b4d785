"""Rows drawn by weight: how likely each is drawn, and the bits of their statistics.

Row i of magnitude m_i > 0 is drawn with probability p_i = min(1, m_i / T), and its statistic is divided by p_i, so that sums
over the drawn rows are unbiased (minimal-variance sampling: Ibragimov & Gusev, NeurIPS 2019). T is such that the p_i sum to the
wanted number of rows. It follows from counts and sums of magnitudes by bin (`kernels.sampling.tally`), which are whole, so that
T does not depend on the order in which they were added.

**Bits.** Let M be the largest magnitude and f the fraction of rows. For T = M / f, the p_i sum to sum_i m_i f / M <= f n. So the
solution has T <= M / f, which rounding up leaves below M 2^ceil(log2(1/f)), and no entry of a divided statistic exceeds
max(M, T). Hence statistics are prepared with `prepared` bits, divided, and rounded to `summed` bits, ceil(log2(1/f)) fewer than
the histograms can hold:

* Narrow: an entry is at most the largest weight times 2^bits, with the bits of the statistics of all rows.
* Wide: an entry is at most 2^(61 - ceil(log2 n)), so that the sum over n rows is at most 2^61.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from distboost.kernels.sampling import MANTISSA_BITS
from distboost.rows.messages import RowCounts
from distboost.rows.sums import HISTOGRAM_BITS, WEIGHT_BITS, fine_bits


class SampleBits(NamedTuple):
    """The bits of a statistic when it is prepared, and when it is summed."""

    prepared: int
    summed: int

    largest: int  # threshold

    @property
    def unit(self) -> float:
        """The factor between both."""
        return float(2.0 ** (self.summed - self.prepared))


def sample_bits(histogram_bits: int, wide: bool, counts: RowCounts, fraction: float) -> SampleBits:
    """Return the bits of a statistic whose rows are drawn by weight; `histogram_bits` are those of all rows' statistics."""
    of_weights = WEIGHT_BITS if counts.weighted else 0
    reserve = math.ceil(math.log2(1 / fraction))
    if wide:
        prepared = min(fine_bits(counts.n_rows) - of_weights, histogram_bits)
        summed = prepared - reserve
    else:
        prepared, summed = HISTOGRAM_BITS + WEIGHT_BITS - of_weights, histogram_bits - reserve
    return SampleBits(prepared, summed, 2 ** (prepared + of_weights + reserve))


def threshold(tallied: np.ndarray, wanted: float) -> int:
    """Return T such that the sum of min(1, m / T) over all rows is `wanted`, or a little less.

    Parameters
    ----------
    tallied : ndarray of shape (N_BINS, 2), int64
        The number and the sum of the magnitudes in each bin.
    wanted : float
        The number of rows to draw, above 0.

    Returns
    -------
    T : int
        1 if at most `wanted` rows have a magnitude above 0: all of these are drawn. Within a bin, magnitudes may lie on either
        side of T; if so, fewer rows than wanted are drawn, by at most 1/16 of those in the bin.
    """
    counts, sums = tallied.T.tolist()
    n_above: int = sum(counts)
    below = 0
    if n_above <= wanted:
        return 1
    for b, (count, total) in enumerate(zip(counts, sums, strict=True)):
        # All magnitudes up to bin b lie below T, those of later bins above.
        n_above -= count
        below += total
        if n_above + below / _end(b) <= wanted:
            # Rows of this bin that lie above T are drawn for certain: their share of `below` is a little too large.
            found: int = math.ceil(below / (wanted - n_above))
            return found
    raise AssertionError("the last bin ends above all magnitudes")


def _end(b: int) -> float:
    """Return the magnitude at which bin b ends, and the next one begins."""
    exponent, step = divmod(b + 1, 1 << MANTISSA_BITS)
    return math.ldexp(1 + step / (1 << MANTISSA_BITS), exponent)
