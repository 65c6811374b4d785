"""Which rows of a process stay in memory, and what these and the rows that stream take."""

from __future__ import annotations

from typing import NamedTuple

from distboost.io.units import megabytes
from distboost.training.memory_parts import MemoryUse, Task

LEAST_WINDOW = 2  # blocks: with one thread, one is read while another is processed
ORDER_BYTES = 4  # of a row's place in the tree
READ_MEANWHILE = 2  # more blocks than threads, if they come from a URL: the system cannot read them ahead
# A read takes a fixed time beside that of its rows. So small blocks are read in pairs if there are many for each thread.
SMALL_BLOCK = 2**24  # bytes in memory
MANY_BLOCKS = 16


class Division(NamedTuple):
    """Which rows stay in memory: see `MemoryPlan`."""

    resident: int
    room: int
    ordered: int
    window: int
    at_once: int


def divide_rows(
    task: Task, limit: int | None, fixed: int, *, needed: int, share: int, n_threads: int
) -> Division:
    """Divide the memory between rows that stay in memory and rows that stream.

    The process takes `fixed` bytes whichever rows stay in memory, and `needed` bytes if all do. The places of streamed rows come
    first: per byte, they save more reading and writing than anything else.
    """
    if limit is None:
        return Division(share, share, 0, 0, task.at_once or 1)
    if needed <= limit:
        at_once = task.at_once or 1
        room = (limit - fixed - LEAST_WINDOW * _read_bytes(task, at_once)) // task.row_bytes
        return Division(share, max(room, share), 0, 0, at_once)
    one, two = (_divide_streamed(task, limit - fixed, share, n_threads, n) for n in (1, 2))
    if task.at_once is not None:
        return two if task.at_once == 2 else one
    is_small = task.streamed_block_bytes <= SMALL_BLOCK and not task.is_remote
    are_many = share - two.resident >= MANY_BLOCKS * two.window * task.block_rows
    there_is_room = two.window == one.window and two.ordered == share - two.resident
    return two if is_small and are_many and there_is_room else one


def _divide_streamed(task: Task, rest: int, share: int, n_threads: int, at_once: int) -> Division:
    """Divide `rest` bytes, which do not suffice for all rows; `at_once` blocks are read together."""
    block, n_blocks = _read_bytes(task, at_once), -(-share // (at_once * task.block_rows))
    wanted = max(n_threads + (READ_MEANWHILE if task.is_remote else 0), LEAST_WINDOW)
    window = int(min(wanted, max(rest // block, LEAST_WINDOW), n_blocks + 1))
    rest -= window * block
    resident = min(max(rest - share * ORDER_BYTES, 0) // (task.row_bytes - ORDER_BYTES), share)
    ordered = min((rest - resident * task.row_bytes) // ORDER_BYTES, share - resident)
    return Division(resident, resident, ordered, window, at_once)


def _read_bytes(task: Task, at_once: int) -> int:
    """Return the bytes of the blocks that are read together."""
    return task.pair_bytes if at_once == 2 else task.streamed_block_bytes


def row_parts(task: Task, rows: Division, streamed: int) -> list[MemoryUse]:
    """The rows that stay in memory, and those that stream."""
    resident, _, ordered, window, at_once = rows
    block, name = _read_bytes(task, at_once), "pairs of blocks" if at_once == 2 else "blocks"
    places = f", and the places of {ordered} rows in the tree" if ordered else ""
    return [
        MemoryUse(
            "resident rows",
            resident * task.row_bytes,
            f"{resident} rows of {task.row_bytes} B: {_describe_row(task)}",
        ),
        MemoryUse(
            "streamed rows",
            window * block + ordered * ORDER_BYTES,
            f"{streamed} rows, {window} {name} of {megabytes(block)} at a time{places}",
        ),
    ]


def _describe_row(task: Task) -> str:
    """Describe the bytes of a row."""
    scores, statistic, sample = task.score_row_bytes, task.statistic_bytes, task.sample_bytes
    rest = task.state_bytes - scores - statistic - sample
    drawn = f", drawn rows {sample}" if sample else ""
    return f"bins {task.held_bins}, scores {scores}, statistic {statistic}{drawn}, label, weight and place {rest}"
