"""Exact sums of floating-point numbers, which depend neither on the order of the numbers nor on who added them.

A number of 53 bits is a few *digits* of 31 bits, each at a position of a grid that all numbers share: position p counts units of
2^(31 p). The digits at each position are added as integers. A digit is below 2^31, so the sums over 2^32 rows fit int64.

Sums are sparse arrays (POSITIONS, n_cells) of int64, of which most have one position: that of small whole numbers. Sums over
other rows of the same cells are added with `+`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array, csr_array

DIGIT_BITS = 31
LOWEST = -36  # the position of the smallest float64, 2^-1074, and of the digits below it
POSITIONS = 34 - LOWEST  # the largest float64 is below 2^(31 * 34)
DIGITS = 3  # of a number of 53 bits, wherever it begins

# Up to so many cells are counted in an array, more in a table of those that occur.
MOST_DENSE = 2**21


def digits(values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield positions and the digits of the values there, (n,) float64, for finite values >= 0, (n,) float64."""
    positions = (np.frexp(values)[1] - 1) // DIGIT_BITS
    found, rest = [], values
    for _ in range(DIGITS):
        digit = np.floor(np.ldexp(rest, -DIGIT_BITS * positions))
        rest = rest - np.ldexp(digit, DIGIT_BITS * positions)  # without rounding: only leading bits go
        found.append((positions, digit))
        positions = positions - 1
    for position in np.unique(np.concatenate([where[digit > 0] for where, digit in found])):
        # At most one of a number's digits is at this position.
        yield (
            int(position),
            np.sum([np.where(where == position, digit, 0.0) for where, digit in found], axis=0),
        )


def exact_sums(cells: np.ndarray, values: np.ndarray, n_cells: int) -> csr_array:
    """Add values to cells.

    Parameters
    ----------
    cells : ndarray of shape (n,) or (n, m), int64
        The cell, or the m cells, of each value. A cell gets fewer than 2^22 values.
    values : ndarray of shape (n,), float64
        Finite and >= 0.
    n_cells : int

    Returns
    -------
    sums : csr_array of shape (POSITIONS, n_cells), int64
    """
    flat, used = cells.ravel(), None
    if n_cells > MOST_DENSE:
        used, flat = np.unique(flat, return_inverse=True)
    rows, columns, data = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for position, digit in digits(values):
        # Sums of fewer than 2^22 numbers below 2^31 are exact in float64.
        sums = np.bincount(flat, np.repeat(digit, flat.size // len(digit)))
        filled = np.flatnonzero(sums)
        rows.append(np.full(len(filled), position - LOWEST))
        columns.append(filled if used is None else used[filled])
        data.append(sums[filled].astype(np.int64))
    cells_of_sums = (np.concatenate(rows), np.concatenate(columns))
    return csr_array(coo_array((np.concatenate(data), cells_of_sums), (POSITIONS, n_cells)))


def real(sums: csr_array) -> coo_array:
    """Return the sums as real numbers, coo_array (1, n_cells) float64 without duplicates."""
    found = sums.tocoo()
    # Row by row, that is from the smallest digits to the largest: always the same rounding.
    values = np.ldexp(found.data.astype(np.float64), DIGIT_BITS * (found.row + LOWEST))
    cells, index = np.unique(found.col, return_inverse=True)
    totals = np.bincount(index, values, len(cells))
    return coo_array((totals, (np.zeros(len(cells), np.int64), cells)), (1, sums.shape[1]))


def real_numbers(sums: csr_array) -> np.ndarray:
    """Return the sums as real numbers, (n_cells,) float64."""
    numbers: np.ndarray = real(sums).toarray()[0]
    return numbers
