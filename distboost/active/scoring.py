"""The task of a query for one block of the pool: score its rows and return the most useful ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from distboost.active.drawing import open_rows
from distboost.active.pool import finite_rows
from distboost.active.score_cache import CachedScores
from distboost.active.selection import RankedRows
from distboost.active.strategies import Boosted, Committee, Function, Judged, utility_of
from distboost.kernels.random import uniforms

ROWS_AT_ONCE = 4096  # rows whose scores are in memory at a time, beside the block's values


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
        Key of the rows' random numbers, which also decide between equally useful rows.
    fraction : float
        Of the pool, which is scored. Of a block's rows, those whose random number is below this.
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
    rows = open_rows(first, len(X), excluded, question.draw, question.fraction)
    lots = (
        np.zeros(len(rows)) if committee.takes_first else uniforms(question.draw, first, len(X))[rows - first]
    )
    best = RankedRows.empty(committee.n_classes)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some, lot = rows[start : start + ROWS_AT_ONCE], lots[start : start + ROWS_AT_ONCE]
        x = X[some - first]
        F = committee.decoded(committee.scores(x) if scores is None else scores[some - first])
        best = best.merged(RankedRows(utility(Judged(committee, x, F, some)), lot, some, F)).best(
            question.n_best
        )
    return best
