"""The search for the best split of each node, by a scan of the node's histogram."""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from distboost.kernels import simd
from distboost.kernels._jit import compiled, inlined, kernel, uncounted
from distboost.kernels.by_address import caller
from distboost.kernels.categories import MOST_BINS, ORDERING, fill_set
from distboost.kernels.gains import Gain
from distboost.kernels.lanes import LANES, SUM_LANES
from distboost.kernels.memory import floats, integers
from distboost.kernels.side_lanes import pass_bins

CHUNK = 32  # thresholds: their sums stay in the first-level cache
_LANES = np.uintp(SUM_LANES)

order_by = caller(ORDERING)

# The functions of the gain that the search is compiled for, and those compiled for the gain: `best_splits_by` puts them in their
# place.
pair_values: Any = None
own_value: Any = None
may_exceed: Any = None
next_promising: Any = None
first_promising: Any = None
best_threshold: Any = None


class Limits(NamedTuple):
    """What a histogram's channels hold, and what each side of a split must have."""

    n_sums: int  # channels of sums; the next one has the number of rows
    weight_channel: int  # that of the rows' weight. If weights are not summed, each row has weight 1
    min_rows: int
    min_weight: int


class Thresholds(NamedTuple):
    """Neighbouring thresholds of one feature at which a node may be split: working memory for up to CHUNK of them."""

    left: np.ndarray  # (CHUNK, channels) float64: the sums on the left
    right: np.ndarray  # (CHUNK, channels) float64: the sums on the right
    last_bin: np.ndarray  # (CHUNK,) int64: the last bin that goes left
    rows: np.ndarray  # (CHUNK,) int64: the number of rows on the left
    weights: np.ndarray  # (CHUNK,) int64: the sum of their row weights


class Scan(NamedTuple):
    """How far the thresholds of a feature have been scanned, with working memory."""

    bins: (
        np.ndarray
    )  # (MOST_BINS + LANES,) int64: those that have rows, then that of missing values a few times
    L: np.ndarray  # (2, channels) int64: the left side so far, without and with missing values
    before: np.ndarray  # (2, channels) int64: the left side where the chunk begins
    squares: np.ndarray  # (2, CHUNK) float64: |L|^2 and |R|^2 of its thresholds, up to rounding


class Work(NamedTuple):
    """The working memory for the values of a chunk of thresholds."""

    right_value: np.ndarray  # (CHUNK,) float64: the value of each split if missing values go right
    left_value: np.ndarray  # (CHUNK,) float64: if they go left
    found: Thresholds


@compiled
def new_scan(n_channels):
    """Return a scan for histograms with so many channels."""
    sides = integers(4 * n_channels).reshape(2, 2, n_channels)
    squares = floats(2 * CHUNK).reshape(2, CHUNK)
    return Scan(integers(MOST_BINS + LANES), sides[0], sides[1], squares)


@compiled
def new_work(n_channels):
    """Return working memory for histograms with so many channels."""
    width = -(-n_channels // LANES) * LANES
    sides = floats(2 * CHUNK * width).reshape(2, CHUNK, width)
    counts = integers(3 * CHUNK).reshape(3, CHUNK)
    values = floats(2 * CHUNK).reshape(2, CHUNK)
    found = Thresholds(sides[0], sides[1], counts[0], counts[1], counts[2])
    return Work(values[0], values[1], found)


@uncounted
def subtract(a, b, first, stop):
    """Subtract b from a on some bins: a parent's histogram minus one child's is the other child's."""
    # IN: b (total bins, channels) int64
    # OUT: a (total bins, channels) int64
    x, y, width = a.reshape(-1), b.reshape(-1), a.shape[1]
    for i in range(np.uintp(first * width), np.uintp(stop * width)):
        x[i] -= y[i]


@kernel
def subtract_features(a, b, features, offsets):
    """Subtract b from a on the bins of these features."""
    # IN: b (total bins, channels) int64; features (f,) int64; offsets (D + 1,) int64
    # OUT: a (total bins, channels) int64
    for d in features:
        subtract(a, b, offsets[d], offsets[d + 1])


@compiled
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
    # The name must be unique to the gain: the cache finds the machine code by it.
    suffix = f"_by_{gain!r}".replace(".", "_")
    functions = {"pair_values": gain.pair_values, "own_value": gain.own_value, "may_exceed": gain.may_exceed}
    namespace = {**globals(), **functions}
    following = _next_promising if gain.may_exceed else _next
    namespace["next_promising"] = uncounted(with_globals(following, namespace, suffix))
    namespace["first_promising"] = uncounted(with_globals(_first_promising, namespace, suffix))
    namespace["best_threshold"] = inlined(with_globals(_best_threshold, namespace, suffix))
    return kernel(with_globals(_best_splits, namespace, suffix), gain.source)


def with_globals(function: Any, namespace: dict[str, Any], suffix: str) -> FunctionType:
    """Return the function with other globals, and with the suffix behind its name."""
    name = function.__name__.removeprefix("_") + suffix
    changed = FunctionType(function.__code__, namespace, name)
    changed.__qualname__ = name
    return changed


def _best_splits(
    pool, slots, parents, features, offsets, categorical, n_sums, weighted, context, min_rows,
    min_weight, least_category, ordering, out,
):  # fmt: skip
    """Find the best split of each node. Ties go to the lowest feature, then the lowest threshold, then to missing values left.

    The categories of a categorical feature are ordered in each node, by `order_bins`. Then a threshold is a place in this order,
    and the split has the set of the bins that go left. All bins that are unknown in the node follow the missing values.

    Node m has its histogram in pool[slots[m]]. With `parents`, pool[parents[m]] has that of its parent, which becomes its
    sibling's, feature by feature; the siblings come after the nodes in `out`. If a node has no missing values, those that
    come later, in prediction, go to the heavier side.
    """
    # IN: slots (m,) int64; parents (m,) or (0,) int64; features (f,) int64: those to search;
    #     offsets (D + 1,) int64; categorical (D,) bool; context (2, k) float64; least_category: the weight of a known category;
    #     ordering: the address of `order_bins`, if a feature has categories
    # OUT: pool (slots, total bins, channels) int64: n_sums sums, then the number of rows, then their row weights if
    #     `weighted`; out: BestSplits
    gain, value, feature, split_bin, missing_left, n_left, n_right, left_sums, sets = out
    n_built, n_channels = slots.shape[0], pool.shape[2]
    n_sides = 2 if parents.shape[0] else 1
    limits = Limits(n_sums, n_sums + weighted, min_rows, min_weight)
    P = integers(2 * n_channels).reshape(2, n_channels)
    best, own, is_open = floats(2), floats(2), integers(2)
    scan, work = new_scan(n_channels), new_work(n_channels)
    n_ordered = MOST_BINS if sets.shape[1] else 0
    order = integers(n_ordered + 1)
    deviations = floats(n_ordered * (n_sums + 2)).reshape(n_ordered, n_sums + 2)
    ordered = integers(n_ordered * n_channels).reshape(n_ordered, n_channels)
    for built in range(n_built):
        for side in range(n_sides):
            sums = pool[parents[built]] if side == 1 else pool[slots[built]]
            add_up(sums, offsets, features[0], P[side])
            if side == 1:
                for c in range(n_channels):
                    P[1, c] -= P[0, c]
            is_open[side] = may_split(P[side], limits)
            if is_open[side]:
                own[side], noise = own_value(P[side], n_sums, context)
                best[side] = own[side] + noise
        # A feature of the sibling is searched right after that of the node, while both are in the cache. The subtraction loads
        # them: other work in between would make memory slower.
        for d in features:
            first, stop = offsets[d], offsets[d + 1] - 1
            if n_sides == 2:
                subtract(pool[parents[built]], pool[slots[built]], first, stop + 1)
            for side in range(n_sides):
                m = built + side * n_built
                sums = pool[parents[built]] if side == 1 else pool[slots[built]]
                if not is_open[side]:
                    continue
                table, low, high = sums, first, stop
                if categorical[d]:
                    order_by(
                        ordering,
                        (
                            sums, first, stop, n_sums, limits.weight_channel, least_category, deviations, order,
                            ordered,
                        ),
                    )  # fmt: skip
                    table, low, high = ordered, 0, order[MOST_BINS]
                begin, n_bins = first_promising(table, low, high, P[side:], n_sums, best[side], scan)
                if begin == n_bins:
                    continue
                total, cut, rows, to_left = best_threshold(
                    table, high, begin, n_bins, P[side:], best[side], context, limits, scan, work
                )
                if total > best[side]:
                    best[side] = total
                    gain[m], value[m], feature[m], split_bin[m] = total - own[side], total, d, cut - low
                    n_left[m], n_right[m], missing_left[m] = rows, P[side, n_sums] - rows, to_left
                    if sets.shape[1]:
                        sets[m] = 0
                    if categorical[d]:
                        add_categories(sums, first, order[: cut + 1], table[high], to_left, left_sums[m])
                        fill_set(sets, m, order, cut + 1, high, to_left)
                        split_bin[m] = -1
                    else:
                        add_left(sums, first, cut, stop, to_left, left_sums[m])


def _first_promising(sums, first, stop, P, n_sums, best, scan):
    """Begin to scan the bins first .. stop - 1, those of a feature. Return what `next_promising` returns, and the number of bins.

    A threshold after an empty bin is skipped, because its two sides equal those of the threshold before; that after the last bin,
    too, unless there are missing values, which may go right alone.
    """
    # IN: sums (bins, channels) int64, `stop` for missing values; P[0] (channels,) int64: the sums of the node
    # OUT: scan: Scan
    n_bins = 0
    for j in range(np.uintp(first), np.uintp(stop)):
        scan.bins[np.uintp(n_bins)] = j
        n_bins += sums[j, np.uintp(n_sums)] != 0
    if n_bins > 0 and sums[stop, n_sums] == 0:
        n_bins -= 1
    scan.bins[n_bins : n_bins + LANES] = stop
    for c in range(sums.shape[1]):
        scan.L[0, c], scan.L[1, c] = 0, sums[stop, c]
    return next_promising(sums, stop, 0, n_bins, P, n_sums, best, scan), n_bins


def _next_promising(sums, stop, begin, n_bins, P, n_sums, best, scan):
    """Move on to the next chunk of thresholds of which one may have a total above `best`. Return where it begins, or n_bins.

    In the last chunk, lanes without a bin add the missing values instead, of which there are usually none. If there are some, the
    chunk may be taken for more promising than it is.
    """
    # IN: begin: scan.bins[begin] is the next bin; the rest as in `_first_promising`
    # OUT: scan: Scan, of which L is the left side at the bin to go on from
    bins, L, before, squares = scan
    n_ways = 2 if sums[stop, n_sums] > 0 else 1
    is_promising = False
    while begin < n_bins and not is_promising:
        n = min(CHUNK, n_bins - begin)
        copy_sides(L, before)
        for way in range(n_ways):
            for t in range(0, n, LANES):
                pass_bins(L, way, sums, bins, begin + t, P, n_sums, squares, t)
            is_promising |= may_exceed(squares, n, n_sums, best)
        if is_promising:
            copy_sides(before, L)
        else:
            begin += n
    return begin


def _next(sums, stop, begin, n_bins, P, n_sums, best, scan):
    """Do what `_next_promising` does, for a gain of which no bound is known: any threshold may have a total above `best`."""
    return begin


@uncounted
def copy_sides(source, target):
    """Set target = source, two arrays (2, channels)."""
    for side in range(source.shape[0]):
        for c in range(source.shape[1]):
            target[side, c] = source[side, c]


def _best_threshold(sums, stop, begin, n_bins, P, best, context, limits, scan, work):
    """Find the best threshold of one feature in a node whose total exceeds `best`, from that after bins[begin] on.

    Return its total, the last bin on the left, the number of rows there and whether missing values go left. If there is no such
    threshold, the total is `best`.
    """
    # IN: sums (bins, channels) int64: the feature has the bins scan.bins[:n_bins], and `stop` for missing values;
    #     P[0] (channels,) int64: the sums of the node; context (2, k) float64
    # OUT: scan: Scan; work: Work
    n_sums, weight_channel, min_rows, min_weight = limits
    n_rows, weight = P[0, n_sums], P[0, weight_channel]
    most, heaviest = n_rows - min_rows, weight - min_weight
    n_missing, w_missing = sums[stop, n_sums], sums[stop, weight_channel]
    L, bins = scan.L, scan.bins
    right_value, left_value, found = work
    rows, weights = found.rows, found.weights
    cut, rows_left, missing_left = bins[begin], np.int64(0), False
    while begin < n_bins:
        end = min(begin + CHUNK, n_bins)
        if n_missing > 0:
            n = both_sides(sums, bins[begin:end], limits, min_rows, most + n_missing, L[1:], P, found)
            pair_values(found.left, found.right, n, n_sums, context, left_value)
        n = both_sides(sums, bins[begin:end], limits, min_rows - n_missing, most, L, P, found)
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
            if max(left, right) > best:
                best, cut = max(left, right), found.last_bin[t]
                to_left = left >= right
                rows_left = rows[t] + (n_missing if to_left else 0)
                missing_left = to_left if n_missing > 0 else 2 * weights[t] >= weight
        if L[0, n_sums] >= most:
            break
        begin = next_promising(sums, stop, end, n_bins, P, n_sums, best, scan)
    return best, cut, rows_left, missing_left


@compiled
def may_split(P, limits):
    """Return whether a node has enough rows and weight for two children."""
    # IN: P (channels,) int64: the sums of the node
    n_rows, weight = P[limits.n_sums], P[limits.weight_channel]
    return n_rows >= 2 * limits.min_rows and weight >= 2 * limits.min_weight


@compiled
def add_left(sums, first, cut, stop, missing_left, out):
    """Set out to the sums over the bins first .. cut, and over the missing values in bin `stop` if they go left."""
    # IN: sums (bins, channels) int64
    # OUT: out (channels,) int64
    out[:] = 0
    for j in range(first, stop + 1):
        if j <= cut or (j == stop and missing_left):
            for c in range(out.shape[0]):
                out[c] += sums[j, c]


@compiled
def add_categories(sums, first, categories, missing, missing_left, out):
    """Set out to the sums over some categories, and over the missing values if they go left."""
    # IN: sums (bins, channels) int64, those of the feature from `first`; categories (m,) int64: their bins in the feature;
    #     missing (channels,) int64
    # OUT: out (channels,) int64
    for c in range(out.shape[0]):
        out[c] = missing[c] if missing_left else 0
        for b in categories:
            out[c] += sums[first + b, c]


@uncounted
def both_sides(sums, bins, limits, fewest, most, L, P, found):
    """Compute the sums on both sides of the thresholds after some bins of a feature; return the number of thresholds.

    Only thresholds with `fewest` to `most` rows on the left count. The left side of threshold t is the initial L (the sums of the
    missing values, or 0, and of the bins before) plus these bins up to last_bin[t]; the right side is P minus the left.
    """
    # IN: sums (bins, channels) int64; bins (at most CHUNK,) int64; P[0] (channels,) int64: the sums of the node
    # OUT: L[0] (channels,) int64: the left side after the last bin, or after the first with more than `most` rows on the left;
    #     found: Thresholds
    n_channels = np.uintp(sums.shape[1])
    n = 0
    for j in bins:
        for c in range(np.uintp(0), n_channels, _LANES):
            simd.advance_lanes(L, sums, np.uintp(j), c, P, found.left, found.right, np.uintp(n))
        n_left = L[0, limits.n_sums]
        if n_left > most:
            break
        if n_left >= fewest:
            found.last_bin[n], found.rows[n], found.weights[n] = j, n_left, L[0, limits.weight_channel]
            n += 1
    return n
