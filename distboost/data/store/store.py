"""The binned store: rows binned once, to be trained on many times.

A zarr group of `bins` (n, D) uint8, `labels` (n,) and `weights` (n,), perhaps `values` (n, D), with the bin edges beside them.
Every chunk is written whole, by one writer, with a checksum. The manifest, an attribute of the group, is written last: a store
without one is incomplete. It has a checksum of its own, and holds a second one per block: zarr reads a chunk that is not there as
the fill value.

Until then another attribute says what the store is made from and how far that is, so that an interrupted binning can go on.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from contextlib import suppress
from typing import Any, cast

import numpy as np
import zarr
from zarr.core.sync import sync
from zarr.errors import ContainsArrayError

from distboost.data import ingest
from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.data.dataset import RawDataset
from distboost.data.fingerprint import fingerprint
from distboost.data.ingest import BinOptions, joined_edges, split_edges
from distboost.data.ingest_plan import IngestPlan, mebibytes
from distboost.data.labels import plain, restored
from distboost.data.profile import ClassScan, Profile, ScanOptions, WeightRule
from distboost.data.sources import ZarrSource
from distboost.data.store.layout import (
    StoredBlocks,
    block_array,
    checksum,
    is_block_array,
    plain_array,
    store_bytes,
)
from distboost.data.store.passes import Progress, remove_bands, write_bins, write_labels
from distboost.data.store.reading import intact, read_block
from distboost.data.work import TaskRunner
from distboost.errors import BinnedStoreError, DataError, LimitError, StoreError
from distboost.io.retry import is_damage, retried, said
from distboost.io.storage import (
    MANIFEST,
    UNFINISHED,
    check_space,
    create_group,
    here,
    listed,
    local_path,
    only_writer,
    open_store,
    remove_all,
    remove_partial_files,
    writing,
)

STORE_VERSION = 3
_COMPARED = {"checksum", "checksums", "source"}
_REMEDY = "Bin the data again, after removing this store."

log = logging.getLogger("distboost.data")


def write_store(
    data: RawDataset,
    url: str,
    max_bins: int,
    seed: int,
    work: TaskRunner,
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
    work : TaskRunner
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
    work: TaskRunner,
    needed: int,
    profile: Profile | None,
) -> BinnedStore:
    """What is still to be done of a store."""
    remove_partial_files(url)
    with writing(url, needed):
        group = _begun(url, made_from)
    blocks = _blocks(group, url, made_from, needed)
    progress = Progress(blocks, work)
    profile = _scanned(group, data, options, plan, progress, profile)
    rule = WeightRule(np.ones(len(profile.classes)))
    keep_values = made_from["keep_values"]
    binning = BinOptions.of(profile, rule, data.sources, keep_values)
    if "weights" not in progress.checksums:
        write_labels(data.sources, binning, plan, progress)
    write_bins(data.sources.x, binning, plan, progress, group)
    data.check_unchanged()
    _check_written(blocks)
    checksums = {name: progress.listed(name) for name in blocks.arrays}
    with writing(url, needed):
        remove_bands(group)
        remove_partial_files(url)
        group.attrs.put({MANIFEST: _sealed({**made_from, **_described(profile), "checksums": checksums})})
    return BinnedStore.open(url)


def _complete(url: str, made_from: dict[str, Any]) -> BinnedStore | None:
    """A complete store that is there, if it is the one that would be written; raises if it is another."""
    group, manifest = _opened(url)
    if group is None or manifest is None:
        return None  # what is there instead will be seen
    if any(manifest.get(name) != value for name, value in made_from.items()):
        raise _occupied(url, "a binned store of other data or parameters")
    _check_seal(url, manifest)
    log.info("the binned store %s is complete and was made from the same data: it is used as it is", url)
    return BinnedStore(url, group, manifest)


def _begun(url: str, made_from: dict[str, Any]) -> zarr.Group:
    """The group of a store that was begun earlier, or of a new one."""
    store = open_store(url, read_only=False)
    path, present = local_path(url), False
    try:
        present = any(path.iterdir()) if path is not None else bool(listed(store, ""))
        if not present:
            create_group(store, url, {UNFINISHED: _sealed(made_from)})
        group = zarr.open_group(store, mode="r+")
        unfinished: Any = group.attrs.get(UNFINISHED, {})
    except (DataError, StoreError):
        raise
    except Exception as error:
        if path is not None and isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise
        if present:
            raise _occupied(url, "something") from error
        raise StoreError(
            f"cannot write to {url!r}: {type(error).__name__}: {error}. Does the bucket exist, and may you write to it?"
        ) from error
    if any(unfinished.get(name) != value for name, value in made_from.items()):
        raise _occupied(url, "an unfinished store of other data or parameters" if unfinished else "something")
    if present:
        _check_seal(url, unfinished)
        log.info("the binned store %s was interrupted: what is there is kept", url)
    return group


def _occupied(url: str, what: str) -> DataError:
    return DataError(f"there is {what} at {url!r} already: give another place, or remove it first.")


def _blocks(group: zarr.Group, url: str, made_from: dict[str, Any], needed: int) -> StoredBlocks:
    rows = made_from["block_rows"]
    with writing(url, needed):
        arrays = {name: block_array(group, name, shape, rows) for name, shape in _shapes(made_from).items()}
    return StoredBlocks(arrays, url, rows, made_from["n_rows"], needed)


def _shapes(made_from: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Of the arrays that are cut into blocks."""
    n, n_features = made_from["n_rows"], made_from["n_features"]
    shapes: dict[str, tuple[int, ...]] = {"bins": (n, n_features), "labels": (n,), "weights": (n,)}
    return {**shapes, "values": (n, n_features)} if made_from["keep_values"] else shapes


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
    unfinished = cast(dict[str, Any], group.attrs[UNFINISHED])
    if "classes" in unfinished:
        return _profile(group, unfinished, progress.blocks.url)
    if profile is None:
        profile = _found(group, data, options, plan, progress)
    joined, offsets = joined_edges(profile.edges)
    with writing(progress.blocks.url, progress.blocks.needed):
        plain_array(group, "edges", joined)
        plain_array(group, "edge_offsets", offsets)
        group.attrs[UNFINISHED] = _sealed({**unfinished, **_described(profile)})
    return profile


def _found(
    group: zarr.Group, data: RawDataset, options: ScanOptions, plan: IngestPlan, progress: Progress
) -> Profile:
    sources, work = data.sources, progress.work
    try:
        classes, scans = ingest.scan_classes(sources, options, work, plan)
        weights = None
        if sources.weights is not None:
            rule = WeightRule(np.ones(len(classes)))
            labelling = BinOptions.of(Profile(data.n_rows, classes, scans, []), rule, sources)
            write_labels(sources, labelling, plan, progress)
            weights = ZarrSource(progress.blocks.arrays["weights"], "sample_weight")
        edges = ingest.scan_edges(sources.x, weights, options, work, plan)
    except (DataError, LimitError):
        remove_all(group.store)  # these data will not do, whoever reads them again
        raise
    return Profile(data.n_rows, classes, scans, edges)


def _check_written(blocks: StoredBlocks) -> None:
    """Raises unless this process sees what workers say they have written."""
    lacking = blocks.n_blocks - len(blocks.candidates(blocks.arrays))
    if lacking:
        raise StoreError(
            f"{lacking} of the {blocks.n_blocks} blocks of the store {blocks.url!r} were written, but are not there for "
            f"{here()}: some worker has another file system at that place. Give a path or URL that all workers share."
        )


def _described(profile: Profile) -> dict[str, Any]:
    """What the manifest says of a profile."""
    classes = profile.classes
    return {
        "class_dtype": classes.dtype.str,
        "classes": plain(classes),
        "class_scans": [
            [scan.n_rows, scan.largest_weight, scan.whole_weights] for scan in profile.class_scans
        ],
        "edges_checksum": checksum(*joined_edges(profile.edges)),
    }


def _sealed(entries: dict[str, Any]) -> dict[str, Any]:
    return {**entries, "checksum": _seal(entries)}


def _seal(entries: dict[str, Any]) -> int:
    """The checksum of what a manifest says, but for what is compared with the data: the checksums of the blocks, the source."""
    covered = {name: value for name, value in entries.items() if name not in _COMPARED}
    return zlib.crc32(json.dumps(covered, sort_keys=True).encode())


def _check_seal(url: str, entries: dict[str, Any]) -> None:
    found, expected = _seal(entries), entries.get("checksum")
    if found != expected:
        raise _damaged(url, f"the checksum of its manifest is {found}, not {expected!r}")


def _damaged(url: str, what: str) -> BinnedStoreError:
    return BinnedStoreError(f"zarr.json of the binned store {url} is damaged: {what}. {_REMEDY}")


def _opened(url: str) -> tuple[zarr.Group | None, Any]:
    """The group at a path or URL, if there is one, and the manifest, if it has one."""
    try:
        store = open_store(url)
        group = retried(lambda: zarr.open_group(store, mode="r"), f"zarr.json of the binned store {url}")
    except (FileNotFoundError, ContainsArrayError):
        return None, None
    except Exception as error:
        if not is_damage(error):
            raise
        raise _damaged(url, said(error)) from error
    return group, group.attrs.get(MANIFEST)


def _profile(group: zarr.Group, described: dict[str, Any], url: str) -> Profile:
    def read() -> list[np.ndarray]:
        arrays = (cast(zarr.Array, group[name]) for name in ("edges", "edge_offsets"))
        joined = [np.asarray(array[:]) for array in arrays]
        found, expected = checksum(*joined), described["edges_checksum"]
        if found != expected:
            raise ValueError(f"their checksum is {found:08x}, not {expected:08x}")
        return joined

    edges, offsets = intact(read, f"arrays edges and edge_offsets of the binned store {url}")
    return Profile(
        described["n_rows"],
        _classes(described, url),
        [ClassScan(*scan) for scan in described["class_scans"]],
        split_edges(edges, offsets),
    )


def _classes(described: dict[str, Any], url: str) -> np.ndarray:
    try:
        return restored(described["classes"], described["class_dtype"], ValueError)
    except ValueError as error:
        raise _damaged(url, str(error).removesuffix(".")) from error


def _read_block(blocks: StoredBlocks, block: int, checksums: dict[str, int], rule: WeightRule) -> BinnedRows:
    """One block of a store, checked."""
    found = {name: read_block(blocks, name, block, expected) for name, expected in checksums.items()}
    labels = found["labels"]
    return BinnedRows(
        blocks.span(block).start,
        found["bins"],
        labels,
        rule.apply(labels, found["weights"]),
        found.get("values"),
    )


class BinnedStore:
    """A complete binned store."""

    is_stored = True

    def __init__(self, url: str, group: zarr.Group, manifest: dict[str, Any]):
        self.url, self._group, self._manifest = url, group, manifest
        self.n_rows, self.n_features = manifest["n_rows"], manifest["n_features"]

    @staticmethod
    def is_at(url: Any) -> bool:
        """Whether a path or URL leads to a zarr group, as a binned store is (and not an array), or to what is left of a store."""
        if not isinstance(url, (str, os.PathLike)):
            return False
        with suppress(BinnedStoreError):  # zarr.json is damaged, that of a store or that of an array
            if _opened(os.fspath(url))[0] is not None:
                return True
        with suppress(Exception):
            return sync(open_store(url).exists("labels/zarr.json"))
        return False

    @classmethod
    def open(cls, url: str | os.PathLike) -> BinnedStore:
        """The store at a path or URL; raises BinnedStoreError unless it is complete and of a known version."""
        url = os.fspath(url)
        group, manifest = _opened(url)
        if group is None or not isinstance(manifest, dict):
            raise BinnedStoreError(
                f"{url!r} is no binned store (no zarr.json there has its manifest), or binning was interrupted before its "
                "manifest was written. Bin the data again: distboost bin."
            )
        if manifest.get("version") != STORE_VERSION:
            raise BinnedStoreError(
                f"the binned store {url!r} has version {manifest.get('version')!r}, expected {STORE_VERSION}. Bin the data again."
            )
        _check_seal(url, manifest)
        return cls(url, group, manifest)

    @property
    def n_classes(self) -> int:
        return len(self._manifest["classes"])

    @property
    def weighted(self) -> bool:
        scans = self._manifest["class_scans"]
        return any(scan[1:] != [1.0, True] for scan in scans) or sum(scan[0] for scan in scans) < self.n_rows

    def _array(self, name: str) -> zarr.Array:
        shape, rows = _shapes(self._manifest)[name], self._manifest["block_rows"]

        def read() -> zarr.Array:
            array = self._group[name]
            if not is_block_array(array, name, shape, rows):
                raise ValueError(f"it is {array}, not of shape {shape} in chunks of {rows} rows")
            return cast(zarr.Array, array)

        return intact(read, f"the metadata of array {name} of the binned store {self.url}")

    def _checksums(self, name: str) -> list[int]:
        """Of the blocks of an array."""
        found, n = self._manifest["checksums"].get(name, []), -(-self.n_rows // self._manifest["block_rows"])
        if len(found) != n:
            raise _damaged(self.url, f"it has {len(found)} checksums of array {name}, expected {n}")
        return found

    def check_unchanged(self) -> None:
        """Each block has a checksum."""

    def missing_chunks(self, policy: str) -> list[str]:
        """None to warn of: a chunk that is missing here is an error when it is read."""
        return []

    def profile(self, max_bins: int, seed: int, work: TaskRunner, memory: int | None = None) -> Profile:
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
        rule = WeightRule(np.ones(len(profile.classes)))
        if class_weight is not None:
            rule = WeightRule.of(class_weight, profile.class_scans)
        names = ["bins", "labels", "weights", *(["values"] if keep_values else [])]
        arrays = {name: self._array(name) for name in names}
        blocks = StoredBlocks(arrays, self.url, m["block_rows"], self.n_rows)
        checksums = {name: self._checksums(name) for name in names}
        calls = [
            (blocks, block, {name: checksums[name][block] for name in names}, rule)
            for block in range(blocks.n_blocks)
        ]
        spans = map(blocks.span, range(blocks.n_blocks))
        return BinnedSet(_read_block, calls, [span.stop - span.start for span in spans])
