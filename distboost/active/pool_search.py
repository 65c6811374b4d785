"""The search of the whole pool for its most useful rows: one task per block, whose answers are merged."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from distboost.active.pool import Drawn, Pool, Span, finite_rows, open_rows, rows_between
from distboost.active.selection import RankedRows
from distboost.active.strategies import Boosted, Committee, Function, Judged, utility_of
from distboost.data.checks import naming
from distboost.estimators.base import BoostingClassifier
from distboost.io.options import StorageOptions, storage_options
from distboost.io.phases import SILENT, Phases
from distboost.io.storage import check_space, local_path, read_array, write_array
from distboost.io.temporary import own, release, remove, temporary_url
from distboost.kernels.random import uniforms
from distboost.model.ensemble import Ensemble
from distboost.runtime.base import Runtime


class CachedScores(NamedTuple):
    """Where a query reads the cached scores of a block, and where it writes the updated ones.

    The two folders differ, so that a task can run again when its worker is lost.

    Attributes
    ----------
    read_from : str or None
        Folder of the scores after the first `n_rounds` rounds; None if nothing is cached.
    n_rounds : int
    n_scores : int
        Of each row.
    write_to : str
        Folder of the scores after all rounds. The same as `read_from` if no round is new.
    options : StorageOptions
        With which workers open these folders.
    """

    read_from: str | None
    n_rounds: int
    n_scores: int
    write_to: str
    options: StorageOptions

    def scores(self, committee: Boosted, X: np.ndarray, first: int) -> np.ndarray:
        """Return the scores G (n, n_scores), float64, of the rows X (n, n_features) that begin with row `first`; cache them."""
        with storage_options(self.options):
            if self.read_from is None:
                G = np.zeros((len(X), committee.ensemble.n_scores))
            else:
                G = read_array(f"{self.read_from}/{first}")
            if self.read_from != self.write_to:
                committee.add_scores(X, G, self.n_rounds)
                write_array(f"{self.write_to}/{first}", G)
        return G


class ScoreCache:
    """The scores of a pool under an ensemble that grows.

    Parameters
    ----------
    scratch : str, path or None
        Folder or URL; None: the system's folder of temporary files. The cached scores are removed with this object.
    options : mapping or None, default=None
        Storage options of a URL.
    """

    def __init__(self, scratch: str | os.PathLike[str] | None, options: Mapping[str, Any] | None = None):
        base = tempfile.gettempdir() if scratch is None else os.fspath(scratch)
        path = local_path(base)
        # Absolute: workers need not share the working directory of this process.
        self._base = base if path is None else str(path.absolute())
        self._url = temporary_url(self._base, "distboost-scores")
        self._ensemble: Ensemble | None = None  # whose scores are cached
        self._options = StorageOptions(options or {})
        self._removed = weakref.finalize(self, _release, self._url, self._options)

    @contextmanager
    def updated(self, ensemble: Ensemble, n_rows: int, runtime: Runtime) -> Iterator[CachedScores]:
        """Yield the cache to a query that computes the scores of all rows. If it succeeds, the next query finds these scores."""
        with storage_options(self._options):
            cached = self._cached(ensemble)
            if cached.read_from != cached.write_to:
                remove(cached.write_to)  # remains of a query that failed
                folder = local_path(self._url)
                if folder is not None:
                    own(folder)
                    os.makedirs(cached.write_to, exist_ok=True)
                    runtime.check_shared(cached.write_to)
                    check_space(cached.write_to, n_rows * ensemble.n_scores * 8)
            yield cached
            self._ensemble = ensemble
            if cached.read_from not in (None, cached.write_to):
                remove(cached.read_from)

    def _cached(self, ensemble: Ensemble) -> CachedScores:
        write_to = f"{self._url}/{len(ensemble)}"
        if self._ensemble is None or not ensemble.begins_with(self._ensemble):
            remove(self._url)
            return CachedScores(None, 0, ensemble.n_scores, write_to, self._options)
        n_rounds = len(self._ensemble)
        return CachedScores(f"{self._url}/{n_rounds}", n_rounds, ensemble.n_scores, write_to, self._options)


def _release(url: str, options: StorageOptions) -> None:
    def remove_folder() -> None:
        with storage_options(options):
            release(url)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        remove_folder()
    else:  # garbage was collected in the thread of fsspec's loop, which cannot wait for itself
        threading.Thread(target=remove_folder).start()


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


START_ROWS = 10_000  # of the pool, that are clustered


def central_rows(X: np.ndarray, n: int, random_state: int) -> np.ndarray:
    """Return the rows of X (m, n_features) nearest to the centres of n clusters, (n,) int64, those of large clusters first.

    Features are compared by their distance from the median, relative to that of most rows. Missing values are medians.
    """
    Z = standardised(X)
    clusters = MiniBatchKMeans(n, random_state=random_state, n_init=3, batch_size=1024)
    with threadpool_limits(1):  # the last digits depend on the number of threads
        distance = clusters.fit_transform(Z)
    sizes = np.bincount(clusters.labels_, minlength=n)
    chosen: list[int] = []
    is_free = np.full(len(Z), True)
    for cluster in np.argsort(-sizes, kind="stable"):
        row = int(np.argmin(np.where(is_free, distance[:, cluster], np.inf)))
        chosen.append(row)
        is_free[row] = False
    return np.array(chosen, np.int64)


def standardised(X: np.ndarray) -> np.ndarray:
    """Return X with the median 0 in each feature and nine tenths of its values within 1, or all of them; NaN becomes 0."""
    known = np.where(
        np.isnan(X).all(axis=0), 0.0, X.astype(np.float64)
    )  # a feature that is always missing tells nothing
    Z = known - np.nanmedian(known, axis=0)
    spread = np.nanquantile(np.abs(Z), [0.9, 1.0], axis=0)
    unit = np.where(spread[0] > 0, spread[0], spread[1])
    Z = np.clip(Z / np.where(unit > 0, unit, 1.0), -10, 10)
    return np.where(np.isnan(Z), 0.0, Z)
