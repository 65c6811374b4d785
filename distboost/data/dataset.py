"""Labelled rows for training: raw arrays, or a binned store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from distboost.data.blocks import BinnedSet, Profile, TaskRunner
from distboost.data.categories import resolved
from distboost.data.cells import Cells
from distboost.data.ingest import (
    BinOptions,
    bin_rows,
    block_rows,
    block_spans,
    scan_classes,
    scan_edges,
    scan_options,
    weight_scan,
)
from distboost.data.ingest_plan import IngestPlan, largest_chunk, least_memory, plan_ingest
from distboost.data.row_weights import WeightRule
from distboost.data.scan import SCAN_ROWS
from distboost.data.source import Source, changed, warnings_about
from distboost.errors import DataError

TALL = 4  # a chunk is tall if it has rows of at least this many blocks


class Dataset(Protocol):
    """The interface of labelled rows that training uses."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def bin_bytes(self) -> int:
        """The most bytes of the bins of a row that stays in memory."""

    @property
    def weighted(self) -> bool:
        """Whether rows may have weights other than 1."""

    @property
    def is_stored(self) -> bool:
        """Whether each worker can read the rows from storage."""

    def profile(self, max_bins: int, seed: int, work: TaskRunner, memory: int | None = None) -> Profile:
        """Find classes, weights and bin edges, using at most `memory` bytes of each process."""

    def count_classes(self, work: TaskRunner, memory: int) -> int | None:
        """Return the number of classes; None if it takes more than `memory` bytes of each process to find it."""

    @property
    def names(self) -> np.ndarray | None:
        """The names of the features, (n_features,) object; None if they have none."""

    @property
    def place(self) -> str:
        """The name of the rows in messages."""

    def set_categorical(self, given: Any, names: np.ndarray | None) -> None:
        """Set which features have categories; raise an error if `given`, a `categorical_features`, does not fit the rows."""

    def warnings(self, policy: str) -> list[str]:
        """Return warnings about the arrays; with the policy "error", raise MissingChunkError for chunks never written."""

    def check_unchanged(self) -> None:
        """Raise DataError if the data have changed while they were read."""

    def own_weights(self, n_classes: int, work: TaskRunner) -> WeightRule:
        """Return the rule for the weights of evaluation rows: class weights do not count."""

    def binned(
        self, profile: Profile, rule: WeightRule, n_parallel: int, keep_values: bool = False, at_once: int = 1
    ) -> BinnedSet:
        """Return the rows, binned by the edges of the profile, and also their raw values with `keep_values`.

        Of a binned store, `at_once` blocks are read together.
        """


class RawDataset:
    """Features, labels and weights (or None) of the same rows, from any source; raise DataError unless their shapes agree.

    `cells` are those of the rows, if they are cells of a cube.
    """

    def __init__(
        self,
        x: Source,
        y: Source,
        weights: Source | None,
        names: np.ndarray | None = None,
        cells: Cells | None = None,
    ):
        self.x, self.y, self.weights, self.names, self.cells = x, y, weights, names, cells
        self._check()
        self.place, (self.n_rows, self.n_features) = x.place, x.shape

    def _check(self) -> None:
        if len(self.x.shape) != 2:
            raise DataError(
                f"{self.x.place} has shape {self.x.shape}, expected 2 dimensions: (rows, features).",
                remedy="Reshape your data.",
                where=self.x.place,
            )
        if self.x.shape[1] == 0:
            raise DataError(
                f"{self.x.place}: 0 feature(s) (shape={self.x.shape}) while a minimum of 1 is required.",
                where=self.x.place,
            )
        for other in (self.y, self.weights):
            if other is not None and other.n_rows != self.x.n_rows:
                raise DataError(
                    f"{self.x.place} has {self.x.n_rows} rows but {other.place} has {other.n_rows}: inconsistent numbers of "
                    "samples. Each row needs one.",
                    where=self.x.place,
                    value=self.x.n_rows,
                )

    @property
    def sources(self) -> tuple[Source, Source, Source | None]:
        """Those of features, labels and weights."""
        return self.x, self.y, self.weights

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    def parts(self, start: int, stop: int) -> tuple[Any, Any, Any]:
        return self.x.part(start, stop), *self.labels(start, stop)

    def labels(self, start: int, stop: int) -> tuple[Any, Any]:
        """Return the parts of labels and weights."""
        return self.y.part(start, stop), None if self.weights is None else self.weights.part(start, stop)

    @property
    def n_bytes(self) -> int:
        """The size of all values that a scan reads, in bytes."""
        return self.x.n_rows * (self.x.row_bytes + self.label_bytes)

    @property
    def label_bytes(self) -> int:
        """The size of a row's label and weight, in bytes."""
        return sum(source.row_bytes for source in (self.y, self.weights) if source is not None)

    def label_spans(self, rows: int) -> Iterator[tuple[int, int]]:
        """Yield spans of about `rows` rows that end with chunks of the labels or of the weights, whichever are longer."""
        axes = [source.axes[0] for source in (self.y, self.weights) if source is not None]
        return max(axes, key=lambda axis: axis.chunk).spans(0, self.x.n_rows, rows)

    @property
    def bin_bytes(self) -> int:
        return self.x.bin_bytes(block_rows(self.n_features))

    def near(self, rows: int) -> RawDataset:
        """Return the same rows, with labels and weights that are cheap to read in spans of `rows` rows.

        A longer chunk would be decoded once per span: arrays with such chunks are loaded now.
        """
        weights = None if self.weights is None else self.weights.near(rows)
        return RawDataset(self.x, self.y.near(rows), weights, self.names, self.cells)

    def plan(
        self, max_bins: int, work: TaskRunner, memory: int | None = None, keep_values: bool = False
    ) -> IngestPlan:
        """Plan how to scan and bin these rows within `memory` bytes of each process; raise LimitError if that is too little."""
        return plan_ingest(
            *self.sources, max_bins, block_rows(self.n_features), n_parallel=work.n_parallel, n_processes=work.n_processes,
            memory=memory, keep_values=keep_values, caller_apart=work.on_cluster,
        )  # fmt: skip

    @property
    def is_stored(self) -> bool:
        return all(source.is_stored for source in self.sources if source is not None)

    @property
    def is_tall(self) -> bool:
        """Whether the chunks of a stored array span many blocks: each chunk would be decoded once per block."""
        x = self.x
        return x.decodes_again and x.chunk_rows > TALL * block_rows(self.n_features)

    def set_categorical(self, given: Any, names: np.ndarray | None) -> None:
        x = self.x
        x.categorical = tuple(sorted({*resolved(given, self.n_features, names), *x.labels}))

    def binning_bytes(self, n_threads: int) -> int:
        """Return the memory of `n_threads` threads that bin one block each, in bytes."""
        rows = min(block_rows(self.n_features), self.n_rows)
        return n_threads * rows * self.n_features * (2 * self.x.dtype.itemsize + 1)

    def least_ingest(self, max_bins: int, work: TaskRunner, keep_values: bool) -> int:
        """Return the smallest limit, in bytes of each process, that suffices to scan and bin these rows."""
        if not self.n_rows:  # the scan raises the error
            return 0
        return least_memory(
            *self.sources,
            max_bins=max_bins,
            block=block_rows(self.n_features),
            keep_values=keep_values,
            caller_apart=work.on_cluster,
        )

    def largest_chunk(self) -> str:
        """Describe the largest chunk of these arrays, for messages about memory."""
        return largest_chunk(source for source in self.sources if source is not None)

    def profile(self, max_bins: int, seed: int, work: TaskRunner, memory: int | None = None) -> Profile:
        """Scan all rows once for classes, weights and bin edges."""
        options, plan = scan_options(self, max_bins, seed), self.plan(max_bins, work, memory)
        with work.phases.begin("scan", self.n_bytes, "bytes") as advance:
            classes, scans = scan_classes(self, options, work, plan, advance)
            weights = None if self.weights is None else self.weights.near(plan.scan.rows)
            found = scan_edges(self.x, weights, options, work=work, plan=plan, advance=advance)
        return Profile(self.n_rows, classes, scans, *found)

    def count_classes(self, work: TaskRunner, memory: int) -> int | None:
        """Return the number of classes, by their labels and weights alone; None if that takes more than `memory` bytes."""
        if not self.n_rows:  # the scan raises the error
            return None
        plan = replace(self.plan(2, work), memory=memory)
        if plan.labels.memory > memory:
            return None
        with work.phases.begin("scan", self.n_rows * self.label_bytes, "bytes") as advance:
            return len(scan_classes(self, scan_options(self, 2, 0), work, plan, advance)[0])

    def warnings(self, policy: str) -> list[str]:
        return warnings_about(self.sources, policy)

    def check_unchanged(self) -> None:
        """Raise DataError if an array has changed since it was listed: it is read in two passes."""
        check_unchanged(self.sources)

    def own_weights(self, n_classes: int, work: TaskRunner) -> WeightRule:
        scan = None if self.weights is None else weight_scan(self.weights, work, SCAN_ROWS)
        return WeightRule.alone(n_classes, scan)

    def binned(
        self, profile: Profile, rule: WeightRule, n_parallel: int, keep_values: bool = False, at_once: int = 1
    ) -> BinnedSet:
        options = BinOptions.of(profile, rule, self, keep_values)
        cuts = block_spans(self.x, n_parallel)
        rows = self.near(max((b - a for a, b in cuts), default=1))
        calls = [(*rows.parts(a, b), a, options) for a, b in cuts]
        return BinnedSet(bin_rows, calls, [b - a for a, b in cuts])


def check_unchanged(sources: Iterable[Source | None]) -> None:
    """Raise DataError if an array has changed since it was listed."""
    for place in changed(sources):
        raise DataError(
            f"{place} was changed or removed while it was being read.",
            remedy="Start again when the data no longer change (if you were binning, remove the unfinished store first).",
            where=place,
        )
