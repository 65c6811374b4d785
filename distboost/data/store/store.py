"""The binned store: rows that are binned once and trained on many times.

A store is a zarr group of `bins` (n, D) uint8, `labels` (n,) int32, `weights` (n,) float64, optionally `values` (n, D) float64,
and the bin edges. One writer writes each chunk whole, with a checksum. The manifest, an attribute of the group, is written last:
a store without it is incomplete. It has its own checksum, and holds a second checksum of each block, as zarr silently reads a
missing chunk as the fill value.

An incomplete store has another attribute, which describes its data and parameters, so that an interrupted binning can continue.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, cast

import numpy as np
import zarr
from zarr.core.sync import sync

from distboost.data.blocks import BinnedRows, BinnedSet, ClassScan, Profile, TaskRunner
from distboost.data.categories import resolved
from distboost.data.inventory import Inventory
from distboost.data.listing import described_group
from distboost.data.row_weights import WeightRule
from distboost.data.source import spans
from distboost.data.store.layout import StoredBlocks, is_block_array
from distboost.data.store.manifest import (
    BIN_BYTES,
    NAMES,
    STORE_VERSION,
    array_shapes,
    check_seal,
    damaged,
    opened,
    stored_profile,
)
from distboost.data.store.reading import intact, local_file, read_blocks
from distboost.data.store.recoding import Recoding
from distboost.errors import BinnedStoreError, DataError
from distboost.io.storage import UNFINISHED, open_store


class StoredRows:
    """Successive blocks of a store. Their arrays are read when they are first used, and compared with their checksums."""

    def __init__(
        self, blocks: StoredBlocks, numbers: range, checksums: dict[str, list[int]], rule: WeightRule
    ):
        self._blocks, self._numbers, self._checksums, self._rule = blocks, numbers, checksums, rule
        self.first = blocks.rows_of(numbers).start

    def _read(self, name: str) -> np.ndarray:
        return read_blocks(self._blocks, name, self._numbers, self._checksums[name])

    @cached_property
    def bins(self) -> np.ndarray:
        """The bins, (n, D) uint8."""
        return self._read("bins")

    @cached_property
    def labels(self) -> np.ndarray:
        """The class indices, (n,) int32."""
        return self._read("labels")

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights, (n,) float64."""
        return self._rule.apply(self.labels, self._read("weights"))

    @cached_property
    def values(self) -> np.ndarray | None:
        """The values before binning, (n, D) float64, if the store has them."""
        return self._read("values") if "values" in self._checksums else None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the bins, if they are on a local disk."""
        found = (local_file(self._blocks.arrays["bins"], number) for number in self._numbers)
        return tuple(path for path in found if path is not None)

    def in_memory(self) -> BinnedRows:
        """Read what was not read yet."""
        return BinnedRows(self.first, self.bins, self.labels, self.weights, self.values).in_memory()


class BinnedStore:
    """A complete binned store."""

    is_stored = True

    def __init__(self, url: str, group: zarr.Group, manifest: dict[str, Any]):
        self.url, self._group, self._manifest = url, group, manifest
        self.n_rows, self.n_features = manifest["n_rows"], manifest["n_features"]

    @staticmethod
    def is_at(url: Any) -> bool:
        """Whether there is a zarr group (a binned store is one, an array is not) or a damaged store at a path or URL."""
        if not isinstance(url, (str, os.PathLike)):
            return False
        with suppress(BinnedStoreError):  # a damaged zarr.json: of a store or of an array
            if opened(os.fspath(url))[0] is not None:
                return True
        with suppress(Exception):
            return sync(open_store(url).exists("labels/zarr.json"))
        return False

    @classmethod
    def open(cls, url: str | os.PathLike[str]) -> BinnedStore:
        """Open the store at a path or URL; raise BinnedStoreError unless it is complete and of a known version."""
        url = os.fspath(url)
        group, manifest = opened(url)
        if group is None or not isinstance(manifest, dict):
            if group is not None and UNFINISHED not in group.attrs and any(group.arrays()):
                raise DataError(described_group(group))
            raise BinnedStoreError(
                f"{url!r} is not a binned store (its zarr.json has no manifest), or binning was interrupted before the "
                "manifest was written.",
                remedy="Bin the data again: distboost bin.",
                where=url,
            )
        if manifest.get("version") != STORE_VERSION:
            raise BinnedStoreError(
                f"the binned store {url!r} has version {manifest.get('version')!r}, expected {STORE_VERSION}.",
                remedy="Bin the data again.",
                where=url,
            )
        check_seal(url, manifest)
        return cls(url, group, manifest)

    @property
    def bin_bytes(self) -> int:
        found: int = self._manifest.get(BIN_BYTES, self.n_features)
        return found

    @property
    def identity(self) -> str:
        """A digest of the manifest's entries that say what the rows are: equal stores have equal ones, wherever they are."""
        names = ("n_rows", "n_features", "class_dtype", "classes", "edges_checksum", "checksums")
        entries = {name: self._manifest[name] for name in names}
        if self.categorical:
            entries["categories"] = self._manifest["categories"]
        content = json.dumps(entries, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def categorical(self) -> tuple[int, ...]:
        """The features whose values are categories, ascending."""
        return tuple(self._manifest.get("categorical", ()))

    @property
    def n_classes(self) -> int:
        return len(self._manifest["classes"])

    @property
    def weighted(self) -> bool:
        scans = self._manifest["class_scans"]
        return any(scan[1:] != [1.0, True] for scan in scans) or sum(scan[0] for scan in scans) < self.n_rows

    def _array(self, name: str) -> zarr.Array[Any]:
        shape, rows = array_shapes(self._manifest)[name], self._manifest["block_rows"]

        def read() -> zarr.Array[Any]:
            array = self._group[name]
            if not is_block_array(array, name, shape, rows):
                raise ValueError(f"it is {array}, expected shape {shape} in chunks of {rows} rows")
            return cast(zarr.Array[Any], array)

        return intact(read, f"the metadata of array {name} of the binned store {self.url}")

    def raw_values(self, name: str) -> zarr.Array[Any]:
        """Return the array of raw values, (n, D) float64; raise DataError if there is none. `name` is for messages."""
        if not self._manifest["keep_values"]:
            raise DataError(
                f"``{name}``: the binned store {self.url!r} has bins but no raw values, which predictions need.",
                value=self.url,
                remedy="Pass the array that it was made from, or bin that again with ``keep_values=True``.",
            )
        values = self._array("values")
        missing = Inventory(values, name).missing()
        if missing:
            raise damaged(self.url, f"array values lacks {len(missing)} chunks, such as {missing[0]}")
        return values

    def _checksums(self, name: str) -> list[int]:
        """Return the checksums of the blocks of an array."""
        found: list[int] = self._manifest["checksums"].get(name, [])
        n = -(-self.n_rows // self._manifest["block_rows"])
        if len(found) != n:
            raise damaged(self.url, f"it has {len(found)} checksums of array {name}, expected {n}")
        return found

    def check_unchanged(self) -> None:
        """Do nothing: reads compare each block with its checksum."""

    @property
    def place(self) -> str:
        return f"the binned store {self.url!r}"

    def set_categorical(self, given: Any, names: np.ndarray | None) -> None:
        """Raise an error if `categorical_features` is given, and names other features than those with categories."""
        is_from_dtype = isinstance(given, str) and given == "from_dtype"
        if not is_from_dtype and resolved(given, self.n_features, names) != self.categorical:
            raise DataError(
                f"{self.place} has categories in the features {[*self.categorical]}, but ``categorical_features`` is "
                f"{given!r:.100}.",
                remedy="Leave it at 'from_dtype', or bin again with these.",
                where=self.place,
                value=given,
            )

    @property
    def names(self) -> np.ndarray | None:
        """The names of the features, (n_features,) object; None if they have none."""
        names = self._manifest.get(NAMES)
        return None if names is None else np.array(names, dtype=object)

    def warnings(self, policy: str) -> list[str]:
        """Return no warnings: reading a missing chunk of a binned store is an error."""
        return []

    def profile(self, max_bins: int, seed: int, work: TaskRunner, memory: int | None = None) -> Profile:
        m = self._manifest
        if max_bins != m["max_bins"]:
            raise DataError(
                f"the binned store {self.url!r} was made with ``max_bins={m['max_bins']}``, not {max_bins}.",
                remedy=f"Pass ``max_bins={m['max_bins']}``, or bin again.",
                where=self.url,
            )
        return stored_profile(self._group, m, self.url)

    def count_classes(self, work: TaskRunner, memory: int) -> int:
        return self.n_classes

    def own_weights(self, n_classes: int, work: TaskRunner) -> WeightRule:
        scans = (ClassScan(*scan) for scan in self._manifest["class_scans"])
        return WeightRule.alone(n_classes, reduce(ClassScan.merged, scans))

    def binned(
        self, profile: Profile, rule: WeightRule, n_parallel: int, keep_values: bool = False, at_once: int = 1
    ) -> BinnedSet:
        m = self._manifest
        if keep_values and not m["keep_values"]:
            raise DataError(
                f"the binned store {self.url!r} has bins but no raw values, and similarities measure distances between values.",
                remedy="Bin with ``keep_values=True``, pass the raw arrays, or learn from bins (REBEL: "
                "``weak_learner='tree'``).",
                where=self.url,
            )
        own = stored_profile(self._group, m, self.url)
        recoding = None
        if not own.same_bins(profile):
            recoding = Recoding.of(own, profile, m["keep_values"], keep_values, self.url)
        from_values = recoding is not None and recoding.tables is None
        names = ["bins", "labels", "weights", *(["values"] if keep_values or from_values else [])]
        arrays = {name: self._array(name) for name in names}
        blocks = StoredBlocks(arrays, self.url, m["block_rows"], self.n_rows)
        checksums = {name: self._checksums(name) for name in names}
        groups = [range(*found) for found in spans(0, blocks.n_blocks, at_once)]
        calls = [
            (blocks, group, {name: checksums[name][group.start : group.stop] for name in names}, rule)
            for group in groups
        ]
        sizes = [rows.stop - rows.start for rows in map(blocks.rows_of, groups)]
        if recoding is None:
            return BinnedSet(StoredRows, calls, sizes, at_once)
        return BinnedSet(_recoded, [(recoding, *call) for call in calls], sizes, at_once)


def _recoded(recoding: Recoding, *call: Any) -> BinnedRows:
    """Return blocks of a store, with the bins and classes of other rows."""
    return recoding(StoredRows(*call))
