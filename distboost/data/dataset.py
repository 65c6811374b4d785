"""Labelled rows for training: raw arrays, or a binned store."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from distboost.data.blocks import BinnedSet
from distboost.data.categories import resolved
from distboost.data.ingest import (
    BinOptions,
    Labelled,
    bin_rows,
    block_rows,
    block_spans,
    count_classes,
    take_profile,
    weight_scan,
)
from distboost.data.ingest_plan import largest_chunk, least_memory
from distboost.data.profile import Profile
from distboost.data.row_weights import WeightRule
from distboost.data.scan import SCAN_ROWS
from distboost.data.source import changed, warnings_about
from distboost.data.work import TaskRunner
from distboost.errors import DataError

TALL = 4  # a chunk is tall if it has rows of at least this many blocks


class Dataset(Protocol):
    """The interface of labelled rows that training uses."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

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
    """Arrays of features, labels and weights from any source."""

    def __init__(self, sources: Labelled, names: np.ndarray | None = None):
        sources.check()
        self.sources, self.names = sources, names
        self.place = sources.x.place
        self.n_rows, self.n_features = sources.x.shape

    @property
    def weighted(self) -> bool:
        return self.sources.weights is not None

    @property
    def is_stored(self) -> bool:
        return all(source.is_stored for source in self.sources if source is not None)

    @property
    def is_tall(self) -> bool:
        """Whether the chunks of a stored array span many blocks: each chunk would be decoded once per block."""
        x = self.sources.x
        return x.decodes_again and x.chunk_rows > TALL * block_rows(self.n_features)

    def set_categorical(self, given: Any, names: np.ndarray | None) -> None:
        x = self.sources.x
        x.categorical = tuple(sorted({*resolved(given, self.n_features, names), *x.labels}))

    def binning_bytes(self, n_threads: int) -> int:
        """Return the memory of `n_threads` threads that bin one block each, in bytes."""
        rows = min(block_rows(self.n_features), self.n_rows)
        return n_threads * rows * self.n_features * (2 * self.sources.x.dtype.itemsize + 1)

    def least_ingest(self, max_bins: int, work: TaskRunner, keep_values: bool) -> int:
        """Return the smallest limit, in bytes of each process, that suffices to scan and bin these rows."""
        if not self.n_rows:  # the scan raises the error
            return 0
        return least_memory(
            *self.sources, max_bins, block_rows(self.n_features), keep_values, work.on_cluster
        )

    def largest_chunk(self) -> str:
        """Describe the largest chunk of these arrays, for messages about memory."""
        return largest_chunk(source for source in self.sources if source is not None)

    def profile(self, max_bins: int, seed: int, work: TaskRunner, memory: int | None = None) -> Profile:
        return take_profile(self.sources, max_bins, seed, work, memory)

    def count_classes(self, work: TaskRunner, memory: int) -> int | None:
        return count_classes(self.sources, work, memory)

    def warnings(self, policy: str) -> list[str]:
        return warnings_about(self.sources, policy)

    def check_unchanged(self) -> None:
        """Raise DataError if an array has changed since it was listed: it is read in two passes."""
        for place in changed(self.sources):
            raise DataError(
                f"{place} was changed or removed while it was being read. Start again when the data no longer change "
                "(if you were binning, remove the unfinished store first)."
            )

    def own_weights(self, n_classes: int, work: TaskRunner) -> WeightRule:
        weights = self.sources.weights
        return WeightRule.alone(n_classes, None if weights is None else weight_scan(weights, work, SCAN_ROWS))

    def binned(
        self, profile: Profile, rule: WeightRule, n_parallel: int, keep_values: bool = False, at_once: int = 1
    ) -> BinnedSet:
        options = BinOptions.of(profile, rule, self.sources, keep_values)
        cuts = block_spans(self.sources.x, n_parallel)
        sources = self.sources.near(max((b - a for a, b in cuts), default=1))
        calls = [(*sources.parts(a, b), a, options) for a, b in cuts]
        return BinnedSet(bin_rows, calls, [b - a for a, b in cuts])
