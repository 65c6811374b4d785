"""The best split of each node, from the node's histogram."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distboost.kernels import lanes
from distboost.kernels._jit import kernel
from distboost.threads import Threads
from distboost.weak.gains import own_value, pair_value


class Histograms:
    """Node histograms: int64 sums of shape (total bins, channels) in reusable slots.

    Bins of all features lie one after another; feature d has `n_bins[d]` bins and one for missing values.
    """

    def __init__(self, n_bins: np.ndarray, n_channels: int):
        self.n_used = n_channels
        self.offsets = np.concatenate([[0], np.cumsum(n_bins + 1)]).astype(np.int64)
        self.pool = np.zeros((0, int(self.offsets[-1]), lanes.padded(self.n_used)), np.int64)
        self._free: list[int] = []

    def take(self, n: int) -> list[int]:
        """n free slots. Their content is whatever was left there."""
        lacking = n - len(self._free)
        if lacking > 0:
            size = len(self.pool)
            grown = np.empty((max(2 * size, size + lacking), *self.pool.shape[1:]), np.int64)
            grown[:size] = self.pool
            self.pool = grown
            self._free.extend(reversed(range(size, len(grown))))
        return [self._free.pop() for _ in range(n)]

    def give_back(self, slots: list[int]) -> None:
        self._free.extend(slots)


class Candidates(NamedTuple):
    """The best split of each of m nodes; gain is 0 where there is none."""

    gain: np.ndarray  # (m,) float64
    value: np.ndarray  # (m,) float64: of both children together
    feature: np.ndarray  # (m,) int64
    bin: np.ndarray  # (m,) int64: this bin and those below go left
    missing_left: np.ndarray  # (m,) bool
    n_left: np.ndarray  # (m,) int64 rows
    n_right: np.ndarray  # (m,) int64 rows

    @classmethod
    def none(cls, m: int) -> Candidates:
        i, f = (lambda: np.zeros(m, np.int64)), (lambda: np.zeros(m))
        return cls(f(), f(), i(), i(), np.zeros(m, bool), i(), i())

    def keep_better(self, other: Candidates) -> None:
        """Takes over the nodes for which `other`, of later features, has a larger value: a tie stays with the earlier."""
        better = (other.gain > 0) & ((self.gain == 0) | (other.value > self.value))
        for mine, theirs in zip(self, other, strict=True):
            mine[better] = theirs[better]


@kernel
def subtract(pool, built, parent, features, offsets):
    """A parent less its built child is the other child, in the parent's slot."""
    # OUT: pool[parent[m]]
    for m in range(built.shape[0]):
        a, b = pool[parent[m]], pool[built[m]]
        for d in features:
            for j in range(offsets[d], offsets[d + 1]):
                for c in range(a.shape[1]):
                    a[j, c] -= b[j, c]


@kernel
def best_splits(pool, slots, features, offsets, n_sums, weighted, kind, min_rows, min_weight, out):
    """Scans every threshold of every feature: ties go to the lowest feature, then the lowest threshold, then missing left.

    Where a node has no missing value, one that comes later goes to the heavier side.
    """
    # IN: pool (slots, total bins, C) int64: n_sums sums, then the number of rows, then their weight if `weighted`
    # OUT: out: Candidates
    gain, value, feature, split_bin, missing_left, n_left, n_right = out
    size = n_sums + 1 + weighted
    weight = size - 1  # where rows are not weighted, their number is their weight
    P, L, R = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    for m in range(slots.shape[0]):
        sums = pool[slots[m]]
        P[:] = 0
        for j in range(offsets[features[0]], offsets[features[0] + 1]):
            for c in range(size):
                P[c] += sums[j, c]
        if P[n_sums] < 2 * min_rows or P[weight] < 2 * min_weight:
            continue
        own, noise = own_value(kind, P, n_sums)
        best = own + noise
        for d in features:
            L[:] = 0
            missing = sums[offsets[d + 1] - 1]
            n_missing = missing[n_sums]
            for j in range(offsets[d], offsets[d + 1] - 1):
                if sums[j, n_sums] == 0:  # the same two sides as at the bin before
                    continue
                for c in range(size):
                    L[c] += sums[j, c]
                    R[c] = P[c] - L[c]
                if L[n_sums] + n_missing < min_rows:
                    continue
                if R[n_sums] < min_rows:
                    break
                right_value = -np.inf
                if L[n_sums] >= min_rows and L[weight] >= min_weight and R[weight] >= min_weight:
                    right_value = pair_value(kind, L, R, n_sums)
                left_value = -np.inf
                if n_missing > 0 and R[n_sums] - n_missing >= min_rows:
                    for c in range(size):
                        L[c] += missing[c]
                        R[c] -= missing[c]
                    if L[weight] >= min_weight and R[weight] >= min_weight:
                        left_value = pair_value(kind, L, R, n_sums)
                    for c in range(size):
                        L[c] -= missing[c]
                        R[c] += missing[c]
                total = max(left_value, right_value)
                if total > best:
                    best = total
                    value[m], feature[m], split_bin[m] = total, d, j - offsets[d]
                    gain[m] = total - own
                    to_left = left_value >= right_value
                    n_left[m] = L[n_sums] + (n_missing if to_left else 0)
                    n_right[m] = P[n_sums] - n_left[m]
                    missing_left[m] = to_left if n_missing > 0 else L[weight] >= R[weight]


def search(
    histograms: Histograms,
    built: list[int],
    parents: list[int],
    features: np.ndarray,
    n_sums: int,
    kind: int,
    min_rows: int,
    min_weight: int,
    weighted: bool,
    threads: Threads,
) -> Candidates:
    """The best splits of the nodes in the slots `built`, then of their siblings, which replace the `parents`."""
    built_, parents_ = np.array(built, np.int64), np.array(parents, np.int64)
    slots = np.concatenate([built_, parents_])

    def search_features(group: np.ndarray) -> Candidates:
        found = Candidates.none(len(slots))
        if len(parents_):
            subtract(histograms.pool, built_, parents_, group, histograms.offsets)
        best_splits(
            histograms.pool,
            slots,
            group,
            histograms.offsets,
            n_sums,
            weighted,
            kind,
            min_rows,
            min_weight,
            found,
        )
        return found

    groups = [g for g in np.array_split(features, threads.n) if len(g)]
    first, *others = threads.map(search_features, groups)
    for other in others:
        first.keep_better(other)
    return first
