"""The histograms of a growing tree's nodes, and the search for their best splits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from distboost.kernels.gains import NO_CONTEXT
from distboost.kernels.split_search import subtract
from distboost.rows.messages import BestSplits, Root, Siblings, SplitRules
from distboost.splits.histograms import Histograms
from distboost.splits.search import search
from distboost.threads import Threads


class TreeHistograms:
    """Keeps the histograms of nodes that may still be split, and reuses their memory from tree to tree.

    Parameters
    ----------
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    n_classes : int
    threads : Threads
        The threads of the search.

    Attributes
    ----------
    slots : dict of int to int
        The slot of each node that has a histogram.
    """

    def __init__(self, n_bins: np.ndarray, n_classes: int, threads: Threads):
        self._n_bins, self._n_classes, self._threads = n_bins, n_classes, threads
        self._histograms: Histograms | None = None
        self.slots: dict[int, int] = {}

    @property
    def histograms(self) -> Histograms:
        """The histograms of the growing tree."""
        assert self._histograms is not None, "a tree was begun"
        return self._histograms

    def begin(self, root: Root) -> int:
        """Drop the histograms of the previous tree; return the slot of the new root's histogram."""
        assert root.statistic is not None, "trees without a statistic have no histograms"
        self._n_sums = root.statistic.n_sums(self._n_classes)
        self._weighted = root.weight_factor > 0
        self._features = root.features
        n_channels = self._n_sums + 1 + self._weighted
        self.forget(list(self.slots))
        if self._histograms is None or self._histograms.n_used != n_channels:
            self._histograms = Histograms(self._n_bins, n_channels, root.most_histograms)
        [self.slots[0]] = self._histograms.take(1)
        return self.slots[0]

    def init_root(self, rules: SplitRules) -> np.ndarray:
        """Accept the rules of the search; return the sums over the rows in the root's histogram, (n_channels,) int64."""
        histograms, d = self.histograms, self._features[0]
        first, stop = histograms.offsets[d], histograms.offsets[d + 1]
        sums: np.ndarray = histograms.pool[self.slots[0], first:stop, : histograms.n_used].sum(axis=0)
        self._rules = rules
        self._min_weight = math.ceil(rules.min_weight_fraction * int(sums[self._n_sums + self._weighted]))
        return sums

    def take_children(self, siblings: Sequence[Siblings]) -> list[int]:
        """Return slots for the smaller children. The larger children take over the slots of their parents."""
        slots = self.histograms.take(len(siblings))
        for pair, slot in zip(siblings, slots, strict=True):
            self.slots[pair.larger] = self.slots.pop(pair.parent)
            self.slots[pair.smaller] = slot
        return slots

    def subtract_children(self, siblings: Sequence[Siblings]) -> None:
        """Turn the parents' histograms in the slots of the larger children into the histograms of these children."""
        pool = self.histograms.pool
        for _, smaller, larger in siblings:
            subtract(
                pool[self.slots[larger]], pool[self.slots[smaller]], self._features, self.histograms.offsets
            )

    def search_children(self, siblings: Sequence[Siblings]) -> BestSplits:
        """Find the best splits of the smaller children, then of the larger ones, whose slots hold their parents' histograms."""
        smaller = [pair.smaller for pair in siblings]
        larger = [pair.larger for pair in siblings]
        best = self._search(smaller, larger, NO_CONTEXT)
        self.forget([node for node, gain in zip(smaller + larger, best.gain, strict=True) if not gain > 0])
        return best

    def search(self, nodes: list[int], context: np.ndarray = NO_CONTEXT) -> BestSplits:
        """Find the best splits of nodes that have histograms."""
        return self._search(nodes, [], context)

    def _search(self, summed: list[int], subtracted: list[int], context: np.ndarray) -> BestSplits:
        found = search(
            self.histograms,
            [self.slots[node] for node in summed],
            [self.slots[node] for node in subtracted],
            self._features,
            self._n_sums,
            self._rules.gain,
            self._rules.min_rows,
            self._min_weight,
            self._weighted,
            self._threads,
            context,
        )
        left = np.zeros((len(found.gain), self.histograms.n_used), np.int64)
        for m, node in enumerate([*summed, *subtracted]):
            if found.gain[m] > 0:
                left[m] = self._left(self.slots[node], found.feature[m], found.bin[m], found.missing_left[m])
        return BestSplits(
            found.gain, found.feature, found.bin, found.missing_left, found.n_left, found.n_right, left
        )

    def _left(self, slot: int, feature: int, bin: int, missing_left: bool) -> np.ndarray:
        """Return the sums over the rows that a split sends left, (n_channels,) int64."""
        histograms = self.histograms
        first, stop = histograms.offsets[feature], histograms.offsets[feature + 1] - 1
        sums = histograms.pool[slot, :, : histograms.n_used]
        left: np.ndarray = sums[first : first + bin + 1].sum(axis=0)
        return left + sums[stop] if missing_left else left

    def forget(self, nodes: Sequence[int]) -> None:
        """Free the slots of nodes that will not be split."""
        self.histograms.give_back([self.slots.pop(node) for node in nodes]) if nodes else None
