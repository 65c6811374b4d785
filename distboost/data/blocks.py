"""Binned rows, and the calls that produce them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from distboost.data.categories import Categories
from distboost.io.phases import Phases


@dataclass(frozen=True)
class ClassScan:
    """The counts and weights of the rows of one class, without rows of weight 0."""

    n_rows: int
    largest_weight: float
    whole_weights: bool

    def merged(self, other: ClassScan) -> ClassScan:
        return ClassScan(
            self.n_rows + other.n_rows,
            max(self.largest_weight, other.largest_weight),
            self.whole_weights and other.whole_weights,
        )


@dataclass(frozen=True)
class Profile:
    """The properties of the data that binning and training need.

    Attributes
    ----------
    n_rows, n_features : int
    classes : ndarray of shape (n_classes,)
        The sorted labels.
    class_scans : list of ClassScan
        The scan of each class, in the same order.
    edges : list of ndarray of shape (n_edges,), float64
        The ascending thresholds between the bins of each feature.
    categories : mapping of int to Categories
        The categories of the features that have some. Their edges lie between bins.
    """

    n_rows: int
    classes: np.ndarray
    class_scans: list[ClassScan]
    edges: list[np.ndarray]
    categories: Mapping[int, Categories] = field(default_factory=dict)

    def same_bins(self, other: Profile) -> bool:
        """Whether bins and class indices mean the same in both profiles."""
        same_edges = all(map(np.array_equal, self.edges, other.edges))
        same_edges = same_edges and self.categories == other.categories
        return same_edges and np.array_equal(self.classes, other.classes)

    @property
    def n_features(self) -> int:
        return len(self.edges)

    @property
    def n_bins(self) -> np.ndarray:
        """Bins per feature, (n_features,) int64, without the bin for missing values."""
        return np.array([len(edges) + 1 for edges in self.edges], np.int64)


class AnyRows(Protocol):
    """Binned rows whose arrays may be read when they are first used: the fields of `BinnedRows`."""

    @property
    def first(self) -> int: ...

    @property
    def bins(self) -> np.ndarray: ...

    @property
    def labels(self) -> np.ndarray: ...

    @property
    def weights(self) -> np.ndarray: ...

    @property
    def values(self) -> np.ndarray | None: ...

    @property
    def files(self) -> tuple[Path, ...]: ...

    def in_memory(self) -> BinnedRows:
        """Read what was not read yet."""


class BinnedRows(NamedTuple):
    """Some binned rows, as ingest produces them. They never change."""

    first: int  # global number of the first row
    bins: np.ndarray  # (n, D) uint8
    labels: np.ndarray  # (n,) int32: class index
    weights: np.ndarray  # (n,) float64: scaled to at most 2^WEIGHT_BITS; 0: the row is not there
    # (n, D) float64: the values before binning, for algorithms that measure distances
    values: np.ndarray | None = None
    files: tuple[Path, ...] = ()  # those on a local disk that hold the bins

    def in_memory(self) -> BinnedRows:
        """Return the rows. Most blocks have only rows of weight 1: these blocks share the array of their weights."""
        return self._replace(weights=ones(len(self.weights))) if (self.weights == 1).all() else self


def ones(n: int) -> np.ndarray:
    """Return n weights of 1, in memory that other blocks of about as many rows use, too."""
    return _ones(1 << max(n - 1, 0).bit_length())[:n]


@lru_cache(maxsize=4)
def _ones(n: int) -> np.ndarray:
    return np.ones(n)


class BinnedSet(NamedTuple):
    """The training or the evaluation rows: function(*call) produces the binned rows of one block; it may be called repeatedly."""

    function: Callable[..., AnyRows]
    calls: list[tuple[Any, ...]]
    sizes: list[int]  # rows of each block
    at_once: int = 1  # blocks of a binned store that a call reads


Result = TypeVar("Result")


class TaskRunner(Protocol):
    """Runs functions over parts of sources, in this process or on a cluster.

    Attributes
    ----------
    n_parallel : int
        Functions that run at the same time, in all processes together.
    n_processes : int
        The number of processes that run them.
    on_cluster : bool
        Whether these are processes other than the caller's.
    phases : Phases
        Who is told how far the work is.
    """

    @property
    def n_parallel(self) -> int: ...

    @property
    def n_processes(self) -> int: ...

    @property
    def on_cluster(self) -> bool: ...

    @property
    def phases(self) -> Phases: ...

    def map(
        self,
        function: Callable[..., Result],
        calls: Iterable[tuple[Any, ...]],
        at_once: int | None = None,
    ) -> list[Result]:
        """Return function(*call) for each call, in order. Arguments may be parts of sources."""

    def each(
        self,
        function: Callable[..., Result],
        calls: Iterable[tuple[Any, ...]],
        at_once: int | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the same results one after another.

        Each process has at most `at_once` calls that run or whose results are not yet taken.
        """

    def share(self, value: Any) -> Any:
        """Return what stands for a value among the arguments of many calls: it is sent once to each process that needs it."""
