"""The most useful rows of a pool. Each block contributes at most as many rows as are wanted of the whole pool."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

NEAR = 0.1  # of the median distance between candidates: nearer rows are copies


class RankedRows(NamedTuple):
    """Rows in order of utility, the most useful first. Of equally useful ones, the smallest lot comes first.

    Attributes
    ----------
    utility, lot : ndarray of shape (n,), float64
        A lot is a random number. If the first rows came first, a sorted pool would be asked for rows of one class.
    rows : ndarray of shape (n,), int64
        Their numbers in the pool.
    scores : ndarray of shape (n, n_classes), float64
        The committee's scores.
    """

    utility: np.ndarray
    lot: np.ndarray
    rows: np.ndarray
    scores: np.ndarray

    @classmethod
    def empty(cls, n_classes: int = 0) -> RankedRows:
        """Return no rows."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), np.zeros((0, n_classes)))

    def merged(self, other: RankedRows) -> RankedRows:
        """Return the rows of both, in no order."""
        return RankedRows(*map(np.concatenate, zip(self, other, strict=True)))

    def best(self, k: int) -> RankedRows:
        """Return the k most useful rows."""
        chosen = np.arange(len(self.rows))
        if len(chosen) > k:  # so that only few rows are sorted
            chosen = np.flatnonzero(self.utility >= np.partition(self.utility, -k)[-k])
        order = chosen[np.lexsort((self.rows[chosen], self.lot[chosen], -self.utility[chosen]))][:k]
        return RankedRows(*(values[order] for values in self))


def select_diverse(candidates: RankedRows, k: int) -> RankedRows:
    """Return k diverse candidates by farthest-first traversal (Gonzalez 1985), starting with the most useful one.

    The distance of two rows is that of the committee's scores. It needs no scaling of features and no missing values filled in,
    and it is small for near-duplicates, which fall into the same leaves.
    """
    F = candidates.scores
    chosen: list[int] = []
    distance = np.full(len(F), np.inf)
    while len(chosen) < min(k, len(F)):
        farthest = int(distance.argmax())  # ties go to the most useful row
        chosen.append(farthest)
        distance = np.minimum(distance, cdist(F, F[[farthest]])[:, 0])
        distance[chosen] = -1
    return RankedRows(*(values[chosen] for values in candidates))


def select_distinct(candidates: RankedRows, k: int) -> RankedRows:
    """Return the k most useful candidates none of which nearly equals another one; copies fill up where these are too few.

    The distance of two rows is that of the committee's scores, as for `select_diverse`. The median is that of pairs of rows that
    are half of the candidates apart in order, for copies follow each other.
    """
    F, half = candidates.scores, len(candidates.scores) // 2
    limit = NEAR * float(np.median(np.linalg.norm(F[half : 2 * half] - F[:half], axis=1))) if half else 0.0
    chosen: list[int] = []
    is_left = np.full(len(F), True)
    while len(chosen) < k and is_left.any():
        row = int(is_left.argmax())
        chosen.append(row)
        is_left &= cdist(F, F[[row]])[:, 0] > limit
    order = np.append(chosen, np.setdiff1d(np.arange(len(F)), chosen)).astype(np.int64)[:k]
    return RankedRows(*(values[order] for values in candidates))
