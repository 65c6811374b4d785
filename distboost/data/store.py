"""The binned store: rows binned once, to be trained on many times.

A zarr group of `bins` (n, D) uint8, `labels` (n,) and `weights` (n,), perhaps `values` (n, D), with the bin edges beside them.
Every chunk is written whole, by one writer, with a checksum. The manifest, an attribute of the group, is written last: a store
without one is incomplete. It holds a second checksum per block, for zarr reads a chunk that is not there as the fill value.

Until then another attribute says what the store is made from and how far that is, so that an interrupted binning can go on.
"""

from __future__ import annotations

import logging
import os
from typing import Any, cast

import numpy as np
import zarr

from distboost.data import ingest
from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.data.dataset import RawDataset
from distboost.data.fingerprint import fingerprint, is_file_based
from distboost.data.ingest import BinOptions, Workplace, joined_edges, split_edges
from distboost.data.layout import StoredBlocks, block_array, checksum, plain_array, store_bytes
from distboost.data.passes import Progress, remove_bands, write_bins, write_labels
from distboost.data.plan import IngestPlan, mebibytes
from distboost.data.profile import ClassScan, Profile, ScanOptions, WeightRule
from distboost.data.reading import read_block
from distboost.data.sources import ZarrSource
from distboost.data.storage import (
    check_space,
    create_group,
    listed,
    local_path,
    only_writer,
    open_store,
    remove_all,
    remove_partial_files,
    room_for,
)
from distboost.errors import BinnedStoreError, DataError, LimitError, StoreError

STORE_VERSION = 2
_MANIFEST = "distboost-binned"
_UNFINISHED = "distboost-unfinished"

log = logging.getLogger("distboost.data")


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
    """Bins the rows into a store at a path or URL.

    A store of the same rows that is there already is used as it is; one that was interrupted is gone on with.

    Parameters
    ----------
    data : RawDataset
    url : str
    max_bins, seed : int
    work : Workplace
    memory : int or None, default=None
        Bytes that this work may take in each process, libraries and arrays held by the caller not counted.
    keep_values : bool, default=False
        Store the values beside the bins, for the algorithms that measure distances.
    profile : Profile or None, default=None
        What to bin by, if it is known already (of other rows perhaps); None: found by a scan.

    Raises
    ------
    DataError
        If the data cannot be used, or if something else is there already.
    LimitError
        If the memory does not suffice.
    StoreError
        If the disk is full.
    """
    url = os.fspath(url)
    options = ingest.scan_options(data.sources, max_bins, seed)
    plan = data.sources.plan(max_bins, work, memory, keep_values)
    rows = ingest.block_rows(data.n_features)
    made_from = {
        "version": STORE_VERSION,
        "source": fingerprint(data.sources),
        "max_bins": max_bins,
        "seed": seed,
        "keep_values": keep_values,
        "n_rows": data.n_rows,
        "n_features": data.n_features,
        "block_rows": rows,
    }
    complete = _complete(url, made_from)
    if complete is not None:
        return complete
    needed = store_bytes(data.n_rows, data.n_features, rows, max_bins, keep_values)
    if plan.merge is not None:  # the bands of one stretch of rows beside the blocks
        needed += min(plan.bins.rows, data.n_rows) * data.n_features * (9 if keep_values else 1)
    check_space(url, needed)
    log.info(
        "binning takes up to %s of memory in each process; %s: about %s",
        mebibytes(plan.takes),
        url,
        mebibytes(needed),
    )
    with only_writer(url):
        complete = _complete(url, made_from)  # written by another process until a moment ago
        return complete or _write(data, url, made_from, options, plan, work, needed, profile)


def _write(
    data: RawDataset,
    url: str,
    made_from: dict[str, Any],
    options: ScanOptions,
    plan: IngestPlan,
    work: Workplace,
    needed: int,
    profile: Profile | None,
) -> BinnedStore:
    """What is still to be done of a store."""
    remove_partial_files(url)
    with room_for(url, needed):
        group = _begun(url, made_from)
    blocks = _blocks(group, url, made_from, needed)
    progress = Progress(blocks, work)
    with room_for(url, needed):
        profile = _scanned(group, data, options, plan, progress, profile)
    rule = WeightRule(np.ones(len(profile.classes)), 1.0)
    keep_values = made_from["keep_values"]
    binning = BinOptions.of(profile, rule, data.sources, keep_values)
    if "weights" not in progress.checksums:
        write_labels(data.sources, binning, plan, progress)
    write_bins(data.sources.x, binning, plan, progress, group)
    _check_unchanged(data, made_from)
    checksums = {name: progress.listed(name) for name in blocks.arrays}
    with room_for(url, needed):
        remove_bands(group)
        remove_partial_files(url)
        group.attrs.put({_MANIFEST: {**made_from, **_described(profile), "checksums": checksums}})
    return BinnedStore.open(url)


def _complete(url: str, made_from: dict[str, Any]) -> BinnedStore | None:
    """A complete store that is there, if it is the one that would be written; raises if it is another."""
    store = open_store(url)
    try:
        group = zarr.open_group(store, mode="r")
        manifest: Any = group.attrs.get(_MANIFEST)
    except Exception:
        return None  # what is there instead will be seen
    if manifest is None:
        return None
    if any(manifest.get(name) != value for name, value in made_from.items()):
        raise _occupied(url, "a binned store of other data or parameters")
    log.info("the binned store %s is complete and was made from the same data: it is used as it is", url)
    return BinnedStore(url, group, manifest)


def _begun(url: str, made_from: dict[str, Any]) -> zarr.Group:
    """The group of a store that was begun earlier, or of a new one."""
    store = open_store(url, read_only=False)
    path, present = local_path(url), False
    try:
        present = any(path.iterdir()) if path is not None else bool(listed(store, ""))
        if not present:
            create_group(store, url, {_UNFINISHED: made_from})
        group = zarr.open_group(store, mode="r+")
        unfinished: Any = group.attrs.get(_UNFINISHED, {})
    except (DataError, StoreError):
        raise
    except Exception as error:
        if present:
            raise _occupied(url, "something") from error
        if path is not None:
            raise
        raise StoreError(
            f"cannot write to {url!r}: {type(error).__name__}: {error}. Does the bucket exist, and may you write to it?"
        ) from error
    if any(unfinished.get(name) != value for name, value in made_from.items()):
        raise _occupied(url, "an unfinished store of other data or parameters" if unfinished else "something")
    if present:
        log.info("the binned store %s was interrupted: what is there is kept", url)
    return group


def _occupied(url: str, what: str) -> DataError:
    return DataError(f"there is {what} at {url!r} already: give another place, or remove it first.")


def _blocks(group: zarr.Group, url: str, made_from: dict[str, Any], needed: int) -> StoredBlocks:
    n, n_features, rows = made_from["n_rows"], made_from["n_features"], made_from["block_rows"]
    shapes: dict[str, tuple[int, ...]] = {"bins": (n, n_features), "labels": (n,), "weights": (n,)}
    if made_from["keep_values"]:
        shapes["values"] = (n, n_features)
    with room_for(url, needed):
        arrays = {name: block_array(group, name, shape, rows) for name, shape in shapes.items()}
    return StoredBlocks(arrays, url, rows, n, needed)


def _scanned(
    group: zarr.Group,
    data: RawDataset,
    options: ScanOptions,
    plan: IngestPlan,
    progress: Progress,
    profile: Profile | None,
) -> Profile:
    """What the scan found, which the store keeps until it is complete.

    Where there are weights, labels and weights are written first: the scan of the features reads them from the store, whose
    chunks are small.
    """
    unfinished = cast(dict[str, Any], group.attrs[_UNFINISHED])
    if "classes" in unfinished:
        return _profile(group, unfinished, progress.blocks.url)
    if profile is None:
        profile = _found(group, data, options, plan, progress)
    joined, offsets = joined_edges(profile.edges)
    plain_array(group, "edges", joined)
    plain_array(group, "edge_offsets", offsets)
    group.attrs[_UNFINISHED] = {**unfinished, **_described(profile)}
    return profile


def _found(
    group: zarr.Group, data: RawDataset, options: ScanOptions, plan: IngestPlan, progress: Progress
) -> Profile:
    sources, work = data.sources, progress.work
    try:
        classes, scans = ingest.scan_classes(sources, options, work, plan)
        weights = None
        if sources.weights is not None:
            rule = WeightRule(np.ones(len(classes)), 1.0)
            labelling = BinOptions.of(Profile(data.n_rows, classes, scans, []), rule, sources)
            write_labels(sources, labelling, plan, progress)
            weights = ZarrSource(progress.blocks.arrays["weights"], "sample_weight")
        edges = ingest.scan_edges(sources.x, weights, options, work, plan)
    except (DataError, LimitError):
        remove_all(group.store)  # these data will not do, whoever reads them again
        raise
    return Profile(data.n_rows, classes, scans, edges)


def _check_unchanged(data: RawDataset, made_from: dict[str, Any]) -> None:
    """Raises if arrays were written to while they were read."""
    if not any(map(is_file_based, data.sources)) or fingerprint(data.sources) == made_from["source"]:
        return
    raise DataError(
        f"{data.place}, or its labels or weights, was written to while it was being binned. Remove the unfinished store and bin "
        "again when the data no longer change."
    )


def _described(profile: Profile) -> dict[str, Any]:
    """What the manifest says of a profile."""
    classes = profile.classes
    return {
        "class_dtype": classes.dtype.str,
        "classes": (classes.astype(str) if classes.dtype.kind == "M" else classes).tolist(),
        "class_scans": [
            [scan.n_rows, scan.largest_weight, scan.whole_weights] for scan in profile.class_scans
        ],
        "edges_checksum": checksum(*joined_edges(profile.edges)),
    }


def _profile(group: zarr.Group, described: dict[str, Any], url: str) -> Profile:
    try:
        arrays = (cast(zarr.Array, group[name]) for name in ("edges", "edge_offsets"))
        edges, offsets = (np.asarray(array[:]) for array in arrays)
    except Exception as error:
        raise BinnedStoreError(
            f"the edges in the binned store {url!r} cannot be read: {error}. Bin the data again."
        ) from error
    if checksum(edges, offsets) != described["edges_checksum"]:
        raise BinnedStoreError(f"the edges in the binned store {url!r} were altered. Bin the data again.")
    return Profile(
        described["n_rows"],
        np.array(described["classes"], dtype=described["class_dtype"]),
        [ClassScan(*scan) for scan in described["class_scans"]],
        split_edges(edges, offsets),
    )


def _read_block(blocks: StoredBlocks, block: int, checksums: dict[str, int], rule: WeightRule) -> BinnedRows:
    """One block of a store, checked."""
    span = blocks.span(block)
    place = f"rows {span.start} to {span.stop - 1} of the binned store {blocks.url}"
    try:
        found = {name: read_block(blocks, name, block, expected) for name, expected in checksums.items()}
    except ValueError as error:
        raise BinnedStoreError(f"{place} are not what was written: {error}. Bin the data again.") from error
    except Exception as error:
        raise BinnedStoreError(f"{place} cannot be read: {error}. Bin the data again.") from error
    labels = found["labels"]
    return BinnedRows(
        span.start, found["bins"], labels, rule.apply(labels, found["weights"]), found.get("values")
    )


class BinnedStore:
    """A complete binned store."""

    is_stored = True

    def __init__(self, url: str, group: zarr.Group, manifest: dict[str, Any]):
        self.url, self._group, self._manifest = url, group, manifest
        self.n_rows, self.n_features = manifest["n_rows"], manifest["n_features"]

    @staticmethod
    def is_at(url: Any) -> bool:
        """Whether a path or URL leads to a zarr group, as a binned store is (and not an array)."""
        if not isinstance(url, (str, os.PathLike)):
            return False
        try:
            zarr.open_group(open_store(url), mode="r")
        except Exception:
            return False
        return True

    @classmethod
    def open(cls, url: str | os.PathLike) -> BinnedStore:
        """The store at a path or URL; raises BinnedStoreError unless it is complete and of a known version."""
        url = os.fspath(url)
        try:
            group = zarr.open_group(open_store(url), mode="r")
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
    def n_classes(self) -> int:
        return len(self._manifest["classes"])

    @property
    def weighted(self) -> bool:
        scans = self._manifest["class_scans"]
        return any(scan[1:] != [1.0, True] for scan in scans) or sum(scan[0] for scan in scans) < self.n_rows

    def _array(self, name: str) -> zarr.Array:
        return cast(zarr.Array, self._group[name])

    def missing_chunks(self, policy: str) -> list[str]:
        """None to warn of: a chunk that is missing here is an error when it is read."""
        return []

    def profile(self, max_bins: int, seed: int, work: Workplace, memory: int | None = None) -> Profile:
        m = self._manifest
        if max_bins != m["max_bins"]:
            raise DataError(
                f"the binned store {self.url!r} was made with max_bins={m['max_bins']}, not {max_bins}. "
                f"Set max_bins={m['max_bins']}, or bin again."
            )
        return _profile(self._group, m, self.url)

    def binned(
        self, profile: Profile, class_weight: np.ndarray | None, n_parallel: int, keep_values: bool = False
    ) -> BinnedSet:
        m = self._manifest
        if keep_values and not m["keep_values"]:
            raise DataError(
                f"the binned store {self.url!r} holds bins, no raw values, and similarities measure distances between values. "
                "Give fit the arrays that the store was made from, or learn from bins (REBEL: weak_learner='tree')."
            )
        rule = WeightRule(np.ones(len(profile.classes)), 1.0)
        if class_weight is not None:
            rule = WeightRule.of(class_weight, profile.class_scans)
        names = ["bins", "labels", "weights", *(["values"] if keep_values else [])]
        arrays = {name: self._array(name) for name in names}
        blocks = StoredBlocks(arrays, self.url, m["block_rows"], self.n_rows)
        calls = [
            (blocks, block, {name: m["checksums"][name][block] for name in names}, rule)
            for block in range(blocks.n_blocks)
        ]
        spans = map(blocks.span, range(blocks.n_blocks))
        return BinnedSet(_read_block, calls, [span.stop - span.start for span in spans])
