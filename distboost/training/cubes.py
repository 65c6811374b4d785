"""Rows of a cube: the cells that have a label.

First the labels are read, box by box, each once. Then the boxes of the features that have such a cell are read, each once, and
the values at these cells go to a table, row by row. All that follows reads the table.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from distboost.data.blocks import TaskRunner
from distboost.data.cells import Cells, Slot, labelled_cells, values_at
from distboost.data.dataset import RawDataset, check_unchanged
from distboost.data.source import (
    PIECE_BYTES,
    ArraySource,
    Bounds,
    BoxSource,
    box_shape,
    boxes,
    spans,
    warnings_about,
)
from distboost.data.stored import ZarrSource
from distboost.errors import DataError, LimitError
from distboost.inputs.base import Input
from distboost.inputs.choose import dataset_of
from distboost.inputs.cube import CubeInput, cell_axes, divided_by_chunks, of_source
from distboost.io.progress import phases_shown
from distboost.io.storage import local_path, writing
from distboost.io.text import megabytes, megabytes_up
from distboost.runtime.choose import open_runtime
from distboost.training.memory_plan import while_reading
from distboost.warn import warn_of_all

IN_MEMORY = 2**24  # bytes of a table that is not in a file
COUNTED = 2**20  # cells whose boxes are found together


class CubeReading(NamedTuple):
    """How a cube is read.

    Attributes
    ----------
    client : Any
        The cluster that reads; None as for `fit`.
    n_threads : int or None
    limit : int or None
        Bytes that one process may take.
    scratch : str or None
        The folder for the table.
    nodata : Any
        A label that is none; None if there is no such label.
    missing_chunks : str
        The policy for chunks that were never written.
    verbose : int
    """

    client: Any = None
    n_threads: int | None = None
    limit: int | None = None
    scratch: str | None = None
    nodata: Any = None
    missing_chunks: str = "warn"
    verbose: int = 0


def labelled_rows(x: Input, y: Any, weights: Any, reading: CubeReading) -> RawDataset:
    """Return labelled rows: of a cube, the cells that have a label."""
    return labelled_of(x, y, weights, reading) if isinstance(x, CubeInput) else dataset_of(x, y, weights)


def labelled_of(cube: CubeInput, y: Any, weights: Any, reading: CubeReading, prefix: str = "") -> RawDataset:
    """Return the cells of a cube that have a label as rows, in C order.

    Parameters
    ----------
    cube : CubeInput
    y : Any
        The labels, a raster. Missing values, values that its attributes mark as missing, and `nodata` are no labels.
    weights : Any
        A raster of weights, or None.
    reading : CubeReading
    prefix : str
        Of the names in messages.
    """
    labels = cube.aligned(y, f"{prefix}y", decoded=False)
    of_weights = None if weights is None else cube.aligned(weights, f"{prefix}sample_weight")
    marks = labels.marks if reading.nodata is None else (*labels.marks, reading.nodata)
    sources = [raster.source for raster in (*cube.rasters, labels, of_weights) if raster is not None]
    checked = [one for one in sources if one is not labels.source or not _may_be_absent(one, marks)]
    warn_of_all(warnings_about(checked, reading.missing_chunks))
    with (
        phases_shown(reading.verbose) as phases,
        open_runtime(reading.client, reading.n_threads, phases=phases) as work,
    ):
        reader = _Reader(work, reading, cube)
        positions, found = reader.labels(labels.source, labels.slot(cube.dims).axes, marks)
        if not len(positions):
            raise DataError(
                f"no cell of {labels.place} has a label: all are missing{_or(marks)}.",
                remedy="Label some cells of at least 2 classes.",
                where=labels.place,
            )
        table = reader.gathered(positions, [one.source for one in cube.rasters], cube.slots, cube.dtype)
        w = None
        if of_weights is not None:
            slots = [of_weights.slot(cube.dims)]
            dtype = of_weights.source.dtype
            w = ArraySource(
                reader.gathered(positions, [of_weights.source], slots, dtype)[:, 0], of_weights.place
            )
    check_unchanged(sources)
    x, cells = ArraySource(table, cube.place), Cells(positions, cube.dims, cube.shape)
    return RawDataset(x, ArraySource(found, labels.place), w, cube.names, cells)


def _may_be_absent(source: BoxSource, marks: tuple[Any, ...]) -> bool:
    """Whether chunks that were never written have no labels: a raster of labels is written where there are some."""
    fill = source.stored.fill_value if isinstance(source, ZarrSource) else None
    return fill is not None and bool(fill != fill or fill in marks)


def _or(marks: tuple[Any, ...]) -> str:
    return f", or {', '.join(map(str, marks))}" if marks else ""


class _Reader:
    """Reads boxes of a cube on the runtime `work`."""

    def __init__(self, work: TaskRunner, reading: CubeReading, cube: CubeInput):
        self.work, self.reading, self.shape, self.place = work, reading, cube.shape, cube.place

    def labels(
        self, source: BoxSource, axes: tuple[int | None, ...], marks: tuple[Any, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells that have a label, (n,) int64 ascending, and their labels, (n,)."""
        whole = tuple((0, axis.length) for axis in source.axes)
        cuts = list(boxes(source.axes, whole, box_shape(source.axes, PIECE_BYTES // source.dtype.itemsize)))
        memory = _box_bytes(source, cuts) + 24 * max(map(_items, cuts), default=0)
        calls = ((source.box(cut), axes, marks) for cut in cuts)
        positions, labels = [], []
        for cut, (found, values) in zip(cuts, self._each(labelled_cells, calls, memory), strict=True):
            if len(found):
                bounds = _of_cube(cut, axes, len(self.shape))
                at = np.unravel_index(found, [b - a for a, b in bounds])
                at = tuple(along + a for along, (a, _) in zip(at, bounds, strict=True))
                positions.append(np.ravel_multi_index(at, self.shape))
                labels.append(values)
        if not positions:
            return np.empty(0, np.int64), np.empty(0, source.dtype)
        joined, of_joined = np.concatenate(positions), np.concatenate(labels)
        del positions, labels  # frees memory for the order
        order = np.argsort(joined, kind="stable")
        return joined[order], of_joined[order]

    def gathered(
        self, positions: np.ndarray, sources: list[BoxSource], slots: list[Slot], dtype: np.dtype
    ) -> np.ndarray:
        """Return the values at these cells, (n, n_columns) of `dtype`. Boxes without any such cell are not read."""
        divided = [*divided_by_chunks(sources, slots)]
        axes = cell_axes(self.shape, sources, slots)
        item = max(source.dtype.itemsize for source in sources)
        n_columns = slots[-1].columns[1]
        sizes = box_shape(axes, PIECE_BYTES // (item * max(_width(slot) for _, slot, _ in divided)))
        cuts = [list(axis.spans(0, axis.length, size)) for axis, size in zip(axes, sizes, strict=True)]
        grid = list(itertools.product(*cuts))
        largest = max(grid, key=_items)
        boxes_of = [(s, _box_bytes(s, [of_source(largest, slot, span)])) for s, slot, span in divided]
        # The boxes of Dask's arrays are computed before the task begins, others one after another.
        memory = sum(n for s, n in boxes_of if s.comes_whole)
        memory += max((n for s, n in boxes_of if not s.comes_whole), default=0)
        rows_of = _rows_by_box(positions, self.shape, cuts)
        out = _table((len(positions), n_columns), dtype, self.reading.scratch)
        todo = [(grid[box], rows) for box, rows in rows_of]
        most = max(len(rows) for _, rows in todo)
        memory += most * (n_columns * dtype.itemsize + 16 * len(self.shape))

        def calls() -> Iterator[tuple[Any, ...]]:
            for bounds, rows in todo:
                at = np.stack(np.unravel_index(positions[rows], self.shape))
                at -= np.array([[a] for a, _ in bounds])
                parts = [source.box(of_source(bounds, slot, span)) for source, slot, span in divided]
                yield at, tuple(slot for _, slot, _ in divided), dtype, *parts

        with self.work.phases.begin("read", len(positions), "rows") as advance:
            answers = self._each(values_at, calls(), memory)
            for (_, rows), values in zip(todo, answers, strict=True):
                out[rows] = values
                advance(len(rows))
        return out

    def _each(self, function: Any, calls: Iterator[tuple[Any, ...]], memory: int) -> Iterator[Any]:
        """Yield function(*call) for each call, of which each takes so many bytes."""
        n_threads = self.work.n_parallel // self.work.n_processes
        limit = self.reading.limit
        if limit is not None:
            libraries = while_reading(self.work.on_cluster)
            if libraries + memory > limit:
                raise LimitError(
                    f"``memory_limit`` is {megabytes(limit)} per process, but reading a tile of {self.place} takes "
                    f"{megabytes_up(libraries + memory)}, libraries included.",
                    remedy="Raise the limit to that, or rechunk into smaller tiles.",
                )
            n_threads = min(n_threads, (limit - libraries) // memory)
        return self.work.each(function, calls, n_threads)


def _items(bounds: Bounds) -> int:
    return math.prod(b - a for a, b in bounds)


def _box_bytes(source: BoxSource, cuts: list[Bounds]) -> int:
    """Return the memory of reading the largest of some boxes, in bytes."""
    largest = max(map(_items, cuts), default=0) * source.dtype.itemsize
    return largest * max(source.copies, 1) + source.read_copies * max(source.chunk_bytes, PIECE_BYTES)


def _width(slot: Slot) -> int:
    return slot.columns[1] - slot.columns[0]


def _of_cube(bounds: Bounds, axes: tuple[int | None, ...], n_dims: int) -> Bounds:
    """Return the bounds in a cube of a box of an array: along each dimension."""
    known = {axis: span for axis, span in zip(axes, bounds, strict=True) if axis is not None}
    return tuple(known.get(axis, (0, 1)) for axis in range(n_dims))


def _rows_by_box(
    positions: np.ndarray, shape: tuple[int, ...], cuts: list[list[tuple[int, int]]]
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each box that has some of these cells, with the rows of these, ascending."""
    grid = [len(along) for along in cuts]
    box = np.empty(len(positions), np.min_scalar_type(math.prod(grid)))
    for start, stop in spans(0, len(positions), COUNTED):
        at = np.unravel_index(positions[start:stop], shape)
        places = [
            np.searchsorted([a for a, _ in along], where, side="right") - 1
            for along, where in zip(cuts, at, strict=True)
        ]
        box[start:stop] = np.ravel_multi_index(tuple(places), grid)
    order = np.argsort(box, kind="stable")
    numbers, counts = np.unique(box, return_counts=True)
    yield from zip(numbers.tolist(), np.split(order, np.cumsum(counts)[:-1]), strict=True)


def _table(shape: tuple[int, int], dtype: np.dtype, scratch: str | None) -> np.ndarray:
    """Return an array for the values of rows. A large one is a file, which is gone when the array is."""
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes <= IN_MEMORY:
        return np.empty(shape, dtype)
    folder = tempfile.gettempdir() if scratch is None or local_path(scratch) is None else scratch
    os.makedirs(folder, exist_ok=True)
    with writing(folder, n_bytes), tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error now, not a signal later
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            file.truncate(n_bytes)
        return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
