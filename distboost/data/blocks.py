"""Binned rows, and the calls that produce them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np


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
