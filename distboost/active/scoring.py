"""The task of a query for one block of the pool: score its rows and return the most useful ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from distboost.active.pool import finite_rows
from distboost.active.score_cache import CachedScores
from distboost.active.selection import RankedRows
from distboost.active.strategies import Boosted, Committee, Function, Judged, utility_of
from distboost.kernels.random import uniforms

ROWS_AT_ONCE = 4096  # rows whose scores are in memory at a time, beside the block's values
RANDOM_ROWS = 2**20  # rows whose random numbers are in memory at a time


class BlockQuery(NamedTuple):
    """What a query asks of every block.

    Attributes
    ----------
    committee : Committee
    strategy : str or function
    n_best : int
        Number of rows wanted.
    place : str
        Name of the pool in messages.
    draw : numpy.uint64
        Key of the rows' random numbers.
    fraction : float
        Only rows whose random number is below this are scored.
    """

    committee: Committee
    strategy: str | Function
    n_best: int
    place: str
    draw: np.uint64
    fraction: float


def best_of_block(
    question: BlockQuery, part: Any, first: int, excluded: np.ndarray, cached: CachedScores | None
) -> RankedRows:
    """Return the most useful rows of a part of the pool that begins with row `first`, except those `excluded`."""
    X = finite_rows(part, question.place, first)
    committee, utility = question.committee, utility_of(question.strategy)
    scores = None
    if cached is not None:
        assert isinstance(committee, Boosted), "other committees have no rounds"
        scores = cached.scores(committee, X, first)
    rows = _open_rows(first, len(X), excluded)
    if question.fraction < 1:
        rows = rows[uniforms(question.draw, first, len(X))[rows - first] < question.fraction]
    best = RankedRows.empty(committee.n_classes)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        x = X[some - first]
        F = committee.decoded(committee.scores(x) if scores is None else scores[some - first])
        best = best.merged(RankedRows(utility(Judged(committee, x, F, some)), some, F)).best(question.n_best)
    return best


def random_rows(n_rows: int, excluded: np.ndarray, draw: np.uint64, n: int) -> np.ndarray:
    """Return the n rows with the smallest random numbers, except those `excluded` (ascending)."""
    best = RankedRows.empty()
    for first in range(0, n_rows, RANDOM_ROWS):
        size = min(RANDOM_ROWS, n_rows - first)
        rows = _open_rows(first, size, excluded)
        utility = -uniforms(draw, first, size)[rows - first]
        best = best.merged(RankedRows(utility, rows, np.zeros((len(rows), 0)))).best(n)
    return best.rows


def rows_between(rows: np.ndarray, first: int, stop: int) -> np.ndarray:
    """Return those of the rows (ascending) that lie in first .. stop - 1."""
    return rows[np.searchsorted(rows, first) : np.searchsorted(rows, stop)]


def _open_rows(first: int, n: int, excluded: np.ndarray) -> np.ndarray:
    """Return rows first .. first + n - 1 without those excluded."""
    is_open = np.ones(n, bool)
    is_open[rows_between(excluded, first, first + n) - first] = False
    return first + np.flatnonzero(is_open)
