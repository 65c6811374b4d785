"""The search for the best split of each node, by a scan of the node's histogram."""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from distboost.kernels import simd
from distboost.kernels._jit import kernel
from distboost.kernels.categories import fill_set, order_bins
from distboost.kernels.gains import Gain

CHUNK = 32  # thresholds: their sums stay in the first-level cache
_LANES = np.uintp(simd.SUM_LANES)

# The functions of the gain that `_best_splits` is compiled for: `best_splits_by` puts them in their place.
pair_values: Any = None
own_value: Any = None


class Thresholds(NamedTuple):
    """Neighbouring thresholds of one feature at which a node may be split: working memory for up to CHUNK of them."""

    left: np.ndarray  # (CHUNK, channels) float64: the sums on the left
    right: np.ndarray  # (CHUNK, channels) float64: the sums on the right
    last_bin: np.ndarray  # (CHUNK,) int64: the last bin that goes left
    rows: np.ndarray  # (CHUNK,) int64: the number of rows on the left
    weights: np.ndarray  # (CHUNK,) int64: the sum of their row weights


@kernel
def subtract(a, b, first, stop):
    """Subtract b from a on some bins: a parent's histogram minus one child's is the other child's."""
    # IN: b (total bins, channels) int64
    # OUT: a (total bins, channels) int64
    for j in range(first, stop):
        for c in range(a.shape[1]):
            a[j, c] -= b[j, c]


@kernel
def subtract_features(a, b, features, offsets):
    """Subtract b from a on the bins of these features."""
    # IN: b (total bins, channels) int64; features (f,) int64; offsets (D + 1,) int64
    # OUT: a (total bins, channels) int64
    for d in features:
        subtract(a, b, offsets[d], offsets[d + 1])


@kernel
def add_up(sums, offsets, feature, out):
    """Set out to the sums over all rows of a node, from the bins of one feature."""
    # IN: sums (total bins, channels) int64; offsets (D + 1,) int64
    # OUT: out (channels,) int64
    out[:] = 0
    for j in range(offsets[feature], offsets[feature + 1]):
        for c in range(out.shape[0]):
            out[c] += sums[j, c]


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
    children, slots, pool, parents, features, offsets, categorical, n_sums, weighted, context, min_rows,
    min_weight, least_category, out,
):  # fmt: skip
    """Find the best split of each node. Ties go to the lowest feature, then the lowest threshold, then to missing values left.

    The categories of a categorical feature are ordered in each node, by `order_bins`. Then a threshold is a place in this order,
    and the split has the set of the bins that go left. All bins that are unknown in the node follow the missing values.

    Node m has its histogram in children[slots[m]]. With `parents`, pool[parents[m]] has that of its parent, which becomes its
    sibling's, feature by feature; the siblings come after the nodes in `out`. If a node has no missing values, those that
    come later, in prediction, go to the heavier side.
    """
    # IN: children (slots, total bins, channels) int64: n_sums sums, then the number of rows, then their row weights if
    #     `weighted`; slots (m,) int64; parents (m,) or (0,) int64; features (f,) int64: those to search;
    #     offsets (D + 1,) int64; categorical (D,) bool; context (2, k) float64; least_category: the weight of a known category
    # OUT: pool: as children; out: BestSplits
    gain, value, feature, split_bin, missing_left, n_left, n_right, left_sums, sets = out
    n_built = slots.shape[0]
    # If row weights are not summed, each row has weight 1.
    weight_channel = n_sums + weighted
    n_channels = children.shape[2]
    n_sides = 2 if parents.shape[0] else 1
    P, L = np.zeros((2, n_channels), np.int64), np.zeros((2, n_channels), np.int64)
    best, own, is_open = np.zeros(2), np.zeros(2), np.zeros(2, np.bool_)
    width = -(-n_channels // simd.LANES) * simd.LANES
    found = Thresholds(
        np.zeros((CHUNK, width)),
        np.zeros((CHUNK, width)),
        np.empty(CHUNK, np.int64),
        np.empty(CHUNK, np.int64),
        np.empty(CHUNK, np.int64),
    )
    rows, weights = found.rows, found.weights
    right_value, left_value = np.empty(CHUNK), np.empty(CHUNK)
    n_ordered = 256 if sets.shape[1] else 0
    order, deviations = np.empty(n_ordered, np.int64), np.empty((n_ordered, n_sums + 2))
    ordered = np.empty((n_ordered, n_channels), np.int64)
    for built in range(n_built):
        for side in range(n_sides):
            sums = pool[parents[built]] if side == 1 else children[slots[built]]
            add_up(sums, offsets, features[0], P[side])
            if side == 1:
                for c in range(n_channels):
                    P[1, c] -= P[0, c]
            is_open[side] = P[side, n_sums] >= 2 * min_rows and P[side, weight_channel] >= 2 * min_weight
            if is_open[side]:
                own[side], noise = own_value(P[side], n_sums, context)
                best[side] = own[side] + noise
        # A feature of the sibling is searched right after that of the node, while both are in the cache.
        for d in features:
            first, stop = offsets[d], offsets[d + 1] - 1
            for side in range(n_sides):
                m = built + side * n_built
                sums = pool[parents[built]] if side == 1 else children[slots[built]]
                if side == 1:
                    subtract(sums, children[slots[built]], first, stop + 1)
                if not is_open[side]:
                    continue
                table, low, high = sums, first, stop
                if categorical[d]:
                    table, low = ordered, 0
                    high = order_bins(
                        sums,
                        first,
                        stop,
                        n_sums,
                        n_sums,
                        weight_channel,
                        least_category,
                        deviations,
                        order,
                        ordered,
                    )
                n_rows, weight = P[side, n_sums], P[side, weight_channel]
                most, heaviest = n_rows - min_rows, weight - min_weight
                n_missing, w_missing = table[high, n_sums], table[high, weight_channel]
                for c in range(n_channels):
                    L[0, c], L[1, c] = 0, table[high, c]
                after, improved, cut = low, False, low
                while after < high:
                    begin = after
                    if n_missing > 0:
                        n, after = both_sides(
                            table,
                            begin,
                            high,
                            n_sums,
                            weight_channel,
                            min_rows,
                            most + n_missing,
                            L[1:],
                            P[side:],
                            found,
                        )
                        pair_values(found.left, found.right, n, n_sums, context, left_value)
                    n, after = both_sides(
                        table,
                        begin,
                        high,
                        n_sums,
                        weight_channel,
                        min_rows - n_missing,
                        most,
                        L,
                        P[side:],
                        found,
                    )
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
                        if total > best[side]:
                            best[side], improved = total, True
                            value[m], feature[m], cut = total, d, found.last_bin[t]
                            gain[m] = total - own[side]
                            to_left = left >= right
                            n_left[m] = rows[t] + (n_missing if to_left else 0)
                            n_right[m] = n_rows - n_left[m]
                            missing_left[m] = to_left if n_missing > 0 else 2 * weights[t] >= weight
                if improved:
                    left_sums[m] = 0
                    for j in range(low, high + 1):
                        if j <= cut or (j == high and missing_left[m]):
                            # The sums of categories in `table` are shrunk.
                            is_known = categorical[d] and j < high
                            for c in range(left_sums.shape[1]):
                                left_sums[m, c] += sums[first + order[j], c] if is_known else table[j, c]
                    split_bin[m] = cut - low
                    if sets.shape[1]:
                        sets[m] = 0
                        if categorical[d]:
                            fill_set(sets, m, order, split_bin[m] + 1, high, missing_left[m])
                            split_bin[m] = -1


@kernel
def both_sides(sums, first, stop, count_channel, weight_channel, fewest, most, L, P, found):
    """Compute the sums on both sides of the next thresholds of a feature; return their number and the bin to go on from.

    Only thresholds with `fewest` to `most` rows on the left count. The left side of threshold t is the initial L (the sums of the
    missing values, or 0, and of the bins before `first`) plus the bins first .. last_bin[t]; the right side is P minus the left.
    A threshold after an empty bin is skipped, because its two sides equal those of the threshold before.
    """
    # IN: sums (bins, channels) int64, with the number of rows in `count_channel` and their weight in `weight_channel`;
    #     P[0] (channels,) int64: the sums of the node
    # OUT: L[0] (channels,) int64: the left side at the bin to go on from; found: Thresholds
    n_channels = np.uintp(sums.shape[1])
    n = 0
    for j in range(first, stop):
        if sums[j, count_channel] == 0:
            continue
        for c in range(np.uintp(0), n_channels, _LANES):
            simd.advance_lanes(L, sums, np.uintp(j), c, P, found.left, found.right, np.uintp(n))
        n_left = L[0, count_channel]
        if n_left > most:
            return n, stop
        if n_left >= fewest:
            found.last_bin[n], found.rows[n], found.weights[n] = j, n_left, L[0, weight_channel]
            n += 1
            if n == CHUNK:
                return n, j + 1
    return n, stop
