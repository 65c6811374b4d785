"""What is done with a block of the pool: it is scored, and its most useful rows are found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from distboost.active.pool import finite_rows
from distboost.active.score_cache import CachedScores
from distboost.active.selection import RankedRows
from distboost.active.strategies import UTILITIES, Committee
from distboost.kernels.random import uniforms

ROWS_AT_ONCE = 4096  # whose scores are in memory, beside the block's values
RANDOM_ROWS = 2**20


class BlockQuery(NamedTuple):
    """What is wanted of every block.

    Attributes
    ----------
    committee : Committee
    strategy : str
    n_best : int
    place : str
        What to call the pool in a message.
    draw : numpy.uint64
        Key of the random numbers of rows.
    fraction : float
        Only rows whose random number is below it are scored.
    """

    committee: Committee
    strategy: str
    n_best: int
    place: str
    draw: np.uint64
    fraction: float


def best_of_block(
    question: BlockQuery, part: Any, first: int, seen: np.ndarray, known: CachedScores | None
) -> RankedRows:
    """The most useful rows of a part of the pool that begins with row `first`; not those `seen`."""
    X = finite_rows(part, question.place, first)
    scores = None if known is None else known.scores(question.committee, X, first)
    rows = _open_rows(first, len(X), seen)
    if question.fraction < 1:
        rows = rows[uniforms(question.draw, first, len(X))[rows - first] < question.fraction]
    algorithm, ensemble = question.committee
    best = RankedRows.empty(algorithm.n_classes)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        x = X[some - first]
        if scores is None:
            G = np.zeros((len(some), ensemble.n_scores))
            question.committee.add_scores(x, G)
        else:
            G = scores[some - first]
        utility = UTILITIES[question.strategy](question.committee, x, G)
        best = best.merged(RankedRows(utility, some, algorithm.decoded(G))).best(question.n_best)
    return best


def random_rows(n_rows: int, seen: np.ndarray, draw: np.uint64, n: int) -> np.ndarray:
    """n rows of a pool, not those `seen`: the first in the order of their random numbers."""
    best = RankedRows.empty()
    for first in range(0, n_rows, RANDOM_ROWS):
        size = min(RANDOM_ROWS, n_rows - first)
        rows = _open_rows(first, size, seen)
        utility = -uniforms(draw, first, size)[rows - first]
        best = best.merged(RankedRows(utility, rows, np.zeros((len(rows), 0)))).best(n)
    return best.rows


def rows_between(seen: np.ndarray, first: int, stop: int) -> np.ndarray:
    """Those of the rows seen, ascending, that lie in first .. stop - 1."""
    return seen[np.searchsorted(seen, first) : np.searchsorted(seen, stop)]


def _open_rows(first: int, n: int, seen: np.ndarray) -> np.ndarray:
    """Rows first .. first + n - 1 without those seen."""
    is_open = np.ones(n, bool)
    is_open[rows_between(seen, first, first + n) - first] = False
    return first + np.flatnonzero(is_open)
