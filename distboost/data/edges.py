"""The edges of bins, from the scans of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import chain

import numpy as np

from distboost.data.categories import Categories, Counts, merge_counts
from distboost.data.scan import FeatureScan
from distboost.data.source import spans
from distboost.kernels import binning
from distboost.threads import Threads

# The largest exponent (base 2) of weights that are added, so that their sums are finite.
LARGEST_EXPONENT = 900
COLUMN_BYTES = 2**22  # of sampled values that a thread copies together, so that it reads whole cache lines
COPIED_ROWS = 512  # of them
GROUPS = 4  # of features for each thread: the thread that is free takes the next one
PROBE = 64  # values that show whether it pays to count
RANGE = 2**16  # whole numbers within a range of so many are counted, not sorted


def columns_bytes(n_sampled: int, item: int) -> int:
    """Return the memory in which a thread finds edges, from so many sampled values of `item` bytes for each feature."""
    return max(COLUMN_BYTES, n_sampled * item) + 16 * n_sampled + 8 * RANGE


class FeatureBand:
    """Merges the scans of some features until all rows are scanned."""

    def __init__(self, n_features: int, max_bins: int):
        self.max_bins = max_bins
        self.known, self.counts = np.empty((n_features, max_bins)), np.zeros(n_features, np.int64)
        self.sample: list[tuple[int, np.ndarray, np.ndarray]] = []
        self.categories: dict[int, Counts] = {}  # by column

    def add(self, scan: FeatureScan, first: int = 0, place: str = "X") -> None:
        """Add the scan of some rows; errors name the features of this `place`, of which `first` is the band's first."""
        for d, counts in scan.categories.items():
            merge_counts(self.categories.setdefault(d, {}), counts, first + d, place)
        binning.merge_distinct(scan.values, scan.counts, self.max_bins, self.known, self.counts)
        if len(scan.sample):
            self.sample.append((scan.first_row, scan.sample, scan.weights))

    def edges(self, threads: Threads) -> list[np.ndarray]:
        """Return the edges of each feature, (n_edges,) float64: midpoints between few distinct values, else quantiles.

        Those of categories lie between their bins.
        """
        self.sample.sort(key=lambda piece: piece[0])
        w = np.concatenate([np.empty(0), *(weights for *_, weights in self.sample)])
        # Keeps their sums finite; quantiles do not depend on a common power of two.
        w = np.ldexp(w, min(LARGEST_EXPONENT - int(np.frexp(w.max(initial=0.0))[1]), 0))
        n_groups = GROUPS if threads.n > 1 else 1
        groups = spans(0, len(self.counts), -(-len(self.counts) // (n_groups * threads.n)))
        return list(chain.from_iterable(threads.map(lambda group: self._edges(*group, w), groups)))

    def found(self, d: int) -> Categories:
        """Return the categories of column d."""
        return Categories.of(self.categories[d], self.max_bins)

    def _edges(self, first: int, stop: int, w: np.ndarray) -> list[np.ndarray]:
        """Return the edges of the features first .. stop - 1, given the weights of the sampled rows, (n_sampled,) float64."""
        quantiles = _Quantiles(w, self.max_bins)
        many = [d for d in range(first, stop) if self.counts[d] > self.max_bins and d not in self.categories]
        columns = quantiles.columns([X for _, X, _ in self.sample], many)
        found = {d: quantiles.edges(column) for d, column in zip(many, columns, strict=True)}
        found.update({d: self.found(d).edges for d in self.categories if first <= d < stop})
        return [
            found[d] if d in found else midpoints(self.known[d, : self.counts[d]]) for d in range(first, stop)
        ]


class _Quantiles:
    """Finds the edges of features with many values, one after another.

    All features use the same memory, because new memory causes page faults.

    Parameters
    ----------
    weights : ndarray of shape (n_sampled,), float64
        Weights of the sampled rows.
    max_bins : int
    """

    def __init__(self, weights: np.ndarray, max_bins: int):
        n = len(weights)
        least, largest = weights.min(initial=np.inf), weights.max(initial=-np.inf)
        self._w, self._max_bins = weights, max_bins
        self._counted, self._equal = least > 0, least == largest
        self._values, self._totals = np.empty(n), np.empty(n)
        self._counts, self._edges = np.empty(min(RANGE, 4 * n)), np.empty(max_bins - 1)

    def columns(self, pieces: list[np.ndarray], features: list[int]) -> Iterator[np.ndarray]:
        """Yield the sampled values of each feature, (n_sampled,), which may be changed."""
        if not pieces:  # of few rows of weight above 0, none may be in the sample
            yield from np.empty((len(features), 0))
            return
        n, dtype = len(self._w), reduce(np.promote_types, {piece.dtype for piece in pieces})
        block = np.empty((max(COLUMN_BYTES // (n * dtype.itemsize), 1), n), dtype)
        for a, b in spans(0, len(features), len(block)):
            some = features[a:b]
            consecutive = some[-1] - some[0] == len(some) - 1
            _copy_columns(pieces, slice(some[0], some[-1] + 1) if consecutive else some, block[: b - a])
            yield from block[: b - a]

    def edges(self, column: np.ndarray) -> np.ndarray:
        n = self._total(column)
        n_edges = binning.quantile_edges(self._values[:n], self._totals[:n], self._max_bins, self._edges)
        return self._edges[:n_edges].copy()

    def _total(self, column: np.ndarray) -> int:
        """Find the distinct values in ascending order and the total weight of each; return their number.

        Weights of equal values are added in the order of the rows, so that it does not matter whether values are counted or
        sorted.
        """
        values, totals = self._values, self._totals
        if self._counted and _may_be_whole(column[:PROBE]):
            values[:], totals[:] = column, self._w
            n = int(binning.count_whole(values, totals, self._counts))
            if n >= 0:
                return n
        if self._equal:  # in any order
            column.sort()
            values[:], totals[:] = column, self._w
        else:
            order = np.argsort(column, kind="stable")
            values[:], totals[:] = column[order], self._w[order]
        return int(binning.add_up_equal(values, totals))


def _copy_columns(pieces: list[np.ndarray], features: slice | list[int], out: np.ndarray) -> None:
    """Copy columns of all pieces to the rows of `out`, a few rows at a time, which fit in the cache."""
    first = 0
    for X in pieces:
        for a, b in spans(0, len(X), COPIED_ROWS):
            out[:, first + a : first + b] = X[a:b, features].T
        first += len(X)


def _may_be_whole(values: np.ndarray) -> bool:
    return values.dtype.kind != "f" or bool((np.isnan(values) | (values == np.floor(values))).all())


def midpoints(values: np.ndarray) -> np.ndarray:
    """Return the number midway between each value and the next, as `binning.midpoint` does; values are (n,) float64."""
    a, b = values[:-1], values[1:]
    middle = 0.5 * a + 0.5 * b
    return np.where((a <= middle) & (middle < b), middle, a)


def load_merge() -> None:
    """Load the kernels that merge scans and find edges, or compile them: by a few rows of features with many values."""
    band = FeatureBand(n_features=3, max_bins=2)
    values, counts = np.array([0.0, 1.0]), np.array([2, 3, 3])
    sample = np.arange(9.0).reshape(3, 3) * (1.0, 1.0, 0.3)
    band.add(FeatureScan(0, counts, values, sample, np.ones(3)))
    with Threads(1) as threads:
        band.edges(threads)
