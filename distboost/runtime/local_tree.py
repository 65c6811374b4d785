"""The histograms of a growing tree in this process, in parts that threads sum and search one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from distboost.rows.messages import BestSplits, Expanded, Expansion, Root
from distboost.runtime.parts import Slots, Spare
from distboost.runtime.tiles import feature_groups, n_visits, round_up, tiles_of
from distboost.splits.histograms import offsets_of
from distboost.splits.tree_histograms import TreeHistograms
from distboost.threads import Threads

ONE_THREAD = Threads(1)
SEARCHED_BYTES = 2**25  # the most that all threads together take for histograms that are not kept


class LocalPart:
    """Some features of the data, with the histograms of the growing tree over them."""

    def __init__(self, own: np.ndarray, tree: TreeHistograms, spare: Spare):
        self.own, self.tree, self._spare = own, tree, spare

    def ask(self, expansion: Expansion, features: np.ndarray) -> None:
        """Accept a change of the nodes that have histograms, and the tree's features in this part."""
        self.features, self._expansion = features, replace(expansion, features=features)

    def begin(self) -> Slots:
        self._groups: Sequence[np.ndarray] = []
        if self._expansion.keeps:
            nodes = self.tree.prepare(self._expansion)
            return Slots(self.tree.histograms.pool, np.array(nodes, np.int64), self.tree.histograms.offsets)
        _, n_bins, n_channels = self.tree.histograms.pool.shape
        n = len(self._expansion.siblings)
        self._memory = self._spare.take(n * n_bins * n_channels)
        self._children = self._memory[: n * n_bins * n_channels].reshape(n, n_bins, n_channels)
        return Slots(self._children, np.arange(n), self.tree.histograms.offsets)

    def divided(self, groups: Sequence[np.ndarray]) -> list[NodesPart]:
        slots, self._groups = self.begin(), groups
        self._pieces = [
            NodesPart(
                self.features,
                slots.of_nodes(group),
                partial(self.tree.answer, self._expansion.of_nodes(group), ONE_THREAD),
            )
            for group in groups
        ]
        return self._pieces

    def finish(self) -> None:
        if self._groups:
            self.expanded = in_order([piece.expanded for piece in self._pieces], self._groups)
        elif self._expansion.keeps:
            self.expanded = self.tree.answer(self._expansion)
        else:
            self.expanded = self.tree.search_only(self._expansion, self._children)
            self._spare.give_back(self._memory)
            del self._children, self._memory


class NodesPart:
    """Some nodes of a `LocalPart` whose histograms are kept, summed and searched by one thread."""

    def __init__(self, features: np.ndarray, slots: Slots, answer: Callable[[], Expanded]):
        self.features, self._slots, self._answer = features, slots, answer

    def begin(self) -> Slots:
        return self._slots

    def finish(self) -> None:
        self.expanded = self._answer()


class LocalTree:
    """The histograms of a growing tree over all features.

    Parameters
    ----------
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    n_classes : int
    threads : Threads

    Attributes
    ----------
    parts : list of LocalPart
        As many as the threads or a multiple, ascending by feature; one if the sums of all features fit in few tiles.
    """

    def __init__(self, n_bins: np.ndarray, categorical: np.ndarray, n_classes: int, threads: Threads):
        self._n_bins, self._categorical = n_bins, categorical
        self._n_classes, self._threads = n_classes, threads
        self._n_channels = 0
        self.parts: list[LocalPart] = []
        self._growing: list[LocalPart] = []  # those with features of the tree

    def expansions(self, expansion: Expansion, may_drop: bool) -> Iterator[Expansion]:
        """Yield the expansion; if the histograms need not be kept, and if it `may_drop` them, for a few nodes at a time."""
        siblings = expansion.siblings
        if not expansion.keeps and (not may_drop or len(self._growing) < self._threads.n):
            expansion = replace(expansion, keeps=True)
        if expansion.keeps:
            yield expansion
            return
        part_bytes = max(part.tree.histograms.pool[0].nbytes for part in self._growing)
        most = max(SEARCHED_BYTES // (part_bytes * self._threads.n), 1)
        for first in range(0, len(siblings), most):
            forgotten = () if first else expansion.forgotten
            yield replace(expansion, siblings=siblings[first : first + most], forgotten=forgotten)

    def begin(self, expansion: Expansion) -> list[LocalPart]:
        """Return the parts that have features of the growing tree. Each is to be summed."""
        root = expansion.root
        if root is not None:
            self._divide(root, expansion.features)
            whole = len(expansion.features) == len(self._n_bins)
            features = [
                part.own if whole else part.own[np.isin(part.own, expansion.features)] for part in self.parts
            ]
            self._growing = [part for part, some in zip(self.parts, features, strict=True) if len(some)]
            self._features = [some for some in features if len(some)]
        for part, some in zip(self._growing, self._features, strict=True):
            part.ask(expansion, some)
        return self._growing

    def _divide(self, root: Root, features: np.ndarray) -> None:
        """Divide the features into parts, unless they are divided for histograms of this size already."""
        assert root.statistic is not None
        n_channels = root.statistic.n_sums(self._n_classes) + 1 + (root.weight_factor > 0)
        if root.is_window:
            self._n_channels = 0
        elif n_channels == self._n_channels:
            return
        else:
            self._n_channels = n_channels
        if not root.is_window:
            features = np.arange(len(self._n_bins))
        offsets, n_threads = offsets_of(self._n_bins, features), self._threads.n
        n_tiles = tiles_of(features, offsets, n_channels)
        # With few tiles, threads share the rows of all features (see `SharedPart`), and then the search.
        alone = n_tiles >= n_threads
        groups = feature_groups(features, offsets, round_up(n_visits(n_tiles), n_threads) if alone else 1)
        threads = ONE_THREAD if alone else self._threads
        self.parts = []  # frees the memory of the former ones
        spare = Spare()
        self.parts = [
            LocalPart(
                own, TreeHistograms(self._n_bins, self._categorical, self._n_classes, threads, own), spare
            )
            for own in groups
        ]

    def expanded(self) -> Expanded:
        """Return the answer to the last expansion, over all features."""
        return reduce(Expanded.combined, [part.expanded for part in self._growing])

    def search(self, node: int, context: np.ndarray) -> BestSplits:
        """Find the best split of a node that has a histogram."""
        found = self._threads.map(lambda part: part.tree.search([node], context), self._growing)
        return reduce(BestSplits.combined, found)


def in_order(found: list[Expanded], groups: Sequence[np.ndarray]) -> Expanded:
    """Join the answers about groups of nodes, (m,) int64 positions in the order that is wanted."""
    if found[0].best is None:
        return found[0]
    sizes = [len(group) for group in groups]
    best = siblings_in_order(found, sizes).best
    assert best is not None
    order = np.argsort(np.concatenate(groups))
    # Those of the smaller children, then those of the larger ones. The nodes of a window come without siblings.
    places = np.concatenate([order, len(order) + order])[: len(best.gain)]
    return Expanded(None, BestSplits._make(column[places] for column in best))


def siblings_in_order(found: list[Expanded], sizes: list[int]) -> Expanded:
    """Join the answers about several groups of siblings: first all smaller children, then all larger ones."""
    if len(found) == 1:
        return found[0]
    best = [answer.best for answer in found if answer.best is not None]
    smaller = [BestSplits._make(column[:n] for column in some) for some, n in zip(best, sizes, strict=True)]
    larger = [BestSplits._make(column[n:] for column in some) for some, n in zip(best, sizes, strict=True)]
    return Expanded(None, reduce(BestSplits.followed_by, [*smaller, *larger]))
