"""The best split of a node against every split there is."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distboost.threads import Threads
from distboost.weak import gains
from distboost.weak.splits import Candidates, Histograms, search


class Split(NamedTuple):
    gain: float
    value: float
    feature: int
    bin: int
    missing_left: bool
    n_left: int
    n_right: int


def codeword(S):
    return float(max(S))


def direction(S):
    total = 0.0
    for x in S:
        total += float(x) * float(x)
    return math.sqrt(total)


def least_squares(L, R):
    """W_L W_R / (W_L + W_R) |c_L - c_R|^2."""
    W_L, W_R = float(sum(L)), float(sum(R))
    if W_L == 0.0 or W_R == 0.0:
        return 0.0
    distance = 0.0
    for a, b in zip(L, R, strict=True):
        d = float(a) / W_L - float(b) / W_R
        distance += d * d
    return W_L / (W_L + W_R) * W_R * distance


PAIR = {
    gains.CODEWORD: lambda L, R: codeword(L) + codeword(R),
    gains.DIRECTION: lambda L, R: direction(L) + direction(R),
    gains.LEAST_SQUARES: least_squares,
}
# What a node is worth unsplit, and what a split must add to it to be more than rounding.
OWN = {
    gains.CODEWORD: lambda S: (codeword(S), 0.0),
    gains.DIRECTION: lambda S: (direction(S), direction(S) * 2.0**-40),
    gains.LEAST_SQUARES: lambda S: (0.0, 0.0),
}


def naive_best_split(nodes, offsets, features, n_sums, kind, min_rows, min_weight=0, weighted=False):
    """Every feature, then every threshold above a bin that has rows, then missing values to the left, then to the right.

    The first of the largest value wins, if that is larger than the node's own. `nodes`: (total bins, channels) sums.
    """
    total = [int(x) for x in nodes[offsets[features[0]] : offsets[features[0] + 1]].sum(axis=0)]
    own, noise = OWN[kind](total[:n_sums])
    best, found = own + noise, Split(0.0, 0.0, 0, 0, False, 0, 0)
    weight = n_sums + weighted
    for d in features:
        bins, missing = nodes[offsets[d] : offsets[d + 1] - 1], nodes[offsets[d + 1] - 1]
        for b in np.flatnonzero(bins[:, n_sums]):
            for missing_left in (True, False) if missing[n_sums] else (None,):
                L = [int(x) for x in bins[: b + 1].sum(axis=0) + (missing if missing_left else 0)]
                R = [p - x for p, x in zip(total, L, strict=True)]
                if min(L[n_sums], R[n_sums]) < min_rows or min(L[weight], R[weight]) < min_weight:
                    continue
                value = PAIR[kind](L[:n_sums], R[:n_sums])
                if value > best:
                    best = value
                    side = L[weight] >= R[weight] if missing_left is None else missing_left
                    found = Split(value - own, value, int(d), int(b), side, L[n_sums], R[n_sums])
    return found


def histogram_of(statistics, bins, n_bins):
    """Sums of the rows' statistics by feature and bin."""
    offsets = np.concatenate([[0], np.cumsum(n_bins + 1)])
    out = np.zeros((offsets[-1], statistics.shape[1]), np.int64)
    for d in range(bins.shape[1]):
        np.add.at(out, offsets[d] + bins[:, d], statistics)
    return out


def statistics_of(rng, n, n_classes, kind, weighted, largest):
    """Rows as the weightings make them: residuals that sum to 0, or one number in the channel of the class."""
    y = rng.integers(0, n_classes, n)
    out = np.zeros((n, n_classes + 1 + weighted), np.int64)
    if kind == gains.LEAST_SQUARES:
        out[np.arange(n), y] = rng.integers(0, largest, n)
    else:
        out[:, :n_classes] = -rng.integers(0, largest, (n, n_classes))
        out[np.arange(n), y] = 0
        out[np.arange(n), y] = -out[:, :n_classes].sum(axis=1)
    out[:, n_classes] = 1
    if weighted:
        out[:, n_classes + 1] = rng.integers(1, 4, n)
    return out


def in_slots(nodes, n_bins):
    """(Histograms, slots) that hold the nodes' sums."""
    histograms = Histograms(n_bins, nodes[0].shape[1])
    slots = histograms.take(len(nodes))
    for slot, sums in zip(slots, nodes, strict=True):
        histograms.pool[slot] = 0
        histograms.pool[slot][:, : sums.shape[1]] = sums
    return histograms, slots


def split_of(found: Candidates, m: int) -> Split:
    return Split(*(column[m].item() for column in found))


def assert_finds(nodes, n_bins, features, n_sums, kind, min_rows, min_weight=0, weighted=False):
    for n_threads in (1, 2, 3):
        histograms, slots = in_slots(nodes, n_bins)
        with Threads(n_threads) as threads:
            found = search(
                histograms, slots, [], features, n_sums, kind, min_rows, min_weight, weighted, threads
            )
        for m, node in enumerate(nodes):
            expected = naive_best_split(
                node, histograms.offsets, features, n_sums, kind, min_rows, min_weight, weighted
            )
            assert split_of(found, m) == expected


KINDS = pytest.mark.parametrize(
    "kind",
    [gains.CODEWORD, gains.DIRECTION, gains.LEAST_SQUARES],
    ids=["codeword", "direction", "least squares"],
)


@KINDS
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 50),
    n_classes=st.integers(2, 9),
    min_rows=st.integers(1, 6),
    largest=st.sampled_from([2, 4, 2**30]),  # small numbers make ties
)
def test_best_split(kind, weighted, seed, n, n_classes, min_rows, largest):
    rng = np.random.default_rng(seed)
    n_bins = np.array([5, 1, 2, 8, 3])
    bins = np.column_stack(
        [rng.integers(0, b + rng.integers(0, 2), n) for b in n_bins]
    )  # some have missing values
    statistics = statistics_of(rng, n, n_classes, kind, weighted, largest)
    half = rng.random(n) < 0.5
    nodes = [histogram_of(statistics[rows], bins[rows], n_bins) for rows in (half, ~half, slice(None))]
    features = np.sort(rng.choice(5, rng.integers(1, 6), replace=False))
    min_weight = int(rng.integers(0, 12)) if weighted else 0
    assert_finds(nodes, n_bins, features, n_classes, kind, min_rows, min_weight, weighted)


@KINDS
def test_siblings_are_their_parents_less_the_built(kind):
    rng = np.random.default_rng(0)
    n, n_bins, n_classes = 200, np.array([6, 3, 4]), 3
    bins = np.column_stack([rng.integers(0, b + 1, n) for b in n_bins])
    statistics = statistics_of(rng, n, n_classes, kind, False, 2**20)
    built, sibling = bins[:, 0] <= 1, bins[:, 0] > 1
    parts = [histogram_of(statistics[rows], bins[rows], n_bins) for rows in (built, sibling, slice(None))]
    histograms, slots = in_slots(parts, n_bins)
    features = np.array([0, 2])
    with Threads(2) as threads:
        found = search(histograms, [slots[0]], [slots[2]], features, n_classes, kind, 1, 0, False, threads)
    in_use = np.r_[0:7, 11:16]
    np.testing.assert_array_equal(histograms.pool[slots[2]][in_use, :4], parts[1][in_use])
    for m in (0, 1):
        assert split_of(found, m) == naive_best_split(
            parts[m], histograms.offsets, features, n_classes, kind, 1
        )


# The tie rule, one clause at a time. Rows of class 0 and of class 1, one unit each.

ONE = {0: [1, 0, 1], 1: [0, 1, 1]}


def found_of(rows, n_bins, kind=gains.LEAST_SQUARES, min_rows=1):
    statistics, bins = np.array([ONE[y] for y, *_ in rows]), np.array([b for _, *b in rows])
    histograms, slots = in_slots([histogram_of(statistics, bins, np.array(n_bins))], np.array(n_bins))
    with Threads(1) as threads:
        found = search(histograms, slots, [], np.arange(len(n_bins)), 2, kind, min_rows, 0, False, threads)
    return split_of(found, 0)


def test_of_equal_features_the_lowest_is_taken():
    split = found_of([(0, 1, 0, 0), (1, 0, 1, 1)] * 3, [2, 2, 2])
    assert (split.feature, split.bin) == (0, 0)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_of_equal_features_the_lowest_is_taken_by_any_number_of_threads(n_threads):
    statistics, bins = np.array([ONE[0], ONE[1]] * 4), np.array([[0, 0, 0], [0, 1, 1]] * 4)
    histograms, slots = in_slots([histogram_of(statistics, bins, np.array([2, 2, 2]))], np.array([2, 2, 2]))
    with Threads(n_threads) as threads:
        found = search(histograms, slots, [], np.arange(3), 2, gains.CODEWORD, 1, 0, False, threads)
    assert found.feature[0] == 1


def test_of_equal_thresholds_the_lowest_is_taken():
    """0 1 0: either cut parts one row of class 0 from the two others."""
    assert found_of([(0, 0), (1, 1), (0, 2)], [3]).bin == 0


def test_a_threshold_lies_above_a_bin_that_has_rows():
    assert found_of([(0, 2), (1, 7)], [9]).bin == 2


def test_of_equal_directions_missing_goes_left():
    """One missing row of either class: it costs the same on both sides."""
    split = found_of([(0, 0), (0, 0), (1, 1), (1, 1), (0, 2), (1, 2)], [2])
    assert split.missing_left
    assert (split.n_left, split.n_right) == (4, 2)


@pytest.mark.parametrize(("y", "left"), [(0, True), (1, False)])
def test_missing_goes_to_the_side_that_gains_more(y, left):
    split = found_of([(0, 0), (0, 0), (1, 1), (1, 1), (y, 2)], [2])
    assert split.missing_left == left


@pytest.mark.parametrize(("n_low", "n_high", "left"), [(3, 2, True), (2, 3, False), (2, 2, True)])
def test_without_missing_values_the_larger_side_takes_later_ones(n_low, n_high, left):
    assert found_of([(0, 0)] * n_low + [(1, 1)] * n_high, [2]).missing_left == left


def test_missing_values_can_be_parted_from_all_others():
    split = found_of([(0, 0), (0, 1), (1, 3), (1, 3)], [3])
    assert (split.bin, split.missing_left, split.n_left, split.n_right) == (1, False, 2, 2)


@KINDS
@pytest.mark.parametrize(
    "rows",
    [
        [(0, 0)] * 4,  # nothing to part
        [(0, 1)],
        [(0, 0), (1, 0), (0, 1), (1, 1)],  # two halves alike
        [(0, 2), (1, 2)],  # all values missing
    ],
)
def test_a_split_that_does_not_improve_is_none(kind, rows):
    assert found_of(rows, [2], kind).gain == 0


@pytest.mark.parametrize(("min_rows", "bin"), [(1, 0), (2, 1), (3, 2), (4, None)])
def test_both_sides_have_enough_rows(min_rows, bin):
    """The best threshold is the lowest; larger leaves push it up."""
    split = found_of([(0, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5)], [6], min_rows=min_rows)
    assert (split.gain > 0) == (bin is not None)
    if bin is not None:
        assert split.bin == bin


def test_proportional_sides_are_not_parted_by_rounding():
    """|L| + |R| > |L + R| in the last digit only."""
    rng = np.random.default_rng(0)
    for S in rng.integers(1, 2**30, (200, 5)):
        for share in (1, 2, 3, 7):
            nodes = np.zeros((3, 6), np.int64)
            nodes[0, :5], nodes[1, :5] = share * S, (10 - share) * S
            nodes[:2, 5] = 1
            histograms, slots = in_slots([nodes], np.array([2]))
            with Threads(1) as threads:
                found = search(histograms, slots, [], np.array([0]), 5, gains.DIRECTION, 1, 0, False, threads)
            assert found.gain[0] == 0


def test_slots_are_used_again():
    histograms = Histograms(np.array([3, 4]), 5)
    first = histograms.take(3)
    assert len(set(first)) == 3
    histograms.pool[first[1]] = 7
    histograms.give_back(first[:1])
    more = histograms.take(4)
    assert first[0] in more
    assert not set(first[1:]) & set(more)
    assert (histograms.pool[first[1]] == 7).all()  # growing keeps what is there
    assert histograms.pool.shape[1:] == (9, 8)
