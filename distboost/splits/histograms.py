"""The memory that holds the histograms of nodes."""

from __future__ import annotations

import numpy as np

from distboost.kernels import simd

LARGEST_POOL = 2**29  # bytes: the most that is allocated for histograms at once


def offsets_of(n_bins: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return where the bins of each feature begin, (D + 1,) int64, if only some features have bins.

    >>> offsets_of(np.array([2, 5, 3]), np.array([0, 2]))
    array([0, 3, 3, 7])
    """
    sizes = np.zeros(len(n_bins) + 1, np.int64)
    sizes[features + 1] = n_bins[features] + 1
    return np.cumsum(sizes)


class Histograms:
    """Node histograms: int64 sums of shape (total bins, channels) in reusable slots.

    The bins of the features are concatenated: those of feature d begin at `offsets[d]`. There are slots for `most` nodes. If
    these would take more than LARGEST_POOL, fewer slots are allocated at first, and more when they are needed.

    Parameters
    ----------
    n_bins : ndarray of shape (D,), int64
        Bins per feature, without the bin for missing values.
    n_channels : int
        Numbers per bin: the sums, the row count and, if they are summed, the row weights.
    most : int, default=1
        The largest number of nodes that have histograms at the same time.
    features : ndarray of shape (m,), int64, or None
        Only these have bins here. None: all.
    """

    def __init__(
        self, n_bins: np.ndarray, n_channels: int, most: int = 1, features: np.ndarray | None = None
    ):
        self.n_used = n_channels
        self.offsets = offsets_of(n_bins, np.arange(len(n_bins)) if features is None else features)
        shape = int(self.offsets[-1]), simd.padded_sums(self.n_used)
        # The system provides memory only when it is first written to, but it may refuse a very large allocation.
        size = min(most, max(LARGEST_POOL // (8 * shape[0] * shape[1]), 1))
        self.pool = np.empty((size, *shape), np.int64)
        self._free = list(reversed(range(size)))

    def take(self, n: int) -> list[int]:
        """Return n free slots. Their content is arbitrary."""
        lacking = n - len(self._free)
        if lacking > 0:
            # Resize in place: a copy would take twice the memory. `refcheck` would refuse, because threads that have finished may
            # still refer to the array. They do no harm: it stays the same object, and no view of it outlives a question.
            size = len(self.pool)
            self.pool.resize((size + lacking, *self.pool.shape[1:]), refcheck=False)
            self._free.extend(reversed(range(size, size + lacking)))
        return [self._free.pop() for _ in range(n)]

    @property
    def channels(self) -> tuple[int, int]:
        """The number of channels in use, and the number with padding to whole SIMD groups."""
        return self.n_used, self.pool.shape[2]

    def fill(self, slots: list[int], sums: np.ndarray, features: np.ndarray) -> None:
        """Copy the bins of some features, `sums` of shape (n, bins of the features, channels in use) int64, to the slots."""
        first = 0
        for d in features:
            own = slice(self.offsets[d], self.offsets[d + 1])
            stop = first + own.stop - own.start
            self.pool[slots, own, : self.n_used] = sums[:, first:stop]
            self.pool[slots, own, self.n_used :] = 0
            first = stop

    def give_back(self, slots: list[int]) -> None:
        """Free slots."""
        self._free.extend(slots)
