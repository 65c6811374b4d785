"""The passes that fill a binned store. Each consists of calls that read cells of raw arrays and write whole blocks.

Blocks that are already in the store are not written again, so that an interrupted binning continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import zarr

from distboost.data.blocks import TaskRunner
from distboost.data.dataset import RawDataset
from distboost.data.ingest import BinOptions, bin_features, bin_labels
from distboost.data.ingest_plan import IngestPlan
from distboost.data.inventory import chunk_key, delete_chunk, has_chunk
from distboost.data.memory import returned_when_freed
from distboost.data.scan import SCAN_ROWS
from distboost.data.source import Source, load, spans
from distboost.data.store.layout import StoredBlocks, Written, chunked_array, verified
from distboost.errors import BinnedStoreError
from distboost.io.retry import quoted, retried
from distboost.io.storage import listed, writing

_BANDS = "bands"  # the group of the intermediate arrays


@dataclass
class WrittenBlocks:
    """The blocks of a store that have been written, with their checksums: {array: {block: CRC-32}}."""

    blocks: StoredBlocks
    work: TaskRunner
    checksums: dict[str, dict[int, int]] = field(default_factory=dict)

    def take_up(self, names: tuple[str, ...], at_once: int) -> None:
        """Find the blocks that are in the store and intact."""
        calls = ((self.blocks, names, block) for block in self.blocks.candidates(names))
        for written in self.work.each(verified, calls, at_once):
            self.add(written)

    def add(self, written: list[Written]) -> None:
        for name, block, checksum in written:
            self.checksums.setdefault(name, {})[block] = checksum

    def lacking(self, name: str, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the spans of rows within first .. stop - 1 whose blocks are not written yet."""
        done = self.checksums.get(name, {})
        for there, blocks in groupby(self.blocks.of(first, stop), key=lambda block: block in done):
            if not there:
                stretch = [self.blocks.span(block) for block in blocks]
                yield stretch[0].start, stretch[-1].stop

    def listed(self, name: str) -> list[int]:
        return [self.checksums[name][block] for block in range(self.blocks.n_blocks)]


def write_labels(data: RawDataset, options: BinOptions, plan: IngestPlan, progress: WrittenBlocks) -> None:
    """Write labels and weights, in one pass over them."""
    blocks, work = progress.blocks, progress.work
    at_once = plan.at_once(plan.labels)
    progress.take_up(("labels", "weights"), at_once)
    rows = -(-plan.labels.rows // blocks.rows) * blocks.rows
    shared = work.share((options, blocks))
    calls = (
        (*data.labels(a, b), a, shared)
        for unit in spans(0, data.x.n_rows, rows)
        for a, b in progress.lacking("weights", *unit)
    )
    for written in work.each(_write_labels, calls, at_once):
        progress.add(written)


@returned_when_freed()
def _write_labels(y: Any, weights: Any, first: int, shared: tuple[BinOptions, StoredBlocks]) -> list[Written]:
    options, blocks = shared
    y, weights = load(y), None if weights is None else load(weights)
    written = []
    step = max(SCAN_ROWS // blocks.rows, 1) * blocks.rows
    for a, b in spans(0, len(y), step):
        some = slice(a, b)
        labels, w = bin_labels(y[some], None if weights is None else weights[some], first + a, options)
        written += blocks.write(first + a, {"labels": labels, "weights": w})
    return written


def write_bins(
    x: Source, options: BinOptions, plan: IngestPlan, progress: WrittenBlocks, group: zarr.Group
) -> None:
    """Write the bins, in one pass over the features."""
    names = ("bins", "values") if options.keep_values else ("bins",)
    progress.take_up(names, plan.n_threads)
    if plan.merge is None:
        _write_blocks(x, options, plan, progress)
    else:
        _write_through_bands(x, options, plan, progress, group)


def _write_blocks(x: Source, options: BinOptions, plan: IngestPlan, progress: WrittenBlocks) -> None:
    """Write blocks directly: whole blocks fit in memory."""
    work, units = progress.work, spans(0, x.n_rows, plan.bins.rows)
    cuts = [span for unit in units for span in progress.lacking("bins", *unit)]
    there = x.n_rows - sum(b - a for a, b in cuts)
    with work.phases.begin("bin", x.n_rows * x.row_bytes, "bytes", there * x.row_bytes) as advance:
        shared = work.share((options, progress.blocks))
        calls = ((x.part(a, b), a, shared) for a, b in cuts)
        answers = work.each(_bin_blocks, calls, plan.at_once(plan.bins))
        for (a, b), written in zip(cuts, answers, strict=True):
            progress.add(written)
            advance((b - a) * x.row_bytes)


@returned_when_freed()
def _bin_blocks(x: Any, first: int, shared: tuple[BinOptions, StoredBlocks]) -> list[Written]:
    options, blocks = shared
    bins, values = bin_features(x, first, 0, options)
    return blocks.write(first, {"bins": bins} if values is None else {"bins": bins, "values": values})


@dataclass(frozen=True)
class _Bands:
    """Intermediate arrays of bins (and values): chunks are strips of rows by bands of features."""

    arrays: dict[str, zarr.Array[Any]]
    blocks: StoredBlocks  # the blocks made from them

    @property
    def rows(self) -> int:
        return self._any.chunks[0]

    @property
    def columns(self) -> int:
        return self._any.chunks[1]

    @property
    def _any(self) -> zarr.Array[Any]:
        return self.arrays["bins"]

    def chunks(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the strips and bands of some rows."""
        n_bands = -(-self._any.shape[1] // self.columns)
        strips = range(first // self.rows, -(-stop // self.rows))
        return ((strip, band) for strip in strips for band in range(n_bands))


def _write_through_bands(
    x: Source, options: BinOptions, plan: IngestPlan, progress: WrittenBlocks, group: zarr.Group
) -> None:
    """Write bands of features first, then blocks made of them: chunks are so tall that whole blocks do not fit in memory.

    Rows are processed span by span. Intermediate chunks are deleted as soon as they have become blocks.
    """
    assert plan.merge is not None
    work, (n, n_features) = progress.work, x.shape
    chunks = min(plan.merge.rows, n), plan.bins.columns
    folder = group.require_group(_BANDS)
    names = ("bins", "values") if options.keep_values else ("bins",)
    arrays = {name: chunked_array(folder, name, name, (n, n_features), chunks) for name in names}
    bands = _Bands(arrays, progress.blocks)
    shared = work.share((options, bands))
    merged_bytes = sum(array.dtype.itemsize for array in arrays.values()) * n_features  # of a row
    there = n - sum(b - a for a, b in progress.lacking("bins", 0, n))
    read = x.row_bytes + merged_bytes
    with work.phases.begin("bin", n * read, "bytes", there * read) as advance:
        for a, b in spans(0, n, plan.bins.rows):
            strips = [span for span in spans(a, b, bands.rows) if any(progress.lacking("bins", *span))]
            cells = list(_cells(bands, strips, a, b))
            calls = ((x.part(c, d, (e, f)), c, e, shared) for c, d, e, f in cells)
            binned = work.each(_bin_band, calls, plan.at_once(plan.bins))
            for (c, d, e, f), _ in zip(cells, binned, strict=True):
                advance((d - c) * (f - e) * x.dtype.itemsize)
            merges = ((start, stop, shared) for start, stop in strips)
            merged = work.each(_merge_bands, merges, plan.at_once(plan.merge))
            for (start, stop), written in zip(strips, merged, strict=True):
                progress.add(written)
                advance((stop - start) * merged_bytes)


def _cells(
    bands: _Bands, strips: list[tuple[int, int]], a: int, b: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the cells of the rows a .. b - 1 that lack some chunk."""
    n_features = bands.arrays["bins"].shape[1]
    present = [listed(array.store, f"{array.path}/") for array in bands.arrays.values()]
    for band, first in enumerate(range(0, n_features, bands.columns)):
        keys = [
            {chunk_key(array, start // bands.rows, band) for start, _ in strips}
            for array in bands.arrays.values()
        ]
        if any(wanted - there for wanted, there in zip(keys, present, strict=True)):
            yield a, b, first, min(first + bands.columns, n_features)


@returned_when_freed()
def _bin_band(x: Any, first: int, column: int, shared: tuple[BinOptions, _Bands]) -> None:
    options, bands = shared
    bins, values = bin_features(x, first, column, options)
    n, n_features = bins.shape
    for name, content in (("bins", bins), ("values", values)):
        if content is None:
            continue
        for a, b in spans(0, n, bands.rows):
            with writing(bands.blocks.url, bands.blocks.needed):
                bands.arrays[name][first + a : first + b, column : column + n_features] = content[a:b]


@returned_when_freed()
def _merge_bands(first: int, stop: int, shared: tuple[BinOptions, _Bands]) -> list[Written]:
    """Write the blocks of a strip of rows, and delete its intermediate chunks."""
    _, bands = shared
    written = []
    for name, array in bands.arrays.items():
        content = np.empty((stop - first, array.shape[1]), array.dtype)
        for strip, band in bands.chunks(first, stop):
            columns = slice(band * bands.columns, (band + 1) * bands.columns)
            content[:, columns] = _band_chunk(
                array, strip, band, rows=slice(first, stop), columns=columns, url=bands.blocks.url
            )
        written += bands.blocks.write(first, {name: content})
    with writing(bands.blocks.url, bands.blocks.needed):
        for array in bands.arrays.values():
            for strip, band in bands.chunks(first, stop):
                delete_chunk(array, strip, band)
    return written


def _band_chunk(
    array: zarr.Array[Any], strip: int, band: int, *, rows: slice, columns: slice, url: str
) -> np.ndarray:
    what = f"chunk {chunk_key(array, strip, band)}, an intermediate one of the binned store {url}"

    def read() -> np.ndarray:
        if not has_chunk(array, strip, band):
            raise FileNotFoundError("it is not there")
        return np.asarray(array[rows, columns])

    try:
        return retried(read, what, reread=True)
    except MemoryError:
        raise
    except Exception as error:
        with suppress(OSError):
            delete_chunk(array, strip, band)  # so that it is written again
        raise BinnedStoreError(
            f"{what} is gone or damaged: {quoted(error)}.",
            remedy="Make sure that no other process writes there, and bin again: the blocks in the store are kept.",
        ) from error


def remove_bands(group: zarr.Group) -> None:
    """Remove the bands that the merge has read."""
    if _BANDS in group:
        del group[_BANDS]
