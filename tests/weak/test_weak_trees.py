"""Trees grown from histograms of rows held in blocks, against a grower that looks at the rows themselves."""

import itertools
import math

import numpy as np
import pytest

from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.kernels import random
from distboost.model import Ensemble
from distboost.runtime.local import LocalRuntime
from distboost.threads import Threads
from distboost.weak import gains
from distboost.weak.tree import GrowthLimits, TreeGrower
from distboost.weighting import MarginWeights, ResponseWeights

N_CLASSES = 3
EDGES = [np.arange(6) + 0.5, np.array([0.5]), np.empty(0), np.arange(9) + 0.5]
N_BINS = np.array([len(e) + 1 for e in EDGES])
KINDS = {"codeword": gains.CODEWORD, "direction": gains.DIRECTION, "least squares": gains.LEAST_SQUARES}
LIMITS = {
    "a stump": GrowthLimits(max_depth=1),
    "by level": GrowthLimits(max_depth=4),
    "by level, without limit": GrowthLimits(),
    "large leaves": GrowthLimits(max_depth=6, min_samples_leaf=17),
    "heavy leaves": GrowthLimits(max_depth=6, min_weight_fraction_leaf=0.07),
    "best first": GrowthLimits(max_leaf_nodes=9),
    "best first, limited depth": GrowthLimits(max_leaf_nodes=9, max_depth=3),
    "best first, without end": GrowthLimits(max_leaf_nodes=10_000),
    "some features": GrowthLimits(max_depth=4, max_features=2, seed=3),
    "some rows": GrowthLimits(max_leaf_nodes=8, subsample=0.6, seed=4),
}


class Data:
    """240 rows, some of weight 0, in blocks of unequal size."""

    def __init__(self, weighted):
        rng = np.random.default_rng(7)
        n = 240
        self.X = np.column_stack([rng.integers(0, b, n) for b in N_BINS]).astype(np.float64)
        self.X[rng.random(self.X.shape) < 0.08] = np.nan
        self.X[:, 1] = np.nan_to_num(self.X[:, 1])  # one feature has no missing value
        self.bins = np.where(np.isnan(self.X), N_BINS, self.X).astype(np.uint8)
        signal = np.nan_to_num(self.X[:, 0]) + np.nan_to_num(self.X[:, 3]) * self.X[:, 1] + rng.normal(size=n)
        self.labels = np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3])).astype(np.int32)
        self.weights = rng.choice([0.0, 1.0, 2.0, 5.0], n) if weighted else np.ones(n)

    def rows(self, runtime, cuts=(0, 1, 90, 90, 240)):
        parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]
        calls = [((p.start, self.bins[p], self.labels[p], self.weights[p]),) for p in parts]
        return runtime.place(
            [BinnedSet(lambda parts: BinnedRows(*parts), calls)], N_BINS, N_CLASSES, "float64"
        )


# The naive grower.


def value_of(kind, S):
    return max(S) if kind == gains.CODEWORD else math.sqrt(sum(float(x) ** 2 for x in S))


def gain_of(kind, L, R):
    """(gain, what it must exceed to be more than rounding)."""
    if kind == gains.LEAST_SQUARES:
        W_L, W_R = float(sum(L)), float(sum(R))
        if W_L == 0 or W_R == 0:
            return 0.0, 0.0
        c = [a / W_L - b / W_R for a, b in zip(map(float, L), map(float, R), strict=True)]
        return W_L / (W_L + W_R) * W_R * sum(x * x for x in c), 0.0
    own = value_of(kind, [a + b for a, b in zip(L, R, strict=True)])
    return value_of(kind, L) + value_of(kind, R) - own, own * 2.0**-40 if kind == gains.DIRECTION else 0.0


class NaiveTree:
    """Splits sets of rows; every split of a set is tried on the rows themselves."""

    def __init__(self, bins, S, weights, kind, limits, features, in_use):
        self.bins, self.S, self.weights, self.kind, self.limits = bins, S, weights, kind, limits
        self.features = features
        self.least_weight = limits.min_weight_fraction_leaf * weights[in_use].sum()

    def best_split(self, rows):
        best, found = 0.0, None
        for d in self.features:
            b = self.bins[rows, d]
            missing = b == N_BINS[d]
            for threshold in np.unique(b[~missing]):
                for missing_left in (True, False) if missing.any() else (None,):
                    left = (b <= threshold) | (missing & bool(missing_left))
                    left = left & ~missing if not missing_left else left
                    L, R = rows[left], rows[~left]
                    if min(len(L), len(R)) < self.limits.min_samples_leaf:
                        continue
                    if min(self.weights[L].sum(), self.weights[R].sum()) < self.least_weight:
                        continue
                    sums = [[int(x) for x in self.S[side].sum(axis=0)] for side in (L, R)]
                    gain, noise = gain_of(self.kind, *sums)
                    if gain > noise and gain > best:
                        side = missing_left
                        if side is None:
                            side = self.weights[L].sum() >= self.weights[R].sum()
                        best, found = gain, (int(d), int(threshold), bool(side), L, R)
        return best, found

    def grow(self, rows):
        """The leaves' rows and the splits, in the order they are made."""
        splits, leaves, best_first = [], [], self.limits.max_leaf_nodes is not None
        open_nodes = [(rows, 0, *self._tried(rows, 0))]
        while open_nodes:
            # Level by level: the oldest. Best first: the largest gain, of equal ones the oldest.
            number = max(range(len(open_nodes)), key=lambda m: (open_nodes[m][2], -m)) if best_first else 0
            rows, depth, _, split = open_nodes.pop(number)
            full = best_first and len(splits) + 1 == self.limits.max_leaf_nodes
            if split is None or full:
                leaves.append(rows)
                continue
            splits.append(split[:3])
            open_nodes += [(side, depth + 1, *self._tried(side, depth + 1)) for side in split[3:]]
        return splits, leaves

    def _tried(self, rows, depth):
        if self.limits.max_depth is not None and depth >= self.limits.max_depth:
            return 0.0, None
        return self.best_split(rows)


def statistics_of(rows, weighting):
    """Every row's statistic of the latest round, one column per class."""
    out = []
    for block in rows.shard.blocks:
        own = block.buffers["statistics"]
        if own.ndim == 1:
            wide = np.zeros((block.n_rows, N_CLASSES), np.int64)
            wide[np.arange(block.n_rows), block.labels] = own
            own = wide
        out.append(own[:, :N_CLASSES])
    return np.concatenate(out).astype(np.int64)


def drawn(limits, round, n):
    u = random.uniforms(random.key(limits.seed, random.ROW_SUBSAMPLE, round), 0, n)
    return u < limits.subsample


def leaves_of(rows, leaves):
    """Global numbers of the rows in each leaf."""
    return [
        np.concatenate([block.first + block.order[slice(*block.spans[leaf])] for block in rows.shard.blocks])
        for leaf in leaves
    ]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_trees_are_those_of_a_naive_grower(kind, limits, weighted):
    data = Data(weighted)
    weighting = ResponseWeights(0.5) if kind == gains.LEAST_SQUARES else MarginWeights(0.5)
    rng = np.random.default_rng(0)
    runtime = LocalRuntime(2)
    rows = data.rows(runtime)
    rows.begin(weighting)
    grow = TreeGrower(rows, limits, N_CLASSES)
    for round in (1, 2):  # the second from scores that differ from row to row
        tree = grow(kind)
        values = rng.normal(scale=0.5, size=(tree.n_leaves, N_CLASSES))
        in_use = (data.weights > 0) & drawn(limits, round, len(data.labels))
        naive = NaiveTree(
            data.bins, statistics_of(rows, weighting), data.weights, kind, limits, grow.features, in_use
        )
        splits, leaves = naive.grow(np.flatnonzero(in_use))
        binned = tree.binned
        found = [
            *zip(binned.feature.tolist(), binned.bin.tolist(), binned.missing_left.tolist(), strict=True)
        ]
        assert len(found) > 0
        assert found == splits
        rows.update(binned, tree.leaves, values)
        assert sorted(map(tuple, leaves)) == sorted(tuple(sorted(x)) for x in leaves_of(rows, tree.leaves))
    runtime.close()


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_prediction_from_raw_values_is_that_from_bins(limits):
    """Also of rows left out of a round, of rows of weight 0, and of missing values."""
    data = Data(weighted=True)
    runtime = LocalRuntime(1)
    rows = data.rows(runtime)
    rows.begin(MarginWeights(0.5))
    grow = TreeGrower(rows, limits, N_CLASSES)
    ensemble = Ensemble(len(N_BINS), N_CLASSES)
    rng = np.random.default_rng(1)
    for _ in range(4):
        tree = grow(gains.DIRECTION)
        values = rng.normal(size=(tree.n_leaves, N_CLASSES))
        rows.update(tree.binned, tree.leaves, values)
        ensemble.append(tree.binned, tree.gain, values, EDGES)
    present = data.weights > 0
    F = np.concatenate([block.scores for block in rows.shard.blocks])
    with Threads(2) as threads:
        np.testing.assert_array_equal(ensemble.scores(data.X, threads)[present], F[present])

    # Replayed by bins from the ensemble's thresholds, the rows have the same scores again.
    again = data.rows(runtime)
    again.begin(MarginWeights(0.5))
    for number in range(len(ensemble)):
        again.replay(*ensemble.binned(number, EDGES))
    G = np.concatenate([block.scores for block in again.shard.blocks])
    np.testing.assert_array_equal(G[present], F[present])
    runtime.close()


@pytest.mark.parametrize("cuts", [(0, 240), (0, 80, 160, 240), (0, *range(1, 240, 17), 240)])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_blocks_and_threads_change_nothing(cuts, n_threads):
    data, trees = Data(weighted=True), []
    for layout, threads in (((0, 240), 1), (cuts, n_threads)):
        runtime = LocalRuntime(threads)
        rows = data.rows(runtime, layout)
        rows.begin(MarginWeights(0.5))
        grow = TreeGrower(rows, GrowthLimits(max_leaf_nodes=12), N_CLASSES)
        tree = grow(gains.DIRECTION)
        trees.append((*tree.binned, tree.gain, tree.leaves))
        runtime.close()
    for ours, theirs in zip(*trees, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_histogram_slots_are_all_given_back():
    data = Data(weighted=False)
    runtime = LocalRuntime(1)
    rows = data.rows(runtime)
    rows.begin(MarginWeights(0.5))
    for limits in LIMITS.values():
        grow = TreeGrower(rows, limits, N_CLASSES)
        for _ in range(3):
            grow(gains.DIRECTION)
            assert sorted(grow.histograms._free) == list(range(len(grow.histograms.pool)))
    runtime.close()
