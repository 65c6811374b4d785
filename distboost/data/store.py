"""The binned store: rows binned once, to be trained on many times.

A zarr group of `bins` (n, D) uint8, `labels` (n,) and `weights` (n,), with the bin edges beside them. Every chunk is written
whole, by one writer, with a checksum. The manifest, an attribute of the group, is written last: a store without one is
incomplete. It holds a second checksum per block, for zarr reads a chunk that is not there as the fill value.
"""

from __future__ import annotations

import os
import zlib
from itertools import pairwise
from typing import Any, cast

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.data.dataset import RawDataset
from distboost.data.ingest import BLOCK_ROWS, BinOptions, Workplace, bin_rows, joined_edges
from distboost.data.profile import ClassScan, Profile, WeightRule
from distboost.errors import BinnedStoreError, DataError

STORE_VERSION = 1
_MANIFEST = "distboost-binned"


def write_store(
    data: RawDataset,
    url: str,
    max_bins: int,
    seed: int,
    work: Workplace,
    memory: int | None = None,
    keep_values: bool = False,
    profile: Profile | None = None,
) -> BinnedStore:
    """Bins the rows into a new store at a path or URL.

    Raises
    ------
    DataError
        If something is there already.
    """
    try:
        group = zarr.create_group(url)
    except (FileExistsError, zarr.errors.ContainsGroupError, zarr.errors.ContainsArrayError) as error:
        raise DataError(
            f"there is something at {url!r} already: give another place, or remove it first."
        ) from error
    profile = profile or data.profile(max_bins, seed, work)
    arrays = _create_arrays(group, profile)
    # Labels and weights are kept as they are; class weights and scaling belong to a training.
    rule = WeightRule(np.ones(len(profile.classes)), 1.0)
    options = BinOptions.of(profile, rule, data.sources)
    calls = [
        (*data.sources.parts(a, min(a + BLOCK_ROWS, data.n_rows)), a, options, arrays)
        for a in range(0, data.n_rows, BLOCK_ROWS)
    ]
    checksums = work.map(_bin_and_write, calls)
    edges, offsets = joined_edges(profile.edges)
    for name, values in (("edges", edges), ("edge_offsets", offsets)):
        group.create_array(name, data=values, compressors=_compressors())
    group.attrs[_MANIFEST] = {
        "version": STORE_VERSION,
        "n_rows": profile.n_rows,
        "n_features": profile.n_features,
        "max_bins": max_bins,
        "class_dtype": profile.classes.dtype.str,
        "classes": profile.classes.tolist(),
        "class_scans": [
            [scan.n_rows, scan.largest_weight, scan.whole_weights] for scan in profile.class_scans
        ],
        "block_rows": BLOCK_ROWS,
        "checksums": checksums,
        "edges_checksum": _checksum(edges, offsets),
    }
    return BinnedStore.open(url)


def _compressors() -> list:
    return [ZstdCodec(level=1), Crc32cCodec()]


def _create_arrays(group: zarr.Group, profile: Profile) -> dict[str, zarr.Array]:
    n, chunk = profile.n_rows, min(BLOCK_ROWS, profile.n_rows)
    # The fill values are ones that a chunk does not consist of: a chunk that is gone is noticed.
    layout: dict[str, tuple[tuple[int, ...], str, int]] = {
        "bins": ((profile.n_features,), "uint8", 255),
        "labels": ((), "int32", -1),
        "weights": ((), "float64", -1),
    }
    return {
        name: group.create_array(
            name,
            shape=(n, *rest),
            chunks=(chunk, *rest),
            dtype=dtype,
            fill_value=fill,
            compressors=_compressors(),
            config={"write_empty_chunks": True},
        )
        for name, (rest, dtype, fill) in layout.items()
    }


def _bin_and_write(x, y, weights, first: int, options: BinOptions, arrays: dict[str, zarr.Array]) -> int:
    """Bins one block and writes its chunks; the checksum of what was written."""
    rows = bin_rows(x, y, weights, first, options)
    span = slice(first, first + len(rows.labels))
    arrays["bins"][span], arrays["labels"][span], arrays["weights"][span] = (
        rows.bins,
        rows.labels,
        rows.weights,
    )
    return _checksum(rows.bins, rows.labels, rows.weights)


def _checksum(*arrays: np.ndarray) -> int:
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value


def _read_block(
    arrays: dict[str, zarr.Array], first: int, stop: int, checksum: int, rule: WeightRule, place: str
) -> BinnedRows:
    """One block of a store, checked."""
    try:
        bins, labels, weights = (
            np.asarray(arrays[name][first:stop]) for name in ("bins", "labels", "weights")
        )
    except Exception as error:
        raise BinnedStoreError(
            f"rows {first} to {stop - 1} of the binned store {place} cannot be read: {error}. Bin the data again."
        ) from error
    if _checksum(bins, labels, weights) != checksum:
        raise BinnedStoreError(
            f"rows {first} to {stop - 1} of the binned store {place} are not what was written: a chunk is missing or altered. "
            "Bin the data again."
        )
    return BinnedRows(first, bins, labels, rule.apply(labels, weights))


class BinnedStore:
    """A complete binned store."""

    def __init__(self, url: str, group: zarr.Group, manifest: dict[str, Any]):
        self.url, self._group, self._manifest = url, group, manifest
        self.n_rows, self.n_features = manifest["n_rows"], manifest["n_features"]

    @staticmethod
    def is_at(url: Any) -> bool:
        """Whether a path or URL leads to a zarr group, as a binned store is (and not an array)."""
        if not isinstance(url, (str, os.PathLike)):
            return False
        try:
            zarr.open_group(os.fspath(url), mode="r")
        except Exception:
            return False
        return True

    @classmethod
    def open(cls, url: str | os.PathLike) -> BinnedStore:
        """The store at a path or URL; raises BinnedStoreError unless it is complete and of a known version."""
        url = os.fspath(url)
        try:
            group = zarr.open_group(url, mode="r")
            manifest: Any = group.attrs[_MANIFEST]
        except Exception as error:
            raise BinnedStoreError(
                f"{url!r} is no binned store, or binning was interrupted before its manifest was written. Bin the data again: "
                "distboost bin."
            ) from error
        if manifest.get("version") != STORE_VERSION:
            raise BinnedStoreError(
                f"the binned store {url!r} has version {manifest.get('version')!r}, expected {STORE_VERSION}. Bin the data again."
            )
        return cls(url, group, manifest)

    @property
    def weighted(self) -> bool:
        scans = self._manifest["class_scans"]
        return any(scan[1:] != [1.0, True] for scan in scans) or sum(scan[0] for scan in scans) < self.n_rows

    def _array(self, name: str) -> zarr.Array:
        return cast(zarr.Array, self._group[name])

    def missing_chunks(self, policy: str) -> list[str]:
        """None to warn of: a chunk that is missing here is an error when it is read."""
        return []

    def profile(self, max_bins: int, seed: int, work: Workplace) -> Profile:
        m = self._manifest
        if max_bins != m["max_bins"]:
            raise DataError(
                f"the binned store {self.url!r} was made with max_bins={m['max_bins']}, not {max_bins}. "
                f"Set max_bins={m['max_bins']}, or bin again."
            )
        try:
            edges, offsets = (np.asarray(self._array(name)[:]) for name in ("edges", "edge_offsets"))
        except Exception as error:
            raise BinnedStoreError(
                f"the edges in the binned store {self.url!r} cannot be read: {error}. Bin the data again."
            ) from error
        if _checksum(edges, offsets) != m["edges_checksum"]:
            raise BinnedStoreError(
                f"the edges in the binned store {self.url!r} were altered. Bin the data again."
            )
        return Profile(
            self.n_rows,
            np.array(m["classes"], dtype=m["class_dtype"]),
            [ClassScan(*scan) for scan in m["class_scans"]],
            [edges[a:b] for a, b in pairwise(offsets)],
        )

    def binned(
        self, profile: Profile, class_weight: np.ndarray | None, n_parallel: int, keep_values: bool = False
    ) -> BinnedSet:
        if keep_values:
            raise DataError(
                f"the binned store {self.url!r} holds bins, no raw values, and similarities measure distances between values. "
                "Give fit the arrays that the store was made from, or learn from bins (REBEL: weak_learner='tree')."
            )
        if class_weight is None:
            class_weight = np.ones(len(profile.classes))
        rule = WeightRule.of(class_weight, profile.class_scans)
        arrays = {name: self._array(name) for name in ("bins", "labels", "weights")}
        size = self._manifest["block_rows"]
        calls = [
            (arrays, first, min(first + size, self.n_rows), checksum, rule, self.url)
            for first, checksum in zip(range(0, self.n_rows, size), self._manifest["checksums"], strict=True)
        ]
        return BinnedSet(_read_block, calls, [call[2] - call[1] for call in calls])
