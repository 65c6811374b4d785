"""The best split of categories: the order against loops, the split against every set there is."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distboost.kernels import gains
from distboost.kernels.categories import ITERATIONS, SET_WORDS
from distboost.splits.tree_histograms import SearchRules, search
from distboost.threads import Threads
from tests.weak.naive_splits import (
    KINDS,
    PAIR,
    context_of,
    histogram_of,
    in_slots,
    naive_best_split,
    split_of,
    statistics_of,
)

TEN = 10


def dot(a, b):
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def naive_pool(sums, weights, prior=TEN):
    """The mean that the means of bins are shrunk towards, for each sum."""
    given = [prior / (float(w) + prior) for w in weights]
    lent = 0.0
    for g, w in zip(given, weights, strict=True):
        lent += g * float(w)
    pool = [0.0] * len(sums[0])
    for g, S in zip(given, sums, strict=True):
        pool = [p + g * float(x) for p, x in zip(pool, S, strict=True)]
    return [p / max(lent, 1.0) for p in pool]


def naive_shrunk(S, w, pool, prior=TEN):
    """The sums of a bin after it has exchanged some weight with the pool."""
    return [(float(x) + prior * p) * (float(w) / (float(w) + prior)) for x, p in zip(S, pool, strict=True)]


def whole_shrunk(sums, weights):
    """The same of all bins in their order, as whole numbers with the same total."""
    pool = naive_pool(sums, weights)
    found = [[math.floor(x) for x in naive_shrunk(S, w, pool)] for S, w in zip(sums, weights, strict=True)]
    for c in range(len(pool)):
        found[-1][c] = sum(int(S[c]) for S in sums) - sum(S[c] for S in found[:-1])
    return found


def naive_projection(sums, weights):
    """The projections of the shrunk means of some bins on their leading direction, in the order of the kernel's arithmetic."""
    total = 0.0
    for w in weights:
        total += float(w)
    mean = [sum(float(S[c]) for S in sums) / max(total, 1.0) for c in range(len(sums[0]))]
    pool = naive_pool(sums, weights)
    D = [
        [x / max(float(w), 1.0) - m for x, m in zip(naive_shrunk(S, w, pool), mean, strict=True)]
        for S, w in zip(sums, weights, strict=True)
    ]
    if len(mean) == 1:
        return [d[0] for d in D]
    shares = [float(w) / max(total, 1.0) for w in weights]
    heavy = [share * dot(d, d) for share, d in zip(shares, D, strict=True)]
    if not max(heavy) > 0:
        return [0.0] * len(D)
    first = D[heavy.index(max(heavy))]
    v = [x / math.sqrt(dot(first, first)) for x in first]
    for _ in range(ITERATIONS):
        following = [0.0] * len(v)
        for share, d in zip(shares, D, strict=True):
            weight = share * dot(d, v)
            following = [f + weight * x for f, x in zip(following, d, strict=True)]
        length = dot(following, following)
        if not 0 < length < math.inf:
            break
        v = [f / math.sqrt(length) for f in following]
    return [dot(d, v) for d in D]


def naive_order(bins, n_sums, weight, least=TEN):
    """The bins with enough rows, in the order in which they are scanned."""
    known = [j for j, S in enumerate(bins) if S[n_sums] >= TEN or S[weight] >= least]
    if not known:
        return known
    along = naive_projection([bins[j][:n_sums] for j in known], [bins[j][weight] for j in known])
    return [j for _, j in sorted(zip(along, known, strict=True))]


def ordered(node, offsets, categorical, n_sums, weight):
    """The node's histogram with the categories in order and shrunk, and the unknown ones among the missing values; the orders."""
    out, orders = node.copy(), {}
    for d in np.flatnonzero(categorical):
        own = slice(offsets[d], offsets[d + 1])
        bins = node[own][:-1]
        orders[d] = naive_order(bins.tolist(), n_sums, weight)
        rest = np.setdiff1d(np.arange(len(bins)), orders[d])
        out[own] = 0
        out[own][: len(orders[d])] = bins[orders[d]]
        if orders[d]:
            known = bins[orders[d]].tolist()
            shrunk = whole_shrunk([S[:n_sums] for S in known], [S[weight] for S in known])
            out[own][: len(known), :n_sums] = shrunk
        out[own][-1] = node[own][-1] + bins[rest].sum(axis=0)
    return out, orders


def set_of(words):
    return {b for b in range(256) if int(words[b // 64]) >> b % 64 & 1}


@KINDS
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@settings(max_examples=30)  # of each of ten gains, with many nodes
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 300),
    n_classes=st.integers(2, 9),
    largest=st.sampled_from([2, 4, 2**27]),
)
def test_best_split_of_categories(kind, weighted, seed, n, n_classes, largest):
    rng = np.random.default_rng(seed)
    n_bins = np.array([5, 12, 1, 8, 30])
    categorical = rng.random(5) < 0.6
    bins = np.column_stack([rng.integers(0, b + rng.integers(0, 2), n) for b in n_bins])
    statistics = statistics_of(rng, n, n_classes, kind, weighted, largest)
    n_sums = statistics.shape[1] - 1 - weighted
    nodes = [
        histogram_of(statistics[rows], bins[rows], n_bins) for rows in (rng.random(n) < 0.5, slice(None))
    ]
    context = context_of(rng, kind, n_sums, largest, weighted)
    histograms, slots = in_slots(nodes, n_bins)
    with Threads(1) as threads:
        found = search(
            histograms,
            slots,
            [],
            features=np.arange(5),
            rules=SearchRules(kind, n_sums, weighted=weighted, categorical=categorical, n_words=SET_WORDS),
            threads=threads,
            context=context,
        )
    for m, node in enumerate(nodes):
        table, orders = ordered(node, histograms.offsets, categorical, n_sums, n_sums + weighted)
        expected = naive_best_split(
            table, histograms.offsets, np.arange(5), n_sums, kind, 1, 0, weighted, context
        )
        split = split_of(found, m)
        if expected.gain > 0 and expected.feature in orders:
            order, cut = orders[expected.feature], expected.bin + 1
            rest = set(range(256)) - {*order} if expected.missing_left else set()
            assert set_of(found.sets[m]) == {*order[:cut]} | rest
            expected = expected._replace(bin=-1)
        elif found.sets.shape[1]:
            assert not set_of(found.sets[m])
        assert split == expected
        assert_left_sums(found, m, node, histograms.offsets)


def assert_left_sums(found, m, node, offsets):
    """They are those of the rows that the split sends left."""
    d = int(found.feature[m])
    bins = node[offsets[d] : offsets[d + 1]]
    if not found.gain[m] > 0:
        return
    left = set_of(found.sets[m]) if found.bin[m] < 0 else {*range(found.bin[m] + 1)}
    rows = [b in left for b in range(len(bins) - 1)] + [bool(found.missing_left[m])]
    np.testing.assert_array_equal(found.left[m], bins[rows].sum(axis=0))


def shrunk_in_order(bins, n_sums):
    """The shrunk sums of bins that all have enough rows."""
    order = naive_order(bins.tolist(), n_sums, n_sums)
    found = np.empty((len(bins), n_sums), np.int64)
    found[order] = whole_shrunk(bins[order, :n_sums].tolist(), bins[order, n_sums].tolist())
    return found


EXACT = {
    "one number, newton": (gains.NEWTON, 1),
    "one number, direction": (gains.DIRECTION, 1),
    "two classes, newton": (gains.NEWTON, 2),
    "two classes, direction": (gains.DIRECTION, 2),
    "two classes, codeword": (gains.CODEWORD, 2),
    "two classes, least squares": (gains.LEAST_SQUARES, 2),
}


@pytest.mark.parametrize(("kind", "n_sums"), EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("seed", range(5))
def test_of_two_classes_no_set_is_better(kind, n_sums, seed):
    """Fisher (1958): the best of all sets of categories is the first few in the order of their means, all of them shrunk."""
    rng = np.random.default_rng(seed)
    bins = np.zeros((8, n_sums + 1), np.int64)
    bins[:7, n_sums] = rows = rng.integers(TEN, 40, 7)
    if kind == gains.LEAST_SQUARES:
        bins[:7, 0] = rng.integers(0, rows + 1)
        bins[:7, 1] = rows - bins[:7, 0]
    else:
        bins[:7, 0] = rng.integers(-(2**30), 2**30, 7)
        bins[:7, n_sums - 1] = bins[:7, 0] * (1 if n_sums == 1 else -1)
    context = gains.context_of((0.0,), n_sums, 1.0) if kind == gains.NEWTON else gains.NO_CONTEXT
    histograms, slots = in_slots([bins], np.array([7]))
    with Threads(1) as threads:
        rules = SearchRules(kind, n_sums, categorical=np.ones(1, bool), n_words=SET_WORDS)
        found = search(
            histograms,
            slots,
            [],
            features=np.zeros(1, np.int64),
            rules=rules,
            threads=threads,
            context=context,
        )

    bins[:7, :n_sums] = shrunk_in_order(bins[:7], n_sums)

    def value(left):
        L = [int(x) for x in bins[list(left)].sum(axis=0)]
        R = [int(x) for x in bins.sum(axis=0) - L]
        n = n_sums + (kind == gains.NEWTON)
        return PAIR[kind](L[:n], R[:n], context)

    every = itertools.chain.from_iterable(itertools.combinations(range(7), size) for size in range(1, 7))
    best = max(map(value, every))
    assert found.value[0] == pytest.approx(best, rel=1e-12)
    assert value(set_of(found.sets[0]) & set(range(7))) == pytest.approx(best, rel=1e-12)
