"""The first pass over the raw data: its classes, its weights, and the edges of its bins.

Spans of rows are scanned apart, in any order and anywhere; `Scan.merged` combines what was found, and `profile` draws the
conclusions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from distboost.data.sources import load
from distboost.errors import DataError, LimitError
from distboost.kernels import binning, random
from distboost.weighting.base import WEIGHT_BITS

SAMPLE_ROWS = 200_000  # rows whose quantiles become bin edges
SAMPLE_BYTES = 2**28
MAX_CLASSES = 2**16
# 2^22 (a weighted error in units of ERROR_UNIT) times a weight of 2^8 times so many rows: 2^62
MAX_ROWS = 2**32


@dataclass(frozen=True)
class ScanOptions:
    max_bins: int
    seed: int
    fraction: float  # of the rows that are sampled for quantiles
    x_place: str
    y_place: str
    weight_place: str


@dataclass
class Scan:
    """What is known of some rows."""

    n_rows: int = 0
    classes: dict[Any, ClassScan] = field(default_factory=dict)
    # Each feature's distinct values, ascending; None: more than max_bins of them.
    distinct: list[np.ndarray | None] = field(default_factory=list)
    # Spans of sampled rows, by their first row: (rows, their weights).
    sample: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def merged(self, other: Scan, max_bins: int) -> Scan:
        """What is known of the rows of both."""
        if not self.n_rows:
            return other
        if not other.n_rows:
            return self
        classes = dict(self.classes)
        for label, scan in other.classes.items():
            classes[label] = classes[label].merged(scan) if label in classes else scan
        distinct = [
            None if a is None or b is None else _at_most(max_bins, np.union1d(a, b))
            for a, b in zip(self.distinct, other.distinct, strict=True)
        ]
        return Scan(self.n_rows + other.n_rows, classes, distinct, self.sample | other.sample)


@dataclass(frozen=True)
class ClassScan:
    """The rows of one class, those of weight 0 left out."""

    n_rows: int
    largest_weight: float
    whole_weights: bool

    def merged(self, other: ClassScan) -> ClassScan:
        return ClassScan(
            self.n_rows + other.n_rows,
            max(self.largest_weight, other.largest_weight),
            self.whole_weights and other.whole_weights,
        )


def _at_most(limit: int, values: np.ndarray) -> np.ndarray | None:
    return values if len(values) <= limit else None


def scan_rows(x: Any, y: Any, weights: Any, first: int, options: ScanOptions) -> Scan:
    """Scans the rows of three parts (`weights` may be None); `first` is the global number of the first."""
    X, labels = as_numbers(load(x), options.x_place), load_labels(y, options.y_place, first)
    w = load_weights(weights, len(labels), options.weight_place, first)
    n, n_features = X.shape
    size = 1 << (2 * options.max_bins + 2).bit_length()
    table, used = np.zeros((n_features, size)), np.zeros((n_features, size), bool)
    counts, infinite = np.zeros(n_features, np.int64), np.full(2, -1, np.int64)
    binning.distinct_values(X, w, options.max_bins, table, used, counts, infinite)
    if infinite[0] >= 0:
        row, column = infinite.tolist()
        raise infinite_value(options.x_place, first + row, column, float(X[row, column]))
    distinct = [
        np.sort(table[d, used[d]]) if counts[d] <= options.max_bins else None for d in range(n_features)
    ]
    sampled = w > 0
    if options.fraction < 1.0:
        key = random.key(options.seed, random.BIN_SAMPLE)
        sampled &= random.uniforms(key, first, n) < options.fraction
    try:
        found, index = np.unique(labels[w > 0], return_inverse=True)
    except TypeError as error:
        raise DataError(
            f"{options.y_place} mixes labels of types that cannot be sorted: {error}. Use one type."
        ) from error
    classes = {}
    for c, label in enumerate(found.tolist()):
        own = w[w > 0][index == c]
        classes[label] = ClassScan(len(own), float(own.max()), bool((own == np.floor(own)).all()))
    return Scan(n, classes, distinct, {first: (X[sampled], w[sampled])})


@dataclass(frozen=True)
class Profile:
    """What binning and training need to know of the data.

    Attributes
    ----------
    n_rows, n_features : int
    classes : ndarray of shape (n_classes,)
        Sorted.
    class_scans : list of ClassScan
        In the order of the classes.
    edges : list of ndarray
        Per feature, ascending: the thresholds between its bins.
    """

    n_rows: int
    classes: np.ndarray
    class_scans: list[ClassScan]
    edges: list[np.ndarray]

    @property
    def n_features(self) -> int:
        return len(self.edges)

    @property
    def n_bins(self) -> np.ndarray:
        """Bins per feature, the one for missing values not counted."""
        return np.array([len(edges) + 1 for edges in self.edges], np.int64)


def sample_fraction(n_rows: int, n_features: int) -> float:
    rows = min(SAMPLE_ROWS, max(1000, SAMPLE_BYTES // (8 * max(n_features, 1))))
    return min(1.0, rows / max(n_rows, 1))


def profile(scan: Scan, options: ScanOptions, dtype: np.dtype) -> Profile:
    """The conclusions from a scan of all rows."""
    if scan.n_rows == 0:
        raise DataError(f"{options.x_place} has 0 rows: at least 1 row of each of 2 classes is needed.")
    if scan.n_rows > MAX_ROWS:
        raise LimitError(
            f"{options.x_place} has {scan.n_rows} rows; integer sums hold at most {MAX_ROWS}. Train on fewer rows."
        )
    if not scan.classes:
        raise DataError(f"every row of {options.weight_place} has weight 0: nothing is left to train on.")
    try:
        labels = sorted(scan.classes)
    except TypeError as error:
        raise DataError(
            f"{options.y_place} mixes labels of types that cannot be sorted: {error}. Use one type."
        ) from error
    classes = np.array(labels, dtype=dtype)
    if dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise DataError(
            f"Unknown label type: continuous. {options.y_place} holds {labels[0]!r} and others that are not whole: class labels "
            "are expected. To train on ranges of a number, cut it into classes first."
        )
    if len(classes) < 2:
        raise DataError(
            f"{options.y_place} holds one class only ({labels[0]!r}) in {scan.n_rows} rows: a classifier can't train "
            "on 1 class. At least 2 classes are needed."
        )
    if len(classes) > MAX_CLASSES:
        raise LimitError(
            f"{options.y_place} holds {len(classes)} classes, the limit is {MAX_CLASSES}. Are these class labels?"
        )
    return Profile(scan.n_rows, classes, [scan.classes[label] for label in labels], _edges(scan, options))


def _edges(scan: Scan, options: ScanOptions) -> list[np.ndarray]:
    """Midpoints between a feature's distinct values if there are few, else between sample quantiles."""
    spans = [scan.sample[first] for first in sorted(scan.sample)]
    w = np.concatenate([weights for _, weights in spans])
    edges = []
    for d, values in enumerate(scan.distinct):
        if values is not None:
            edges.append(np.array([binning.midpoint(a, b) for a, b in pairwise(values)]))
            continue
        x = np.concatenate([X[:, d] for X, _ in spans]).astype(np.float64)
        known = ~np.isnan(x)
        distinct, index = np.unique(x[known], return_inverse=True)
        out = np.empty(options.max_bins - 1)
        n = binning.quantile_edges(
            distinct, np.bincount(index, weights=w[known], minlength=len(distinct)), options.max_bins, out
        )
        edges.append(out[:n].copy())
    return edges


def class_weights(class_weight: Any, profile: Profile) -> np.ndarray:
    """The weight of each class, shape (n_classes,)."""
    n = np.array([scan.n_rows for scan in profile.class_scans])
    if class_weight is None:
        return np.ones(len(n))
    if class_weight == "balanced":
        return n.sum() / (len(n) * n)
    known = set(profile.classes.tolist())
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise DataError(
            f"class_weight names {unknown[0]!r}, which is not among the classes {profile.classes.tolist()}."
        )
    weights = np.array([float(class_weight.get(label, 1.0)) for label in profile.classes.tolist()])
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise DataError(f"class_weight is {dict(class_weight)}: weights must be finite and at least 0.")
    return weights


@dataclass(frozen=True)
class WeightRule:
    """The weight of a training row: its sample weight times its class's weight times a power of two.

    Whole weights up to 2^WEIGHT_BITS stay whole, so that a row of weight 2 is the row twice; others are scaled to between half of
    that and all of it, where they keep the most digits.
    """

    class_weight: np.ndarray  # (n_classes,) float64
    unit: float

    @classmethod
    def of(cls, class_weight: np.ndarray, scans: list[ClassScan]) -> WeightRule:
        largest = max(c * scan.largest_weight for c, scan in zip(class_weight, scans, strict=True))
        whole = all(
            scan.whole_weights and c == np.floor(c) for c, scan in zip(class_weight, scans, strict=True)
        )
        if not largest > 0:
            raise DataError(
                "every row has weight 0 after class_weight: nothing is left to train on. Give some class a weight above 0."
            )
        if whole and largest <= 2**WEIGHT_BITS:
            return cls(class_weight, 1.0)
        return cls(class_weight, 2.0 ** (WEIGHT_BITS - math.ceil(math.log2(largest))))

    def apply(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return weights * self.class_weight[labels] * self.unit


# Loading and checking one span of rows.


def as_numbers(X: np.ndarray, place: str) -> np.ndarray:
    """X as float32 or float64, two-dimensional, C-contiguous."""
    if X.ndim != 2:
        raise DataError(
            f"{place} has {X.ndim} dimensions, expected 2: (rows, features). Reshape your data, for one feature "
            "with X.reshape(-1, 1)."
        )
    if X.dtype.kind == "c":
        raise DataError(f"{place}: Complex data not supported. Give real numbers.")
    if X.dtype not in (np.float32, np.float64):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{place} of type {X.dtype} cannot be read as numbers: {error}. Encode it first."
            ) from error
    return np.ascontiguousarray(X)


def infinite_value(place: str, row: int, column: int, value: float) -> DataError:
    return DataError(
        f"{place} contains an infinite value (inf) in row {row}, column {column}: {value}. Values must be finite, or NaN where "
        "they are missing."
    )


def load_labels(part: Any, place: str, first: int) -> np.ndarray:
    """One label per row; raises if one is missing."""
    y = load(part)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise DataError(f"{place} has shape {y.shape}, expected one label per row: (rows,).")
    if y.dtype.kind == "T":
        y = np.array(y.tolist(), dtype=str)
    if y.dtype.kind == "f" and np.isinf(y).any():
        row = int(np.flatnonzero(np.isinf(y))[0])
        raise DataError(
            f"{place} has an infinite label ({y[row]}) in row {first + row}. Leave unlabelled rows out."
        )
    missing = _missing(y)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise DataError(
            f"{place} has a missing label (NaN) in row {first + row}, {missing.sum()} in this block. Leave unlabelled rows out."
        )
    return y


def _missing(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind == "M":
        return np.isnat(y)
    if y.dtype.kind == "O":
        return np.array([v is None or type(v).__name__ == "NAType" or bool(v != v) for v in y], bool)
    return np.zeros(len(y), bool)


def load_weights(part: Any, n_rows: int, place: str, first: int) -> np.ndarray:
    """One finite weight >= 0 per row; 1 if there is no part."""
    if part is None:
        return np.ones(n_rows)
    w = load(part).astype(np.float64)
    if w.ndim == 2 and w.shape[1] == 1:
        w = w[:, 0]
    if w.ndim != 1:
        raise DataError(f"{place} has shape {w.shape}, expected one weight per row: (rows,).")
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(f"{place} is {w[row]} in row {first + row}: weights must be finite and at least 0.")
    return w


def encode_labels(
    labels: np.ndarray, weights: np.ndarray, classes: np.ndarray, place: str, first: int
) -> np.ndarray:
    """The index of each label among the sorted classes, int32; raises for a label that is not among them.

    A row of weight 0 is not there: its label may be any, and becomes some index.
    """
    try:
        index = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        known = (classes[index] == labels) | (weights == 0)
    except TypeError as error:
        raise DataError(f"{place} holds labels of another type than the training labels: {error}.") from error
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise DataError(
            f"{place} has the label {labels[row]!r} in row {first + row}, which is not among the {len(classes)} classes "
            "trained on."
        )
    return index.astype(np.int32)
