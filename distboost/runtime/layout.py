"""How the rows of a training are read, and what of them stays in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from distboost.data.blocks import BinnedRows, BinnedSet


@dataclass(frozen=True)
class Reading:
    """Binned rows that can be read whenever they are wanted."""

    function: Callable[..., BinnedRows]
    call: tuple[Any, ...]
    n_rows: int

    def __call__(self) -> BinnedRows:
        return self.function(*self.call)


def readings(part: BinnedSet) -> list[Reading]:
    """All blocks of a set."""
    return [Reading(part.function, call, size) for call, size in zip(part.calls, part.sizes, strict=True)]


@dataclass(frozen=True)
class Allotment:
    """What the blocks of one process may take.

    Attributes
    ----------
    resident : int
        Rows that stay in memory; the others stream.
    window : int
        Streamed blocks in memory at a time.
    scratch : str or None
        Directory for what is kept of the streamed ones; None: the system's directory for temporary files.
    scratch_bytes : int
        What that takes, where all that the allotment lets stream does.
    """

    resident: int
    window: int
    scratch: str | None
    scratch_bytes: int = 0


class Layout(NamedTuple):
    """What a shard needs to know of the data."""

    n_bins: np.ndarray  # (n_features,): bins per feature, the one for missing values not counted
    n_classes: int
    n_scores: int
    score_dtype: str
