"""Rows of nodes, copied to where they lie together."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.kernels.gather import gather


@pytest.mark.parametrize(("n_features", "n_channels"), [(1, 8), (70, 16), (200, 8)])
def test_gather(n_features, n_channels):
    rng = np.random.default_rng(0)
    n, n_out = 90, 200
    bins = rng.integers(0, 256, (n, n_features)).astype(np.uint8)
    statistics = rng.integers(-(2**31), 2**31, (n, n_channels)).astype(np.int32)
    order = rng.permutation(n).astype(np.int32)
    spans = np.array([[0, 40], [40, 40], [40, 60], [60, 90]], np.int32)
    is_taken = np.array([True, True, False, True])
    ends = np.array([7, 60, 80, 130])
    before = ends.copy()
    out = (
        np.full((n_out, n_features), 3, np.uint8),
        np.full((n_out, n_channels), 3, np.int32),
    )
    expected = [array.copy() for array in out]
    gather(bins, order, spans, statistics, is_taken, ends, *out)
    for (start, stop), end in zip(spans[is_taken], before[is_taken], strict=True):
        own = slice(end, end + stop - start)
        expected[0][own], expected[1][own] = bins[order[start:stop]], statistics[order[start:stop]]
    assert_array_equal(ends, before + np.where(is_taken, np.diff(spans)[:, 0], 0))
    for found, wanted in zip(out, expected, strict=True):
        assert_array_equal(found, wanted)
