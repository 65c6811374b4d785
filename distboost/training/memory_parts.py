"""What a training run keeps in memory, and how much that takes."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from distboost.algorithms.base import Algorithm
from distboost.data.ingest import block_rows
from distboost.io.text import megabytes
from distboost.kernels import simd
from distboost.kernels.histogram import TILE_BYTES
from distboost.rows.sums import Statistic
from distboost.runtime.cluster.exchange import PIECE_BYTES
from distboost.runtime.cluster.owners import FEW_BYTES, exchange_pays, group_size
from distboost.runtime.cluster.questions import FAN_OUT
from distboost.runtime.cluster.reduce_to_owners import SENT_AT_ONCE
from distboost.runtime.parts import SHARED_BYTES
from distboost.trees.grower import GrowthLimits

# Beside the accumulators of a reduction: its sums as real numbers, and a copy that the algorithm makes.
RESULTS = 2
# In a worker: the sum over its rows, two such sums from workers below it, and the sum of these.
RELAYED = 4
# Histograms of a tree, as a multiple of those of the largest question: one of three nodes.
MOST_KEPT = 3


class MemoryUse(NamedTuple):
    """One use of memory: its name, its size in bytes and a description for the user."""

    name: str
    n_bytes: int
    what: str


@dataclass(frozen=True)
class Task:
    """The properties of a training run that determine its memory.

    Parameters
    ----------
    algorithm : Algorithm
    limits : GrowthLimits
    n_rows : int
        Training and evaluation rows together.
    n_features, max_bins : int
    score_bytes : int
        Size of one score.
    weighted : bool
        Whether rows may have weights other than 1.
    n_bins : int or None
        Bins of all features together. None if they are not known yet: the plan then assumes the maximum.
    ingest : int
        The least number of bytes that reading and binning the raw rows takes. No binned rows are in memory during this time.
    may_have_more_classes : bool
        Whether the data may have more classes than the algorithm, because the labels have not been read.
    n_rounds : int
        Rounds of the training.
    is_remote : bool
        Whether streamed rows are read from a URL, not from a local disk.
    at_once : int or None
        Blocks of a binned store that are read together. None: the plan chooses.
    bin_bytes : int or None
        Bytes of the bins of a row that stays in memory. None: one for each feature.
    """

    algorithm: Algorithm
    limits: GrowthLimits
    n_rows: int
    n_features: int
    max_bins: int
    score_bytes: int
    weighted: bool = True
    n_bins: int | None = None
    ingest: int = 0
    may_have_more_classes: bool = False
    n_rounds: int = 1
    is_remote: bool = False
    at_once: int | None = None
    bin_bytes: int | None = None

    @property
    def block_rows(self) -> int:
        """The most rows of a block."""
        return min(block_rows(self.n_features), self.n_rows)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory: bins, label, weight, position in the tree, scores and statistic; its share of a sample."""
        return self.held_bins + self.state_bytes

    @property
    def held_bins(self) -> int:
        """Bytes of the bins of a row that stays in memory."""
        return self.n_features if self.bin_bytes is None else self.bin_bytes

    @property
    def stored_bins(self) -> int:
        """Bytes of the bins of a row that streams, in scratch files: 0 if the store has all of them."""
        return self.held_bins if self.held_bins < self.n_features else 0

    @property
    def state_bytes(self) -> int:
        """Bytes of a row in memory beside its bins."""
        weight = 8 + 4 if self.weighted else 0
        return 4 + weight + 4 + self.score_row_bytes + self.statistic_bytes + self.sample_bytes

    @property
    def score_row_bytes(self) -> int:
        """Bytes of a row's scores."""
        return self.algorithm.weighting.n_scores(self.algorithm.n_classes) * self.score_bytes

    @property
    def sample_bytes(self) -> int:
        """Bytes per row that it takes to draw rows: its leaf; by weight also its magnitude, and those of the drawn rows."""
        if not self.limits.by_weight:
            return 4 if self.limits.samples else 0
        gathered = self.n_features + self.score_row_bytes + self.statistic_bytes + 4 + 8 + 8 + 2 * 4
        return 8 + 4 + math.ceil(self.limits.subsample * gathered)

    @property
    def statistic_bytes(self) -> int:
        """Bytes of a row's statistic."""
        compressed = self._compressed
        if compressed is None:
            return self.algorithm.row_bytes(self.n_features)
        return compressed.row_bytes(self.algorithm.n_classes)

    @property
    def histogram_sums(self) -> int:
        """The number of sums in each bin of a histogram, without the number of rows."""
        own, compressed = self.algorithm.histogram_sums, self._compressed
        return own if compressed is None else compressed.n_sums(self.algorithm.n_classes)

    @property
    def _compressed(self) -> Statistic | None:
        """What the histograms sum instead of the algorithm's statistic, if the limits say so."""
        own = self.algorithm.typical_statistic()
        found = None if own is None else self.limits.compressed(own, 1)
        return None if found is own else found

    @property
    def streamed_block_bytes(self) -> int:
        """Bytes of a block that is being read or processed. Its bins also take up the buffers of the store."""
        return self.block_rows * (self.state_bytes + 3 * self.n_features + 8 + 4)

    @property
    def pair_bytes(self) -> int:
        """Bytes of two blocks that are read together. The arrays of a pair may be mapped beside the memory of earlier copies."""
        mapped = self.score_row_bytes + self.statistic_bytes
        return 2 * (self.streamed_block_bytes + self.block_rows * mapped)

    @property
    def histogram_bytes(self) -> int:
        """Bytes of one node's histogram."""
        distinct = min(self.max_bins, self.n_rows)
        n_bins = self.n_features * (distinct + 1) if self.n_bins is None else self.n_bins
        n_channels = simd.padded_sums(self.histogram_sums + 1 + self.weighted)
        return 8 * n_bins * n_channels if self.histogram_sums else 0

    @property
    def reduction_bytes(self) -> int:
        """Bytes of the largest reduction's sums."""
        leaves = self.limits.most_leaves(self.n_rows)
        largest = self.algorithm.reduction_size(leaves, self.n_rounds)
        if self.limits.samples:  # the exact sums of a tree, and the totals
            largest = max(largest, (leaves + 1) * (self.algorithm.histogram_sums + 2))
        return 8 * largest

    @property
    def most_nodes(self) -> int:
        """The largest number of nodes that have histograms at the same time."""
        return self.limits.most_histograms(self.n_rows)


def histograms_part(task: Task, n_processes: int, on_cluster: bool) -> MemoryUse:
    """The histograms of a process with rows."""
    nodes = max(task.most_nodes // 2, 1) if on_cluster else task.most_nodes
    what = f"{nodes} {_plural(nodes, 'node')} of {megabytes(task.histogram_bytes)}"
    if not (on_cluster and exchange_pays(nodes * task.histogram_bytes, n_processes)):
        return MemoryUse("histograms", nodes * task.histogram_bytes, what)
    sizes = _exchanged(
        nodes * task.histogram_bytes, task.most_nodes * task.histogram_bytes, nodes, n_processes
    )
    of_group = f", {megabytes(sizes.group)} of its group of {group_size(n_processes)}" if sizes.group else ""
    return MemoryUse(
        "histograms",
        nodes * task.histogram_bytes + sum(sizes),
        f"{what}{of_group}, {megabytes(sizes.owned)} of all workers' for the features it owns, "
        f"{megabytes(sizes.moving)} under way",
    )


def shares_part(task: Task, n_threads: int) -> MemoryUse:
    """The copies of sums for threads that share the rows: see `runtime.parts.SharedPart`."""
    nodes = max(task.most_nodes // 2, 1)
    n_bytes = nodes * task.histogram_bytes
    n_tiles = max(-(-task.histogram_bytes // (2 * TILE_BYTES)), 1)
    copies = min(n_threads - 1, SHARED_BYTES // max(n_bytes, 1)) if n_tiles < n_threads else 0
    what = f"histograms of {nodes} {_plural(nodes, 'node')} for each of {copies} more {_plural(copies, 'thread')}"
    return MemoryUse("shares of rows", copies * n_bytes, what)


class Exchanged(NamedTuple):
    """Bytes of histograms in a worker, beside those of its own rows."""

    group: int  # of its group
    owned: int  # of all workers, for the features that it owns
    moving: int  # on their way


def _exchanged(built: int, kept: int, n_nodes: int, n_processes: int) -> Exchanged:
    """Return the bytes if the sums of a question have `built` bytes over all features, and those of all open nodes `kept`."""
    size = group_size(n_processes)
    # What it sends at a time, and what its group and the other groups may send at the same time.
    n_pieces = 0 if n_processes == 1 else SENT_AT_ONCE + (size - 1) + -(-n_processes // size)
    share = -(-built // (size if size > 1 else n_processes))
    moving = n_pieces * min(max(PIECE_BYTES, -(-share // n_nodes)), share)
    return Exchanged(share if size > 1 else 0, -(-kept // n_processes), moving)


def window_part(
    task: Task, n_processes: int, on_cluster: bool, rest: int, rows: int
) -> tuple[MemoryUse, int]:
    """The histograms that are there at a time if those of a tree do not fit into the `rest` of the memory.

    Rows, of so many bytes, stay in memory if that leaves half of the rest.
    """
    room = max(rest - rows, rest // 2)
    n_features, nodes = task.n_features, task.most_nodes  # both children of each split are summed
    per_window = range(n_features, 0, -1)

    def needed(n: int) -> int:
        built = -(-nodes * task.histogram_bytes * n // n_features)
        return built + (sum(_exchanged(built, built, nodes, n_processes)) if on_cluster else 0)

    found = bisect_left(per_window, -room, key=lambda n: -needed(n))
    n = per_window[min(found, n_features - 1)]
    window_bytes = -(-nodes * task.histogram_bytes * n // n_features)
    n_questions = -(-n_features // n)
    what = f"{nodes} {_plural(nodes, 'node')} over {n} features at a time, in {n_questions} questions: all would take "
    return MemoryUse("histograms", needed(n), what + megabytes(nodes * task.histogram_bytes)), window_bytes


def sums_part(task: Task, n: int, holder: str, copies: int) -> MemoryUse:
    """The sums of the largest reduction: `n` holders have their own, which the process adds up."""
    each = megabytes(task.reduction_bytes)
    return MemoryUse(
        "sums",
        copies * task.reduction_bytes,
        f"{each} for each of {n} {_plural(n, holder)}, {copies - n} more for the result",
    )


def leader_parts(
    task: Task, libraries: MemoryUse, n_processes: int, window_bytes: int | None
) -> tuple[MemoryUse, ...]:
    """The memory of the process that leads a training run on a cluster."""
    nodes = task.most_nodes
    built = max(nodes // 2, 1)
    n_answers = min(n_processes, FAN_OUT)  # others are added up on the way
    sums = sums_part(task, 1, "answer", 1 + RESULTS)
    kept, answer = nodes * task.histogram_bytes, built * task.histogram_bytes
    if window_bytes is not None:
        kept = answer = window_bytes
    if exchange_pays(window_bytes or answer, n_processes):
        # Trees of fewer rows, or of features with fewer bins than planned, may have so few sums that the workers send them.
        few = FEW_BYTES // n_processes
        held = (MOST_KEPT + 2 * n_answers) * few
        return (
            libraries,
            MemoryUse(
                "histograms", held, f"small ones, up to {megabytes(few)} an answer; else workers own them"
            ),
            sums,
        )
    return (
        libraries,
        MemoryUse("histograms", kept, f"{nodes} nodes of {megabytes(kept // nodes)}"),
        MemoryUse(
            "answers",
            2 * n_answers * answer,
            f"histograms of {built} {_plural(built, 'node')} in {n_answers} {_plural(n_answers, 'answer')}, as they arrive",
        ),
        sums,
    )


def _plural(n: int, word: str) -> str:
    return word if n == 1 else f"{word}s"


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
