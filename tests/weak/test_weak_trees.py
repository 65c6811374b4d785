"""Trees grown from histograms of rows held in blocks, against a grower that looks at the rows themselves."""

import itertools
import math

import numpy as np
import pytest

from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.kernels import gains, random
from distboost.model.trees import TreeEnsemble
from distboost.rows.sums import LEAF_WEIGHT_FACTOR
from distboost.runtime.base import Layout
from distboost.runtime.local import LocalRuntime
from distboost.threads import Threads
from distboost.trees import grower
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.trees.whole_tree import grow_whole_tree
from distboost.weights.codes import (
    CodeSides,
    CodeWeights,
    ColumnSides,
    ColumnSums,
    one_against_all,
)
from distboost.weights.margin import MarginWeights, ProjectedResiduals, Residuals
from distboost.weights.response import ClassWeights, ResponseWeights, add_windows
from tests.weak.histogram_slots import assert_no_histogram_is_lost

pytestmark = pytest.mark.pairwise

N_CLASSES = 3
EDGES = [np.arange(6) + 0.5, np.array([0.5]), np.empty(0), np.arange(9) + 0.5]
N_BINS = np.array([len(e) + 1 for e in EDGES])
MARGINS, CODES = MarginWeights(0.5), CodeWeights(one_against_all(N_CLASSES))
KINDS = {
    "codeword": (gains.CODEWORD, Residuals(MARGINS, wide=True)),
    "codeword, of classes": (gains.CODEWORD, ClassWeights(ResponseWeights(0.5))),
    "direction": (gains.DIRECTION, Residuals(MARGINS)),
    "one direction": (gains.DIRECTION, ProjectedResiduals(MARGINS, np.array([1.0, -0.5, 0.0]))),
    "least squares": (gains.LEAST_SQUARES, ClassWeights(ResponseWeights(0.5))),
    "votes": (gains.VOTES, CodeSides(CODES)),
    "votes of a column": (gains.VOTES, ColumnSides(CODES, 0)),
    "real votes": (gains.REAL_VOTES, CodeSides(CODES)),
}
# What a stump that is -1 on one side and +1 on the other is chosen by.
STUMPS = {
    "class stump": (gains.CLASS_STUMP, Residuals(MARGINS, wide=True)),
    "direction stump": (gains.DIRECTION_STUMP, Residuals(MARGINS)),
    "votes stump": (gains.VOTES_STUMP, CodeSides(CODES)),
    "votes stump of a column": (gains.VOTES_STUMP, ColumnSides(CODES, 2)),
}
LIMITS = {
    "a stump": GrowthLimits(max_depth=1),
    "by level": GrowthLimits(max_depth=4),
    "by level, without limit": GrowthLimits(),
    "large leaves": GrowthLimits(max_depth=6, min_samples_leaf=17),
    "heavy leaves": GrowthLimits(max_depth=6, min_weight_fraction_leaf=0.07),
    "best first": GrowthLimits(max_leaf_nodes=9),
    "best first, limited depth": GrowthLimits(max_leaf_nodes=9, max_depth=3),
    "best first, without end": GrowthLimits(max_leaf_nodes=10_000),
    "some features": GrowthLimits(max_depth=4, max_features=2, seed=9),
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
            [BinnedSet(lambda parts: BinnedRows(*parts), calls, [len(parts[2]) for (parts,) in calls])],
            Layout(N_BINS, N_CLASSES, N_CLASSES, "float64"),
        )


# The naive grower.


def halves(S):
    """(N, P) of each class, from sums of both."""
    return zip(S[: len(S) // 2], S[len(S) // 2 :], strict=True)


def value_of(kind, S):
    if kind == gains.CODEWORD:
        return max(S)
    if kind == gains.DIRECTION:
        return math.sqrt(sum(float(x) ** 2 for x in S))
    if kind == gains.VOTES:
        return sum(abs(P - N) for N, P in halves(S))
    return -2 * sum(math.sqrt(float(N) * float(P)) for N, P in halves(S))  # real votes


def on_grid(x):
    return round(x / gains.GRID) * gains.GRID


def gain_of(kind, L, R):
    """(gain, what it must exceed to be more than rounding)."""
    apart = [b - a for a, b in zip(L, R, strict=True)]
    if kind == gains.LEAST_SQUARES:
        W_L, W_R = float(sum(L)), float(sum(R))
        if W_L == 0 or W_R == 0:
            return 0.0, 0.0
        c = [a / W_L - b / W_R for a, b in zip(map(float, L), map(float, R), strict=True)]
        return W_L / (W_L + W_R) * W_R * sum(x * x for x in c), 0.0
    if kind == gains.CLASS_STUMP:
        return on_grid(max(map(abs, apart))), 0.0
    if kind == gains.DIRECTION_STUMP:
        return math.sqrt(sum(float(x) ** 2 for x in apart)), 0.0
    if kind == gains.VOTES_STUMP:
        return on_grid(sum(abs(P - N) for N, P in halves(apart))), 0.0
    own = value_of(kind, [a + b for a, b in zip(L, R, strict=True)])
    both = value_of(kind, L) + value_of(kind, R)
    if kind in (gains.CODEWORD, gains.VOTES):
        return on_grid(both) - on_grid(own), 0.0
    return both - own, abs(own) * 2.0**-40


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


def statistics_of(rows, statistic):
    """Every row's statistic of the latest tree, one column per sum."""
    n_sums, out = statistic.n_sums(N_CLASSES), []
    for block in rows.shard.blocks:
        if isinstance(statistic, ClassWeights | ColumnSides):
            wide = np.zeros((block.n_rows, n_sums), np.int64)
            column = block.labels if isinstance(statistic, ClassWeights) else block.buffers["sides"]
            wide[np.arange(block.n_rows), column] = block.buffers["class statistics"]
            out.append(wide)
        else:
            out.append(statistic.buffer(block, LEAF_WEIGHT_FACTOR * rows.counts[0].weighted)[:, :n_sums])
    return np.concatenate(out).astype(np.int64)


def drawn(limits, round, n):
    u = random.uniforms(random.key(limits.seed, random.ROW_SUBSAMPLE, round), 0, n)
    return u < limits.subsample


def leaves_of(rows, leaves):
    """Global numbers of the rows in each leaf, those that were not drawn for the tree among them."""
    found = [(block.first, *block.leaf_arrays(leaves)[3:5]) for block in rows.shard.blocks]
    return [
        np.concatenate([first + order[slice(*spans[leaf])] for first, order, spans in found])
        for leaf in leaves
    ]


def assert_sums(rows, tree, statistic, data):
    """The tree, the last to part the rows, knows its leaves' sums and how much they hold."""
    S = statistics_of(rows, statistic)
    for leaf, sums, mass in zip(leaves_of(rows, tree.leaves), tree.sums, tree.mass, strict=True):
        np.testing.assert_array_equal(sums, S[leaf].sum(axis=0))
        assert mass == max(len(leaf), math.ceil(data.weights[leaf].sum()))


def splits_of(tree):
    binned = tree.binned
    return [*zip(binned.feature.tolist(), binned.bin.tolist(), binned.missing_left.tolist(), strict=True)]


def assert_grows(kind, statistic, limits, weighted):
    for n_threads in (1, 2):  # in one call, and by questions about nodes
        assert_grows_with(n_threads, kind, statistic, limits, weighted)


def assert_grows_with(n_threads, kind, statistic, limits, weighted):
    data = Data(weighted)
    rng = np.random.default_rng(0)
    runtime = LocalRuntime(n_threads)
    rows = data.rows(runtime)
    rows.begin(statistic.weighting)
    grow = TreeGrower(rows, limits)
    for round in (1, 2):  # the second from scores that differ from row to row
        tree = grow(statistic, kind)
        values = rng.normal(scale=0.5, size=(tree.n_leaves, N_CLASSES))
        present = data.weights > 0
        in_use = present & drawn(limits, round, len(data.labels))
        naive = NaiveTree(
            data.bins, statistics_of(rows, statistic), data.weights, kind, limits, grow.features, in_use
        )
        splits, leaves = naive.grow(np.flatnonzero(in_use))
        assert len(splits) > 0
        assert splits_of(tree) == splits
        assert tree.weight == pytest.approx(data.weights.sum(), rel=1e-5)
        rows.update([tree.step(values)])
        found = leaves_of(rows, tree.leaves)
        assert sorted(map(tuple, leaves)) == sorted(tuple(sorted(leaf[in_use[leaf]])) for leaf in found)
        np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.flatnonzero(present))
        assert_sums(rows, tree, statistic, data)
    runtime.close()


WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])


@WEIGHTED
@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize(("kind", "statistic"), KINDS.values(), ids=KINDS)
def test_trees_are_those_of_a_naive_grower(kind, statistic, limits, weighted):
    assert_grows(kind, statistic, limits, weighted)


@pytest.mark.parametrize(
    "limits", [GrowthLimits(max_depth=4), GrowthLimits(max_leaf_nodes=9)], ids=["level", "best"]
)
def test_a_tree_that_outgrows_its_memory_keeps_its_nodes(limits, monkeypatch):
    monkeypatch.setattr(grower, "FEW_NODES", 1)
    assert_grows(*next(iter(KINDS.values())), limits, weighted=True)


@WEIGHTED
@pytest.mark.parametrize("name", ["a stump", "one of large sides", "one of few features"])
@pytest.mark.parametrize(("kind", "statistic"), STUMPS.values(), ids=STUMPS)
def test_stumps_are_those_of_a_naive_grower(kind, statistic, name, weighted):
    limits = {
        "a stump": GrowthLimits(max_depth=1),
        "one of large sides": GrowthLimits(max_depth=1, min_samples_leaf=60, min_weight_fraction_leaf=0.2),
        "one of few features": GrowthLimits(max_depth=1, max_features=2, subsample=0.5, seed=5),
    }[name]
    assert_grows(kind, statistic, limits, weighted)


@WEIGHTED
@pytest.mark.parametrize("limits", [GrowthLimits(max_depth=3), GrowthLimits(max_leaf_nodes=7, subsample=0.7)])
def test_several_trees_in_one_round(limits, weighted):
    """Of different statistics, one after another: each is what it would be alone; all are added at once."""
    data, runtime, rng = Data(weighted), LocalRuntime(2), np.random.default_rng(3)
    several = [
        (ColumnSides(CODES, 0), gains.VOTES, ColumnSums(CODES, 0)),
        (ColumnSides(CODES, 1), gains.LEAST_SQUARES, ColumnSums(CODES, 1)),
        (CodeSides(CODES), gains.REAL_VOTES, ColumnSums(CODES, 1)),
        (ColumnSides(CODES, 2), gains.VOTES_STUMP, ColumnSums(CODES, 2)),
    ]
    together_rows = data.rows(runtime)
    together_rows.begin(CODES)
    grow = TreeGrower(together_rows, limits)
    expected = np.zeros((len(data.labels), N_CLASSES))
    for _ in range(2):
        found = []
        for statistic, kind, reduction in several:
            depth = 1 if kind == gains.VOTES_STUMP else None
            tree = grow(statistic, kind, depth)
            alone = data.rows(runtime)  # with the same scores, and one tree only
            alone.begin(CODES)
            alone.round, alone._shifts = together_rows.round, list(together_rows._shifts)
            alone._bound = together_rows._bound
            for mine, theirs in zip(alone.shard.blocks, together_rows.shard.blocks, strict=True):
                mine.scores[:] = theirs.scores
            other = TreeGrower(alone, limits)(statistic, kind, depth)
            for ours, theirs in zip((*tree.binned, *tree[1:]), (*other.binned, *other[1:]), strict=True):
                np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_array_equal(
                together_rows.sums(reduction, tree.leaves), alone.sums(reduction, other.leaves)
            )
            assert tree.n_leaves > 1
            assert depth is None or tree.n_leaves == 2
            found.append(tree)
        values = [rng.normal(size=(tree.n_leaves, N_CLASSES)) for tree in found]
        steps = [tree.step(v, partitioned=tree is found[-1]) for tree, v in zip(found, values, strict=True)]
        together_rows.update(steps)
        for tree, v in zip(found, values, strict=True):
            every = np.arange(len(data.labels), dtype=np.int32)
            expected += v[tree.binned.leaves_of(data.bins, N_BINS, every)]
        F = np.concatenate([block.scores for block in together_rows.shard.blocks])
        np.testing.assert_array_equal(F[data.weights > 0], expected[data.weights > 0])
    runtime.close()


def test_sums_of_one_column_or_of_all_are_the_same():
    data, runtime = Data(weighted=True), LocalRuntime(1)
    rows = data.rows(runtime)
    rows.begin(CODES)
    tree = TreeGrower(rows, GrowthLimits(max_depth=3))(CodeSides(CODES), gains.VOTES)
    N, P = np.split(rows.histogram_scale.real(tree.sums), 2, axis=1)
    for c in range(N_CLASSES):
        found = add_windows(rows.sums(ColumnSums(CODES, c), tree.leaves))
        np.testing.assert_allclose(found, np.column_stack([N[:, c], P[:, c]]), rtol=1e-12)
    runtime.close()


@WEIGHTED
@pytest.mark.parametrize("limits", [GrowthLimits(max_depth=0), GrowthLimits(min_samples_leaf=150)])
@pytest.mark.parametrize("kind", [gains.CODEWORD, gains.WHOLE_TREE], ids=["tree", "whole tree"])
def test_a_root_knows_its_sums(kind, limits, weighted):
    """Where it may not be split, and where nothing is gained by it."""
    data, runtime = Data(weighted), LocalRuntime(1)
    rows = data.rows(runtime)
    statistic = CodeSides(CODES) if kind == gains.WHOLE_TREE else Residuals(MARGINS, wide=True)
    rows.begin(statistic.weighting)
    grow = TreeGrower(rows, limits)
    tree = grow_whole_tree(grow, statistic)[0] if kind == gains.WHOLE_TREE else grow(statistic, kind)
    assert tree.leaves.tolist() == [0]
    assert_no_histogram_is_lost(rows)
    assert tree.weight == data.weights.sum()
    assert_sums(rows, tree, statistic, data)
    runtime.close()


@pytest.mark.parametrize("per_round", [1, 3])
@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_prediction_from_raw_values_is_that_from_bins(limits, per_round):
    """Also of rows left out of a round, of rows of weight 0, and of missing values."""
    data = Data(weighted=True)
    runtime = LocalRuntime(1)
    rows = data.rows(runtime)
    rows.begin(MARGINS)
    grow = TreeGrower(rows, limits)
    ensemble = TreeEnsemble(len(N_BINS), N_CLASSES, per_round)
    rng = np.random.default_rng(1)
    for _ in range(4):
        trees = [grow(Residuals(MARGINS), gains.DIRECTION) for _ in range(per_round)]
        values = [rng.normal(size=(tree.n_leaves, N_CLASSES)) for tree in trees]
        rows.update([tree.step(v, tree is trees[-1]) for tree, v in zip(trees, values, strict=True)])
        ensemble.append(trees, values, EDGES)
    assert len(ensemble) == 4
    present = data.weights > 0
    F = np.concatenate([block.scores for block in rows.shard.blocks])
    with Threads(2) as threads:
        np.testing.assert_array_equal(ensemble.scores(data.X, threads)[present], F[present])

    # Replayed by bins from the ensemble's thresholds, the rows have the same scores again.
    again = data.rows(runtime)
    again.begin(MARGINS)
    for number in range(len(ensemble)):
        again.replay(ensemble.steps([number], EDGES))
    G = np.concatenate([block.scores for block in again.shard.blocks])
    np.testing.assert_array_equal(G[present], F[present])
    # All at once and from nothing, too.
    again.update(ensemble.steps(range(4), EDGES), from_zero=True)
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
        rows.begin(MARGINS)
        grow = TreeGrower(rows, GrowthLimits(max_leaf_nodes=12))
        tree = grow(Residuals(MARGINS), gains.DIRECTION)
        trees.append((*tree.binned, tree.gain, tree.leaves))
        runtime.close()
    for ours, theirs in zip(*trees, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_histogram_slots_are_all_given_back():
    data = Data(weighted=False)
    runtime = LocalRuntime(2)  # one thread would grow trees in one call
    rows = data.rows(runtime)
    rows.begin(MARGINS)
    for limits in LIMITS.values():
        grow = TreeGrower(rows, limits)
        for _ in range(3):
            grow(Residuals(MARGINS), gains.DIRECTION)
            assert_no_histogram_is_lost(rows)
    runtime.close()
