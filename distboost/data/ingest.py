"""Scans sources and bins them into blocks, on any `TaskRunner`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from distboost.data.blocks import BinnedRows, ClassScan, Profile, TaskRunner
from distboost.data.categories import Categories, put_bins
from distboost.data.checks import as_numbers, check_finite, encode_labels, load_labels, load_weights, numbers
from distboost.data.edges import FeatureBand
from distboost.data.ingest_plan import IngestPlan
from distboost.data.memory import returned_when_freed
from distboost.data.row_weights import WeightRule
from distboost.data.scan import (
    LabelScan,
    ScanOptions,
    check_rows,
    sample_fraction,
    scan_features,
    scan_labels,
    scan_weights,
    sorted_classes,
)
from distboost.data.source import Source, at_hand, spans
from distboost.data.sparse import SparseRows
from distboost.errors import DataError
from distboost.io.phases import Advance
from distboost.kernels import binning, sparse
from distboost.threads import Threads

if TYPE_CHECKING:
    from distboost.data.dataset import RawDataset

BLOCK_ROWS = 65_536  # the most rows of a block
LEAST_BLOCK_ROWS = 1_024
BLOCK_BYTES = 2**23  # of bins in a block, between these bounds


def block_rows(n_features: int) -> int:
    """Return the largest number of rows in a block: about BLOCK_BYTES of bins."""
    return min(BLOCK_ROWS, max(LEAST_BLOCK_ROWS, BLOCK_BYTES // max(n_features, 1)))


def block_spans(source: Source, n_parallel: int) -> list[tuple[int, int]]:
    """Return the span of rows of each block: at least `n_parallel` blocks if possible, divided between small chunks.

    The blocks are about equally long, so that threads that share them end at the same time.
    """
    n = source.n_rows
    most = min(block_rows(source.shape[1]), max(1, -(-n // max(n_parallel, 1))))
    step = source.chunk_rows if source.chunk_rows <= most else 1
    most -= most % step
    n_blocks = -(-n // most)
    even = max(-(-n // max(n_blocks, 1)), 1)
    return list(spans(0, n, -(-even // step) * step))


def scan_options(data: RawDataset, max_bins: int, seed: int) -> ScanOptions:
    """Return the options of a scan; raise DataError if there is no row."""
    check_rows(data.x.n_rows, data.x.place)
    fraction = sample_fraction(*data.x.shape)
    weights = data.weights.place if data.weights else "sample_weight"
    return ScanOptions(max_bins, seed, fraction, data.x.place, data.y.place, weights, data.x.categorical)


def scan_classes(
    data: RawDataset, options: ScanOptions, work: TaskRunner, plan: IngestPlan, advance: Advance
) -> tuple[np.ndarray, list[ClassScan]]:
    """Return the classes in ascending order, (n_classes,), and the scan of each. `advance` counts the bytes read."""
    cuts = list(data.label_spans(plan.labels.rows))
    calls = ((*data.labels(a, b), a, options) for a, b in cuts)
    found: LabelScan | None = None
    scans = work.each(scan_labels, calls, plan.at_once(plan.labels))
    for (a, b), scan in zip(cuts, scans, strict=True):
        found = scan if found is None else found.merged(scan, options)
        advance((b - a) * data.label_bytes)
    assert found is not None
    classes = sorted_classes(found, data.x.n_rows, options)
    return classes, [found.classes[label] for label in sorted(found.classes)]


def weight_scan(weights: Source, work: TaskRunner, rows: int) -> ClassScan:
    """Scan the weights of all rows, `rows` at a time; raise DataError if all are 0."""
    cuts = weights.axes[0].spans(0, weights.n_rows, rows)
    calls = ((weights.part(a, b), b - a, a, weights.place) for a, b in cuts)
    found = reduce(ClassScan.merged, work.each(scan_weights, calls))
    if not found.n_rows:
        raise DataError(
            f"every row has weight 0 in {weights.place}, so no rows are left.",
            remedy="Set a weight above 0 for some rows.",
            where=weights.place,
        )
    return found


@returned_when_freed()
def scan_edges(
    x: Source,
    weights: Source | None,
    options: ScanOptions,
    *,
    work: TaskRunner,
    plan: IngestPlan,
    advance: Advance,
) -> tuple[list[np.ndarray], dict[int, Categories]]:
    """Return the edges of each feature, (n_edges,) float64, and the categories of those that have some.

    Features are scanned in bands, each band in spans of rows. `advance` counts the bytes read.
    """
    rows, columns = x.axes
    bands = list(columns.spans(0, columns.length, plan.scan.columns))
    row_spans = list(rows.spans(0, rows.length, plan.scan.rows))
    calls = (
        (x.part(a, b, (c, d)), None if weights is None else weights.part(a, b), a, c, options)
        for c, d in bands
        for a, b in row_spans
    )
    edges: list[np.ndarray] = []
    categories = {}
    # On a cluster, this process has its cores for itself.
    with (
        Threads(None if work.on_cluster else plan.edge_threads) as threads,
        closing(work.each(scan_features, calls, plan.at_once(plan.scan))) as scans,
    ):
        for c, d in bands:
            band = FeatureBand(d - c, options.max_bins)
            for (a, b), scan in zip(row_spans, islice(scans, len(row_spans)), strict=True):
                band.add(scan, c, options.x_place)
                advance((b - a) * (d - c) * x.dtype.itemsize)
            edges += band.edges(threads)
            for column in sorted(band.categories):
                categories[c + column] = band.found(column).labelled(x.labels.get(c + column))
    return edges, categories


@dataclass(frozen=True)
class BinOptions:
    """Everything that turns raw rows into binned rows."""

    edges: np.ndarray  # (n_edges,) float64: the edges of all features, concatenated
    edge_offsets: np.ndarray  # (n_features + 1,) int64: where the edges of each feature begin and end
    classes: np.ndarray  # (n_classes,): sorted
    weight_rule: WeightRule
    x_place: str
    y_place: str
    weight_place: str
    keep_values: bool = False  # in addition to the bins
    categories: Mapping[int, Categories] = field(default_factory=dict)

    @classmethod
    def of(
        cls, profile: Profile, rule: WeightRule, data: RawDataset, keep_values: bool = False
    ) -> BinOptions:
        edges, offsets = joined_edges(profile.edges)
        categories = {
            d: known.coded_by(data.x.labels.get(d), d, data.x.place)
            for d, known in profile.categories.items()
        }
        return cls(
            edges, offsets, profile.classes, rule, data.x.place, data.y.place,
            data.weights.place if data.weights else "sample_weight", keep_values, categories,
        )  # fmt: skip


def joined_edges(edges: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return all edges concatenated, (n_edges,) float64, and the offsets of each feature's, (n_features + 1,) int64."""
    offsets = np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int64)
    return np.concatenate([np.empty(0), *edges]), offsets


def bins_of_zero(edges: list[np.ndarray], categories: Mapping[int, Categories]) -> np.ndarray:
    """Return the bin of 0 of each feature, (n_features,) uint8."""
    zeros = np.zeros((1, len(edges)))
    out: np.ndarray = np.empty(zeros.shape, np.uint8)
    binning.bin_rows(zeros, *joined_edges(edges), out)
    put_bins(zeros, categories, 0, out)
    return out.ravel()


def split_edges(edges: np.ndarray, offsets: np.ndarray) -> list[np.ndarray]:
    """Return the edges of each feature; `edges` holds them one after another."""
    return [edges[a:b] for a, b in pairwise(offsets)]


def bin_rows(x: Any, y: Any, weights: Any, first: int, options: BinOptions) -> BinnedRows:
    """Bin the rows of a part of features, of labels and of weights."""
    bins, values = bin_features(x, first, 0, options)
    labels, w = bin_labels(y, weights, first, options)
    return BinnedRows(first, bins, labels, options.weight_rule.apply(labels, w), values)


def bin_features(
    x: Any, first_row: int, first_column: int, options: BinOptions
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the bins of some rows of some features, (n, m) uint8, and their values, (n, m) float64, if these are kept."""
    x = at_hand(x)
    bins = np.empty(x.shape, np.uint8)
    values = np.empty(x.shape) if options.keep_values else None
    if (
        isinstance(x, SparseRows)
        and values is None
        and _bin_stored(x, first_row, first_column, options, bins)
    ):
        return bins, None
    for row, column, X in numbers(x, options.x_place):
        n, n_features = X.shape
        at = slice(row, row + n), slice(column, column + n_features)
        out = np.empty(X.shape, np.uint8)
        d = first_column + column
        offsets = options.edge_offsets[d : d + n_features + 1]
        if X.dtype == np.uint8:
            binning.bin_bytes(X, options.edges, offsets, out)
        else:
            check_finite(X, options.x_place, first_row + row, d)
            binning.bin_rows(X, options.edges, offsets, out)
        put_bins(X, options.categories, d, out)
        bins[at] = out
        if values is not None:
            values[at] = X
        del X  # a view may keep a chunk in memory: it must go before the next one is read
    return bins, values


def _bin_stored(
    x: SparseRows, first_row: int, first_column: int, options: BinOptions, out: np.ndarray
) -> bool:
    """Write the bins of rows by their stored entries; return False if they must become dense for it."""
    stop = first_column + x.shape[1]
    if any(first_column <= d < stop for d in options.categories) or x.stores_twice():
        return False
    offsets, of_zero = options.edge_offsets[first_column : stop + 1], np.empty((1, x.shape[1]), np.uint8)
    binning.bin_rows(as_numbers(np.zeros(of_zero.shape), x.place), options.edges, offsets, of_zero)
    for row, found in x.entries():
        found.check_finite(options.x_place, first_row + row, first_column)
        some = out[row : row + len(found.indptr) - 1]
        sparse.bin_stored(found.indptr, found.columns, found.values, options.edges, offsets, of_zero[0], some)
    return True


def bin_labels(y: Any, weights: Any, first: int, options: BinOptions) -> tuple[np.ndarray, np.ndarray]:
    """Return the class index, (n,) int32, and the sample weight, (n,) float64, of each row."""
    labels = load_labels(y, options.y_place, first)
    w = load_weights(weights, len(labels), options.weight_place, first)
    return encode_labels(labels, w, options.classes, options.y_place, first), w
