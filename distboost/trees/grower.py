"""Grow trees from best splits. A stump is a tree of depth 1."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from distboost.kernels import random
from distboost.rows.interface import Rows
from distboost.rows.messages import BestSplits, Root, Siblings, SplitRules, Splits, Subsample
from distboost.rows.protocols import Gain
from distboost.rows.scales import LEAF_WEIGHT_FACTOR
from distboost.trees.tree import BinnedTree, TreeStep
from distboost.weights.base import Statistic
from distboost.weights.sketch import compressed


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
    max_features: float | int = 1.0
    sketch: int | None = None
    statistic_bits: int | None = None
    seed: int = 0
    sampling: str = "uniform"  # or "weight": see `rows.sampling`

    @property
    def by_weight(self) -> bool:
        """Whether rows are drawn by weight: the histograms then sum some rows, and the leaves have all."""
        return self.sampling == "weight"

    @property
    def same_every_round(self) -> bool:
        """Whether rounds draw nothing. If so, a round without a split is followed by rounds without one."""
        return not self.draws_rows and self.max_features == 1.0 and self.sketch is None

    @property
    def draws_rows(self) -> bool:
        """Whether trees depend on draws by the numbers of rows."""
        return self.subsample < 1.0 or self.statistic_bits is not None

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


@dataclass(slots=True)
class Node:
    """A node of a growing tree with the best split found for it."""

    id: int
    depth: int
    is_summed: bool = False  # whether `Rows` has its histogram
    gain: float = 0.0
    feature: int = 0
    bin: int = 0
    missing_left: bool = False
    n_left: int = 0
    n_right: int = 0
    left: np.ndarray | None = None  # (n,) int64: sums over the rows that the split sends left


class Split(NamedTuple):
    """A node that was split, and its children."""

    node: Node
    smaller: Node
    larger: Node

    @property
    def ids(self) -> Siblings:
        """The numbers of the three nodes."""
        return Siblings(self.node.id, self.smaller.id, self.larger.id)


class TreeGrower:
    """Grows trees on given rows."""

    def __init__(self, rows: Rows, limits: GrowthLimits):
        self.rows = rows
        self.limits = limits
        self.weighted = rows.counts[0].weighted
        self._most_histograms = limits.most_histograms(rows.counts[0].n_rows)
        # The round of the last tree, with the rules of its first tree: the next round's first tree probably has the same.
        self._round = 0
        self._rules: SplitRules | None = None
        self._search = True

    def __call__(
        self, statistic: Statistic, gain: Gain, max_depth: int | None = None, sums: bool = True
    ) -> Tree:
        """Grow a tree, with splits chosen by the gain of the sums of `statistic`, no deeper than `max_depth`.

        `sums`: whether the algorithm reads the tree's sums. If rows are drawn by weight, these take one more question.
        """
        root = self.init_root(statistic, gain, max_depth)
        if not root.gain > 0:
            self.rows.forget([root.id])
        if self.limits.max_leaf_nodes is None:
            self._grow_by_level(root)
        else:
            self._grow_best_first(root, self.limits.max_leaf_nodes)
        return self.finished(sums)

    def start(self) -> None:
        """Begin a tree without histograms, on this round's rows and features."""
        self.rows.start_tree(self._root(None, self.rows.round, None))

    def next_root(self, statistic: Statistic) -> Root:
        """Return the root of the next round's first tree, so that the update of this round can begin it."""
        following = self.rows.round + 1
        return self._root(self.limits.compressed(statistic, following), following, self._rules, self._search)

    def _root(
        self, statistic: Statistic | None, round: int, rules: SplitRules | None, search: bool = True
    ) -> Root:
        factor = LEAF_WEIGHT_FACTOR if self.weighted and statistic is not None else 0.0
        features = _draw_features(self.rows.n_features, self.limits, round).astype(np.int64)
        drawn = _draw_rows(self.limits, round)
        return Root(features, statistic, drawn, factor, self._most_histograms, rules, search)

    def init_root(
        self, statistic: Statistic, gain: Gain, max_depth: int | None = None, search: bool = True
    ) -> Node:
        """Begin a tree; return its root, with the best split if `search` and it may be split."""
        depths = [depth for depth in (self.limits.max_depth, max_depth) if depth is not None]
        self.max_depth = min(depths, default=None)
        statistic = self.limits.compressed(statistic, self.rows.round)
        self.n_sums, self.stretch = statistic.n_sums(self.rows.n_classes), statistic.stretch
        self.split_nodes: list[Node] = []
        self.children: dict[int, tuple[int, int]] = {}
        self.n_nodes = 1
        node = Node(0, 0, is_summed=True)
        rules = SplitRules(gain, self.limits.min_samples_leaf, self.limits.min_weight_fraction_leaf)
        search = search and self.may_split(node)
        if self._round != self.rows.round:
            self._round, self._rules, self._search = self.rows.round, rules, search
        root = self._root(statistic, self.rows.round, rules, search)
        self.features = root.features
        sums, best = self.rows.init_root(root)
        assert sums is not None
        if best is not None:
            note_best_splits([node], best)
        self.sums = {node.id: sums}
        self.weight = int(sums[self.n_sums + self.weighted]) / (LEAF_WEIGHT_FACTOR if self.weighted else 1.0)
        if self.limits.by_weight:
            self.weight = self.rows.counts[0].weight
        self._root_node = root
        return node

    # Orders of growth.

    def _grow_by_level(self, root: Node) -> None:
        level = [root]
        while level := [node for node in level if node.gain > 0]:
            level = self._expand(level)

    def _grow_best_first(self, root: Node, max_leaf_nodes: int) -> None:
        heap = [(-root.gain, root.id, root)] if root.gain > 0 else []
        n_leaves = 1
        while heap and n_leaves < max_leaf_nodes:
            node = heapq.heappop(heap)[2]
            n_leaves += 1
            for child in self._expand([node], last=n_leaves == max_leaf_nodes):
                if child.gain > 0:
                    heapq.heappush(heap, (-child.gain, child.id, child))
        self.rows.forget([node.id for _, _, node in heap])

    # Steps.

    def may_split(self, node: Node) -> bool:
        """Whether the limits of depth and leaves allow the node to be split."""
        deep = self.max_depth is not None and node.depth >= self.max_depth
        return not deep and (self.limits.max_leaf_nodes is None or self.limits.max_leaf_nodes > 1)

    def needs_histograms(self, node: Node) -> bool:
        """Whether the histograms of a node's children are needed for those of their own children, which may be split."""
        return self.max_depth is None or node.depth + 2 < self.max_depth

    def _expand(self, nodes: list[Node], last: bool = False) -> list[Node]:
        """Split the nodes; return the children with their own best splits, without a search if these are the `last`."""
        siblings, _ = self.split(nodes, last)
        if siblings:
            keep = any(self.needs_histograms(node) for node in nodes)
            best = self.rows.best_splits([pair.ids for pair in siblings], keep=keep)
            assert best is not None
            note_best_splits([*(f.smaller for f in siblings), *(f.larger for f in siblings)], best)
        frontier = [child for pair in siblings for child in (pair.smaller, pair.larger)]
        return sorted(frontier, key=lambda node: node.id)

    def child_ids(self, position: int) -> tuple[int, int]:
        """Return the numbers of the children of the node that is split after `position` others."""
        first = self.n_nodes + 2 * position
        return first, first + 1

    def has_rows(self, node: Node) -> bool:
        """Whether the node has enough rows to be split."""
        return int(self.sums[node.id][self.n_sums]) >= 2 * self.limits.min_samples_leaf

    def split(self, nodes: list[Node], last: bool = False) -> tuple[list[Split], list[Node]]:
        """Split the nodes; return the splits whose children must be summed, and the children of the others, which become leaves.

        The others are the last splits of the tree, or neither of their children has enough rows to be split.
        """
        applied, siblings, bare, done = [], [], [], []
        for node in nodes:
            left, right = (Node(id, node.depth + 1) for id in self.child_ids(0))
            self.n_nodes += 2
            self.children[node.id] = (left.id, right.id)
            self.split_nodes.append(node)
            assert node.left is not None
            self.sums[left.id] = node.left
            self.sums[right.id] = self.sums.pop(node.id) - node.left
            applied.append((node.id, node.feature, node.bin, node.missing_left, left.id, right.id))
            if last or not self.may_split(left):
                done.append(node.id)
            elif not (self.has_rows(left) or self.has_rows(right)):
                done.append(node.id)
                bare += [left, right]
            else:
                left.is_summed = right.is_summed = True
                smaller, larger = (left, right) if node.n_left <= node.n_right else (right, left)
                siblings.append(Split(node, smaller, larger))
        self.rows.forget(done)
        self.rows.split(Splits.of(applied))
        return siblings, bare

    def finished(self, exact: bool = True) -> Tree:
        """Return the tree: the split nodes numbered in order, all other nodes as leaves. `exact`: with the sums over all rows."""
        inner = {node.id: number for number, node in enumerate(self.split_nodes)}
        leaves: list[int] = [] if inner else [0]
        left: list[int] = []
        right: list[int] = []
        for node in self.split_nodes:
            for child, side in zip(self.children[node.id], (left, right), strict=True):
                if child in inner:
                    side.append(inner[child])
                else:
                    side.append(~len(leaves))
                    leaves.append(child)
        nodes = self.split_nodes
        binned = BinnedTree(
            np.array([node.feature for node in nodes], np.int32),
            np.array([node.bin for node in nodes], np.int32),
            np.array([node.missing_left for node in nodes], bool),
            np.array(left, np.int32),
            np.array(right, np.int32),
        )
        scale = self.rows.histogram_scale
        with np.errstate(over="ignore"):  # gains may overflow if the loss diverges
            gain = scale.real(np.array([node.gain for node in nodes], np.float64)) * np.exp(scale.shift)
            gain /= self.stretch
        gain = np.minimum(gain, np.finfo(np.float64).max)
        if exact and self.limits.by_weight:
            sums = self.rows.leaf_sums(self._root_node, np.array(leaves, np.int64))
        else:
            sums = np.stack([self.sums[leaf] for leaf in leaves])
        n = self.n_sums
        mass = sums[:, n]
        if self.weighted:
            mass = np.maximum(mass, np.ceil(sums[:, n + 1] / LEAF_WEIGHT_FACTOR).astype(np.int64))
        return Tree(binned, gain, np.array(leaves, np.int64), self.weight, sums[:, :n], mass)


def note_best_splits(nodes: list[Node], best: BestSplits) -> None:
    """Store the best split of each node."""
    *columns, left = best
    for node, split, sums in zip(
        nodes, zip(*(column.tolist() for column in columns), strict=True), left, strict=True
    ):
        node.gain, _, node.feature, node.bin, node.missing_left, node.n_left, node.n_right = split
        node.left = sums


def _draw_features(n_features: int, limits: GrowthLimits, round: int) -> np.ndarray:
    """Return the round's features, (m,) int64 ascending: those with the smallest random numbers."""
    wanted = limits.max_features
    n = wanted if isinstance(wanted, int) else max(1, int(wanted * n_features))
    if n >= n_features:
        return np.arange(n_features)
    draws = random.uniforms(random.key(limits.seed, random.FEATURE_SUBSAMPLE, round), 0, n_features)
    return np.sort(np.argsort(draws, kind="stable")[:n])


def _draw_rows(limits: GrowthLimits, round: int) -> Subsample | None:
    if limits.subsample >= 1.0:
        return None
    key = random.key(limits.seed, random.ROW_SUBSAMPLE, round)
    return Subsample(key, limits.subsample, limits.by_weight)
