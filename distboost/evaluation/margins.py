"""A histogram of margins of any magnitude, from sums over rows.

The margin of a row is the score of its class, less the largest score of the others: below 0, the prediction is wrong.

Nothing is known of the scores in advance. So rows are counted in cells that divide every octave of |margin| evenly, and the cells
are joined to bins of equal width once the largest margin is known. The width is a power of two, so no cell lies in two bins.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from distboost.rows.exact import exact_sums, real

CELL_BITS = 5  # cells of each octave: 2^5
MOST_BINS = 32  # on either side of 0
SMALLEST = 2.0**-16  # bins are chosen as if some margin were this large

_SHIFT = 52 - CELL_BITS
_HALF = 1 << (11 + CELL_BITS)  # the cells of margins below 0, then those of the others


def margin_sums(F: np.ndarray, codes: np.ndarray, w: np.ndarray) -> csr_array:
    """Return the weight of the rows in each cell, from scores F (n, n_classes) and the class index of each row, (n,)."""
    rows = np.arange(len(F))
    others = F.copy()
    others[rows, codes] = -np.inf
    margins = F[rows, codes] - others.max(axis=1)
    size = (
        np.abs(margins).view(np.int64) >> _SHIFT
    )  # the bits of positive numbers are in the order of the numbers
    return exact_sums(np.where(margins < 0, _HALF - 1 - size, _HALF + size), w, 2 * _HALF)


def histogram(sums: csr_array) -> dict[str, np.ndarray]:
    """Return the edges of bins, (n_bins + 1,), ascending, and the weight of the rows in each, (n_bins,)."""
    cells = real(sums)
    size = np.where(cells.col < _HALF, _HALF - 1 - cells.col, cells.col - _HALF).astype(np.int64)
    largest = ((size.max() + 1) << _SHIFT).view(np.float64)
    width = 2.0 ** np.ceil(np.log2(max(largest, SMALLEST) / MOST_BINS))
    steps = np.floor((size << _SHIFT).view(np.float64) / width).astype(np.int64)
    bins = np.where(cells.col < _HALF, -1 - steps, steps)
    first = min(bins.min(), 0)
    weight = np.bincount(bins - first, cells.data)
    return {"edges": width * np.arange(first, first + len(weight) + 1), "weight": weight}
