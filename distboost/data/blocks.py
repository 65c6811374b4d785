"""What is kept of the raw data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class BinnedRows(NamedTuple):
    """Some rows, binned: made once by ingest, never changed afterwards."""

    first: int  # global number of the first row
    bins: np.ndarray  # (n, D) uint8
    labels: np.ndarray  # (n,) int32: class index
    weights: np.ndarray  # (n,) float64: scaled to at most 2^WEIGHT_BITS; 0: the row is not there
    values: np.ndarray | None = (
        None  # (n, D) float64 before binning, for the algorithms that measure distances
    )


class BinnedSet(NamedTuple):
    """The training or the evaluation rows: function(*call) makes the binned rows of one block, as often as it is asked."""

    function: Callable[..., BinnedRows]
    calls: list[tuple[Any, ...]]
    sizes: list[int]  # rows of each block
