"""The search of the whole pool for its most useful rows: one task per block, whose answers are merged."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from distboost.active.drawing import Drawn, Span, rows_between
from distboost.active.pool import Pool
from distboost.active.score_cache import CachedScores, ScoreCache
from distboost.active.scoring import BlockQuery, best_of_block
from distboost.active.selection import RankedRows
from distboost.active.strategies import Boosted, Committee
from distboost.data.checks import naming
from distboost.estimators.base import BoostingClassifier
from distboost.io.phases import SILENT, Phases
from distboost.runtime.base import Runtime


class PoolSearch:
    """Searches a pool.

    Parameters
    ----------
    pool : Pool
    estimator : BoostingClassifier
        Its parameters and its `client` say where blocks are scored, and where on disk their scores may be kept.
    cache_scores : bool
        Whether the scores of all rows stay on disk, so that the next search computes those of new rounds only.
    """

    def __init__(self, pool: Pool, estimator: BoostingClassifier, *, cache_scores: bool):
        self._pool, self._estimator, self._cache_scores = pool, estimator, cache_scores
        self._cache: ScoreCache | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The folder of the scores belongs to this object: a copy begins without any.
        return {**self.__dict__, "_cache": None}

    def best(self, query: BlockQuery, excluded: np.ndarray, phases: Phases = SILENT) -> RankedRows:
        """Return the `query.n_best` most useful rows that are not `excluded`, or all if there are fewer.

        They are among a part of the pool, `query.fraction` of it or as much as has so many such rows. Only this part is read.

        Parameters
        ----------
        query : BlockQuery
        excluded : ndarray of shape (n,), int64
            Numbers of rows, ascending.
        phases : Phases, optional
            Who is told how many rows of the pool have been searched.
        """
        wanted = min(query.n_best, self._pool.n_rows - len(excluded))
        query = query._replace(committee=self._by_codes(query.committee))
        drawn = Drawn.with_open(self._pool, query.fraction, query.draw, excluded, wanted)
        return self._best_of(query._replace(fraction=drawn.share), drawn.spans, excluded, phases)

    def _by_codes(self, committee: Committee) -> Committee:
        """Return a committee that has the pool's codes of labels in place of its own."""
        labels, place = self._pool.labels, self._pool.place
        if not labels or not isinstance(committee, Boosted):
            return committee
        ensemble = committee.ensemble.copy()
        ensemble.categories = {
            d: known.coded_by(labels.get(d), d, place) for d, known in ensemble.categories.items()
        }
        return replace(committee, ensemble=ensemble)

    def _best_of(
        self, query: BlockQuery, within: list[Span], excluded: np.ndarray, phases: Phases
    ) -> RankedRows:
        pool = self._pool
        best = RankedRows.empty(query.committee.n_classes)
        with (
            naming(pool.names),
            pool.runtime(self._estimator, phases) as runtime,
            self._cached_scores(query, runtime) as cached,
            phases.begin("query", sum(stop - start for start, stop in within), "rows") as advance,
        ):
            shared = runtime.share(query)
            spans = list(pool.spans(1 if cached is None else cached.n_scores, within))
            calls = (
                (shared, pool.source.part(start, stop), start, rows_between(excluded, start, stop), cached)
                for start, stop in spans
            )
            for (start, stop), found in zip(spans, runtime.each(best_of_block, calls), strict=True):
                best = best.merged(found).best(query.n_best)
                advance(stop - start)
        return best

    def _cached_scores(
        self, query: BlockQuery, runtime: Runtime
    ) -> AbstractContextManager[CachedScores | None]:
        committee = query.committee
        if not self._cache_scores or not isinstance(committee, Boosted):
            return nullcontext()
        if self._cache is None:
            self._cache = ScoreCache(self._estimator.scratch, self._estimator.storage_options)
        return self._cache.updated(committee.ensemble, self._pool.n_rows, runtime)
