"""Estimate the memory of ingest before the first row is read, and decide how much is read at once.

All figures are bytes of one process, for ingest alone. They do not include libraries and arrays that the caller holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from distboost.data.checks import SCAN_BYTES, SCAN_NUMBERS
from distboost.data.edges import columns_bytes
from distboost.data.scan import SCAN_ROWS, sample_dtype, sample_rows
from distboost.data.source import PIECE_BYTES, Axis, Source
from distboost.errors import LimitError

CALL_BYTES = 2**26  # raw data that one call reads, if memory and chunks allow
BAND_BYTES = 2**24  # a chunk of the intermediate array
CALL_MEMORY = 2**28  # the memory of one call if no limit is given
DEVIATIONS = 6  # standard deviations by which a sample of random rows may exceed its expected size


class Cell(NamedTuple):
    """The rows and columns of one call, and the bytes of memory that it takes."""

    rows: int
    columns: int
    memory: int


@dataclass(frozen=True)
class IngestPlan:
    """How the rows are read.

    Attributes
    ----------
    memory : int
        The limit.
    n_threads : int
        Calls that a process can run at once.
    held : int
        Bytes that the caller holds all the time: the edges.
    sample : int
        Bytes that the caller holds during the scan: the sample of one band of features, and what one thread needs to find edges.
    edge_threads : int
        The threads that find edges at the same time.
    labels, scan, bins : Cell
        The cells that one call reads: labels and weights; features to scan; features to bin.
    merge : Cell or None
        If `bins` has fewer columns than there are features, bins go to an intermediate array first. `merge` is the cell of that
        array that one call reads.
    """

    memory: int
    n_threads: int
    held: int
    sample: int
    edge_threads: int
    labels: Cell
    scan: Cell
    bins: Cell
    merge: Cell | None

    @property
    def least(self) -> int:
        """The memory in bytes if only one call runs at a time."""
        return max(self._beside(cell) + cell.memory for cell in self._cells())

    @property
    def takes(self) -> int:
        """The largest memory in bytes."""
        return max(self._beside(cell) + self.at_once(cell) * cell.memory for cell in self._cells())

    def at_once(self, cell: Cell) -> int:
        """Return how many calls may run at the same time within the limit."""
        return max(1, min(self.n_threads, (self.memory - self._beside(cell)) // cell.memory))

    def _beside(self, cell: Cell) -> int:
        """Return the bytes that the caller holds while calls read such cells."""
        return self.held + (self.sample if cell is self.scan else 0)

    def _cells(self) -> list[Cell]:
        return [cell for cell in (self.labels, self.scan, self.bins, self.merge) if cell is not None]


def plan_ingest(
    x: Source,
    y: Source,
    weights: Source | None,
    max_bins: int,
    block: int,
    *,
    n_parallel: int = 1,
    n_processes: int = 1,
    memory: int | None = None,
    keep_values: bool = False,
    caller_apart: bool = False,
) -> IngestPlan:
    """Plan how to scan these rows and bin them in blocks of `block` rows, within a limit.

    Raises
    ------
    LimitError
        If the limit is too small. The message names a sufficient one.
    """
    n_threads = max(1, n_parallel // n_processes)
    planner = _IngestPlanner(x, y, weights, max_bins, block, n_parallel, n_threads, keep_values, caller_apart)
    least = planner.plan(0)
    if memory is None:
        memory = least.least + n_threads * CALL_MEMORY
    if least.least > memory:
        raise _too_little(memory, least.least, [s for s in (x, y, weights) if s is not None])
    # Take the first plan that fits. Larger cells mean fewer calls, so cells have priority over calls at the same time.
    allowances = (memory >> halvings for halvings in range(memory.bit_length()))
    plan = next((p for p in map(planner.plan, allowances) if p.least <= memory), least)
    return planner.within(plan, memory)


def least_memory(
    x: Source,
    y: Source,
    weights: Source | None,
    *,
    max_bins: int,
    block: int,
    keep_values: bool = False,
    caller_apart: bool = False,
) -> int:
    """Return the smallest limit, in bytes, that suffices to scan and bin these rows."""
    return _IngestPlanner(x, y, weights, max_bins, block, 1, 1, keep_values, caller_apart).plan(0).least


def _too_little(memory: int, least: int, sources: list[Source]) -> LimitError:
    return LimitError(
        f"memory is limited to {memory} bytes ({mebibytes(memory)}), but reading {sources[0].place} takes at least {least} "
        f"({mebibytes(least)}): {largest_chunk(sources)}.",
        remedy="Rechunk that array into smaller chunks, or raise the limit.",
    )


def largest_chunk(sources: Iterable[Source]) -> str:
    """Describe the largest chunk of some arrays."""
    largest = max(sources, key=lambda source: source.chunk_bytes)
    chunk = tuple(min(axis.chunk, axis.length) for axis in largest.axes)
    return f"the largest chunk, {chunk} of {largest.place}, has {largest.chunk_bytes} bytes"


def mebibytes(n: int) -> str:
    """Return a number of bytes as a text in MiB."""
    return f"{n / 2**20:.1f} MiB"


@dataclass(frozen=True)
class _IngestPlanner:
    x: Source
    y: Source
    weights: Source | None
    max_bins: int
    block: int
    n_parallel: int
    n_threads: int
    keep_values: bool
    caller_apart: bool = False  # whether the caller is another process

    def plan(self, allowance: int) -> IngestPlan:
        """Return the plan for an allowance in bytes. An allowance of 0 gives the plan that takes the least memory."""
        n_features = self.x.shape[1]
        scan = self._scan(allowance)
        held = 0 if self.caller_apart else 2 * n_features * self.max_bins * 8
        sample = 0 if self.caller_apart else self._sample(scan.columns) + self._edge_thread
        bins, merge = self._bins(max(allowance - held, 0))
        return IngestPlan(allowance, self.n_threads, held, sample, 1, self._labels(), scan, bins, merge)

    def within(self, plan: IngestPlan, memory: int) -> IngestPlan:
        """Return the plan with its limit, and with as many threads that find edges as there is room for."""
        plan = replace(plan, memory=memory)
        if self.caller_apart:
            return replace(plan, edge_threads=self.n_threads)
        if plan.scan.columns == self.x.shape[1]:  # nothing is read any more
            return replace(plan, edge_threads=min(self.n_threads, 1 + plan.scan.memory // self._edge_thread))
        room = max(memory - plan.held - plan.sample - plan.scan.memory, 0)
        more = min(self.n_threads - 1, room // self._edge_thread)
        return replace(plan, edge_threads=1 + more, sample=plan.sample + more * self._edge_thread)

    def _sample(self, columns: int) -> int:
        """Return the bytes of a band's sample, with the weights of its rows and the known values."""
        return self._most_sampled * (columns * self._sampled + 16) + columns * self.max_bins * 8

    @property
    def _edge_thread(self) -> int:
        """The memory of a thread that finds edges."""
        return columns_bytes(self._most_sampled, self._sampled)

    @property
    def _most_sampled(self) -> int:
        n = sample_rows(*self.x.shape)
        return min(self.x.n_rows, n + math.ceil(DEVIATIONS * math.sqrt(n)))

    def _labels(self) -> Cell:
        """Return the cell of labels and weights: rows of the longer chunks."""
        sources = [s for s in (self.y, self.weights) if s is not None]
        n = self.y.n_rows
        rows = min(n, max(SCAN_ROWS, *(s.chunk_rows for s in sources)))
        loaded = sum(rows * (s.dtype.itemsize + s.copies * s.dtype.itemsize) + _reading(s) for s in sources)
        return Cell(rows, 1, loaded + 8 * rows + 100 * min(rows, SCAN_ROWS))

    def _scan(self, allowance: int) -> Cell:
        n, n_features = self.x.shape
        rows_axis, columns_axis = self.x.axes
        sampled = sample_rows(n, n_features)
        call = min(CALL_BYTES, allowance // (4 * self.n_threads))
        widest = min(
            call // (self._item * min(rows_axis.chunk, n)), allowance // 4 // (sampled * self._sampled)
        )
        columns = _whole_chunks(columns_axis, widest)
        tallest = min(call // (self._item * columns), 2**20, -(-n // self.n_parallel))
        rows = _whole_chunks(rows_axis, tallest)
        table = columns * (9 * 4 * self.max_bins + 16 * self.max_bins)
        sample = min(rows, 2 * rows * sampled // n + 100) * columns * self._sampled
        # The caller's sample has room for that of a call, unless the call belongs to the next band or to another process.
        n_samples = 2 if self.caller_apart else int(columns < n_features)
        flags = rows * (1 if self.weights is None else 17)
        raw = self.x.copies * rows * columns * self._item
        return Cell(rows, columns, _reading(self.x) + self._pieces + table + n_samples * sample + flags + raw)

    def _bins(self, allowance: int) -> tuple[Cell, Cell | None]:
        """Return cells of whole blocks if they fit in memory, else bands of features that are merged afterwards."""
        n, n_features = self.x.shape
        block = min(self.block, n)
        tall = -(-min(self.x.chunk_rows, n) // block)  # blocks of the tallest chunk
        share = allowance // self.n_threads
        least = self._direct(tall * block)
        if tall == 1 or least.memory <= allowance:
            call = min(CALL_BYTES // (block * n_features * self._item), -(-n // block) // self.n_parallel)
            more = (self._direct(k * block) for k in range(call, tall, -1))
            return next((cell for cell in more if cell.memory <= share), least), None
        return self._through_bands(block, tall, share)

    def _direct(self, rows: int) -> Cell:
        rows = min(rows, self.x.n_rows)
        n_features = self.x.shape[1]
        block = min(self.block, rows) * n_features
        raw = self.x.copies * rows * n_features * self._item
        binned = rows * n_features * self._stored + 3 * block * self._widest
        return Cell(rows, n_features, _reading(self.x) + self._pieces + raw + binned)

    def _through_bands(self, block: int, tall: int, share: int) -> tuple[Cell, Cell]:
        n_features = self.x.shape[1]
        columns_axis = self.x.axes[1]
        chunk = min(columns_axis.chunk, n_features)

        def merged(blocks: int, columns: int) -> Cell:
            rows = blocks * block
            written = 3 * self._widest * max(block * n_features, rows * columns)
            return Cell(rows, n_features, rows * n_features * self._stored + written + self._pieces)

        def banded(rows: int, columns: int, strip: int) -> Cell:
            held = (
                rows * columns * (self._stored + self.x.copies * self._item)
                + 3 * strip * columns * self._widest
            )
            return Cell(rows, columns, _reading(self.x) + self._pieces + held)

        blocks = max((k for k in range(1, tall + 1) if merged(k, chunk).memory <= share), default=1)
        strip = blocks * block
        rows = -(-tall // blocks) * strip
        spare = max(share - banded(rows, 0, strip).memory, 0)
        per_column = banded(rows, 1, strip).memory - banded(rows, 0, strip).memory
        widest = min(spare // per_column, BAND_BYTES // (strip * self._widest))
        columns = _whole_chunks(columns_axis, widest)
        return banded(rows, columns, strip), merged(blocks, columns)

    @property
    def _item(self) -> int:
        return self.x.dtype.itemsize

    @property
    def _pieces(self) -> int:
        """The memory of a piece while it is converted, checked and binned."""
        if self.x.dtype == np.uint8:
            return 4 * SCAN_BYTES
        if self.x.dtype in (np.float32, np.float64):
            return 3 * self._item * SCAN_NUMBERS
        return 4 * 8 * SCAN_NUMBERS

    @property
    def _sampled(self) -> int:
        return sample_dtype(self.x.dtype).itemsize

    @property
    def _stored(self) -> int:
        return 9 if self.keep_values else 1

    @property
    def _widest(self) -> int:
        return 8 if self.keep_values else 1


def _whole_chunks(axis: Axis, size: int) -> int:
    """Return about `size`, rounded to whole chunks, at least one."""
    return max(min(axis.length, max(axis.chunk, size // axis.chunk * axis.chunk)), 1)


def _reading(source: Source) -> int:
    """Return the bytes of a read, as measured."""
    return 0 if source.chunk_bytes == 0 else source.read_copies * max(source.chunk_bytes, PIECE_BYTES)
