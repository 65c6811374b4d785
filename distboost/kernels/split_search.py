"""Scans histograms for the best split of each node."""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from distboost.kernels import simd
from distboost.kernels._jit import kernel
from distboost.kernels.gains import Gain

WIDEST = 256  # the most thresholds of a feature
_LANES = np.uintp(simd.LANES)

# Of the gain that `_best_splits` is compiled for: see `best_splits_by`.
pair_values: Any = None
own_value: Any = None


class Thresholds(NamedTuple):
    """The thresholds of a feature that a node may be split at, in working memory for WIDEST of them."""

    left: np.ndarray  # (WIDEST, channels) float64: the sums on the left
    right: np.ndarray  # (WIDEST, channels) float64: the sums on the right
    last_bin: np.ndarray  # (WIDEST,) int64: the last bin that goes left
    rows: np.ndarray  # (WIDEST,) int64 on the left
    weights: np.ndarray  # (WIDEST,) int64 on the left


@kernel
def subtract(a, b, features, offsets):
    """a -= b on the bins of these features: a parent less one child is the other."""
    for d in features:
        for j in range(offsets[d], offsets[d + 1]):
            for c in range(a.shape[1]):
                a[j, c] -= b[j, c]


@cache
def best_splits_by(gain: Gain) -> Any:
    """`_best_splits`, compiled for a gain: a choice inside the loop would be slower, and could not know gains from outside."""
    namespace = {**globals(), "pair_values": gain.pair_values, "own_value": gain.own_value}
    # A name of its own: by it, the compiled code is found in the cache.
    name = f"best_splits_by_{gain!r}".replace(".", "_")
    function = FunctionType(_best_splits.__code__, namespace, name)
    function.__qualname__ = name
    return kernel(function, gain.source)


def _best_splits(
    pool, slots, n_built, features, offsets, n_sums, weighted, context, min_rows, min_weight, out
):
    """Scan every threshold of every feature: ties go to the lowest feature, then the lowest threshold, then missing left.

    Slot n_built + m holds the parent of slot m and becomes its sibling first: a histogram is scanned while it is at hand.
    Where a node has no missing value, one that comes later goes to the heavier side.
    """
    # IN: pool (slots, total bins, C) int64: n_sums sums, then the number of rows, then their weight if `weighted`
    # OUT: out: Candidates
    gain, value, feature, split_bin, missing_left, n_left, n_right = out
    # Rows without weights of their own weigh their number.
    weight_channel = n_sums + weighted
    n_channels = pool.shape[2]
    P, L = np.zeros((1, n_channels), np.int64), np.zeros((1, n_channels), np.int64)
    found = Thresholds(
        np.empty((WIDEST, n_channels)),
        np.empty((WIDEST, n_channels)),
        np.empty(WIDEST, np.int64),
        np.empty(WIDEST, np.int64),
        np.empty(WIDEST, np.int64),
    )
    rows, weights = found.rows, found.weights
    right_value, left_value = np.empty(WIDEST), np.empty(WIDEST)
    for visit in range(slots.shape[0]):
        # Siblings follow each other; there is either one for every node built or none at all.
        m = visit if slots.shape[0] == n_built else visit // 2 + (visit % 2) * n_built
        sums = pool[slots[m]]
        if m >= n_built:
            subtract(sums, pool[slots[m - n_built]], features, offsets)
        P[:] = 0
        for j in range(offsets[features[0]], offsets[features[0] + 1]):
            for c in range(weight_channel + 1):
                P[0, c] += sums[j, c]
        if P[0, n_sums] < 2 * min_rows or P[0, weight_channel] < 2 * min_weight:
            continue
        most, heaviest = P[0, n_sums] - min_rows, P[0, weight_channel] - min_weight
        own, noise = own_value(P[0], n_sums, context)
        best = own + noise
        for d in features:
            first, stop = offsets[d], offsets[d + 1] - 1
            n_missing, w_missing = sums[stop, n_sums], sums[stop, weight_channel]
            if n_missing > 0:
                L[0] = sums[stop]
                n = both_sides(
                    sums, first, stop, n_sums, weight_channel, min_rows, most + n_missing, L, P, found
                )
                pair_values(found.left, found.right, n, n_sums, context, left_value)
            L[:] = 0
            n = both_sides(sums, first, stop, n_sums, weight_channel, min_rows - n_missing, most, L, P, found)
            pair_values(found.left, found.right, n, n_sums, context, right_value)
            for t in range(n):
                right, left = -np.inf, -np.inf
                if rows[t] >= min_rows and min_weight <= weights[t] <= heaviest:
                    right = right_value[t]
                if (
                    n_missing > 0
                    and rows[t] + n_missing <= most
                    and min_weight <= weights[t] + w_missing <= heaviest
                ):
                    left = left_value[t]
                total = max(left, right)
                if total > best:
                    best = total
                    value[m], feature[m], split_bin[m] = total, d, found.last_bin[t] - first
                    gain[m] = total - own
                    to_left = left >= right
                    n_left[m] = rows[t] + (n_missing if to_left else 0)
                    n_right[m] = P[0, n_sums] - n_left[m]
                    missing_left[m] = to_left if n_missing > 0 else 2 * weights[t] >= P[0, weight_channel]


@kernel
def both_sides(sums, first, stop, count_channel, weight_channel, fewest, most, L, P, found):
    """The sums left and right of every threshold of a feature that leaves `fewest` to `most` rows on the left; their number.

    Left of threshold t are the sums L came with and the bins first .. last_bin[t]; right of it is P less that. A threshold
    after an empty bin is left out: it has the two sides of the one before.
    """
    # IN: sums (bins, C) int64, of which `count_channel` holds the number of rows, `weight_channel` their weight; P (1, C) int64
    # OUT: L (1, C) int64, added to; found: Thresholds
    n_channels = np.uintp(sums.shape[1])
    n = 0
    for j in range(first, stop):
        if sums[j, count_channel] == 0:
            continue
        for c in range(np.uintp(0), n_channels, _LANES):
            simd.advance_lanes(L, sums, np.uintp(j), c, P, found.left, found.right, np.uintp(n))
        n_left = L[0, count_channel]
        if n_left > most:
            break
        if n_left >= fewest:
            found.last_bin[n], found.rows[n], found.weights[n] = j, n_left, L[0, weight_channel]
            n += 1
    return n
