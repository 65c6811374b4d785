"""What histograms sum: the rows of nodes, with a vector for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from distboost.kernels import stored_bins
from distboost.kernels.histogram import (
    FEWEST_ROWS,
    LARGEST,
    MOST_ROWS,
    RowAddresses,
    Target,
    class_histogram,
    class_histogram_of_blocks,
    dense_histogram,
    narrow_histogram,
    tile_for,
    wide_histogram,
)
from distboost.kernels.stored_bins import StoredAddresses
from distboost.rows.stored_bins import StoredBins


class Summands(NamedTuple):
    """Rows of some nodes, in arrays that other rows share.

    Attributes
    ----------
    bins : ndarray of shape (n, D), uint8, or StoredBins
    order : ndarray of shape (r,), int32
    spans : ndarray of shape (m, 2), int32
        Node m has the rows ``order[spans[m, 0]:spans[m, 1]]``.
    vectors : ndarray of shape (n, channels), int32 or int64, or (n,), int64
        What each row adds to the bins of its features: a vector, or one number in the channel of the row's class.
    varying : ndarray of shape (D,), bool
        Whether the rows have more than one bin of each feature.
    largest : float
        A bound on the magnitude of the numbers in int32 vectors.
    classes : ndarray of shape (n,), int32, or None
        The class of each row, if the vectors are single numbers.
    weights : ndarray of shape (n,), float64, or None
        The rows' own weights, if the vectors are single numbers: vectors contain them.
    n_classes : int
        Their number, if the vectors are single numbers.
    """

    bins: np.ndarray | StoredBins
    order: np.ndarray
    spans: np.ndarray
    vectors: np.ndarray
    varying: np.ndarray
    largest: float
    classes: np.ndarray | None = None
    weights: np.ndarray | None = None
    n_classes: int = 0

    @property
    def dense(self) -> np.ndarray:
        """The bins, (n, D) uint8, of rows that hold all."""
        assert not isinstance(self.bins, StoredBins)
        return self.bins

    @property
    def stored(self) -> StoredBins:
        """The bins of rows of which only some are stored."""
        assert isinstance(self.bins, StoredBins)
        return self.bins

    @property
    def n_rows(self) -> int:
        """The rows of all nodes."""
        return int((self.spans[:, 1] - self.spans[:, 0]).sum())

    def of_nodes(self, nodes: np.ndarray | slice) -> Summands:
        """Return the rows of some nodes, by their positions."""
        return self._replace(spans=self.spans[nodes])

    def share(self, number: int, n_shares: int) -> Summands:
        """Return the share of each node's rows with this number."""
        if n_shares == 1:
            return self
        start, n_rows = self.spans[:, 0], np.diff(self.spans)[:, 0].astype(np.int64)
        ends = [start + n_rows * n // n_shares for n in (number, number + 1)]
        return self._replace(spans=np.stack(ends, axis=1).astype(np.int32))


def add_histograms(
    summands: Sequence[Summands], target: Target, weight_factor: float, deferred: bool = False
) -> None:
    """Sum vectors of one statistic by node, feature and bin.

    Parameters
    ----------
    summands : sequence of Summands
        Of the same nodes.
    target : Target
        The features to sum, and the histograms of the nodes to which the vectors are added.
    weight_factor : float
        Rows' own weights are summed in units of 1/weight_factor; 0: they are not summed.
    deferred : bool, default=False
        Whether the sums of usual bins may be left to `complete_histograms`.
    """
    stored = [some for some in summands if isinstance(some.bins, StoredBins)]
    if stored:
        dense = [some for some in summands if not isinstance(some.bins, StoredBins)]
        if dense:
            add_histograms(dense, target, weight_factor)
            target = target._replace(fresh=False)
        _add_stored(stored, target, weight_factor, deferred)
    elif tile_rows := rows_of_tile(summands):
        _add_narrow(summands, target, tile_rows)
    else:
        _add_dense(summands, target, weight_factor)


def _add_dense(summands: Sequence[Summands], target: Target, weight_factor: float) -> None:
    """Add int64 vectors, or single numbers."""
    features, offsets, slots, pool = target.cleared()
    for some in summands:
        rows = some.dense, some.order, *np.ascontiguousarray(some.spans.T)
        if some.classes is None:
            dense_histogram(*rows, some.vectors, features, offsets, slots, pool)
        else:
            class_histogram(
                *rows, some.classes, some.vectors, some.weights, weight_factor, some.n_classes, features, offsets, slots, pool
            )  # fmt: skip


def complete_histograms(usual: np.ndarray, target: Target) -> None:
    """Set the sums of usual bins, (D,) uint8, to what the first feature's bins together have more than a feature's other bins."""
    features, offsets, slots, pool, _ = target
    stored_bins.complete(features, usual, _totals(target), offsets, slots, pool)


def _totals(target: Target) -> np.ndarray:
    """Return the sums of all rows that were added to the nodes, (m, channels) int64."""
    first = target.features[0]
    bins = slice(target.offsets[first], target.offsets[first + 1])
    totals: np.ndarray = target.pool[target.slots, bins].sum(axis=1)
    return totals


def _add_stored(
    summands: Sequence[Summands], target: Target, weight_factor: float, deferred: bool = False
) -> None:
    """Add vectors of rows of which only some bins are stored."""
    if not len(target.features):
        return
    if tile_rows := rows_of_tile(summands, LARGEST):
        in_tiles = np.ones(len(target.slots), bool)
        if deferred and not target.fresh:
            in_tiles = _fill_tiles(summands, target)
        _add_stored_narrow(*_of_nodes(summands, target, np.flatnonzero(in_tiles)), tile_rows)
        if in_tiles.all():
            return
        summands, target = _of_nodes(summands, target, np.flatnonzero(~in_tiles))
    features, offsets, slots, pool = target.cleared()
    totals = _totals(target)
    is_summed, span = np.zeros(len(offsets) - 1, bool), features[[0, -1]] + [0, 1]
    is_summed[features] = True
    for some in summands:
        rows = *some.stored.rows, some.order, *np.ascontiguousarray(some.spans.T)
        places = is_summed, span, offsets, slots, pool, totals
        if some.classes is None:
            stored_bins.add_stored(*rows, some.vectors, *places)
        else:
            stored_bins.add_stored_by_class(
                *rows, some.classes, some.vectors, some.weights, weight_factor, some.n_classes, *places
            )
    completed = features[:1] if deferred else features
    stored_bins.complete(completed, summands[0].stored.usual, totals, offsets, slots, pool)


def _of_nodes(
    summands: Sequence[Summands], target: Target, nodes: np.ndarray
) -> tuple[list[Summands], Target]:
    """Return the rows of some nodes, by their positions, and the target for them."""
    return [some.of_nodes(nodes) for some in summands], target._replace(slots=target.slots[nodes])


def _fill_tiles(summands: Sequence[Summands], target: Target) -> np.ndarray:
    """Return whether each node has so many stored bins that tiles save time: a pass over the sums takes as long as some bins."""
    n_rows = np.sum([np.diff(some.spans)[:, 0] for some in summands], axis=0, dtype=np.int64)
    share = sum(len(some.stored.value) for some in summands) / sum(some.stored.n_rows for some in summands)
    features, offsets = target.features, target.offsets
    n_bins = int((offsets[features + 1] - offsets[features]).sum())
    return np.asarray(n_rows * (share * len(features) / (len(offsets) - 1)) >= n_bins)


def _add_stored_narrow(summands: Sequence[Summands], target: Target, tile_rows: int) -> None:
    """Add int32 vectors, of which no sum over `tile_rows` rows overflows, of rows of which only some bins are stored."""
    arrays = [(*some.stored.rows, some.order, some.vectors) for some in summands]
    start, stop = (np.array([some.spans[:, side] for some in summands]) for side in (0, 1))
    features, offsets, slots, pool, fresh = target
    tile, usual = tile_for(target, n_more=1), summands[0].stored.usual
    stored_bins.add_stored_narrow(
        StoredAddresses.of(arrays), start, stop, tile_rows, features, usual, offsets, fresh, tile, slots, pool
    )


def _add_narrow(summands: Sequence[Summands], target: Target, tile_rows: int) -> None:
    """Add int32 vectors, of which no sum over `tile_rows` rows overflows."""
    features, constant = constant_apart(summands, target.features)
    _, offsets, slots, pool, fresh = target
    start, stop = (np.array([some.spans[:, side] for some in summands]) for side in (0, 1))
    tile = tile_for(target._replace(features=features))
    rows = addresses(summands, 0.0)
    narrow_histogram(rows, start, stop, tile_rows, features, constant, offsets, fresh, tile, slots, pool)


def addresses(summands: Sequence[Summands], weight_factor: float) -> RowAddresses:
    """Return where the arrays of all rows lie, for the kernel of `summation`."""
    vectors = [some.vectors if some.classes is None else some.vectors[:, None] for some in summands]
    rows = [(some.dense, some.order, own) for some, own in zip(summands, vectors, strict=True)]
    known = [(some.classes, some.weights) for some in summands]
    classes = [(labels, weights) for labels, weights in known if labels is not None and weights is not None]
    return RowAddresses.of(rows, classes, weight_factor, summands[0].n_classes)


def summation(summands: Sequence[Summands]) -> Any:
    """Return the kernel that sums the vectors of all blocks in one call."""
    if summands[0].classes is not None:
        return class_histogram_of_blocks
    return narrow_histogram if summands[0].vectors.dtype == np.int32 else wide_histogram


def rows_of_tile(summands: Sequence[Summands], most: int = MOST_ROWS) -> int:
    """Return the most rows, up to `most`, whose sums fit in a tile of 32-bit sums; 0: so few that tiles are of no use."""
    if not summands or summands[0].vectors.dtype != np.int32:
        return 0
    found = min(int(LARGEST / max(some.largest for some in summands)), most)
    return found if found >= FEWEST_ROWS else 0


def constant_apart(summands: Sequence[Summands], features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide features into those to visit, at least one, and those of which all rows have the same bin."""
    varies = summands[0].varying[features]
    if varies.all():  # nearly always
        return features, features[:0]
    varies = np.any([some.varying[features] for some in summands], axis=0)
    filled = [some.dense for some in summands if len(some.dense)]
    for bins in filled[1:]:
        varies |= bins[0, features] != filled[0][0, features]
    if len(summands[0].dense) == 0:
        varies[:] = True  # the first rows say which bin
    varies[0] = True  # the totals of the constant ones come from the first feature
    return features[varies], features[~varies]
