"""The interface of a runtime, the place where a training runs: it reads the rows, of which some stay in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from distboost.data.blocks import AnyRows, BinnedSet, TaskRunner
from distboost.io.phases import Phases
from distboost.rows.messages import Rows


@dataclass(frozen=True)
class Reading:
    """Binned rows that are read on demand."""

    function: Callable[..., AnyRows]
    call: tuple[Any, ...]
    n_rows: int

    def __call__(self) -> AnyRows:
        return self.function(*self.call)


def readings(part: BinnedSet) -> list[Reading]:
    """Return the readings of all blocks of a set."""
    return [Reading(part.function, call, size) for call, size in zip(part.calls, part.sizes, strict=True)]


@dataclass(frozen=True)
class Allotment:
    """The memory and the disk space that the blocks of one process may use.

    Attributes
    ----------
    resident : int
        Rows that stay in memory; the others stream.
    window : int
        Streamed blocks in memory at a time.
    scratch : str or None
        Directory of the files with the state of streamed rows. None: the system's temporary directory.
    scratch_bytes : int
        Size of these files if as many rows stream as the plan expects.
    ordered : int
        Streamed rows whose places in the tree (`Block.order`) stay in memory.
    can_map : bool
        Whether arrays may be memory-mapped beside the memory of earlier copies, which is used again. If not, they take its place.
    """

    resident: int
    window: int
    scratch: str | None
    scratch_bytes: int = 0
    ordered: int = 0
    can_map: bool = False


class Layout(NamedTuple):
    """The shape of the data, as shards need it."""

    n_bins: np.ndarray  # (n_features,) int64: bins per feature, without the bin for missing values
    n_classes: int
    n_scores: int
    score_dtype: str
    # Bytes of the sums of a question in one process, if the histograms of a tree do not fit: then they are never all there.
    window_bytes: int | None = None
    weight_scale: float = 1.0  # the power of two by which the rows' weights were multiplied
    whole_weights: bool = True  # they are whole numbers, which were not multiplied
    with_categories: tuple[int, ...] = ()  # the features whose bins are categories
    usual: np.ndarray | None = None  # (n_features,) uint8: the bins of 0, which blocks need not store

    @property
    def categorical(self) -> np.ndarray:
        """Whether each feature's bins are categories, (n_features,) bool."""
        found = np.zeros(len(self.n_bins), bool)
        found[list(self.with_categories)] = True
        return found


def peak_bytes() -> int | None:
    """Return the most memory that this process has used since it began; None where the system does not tell, as on Windows."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Runtime(TaskRunner, Protocol):
    """Runs the functions of a scan or a prediction, and holds the rows of a training run."""

    def limit(self, memory_limit: int | None) -> int | None:
        """Return the bytes that one process may use, or None if no limit is known; never more than `memory_limit`."""

    def check_shared(self, url: str) -> None:
        """Raise ClusterError unless all processes can access a path or URL."""

    def place(self, sets: list[BinnedSet], layout: Layout, allotment: Allotment | None = None) -> Rows:
        """Bin or read the rows of each set and hold them; rows beyond the allotment stay on disk."""

    def beside(self, n_threads: int | None, phases: Phases) -> Runtime | None:
        """Return a runtime on threads that this one leaves idle, of so many that the process may use (None: one per core).

        None: there are none.
        """

    def worker_peaks(self) -> list[int]:
        """Return the most memory that each worker has used since it began, in bytes; none without a cluster."""

    def close(self) -> None:
        """Release threads and connections."""
