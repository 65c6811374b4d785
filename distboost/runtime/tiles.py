"""Groups of features whose sums fill tiles: see `kernels.histogram`."""

from __future__ import annotations

import numpy as np

from distboost.kernels.histogram import TILE_BYTES, TILES_AT_ONCE
from distboost.kernels.simd import padded


def n_visits(n_tiles: int) -> int:
    """Return how often a thread visits the rows to fill so many tiles."""
    return -(-n_tiles // TILES_AT_ONCE)


def tiles_of(features: np.ndarray, offsets: np.ndarray, n_channels: int) -> int:
    """Return the number of tiles that the bins of these features fill, at least 1."""
    n_bins = int((offsets[features + 1] - offsets[features]).sum())
    return max(-(-n_bins * 4 * padded(n_channels) // TILE_BYTES), 1)


def feature_groups(features: np.ndarray, offsets: np.ndarray, n: int) -> list[np.ndarray]:
    """Divide features into at most n runs of about as many bins.

    >>> feature_groups(np.arange(4), np.array([0, 90, 100, 105, 110]), 2)
    [array([0]), array([1, 2, 3])]
    """
    if n == 1:
        return [features] if len(features) else []
    n_bins = offsets[features + 1] - offsets[features]
    ends = np.cumsum(n_bins)
    middle = ends - n_bins / 2
    groups = np.split(features, np.searchsorted(middle, ends[-1] * np.arange(1, n) / n))
    return [group for group in groups if len(group)]


def round_up(n: int, step: int) -> int:
    """Return the smallest multiple of `step` that is at least n."""
    return -(-n // step) * step
