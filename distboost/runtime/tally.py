"""The histograms of a question, summed over the blocks of one process by its threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distboost.kernels.histogram import TILE_BYTES, Target
from distboost.rows.protocols import Statistic
from distboost.rows.scales import Scale
from distboost.runtime.block import Block
from distboost.threads import Threads


class Slots(NamedTuple):
    """Memory for histograms, one slot for each node of a question."""

    pool: np.ndarray  # (n_slots, n_bins, channels with padding) int64
    slots: np.ndarray  # (n_nodes,) int64
    offsets: np.ndarray  # (n_features + 1,) int64: where the bins of each feature begin


class Share(NamedTuple):
    """What one thread sums at a time: some features, over a part of each node's rows."""

    features: np.ndarray  # (f,) int64
    part: int


class Tally:
    """Adds the rows of blocks to the histograms of nodes.

    No two threads write to the same sums: each takes some features. If there are more threads than features, each takes a part of
    every node's rows, too, and all parts but the first have sums of their own, which `finish` adds.

    Parameters
    ----------
    threads : Threads
    statistic : Statistic
    scale : Scale
        The scale of the statistic.
    weight_factor : float
    nodes : ndarray of shape (m,), int64
    features : ndarray of shape (f,), int64
    sums : Slots
        Their content is arbitrary.

    Attributes
    ----------
    n_rows : int
        The rows of these nodes that were added.
    """

    def __init__(
        self,
        threads: Threads,
        statistic: Statistic,
        scale: Scale,
        weight_factor: float,
        nodes: np.ndarray,
        features: np.ndarray,
        sums: Slots,
    ):
        self._threads = threads
        self._statistic, self._scale, self._weight_factor = statistic, scale, weight_factor
        self._nodes, self._features = nodes, features
        self.n_rows = 0
        groups = feature_groups(features, sums.offsets, sums.pool.shape[2], threads.n)
        self._n_parts = max(threads.n // max(len(groups), 1), 1)
        self._shares = [Share(group, part) for part in range(self._n_parts) for group in groups]
        self._sums = [sums]
        for _ in range(1, self._n_parts):
            pool = np.empty((len(nodes), *sums.pool.shape[1:]), np.int64)
            self._sums.append(Slots(pool, np.arange(len(nodes)), sums.offsets))
        self._fresh = True

    def add(self, blocks: list[Block]) -> None:
        """Add the rows of these blocks."""
        if not blocks:
            return
        spans = [np.ascontiguousarray(block.spans[self._nodes]) for block in blocks]

        def add_share(share: Share) -> None:
            pool, slots, offsets = self._sums[share.part]
            target = Target(share.features, offsets, slots, pool, self._fresh)
            for block, own in zip(blocks, spans, strict=True):
                part = _part_of(own, share.part, self._n_parts)
                self._statistic.histogram(block, part, target, self._scale, self._weight_factor)
                target = target._replace(fresh=False)

        self._threads.map(add_share, self._shares)
        self._fresh = False
        self.n_rows += sum(int(np.diff(own).sum()) for own in spans)

    def finish(self) -> None:
        """Add up the parts; without any rows, set the sums to 0."""
        (pool, slots, offsets), *others = self._sums
        if self._fresh:
            Target(self._features, offsets, slots, pool, self._fresh).cleared()
            return

        def add_up(share: Share) -> None:
            for d in share.features:
                bins = slice(offsets[d], offsets[d + 1])
                for other in others:
                    pool[slots, bins] += other.pool[:, bins]

        if others:
            self._threads.map(add_up, [share for share in self._shares if share.part == 0])


def feature_groups(
    features: np.ndarray, offsets: np.ndarray, n_channels: int, n_threads: int
) -> list[np.ndarray]:
    """Divide features into runs of about as many bins: as many as the threads, or a multiple, so that a run's sums fit in a tile.

    >>> feature_groups(np.arange(4), np.array([0, 90, 100, 105, 110]), 8, 2)
    [array([0]), array([1, 2, 3])]
    """
    n_bins = offsets[features + 1] - offsets[features]
    fitting = -(-int(n_bins.sum()) * 4 * n_channels // TILE_BYTES)
    n = min(-(-fitting // n_threads) * n_threads, len(features))
    ends = np.cumsum(n_bins)
    middle = ends - n_bins / 2
    return [
        group
        for group in np.split(features, np.searchsorted(middle, ends[-1] * np.arange(1, n) / n))
        if len(group)
    ]


def _part_of(spans: np.ndarray, part: int, n_parts: int) -> np.ndarray:
    """Return the part of each span, (m, 2) int32."""
    start, n_rows = spans[:, 0], np.diff(spans)[:, 0].astype(np.int64)
    ends = [start + n_rows * n // n_parts for n in (part, part + 1)]
    return np.stack(ends, axis=1).astype(np.int32)
