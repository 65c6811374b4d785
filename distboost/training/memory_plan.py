"""The memory plan: how much memory a training needs, before any row is read, and how many rows stay in memory within a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dask.utils import parse_bytes
from distributed.system import memory_limit

from distboost.errors import LimitError
from distboost.io.units import megabytes, megabytes_up
from distboost.runtime.layout import Allotment
from distboost.training.memory_parts import (
    RELAYED,
    RESULTS,
    Part,
    Task,
    histograms_part,
    leader_parts,
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
LEAST_WINDOW = 2  # blocks: with one thread, one is read while another is processed
ORDER_BYTES = 4  # of a row's place in the tree
READ_MEANWHILE = 2  # more blocks than threads, if they come from a URL: the system cannot read them ahead
# A read takes a fixed time beside that of its rows. So small blocks are read in pairs if there are many for each thread.
SMALL_BLOCK = 2**24  # bytes in memory
MANY_BLOCKS = 16


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of one process that holds rows, and of the process that leads the training.

    Attributes
    ----------
    parts : tuple of Part
        The memory of the process with the most rows.
    leader : tuple of Part
        The memory of the process that leads a training on a cluster; empty for a training in one process.
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

    parts: tuple[Part, ...]
    leader: tuple[Part, ...]
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
        """An upper bound of the memory of the process with the most rows."""
        return sum(part.n_bytes for part in self.parts)

    @property
    def leader_bytes(self) -> int:
        """An upper bound of the memory of the coordinator's process."""
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
    """Convert a number of bytes, or a text such as "2GB", to bytes."""
    if given is None:
        return None
    try:
        limit: int = parse_bytes(given if isinstance(given, str) else int(given))
        if limit < 1:
            raise ValueError("a process needs memory")
    except ValueError as error:
        raise LimitError(
            f"memory_limit is {given!r}. Give a number of bytes, or a text such as '2GB'."
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
        Bytes that the process that leads a training on a cluster may take in total.

    Raises
    ------
    LimitError
        If the limit is too small for any training. The message names a sufficient limit.
    """
    share = -(-task.n_rows // n_processes)
    libraries = _libraries(_library_bytes(on_cluster))
    sums = sums_part(task, n_threads, "thread", n_threads + (RELAYED if on_cluster else RESULTS))
    histograms = histograms_part(task, n_processes, on_cluster)
    shares = shares_part(task, n_threads)
    window_bytes: int | None = None
    if limit is not None:
        rest = limit - libraries.n_bytes - sums.n_bytes - LEAST_WINDOW * task.streamed_block_bytes
        if histograms.n_bytes + shares.n_bytes > rest:
            shares = shares._replace(n_bytes=0)  # then threads share features only
            histograms, window_bytes = window_part(
                task, n_processes, on_cluster, rest, share * task.row_bytes
            )
    sums_of_rows = histograms.n_bytes + shares.n_bytes + sums.n_bytes
    fixed = libraries.n_bytes + sums_of_rows
    needed = libraries.n_bytes + max(sums_of_rows, binning) + share * task.row_bytes
    _check_limit(task, limit, libraries.n_bytes, fixed, needed)
    rows = _divide_rows(task, limit, fixed, needed, share, n_threads)
    resident, room, ordered, window, at_once = rows
    streamed = share - resident
    shared = [shares] if shares.n_bytes else []
    parts = [libraries, histograms, *shared, sums, *_row_parts(task, rows, streamed)]
    leader = leader_parts(task, _libraries(PROCESS_BYTES), n_processes, window_bytes) if on_cluster else ()
    _check_leader(leader, leader_limit)
    return MemoryPlan(
        tuple(parts),
        leader,
        limit,
        resident,
        streamed,
        room,
        window,
        at_once,
        task.n_rows * (task.n_features + 12) if streamed else 0,
        ordered,
        streamed * (task.row_bytes - task.n_features - 4) - ordered * ORDER_BYTES,
        window_bytes,
    )


def while_reading(on_cluster: bool) -> int:
    """Return the bytes of the libraries in a process that reads and bins rows: a worker, or the only process."""
    return _before_kernels(_library_bytes(on_cluster))


def _before_kernels(libraries: int) -> int:
    """Return the bytes of the libraries before the kernels of a training are loaded."""
    return min(libraries, READING_BYTES)


def _library_bytes(on_cluster: bool) -> int:
    return WORKER_BYTES if on_cluster else PROCESS_BYTES


def _libraries(n_bytes: int) -> Part:
    return Part("libraries", n_bytes, "interpreter, libraries, compiled kernels")


class _Division(NamedTuple):
    """Which rows stay in memory: see `MemoryPlan`."""

    resident: int
    room: int
    ordered: int
    window: int
    at_once: int


def _divide_rows(
    task: Task, limit: int | None, fixed: int, needed: int, share: int, n_threads: int
) -> _Division:
    """Divide the memory between rows that stay in memory and rows that stream.

    The process takes `fixed` bytes whichever rows stay in memory, and `needed` bytes if all do. The places of streamed rows come
    first: per byte, they save more reading and writing than anything else.
    """
    if limit is None:
        return _Division(share, share, 0, 0, task.at_once or 1)
    if needed <= limit:
        at_once = task.at_once or 1
        room = (limit - fixed - LEAST_WINDOW * _read_bytes(task, at_once)) // task.row_bytes
        return _Division(share, max(room, share), 0, 0, at_once)
    one, two = (_divide_streamed(task, limit - fixed, share, n_threads, n) for n in (1, 2))
    if task.at_once is not None:
        return two if task.at_once == 2 else one
    is_small = task.streamed_block_bytes <= SMALL_BLOCK and not task.is_remote
    are_many = share - two.resident >= MANY_BLOCKS * two.window * task.block_rows
    there_is_room = two.window == one.window and two.ordered == share - two.resident
    return two if is_small and are_many and there_is_room else one


def _divide_streamed(task: Task, rest: int, share: int, n_threads: int, at_once: int) -> _Division:
    """Divide `rest` bytes, which do not suffice for all rows; `at_once` blocks are read together."""
    block, n_blocks = _read_bytes(task, at_once), -(-share // (at_once * task.block_rows))
    wanted = max(n_threads + (READ_MEANWHILE if task.is_remote else 0), LEAST_WINDOW)
    window = int(min(wanted, max(rest // block, LEAST_WINDOW), n_blocks + 1))
    rest -= window * block
    resident = min(max(rest - share * ORDER_BYTES, 0) // (task.row_bytes - ORDER_BYTES), share)
    ordered = min((rest - resident * task.row_bytes) // ORDER_BYTES, share - resident)
    return _Division(resident, resident, ordered, window, at_once)


def _read_bytes(task: Task, at_once: int) -> int:
    """Return the bytes of the blocks that are read together."""
    return task.pair_bytes if at_once == 2 else task.streamed_block_bytes


def _row_parts(task: Task, rows: _Division, streamed: int) -> list[Part]:
    resident, _, ordered, window, at_once = rows
    block, name = _read_bytes(task, at_once), "pairs of blocks" if at_once == 2 else "blocks"
    places = f", and the places of {ordered} rows in the tree" if ordered else ""
    return [
        Part(
            "resident rows",
            resident * task.row_bytes,
            f"{resident} rows of {task.row_bytes} B: {_describe_row(task)}",
        ),
        Part(
            "streamed rows",
            window * block + ordered * ORDER_BYTES,
            f"{streamed} rows, {window} {name} of {megabytes(block)} at a time{places}",
        ),
    ]


def _describe_row(task: Task) -> str:
    """Describe the bytes of a row."""
    scores, statistic, sample = task.score_row_bytes, task.statistic_bytes, task.sample_bytes
    rest = task.row_bytes - task.n_features - scores - statistic - sample
    drawn = f", drawn rows {sample}" if sample else ""
    return f"bins {task.n_features}, scores {scores}, statistic {statistic}{drawn}, label, weight and place {rest}"


def _check_limit(task: Task, limit: int | None, libraries: int, fixed: int, needed: int) -> None:
    """Raise LimitError if the limit is too small even when all rows stream. The limit that the message names is sufficient."""
    streaming = fixed + LEAST_WINDOW * task.streamed_block_bytes
    training, reading = min(needed, streaming), _before_kernels(libraries) + task.ingest
    if limit is None or limit >= max(training, reading):
        return
    enough = megabytes_up(max(training, reading))
    begun = f"memory_limit is {megabytes(limit)} per process, but "
    if reading > training:
        raise LimitError(
            f"{begun}reading and binning the arrays take {enough}, libraries included, even for as few rows at a time as their "
            "chunks allow. Raise the limit to that, or rechunk the arrays into smaller chunks."
        )
    classes, more = (" at least", " or more") if task.may_have_more_classes else ("", "")
    stays = "" if needed < streaming else ", even if all rows stream from disk"
    raise LimitError(
        f"{begun}{task.n_rows} rows of {task.n_features} features and{classes} {task.algorithm.n_classes} classes take {enough}"
        f"{more} with {task.algorithm.name}, libraries included{stays}. Raise the limit to that{more}, or {_how_to_save(task)}. "
        "`distboost plan` shows what takes the memory."
    )


def _check_leader(parts: tuple[Part, ...], limit: int | None) -> None:
    """Raise LimitError if the limit is too small for the process that leads a training on a cluster."""
    needed = sum(part.n_bytes for part in parts)
    if limit is None or needed <= limit:
        return
    raise LimitError(
        f"memory_limit is {megabytes(limit)} per process, but the process that calls fit takes "
        f"{megabytes_up(needed)}. Raise the limit to that. `distboost plan` shows what takes the memory."
    )


def _how_to_save(task: Task) -> str:
    wide = task.limits.max_depth is None and task.limits.max_leaf_nodes is None
    return f"{'limit' if wide else 'reduce'} the size of the trees (max_depth, max_leaf_nodes) or the number of bins (max_bins)"


def excess_warning(found: MemoryPlan) -> str | None:
    """Return a warning if the plan has no limit and needs more memory than this machine or container has."""
    there = memory_limit()
    parts = found.leader if found.leader else found.parts if found.limit is None else ()
    needed = sum(part.n_bytes for part in parts)
    if needed <= there:
        return None
    most = max(parts, key=lambda part: part.n_bytes)
    remedy = (
        "Use smaller trees (max_depth, max_leaf_nodes) or fewer bins (max_bins)"
        if found.leader
        else "Give a memory_limit, so that rows stream from disk, or use smaller trees (max_depth, max_leaf_nodes) or fewer bins "
        "(max_bins)"
    )
    return (
        f"this process may take {megabytes(needed)}, but this machine or container has {megabytes(there)}: the system may kill "
        f"the process. The largest part, {megabytes(most.n_bytes)}, is for {most.name} ({most.what}). {remedy}."
    )
