"""Trees chosen for what the whole tree is worth, against every split of every leaf tried on the rows themselves."""

import itertools
from collections import Counter

import numpy as np
import pytest

from distboost.algorithms.rebel import best_steps
from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.kernels import random
from distboost.runtime.base import Layout
from distboost.runtime.local import LocalRuntime
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.trees.whole_tree import grow_whole_tree
from distboost.weights.codes import CodeSides, CodeWeights, ColumnSums, one_against_all
from tests.weak.histogram_slots import assert_no_histogram_is_lost

N_BINS = np.array([6, 4, 1, 5])
NOISE = 2.0**-40


class Data:
    """Rows of random bins, some missing, in blocks of unequal size; labels that lean on two features."""

    def __init__(self, seed, n_classes, n=60, weighted=False):
        rng = np.random.default_rng([seed, n_classes])
        self.bins = np.column_stack([rng.integers(0, b + (rng.random() < 0.5), n) for b in N_BINS]).astype(
            np.uint8
        )
        signal = (
            self.bins[:, 0] + 2.0 * self.bins[:, 3] * (self.bins[:, 1] > 1) + rng.normal(scale=2.0, size=n)
        )
        self.labels = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes)).astype(
            np.int32
        )
        self.weights = rng.choice([0.0, 1.0, 3.0], n) if weighted else np.ones(n)
        self.n_classes = n_classes

    def rows(self, runtime):
        cuts = [0, 7, 7, 40, len(self.labels)]
        parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]
        calls = [((p.start, self.bins[p], self.labels[p], self.weights[p]),) for p in parts]
        return runtime.place(
            [BinnedSet(lambda parts: BinnedRows(*parts), calls, [len(parts[2]) for (parts,) in calls])],
            Layout(N_BINS, self.n_classes, self.n_classes, "float64"),
        )


class Leaf:
    def __init__(self, name, rows, sign, depth):
        self.name, self.rows, self.sign, self.depth = name, rows, sign, depth


class NaiveTree:
    """Level by level and from left to right, each leaf becomes the pair of leaves that lowers the loss most.

    L = 2 sum_k sqrt(right[k] wrong[k]) over the rows of all leaves: a leaf of + is right about P, of - about N.
    """

    def __init__(self, data, N, P, limits):
        self.bins, self.weights, self.N, self.P, self.limits = data.bins, data.weights, N, P, limits
        self.splits, self.events, self.n_names = [], Counter(), 1

    def sums(self, rows):
        """(N, P) of some rows: integers first, as the library adds them."""
        return np.array([self.N[rows].sum(axis=0), self.P[rows].sum(axis=0)]).astype(np.float64)

    def right_and_wrong(self, leaves):
        total = np.zeros((2, self.N.shape[1]))
        for leaf in leaves:
            total += self.sums(leaf.rows)[::-1] if leaf.sign > 0 else self.sums(leaf.rows)
        return total

    def loss(self, leaves):
        right, wrong = self.right_and_wrong(leaves)
        return 2.0 * float(np.sqrt(right * wrong).sum())

    def tried(self, others, rows):
        """The best pair of leaves in the place of `rows`: (loss, feature, bin, missing left, sign of the right one, left, right).

        Lowest feature, lowest threshold, missing left and + on the right first.
        """
        best = None
        for d in range(self.bins.shape[1]):
            b = self.bins[rows, d]
            missing = b == N_BINS[d]
            for threshold in np.unique(b[~missing]):
                for to_left in (True, False) if missing.any() else (None,):
                    left = (b <= threshold) & ~missing | missing & bool(to_left)
                    if min(left.sum(), (~left).sum()) < self.limits.min_samples_leaf:
                        continue
                    L, R = self.sums(rows[left]), self.sums(rows[~left])
                    for polarity in (1, -1):
                        minus, plus = (L, R[::-1]) if polarity > 0 else (L[::-1], R)
                        right, wrong = others + minus + plus
                        loss = 2.0 * float(np.sqrt(right * wrong).sum())
                        if best is None or loss < best[0]:
                            heavier = self.weights[rows[left]].sum() >= self.weights[rows[~left]].sum()
                            side = heavier if to_left is None else to_left
                            best = loss, d, int(threshold), bool(side), polarity, rows[left], rows[~left]
        return best

    def grow(self, rows):
        """The leaves, by name: those of the n-th split are called 2 n + 1 and 2 n + 2."""
        root = Leaf(0, rows, 0, 0)
        before = float(self.sums(rows).sum())
        found = self.tried(np.zeros((2, self.N.shape[1])), rows)
        if found is None or not found[0] < before - before * NOISE:
            return [Leaf(0, rows, 1, 0)]
        self.leaves = self.parted(root, found, 1)
        level = self.below(self.leaves)
        while level:
            following = []
            for leaf in sorted(level, key=lambda leaf: leaf.name):
                following += self.improved(leaf)
            level = following
        return sorted(self.leaves, key=lambda leaf: leaf.name)

    def parted(self, leaf, found, polarity):
        self.splits.append(found[1:4])
        self.events["split"] += 1
        self.events["other polarity"] += polarity < 0
        names = self.n_names, self.n_names + 1
        self.n_names += 2
        return [
            Leaf(name, rows, sign * polarity, leaf.depth + 1)
            for name, rows, sign in zip(names, found[5:], (-1, 1), strict=True)
        ]

    def below(self, leaves):
        return [leaf for leaf in leaves if leaf.depth < self.limits.max_depth]

    def improved(self, leaf):
        """The leaves that may be improved in the next level."""
        if len({other.sign for other in self.leaves}) == 1:
            self.events["constant"] += 1
            return []
        others = self.right_and_wrong([other for other in self.leaves if other is not leaf])
        loss = self.loss(self.leaves)
        leaf.sign *= -1
        flipped = self.loss(self.leaves)
        leaf.sign *= -1
        found = self.tried(others, leaf.rows)
        split = found[0] if found is not None and found[0] < loss - loss * NOISE else np.inf
        if flipped < loss and flipped <= split:
            leaf.sign *= -1
            leaf.depth += 1
            self.events["flip"] += 1
            return self.below([leaf])
        if split == np.inf:
            self.events["keep"] += 1
            return []
        children = self.parted(leaf, found, found[4])
        self.leaves = [other for other in self.leaves if other is not leaf] + children
        return self.below(children)


def sides_of(rows, weighting):
    """N and P of every row, for the latest tree."""
    statistic, C = CodeSides(weighting), weighting.n_columns
    unit = 2.0**20 * rows.counts[0].weighted
    out = np.concatenate([statistic.buffer(block, unit)[:, : 2 * C] for block in rows.shard.blocks])
    return out[:, :C], out[:, C:]


def rows_of(rows, leaf):
    """Global numbers of the rows in a leaf, those that were not drawn for the tree among them."""
    found = [(block.first, *block.leaf_arrays(np.array([leaf]))[3:5]) for block in rows.shard.blocks]
    return np.sort(np.concatenate([first + order[slice(*spans[leaf])] for first, order, spans in found]))


def grown(data, limits, rounds, n_threads=1):
    """(rows, tree, signs, N, P) of each round, after which the tree votes with half of its best steps."""
    runtime = LocalRuntime(n_threads)
    rows = data.rows(runtime)
    weighting = CodeWeights(one_against_all(data.n_classes))
    rows.begin(weighting)
    grow = TreeGrower(rows, limits)
    for _ in range(rounds):
        tree, signs = grow_whole_tree(grow, CodeSides(weighting))
        assert_no_histogram_is_lost(rows)
        sides, of_rows = np.split(tree.sums, 2, axis=1), sides_of(rows, weighting)
        rows.sums(ColumnSums(weighting, 0), tree.leaves)  # the last splits are made with the next question
        for leaf, *sums in zip(tree.leaves, *sides, strict=True):
            np.testing.assert_array_equal(sums, [x[rows_of(rows, leaf)].sum(axis=0) for x in of_rows])
        yield rows, tree, signs, *of_rows
        N, P = rows.histogram_scale.real(np.array(sides))
        positive = (signs > 0)[:, None]
        a = best_steps(np.where(positive, P, N).sum(axis=0), np.where(positive, N, P).sum(axis=0))
        rows.update([tree.step(np.outer(signs, a / 2))])
    runtime.close()


EVENTS = {"split", "other polarity", "flip", "keep", "constant"}


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("max_depth", [1, 2, 3, 5])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n_threads", [1, 2], ids=["in one call", "by questions"])
def test_trees_are_those_of_a_naive_grower(n_threads, n_classes, max_depth, weighted):
    events = Counter()
    for seed in range(5):
        data = Data(seed, n_classes, weighted=weighted)
        limits = GrowthLimits(max_depth=max_depth, min_samples_leaf=1 + 3 * (seed % 2))
        for rows, tree, signs, N, P in grown(data, limits, 4, n_threads):
            naive = NaiveTree(data, N, P, limits)
            leaves = naive.grow(np.flatnonzero(data.weights > 0))
            events += naive.events
            b = tree.binned
            found = [*zip(b.feature.tolist(), b.bin.tolist(), b.missing_left.tolist(), strict=True)]
            assert found == naive.splits
            expected = {tuple(leaf.rows): leaf.sign for leaf in leaves}
            assert {
                tuple(rows_of(rows, leaf)): s for leaf, s in zip(tree.leaves, signs, strict=True)
            } == expected
    assert events["split"] > 0
    if max_depth > 2 and n_classes == 5:  # there was everything that there can be
        assert events.keys() == EVENTS


def test_a_stump_votes_against_itself():
    """-1 on the left, +1 on the right: it has the least loss of all such stumps."""
    data = Data(1, 4)
    for rows, tree, signs, N, P in grown(data, GrowthLimits(max_depth=1), 3):
        assert signs.tolist() == [-1.0, 1.0]
        naive = NaiveTree(data, N, P, GrowthLimits(max_depth=1))
        least = naive.tried(np.zeros((2, 4)), np.arange(len(data.labels)))[0]
        left, right = (naive.sums(rows_of(rows, leaf)) for leaf in tree.leaves)
        assert 2 * np.sqrt((left + right[::-1]).prod(axis=0)).sum() == pytest.approx(least, rel=1e-14)


def test_gains_are_the_falls_of_the_loss():
    """They add up to what the tree lowers the loss by, unless a leaf's sign was turned round."""
    for seed in range(4):
        data = Data(seed, 3)
        for rows, tree, signs, N, P in grown(data, GrowthLimits(max_depth=3), 3):
            naive = NaiveTree(data, N, P, GrowthLimits(max_depth=3))
            naive.grow(np.arange(len(data.labels)))
            before = float(N.sum()) + float(P.sum())
            leaves = [Leaf(0, rows_of(rows, leaf), s, 0) for leaf, s in zip(tree.leaves, signs, strict=True)]
            scale = rows.histogram_scale
            fall = scale.real(before - naive.loss(leaves)) * np.exp(scale.shift)
            assert tree.gain.sum() <= fall * (1 + 1e-12)
            if not naive.events["flip"]:
                assert tree.gain.sum() == pytest.approx(fall, rel=1e-12)


@pytest.mark.parametrize("labels", [[0] * 10, [0, 1] * 5], ids=["one class", "alike"])
def test_a_tree_that_nothing_lowers_the_loss_with_is_the_constant(labels):
    """Rows that no feature parts; f = +1."""
    data = Data(0, 2, n=10)
    data.bins[:], data.labels[:], data.weights[:] = 0, labels, 1.0
    for _, tree, signs, _, _ in grown(data, GrowthLimits(max_depth=3), 1):
        assert tree.n_leaves == 1
        assert signs.tolist() == [1.0]


def test_drawn_rows_and_features_are_all_a_tree_sees():
    data = Data(2, 3, n=120)
    limits = GrowthLimits(max_depth=3, subsample=0.5, max_features=2, seed=1)
    for number, (rows, tree, _, N, P) in enumerate(grown(data, limits, 4), 1):
        drawn = random.uniforms(random.key(1, random.ROW_SUBSAMPLE, number), 0, 120) < 0.5
        seen = [block.first + block.order for block in rows.shard.blocks]
        assert set(np.concatenate(seen)) == {*np.flatnonzero(drawn)}
        unseen = [d for d in range(4) if d not in rows._features]
        narrowed = Data(2, 3, n=120)
        narrowed.bins[:, unseen] = 0
        naive = NaiveTree(narrowed, N, P, limits)
        naive.grow(np.flatnonzero(drawn))
        assert tree.binned.feature.tolist() == [split[0] for split in naive.splits]
