"""The most useful rows of a pool, found a block at a time: what is kept of each block is as much as is wanted of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist


class RankedRows(NamedTuple):
    """Rows, the most useful first, of equally useful ones the first in the pool.

    Attributes
    ----------
    utility : ndarray of shape (n,), float64
    rows : ndarray of shape (n,), int64
        Their numbers in the pool.
    scores : ndarray of shape (n, n_classes), float64
        The committee's.
    """

    utility: np.ndarray
    rows: np.ndarray
    scores: np.ndarray

    @classmethod
    def empty(cls, n_classes: int = 0) -> RankedRows:
        return cls(np.zeros(0), np.zeros(0, np.int64), np.zeros((0, n_classes)))

    def merged(self, other: RankedRows) -> RankedRows:
        """These and the others, in no order."""
        return RankedRows(*map(np.concatenate, zip(self, other, strict=True)))

    def best(self, k: int) -> RankedRows:
        """The k most useful ones."""
        chosen = np.arange(len(self.rows))
        if len(chosen) > k:  # few of many are sorted
            chosen = np.flatnonzero(self.utility >= np.partition(self.utility, -k)[-k])
        order = chosen[np.lexsort((self.rows[chosen], -self.utility[chosen]))][:k]
        return RankedRows(*(values[order] for values in self))


def select_diverse(candidates: RankedRows, k: int) -> RankedRows:
    """k of the candidates, each as unlike those before it as can be: farthest first (Gonzalez 1985), from the most useful one.

    Two rows are alike if the committee scores them alike. That needs no scale of the features and no values where they are
    missing, and it tells near-duplicates, which fall into the same leaves.
    """
    F = candidates.scores
    chosen: list[int] = []
    distance = np.full(len(F), np.inf)
    while len(chosen) < min(k, len(F)):
        farthest = int(distance.argmax())  # the most useful one of equally far ones
        chosen.append(farthest)
        distance = np.minimum(distance, cdist(F, F[[farthest]])[:, 0])
        distance[chosen] = -1
    return RankedRows(*(values[chosen] for values in candidates))
