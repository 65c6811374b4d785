"""Binned rows, and the calls that produce them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class BinnedRows(NamedTuple):
    """Some binned rows, as ingest produces them. They never change."""

    first: int  # global number of the first row
    bins: np.ndarray  # (n, D) uint8
    labels: np.ndarray  # (n,) int32: class index
    weights: np.ndarray  # (n,) float64: scaled to at most 2^WEIGHT_BITS; 0: the row is not there
    # (n, D) float64: the values before binning, for algorithms that measure distances
    values: np.ndarray | None = None


class BinnedSet(NamedTuple):
    """The training or the evaluation rows: function(*call) produces the binned rows of one block; it may be called repeatedly."""

    function: Callable[..., BinnedRows]
    calls: list[tuple[Any, ...]]
    sizes: list[int]  # rows of each block
