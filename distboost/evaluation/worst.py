"""The rows that a model gets most wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOST_ROWS = 20


@dataclass(frozen=True)
class WorstRows:
    """The rows whose own class has the lowest probability, at most MOST_ROWS of them; of equal ones, the first rows.

    `+` returns the worst rows of both, so that the result depends neither on blocks nor on their order.

    Attributes
    ----------
    row : ndarray of shape (n,), int64
        Global row numbers.
    true, predicted : ndarray of shape (n,), int64
        Class indices.
    probability, confidence : ndarray of shape (n,), float64
        The probabilities of the true class and of the predicted one.
    """

    row: np.ndarray
    true: np.ndarray
    predicted: np.ndarray
    probability: np.ndarray
    confidence: np.ndarray

    @classmethod
    def of(
        cls, P: np.ndarray, codes: np.ndarray, predicted: np.ndarray, w: np.ndarray, first: int
    ) -> WorstRows:
        """Return the worst of the rows with class probabilities P, (n, n_classes), whose first has the number `first`."""
        rows = np.flatnonzero(w > 0)
        own = P[rows, codes[rows]]
        if len(rows) > MOST_ROWS:  # the order of all others does not matter
            few = own <= np.partition(own, MOST_ROWS - 1)[MOST_ROWS - 1]
            rows, own = rows[few], own[few]
        chosen = predicted[rows]
        return cls(first + rows, codes[rows], chosen, own, P[rows, chosen])._worst()

    def __add__(self, other: WorstRows) -> WorstRows:
        return WorstRows(
            *(np.concatenate([mine, theirs]) for mine, theirs in zip(self._all(), other._all(), strict=True))
        )._worst()

    def _worst(self) -> WorstRows:
        kept = np.lexsort((self.row, self.probability))[:MOST_ROWS]
        return WorstRows(*(values[kept] for values in self._all()))

    def _all(self) -> tuple[np.ndarray, ...]:
        return self.row, self.true, self.predicted, self.probability, self.confidence

    def by_name(self, classes: np.ndarray) -> dict[str, np.ndarray]:
        """Return the attributes by name, with labels in place of class indices."""
        return {**vars(self), "true": classes[self.true], "predicted": classes[self.predicted]}
