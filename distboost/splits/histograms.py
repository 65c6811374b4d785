"""The memory of histograms."""

from __future__ import annotations

import numpy as np

from distboost.kernels import simd

LARGEST_POOL = 2**29  # bytes of histograms that are allocated at once


class Histograms:
    """Node histograms: int64 sums of shape (total bins, channels) in reusable slots.

    Bins of all features are concatenated; feature d has `n_bins[d]` bins and one for missing values. There are slots for `most`
    nodes. If these would take more than LARGEST_POOL, there are fewer slots at first, and more when they are needed.
    """

    def __init__(self, n_bins: np.ndarray, n_channels: int, most: int = 1):
        self.n_used = n_channels
        self.offsets = np.concatenate([[0], np.cumsum(n_bins + 1)]).astype(np.int64)
        shape = int(self.offsets[-1]), simd.padded(self.n_used)
        # The system provides memory only when it is written to, but it limits the size of an allocation.
        size = min(most, max(LARGEST_POOL // (8 * shape[0] * shape[1]), 1))
        self.pool = np.empty((size, *shape), np.int64)
        self._free = list(reversed(range(size)))

    def take(self, n: int) -> list[int]:
        """Return n free slots. Their content is arbitrary."""
        lacking = n - len(self._free)
        if lacking > 0:
            # In place: the old slots and a copy of them would take twice the memory. Threads that are done may still refer to the
            # array, which stays the same object. No view of it lives from one question to the next.
            size = len(self.pool)
            self.pool.resize((size + lacking, *self.pool.shape[1:]), refcheck=False)
            self._free.extend(reversed(range(size, size + lacking)))
        return [self._free.pop() for _ in range(n)]

    @property
    def channels(self) -> tuple[int, int]:
        """The number of channels in use, and the number with padding to whole SIMD groups."""
        return self.n_used, self.pool.shape[2]

    def add(self, slots: list[int], sums: np.ndarray) -> None:
        """Add `sums`, (n, total bins, channels in use) int64, to the slots."""
        for slot, own in zip(slots, sums, strict=True):
            self.pool[slot, :, : self.n_used] += own

    def give_back(self, slots: list[int]) -> None:
        """Free slots."""
        self._free.extend(slots)
