"""Bin rows into a store, or continue an interrupted binning."""

from __future__ import annotations

import logging
import os
from typing import Any, cast

import numpy as np
import zarr

from distboost.data import ingest
from distboost.data.blocks import Profile, TaskRunner
from distboost.data.dataset import RawDataset
from distboost.data.ingest import BinOptions, joined_edges
from distboost.data.ingest_plan import IngestPlan, mebibytes
from distboost.data.row_weights import WeightRule
from distboost.data.scan import ScanOptions
from distboost.data.source import fingerprint
from distboost.data.store.layout import StoredBlocks, block_array, plain_array, store_bytes
from distboost.data.store.manifest import (
    BIN_BYTES,
    NAMES,
    STORE_VERSION,
    array_shapes,
    check_seal,
    opened,
    profile_entries,
    sealed,
    stored_profile,
)
from distboost.data.store.passes import WrittenBlocks, remove_bands, write_bins, write_labels
from distboost.data.store.store import BinnedStore
from distboost.data.stored import ZarrSource
from distboost.errors import DataError, LimitError, StoreError
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

log = logging.getLogger("distboost.data")


def write_store(
    data: RawDataset,
    url: str,
    max_bins: int,
    *,
    seed: int,
    work: TaskRunner,
    memory: int | None = None,
    keep_values: bool = False,
    profile: Profile | None = None,
) -> BinnedStore:
    """Bin the rows into a store at a path or URL.

    A complete store of the same rows is used as it is. An interrupted binning continues.

    Parameters
    ----------
    data : RawDataset
    url : str
    max_bins, seed : int
    work : TaskRunner
    memory : int or None, default=None
        Bytes that this work may take in each process, without libraries and arrays that the caller holds.
    keep_values : bool, default=False
        Store the values beside the bins, for algorithms that measure distances.
    profile : Profile or None, default=None
        A profile with the bin edges, which may come from other rows. None: a scan finds the edges.

    Raises
    ------
    DataError
        If the data cannot be used, or if the place already contains something else.
    LimitError
        If the memory is too small.
    StoreError
        If the disk is full.
    """
    url = os.fspath(url)
    options = ingest.scan_options(data, max_bins, seed)
    plan = data.plan(max_bins, work, memory, keep_values)
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
        NAMES: None if data.names is None else data.names.tolist(),
    }
    if options.categorical:
        made_from["categorical"] = list(options.categorical)
    if data.x.labels:
        made_from["labels"] = [[d, list(labels)] for d, labels in sorted(data.x.labels.items())]
    complete = _complete(url, made_from)
    if complete is not None:
        return complete
    needed = store_bytes(data.n_rows, data.n_features, rows, max_bins, keep_values, data.bin_bytes)
    if plan.merge is not None:  # the bands of one stretch of rows exist beside the blocks
        needed += min(plan.bins.rows, data.n_rows) * data.n_features * (9 if keep_values else 1)
    check_space(url, needed)
    log.info(
        "binning takes up to %s of memory in each process; %s: about %s",
        mebibytes(plan.takes),
        url,
        mebibytes(needed),
    )
    with only_writer(url):
        complete = _complete(url, made_from)  # another process may have completed it meanwhile
        return complete or _write(
            data, url, made_from, options=options, plan=plan, work=work, needed=needed, profile=profile
        )


def _write(
    data: RawDataset,
    url: str,
    made_from: dict[str, Any],
    *,
    options: ScanOptions,
    plan: IngestPlan,
    work: TaskRunner,
    needed: int,
    profile: Profile | None,
) -> BinnedStore:
    """Write the missing parts of a store."""
    remove_partial_files(url)
    with writing(url, needed):
        group = _begun(url, made_from)
    is_sparse = data.bin_bytes < data.n_features
    blocks = _blocks(group, url, made_from, needed, is_sparse)
    progress = WrittenBlocks(blocks, work)
    profile = _scanned(group, data, options, plan=plan, progress=progress, profile=profile)
    rule = WeightRule(np.ones(len(profile.classes)))
    keep_values = made_from["keep_values"]
    binning = BinOptions.of(profile, rule, data, keep_values)
    if "weights" not in progress.checksums:
        write_labels(data, binning, plan, progress)
    write_bins(data.x, binning, plan, progress, group)
    data.check_unchanged()
    _check_written(blocks)
    checksums = {name: progress.listed(name) for name in blocks.arrays}
    with writing(url, needed):
        remove_bands(group)
        remove_partial_files(url)
        entries = {**made_from, **profile_entries(profile), "checksums": checksums}
        entries[BIN_BYTES] = data.bin_bytes if is_sparse else None
        group.attrs.put({MANIFEST: sealed(entries)})
    return BinnedStore.open(url)


def _complete(url: str, made_from: dict[str, Any]) -> BinnedStore | None:
    """Return the complete store at this place, or None; raise DataError if it has other data or parameters."""
    group, manifest = opened(url)
    if group is None or manifest is None:
        return None  # `_begun` checks what else is there
    if any(manifest.get(name) != value for name, value in made_from.items()):
        raise _occupied(url, "a binned store of other data or parameters")
    check_seal(url, manifest)
    log.info("the binned store %s is complete and was made from the same data: it is used as it is", url)
    return BinnedStore(url, group, manifest)


def _begun(url: str, made_from: dict[str, Any]) -> zarr.Group:
    """Return the group of an interrupted store, or of a new one."""
    store = open_store(url, read_only=False)
    path, present = local_path(url), False
    try:
        present = any(path.iterdir()) if path is not None else bool(listed(store, ""))
        if not present:
            create_group(store, url, {UNFINISHED: sealed(made_from)})
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
            f"cannot write to {url!r}: {type(error).__name__}: {error}.",
            remedy="Check that the bucket exists and is writable.",
            where=url,
        ) from error
    if any(unfinished.get(name) != value for name, value in made_from.items()):
        raise _occupied(url, "an unfinished store of other data or parameters" if unfinished else "something")
    if present:
        check_seal(url, unfinished)
        log.info("continuing the interrupted binning of %s", url)
    return group


def _occupied(url: str, what: str) -> DataError:
    return DataError(
        f"there is {what} at {url!r} already.", remedy="Choose another place, or remove it first.", where=url
    )


def _blocks(
    group: zarr.Group, url: str, made_from: dict[str, Any], needed: int, is_sparse: bool
) -> StoredBlocks:
    rows = made_from["block_rows"]
    with writing(url, needed):
        arrays = {
            name: block_array(group, name, shape, rows, is_sparse and name == "bins")
            for name, shape in array_shapes(made_from).items()
        }
    return StoredBlocks(arrays, url, rows, made_from["n_rows"], needed)


def _scanned(
    group: zarr.Group,
    data: RawDataset,
    options: ScanOptions,
    *,
    plan: IngestPlan,
    progress: WrittenBlocks,
    profile: Profile | None,
) -> Profile:
    """Return the profile of the rows. The store keeps it, so that a continued binning does not scan again.

    If there are weights, labels and weights are written first: the scan of the features reads them from the store, whose chunks
    are small.
    """
    unfinished = cast(dict[str, Any], group.attrs[UNFINISHED])
    if "classes" in unfinished:
        return stored_profile(group, unfinished, progress.blocks.url)
    if profile is None:
        profile = _found(group, data, options, plan, progress)
    joined, offsets = joined_edges(profile.edges)
    with writing(progress.blocks.url, progress.blocks.needed):
        plain_array(group, "edges", joined)
        plain_array(group, "edge_offsets", offsets)
        group.attrs[UNFINISHED] = sealed({**unfinished, **profile_entries(profile)})
    return profile


def _found(
    group: zarr.Group, data: RawDataset, options: ScanOptions, plan: IngestPlan, progress: WrittenBlocks
) -> Profile:
    work = progress.work
    try:
        with work.phases.begin("scan", data.n_bytes, "bytes") as advance:
            classes, scans = ingest.scan_classes(data, options, work, plan, advance)
            weights = None
            if data.weights is not None:
                rule = WeightRule(np.ones(len(classes)))
                labelling = BinOptions.of(Profile(data.n_rows, classes, scans, []), rule, data)
                write_labels(data, labelling, plan, progress)
                weights = ZarrSource(progress.blocks.arrays["weights"], "sample_weight")
            found = ingest.scan_edges(data.x, weights, options, work=work, plan=plan, advance=advance)
    except (DataError, LimitError):
        remove_all(group.store)  # the data are invalid: there is nothing to continue
        raise
    return Profile(data.n_rows, classes, scans, *found)


def _check_written(blocks: StoredBlocks) -> None:
    """Raise StoreError unless this process can read all blocks that workers have written."""
    lacking = blocks.n_blocks - len(blocks.candidates(blocks.arrays))
    if lacking:
        raise StoreError(
            f"{lacking} of the {blocks.n_blocks} blocks of the store {blocks.url!r} were written, but are not visible to "
            f"{here()}: some worker has another file system at that path.",
            remedy="Pass a path or URL that all workers share.",
            where=blocks.url,
        )
