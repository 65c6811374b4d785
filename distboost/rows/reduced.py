"""Parts of an answer, and how they combine."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Best(NamedTuple):
    """A row that is wanted for its smallest key, the first of equal ones, and what is to be known of it."""

    key: float
    row: int
    content: tuple[Any, ...]

    def combined(self, other: Best) -> Best:
        """Return the better of two rows."""
        return min(self, other, key=lambda best: best[:2])


class Reduced(NamedTuple):
    """A part of an answer: parts combine by adding sums, taking the larger maxima and the better best, in any order."""

    sums: np.ndarray  # int64
    maxima: np.ndarray  # float64
    best: Best | None = None

    def combined(self, other: Reduced) -> Reduced:
        """Return the answer over the rows of both parts."""
        best = self.best.combined(other.best) if self.best and other.best else self.best or other.best
        return Reduced(self.sums + other.sums, np.maximum(self.maxima, other.maxima), best)

    def copied(self) -> Reduced:
        """Return a copy that can be written to."""
        return Reduced(self.sums.copy(), self.maxima.copy(), self.best)
