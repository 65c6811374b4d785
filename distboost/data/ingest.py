"""From sources to binned blocks. What runs where is the caller's: `Workplace` is all that is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np

from distboost.data.blocks import BinnedRows
from distboost.data.profile import (
    Profile,
    Scan,
    ScanOptions,
    WeightRule,
    as_numbers,
    encode_labels,
    infinite_value,
    load_labels,
    load_weights,
    profile,
    sample_fraction,
    scan_rows,
)
from distboost.data.sources import Source, load
from distboost.errors import DataError
from distboost.kernels import binning

BLOCK_ROWS = 65_536  # the most rows of a block


class Workplace(Protocol):
    """Runs functions over parts of sources, near or far."""

    n_parallel: int

    def map(self, function: Callable[..., Any], calls: Iterable[tuple]) -> list[Any]:
        """function(*call) for each call, whose arguments may be parts."""


class Labelled(NamedTuple):
    """Sources of features, labels and weights (or None) with the same rows."""

    x: Source
    y: Source
    weights: Source | None

    def check(self) -> None:
        """Raises unless the shapes agree."""
        if len(self.x.shape) != 2:
            raise DataError(
                f"{self.x.place} has shape {self.x.shape}, expected 2 dimensions: (rows, features). Reshape your data."
            )
        if self.x.shape[1] == 0:
            raise DataError(
                f"{self.x.place}: 0 feature(s) (shape={self.x.shape}) while a minimum of 1 is required."
            )
        for other in (self.y, self.weights):
            if other is not None and other.n_rows != self.x.n_rows:
                raise DataError(
                    f"{self.x.place} has {self.x.n_rows} rows but {other.place} has {other.n_rows}: inconsistent numbers of "
                    "samples. Each row needs one."
                )

    def parts(self, start: int, stop: int) -> tuple[Any, Any, Any]:
        weights = None if self.weights is None else self.weights.part(start, stop)
        return self.x.part(start, stop), self.y.part(start, stop), weights


def spans(source: Source, n_parallel: int) -> list[tuple[int, int]]:
    """The rows of each block: enough blocks to keep everyone busy, cut between chunks where that is cheap."""
    n = source.n_rows
    size = min(BLOCK_ROWS, max(1, -(-n // max(n_parallel, 1))))
    chunk = source.chunk_rows
    if 1 < chunk <= size:
        size -= size % chunk
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def take_profile(data: Labelled, max_bins: int, seed: int, work: Workplace) -> Profile:
    """Scans all rows once."""
    data.check()
    options = ScanOptions(
        max_bins,
        seed,
        sample_fraction(data.x.n_rows, data.x.shape[1]),
        data.x.place,
        data.y.place,
        data.weights.place if data.weights else "sample_weight",
    )
    calls = [(*data.parts(a, b), a, options) for a, b in spans(data.x, work.n_parallel)]
    scans = work.map(scan_rows, calls)
    scan = reduce(lambda a, b: a.merged(b, max_bins), scans, Scan())
    dtype = np.dtype(data.y.dtype)
    return profile(scan, options, np.dtype(str) if dtype.kind in "TU" else dtype)


@dataclass(frozen=True)
class BinOptions:
    """How raw rows become binned rows."""

    edges: np.ndarray  # of all features, one after another
    edge_offsets: np.ndarray
    classes: np.ndarray
    weight_rule: WeightRule
    x_place: str
    y_place: str
    weight_place: str
    keep_values: bool = False  # beside the bins

    @classmethod
    def of(cls, profile: Profile, rule: WeightRule, data: Labelled, keep_values: bool = False) -> BinOptions:
        edges, offsets = joined_edges(profile.edges)
        return cls(
            edges, offsets, profile.classes, rule, data.x.place, data.y.place,
            data.weights.place if data.weights else "sample_weight", keep_values,
        )  # fmt: skip


def joined_edges(edges: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The edges of all features one after another, and where each feature's begin and end."""
    offsets = np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int64)
    return np.concatenate([np.empty(0), *edges]), offsets


def bin_rows(x: Any, y: Any, weights: Any, first: int, options: BinOptions) -> BinnedRows:
    """Bins the rows of three parts."""
    X = as_numbers(load(x), options.x_place)
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        row, column = infinite[0]
        raise infinite_value(options.x_place, first + row, column, X[row, column])
    y = load_labels(y, options.y_place, first)
    w = load_weights(weights, len(y), options.weight_place, first)
    labels = encode_labels(y, w, options.classes, options.y_place, first)
    bins = np.empty(X.shape, np.uint8)
    binning.bin_rows(X, options.edges, options.edge_offsets, bins)
    values = np.array(X, np.float64) if options.keep_values else None
    return BinnedRows(first, bins, labels, options.weight_rule.apply(labels, w), values)
