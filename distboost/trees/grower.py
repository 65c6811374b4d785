"""Grow trees from best splits. A stump is a tree of depth 1."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from distboost.kernels import random
from distboost.kernels.categories import set_words
from distboost.kernels.gains import Gain
from distboost.rows.messages import (
    BestSplits,
    GrownNodes,
    Root,
    Rows,
    Siblings,
    SplitRules,
    Splits,
    Subsample,
)
from distboost.rows.sums import LEAF_WEIGHT_FACTOR, Statistic
from distboost.trees.tree import BinnedTree, Cover, TreeStep, numbered
from distboost.weights.sketch import compressed

ROOT, NO_NODES = np.zeros(1, np.int64), np.zeros(0, np.int64)
LARGEST_GAIN = np.finfo(np.float64).max
FEW_NODES = 128  # for which a tree has memory from the start


@dataclass(frozen=True)
class GrowthLimits:
    """The limits of a tree's size, and its choice of rows and features.

    With `max_leaf_nodes`, a tree grows best first (the oldest of equal leaves first), else level by level. None: no limit.
    """

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    subsample: float = 1.0
    max_features: float | int | str = 1.0
    sketch: int | None = None
    statistic_bits: int | None = None
    seed: int = 0
    sampling: str = "uniform"  # or "weight": see `rows.sampling`

    @property
    def samples(self) -> bool:
        """Whether rows are drawn for a tree: the histograms then sum some rows, and the leaves have all."""
        return self.subsample < 1.0

    @property
    def by_weight(self) -> bool:
        """Whether rows are drawn by weight."""
        return self.samples and self.sampling == "weight"

    @property
    def same_every_round(self) -> bool:
        """Whether rounds draw nothing. If so, a round without a split is followed by rounds without one."""
        return not self.draws_rows and self.max_features == 1.0 and self.sketch is None

    @property
    def draws_rows(self) -> bool:
        """Whether trees depend on draws by the numbers of rows."""
        return self.samples or self.statistic_bits is not None

    def most_features(self, n_features: int) -> int:
        """Return how many features a round draws, as scikit-learn's trees do; more than `n_features` mean all."""
        wanted = self.max_features
        if isinstance(wanted, Integral):
            return int(wanted)
        if isinstance(wanted, str):
            return max(1, int({"sqrt": math.sqrt, "log2": math.log2}[wanted](n_features)))
        return max(1, int(wanted * n_features))

    def compressed(self, statistic: Statistic, round: int) -> Statistic:
        """Return what the histograms of a round sum instead of the statistic."""
        return compressed(statistic, self.sketch, self.statistic_bits, self.seed, round)

    def most_leaves(self, n_rows: int) -> int:
        """Return the largest number of leaves of a tree on `n_rows` rows."""
        most = max(n_rows // self.min_samples_leaf, 1)
        if self.max_depth is not None:
            most = min(most, 2 ** min(self.max_depth, 40))
        return most if self.max_leaf_nodes is None else min(most, self.max_leaf_nodes)

    def most_histograms(self, n_rows: int) -> int:
        """Return the largest number of nodes of a tree on `n_rows` rows that have histograms at the same time."""
        # Of two children, one may be split, for which it needs the rows of two leaves; the other has those of one leaf at least.
        most = max(2 * n_rows // (3 * self.min_samples_leaf), 1)
        if self.max_depth is not None:
            most = min(most, 2 ** min(max(self.max_depth - 1, 0), 40))
        if self.max_leaf_nodes is not None:
            most = min(most, max(self.max_leaf_nodes - 1, 1))
        return most


class Tree(NamedTuple):
    """A grown tree: inner nodes in the order in which they were split, and the partition's node of each leaf."""

    binned: BinnedTree
    gain: np.ndarray  # (inner nodes,) float64, in the units of the row weights
    leaves: np.ndarray  # (n_leaves,) int64: the partition's nodes
    weight: float  # the total weight of all rows in the tree
    # (n_leaves, n_sums) int64: the statistic's sums, in units of the histograms. If rows are drawn by weight and the algorithm
    # does not read the sums (see `TreeGrower`), they are estimates, from the histograms.
    sums: np.ndarray
    mass: np.ndarray  # (n_leaves,) int64: rows, or their weight if that is more (rounded up)
    cover: Cover
    sign: np.ndarray  # (n_leaves,) int64: see `kernels.signed_leaves`; 0 if leaves have none

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return len(self.leaves)

    @property
    def depth(self) -> int:
        """The largest number of splits between the root and a leaf."""
        return self.binned.depth

    def step(self, values: np.ndarray, partitioned: bool = True) -> TreeStep:
        """Return the tree with its leaves' values as a step; `partitioned`: whether no other tree was grown after it."""
        return TreeStep(self.binned, values, self.leaves if partitioned else None)


class GrowingNodes:
    """The nodes of a growing tree, by number. Their memory grows with the tree.

    Attributes
    ----------
    depth : ndarray of shape (n,), int64
    is_summed : ndarray of shape (n,), bool
        Whether `Rows` has the node's histogram.
    child : ndarray of shape (n,), int64
        The left child of a node that was split. The right one has the next number.
    sign : ndarray of shape (n,), int64
        Those of `kernels.signed_leaves`; 0 if leaves have none.
    sums : ndarray of shape (n, n_channels), int64
        As those of `Rows.init_root`.
    best : BestSplits
        The best split found for each node; its gain is 0 if there is none.
    """

    def __init__(self, n: int, n_channels: int, n_words: int):
        self.depth, self.child, self.sign = np.zeros((3, n), np.int64)
        self.is_summed = np.zeros(n, bool)
        self.sums = np.zeros((n, n_channels), np.int64)
        self.best = BestSplits.none(n, n_channels, n_words)

    @property
    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.depth, self.child, self.sign, self.is_summed, self.sums, *self.best

    def with_room(self, n: int) -> GrowingNodes:
        """Return these nodes in memory for n nodes or more."""
        if n <= len(self.depth):
            return self
        larger = GrowingNodes(2 * n, self.sums.shape[1], self.best.sets.shape[1])
        for column, known in zip(larger._columns, self._columns, strict=True):
            column[: len(known)] = known
        return larger

    def note(self, nodes: Sequence[int] | np.ndarray, best: BestSplits) -> None:
        """Store the best splits of some nodes."""
        for column, found in zip(self.best, best, strict=True):
            column[nodes] = found


class TreeGrower:
    """Grows trees on given rows."""

    def __init__(self, rows: Rows, limits: GrowthLimits):
        self.rows = rows
        self.limits = limits
        self.weighted = rows.counts[0].weighted
        self._most_histograms = limits.most_histograms(rows.counts[0].n_rows)
        self._all_features = np.arange(rows.n_features)
        # The round of the last tree, with the rules of its first tree: the next round's first tree probably has the same.
        self._round = 0
        self._rules: SplitRules | None = None
        self._search = True
        self._is_fixed = limits.same_every_round
        self._most_depth = math.inf if limits.max_depth is None else limits.max_depth
        self._root_node: Root | None = None

    def __call__(
        self,
        statistic: Statistic,
        gain: Gain,
        max_depth: int | None = None,
        sums: bool = True,
        constants: tuple[float, ...] = (),
    ) -> Tree:
        """Grow a tree, with splits chosen by the gain of the sums of `statistic`, no deeper than `max_depth`.

        `sums`: whether the algorithm reads the tree's sums. If rows are drawn by weight, these take one more question.
        `constants`: of the gain, if it has any.
        """
        if not self.begin(statistic, gain, max_depth, constants=constants):
            if not self.nodes.best.gain[0] > 0:
                self.rows.forget([0])
            if self.limits.max_leaf_nodes is None:
                self._grow_by_level()
            else:
                self._grow_best_first(self.limits.max_leaf_nodes)
        return self.finished(sums)

    def start(self) -> None:
        """Begin a tree without histograms, on this round's rows and features."""
        self.rows.start_tree(self._root(None, self.rows.round, None))

    def next_root(self, statistic: Statistic) -> Root:
        """Return the root of the next round's first tree, so that the update of this round can begin it."""
        return self._root(statistic, self.rows.round + 1, self._rules, self._search)

    def _root(
        self, statistic: Statistic | None, round: int, rules: SplitRules | None, search: bool = True
    ) -> Root:
        last = self._root_node if self._is_fixed else None
        if last is not None and last.statistic is statistic and (last.rules, last.search) == (rules, search):
            return last
        factor = LEAF_WEIGHT_FACTOR if self.weighted and statistic is not None else 0.0
        if statistic is not None:
            statistic = self.limits.compressed(statistic, round)
        features = _drawn_features(self._all_features, self.limits, round)
        drawn = _draw_rows(self.limits, round)
        return Root(features, statistic, drawn, factor, self._most_histograms, rules, search)

    def begin(
        self,
        statistic: Statistic,
        gain: Gain,
        max_depth: int | None = None,
        search: bool = True,
        constants: tuple[float, ...] = (),
    ) -> bool:
        """Begin a tree. Return whether `Rows` has grown all of it; if not, node 0 is summed.

        If `search` and node 0 may be split, its best split is found.
        """
        most = self._most_depth
        self.max_depth: float = most if max_depth is None else min(most, max_depth)
        rules = SplitRules(
            gain, self.limits.min_samples_leaf, self.limits.min_weight_fraction_leaf, constants
        )
        self.degree = gain.degree
        search = search and bool(self.may_split(0))
        if self._round != self.rows.round:
            self._round, self._rules, self._search = self.rows.round, rules, search
        root = self._root(statistic, self.rows.round, rules, search)
        if root is not self._root_node:
            self._root_node, self.features, summed = root, root.features, root.statistic
            assert summed is not None
            self.n_sums, self.stretch = summed.n_sums(self.rows.n_classes), summed.stretch
        most_depth = None if self.max_depth == math.inf else int(self.max_depth)
        self._grown = self.rows.grow(root, most_depth, self.limits.max_leaf_nodes)
        if self._grown is None:
            self._init(root)
        else:
            self._note_weight(self._grown.sums[0])
        return self._grown is not None

    def _init(self, root: Root) -> None:
        """Begin the nodes of a tree with its root."""
        sums, best = self.rows.init_root(root)
        assert sums is not None
        self.n_nodes = 1
        self.nodes = GrowingNodes(FEW_NODES, len(sums), set_words(self.rows.categorical))
        self.nodes.sums[0], self.nodes.is_summed[0] = sums, True
        if best is not None:
            self.nodes.note(ROOT, best)
        self._split_nodes = [NO_NODES]
        self._note_weight(sums)

    def _note_weight(self, sums: np.ndarray) -> None:
        """Note the weight of all rows of the tree, given the sums of its root, (n_channels,) int64."""
        self.weight = int(sums[self.n_sums + self.weighted]) / (LEAF_WEIGHT_FACTOR if self.weighted else 1.0)
        if self.limits.samples:
            self.weight = self.rows.counts[0].weight

    # Orders of growth.

    def _grow_by_level(self) -> None:
        level = ROOT
        while len(level := level[self.nodes.best.gain[level] > 0]):
            level = self._expand(level)

    def _grow_best_first(self, max_leaf_nodes: int) -> None:
        heap: list[tuple[float, int]] = []

        def push(nodes: np.ndarray) -> None:
            for node, gain in zip(nodes.tolist(), self.nodes.best.gain[nodes].tolist(), strict=True):
                if gain > 0:
                    heapq.heappush(heap, (-gain, node))

        push(ROOT)
        n_leaves = 1
        while heap and n_leaves < max_leaf_nodes:
            _, node = heapq.heappop(heap)
            n_leaves += 1
            push(self._expand(np.array([node]), last=n_leaves == max_leaf_nodes))
        self.rows.forget([node for _, node in heap])

    # Steps.

    def may_split(self, depth: Any) -> Any:
        """Whether the limits of depth and leaves allow nodes of this depth, a number or an array, to be split."""
        return (depth < self.max_depth) & (
            self.limits.max_leaf_nodes is None or self.limits.max_leaf_nodes > 1
        )

    def _expand(self, nodes: np.ndarray, last: bool = False) -> np.ndarray:
        """Split the nodes; return their children that were searched for best splits: none, if these splits are the `last`."""
        siblings, _ = self.split(nodes, last)
        if not siblings:
            return NO_NODES
        best = self.rows.best_splits(siblings)
        assert best is not None
        children = np.array([pair.smaller for pair in siblings] + [pair.larger for pair in siblings])
        self.nodes.note(children, best)
        return np.sort(children)

    def split(self, nodes: np.ndarray, last: bool = False) -> tuple[list[Siblings], list[int]]:
        """Split the nodes; return those whose children must be summed, and the children of the others, which become leaves.

        The others are the last splits of the tree, or neither of their children has enough rows to be split.
        """
        left = self.n_nodes + 2 * np.arange(len(nodes))
        right = left + 1
        self.n_nodes += 2 * len(nodes)
        self._split_nodes.append(nodes)
        self.nodes = tree = self.nodes.with_room(self.n_nodes)
        _, _, feature, bin, missing_left, n_left, n_right, sums, sets = (
            column[nodes] for column in tree.best
        )
        tree.child[nodes] = left
        tree.depth[left] = tree.depth[right] = tree.depth[nodes] + 1
        tree.sums[left], tree.sums[right] = sums, tree.sums[nodes] - sums
        tree.sign[left], tree.sign[right] = -tree.sign[nodes], tree.sign[nodes]
        self.rows.split(Splits(nodes, feature, bin, missing_left, left, right, sets))

        n_rows = tree.sums[:, self.n_sums]
        has_rows = np.maximum(n_rows[left], n_rows[right]) >= 2 * self.limits.min_samples_leaf
        may_split = self.may_split(tree.depth[left]) & (not last)
        is_summed = may_split & has_rows
        tree.is_summed[left] = tree.is_summed[right] = is_summed
        self.rows.forget(nodes[~is_summed].tolist())
        smaller, larger = np.where(n_left <= n_right, (left, right), (right, left))
        columns = (column[is_summed].tolist() for column in (nodes, smaller, larger))
        bare = may_split & ~has_rows
        return [*map(Siblings, *columns)], [*left[bare].tolist(), *right[bare].tolist()]

    def finished(self, exact: bool = True) -> Tree:
        """Return the tree: the split nodes numbered in order, all other nodes as leaves. `exact`: with the sums over all rows."""
        tree: GrowingNodes | GrownNodes = self.nodes if self._grown is None else self._grown
        inner = np.concatenate(self._split_nodes) if self._grown is None else self._grown.inner
        left = tree.child[inner]
        numbers, leaves = numbered(inner, left, left + 1)
        best = tree.best
        binned = BinnedTree(
            best.feature[inner].astype(np.int32),
            best.bin[inner].astype(np.int32),
            best.missing_left[inner],
            numbers[0],
            numbers[1],
            best.sets[inner],
        )
        scale = self.rows.histogram_scale
        gain = best.gain[inner]
        with np.errstate(over="ignore"):  # gains may overflow if the loss diverges
            for _ in range(self.degree):
                gain = scale.real(gain) * np.exp(scale.shift) / self.stretch
        gain = np.minimum(gain, LARGEST_GAIN)
        if exact and self.limits.samples:
            assert self._root_node is not None
            sums = self.rows.leaf_sums(self._root_node, leaves.astype(np.int32))
        else:
            sums = tree.sums[leaves]
        n = self.n_sums
        mass = sums[:, n]
        if self.weighted:
            mass = np.maximum(mass, np.ceil(sums[:, n + 1] / LEAF_WEIGHT_FACTOR).astype(np.int64))
        cover = self._cover(tree.sums[leaves, n:])
        return Tree(binned, gain, leaves, self.weight, sums[:, :n], mass, cover, tree.sign[leaves])

    def _cover(self, counts: np.ndarray) -> Cover:
        rows, *weight = counts.T
        if not weight:
            return Cover(rows, rows.astype(np.float64))
        mass = weight[0] / LEAF_WEIGHT_FACTOR
        return Cover(mass.astype(np.int64) if self.rows.whole_weights else rows, mass)


def _drawn_features(features: np.ndarray, limits: GrowthLimits, round: int) -> np.ndarray:
    """Return the round's features, (m,) int64 ascending: those with the smallest random numbers."""
    n = limits.most_features(len(features))
    if n >= len(features):
        return features
    draws = random.uniforms(random.key(limits.seed, random.FEATURE_SUBSAMPLE, round), 0, len(features))
    return np.sort(np.argsort(draws, kind="stable")[:n])


def _draw_rows(limits: GrowthLimits, round: int) -> Subsample | None:
    if not limits.samples:
        return None
    key = random.key(limits.seed, random.ROW_SUBSAMPLE, round)
    return Subsample(key, limits.subsample, limits.by_weight)
