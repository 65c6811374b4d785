"""Trees grown from histograms. A stump is a tree of depth 1."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from distboost.kernels import random
from distboost.rows import BinnedTree, Rows, Splits, Subsample
from distboost.weak.splits import Candidates, Histograms, search
from distboost.weighting import LEAF_WEIGHT_UNIT


@dataclass(frozen=True)
class GrowthLimits:
    """How large a tree may grow, and from which rows and features.

    With `max_leaf_nodes` a tree grows best first (the oldest of equal leaves first), else level by level; None is no limit.
    """

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    subsample: float = 1.0
    max_features: float | int = 1.0
    seed: int = 0

    @property
    def same_every_round(self) -> bool:
        """Whether every round sees all rows and features: a tree that fails once then fails for ever."""
        return self.subsample >= 1.0 and self.max_features == 1.0


class Tree(NamedTuple):
    """A grown tree: inner nodes in the order they were split, and the partition's node of each leaf."""

    binned: BinnedTree
    gain: np.ndarray  # (inner nodes,) float64, in the units of the row weights
    leaves: np.ndarray  # (n_leaves,) the partition's nodes
    n_leaves: int


@dataclass(slots=True)
class _Node:
    """A node of a growing tree with the best split found for it."""

    id: int
    depth: int
    slot: int = -1  # of its histogram
    gain: float = 0.0
    feature: int = 0
    bin: int = 0
    missing_left: bool = False
    n_left: int = 0
    n_right: int = 0


class TreeGrower:
    """Grows one tree per round on the rows it is given; keeps its histograms' memory between rounds."""

    def __init__(self, rows: Rows, limits: GrowthLimits, n_sums: int):
        self.rows = rows
        self.limits = limits
        self.n_sums = n_sums
        self.weighted = rows.counts[0].weighted
        self.histograms = Histograms(rows.n_bins, n_sums + 1 + self.weighted)
        self.min_weight = 0

    def __call__(self, kind: int) -> Tree:
        """The tree of the next round, its splits chosen by gain `kind` (see `gains`)."""
        rows, limits = self.rows, self.limits
        round = rows.round + 1
        self.kind = kind
        self.features = _draw_features(rows.n_features, limits, round)
        rows.start_round(self.features, _draw_rows(limits, round), LEAF_WEIGHT_UNIT if self.weighted else 0.0)
        self.split_nodes: list[_Node] = []
        self.children: dict[int, tuple[int, int]] = {}
        self.n_nodes = 1
        root = _Node(0, 0)
        if self._may_split(root):
            root.slot = self.histograms.take(1)[0]
            rows.histogram([0], self.histograms, [root.slot])
            self.min_weight = self._least_leaf_weight(root)
            self._search([root], [])
            if limits.max_leaf_nodes is None:
                self._grow_by_level(root)
            else:
                self._grow_best_first(root, limits.max_leaf_nodes)
        return self._finished()

    # Orders of growth.

    def _grow_by_level(self, root: _Node) -> None:
        level = [root]
        while level := [node for node in level if node.gain > 0]:
            level = self._expand(level)

    def _grow_best_first(self, root: _Node, max_leaf_nodes: int) -> None:
        heap = [(-root.gain, root.id, root)] if root.gain > 0 else []
        n_leaves = 1
        while heap and n_leaves < max_leaf_nodes:
            node = heapq.heappop(heap)[2]
            n_leaves += 1
            for child in self._expand([node], last=n_leaves == max_leaf_nodes):
                if child.gain > 0:
                    heapq.heappush(heap, (-child.gain, child.id, child))
        self.histograms.give_back([node.slot for _, _, node in heap])

    # Steps.

    def _least_leaf_weight(self, root: _Node) -> int:
        """The weight that a leaf must hold: a fraction of that of all rows in the tree."""
        first, last = self.histograms.offsets[self.features[0]], self.histograms.offsets[self.features[0] + 1]
        total = int(self.histograms.pool[root.slot, first:last, self.n_sums + self.weighted].sum())
        return int(np.ceil(self.limits.min_weight_fraction_leaf * total))

    def _may_split(self, node: _Node) -> bool:
        limits = self.limits
        deep = limits.max_depth is not None and node.depth >= limits.max_depth
        return not deep and (limits.max_leaf_nodes is None or limits.max_leaf_nodes > 1)

    def _expand(self, nodes: list[_Node], last: bool = False) -> list[_Node]:
        """Splits the nodes; returns the children with their own best splits (none are sought for the last)."""
        splits, built, siblings, frontier = [], [], [], []
        for node in nodes:
            left, right = (_Node(self.n_nodes + side, node.depth + 1) for side in (0, 1))
            self.n_nodes += 2
            self.children[node.id] = (left.id, right.id)
            self.split_nodes.append(node)
            splits.append((node.id, node.feature, node.bin, node.missing_left, left.id, right.id))
            if last or not self._may_split(left):
                self.histograms.give_back([node.slot])
                continue
            # Only the smaller child is summed; the other is the parent less it, in the parent's slot.
            smaller, larger = (left, right) if node.n_left <= node.n_right else (right, left)
            larger.slot = node.slot
            built.append(smaller)
            siblings.append(larger)
            frontier += [left, right]
        self.rows.split(Splits.of(splits))
        if built:
            for node, slot in zip(built, self.histograms.take(len(built)), strict=True):
                node.slot = slot
            self.rows.histogram([node.id for node in built], self.histograms, [node.slot for node in built])
            self._search(built, siblings)
            self.histograms.give_back([node.slot for node in frontier if not node.gain > 0])
        return frontier

    def _search(self, built: list[_Node], siblings: list[_Node]) -> None:
        found = search(
            self.histograms,
            [node.slot for node in built],
            [node.slot for node in siblings],
            self.features,
            self.n_sums,
            self.kind,
            self.limits.min_samples_leaf,
            self.min_weight,
            self.weighted,
            self.rows.threads,
        )
        for node, split in zip([*built, *siblings], _by_node(found), strict=True):
            node.gain, _, node.feature, node.bin, node.missing_left, node.n_left, node.n_right = split
        if not siblings and not built[0].gain > 0:
            self.histograms.give_back([built[0].slot])

    def _finished(self) -> Tree:
        """The split nodes numbered in order, all other nodes as leaves."""
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
        gain = scale.real(np.array([node.gain for node in nodes], np.float64)) * np.exp(scale.shift)
        return Tree(binned, gain, np.array(leaves, np.int64), len(leaves))


def _by_node(found: Candidates) -> Iterable[tuple]:
    return zip(*(column.tolist() for column in found), strict=True)


def _draw_features(n_features: int, limits: GrowthLimits, round: int) -> np.ndarray:
    """The round's features, ascending: those with the smallest random numbers."""
    wanted = limits.max_features
    n = wanted if isinstance(wanted, int) else max(1, int(wanted * n_features))
    if n >= n_features:
        return np.arange(n_features)
    draws = random.uniforms(random.key(limits.seed, random.FEATURE_SUBSAMPLE, round), 0, n_features)
    return np.sort(np.argsort(draws, kind="stable")[:n])


def _draw_rows(limits: GrowthLimits, round: int) -> Subsample | None:
    if limits.subsample >= 1.0:
        return None
    return Subsample(random.key(limits.seed, random.ROW_SUBSAMPLE, round), limits.subsample)
