"""The best split of a node against every split there is."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distboost.kernels import gains
from distboost.splits import tree_histograms
from distboost.splits.tree_histograms import Histograms, SearchRules, search
from distboost.threads import Threads
from tests.weak.naive_splits import (
    KINDS,
    NAMES,
    ON_GRID,
    TWO_SIDED,
    context_of,
    histogram_of,
    in_slots,
    naive_best_split,
    split_of,
    statistics_of,
)

pytestmark = pytest.mark.pairwise


def assert_finds(nodes, n_bins, features, n_sums, kind, min_rows, min_weight, weighted, context):
    offsets = in_slots(nodes, n_bins)[0].offsets
    expected = [
        naive_best_split(node, offsets, features, n_sums, kind, min_rows, min_weight, weighted, context)
        for node in nodes
    ]
    for n_threads in (1, 2, 3):
        histograms, slots = in_slots(nodes, n_bins)
        with Threads(n_threads) as threads, mock.patch.object(tree_histograms, "SUMS_PER_THREAD", 1):
            found = search(
                histograms,
                slots,
                [],
                features=features,
                rules=SearchRules(kind, n_sums, min_rows, min_weight, weighted),
                threads=threads,
                context=context,
            )
        assert [split_of(found, m) for m in range(len(nodes))] == expected


@KINDS
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@settings(max_examples=30)  # of each of ten gains, with many nodes
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 50),
    n_classes=st.integers(2, 9),
    min_rows=st.integers(1, 6),
    largest=st.sampled_from([2, 4, 2**27]),  # small numbers make ties
    unit=st.sampled_from([2**25, 1, 5**10]),
)
def test_best_split(kind, weighted, seed, n, n_classes, min_rows, largest, unit):
    rng = np.random.default_rng(seed)
    n_bins = np.array([5, 1, 2, 8, 3])
    # Some have missing values.
    bins = np.column_stack([rng.integers(0, b + rng.integers(0, 2), n) for b in n_bins])
    statistics = statistics_of(rng, n, n_classes, kind, weighted, largest)
    n_sums = statistics.shape[1] - 1 - weighted
    statistics[:, :n_sums] *= unit
    half = rng.random(n) < 0.5
    nodes = [histogram_of(statistics[rows], bins[rows], n_bins) for rows in (half, ~half, slice(None))]
    features = np.sort(rng.choice(5, rng.integers(1, 6), replace=False))
    min_weight = int(rng.integers(0, 12)) if weighted else 0
    context = context_of(rng, kind, n_sums, largest * unit, weighted)
    assert_finds(nodes, n_bins, features, n_sums, kind, min_rows, min_weight, weighted, context)


@KINDS
def test_siblings_are_their_parents_less_the_built(kind):
    rng = np.random.default_rng(0)
    n, n_bins, n_classes = 200, np.array([6, 3, 4]), 3
    bins = np.column_stack([rng.integers(0, b + 1, n) for b in n_bins])
    statistics = statistics_of(rng, n, n_classes, kind, False, 2**40)
    n_sums = statistics.shape[1] - 1
    context = context_of(rng, kind, n_sums, 2**40)
    built, sibling = bins[:, 0] <= 1, bins[:, 0] > 1
    parts = [histogram_of(statistics[rows], bins[rows], n_bins) for rows in (built, sibling, slice(None))]
    histograms, slots = in_slots(parts, n_bins)
    features = np.array([0, 2])
    with Threads(2) as threads:
        found = search(
            histograms,
            [slots[0]],
            [slots[2]],
            features=features,
            rules=SearchRules(kind, n_sums),
            threads=threads,
            context=context,
        )
    in_use = np.r_[0:7, 11:16]
    np.testing.assert_array_equal(histograms.pool[slots[2]][in_use, : n_sums + 1], parts[1][in_use])
    for m in (0, 1):
        assert split_of(found, m) == naive_best_split(
            parts[m], histograms.offsets, features, n_sums, kind, 1, context=context
        )


# The tie rule, one clause at a time. Rows of class 0 and of class 1, one unit each: of the grid, if values are compared on one.

ONE = {0: [1, 0], 1: [0, 1]}
BOTH_SIDES = {0: [0, 1, 1, 0], 1: [1, 0, 0, 1]}  # (N, P)


def found_of(rows, n_bins, kind=gains.LEAST_SQUARES, min_rows=1, n_threads=1):
    unit = int(gains.GRID) if kind in ON_GRID else 1
    channels = BOTH_SIDES if kind in TWO_SIDED else ONE
    statistics = np.array([[*(unit * x for x in channels[y]), 1] for y, *_ in rows])
    bins, n_sums = np.array([b for _, *b in rows]), statistics.shape[1] - 1
    # A root: no other leaves; the tree is worth what no tree is.
    sums = statistics[:, :n_sums].sum()
    context = np.array([[0.0] * (n_sums // 2) + [-sums]] * 2)
    if kind == gains.NEWTON:
        context = gains.context_of((1.0,), n_sums, 1.0)
    histograms, slots = in_slots([histogram_of(statistics, bins, np.array(n_bins))], np.array(n_bins))
    with Threads(n_threads) as threads, mock.patch.object(tree_histograms, "SUMS_PER_THREAD", 1):
        found = search(
            histograms,
            slots,
            [],
            features=np.arange(len(n_bins)),
            rules=SearchRules(kind, n_sums, min_rows),
            threads=threads,
            context=context,
        )
    return split_of(found, 0)


def test_of_equal_features_the_lowest_is_taken():
    split = found_of([(0, 1, 0, 0), (1, 0, 1, 1)] * 3, [2, 2, 2])
    assert (split.feature, split.bin) == (0, 0)


@pytest.mark.parametrize("kind", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_of_equal_features_the_lowest_is_taken_by_any_number_of_threads(n_threads, kind):
    split = found_of([(0, 0, 0, 0), (1, 0, 1, 1)] * 4, [2, 2, 2], kind, n_threads=n_threads)
    assert split.feature == 1
    assert split.gain > 0


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
def test_a_split_without_gain_is_not_made(kind, rows):
    assert found_of(rows, [2], kind).gain == 0


@pytest.mark.parametrize(("min_rows", "bin"), [(1, 0), (2, 1), (3, 2), (4, None)])
def test_both_sides_have_enough_rows(min_rows, bin):
    """The best threshold is the lowest; larger leaves push it up."""
    split = found_of([(0, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5)], [6], min_rows=min_rows)
    assert (split.gain > 0) == (bin is not None)
    if bin is not None:
        assert split.bin == bin


@pytest.mark.parametrize(("min_rows", "bin"), [(1, 4), (2, 3), (3, 2)])
def test_the_right_side_has_enough_rows(min_rows, bin):
    """The best threshold is the highest; larger leaves push it down."""
    assert found_of([*((0, b) for b in range(5)), (1, 5)], [6], min_rows=min_rows).bin == bin


def parted_alike(S, share, kind, masses=(1, 1), context=gains.NO_CONTEXT):
    """The split of a node with sums 10 S, of which `share` S are left of the only threshold."""
    n = len(S)
    nodes = np.zeros((3, n + 1), np.int64)
    nodes[0, :n], nodes[1, :n] = share * S, (10 - share) * S
    nodes[:2, n] = masses
    histograms, slots = in_slots([nodes], np.array([2]))
    with Threads(1) as threads:
        found = search(
            histograms,
            slots,
            [],
            features=np.array([0]),
            rules=SearchRules(kind, n),
            threads=threads,
            context=context,
        )
    return split_of(found, 0)


@pytest.mark.parametrize("kind", [gains.DIRECTION, gains.REAL_VOTES], ids=["direction", "real votes"])
def test_proportional_sides_are_not_parted_by_rounding(kind):
    """|L| + |R| > |L + R| in the last digit only, and so do sums of roots."""
    rng = np.random.default_rng(0)
    for S in rng.integers(1, 2**30, (200, 6)):
        for share in (1, 2, 3, 7):
            assert parted_alike(S, share, kind).gain == 0


def test_sides_of_one_mean_are_not_parted_by_rounding_or_by_a_penalty():
    """Without l2, |L|^2 / n_L + |R|^2 / n_R is |S|^2 / n up to the last digit; with it, less."""
    rng = np.random.default_rng(0)
    for S in rng.integers(1, 2**30, (200, 6)):
        for share in (1, 2, 3, 7):
            for l2 in (0.0, 1.0):
                context = gains.context_of((l2,), 6, 1.0)
                split = parted_alike(S, share, gains.NEWTON, (share, 10 - share), context)
                assert split.gain == 0


def test_a_whole_tree_is_not_changed_by_rounding():
    """Children of opposite signs that leave right and wrong as they were."""
    rng = np.random.default_rng(0)
    for right, wrong, moved in zip(*rng.integers(1, 2**50, (3, 100, 4)), strict=True):
        # What the left is right about, the right one is wrong about: in each class they cancel.
        nodes = np.zeros((3, 9), np.int64)
        nodes[0], nodes[1] = [*moved, *moved, 1], [*moved, *moved, 1]
        own = -2.0 * np.sqrt((right + 2.0 * moved) * (wrong + 2.0 * moved)).sum()
        context = np.array([[*right, own], [*wrong, own]], float)
        histograms, slots = in_slots([nodes], np.array([2]))
        with Threads(1) as threads:
            found = search(
                histograms,
                slots,
                [],
                features=np.array([0]),
                rules=SearchRules(gains.WHOLE_TREE, 8),
                threads=threads,
                context=context,
            )
        assert found.gain[0] == 0


@pytest.mark.parametrize("name", ["codeword", "class stump", "votes", "votes stump"])
@pytest.mark.parametrize(("surplus", "feature"), [(0, 0), (1000, 0), (2**22, 0), (2**26, 1), (2**40, 1)])
def test_near_ties_are_ties(name, surplus, feature):
    """Two features that part the rows alike, but for a surplus in the sums of the second: below the grid it does not count."""
    kind, n, most = NAMES[name], 4, 2**50
    statistics = np.zeros((2, n + 1), np.int64)
    if kind in TWO_SIDED:
        statistics[0, :n], statistics[1, :n] = [0, most, most, 0], [most, 0, 0, most]
    else:
        statistics[0, :n], statistics[1, :n] = [most, 0, 0, -most], [-most, 0, 0, most]
    statistics[:, n] = 1
    nodes = histogram_of(
        np.repeat(statistics, 2, axis=0), np.array([[0, 0], [0, 0], [1, 1], [1, 1]]), np.array([2, 2])
    )
    # The second feature sees more on the left and less on the right: the totals are alike.
    gaining = 1 if kind in TWO_SIDED else 0
    nodes[3, gaining] += surplus
    nodes[4, gaining] -= surplus
    histograms, slots = in_slots([nodes], np.array([2, 2]))
    with Threads(1) as threads:
        found = search(
            histograms, slots, [], features=np.arange(2), rules=SearchRules(kind, n), threads=threads
        )
    assert found.gain[0] > 0
    assert found.feature[0] == feature


@pytest.mark.parametrize("n_bins", [31, 32, 33, 34, 65, 255])
@pytest.mark.parametrize("missing", [0, 3])
def test_more_thresholds_than_a_chunk(n_bins, missing):
    """The search goes on where a chunk of thresholds ended, wherever the best one is."""
    rng = np.random.default_rng(n_bins)
    for best in {0, 1, 30, 31, 32, 33, 63, 64, n_bins - 2} & set(range(n_bins - 1)):
        node = np.zeros((n_bins + 1, 4), np.int64)
        node[:n_bins, 3] = rng.integers(1, 4, n_bins)
        node[n_bins, 3] = missing
        node[: best + 1, 0], node[best + 1 : n_bins, 1] = 5, 5
        node[n_bins, 0] = missing
        assert_finds(
            [node], np.array([n_bins]), np.array([0]), 3, gains.DIRECTION, 1, 0, False, gains.NO_CONTEXT
        )
        histograms, slots = in_slots([node], np.array([n_bins]))
        with Threads(1) as threads:
            found = search(
                histograms,
                slots,
                [],
                features=np.array([0]),
                rules=SearchRules(gains.DIRECTION, 3),
                threads=threads,
            )
        assert found.bin[0] == best
        left = node[: best + 1].sum(axis=0) + (node[n_bins] if found.missing_left[0] else 0)
        assert found.left[0].tolist() == left.tolist()


@pytest.mark.parametrize("n_classes", [2, 3, 7, 10, 26, 40])
@pytest.mark.parametrize("largest", [2, 2**20, 2**52])
@pytest.mark.parametrize("missing", [False, True])
def test_directions_of_features_with_many_bins(n_classes, largest, missing):
    """Features of one bin, too, and two that are the same."""
    rng = np.random.default_rng(n_classes)
    n, n_bins = 120, np.array([70, 1, 33, 8, 70])
    bins = np.column_stack([rng.integers(0, b + missing, n) for b in n_bins])
    bins[:, 4] = bins[:, 0]
    statistics = statistics_of(rng, n, n_classes, gains.DIRECTION, False, largest)
    half = rng.random(n) < 0.5
    nodes = [histogram_of(statistics[rows], bins[rows], n_bins) for rows in (half, slice(None))]
    for min_rows in (1, 20):
        assert_finds(
            nodes, n_bins, np.arange(5), n_classes, gains.DIRECTION, min_rows, 0, False, gains.NO_CONTEXT
        )


@pytest.mark.parametrize("n_classes", [10, 26, 40])
def test_directions_that_differ_in_the_last_digit(n_classes):
    """The same splits with the classes in other orders: their values differ by rounding only, and the largest is found."""
    rng = np.random.default_rng(n_classes)
    n_features, n_bins = 40, 9
    offsets, features = np.arange(n_features + 1) * (n_bins + 1), np.arange(n_features)
    winners = set()
    for _ in range(10):
        feature = np.zeros((n_bins + 1, n_classes), np.int64)
        feature[: n_bins - 1] = rng.integers(-(2**50), 2**50, (n_bins - 1, n_classes))
        feature[n_bins - 1] = 2**52 - feature.sum(axis=0)  # the node's sums are the same for all classes
        rows = np.r_[np.ones(n_bins, np.int64), 0]
        node = np.concatenate(
            [np.column_stack([feature[:, rng.permutation(n_classes)], rows]) for _ in features]
        )
        winners.add(naive_best_split(node, offsets, features, n_classes, gains.DIRECTION, 1).feature)
        n_each = np.full(n_features, n_bins)
        assert_finds([node], n_each, features, n_classes, gains.DIRECTION, 1, 0, False, gains.NO_CONTEXT)
    assert len(winners) > 1


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


def test_slots_that_take_too_much_memory_are_made_when_they_are_needed(monkeypatch):
    monkeypatch.setattr(tree_histograms, "LARGEST_POOL", 3 * 9 * 8 * 8)  # of 9 bins and 8 channels
    assert len(Histograms(np.array([3, 4]), 5, most=2).pool) == 2
    histograms = Histograms(np.array([3, 4]), 5, most=4)
    assert len(histograms.pool) == 3
    assert sorted(histograms.take(4)) == [0, 1, 2, 3]
    assert len(histograms.pool) == 4
    assert len(Histograms(np.array([30, 40]), 5, most=4).pool) == 1  # one, however large
