"""The search for the best split of each node, by a scan of the node's histogram."""

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

# The functions of the gain that `_best_splits` is compiled for: `best_splits_by` puts them in their place.
pair_values: Any = None
own_value: Any = None


class Thresholds(NamedTuple):
    """The thresholds of one feature at which a node may be split: working memory for up to WIDEST of them."""

    left: np.ndarray  # (WIDEST, channels) float64: the sums on the left
    right: np.ndarray  # (WIDEST, channels) float64: the sums on the right
    last_bin: np.ndarray  # (WIDEST,) int64: the last bin that goes left
    rows: np.ndarray  # (WIDEST,) int64: the number of rows on the left
    weights: np.ndarray  # (WIDEST,) int64: the sum of their row weights


@kernel
def subtract(a, b, features, offsets):
    """Subtract b from a on the bins of these features: a parent's histogram minus one child's is the other child's."""
    # IN: b (total bins, channels) int64; features (f,) int64; offsets (D + 1,) int64
    # OUT: a (total bins, channels) int64
    for d in features:
        for j in range(offsets[d], offsets[d + 1]):
            for c in range(a.shape[1]):
                a[j, c] -= b[j, c]


@kernel
def left_sums(pool, slots, offsets, gain, feature, last_bin, missing_left, out):
    """Set out[m] to the sums over the rows that the split of slot m sends left, or to 0 if it has no split."""
    # IN: pool (slots, total bins, padded channels) int64; slots (m,) int64; offsets (D + 1,) int64; the rest as in `Candidates`
    # OUT: out (m, C) int64
    for m in range(slots.shape[0]):
        sums, left = pool[slots[m]], out[m]
        left[:] = 0
        if not gain[m] > 0:
            continue
        first, stop = offsets[feature[m]], offsets[feature[m] + 1] - 1
        for j in range(first, first + last_bin[m] + 1):
            for c in range(left.shape[0]):
                left[c] += sums[j, c]
        if missing_left[m]:
            for c in range(left.shape[0]):
                left[c] += sums[stop, c]


@cache
def best_splits_by(gain: Gain) -> Any:
    """Return `_best_splits` compiled for a gain.

    To choose among the gains inside the loop would be slower, and would exclude gains that other modules define.
    """
    namespace = {**globals(), "pair_values": gain.pair_values, "own_value": gain.own_value}
    # The name must be unique to the gain: the cache finds the machine code by it.
    name = f"best_splits_by_{gain!r}".replace(".", "_")
    function = FunctionType(_best_splits.__code__, namespace, name)
    function.__qualname__ = name
    return kernel(function, gain.source)


def _best_splits(
    pool, slots, n_built, features, offsets, n_sums, weighted, context, min_rows, min_weight, out
):
    """Find the best split of each node. Ties go to the lowest feature, then the lowest threshold, then to missing values left.

    If `slots` has more than n_built entries, slots[n_built + m] holds the parent's histogram of the node in slots[m]. It becomes
    the sibling's right before it is scanned, while the node's own is in the cache. If a node has no missing values, those that
    come later, in prediction, go to the heavier side.
    """
    # IN: slots (m,) int64: a node each; features (f,) int64: those to search; offsets (D + 1,) int64; context (2, k) float64
    # OUT: pool (slots, total bins, channels) int64: n_sums sums, then the number of rows, then their row weights if `weighted`;
    #      out: Candidates
    gain, value, feature, split_bin, missing_left, n_left, n_right = out
    # If row weights are not summed, each row has weight 1.
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
        # A sibling is searched right after its node. Either every built node has a sibling to search, or none has.
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
                for c in range(n_channels):
                    L[0, c] = sums[stop, c]
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
    """Compute the sums on both sides of each threshold of a feature; return the number of thresholds found.

    Only thresholds with `fewest` to `most` rows on the left count. The left side of threshold t is the initial L (the sums of the
    missing values, or 0) plus the bins first .. last_bin[t]; the right side is P minus the left. A threshold after an empty bin
    is skipped, because its two sides equal those of the threshold before.
    """
    # IN: sums (bins, channels) int64, with the number of rows in `count_channel` and their weight in `weight_channel`;
    #     P (1, channels) int64: the sums of the node
    # OUT: L (1, channels) int64: overwritten; found: Thresholds
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
