"""Trees whose histograms do not fit in memory: nodes and features are summed and searched a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from distboost.kernels import simd
from distboost.rows.messages import BestSplits, Expanded, Expansion, Root, Siblings


class Windows:
    """Divides questions about histograms into several, none of which needs more than the given memory.

    No histogram is kept. So both children of a split are summed, and nothing is subtracted.

    Parameters
    ----------
    n_bytes : int
        Of the sums of a question in one process.
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    """

    def __init__(self, n_bytes: int, n_bins: np.ndarray):
        self._n_bytes, self._n_bins = n_bytes, n_bins

    def begin(self, root: Root, n_classes: int) -> None:
        """Begin a new tree."""
        assert root.statistic is not None
        n_channels = root.statistic.n_sums(n_classes) + 1 + (root.weight_factor > 0)
        self._root, self._bin_bytes = root._replace(is_window=True), 8 * simd.padded_sums(n_channels)
        self._weight = 0

    def expanded(self, ask: Callable[[Expansion], Expanded]) -> Expanded:
        """Return the answer to the question that begins the tree."""
        found = None
        for window in self._windows(1):
            answer = ask(Expansion(window, self._root, search=self._root.search))
            found = answer if found is None else found.combined(answer)
        assert found is not None
        assert found.sums is not None
        self._weight = int(found.sums[-1])
        return found

    def best_splits(
        self, ask: Callable[[Expansion], Expanded], siblings: Sequence[Siblings]
    ) -> BestSplits | None:
        """Return the best splits of the smaller children, then those of the larger ones."""
        nodes = [pair.smaller for pair in siblings] + [pair.larger for pair in siblings]
        found: BestSplits | None = None
        most = self._most_nodes()
        for some in (nodes[n : n + most] for n in range(0, len(nodes), most)):
            best: BestSplits | None = None
            for window in self._windows(len(some)):
                answer = ask(Expansion(window, self._root, nodes=tuple(some), weight=self._weight)).best
                assert answer is not None
                best = answer if best is None else best.combined(answer)
            assert best is not None
            found = best if found is None else found.followed_by(best)
        return found

    def best_split(
        self,
        ask: Callable[[Expansion], Expanded],
        search: Callable[[int, np.ndarray], BestSplits],
        node: int,
        context: np.ndarray,
    ) -> BestSplits:
        """Return the best split of a node, with a gain that depends on the rest of the tree."""
        best: BestSplits | None = None
        for window in self._windows(1):
            ask(Expansion(window, self._root, search=False, nodes=(node,), weight=self._weight))
            answer = search(node, context)
            best = answer if best is None else best.combined(answer)
        assert best is not None
        return best

    def _most_nodes(self) -> int:
        """Return the number of nodes that can be summed over one feature."""
        return max(self._n_bytes // (self._bin_bytes * int((self._n_bins[self._root.features] + 1).max())), 1)

    def _windows(self, n_nodes: int) -> Iterator[np.ndarray]:
        """Yield as many features as fit, (m,) int64, until all had their turn."""
        features = self._root.features
        ends = np.cumsum(self._n_bins[features] + 1)
        most = self._n_bytes // (self._bin_bytes * n_nodes)
        first, before = 0, 0
        while first < len(features):
            stop = max(int(np.searchsorted(ends, before + most, side="right")), first + 1)
            yield features[first:stop]
            first, before = stop, int(ends[stop - 1])
