"""Binned rows of which most bins are those of 0: only the others are stored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distboost.kernels import stored_bins as kernels

FEWEST_FEATURES = 256  # below, dense bins take less time
MOST_STORED = 0.25  # of the bins: with more, they may
MOST = 2**31 - 1  # bins of a block
PACKED_STEP = 2**20  # bytes: packed bins take a multiple
BYTES = 2 + 1  # of a bin with its feature


def held_bytes(n_stored: int, n_features: int) -> int:
    """Return the bytes of a row's bins in a block whose rows have so many bins, on average, that are not usual."""
    is_dense = n_features < FEWEST_FEATURES or n_stored > MOST_STORED * n_features
    return n_features if is_dense else 4 * n_chunks(n_features) + BYTES * n_stored


def n_chunks(n_features: int) -> int:
    """Return the number of chunks of so many features."""
    return -(-n_features // kernels.CHUNK)


class StoredBins(NamedTuple):
    """The bins of n rows and D features that differ from the feature's usual one.

    Attributes
    ----------
    usual : ndarray of shape (D,), uint8
    starts : ndarray of shape (chunks, n + 1), int32
        Row i has in a chunk the bins from starts[chunk, i] to starts[chunk, i + 1] - 1.
    feature : ndarray of shape (m,), uint16
        Numbered in its chunk.
    value : ndarray of shape (m,), uint8
    """

    usual: np.ndarray
    starts: np.ndarray
    feature: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, bins: np.ndarray, usual: np.ndarray) -> StoredBins | None:
        """Return the stored bins of rows, or None if too many would be stored."""
        if bins.shape[1] < FEWEST_FEATURES:
            return None
        n, n_rows = kernels.count_stored(bins, usual), len(bins)
        if n > min(MOST_STORED * bins.size, MOST):
            return None
        starts = np.empty((n_chunks(len(usual)), n_rows + 1), np.int32)
        found = cls(usual, starts, np.empty(n, np.uint16), np.empty(n, np.uint8))
        kernels.store(bins, usual, *found[1:])
        return found

    @classmethod
    def unpacked(cls, memory: np.ndarray, usual: np.ndarray, n_rows: int) -> StoredBins:
        """Return the bins of so many rows that `packed` has put into this memory."""
        n_bytes = 4 * n_chunks(len(usual)) * (n_rows + 1)
        starts = memory[:n_bytes].view(np.int32).reshape(-1, n_rows + 1)
        ends = n_bytes + np.cumsum([0, 2, 1]) * int(starts[-1, -1])
        return cls(usual, starts, memory[ends[0] : ends[1]].view(np.uint16), memory[ends[1] : ends[2]])

    def packed(self) -> np.ndarray:
        """Return the bins in one array, uint8, of one of few sizes."""
        parts = [array.reshape(-1).view(np.uint8) for array in self.rows]
        padding = -sum(map(len, parts)) % PACKED_STEP
        return np.concatenate([*parts, np.zeros(padding, np.uint8)])

    @property
    def n_rows(self) -> int:
        """Return n."""
        n: int = self.starts.shape[1] - 1
        return n

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arrays that kernels read: starts, feature, value."""
        return self[1:]

    def all(self) -> np.ndarray:
        """Return all bins, (n, D) uint8."""
        out = np.empty((self.n_rows, len(self.usual)), np.uint8)
        kernels.restore(*self.rows, self.usual, out)
        return out
