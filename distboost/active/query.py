"""Query by committee: J. Huang, *A Multiclass Boosting Classification Method with Active Learning*, 2009, algorithm 4.

| paper | here |
| --- | --- |
| Q, the query set | the pool's rows that were not asked for yet |
| S, the working set | `labelled_`, `labels_` |
| C_l | `estimator_` |
| u(x) | `strategies.UTILITIES` |
| R, D | `batch_size`, what `query` returns |
| N | rows of the pool |
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import copy
from operator import index
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from distboost.active.curve import LearningCurve
from distboost.active.labelling import StoppingCriteria, run_labelling
from distboost.active.ledger import Ledger
from distboost.active.pool import Pool
from distboost.active.records import checked_labels
from distboost.active.score_cache import CachedScores, ScoreCache
from distboost.active.scoring import BlockQuery, best_of_block, random_rows, rows_between
from distboost.active.selection import RankedRows, select_diverse
from distboost.active.strategies import RANDOM, STRATEGIES, VOTES, Committee
from distboost.data.missing import warn_of_missing
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.io.publishing import publish
from distboost.kernels.random import QUERIED_PART, QUERY, key
from distboost.model.files import deciding_parameters
from distboost.runtime.base import Runtime
from distboost.runtime.choose import IN_PROCESS

# Values of the taught rows up to which they are trained on by one thread, more of which would wait for each other, and in this
# process, to which a cluster would add its round trips alone.
ONE_THREAD_VALUES, IN_PROCESS_VALUES = 2**18, 2**23


class QueryByCommittee:
    """Asks for the labels of the rows of a pool that the committee is least sure of.

    Ask with `query`, tell with `teach`, or have `run` do both. The pool is read a block at a time, in this process or on the
    workers of a Dask cluster, and is never loaded whole; the rows asked for are the same wherever that is.

    Parameters
    ----------
    estimator : BoostingClassifier
        What is trained on the taught rows; it is cloned, and trained anew each time. Where its `client` is, the pool is scored.
    pool : array-like of shape (n_rows, n_features), zarr.Array, path or URL of one, or dask array
        May hold NaN for missing values.
    n_initial : int, default=50
        Rows that the first query draws at random.
    batch_size : int, default=10
        R: rows of any other query.
    strategy : {"margin", "entropy", "votes", "random"}, default="margin"
        Ask for rows with the smallest difference between the two largest scores (Huang 2009, algorithm 4); with the largest
        entropy of `predict_proba`; with the largest entropy of the votes of the committee's members (Dagan & Engelson 1995); or
        for any, which is the control.
    pool_fraction : float, default=1.0
        The part of the pool, another random one for each query, among whose rows is chosen (but by "random": among all).
    diversity : int, default=1
        Above 1: a batch is chosen from so many times as many of the most useful rows, so that the committee scores its rows as
        unlike each other as can be. That keeps near-duplicates apart. "random" scores no rows, and takes no notice of it.
    warm_start : bool, default=False
        False: the committee is trained anew each time, as in algorithm 4. True: it keeps its rounds, and learns `n_estimators`
        more from all rows that have been taught by then, as long as there are no other classes among them. The scores of the
        whole pool are then kept on disk (in the estimator's `scratch`, which a cluster's workers must share), and a query
        computes those of the new rounds alone, unless `pool_fraction` is below 1 or the strategy is "votes".
    classes : array-like or None, default=None
        The labels that there are; any other is refused. None: those that are taught. In either case the committee knows the
        classes that were taught so far, and as long as these are fewer than two, random rows are asked for.
    log : str, path or None, default=None
        A file to which whatever is asked and taught is added, before anybody is told of it. If it is there, its work is gone on
        with: the state is what it was when the process that wrote it ended.
    random_state : int, default=0
        The seed of all random choices.
    verbose : int, default=0
        1: a progress bar over the queries of `run`.

    Attributes
    ----------
    labelled_ : ndarray of shape (n_labelled,), int64
        Numbers of the rows taught, in that order.
    labels_ : ndarray of shape (n_labelled,)
    asked_ : ndarray, int64
        Rows that were asked for and not taught yet.
    n_queries_ : int
    estimator_ : BoostingClassifier
        The committee, trained on what has been taught.

    Raises
    ------
    distboost.errors.DataError
        If a parameter, the pool or the log cannot be used.

    References
    ----------
    J. Huang, A Multiclass Boosting Classification Method with Active Learning, Pennsylvania State University, 2009, chapter 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GAMBLEClassifier
    >>> from distboost.active import QueryByCommittee
    >>> X, y = load_iris(return_X_y=True)
    >>> committee = QueryByCommittee(GAMBLEClassifier(n_estimators=20), X, n_initial=10, batch_size=5)
    >>> for _ in range(4):
    ...     rows = committee.query()
    ...     committee = committee.teach(rows, y[rows])
    >>> len(committee.labelled_)
    25
    >>> bool(committee.estimator_.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        estimator: BoostingClassifier,
        pool: Any,
        *,
        n_initial: int = 50,
        batch_size: int = 10,
        strategy: str = "margin",
        pool_fraction: float = 1.0,
        diversity: int = 1,
        warm_start: bool = False,
        classes: Any = None,
        log: str | os.PathLike | None = None,
        random_state: int = 0,
        verbose: int = 0,
    ):
        if not isinstance(estimator, BoostingClassifier):
            raise DataError(
                f"the estimator is a {type(estimator).__name__}, expected one of distboost's, such as GAMBLEClassifier()."
            )
        if estimator.early_stopping_rounds is not None:
            raise DataError(
                f"the estimator has early_stopping_rounds={estimator.early_stopping_rounds}, but a committee has no "
                "eval_set. Set it to None."
            )
        self.estimator = estimator
        self.pool = Pool(pool)
        warn_of_missing(self.pool.source, estimator.missing_chunks, 3)
        self.n_initial = _whole("n_initial", n_initial)
        self.batch_size = _whole("batch_size", batch_size)
        self.diversity = _whole("diversity", diversity)
        if strategy not in STRATEGIES:
            raise DataError(f"strategy is {strategy!r}, expected one of {', '.join(map(repr, STRATEGIES))}.")
        self.strategy = strategy
        self.warm_start = bool(warm_start)
        if not (isinstance(pool_fraction, (int, float, np.number)) and 0 < pool_fraction <= 1):
            raise DataError(f"pool_fraction is {pool_fraction!r}, expected a number above 0 and at most 1.")
        self.pool_fraction = float(pool_fraction)
        self.classes = None if classes is None else np.unique(checked_labels(classes))
        if self.classes is not None and len(self.classes) < 2:
            raise DataError(f"classes are {self.classes.tolist()}: at least 2 are needed.")
        if self.batch_size > self.pool.n_rows:
            raise DataError(
                f"batch_size is {batch_size}, but {self.pool.place} has {self.pool.n_rows} rows. Ask for fewer at once."
            )
        self.random_state = _whole("random_state", random_state, 0)
        self.verbose = verbose
        self._ledger = Ledger(self.pool.n_rows, self._header(), log)
        self._values: list[Any] = []  # of the rows taught, in their order, as far as they have been read
        self._committee: BoostingClassifier | None = None
        self._trained_on = 0
        self._score_cache: ScoreCache | None = None

    def _header(self) -> dict[str, Any]:
        """What a log belongs to: all that decides what is asked."""
        return {
            "pool": [self.pool.n_rows, self.pool.n_features],
            "algorithm": self.estimator.algorithm_name,
            "parameters": deciding_parameters(self.estimator),
            "n_initial": self.n_initial,
            "batch_size": self.batch_size,
            "strategy": self.strategy,
            "pool_fraction": self.pool_fraction,
            "diversity": self.diversity,
            "warm_start": self.warm_start,
            "classes": None if self.classes is None else self.classes.tolist(),
            "random_state": self.random_state,
        }

    # What has been taught.

    @property
    def labelled_(self) -> np.ndarray:
        return np.array(self._ledger.rows, np.int64)

    @property
    def labels_(self) -> np.ndarray:
        return np.array(self._ledger.labels)

    @property
    def asked_(self) -> np.ndarray:
        return np.array(self._ledger.asked, np.int64)

    @property
    def n_queries_(self) -> int:
        return self._ledger.n_queries

    @property
    def n_open_(self) -> int:
        """Rows of the pool that were neither taught nor asked for."""
        return self.pool.n_rows - len(self._ledger.rows) - len(self._ledger.asked)

    @property
    def estimator_(self) -> BoostingClassifier:
        if not self._can_train():
            raise NotFittedError(
                f"the committee needs rows of at least 2 classes, and was taught {len(self._ledger.rows)} rows of "
                f"{len(set(self._ledger.labels))}. Teach it more."
            )
        return self._trained()

    def teach(self, rows: Any, labels: Any) -> QueryByCommittee:
        """Tells labels; the committee is trained with them before it is next asked.

        Parameters
        ----------
        rows : array-like of shape (n,), int
            Any rows of the pool that were not taught before.
        labels : array-like of shape (n,)
            Numbers or text.

        Returns
        -------
        self

        Raises
        ------
        distboost.errors.DataError
            If a row or a label cannot be right. Nothing is taught then.
        distboost.errors.StoreError
            If the log cannot be written. Nothing is taught then.
        """
        self._ledger.teach(rows, labels)
        return self

    def _can_train(self) -> bool:
        return len(set(self._ledger.labels)) > 1

    def _trained(self) -> BoostingClassifier:
        """The committee C_l = GAMBLE(S), or another estimator's (algorithm 4, line 3)."""
        n = len(self._ledger.rows)
        if not self.warm_start:
            if self._trained_on < n:
                self._committee, self._trained_on = self._fitted(n, None), n
            return self._committee  # type: ignore[return-value]
        for earlier in self._ledger.trained:  # of another process, if this one has gone on with its log
            self._learn_more(earlier)
        if self._trained_on < n:
            self._learn_more(n)
            self._ledger.train()
        return self._committee  # type: ignore[return-value]

    def _learn_more(self, n: int) -> None:
        """The committee that was grown with the first n rows taught, unless it has been."""
        if self._trained_on < n:
            self._committee, self._trained_on = self._fitted(n, self._committee), n

    def _fitted(self, n: int, earlier: BoostingClassifier | None) -> BoostingClassifier:
        """A committee trained on the first n rows taught: a new one, or an earlier one with more rounds."""
        X, y = self._working_set()[:n], self.labels_[:n]
        more = earlier is not None and set(y.tolist()) == set(earlier.classes_.tolist())
        committee: Any = copy(earlier) if more else clone(self.estimator)
        committee.client = IN_PROCESS if X.size <= IN_PROCESS_VALUES else self.estimator.client
        committee.set_params(
            checkpoint=None,
            class_weight=_of_classes(self.estimator.class_weight, set(y.tolist())),
            n_estimators=self.estimator.n_estimators,
            n_jobs=1 if X.size <= ONE_THREAD_VALUES else self.estimator.n_jobs,
            verbose=0 if self.verbose else self.estimator.verbose,  # one bar is enough
        )
        if more:
            committee._learn_more(X, y)
            committee.set_params(n_estimators=len(committee._ensemble))
        else:
            committee.fit(X, y)
        committee.client = self.estimator.client
        return committee.set_params(n_jobs=self.estimator.n_jobs, verbose=self.estimator.verbose)

    def _working_set(self) -> Any:
        """The values of the rows taught, in their order."""
        known = sum(map(len, self._values))
        if known < len(self._ledger.rows):
            with self.pool.runtime(self.estimator) as runtime:
                self._values.append(self.pool.take(self.labelled_[known:], runtime))
        if len(self._values) > 1:
            self._values = [_joined(self._values)]
        return self._values[0]

    # What is asked.

    def query(self, n: int | None = None) -> np.ndarray:
        """The rows whose labels would be the most useful.

        No row is ever returned twice. One that is never taught stays in `asked_`, and can be taught at any time.

        Parameters
        ----------
        n : int or None, default=None
            How many. None: `batch_size`, or `n_initial` as long as nothing has been taught; fewer if the pool has no more.

        Returns
        -------
        rows : ndarray of shape (n,), int64
            Numbers of rows of the pool, the most useful first, of equally useful ones the first in the pool.

        Raises
        ------
        distboost.errors.DataError
            If the pool has fewer rows left than were asked for, or none; or a row has an infinite value.
        distboost.errors.ClusterError
            If the cluster does not answer. Nothing was asked then.
        """
        n = self._size(n)
        if self.strategy == RANDOM or not self._can_train():
            rows = random_rows(self.pool.n_rows, self._ledger.excluded(), self._draw(QUERY), n)
        else:
            rows = self._most_useful(n)
        self._ledger.ask(rows)
        return rows

    def _size(self, n: int | None) -> int:
        """How many rows to ask for."""
        left = self.n_open_
        if left == 0:
            raise DataError(
                f"no row is left to ask for: {len(self._ledger.rows)} of the {self.pool.n_rows} rows of {self.pool.place} were "
                f"taught, {len(self._ledger.asked)} were asked for."
            )
        first = n is None and not self._ledger.rows
        wanted = self.n_initial if first else self.batch_size if n is None else _whole("n", n)
        if wanted > left and (n is not None or (first and not self._ledger.asked)):
            raise DataError(
                f"{'n_initial' if first else 'n'} is {wanted}, but only {left} rows of {self.pool.place} are left to ask for. "
                f"Ask for at most {left}."
            )
        return min(wanted, left)

    def _draw(self, stream: int) -> np.uint64:
        return key(self.random_state, stream, self._ledger.n_queries)

    def _most_useful(self, n: int) -> np.ndarray:
        """The n rows of highest utility (algorithm 4, lines 4 to 6)."""
        committee, wanted = Committee.from_estimator(self._trained()), n * self.diversity
        fraction = self.pool_fraction
        while True:
            question = BlockQuery(
                committee, self.strategy, wanted, self.pool.place, self._draw(QUERIED_PART), fraction
            )
            found = self._best(question)
            if len(found.rows) >= min(wanted, self.n_open_) or fraction == 1:
                return (found if self.diversity == 1 else select_diverse(found, n)).rows
            fraction = min(2 * fraction, 1.0)  # the part has too few rows that are open

    def _best(self, question: BlockQuery) -> RankedRows:
        """The most useful rows of the whole pool."""
        best = RankedRows.empty(question.committee.algorithm.n_classes)
        seen = self._ledger.excluded()
        with self.pool.runtime(self.estimator) as runtime, self._cached_scores(question, runtime) as known:
            shared = runtime.share(question)
            spans = (
                self.pool.spans() if known is None else self.pool.spans(question.committee.ensemble.n_scores)
            )
            calls = (
                (shared, self.pool.source.part(a, b), a, rows_between(seen, a, b), known) for a, b in spans
            )
            for found in runtime.each(best_of_block, calls):
                best = best.merged(found).best(question.n_best)
        return best

    def _cached_scores(
        self, question: BlockQuery, runtime: Runtime
    ) -> AbstractContextManager[CachedScores | None]:
        """What is known of the pool's scores, if that is kept."""
        if not self.warm_start or self.pool_fraction < 1 or self.strategy == VOTES:
            return nullcontext()
        if self._score_cache is None:
            self._score_cache = ScoreCache(self.estimator.scratch)
        return self._score_cache.updated(question.committee.ensemble, self.pool.n_rows, runtime)

    def run(
        self,
        oracle: Any,
        *,
        eval_set: tuple[Any, Any] | None = None,
        target_error: float | None = None,
        max_labels: int | None = None,
        stabilised: float | None = None,
        callbacks: Sequence[Callable[[LearningCurve], Any]] = (),
    ) -> LearningCurve:
        """Asks an oracle, and teaches what it says, until there is a reason to stop.

        Rows that were asked for and not taught are asked first.

        Parameters
        ----------
        oracle : array-like of shape (n_rows,), zarr.Array, or callable
            The labels of the pool's rows; or oracle(rows) -> labels, which is called with the rows of one query.
        eval_set : (X, y) or None, default=None
            Rows not of the pool, on which the error is measured after each training.
        target_error : float or None, default=None
            Stop at this error on the `eval_set`, as a fraction.
        max_labels : int or None, default=None
            Stop when so many rows have been taught, those before included.
        stabilised : float or None, default=None
            Stop when the committee's predictions for some random rows of the pool change no more: when the mean agreement
            (Cohen's kappa) of the last 3 committees, each with the one before, is at least this. 0.99 is usual (Bloodgood &
            Vijay-Shanker, 2009).
        callbacks : sequence of callables, default=()
            Each is called with the learning curve so far after each training; True stops.

        Returns
        -------
        curve : LearningCurve
            Its `outcome` says why it ended: "target error", "label budget", "stabilised", "callback", or "pool exhausted".

        Raises
        ------
        distboost.errors.DataError
            If the oracle's answer cannot be right. What it raises itself is passed on. In either case the rows stay in `asked_`.
        """
        return run_labelling(
            self, oracle, StoppingCriteria(eval_set, target_error, max_labels, stabilised, tuple(callbacks))
        )

    # Keeping.

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_score_cache": None}

    def save(self, url: str | os.PathLike) -> None:
        """Writes what was asked and taught to a file; give its path as `log` to go on from it."""
        publish(os.fspath(url), self._ledger.text().encode())


def _whole(name: str, value: Any, least: int = 1) -> int:
    with suppress(TypeError):
        if not isinstance(value, bool) and (found := index(value)) >= least:
            return found
    raise DataError(f"{name} is {value!r}, expected a whole number of at least {least}.")


def _of_classes(class_weight: Any, classes: set) -> Any:
    """The weights of those classes that there are so far."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    return {label: weight for label, weight in class_weight.items() if label in classes}


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pandas as pd  # theirs: it is there

    return pd.concat(parts)
