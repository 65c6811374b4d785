"""The game for the 0-1 loss: scores count votes, and the number of rounds is known."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from distboost.kernels import votes
from distboost.rows.block import BlockRows
from distboost.rows.sums import Risk, Scale, Statistic, Weighting
from distboost.weights.potential import PotentialTable, zero_one_costs


@dataclass(frozen=True)
class Votes(Weighting):
    """The 0-1 loss. A tie is an error."""

    def initial_shifts(self, n_classes: int) -> list[float]:
        return [0.0]

    def growth(self, values: np.ndarray) -> list[float]:
        return [0.0]

    def risk(self, block: BlockRows, sums: Risk) -> None:
        votes.vote_risk(block.scores, block.labels, block.weights, sums.factor, sums.error_factor, sums.out)
        sums.largest[0] = 1.0


@dataclass(frozen=True)
class PotentialGains(Statistic):
    """C[i, y_i] - C[i, l], where C[i, l] is the potential of row i after a vote for class l.

    Attributes
    ----------
    gamma : float
        Edge over random of the weak learners.
    rounds_left : int
        Rounds still to play, the present one included.
    """

    gamma: float
    rounds_left: int

    wide: bool = field(default=True, init=False)

    def n_sums(self, n_classes: int) -> int:
        return n_classes

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        out = self.buffer(block, weight_factor)
        votes.vote_gains(
            self.costs(block, rows), block.labels, block.weights, rows, scale.factor, weight_factor, out
        )

    def costs(self, block: BlockRows, rows: np.ndarray) -> np.ndarray:
        """C of the rows in use: (len(rows), K) float64."""
        table, lock = _table(block.n_classes, self.gamma)
        with lock:
            return zero_one_costs(block.scores[rows], block.labels[rows], self.rounds_left, table)


@lru_cache(maxsize=4)
def _table(n_classes: int, gamma: float) -> tuple[PotentialTable, threading.Lock]:
    """The table of potentials that all threads of this process share, and its lock."""
    return PotentialTable(n_classes, gamma), threading.Lock()
