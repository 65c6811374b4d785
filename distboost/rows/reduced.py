"""Parts of an answer, and how they combine."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Best(NamedTuple):
    """The row with the smallest key, the first of equal ones, and the values that the reduction reports of it."""

    key: float
    row: int
    content: tuple[Any, ...]

    def combined(self, other: Best) -> Best:
        """Return the better of two rows."""
        return min(self, other, key=lambda best: best[:2])


def better(one: Best | None, other: Best | None) -> Best | None:
    """Return the better of the best rows of two parts; a part without rows has none."""
    return one.combined(other) if one and other else one or other


class Reduced(NamedTuple):
    """A part of an answer. Parts combine in any order: sums add up, the larger maxima and the better best row remain."""

    sums: np.ndarray  # int64
    maxima: np.ndarray  # float64
    best: Best | None = None

    def combined(self, other: Reduced) -> Reduced:
        """Return the answer over the rows of both parts."""
        best = better(self.best, other.best)
        return Reduced(self.sums + other.sums, np.maximum(self.maxima, other.maxima), best)

    def add(self, other: Reduced) -> Reduced:
        """Return the answer over the rows of both parts, in the arrays of this one: large sums need no third array."""
        np.add(self.sums, other.sums, out=self.sums)
        np.maximum(self.maxima, other.maxima, out=self.maxima)
        return self._replace(best=better(self.best, other.best))
