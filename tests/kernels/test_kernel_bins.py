"""A row is added to its bin of each feature as NumPy adds it, whatever the number of channels and their types."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from distboost.kernels.lanes import LANES, SUM_LANES
from distboost.kernels.simd import padded
from distboost.kernels.simd_bins import LINE, add_lanes, add_lines, add_sums

N_FEATURES, N_BINS = 5, 3
BASES = N_BINS * np.arange(N_FEATURES)


def adder(add_row):
    """Return a function that adds all rows by an intrinsic."""

    @njit
    def add(sums, rows, bins, columns, bases):
        for i in range(rows.shape[0]):
            add_row(sums, rows, np.uintp(i), bins, columns, bases)

    return add


ADDERS = {4: adder(add_sums), 8: adder(add_lanes), 16: adder(add_lines)}


@pytest.mark.parametrize(
    ("lanes", "sum_type", "row_type"),
    [(SUM_LANES, "i8", "i4"), (SUM_LANES, "i8", "i8"), (LANES, "i4", "i4"), (LINE, "i4", "i4")],
)
@given(st.integers(0, 2**32 - 1), st.integers(0, 20), st.integers(1, 17))
def test_rows_are_added_to_their_bins(lanes, sum_type, row_type, seed, n, n_vectors):
    """Numbers of either sign, and some of the features in any order. Rows may have more padding than sums."""
    rng = np.random.default_rng(seed)
    width = lanes * n_vectors
    largest = np.iinfo(row_type).max // 32
    rows = rng.integers(-largest, largest, (n, padded(width))).astype(row_type)
    bins = rng.integers(0, N_BINS, (n, N_FEATURES)).astype(np.uint8)
    columns = rng.permutation(N_FEATURES)[: rng.integers(0, N_FEATURES + 1)]
    sums = rng.integers(-(2**20), 2**20, (N_BINS * N_FEATURES, width)).astype(sum_type)
    expected = sums.copy()
    for d in columns:
        np.add.at(expected, BASES[d] + bins[:, d], rows[:, :width].astype(sum_type))
    ADDERS[lanes](sums, rows, bins, columns, BASES[columns])
    np.testing.assert_array_equal(sums, expected)
