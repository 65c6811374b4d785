"""The first pass over the raw data: its classes, its weights, and the edges of its bins.

Labels are scanned in spans of rows, features in cells (some rows of some features), in any order and in any process. The results
are merged, one band of features after another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from distboost.data.blocks import ClassScan
from distboost.data.categories import Counts, count_values, merge_counts
from distboost.data.checks import InfiniteValue, as_numbers, load_labels, load_weights, numbers
from distboost.data.labels import check, check_same_type, check_type, joined_type, made, plain, shown
from distboost.data.memory import returned_when_freed
from distboost.data.source import at_hand, spans
from distboost.data.sparse import SparseRows
from distboost.errors import DataError, LimitError
from distboost.kernels import binning, random, sparse

SAMPLE_ROWS = 200_000  # rows whose quantiles become bin edges
SAMPLE_BYTES = 2**28
SCAN_ROWS = 2**18  # labels and weights that are scanned together
MAX_CLASSES = 2**16
# 2^22 (a weighted error in units of 1/ERROR_FACTOR) times a weight of 2^8 times so many rows: 2^62
MAX_ROWS = 2**32


@dataclass(frozen=True)
class ScanOptions:
    """The parameters of a scan."""

    max_bins: int
    seed: int
    fraction: float  # the fraction of the rows that are sampled for quantiles
    x_place: str
    y_place: str
    weight_place: str
    categorical: tuple[int, ...] = ()  # features whose values are categories


class LabelScan(NamedTuple):
    """The scan of some labels: their type, and what is known of the rows of each class."""

    dtype: np.dtype
    classes: dict[Any, ClassScan]

    def merged(self, other: LabelScan, options: ScanOptions) -> LabelScan:
        dtype = joined_type(self.dtype, other.dtype)
        if self.classes and other.classes and dtype.kind == "O":  # 1 and 1.0 are the same key of a dict
            check_same_type(next(iter(self.classes)), next(iter(other.classes)), options.y_place)
        classes = dict(self.classes)
        for label, scan in other.classes.items():
            classes[label] = classes[label].merged(scan) if label in classes else scan
        return LabelScan(dtype, classes)


@returned_when_freed()
def scan_labels(y: Any, weights: Any, first: int, options: ScanOptions) -> LabelScan:
    """Scan parts of the labels and the weights (or None), whose first row has the global number `first`."""
    labels = load_labels(y, options.y_place, first)
    w = load_weights(weights, len(labels), options.weight_place, first)
    found = (_scanned(labels[a:b], w[a:b], options) for a, b in spans(0, len(labels), SCAN_ROWS))
    return reduce(lambda one, other: one.merged(other, options), found)


def _scanned(labels: np.ndarray, w: np.ndarray, options: ScanOptions) -> LabelScan:
    labels, w = labels[w > 0], w[w > 0]
    check_type(labels, options.y_place)
    found, index = np.unique(labels, return_inverse=True)
    largest = np.zeros(len(found))
    np.maximum.at(largest, index, w)
    whole = np.bincount(index, weights=w != np.floor(w), minlength=len(found)) == 0
    counts = np.bincount(index, minlength=len(found))
    scans = zip(counts.tolist(), largest.tolist(), whole.tolist(), strict=True)
    classes = {label: ClassScan(*scan) for label, scan in zip(plain(found), scans, strict=True)}
    return LabelScan(labels.dtype, classes)


@returned_when_freed()
def scan_weights(weights: Any, n_rows: int, first: int, place: str) -> ClassScan:
    """Scan a part of the weights, whose first row has the global number `first`, without regard to classes."""
    w = load_weights(weights, n_rows, place, first)
    counted = w[w > 0]
    return ClassScan(
        len(counted), float(counted.max(initial=0.0)), bool((counted == np.floor(counted)).all())
    )


class FeatureScan(NamedTuple):
    """The scan of some rows of some features."""

    first_row: int  # the global number of the first row
    # (n_columns,) int64: distinct values of each feature; max_bins + 1: more than max_bins.
    counts: np.ndarray
    # (sum of counts <= max_bins,) float64: the distinct values, feature by feature, ascending.
    values: np.ndarray
    sample: np.ndarray  # (n_sampled, n_columns) of the values' `sample_dtype`: the sampled rows
    weights: np.ndarray  # (n_sampled,) float64: their sample weights
    categories: Mapping[int, Counts] = {}  # of the features that have categories, by column


@returned_when_freed()
def scan_features(
    x: Any, weights: Any, first_row: int, first_column: int, options: ScanOptions
) -> FeatureScan:
    """Scan a part, given the part of its rows' weights (or None) and the global numbers of its first row and column."""
    x = at_hand(x)
    n, n_features = x.shape
    w = None if weights is None else load_weights(weights, n, options.weight_place, first_row)
    sampled = _sampled(first_row, n, w, options)
    # An array in memory that is sampled as a whole is not copied.
    whole = isinstance(x, np.ndarray) and x.dtype == sample_dtype(x.dtype) and sampled.all()
    sample = x if whole else np.empty((np.count_nonzero(sampled), n_features), sample_dtype(x.dtype))
    values = _Values(n_features, options.max_bins)
    categories: dict[int, Counts] = {
        d - first_column: {} for d in options.categorical if first_column <= d < first_column + n_features
    }
    by_entries = isinstance(x, SparseRows) and not categories and not x.stores_twice()
    if by_entries:
        values.add_stored(x, np.ones(n) if w is None else w, options.x_place, first_row, first_column)
        for (at, _), X in x.chosen(sampled).pieces():
            sample[at : at + len(X)] = X
    for row, column, X in () if by_entries else numbers(x, options.x_place):
        rows, columns = slice(row, row + len(X)), slice(column, column + X.shape[1])
        infinite = values.add(X, np.ones(len(X)) if w is None else w[rows], columns)
        if infinite is not None:
            i, j = infinite
            raise InfiniteValue(
                options.x_place, first_row + row + i, first_column + column + j, float(X[i, j])
            ).error()
        if not whole:
            at = np.count_nonzero(sampled[:row])
            chosen = X[sampled[rows]]
            sample[at : at + len(chosen), columns] = chosen
        for d in categories.keys() & set(range(column, columns.stop)):
            found = count_values(X[:, d - column], None if w is None else w[rows])
            merge_counts(categories[d], found, first_column + d, options.x_place)
        del X  # a view may keep a chunk in memory: it must go before the next one is read
    counts, distinct = values.found()
    weights = np.ones(len(sample)) if w is None else w[sampled]
    return FeatureScan(first_row, counts, distinct, sample, weights, categories)


class _Values:
    """The distinct values of each feature, at most `limit` of them."""

    def __init__(self, n_features: int, limit: int):
        self._limit, self._counts = limit, np.zeros(n_features, np.int64)
        self._present: np.ndarray | None = None  # (256, n_features) bool: the values of bytes
        size = 1 << (2 * limit + 1).bit_length()
        self._table, self._used = np.zeros((n_features, size)), np.zeros((n_features, size), bool)

    def add(self, X: np.ndarray, weights: np.ndarray, columns: slice) -> tuple[int, int] | None:
        """Add the values of some rows and columns. Return row and column of the first infinite value, if there is one."""
        if X.dtype == np.uint8:
            if self._present is None:
                self._present = np.zeros((256, len(self._counts)), bool)
            present = np.zeros((256, X.shape[1]), bool)
            binning.distinct_bytes(X, weights, present)
            self._present[:, columns] |= present
            return None
        infinite = np.full(2, -1, np.int64)
        binning.distinct_values(
            X,
            weights,
            self._limit,
            self._table[columns],
            self._used[columns],
            self._counts[columns],
            infinite,
        )
        return None if infinite[0] < 0 else (int(infinite[0]), int(infinite[1]))

    def add_stored(
        self, x: SparseRows, weights: np.ndarray, place: str, first_row: int, first_column: int
    ) -> None:
        """Add the values of rows by their stored entries; raise DataError if one is infinite."""
        stored = np.zeros(len(self._counts), np.int64)
        for row, found in x.entries():
            found.check_finite(place, first_row + row, first_column)
            w = weights[row : row + len(found.indptr) - 1]
            sparse.distinct_stored(
                found.indptr, found.columns, found.values, w, self._limit, self._table, self._used, self._counts, stored
            )  # fmt: skip
        has_zeros = stored < np.count_nonzero(weights > 0)
        self.add(as_numbers(np.where(has_zeros, 0.0, np.nan)[None], place), np.ones(1), slice(None))

    def found(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of values and the values, as in a `FeatureScan`."""
        if self._present is not None:
            counts = np.minimum(np.count_nonzero(self._present, axis=0), self._limit + 1)
            few = self._present[:, counts <= self._limit]
            return counts, np.nonzero(few.T)[1].astype(np.float64)
        few = np.flatnonzero(self._counts <= self._limit)
        feature, place = self._used[few].nonzero()
        values = self._table[few[feature], place]
        return self._counts, values[np.lexsort((values, feature))]


def sample_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of sampled values: their own, if its numbers take at most 4 bytes."""
    is_small = dtype.kind in "biuf" and dtype.itemsize <= 4
    return dtype.newbyteorder("=") if is_small else np.dtype(np.float64)


def _sampled(first: int, n: int, w: np.ndarray | None, options: ScanOptions) -> np.ndarray:
    """Return which of the rows first .. first + n - 1 are in the sample, (n,) bool. A hash of the row number decides."""
    sampled = np.ones(n, bool) if w is None else w > 0
    if options.fraction < 1.0:
        key = random.key(options.seed, random.BIN_SAMPLE)
        for a, b in spans(0, n, SCAN_ROWS):
            sampled[a:b] &= random.uniforms(key, first + a, b - a) < options.fraction
    return sampled


def sample_rows(n_rows: int, n_features: int) -> int:
    """Return the approximate number of sampled rows."""
    return min(n_rows, SAMPLE_ROWS, max(1000, SAMPLE_BYTES // (8 * max(n_features, 1))))


def sample_fraction(n_rows: int, n_features: int) -> float:
    """Return the fraction of rows that are sampled for quantiles."""
    return sample_rows(n_rows, n_features) / max(n_rows, 1)


def check_rows(n_rows: int, place: str) -> None:
    """Raise an error if there are no rows, or more than the integer sums can hold."""
    if n_rows == 0:
        raise DataError(
            f"{place} has 0 rows.", remedy="Pass at least 1 row of each of 2 classes.", where=place
        )
    if n_rows > MAX_ROWS:
        raise LimitError(
            f"{place} has {n_rows} rows, but integer sums hold at most {MAX_ROWS}.",
            remedy="Train on fewer rows.",
            where=place,
            value=n_rows,
        )


def sorted_classes(scan: LabelScan, n_rows: int, options: ScanOptions) -> np.ndarray:
    """Return the classes in ascending order, (n_classes,); raise an error if no classifier can be trained on them."""
    if not scan.classes:
        raise DataError(
            f"every row of {options.weight_place} has weight 0.",
            remedy="Set a weight above 0 for some rows.",
            where=options.weight_place,
        )
    labels = sorted(scan.classes)
    check(labels, scan.dtype, options.y_place)
    classes = made(labels, scan.dtype)
    if plain(classes) != labels:  # of parts of an array that have different types
        raise DataError(
            f"{options.y_place} has integers that the type of its other labels, {scan.dtype}, cannot hold.",
            remedy="Use one type for all.",
            where=options.y_place,
        )
    fractions = classes[classes != np.floor(classes)] if classes.dtype.kind == "f" else classes[:0]
    if len(fractions):
        raise DataError(
            f"Unknown label type: continuous. {options.y_place} has the label {shown(fractions[0])}, which is no integer, of "
            f"{len(classes)} labels.",
            remedy="Pass class labels; to predict ranges of a number, divide it into classes first.",
            where=options.y_place,
        )
    if len(classes) < 2:
        raise DataError(
            f"{options.y_place} has only one class ({shown(labels[0])}) in {n_rows} rows: a classifier can't train on 1 class.",
            remedy="Pass at least 2 classes.",
            where=options.y_place,
        )
    if len(classes) > MAX_CLASSES:
        raise LimitError(
            f"{options.y_place} has {len(classes)} classes, above the limit of {MAX_CLASSES}.",
            remedy="Check that these are class labels.",
            where=options.y_place,
        )
    return classes
