"""The first pass over the raw data: its classes, its weights, and the edges of its bins.

Labels are scanned by spans of rows, features by cells: some rows of some features. In any order and anywhere: what was found is
merged, one band of features after another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from distboost.data.labels import check, check_same_type, check_type, made, plain
from distboost.data.memory import returned_when_freed
from distboost.data.sources import load, pieces
from distboost.errors import DataError, LimitError
from distboost.kernels import binning, random
from distboost.weights.base import WEIGHT_BITS

SAMPLE_ROWS = 200_000  # rows whose quantiles become bin edges
SAMPLE_BYTES = 2**28
SCAN_ROWS = 2**18  # labels and weights that are looked at together
SCAN_NUMBERS = 2**19  # values that are converted and looked at together
MAX_CLASSES = 2**16
LARGEST_EXPONENT = 900  # of weights that are added up
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


@returned_when_freed()
def scan_labels(y: Any, weights: Any, first: int, options: ScanOptions) -> dict[Any, ClassScan]:
    """The classes in two parts (`weights` may be None) whose first row has the global number `first`."""
    labels = load_labels(y, options.y_place, first)
    w = load_weights(weights, len(labels), options.weight_place, first)
    classes: dict[Any, ClassScan] = {}
    for a in range(0, len(labels), SCAN_ROWS):
        found = _classes(labels[a : a + SCAN_ROWS], w[a : a + SCAN_ROWS], options)
        classes = merged_classes(classes, found, options)
    return classes


def _classes(labels: np.ndarray, w: np.ndarray, options: ScanOptions) -> dict[Any, ClassScan]:
    labels, w = labels[w > 0], w[w > 0]
    check_type(labels, options.y_place)
    found, index = np.unique(labels, return_inverse=True)
    largest = np.zeros(len(found))
    np.maximum.at(largest, index, w)
    whole = np.bincount(index, weights=w != np.floor(w), minlength=len(found)) == 0
    counts = np.bincount(index, minlength=len(found))
    return {
        label: ClassScan(*scan)
        for label, *scan in zip(plain(found), counts.tolist(), largest.tolist(), whole.tolist(), strict=True)
    }


def merged_classes(
    a: dict[Any, ClassScan], b: dict[Any, ClassScan], options: ScanOptions
) -> dict[Any, ClassScan]:
    """The classes of the rows of both."""
    if a and b:  # 1 and 1.0 would be the same key, whichever came first
        check_same_type(next(iter(a)), next(iter(b)), options.y_place)
    merged = dict(a)
    for label, scan in b.items():
        merged[label] = merged[label].merged(scan) if label in merged else scan
    return merged


class FeatureScan(NamedTuple):
    """What is known of some rows of some features."""

    first_row: int
    counts: np.ndarray  # (c,): distinct values of each feature; max_bins + 1: too many
    values: np.ndarray  # those of the features that do not have too many, one after another, ascending
    sample: np.ndarray  # (m, c)
    weights: np.ndarray  # (m,): of the sampled rows


@returned_when_freed()
def scan_features(
    x: Any, weights: Any, first_row: int, first_column: int, options: ScanOptions
) -> FeatureScan:
    """Scans some rows of some features: a part, the part of these rows' weights (or None), and where they begin."""
    n, n_features = x.shape
    w = None if weights is None else load_weights(weights, n, options.weight_place, first_row)
    sampled = _sampled(first_row, n, w, options)
    sample = np.empty(
        (np.count_nonzero(sampled), n_features), np.float32 if x.dtype == np.float32 else np.float64
    )
    size = 1 << (2 * options.max_bins + 1).bit_length()
    table, used = np.zeros((n_features, size)), np.zeros((n_features, size), bool)
    counts, infinite = np.zeros(n_features, np.int64), np.full(2, -1, np.int64)
    for row, column, X in numbers(x, options.x_place):
        rows, columns = slice(row, row + len(X)), slice(column, column + X.shape[1])
        known = np.ones(len(X)) if w is None else w[rows]
        binning.distinct_values(
            X, known, options.max_bins, table[columns], used[columns], counts[columns], infinite
        )
        if infinite[0] >= 0:
            i, j = infinite.tolist()
            raise infinite_value(
                options.x_place, first_row + row + i, first_column + column + j, float(X[i, j])
            )
        at = np.count_nonzero(sampled[:row])
        chosen = X[sampled[rows]]
        sample[at : at + len(chosen), columns] = chosen
        del X  # it may be a view of a chunk, which goes before the next one is read
    values = [np.sort(table[d, used[d]]) for d in np.flatnonzero(counts <= options.max_bins)]
    return FeatureScan(
        first_row, counts, np.concatenate([np.empty(0), *values]), sample,
        np.ones(len(sample)) if w is None else w[sampled],
    )  # fmt: skip


def _sampled(first: int, n: int, w: np.ndarray | None, options: ScanOptions) -> np.ndarray:
    """Which of the rows first .. first + n - 1 are in the sample: their numbers decide."""
    sampled = np.ones(n, bool) if w is None else w > 0
    if options.fraction < 1.0:
        key = random.key(options.seed, random.BIN_SAMPLE)
        for a in range(0, n, SCAN_ROWS):
            some = sampled[a : a + SCAN_ROWS]
            some &= random.uniforms(key, first + a, len(some)) < options.fraction
    return sampled


class FeatureBand:
    """What is found of some features, scan by scan, until all rows are scanned."""

    def __init__(self, n_features: int, max_bins: int):
        self.max_bins = max_bins
        self.known, self.counts = np.empty((n_features, max_bins)), np.zeros(n_features, np.int64)
        self.sample: list[tuple[int, np.ndarray, np.ndarray]] = []

    def add(self, scan: FeatureScan) -> None:
        binning.merge_distinct(scan.values, scan.counts, self.max_bins, self.known, self.counts)
        if len(scan.sample):
            self.sample.append((scan.first_row, scan.sample, scan.weights))

    def edges(self) -> list[np.ndarray]:
        """Midpoints between a feature's distinct values if there are few, else between sample quantiles."""
        self.sample.sort(key=lambda piece: piece[0])
        w = np.concatenate([np.empty(0), *(weights for *_, weights in self.sample)])
        # Their sums are to be finite; no quantile depends on a power of two.
        w = np.ldexp(w, min(LARGEST_EXPONENT - int(np.frexp(w.max(initial=0.0))[1]), 0))
        equal = bool((w == w[:1]).all())
        x, totals, out = np.empty(len(w)), np.empty(len(w)), np.empty(self.max_bins - 1)  # for all features
        edges = []
        for d, count in enumerate(self.counts):
            if count <= self.max_bins:
                edges.append(np.array([binning.midpoint(a, b) for a, b in pairwise(self.known[d, :count])]))
                continue
            np.concatenate([X[:, d] for _, X, _ in self.sample], out=x)
            self._sort(x, w, equal, totals)
            n_distinct = binning.add_up_equal(x, totals)
            n_edges = binning.quantile_edges(x[:n_distinct], totals[:n_distinct], self.max_bins, out)
            edges.append(out[:n_edges].copy())
        return edges

    @staticmethod
    def _sort(x: np.ndarray, w: np.ndarray, equal: bool, sorted_w: np.ndarray) -> None:
        """Sorts x in place, missing values last; `sorted_w` becomes the weights in that order."""
        if equal:  # in any order
            x.sort()
            sorted_w[:] = w
        else:
            order = np.argsort(x, kind="stable")
            x[:], sorted_w[:] = x[order], w[order]


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


def sample_rows(n_rows: int, n_features: int) -> int:
    """About how many rows are sampled."""
    return min(n_rows, SAMPLE_ROWS, max(1000, SAMPLE_BYTES // (8 * max(n_features, 1))))


def sample_fraction(n_rows: int, n_features: int) -> float:
    return sample_rows(n_rows, n_features) / max(n_rows, 1)


def check_rows(n_rows: int, place: str) -> None:
    """Raises unless so many rows can be trained on."""
    if n_rows == 0:
        raise DataError(f"{place} has 0 rows: at least 1 row of each of 2 classes is needed.")
    if n_rows > MAX_ROWS:
        raise LimitError(
            f"{place} has {n_rows} rows; integer sums hold at most {MAX_ROWS}. Train on fewer rows."
        )


def sorted_classes(
    scans: dict[Any, ClassScan], dtype: np.dtype, n_rows: int, options: ScanOptions
) -> np.ndarray:
    """The classes in ascending order, if they can be trained on."""
    if not scans:
        raise DataError(f"every row of {options.weight_place} has weight 0: nothing is left to train on.")
    labels = sorted(scans)
    check(labels, dtype, options.y_place)
    classes = made(labels, dtype)
    if dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise DataError(
            f"Unknown label type: continuous. {options.y_place} holds {labels[0]!r} and others that are not whole: class labels "
            "are expected. To train on ranges of a number, cut it into classes first."
        )
    if len(classes) < 2:
        raise DataError(
            f"{options.y_place} holds one class only ({labels[0]!r}) in {n_rows} rows: a classifier can't train "
            "on 1 class. At least 2 classes are needed."
        )
    if len(classes) > MAX_CLASSES:
        raise LimitError(
            f"{options.y_place} holds {len(classes)} classes, the limit is {MAX_CLASSES}. Are these class labels?"
        )
    return classes


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
    exponent: int = 0

    @classmethod
    def of(cls, class_weight: np.ndarray, scans: list[ClassScan]) -> WeightRule:
        exponent, mantissa = max(
            _product(c, scan.largest_weight) for c, scan in zip(class_weight.tolist(), scans, strict=True)
        )
        whole = all(
            scan.whole_weights and c == np.floor(c) for c, scan in zip(class_weight, scans, strict=True)
        )
        if not mantissa > 0:
            raise DataError(
                "every row has weight 0 after class_weight: nothing is left to train on. Give some class a weight above 0."
            )
        if whole and exponent <= WEIGHT_BITS + 1 and math.ldexp(mantissa, exponent) <= 2**WEIGHT_BITS:
            return cls(class_weight)
        beyond = 0 if -1021 <= exponent <= 1024 else exponent  # what a float holds
        largest = math.ldexp(mantissa, exponent - beyond)
        return cls(class_weight, WEIGHT_BITS - math.ceil(math.log2(largest)) - beyond)

    def apply(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        # A product of two weights may be beyond what a float holds, where the scaled one is not.
        (m, e), (n, f) = np.frexp(weights), np.frexp(self.class_weight[labels])
        return np.ldexp(m * n, e + f + self.exponent)


def _product(a: float, b: float) -> tuple[int, float]:
    """The exponent and the mantissa (0.5 to 1) of a product, which may be beyond what a float holds."""
    (m, e), (n, f) = math.frexp(a), math.frexp(b)
    mantissa, more = math.frexp(m * n)
    return (e + f + more if mantissa else -(2**16)), mantissa


# Loading and checking one span of rows.


def numbers(part: Any, place: str) -> Iterator[tuple[int, int, np.ndarray]]:
    """Pieces of a part, C-contiguous float32 or float64, each with its row and its column within the part."""
    for position, values in pieces(part):
        step = max(1, SCAN_NUMBERS // max(math.prod(values.shape[1:]), 1))
        for a in range(0, len(values), step):
            yield position[0] + a, position[-1], as_numbers(values[a : a + step], place)
        del values  # before the next one is read


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
    is_text = y.dtype.kind == "T"
    if is_text:
        y = y.astype(object)  # a missing one stays one
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
    return _text(y, place, first) if is_text else y


def _text(y: np.ndarray, place: str, first: int) -> np.ndarray:
    """Text of any length as text of one length, which cannot end with a NUL."""
    for row, label in enumerate(y):
        if label.endswith("\0"):
            raise DataError(
                f"{place} has the label {label!r:.100} in row {first + row}, which ends with a NUL. Strip it, or make the labels "
                "objects."
            )
    return np.array(y.tolist(), str)


def _missing(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind in "mM":
        return np.isnat(y)
    if y.dtype.kind == "O":
        return np.array([_is_missing(label) for label in y], bool)
    return np.zeros(len(y), bool)


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    number = isinstance(label, (float, np.floating, np.datetime64, np.timedelta64))
    return number and bool(label != label)  # others may not compare, or not to one answer


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
