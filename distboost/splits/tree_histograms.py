"""The histograms of a growing tree's nodes, and the search for their best splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from distboost.kernels import simd
from distboost.kernels.categories import MIN_ROWS, ordering_of, set_words
from distboost.kernels.gains import NO_CONTEXT, Gain, context_of
from distboost.kernels.split_search import best_splits_by, subtract_features
from distboost.rows.messages import BestSplits, Expanded, Expansion, Root
from distboost.threads import Threads

LARGEST_POOL = 2**29  # bytes: the most that is allocated for histograms at once


def offsets_of(n_bins: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return where the bins of each feature begin, (D + 1,) int64, if only some features have bins.

    >>> offsets_of(np.array([2, 5, 3]), np.array([0, 2]))
    array([0, 3, 3, 7])
    """
    sizes = np.zeros(len(n_bins) + 1, np.int64)
    sizes[features + 1] = n_bins[features] + 1
    return np.cumsum(sizes)


class Histograms:
    """Node histograms: int64 sums of shape (total bins, channels) in reusable slots.

    The bins of the features are concatenated: those of feature d begin at `offsets[d]`. There are slots for `most` nodes. If
    these would take more than LARGEST_POOL, fewer slots are allocated at first, and more when they are needed.

    Parameters
    ----------
    n_bins : ndarray of shape (D,), int64
        Bins per feature, without the bin for missing values.
    n_channels : int
        Numbers per bin: the sums, the row count and, if they are summed, the row weights.
    most : int, default=1
        The largest number of nodes that have histograms at the same time.
    features : ndarray of shape (m,), int64, or None
        Only these have bins here. None: all.
    """

    def __init__(
        self, n_bins: np.ndarray, n_channels: int, most: int = 1, features: np.ndarray | None = None
    ):
        self.n_used = n_channels
        self.offsets = offsets_of(n_bins, np.arange(len(n_bins)) if features is None else features)
        shape = int(self.offsets[-1]), simd.padded_sums(self.n_used)
        # The system provides memory only when it is first written to, but it may refuse a very large allocation.
        size = min(most, max(LARGEST_POOL // (8 * shape[0] * shape[1]), 1))
        self.pool = np.empty((size, *shape), np.int64)
        self._free = list(reversed(range(size)))

    def take(self, n: int) -> list[int]:
        """Return n free slots. Their content is arbitrary."""
        lacking = n - len(self._free)
        if lacking > 0:
            # Resize in place: a copy would take twice the memory. `refcheck` would refuse, because threads that have finished may
            # still refer to the array. They do no harm: it stays the same object, and no view of it outlives a question.
            size = len(self.pool)
            self.pool.resize((size + lacking, *self.pool.shape[1:]), refcheck=False)
            self._free.extend(reversed(range(size, size + lacking)))
        return [self._free.pop() for _ in range(n)]

    @property
    def channels(self) -> tuple[int, int]:
        """The number of channels in use, and the number with padding to whole SIMD groups."""
        return self.n_used, self.pool.shape[2]

    def fill(self, slots: list[int], sums: np.ndarray, features: np.ndarray) -> None:
        """Copy the bins of some features, `sums` of shape (n, bins of the features, channels in use) int64, to the slots."""
        first = 0
        for d in features:
            own = slice(self.offsets[d], self.offsets[d + 1])
            stop = first + own.stop - own.start
            self.pool[slots, own, : self.n_used] = sums[:, first:stop]
            self.pool[slots, own, self.n_used :] = 0
            first = stop

    def give_back(self, slots: list[int]) -> None:
        """Free slots."""
        self._free.extend(slots)


SUMS_PER_THREAD = 2**17  # with fewer, a thread costs more time than it saves


@dataclass(frozen=True)
class SearchRules:
    """What splits of a tree's nodes are searched for: the tree's `SplitRules`, in the units of its histograms.

    Attributes
    ----------
    gain : Gain
    n_sums : int
        Channels of a histogram that hold sums of the statistic.
    min_rows : int
        Rows that each side of a split must have.
    min_weight : int
        Weight that each side of a split must have, in the units of the histograms.
    weighted : bool
        Whether the histograms sum row weights; otherwise each row has weight 1.
    categorical : ndarray of shape (n_features,), bool, or None
        Whether a feature's bins are categories. None: no feature's.
    least_category : int
        A category that has this weight, in the units of the histograms, is known in a node, even if it has few rows.
    n_words : int
        Words of the sets in the answer. They have some if other features have categories, too, which are searched elsewhere.
    """

    gain: Gain
    n_sums: int
    min_rows: int = 1
    min_weight: int = 0
    weighted: bool = False
    categorical: np.ndarray | None = None
    least_category: int = MIN_ROWS
    n_words: int = 0

    @property
    def mass_channel(self) -> int:
        """The last channel of a histogram, which has the mass of its rows: their weight, or their number."""
        return self.n_sums + self.weighted


def search(
    histograms: Histograms,
    built: list[int],
    parents: list[int],
    *,
    features: np.ndarray,
    rules: SearchRules,
    threads: Threads,
    context: np.ndarray = NO_CONTEXT,
) -> BestSplits:
    """Return the best splits of the nodes in the slots `built`, then those of their siblings.

    Parameters
    ----------
    histograms : Histograms
    built : list of int
        The slots of nodes that have their own histograms.
    parents : list of int
        The slots of the parents of these nodes, or none. The sibling's histogram replaces the parent's there.
    features : ndarray of shape (f,), int64
        The features to search, ascending.
    rules : SearchRules
    threads : Threads
    context : ndarray of shape (2, k), float64
        What a gain must know beside the sums of a split.
    """
    own, siblings = np.array(built, np.int64), np.array(parents, np.int64)
    pool = histograms.pool
    best_splits = best_splits_by(rules.gain)
    categorical = rules.categorical
    if categorical is None:
        categorical = np.zeros(len(histograms.offsets) - 1, bool)
    ordering = ordering_of(categorical)

    def search_features(group: np.ndarray) -> BestSplits:
        found = BestSplits.none(len(own) + len(siblings), histograms.n_used, rules.n_words)
        best_splits(
            pool,
            own,
            siblings,
            group,
            histograms.offsets,
            categorical,
            rules.n_sums,
            rules.weighted,
            context,
            rules.min_rows,
            rules.min_weight,
            rules.least_category,
            ordering,
            found,
        )
        return found

    n_bins = int((histograms.offsets[features + 1] - histograms.offsets[features]).sum())
    n_sums = n_bins * (len(own) + len(siblings)) * histograms.n_used
    n_groups = max(min(threads.n, len(features), n_sums // SUMS_PER_THREAD), 1)
    if n_groups == 1:
        return search_features(features)
    return reduce(BestSplits.combined, threads.map(search_features, np.array_split(features, n_groups)))


def load_search(gain: Gain) -> None:
    """Load the kernels of the search with a gain, or compile them, by a search of histograms without rows."""
    features, histograms = np.zeros(1, np.int64), Histograms(np.ones(1, np.int64), 1)
    histograms.pool[:] = 0
    with Threads(1) as threads:
        search(histograms, [0], [], features=features, rules=SearchRules(gain, 0), threads=threads)


class TreeHistograms:
    """Keeps the histograms of nodes that may still be split, and reuses their memory from tree to tree.

    Parameters
    ----------
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    categorical : ndarray of shape (n_features,), bool
        Whether a feature's bins are categories.
    n_classes : int
    threads : Threads
        The threads of the search.
    own : ndarray of shape (m,), int64, or None
        The features that have histograms here. None: all.
    n_words : int or None
        Words of the sets of best splits. None: none, unless these features have categories.

    Attributes
    ----------
    slots : dict of int to int
        The slot of each node that has a histogram.
    """

    def __init__(
        self,
        n_bins: np.ndarray,
        categorical: np.ndarray,
        n_classes: int,
        *,
        threads: Threads,
        own: np.ndarray | None = None,
        n_words: int | None = None,
    ):
        self._n_bins, self._categorical = n_bins, categorical
        self._n_words = set_words(categorical) if n_words is None else n_words
        self._n_classes, self._threads, self._own = n_classes, threads, own
        self._histograms: Histograms | None = None
        self.slots: dict[int, int] = {}

    @property
    def histograms(self) -> Histograms:
        """The histograms of the growing tree."""
        assert self._histograms is not None, "a tree was begun"
        return self._histograms

    # A change of the nodes: `prepare`, then the caller fills the slots, then `answer`.

    def prepare(self, expansion: Expansion) -> list[int]:
        """Return the slots of the nodes that are to be summed. Their content is arbitrary.

        The larger children take over the slots of their parents.
        """
        if expansion.root is not None:
            nodes = expansion.build.tolist()
            self._begin(expansion.root, expansion.features, max(expansion.root.most_histograms, len(nodes)))
            slots = self.histograms.take(len(nodes))
            self.slots = dict(zip(nodes, slots, strict=True))
            return slots
        self._forget(expansion.forgotten)
        slots = self.histograms.take(len(expansion.siblings))
        for pair, slot in zip(expansion.siblings, slots, strict=True):
            self.slots[pair.larger] = self.slots.pop(pair.parent)
            self.slots[pair.smaller] = slot
        return slots

    def answer(self, expansion: Expansion) -> Expanded:
        """Compute the histograms of the larger children and find the best splits, if they are wanted."""
        if expansion.nodes:
            self._set_weight(expansion.weight)
            slots = [self.slots[node] for node in expansion.nodes]
            best = self._search(slots, [], self._context) if expansion.search else None
            return Expanded(None, best)
        if expansion.root is not None:
            return Expanded(self._root_sums(), self.search([0]) if expansion.search else None)
        smaller = [self.slots[pair.smaller] for pair in expansion.siblings]
        larger = [self.slots[pair.larger] for pair in expansion.siblings]
        if expansion.search:
            return Expanded(None, self._search(smaller, larger, self._context))
        pool, offsets = self.histograms.pool, self.histograms.offsets
        for _, one, other in expansion.siblings:
            subtract_features(pool[self.slots[other]], pool[self.slots[one]], self._features, offsets)
        return Expanded(None, None)

    def _begin(self, root: Root, features: np.ndarray, n_nodes: int) -> None:
        """Drop the histograms of the previous tree."""
        assert root.statistic is not None, "trees without a statistic have no histograms"
        assert root.rules is not None
        self._features, self._min_weight_fraction = features, root.rules.min_weight_fraction
        self._rules = rules = SearchRules(
            root.rules.gain,
            root.statistic.n_sums(self._n_classes),
            root.rules.min_rows,
            weighted=root.weight_factor > 0,
            categorical=self._categorical,
            least_category=MIN_ROWS * int(root.weight_factor or 1),
            n_words=self._n_words,
        )
        constants, unit = root.rules.constants, 1 / root.weight_factor if rules.weighted else 1.0
        self._context = context_of(constants, rules.mass_channel, unit) if constants else NO_CONTEXT
        n_channels = rules.mass_channel + 1
        self._forget(list(self.slots))
        if root.is_window:
            self._histograms = None  # frees the memory of other features
        if self._histograms is None or self._histograms.n_used != n_channels:
            own = features if root.is_window else self._own
            self._histograms = Histograms(self._n_bins, n_channels, n_nodes, own)

    def _root_sums(self) -> np.ndarray:
        """Return the sums over the root's histogram, (n_channels,) int64."""
        histograms, d = self.histograms, self._features[0]
        first, stop = histograms.offsets[d], histograms.offsets[d + 1]
        sums: np.ndarray = histograms.pool[self.slots[0], first:stop, : histograms.n_used].sum(axis=0)
        self._set_weight(int(sums[self._rules.mass_channel]))
        return sums

    def _set_weight(self, weight: int) -> None:
        """Accept the weight of all rows of the tree."""
        self._rules = replace(self._rules, min_weight=math.ceil(self._min_weight_fraction * weight))

    def search(self, nodes: list[int], context: np.ndarray | None = None) -> BestSplits:
        """Find the best splits of nodes that have histograms. `context`: of the gain; None: that of the tree's rules."""
        context = self._context if context is None else context
        return self._search([self.slots[node] for node in nodes], [], context)

    def _search(self, summed: list[int], subtracted: list[int], context: np.ndarray) -> BestSplits:
        """Search the nodes in the slots `summed`, and their siblings, in the slots `subtracted` of their parents."""
        return search(
            self.histograms,
            summed,
            subtracted,
            features=self._features,
            rules=self._rules,
            threads=self._threads,
            context=context,
        )

    def _forget(self, nodes: Sequence[int]) -> None:
        """Free the slots of nodes that will not be split. After a loss, not all of them were restored."""
        slots = [self.slots.pop(node) for node in nodes if node in self.slots]
        if slots:
            self.histograms.give_back(slots)
