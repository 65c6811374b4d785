"""Exact sums of floating-point numbers, which depend neither on the order of the numbers nor on who added them.

A number of 53 bits is a few *digits* of 31 bits, each at a position of a grid that all numbers share: position p counts units of
2^(31 p). The digits at each position are added as integers. A digit is below 2^31, so the sums over 2^32 rows fit int64.

Sums of many cells are sparse arrays (POSITIONS, n_cells) of int64, of which most have one position: that of small whole numbers.
Those of few cells are arrays (`few_exact_sums`). Sums over other rows of the same cells are added with `+`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add

import numpy as np
from scipy.sparse import coo_array, csr_array

DIGIT_BITS = 31
LOWEST = -36  # the position of the smallest float64, 2^-1074, and of the digits below it
POSITIONS = 34 - LOWEST  # the largest float64 is below 2^(31 * 34)
DIGITS = 3  # of a number of 53 bits, wherever it begins

MOST_VALUES = 2**22 - 1  # whose digits are added at a time: their sums are exact in float64

# Within a range of so many cells, sums are collected in an array, else only for the cells that occur.
MOST_DENSE = 2**22


def digits(values: np.ndarray, position: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield positions, (n,) int64, and the digits there, (n,) float64, of values (n,) float64, which are finite and >= 0.

    With the position of the first digits, broadcast to (n,), values may be below 0, as their first digits are then. What lies
    below the last digits is cut off.
    """
    if position is None:
        position = (np.frexp(values)[1].astype(np.int64) - 1) // DIGIT_BITS
    for _ in range(DIGITS):
        digit = np.floor(np.ldexp(values, -DIGIT_BITS * position))
        yield position, digit
        values = values - np.ldexp(digit, DIGIT_BITS * position)  # exact: only leading bits go
        if not values.any():  # most weights are small whole numbers: one digit
            return
        position = position - 1


def exact_sums(cells: np.ndarray, values: np.ndarray, n_cells: int) -> csr_array:
    """Add values to cells.

    Parameters
    ----------
    cells : ndarray of shape (n,) or (n, m), int64
        The cell, or the m cells, of each value.
    values : ndarray of shape (n,), float64
        Finite and >= 0.
    n_cells : int

    Returns
    -------
    sums : csr_array of shape (POSITIONS, n_cells), int64
    """
    if len(values) > MOST_VALUES:
        parts = (slice(first, first + MOST_VALUES) for first in range(0, len(values), MOST_VALUES))
        return reduce(add, (exact_sums(cells[part], values[part], n_cells) for part in parts))
    found, sums = _added(*_keyed(cells, values, n_cells))
    return csr_array(coo_array((sums, divmod(found, n_cells)), (POSITIONS, n_cells)))


def few_exact_sums(cells: np.ndarray, values: np.ndarray, n_cells: int) -> np.ndarray:
    """Do what `exact_sums` does for few cells and at most MOST_VALUES values: (POSITIONS, n_cells) int64."""
    sums = np.bincount(*_keyed(cells, values, n_cells), POSITIONS * n_cells)
    return sums.astype(np.int64).reshape(POSITIONS, n_cells)


def _keyed(cells: np.ndarray, values: np.ndarray, n_cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each digit's place in a flat array (POSITIONS, n_cells), and the digits, float64."""
    cells = cells.reshape(len(values), -1)
    keys, numbers = [], []
    for position, digit in digits(values):
        filled = np.flatnonzero(digit)
        keys.append((((position[filled] - LOWEST) * n_cells)[:, None] + cells[filled]).ravel())
        numbers.append(np.repeat(digit[filled], cells.shape[1]))
    return np.concatenate(keys), np.concatenate(numbers)


def rounded(values: np.ndarray) -> np.ndarray:
    """Round to 44 bits, so that whole weights up to 2^9 multiply exactly: a row of weight 3 adds as much as three rows."""
    mantissas, exponents = np.frexp(values)
    found: np.ndarray = np.ldexp(np.rint(np.ldexp(mantissas, 44)), exponents - 44)
    return found


def _added(keys: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys, ascending, and the sum of the numbers of each, (n_keys,) int64."""
    first = keys.min(initial=np.iinfo(np.int64).max)
    if len(keys) and keys.max() - first >= MOST_DENSE:
        found, keys = np.unique(keys, return_inverse=True)
        sums = np.bincount(keys, numbers)
    else:
        sums = np.bincount(keys - first, numbers)
        filled = np.flatnonzero(sums)
        found, sums = filled + first, sums[filled]
    return found, sums.astype(np.int64)


def real(sums: csr_array) -> coo_array:
    """Return sums (POSITIONS, n_cells) as real numbers, coo_array (1, n_cells) float64 without duplicates."""
    found = coo_array(_carried(sums))
    # Row by row, that is from the smallest digits to the largest: the same rounding for equal sums.
    values = np.ldexp(found.data.astype(np.float64), DIGIT_BITS * (found.row + LOWEST))
    cells, index = np.unique(found.col, return_inverse=True)
    totals = np.bincount(index, values, len(cells))
    return coo_array((totals, (np.zeros(len(cells), np.int64), cells)), (1, sums.shape[1]))


def _carried(sums: csr_array) -> csr_array:
    """Return the sums with digits below 2^31. Their rounding must not depend on how a sum is divided into digits."""
    while (carry := sums.data >> DIGIT_BITS).any():
        digits = sums.tocoo()
        positions = np.concatenate([digits.row, digits.row + 1])
        numbers = np.concatenate([sums.data & ((1 << DIGIT_BITS) - 1), carry])
        sums = csr_array(coo_array((numbers, (positions, np.tile(digits.col, 2))), sums.shape))
    return sums


def real_numbers(sums: csr_array | np.ndarray) -> np.ndarray:
    """Return the sums as real numbers, (n_cells,) float64."""
    if not isinstance(sums, np.ndarray):
        numbers: np.ndarray = real(sums).toarray()[0]
        return numbers
    while (carry := sums >> DIGIT_BITS).any():
        sums = sums & ((1 << DIGIT_BITS) - 1)
        sums[1:] += carry[:-1]
    found = np.zeros(sums.shape[1])
    for row in np.flatnonzero(sums.any(axis=1)).tolist():  # from the smallest digits to the largest, as above
        found += np.ldexp(sums[row].astype(np.float64), DIGIT_BITS * (row + LOWEST))
    return found


def whole_numbers(sums: csr_array) -> list[int]:
    """Return the sums as whole numbers, in units of 2^(31 LOWEST)."""
    found = [0] * sums.shape[1]
    digits = sums.tocoo()
    for position, cell, digit in zip(
        *map(np.ndarray.tolist, (digits.row, digits.col, digits.data)), strict=True
    ):
        found[cell] += digit << DIGIT_BITS * position
    return found
