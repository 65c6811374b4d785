"""Who gets which rows, and how many they are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from distboost.rows import ERROR_UNIT, RowCounts


def count_rows(weights: np.ndarray) -> RowCounts:
    """The rows of weight above 0 and their total weight."""
    weights = weights[weights > 0]
    units = np.rint(weights * ERROR_UNIT).astype(np.int64)
    return RowCounts(len(weights), int(units.sum()), bool((weights != 1).any()))


def total(counts: list[RowCounts]) -> RowCounts:
    return RowCounts(
        sum(c.n_rows for c in counts), sum(c.weight_units for c in counts), any(c.weighted for c in counts)
    )


def shares(n_blocks: int, capacities: list[int]) -> list[range]:
    """Contiguous runs of blocks, one per worker, in proportion to the workers' capacities.

    >>> shares(6, [1, 2])
    [range(0, 2), range(2, 6)]
    """
    ends = np.rint(np.cumsum([0, *capacities]) / sum(capacities) * n_blocks).astype(int)
    return [range(int(a), int(b)) for a, b in pairwise(ends)]
