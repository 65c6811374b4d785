"""The memory plan: how much memory a run needs, before any row is read, and how many rows stay in memory within a limit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from dask.utils import parse_bytes
from distributed.system import memory_limit

from distboost.errors import LimitError
from distboost.io.text import megabytes, megabytes_up
from distboost.runtime.base import Allotment
from distboost.training.memory_parts import (
    LEAST_WINDOW,
    ORDER_BYTES,
    RELAYED,
    RESULTS,
    MemoryUse,
    Task,
    divide_rows,
    histograms_part,
    leader_parts,
    row_parts,
    shares_part,
    sums_part,
    window_part,
)

# Measured: the interpreter with all libraries and compiled kernels, in a process that trains by itself (or that leads a
# training on a cluster), and in a Dask worker. These are for kernels that the process compiles itself. Those that it loads from
# the cache take 100 MB less. A process that only reads and bins needs few kernels.
PROCESS_BYTES = 410 * 10**6
READING_BYTES = 330 * 10**6
WORKER_BYTES = 260 * 10**6
_SIZES = " (``max_depth``, ``max_leaf_nodes``)"


@dataclass(frozen=True)
class MemoryPlan:
    """The memory that a training run needs, as `distboost.plan` returns it and as `memory_plan_` keeps it.

    It is that of one process that holds rows, and of the process that leads a training run on a cluster.

    Attributes
    ----------
    parts : tuple of (name, n_bytes, what)
        The memory of the process with the most rows: for each use, its name, its size in bytes, and what it is.
    leader : tuple of (name, n_bytes, what)
        The memory of the process that leads a training run on a cluster; empty for a training run in one process.
    limit : int or None
        Bytes that a process with rows may take.
    resident, streamed : int
        Rows of that process that stay in memory, and rows that are read from disk in each pass.
    room : int
        Rows that may stay in memory if the process takes over rows of a lost worker.
    window : int
        Streamed blocks, or pairs of them, in memory at a time.
    at_once : int
        Blocks that are read together: 1, or 2 for pairs.
    store_bytes : int
        Size of the binned store from which the streamed rows of all processes are read.
    ordered : int
        Streamed rows whose places in the tree stay in memory.
    scratch_bytes : int
        Size of the files in which one process keeps the scores of its streamed rows.
    window_bytes : int or None
        If the histograms of a tree do not fit: the size of those that are summed at a time in one process.
    """

    parts: tuple[MemoryUse, ...]
    leader: tuple[MemoryUse, ...]
    limit: int | None
    resident: int
    streamed: int
    room: int
    window: int
    at_once: int
    store_bytes: int
    ordered: int
    scratch_bytes: int
    window_bytes: int | None = None

    @property
    def n_bytes(self) -> int:
        """An upper bound of the memory of the process with the most rows: the sum of its parts."""
        return sum(part.n_bytes for part in self.parts)

    @property
    def leader_bytes(self) -> int:
        """An upper bound of the memory of the process that leads a training run on a cluster: the sum of its parts."""
        return sum(part.n_bytes for part in self.leader)

    @property
    def for_ingest(self) -> int | None:
        """Bytes that reading and binning the raw rows may take. No binned rows are in memory during this time."""
        return None if self.limit is None else self.limit - _before_kernels(self.parts[0].n_bytes)

    def allotment(self, scratch: str | None, may_grow: bool = False) -> Allotment | None:
        """The limits of a shard; None if all its rows stay in memory and it gets no others later."""
        if not self.streamed and (self.limit is None or not may_grow):
            return None
        window = max(self.window, LEAST_WINDOW)
        return Allotment(self.room, window, scratch, self.scratch_bytes, self.ordered, self.at_once == 2)


def parse_limit(given: int | str | None) -> int | None:
    """Convert a number of bytes, or a text such as "2GB" or "1,330 MB", as messages write it, to bytes."""
    if given is None:
        return None
    try:
        limit: int = parse_bytes(re.sub(r",(?=\d{3})", "", given) if isinstance(given, str) else int(given))
        if limit < 1:
            raise ValueError("a process needs memory")
    except ValueError as error:
        raise LimitError.expected(
            "``memory_limit``", given, remedy="Set a number of bytes, or a text such as '2GB'."
        ) from error
    return limit


def plan_memory(
    task: Task,
    limit: int | None,
    n_processes: int,
    n_threads: int,
    *,
    on_cluster: bool,
    binning: int = 0,
    leader_limit: int | None = None,
) -> MemoryPlan:
    """Compute how much memory each part takes and how many rows stay in memory.

    Parameters
    ----------
    task : Task
    limit : int or None
        Bytes that one process may take in total. None: all rows stay in memory.
    n_processes : int
        Processes that hold rows.
    n_threads : int
        Threads of each of these processes.
    on_cluster : bool
        Whether these processes are workers, or this process.
    binning : int
        Bytes that binning takes while the rows that stay in memory are already there.
    leader_limit : int or None
        Bytes that the process that leads a training run on a cluster may take in total.

    Raises
    ------
    LimitError
        If the limit is too small for any run. The message names a sufficient limit.
    """
    planner = _Planner(task, n_processes, n_threads, on_cluster, binning)
    _check_limits(planner, limit, leader_limit)
    fixed = planner.fixed(limit)
    share = planner.share
    rows = divide_rows(
        task, limit, fixed.n_bytes, needed=planner.with_all_rows(fixed), share=share, n_threads=n_threads
    )
    resident, room, ordered, window, at_once = rows
    streamed = share - resident
    return MemoryPlan(
        (*fixed.parts, *row_parts(task, rows, streamed)),
        planner.leader(fixed),
        limit,
        resident,
        streamed,
        room,
        window,
        at_once,
        task.n_rows * (task.held_bins + 12) if streamed else 0,
        ordered,
        streamed * (task.state_bytes - 4 + task.stored_bins) - ordered * ORDER_BYTES,
        fixed.window_bytes,
    )


class _Fixed(NamedTuple):
    """What a process with rows takes whichever of them stay in memory; see `MemoryPlan`."""

    libraries: MemoryUse
    histograms: MemoryUse
    shares: MemoryUse
    sums: MemoryUse
    window_bytes: int | None

    @property
    def parts(self) -> list[MemoryUse]:
        shares = [self.shares] if self.shares.n_bytes else []
        return [self.libraries, self.histograms, *shares, self.sums]

    @property
    def n_bytes(self) -> int:
        return sum(part.n_bytes for part in self.parts)


class _Needs(NamedTuple):
    """The least bytes that a process with rows takes to read them and to train, and that the leading process takes."""

    reading: int
    training: int
    leading: int
    streams: bool  # whether all rows stream then

    @property
    def of_rows(self) -> int:
        return max(self.reading, self.training)

    def most(self, leads: bool) -> int:
        """Return what a process takes; `leads`: whether it is the one that leads, or one with rows, whichever takes more."""
        return max(self.of_rows, self.leading if leads else 0)


class _Planner(NamedTuple):
    """The parts of a plan within any limit; the fields are those of `plan_memory`."""

    task: Task
    n_processes: int
    n_threads: int
    on_cluster: bool
    binning: int

    @property
    def share(self) -> int:
        """The most rows of a process."""
        return -(-self.task.n_rows // self.n_processes)

    def fixed(self, limit: int | None) -> _Fixed:
        """Return what is there beside the rows: of the histograms, as much as the limit has room for."""
        task, n = self.task, self.n_threads
        libraries = _libraries(_library_bytes(self.on_cluster))
        sums = sums_part(task, n, "thread", n + (RELAYED if self.on_cluster else RESULTS))
        histograms = histograms_part(task, self.n_processes, self.on_cluster)
        found = _Fixed(libraries, histograms, shares_part(task, n), sums, None)
        if limit is None or found.n_bytes + LEAST_WINDOW * task.streamed_block_bytes <= limit:
            return found
        rest = limit - libraries.n_bytes - sums.n_bytes - LEAST_WINDOW * task.streamed_block_bytes
        rows = self.share * task.row_bytes
        histograms, window_bytes = window_part(task, self.n_processes, self.on_cluster, rest, rows)
        # Without shares: threads share features only.
        return _Fixed(libraries, histograms, found.shares._replace(n_bytes=0), sums, window_bytes)

    def with_all_rows(self, fixed: _Fixed) -> int:
        """Return the bytes that a process takes if all its rows stay in memory."""
        libraries = fixed.libraries.n_bytes
        return max(fixed.n_bytes, libraries + self.binning) + self.share * self.task.row_bytes

    def leader(self, fixed: _Fixed) -> tuple[MemoryUse, ...]:
        if not self.on_cluster:
            return ()
        return leader_parts(self.task, _libraries(PROCESS_BYTES), self.n_processes, fixed.window_bytes)

    def needs(self, limit: int) -> _Needs:
        """Return what a training run takes that is planned within this limit. It suffices if it is no less."""
        fixed = self.fixed(limit)
        streaming = fixed.n_bytes + LEAST_WINDOW * self.task.streamed_block_bytes
        resident = self.with_all_rows(fixed)
        leading = sum(part.n_bytes for part in self.leader(fixed))
        reading = _before_kernels(fixed.libraries.n_bytes) + self.task.ingest
        return _Needs(reading, min(resident, streaming), leading, streaming <= resident)


def while_reading(on_cluster: bool) -> int:
    """Return the bytes of the libraries in a process that reads and bins rows: a worker, or the only process."""
    return _before_kernels(_library_bytes(on_cluster))


def _before_kernels(libraries: int) -> int:
    """Return the bytes of the libraries before the kernels of a training run are loaded."""
    return min(libraries, READING_BYTES)


def _library_bytes(on_cluster: bool) -> int:
    return WORKER_BYTES if on_cluster else PROCESS_BYTES


def _libraries(n_bytes: int) -> MemoryUse:
    return MemoryUse("libraries", n_bytes, "interpreter, libraries, compiled kernels")


def _check_limits(planner: _Planner, limit: int | None, leader_limit: int | None) -> None:
    """Raise LimitError if a limit is too small even when all rows stream. The message names one that suffices."""
    if limit is None:
        return
    common = limit == leader_limit  # else workers spill before that, or nothing limits the process that leads
    needs, enough = _enough(planner, limit, common)
    if enough > limit and common and needs.leading > needs.of_rows:
        raise _leader_refused(limit, enough)
    if enough > limit:
        raise _rows_refused(planner, needs, limit, leader_limit, enough)
    if leader_limit is not None and needs.leading > leader_limit:
        raise _leader_refused(leader_limit, needs.leading)


def _enough(planner: _Planner, limit: int, leads: bool) -> tuple[_Needs, int]:
    """Return the limit if it suffices, else one that does, in whole MB, and what takes so much.

    Within a higher limit, a plan may take more. So it is made within the limit that it asks for, until that suffices. `leads`:
    the limit is that of the process that leads, too.
    """
    found = needs = planner.needs(limit)
    while needs.most(leads) > limit:
        found, limit = needs, math.ceil(needs.most(leads) / 10**6) * 10**6
        needs = planner.needs(limit)
    return found, limit


def _rows_refused(
    planner: _Planner, needs: _Needs, limit: int, leader_limit: int | None, enough: int
) -> LimitError:
    task = planner.task
    begun, remedy = f"``memory_limit`` is {megabytes(limit)} per process", "Raise the limit to that"
    if planner.on_cluster and limit != leader_limit:
        begun = f"a Dask worker may use {megabytes(limit)} before it spills"
        remedy = "Start workers that may use as much (distributed.worker.memory.spill is the share of their memory limit)"
        if leader_limit is not None and leader_limit < enough:
            remedy += ", and raise ``memory_limit`` to that"
    if needs.reading > needs.training:
        return LimitError(
            f"{begun}, but reading and binning the arrays take {megabytes(enough)}, libraries included, even for as few rows "
            "at a time as their chunks allow.",
            remedy=f"{remedy}, or rechunk the arrays into smaller chunks.",
        )
    classes, more = (" at least", " or more") if task.may_have_more_classes else ("", "")
    stays = ", even if all rows stream from disk" if needs.streams else ""
    return LimitError(
        f"{begun}, but {task.n_rows} rows of {task.n_features} features and{classes} {task.algorithm.n_classes} classes take "
        f"{megabytes(enough)}{more} with {task.algorithm.name}, libraries included{stays}.",
        remedy=f"{remedy}{more}, or {_how_to_save(task)}. `distboost plan` shows what takes the memory.",
    )


def _leader_refused(limit: int, needed: int) -> LimitError:
    return LimitError(
        f"``memory_limit`` is {megabytes(limit)} per process, but ``caller|the process that calls fit`` takes "
        f"{megabytes_up(needed)}.",
        remedy="Raise the limit to that. `distboost plan` shows what takes the memory.",
    )


def _how_to_save(task: Task) -> str:
    wide = task.limits.max_depth is None and task.limits.max_leaf_nodes is None
    return (
        f"{'limit' if wide else 'reduce'} the size of the trees{_SIZES} or the number of bins (``max_bins``)"
    )


def excess_warning(found: MemoryPlan) -> str | None:
    """Return a warning if the plan has no limit and needs more memory than this machine or container has."""
    there = memory_limit()
    parts = found.leader if found.leader else found.parts if found.limit is None else ()
    needed = sum(part.n_bytes for part in parts)
    if needed <= there:
        return None
    most = max(parts, key=lambda part: part.n_bytes)
    remedy = (
        f"Use smaller trees{_SIZES} or fewer bins (``max_bins``)"
        if found.leader
        else f"Pass ``memory_limit``, so that rows stream from disk, or use smaller trees{_SIZES} or fewer bins (``max_bins``)"
    )
    return (
        f"this process may take {megabytes(needed)}, but this machine or container has {megabytes(there)}: the system may kill "
        f"the process. The largest part, {megabytes(most.n_bytes)}, is for {most.name} ({most.what}). {remedy}."
    )
