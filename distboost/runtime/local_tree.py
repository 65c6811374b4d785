"""The histograms of a growing tree in this process, in parts that threads sum and search one at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np

from distboost.rows.messages import BestSplits, Expanded, Expansion, Root
from distboost.runtime.parts import Slots
from distboost.runtime.tiles import feature_groups, n_visits, round_up, tiles_of
from distboost.splits.histograms import offsets_of
from distboost.splits.tree_histograms import TreeHistograms
from distboost.threads import Threads

ONE_THREAD = Threads(1)


class LocalPart:
    """Some features of the data, with the histograms of the growing tree over them."""

    def __init__(self, own: np.ndarray, tree: TreeHistograms):
        self.own, self.tree = own, tree

    def ask(self, expansion: Expansion, features: np.ndarray) -> None:
        """Accept a change of the nodes that have histograms, and the tree's features in this part."""
        self.features, self._expansion = features, replace(expansion, features=features)

    def begin(self) -> Slots:
        nodes = self.tree.prepare(self._expansion)
        return Slots(self.tree.histograms.pool, np.array(nodes, np.int64), self.tree.histograms.offsets)

    def finish(self) -> None:
        self.expanded = self.tree.answer(self._expansion)


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
        self.parts = [
            LocalPart(
                own,
                TreeHistograms(self._n_bins, self._categorical, self._n_classes, threads=threads, own=own),
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
