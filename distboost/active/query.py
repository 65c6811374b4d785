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
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from operator import index
from typing import Any

import numpy as np

from distboost.active.advice import Advice, Evidence, advised
from distboost.active.committee import (
    CommitteeTrainer,
    check_committee,
    default_committee,
    description_of,
)
from distboost.active.curve import LearningCurve
from distboost.active.labelling import StoppingCriteria, as_callbacks, run_labelling
from distboost.active.ledger import Ledger
from distboost.active.pool import Pool
from distboost.active.pool_search import PoolSearch
from distboost.active.records import checked_labels
from distboost.active.scoring import BlockQuery, random_rows
from distboost.active.selection import select_diverse
from distboost.active.starting import START_ROWS, central_rows
from distboost.active.strategies import RANDOM, STRATEGIES, Function, committee_of, name_of
from distboost.data.source import warn_about
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.factory import estimator as estimator_class
from distboost.estimators.names import check_same
from distboost.io.options import storage_options
from distboost.io.phases import Phases
from distboost.io.progress import phases_shown
from distboost.io.publishing import publish
from distboost.io.urls import url_of
from distboost.kernels.random import QUERIED_PART, QUERY, key

SMALL_BATCH, AUTO_DIVERSITY = (
    20,
    5,
)  # rows of a batch in which near-duplicates are rare; the diversity of larger ones
STARTS = ("kmeans", "random")


class QueryByCommittee:
    """Active learning: ask for the labels of the pool's rows that a committee is least sure of.

    `query` returns the rows to label, `teach` takes their labels, and `run` does both in a loop. The pool is read block by block,
    in this process or on the workers of a Dask cluster, and is never loaded whole. The rows asked for do not depend on where that
    is.

    Parameters
    ----------
    estimator : classifier or None
        The committee: one of distboost's estimators, or any classifier with `predict_proba`, such as those of scikit-learn. A
        clone is trained from scratch on the taught rows before a query needs it. None: extremely randomised trees
        (`sklearn.ensemble.ExtraTreesClassifier`), which need the fewest labels. Classifiers that are not distboost's get numbers:
        NaN for missing values, codes in place of labels.
    pool : array-like or data frame of shape (n_rows, n_features), zarr.Array, path or URL of one, or dask collection
        May hold NaN for missing values.
    start : {"kmeans", "random"}, default="kmeans"
        The rows of the first query: those nearest to the centres of as many clusters of a sample of the pool, or random ones.
    n_initial : int, default=50
        The size of the first query.
    batch_size : int, default=10
        R: the size of every other query.
    strategy : {"margin", "entropy", "averaged-margin", "votes", "random"} or callable, default="margin"
        Which rows to ask for: those with the smallest difference between the two largest scores (Huang 2009, algorithm 4), with
        the largest entropy of `predict_proba`, with the smallest mean of that difference over the committee's members, with the
        largest entropy of the members' votes (Dagan & Engelson 1995), or random ones, as a control. A function
        strategy(probabilities, members, rows) of arrays (n, n_classes), (n_members, n, n_classes) and (n,) returns how useful the
        label of each row would be, (n,).
    pool_fraction : float, default=1.0
        The fraction of the pool that each query scores and chooses from. Each query draws another random part. "random" chooses
        from all rows.
    diversity : int or "auto", default="auto"
        Above 1: take `diversity` times as many of the most useful rows as are wanted, and choose from them rows that the
        committee scores as differently as possible. This avoids near-duplicates in a batch. "auto" is 5 for batches of more than
        20 rows, else 1. "random" scores no rows, and ignores this.
    audit : float, default=0.0
        The share of the rows asked for that are drawn at random, in all queries after the first. They stand for the pool:
        `advice` estimates the error from them. A tenth is usual.
    warm_start : bool, default=False
        False: each run starts from scratch, as in algorithm 4. True: the committee, one of distboost's, keeps its rounds and
        learns `n_estimators` more from all rows taught so far; a new class among them starts a new committee. The scores of the
        whole pool are then cached on disk (in the estimator's `scratch`, which the workers of a cluster must share), and a query
        computes only those of the new rounds, unless `pool_fraction` is below 1 or the strategy asks members.
    final : BoostingClassifier or None, default=None
        The model that is handed over at the end, trained on the same labels: `model_`. Its `client` scores the pool. None: the
        committee itself if it is one of distboost's, else a `GDMCBoostClassifier`.
    classes : array-like or None, default=None
        The valid labels; any other is refused. None: any label is valid. In either case the committee knows only the classes
        taught so far. While these are fewer than two, queries return random rows.
    log : str, path or None, default=None
        A file that records each query and each lesson before `query` or `teach` returns. If the file exists, the work resumes
        from it, in the state that its last process left.
    random_state : int, default=0
        The seed of all random choices.
    verbose : int, default=0
        1: `query` and `run` show their progress.

    Attributes
    ----------
    labelled_ : ndarray of shape (n_labelled,), int64
        Numbers of the rows taught, in the order taught.
    labels_ : ndarray of shape (n_labelled,)
        Their labels.
    asked_ : ndarray of shape (n_asked,), int64
        Numbers of the rows that were asked for and not taught yet, in the order asked.
    n_queries_ : int
        Number of queries so far.
    n_open_ : int
        Number of rows that were neither taught nor asked for.
    has_committee_ : bool
        Whether labels of at least two classes were taught, so that `estimator_` exists.
    estimator_ : classifier
        The committee, trained on the rows taught so far. Reading it trains it if necessary.
    model_ : BoostingClassifier
        The final model, trained on them.
    ledger : Ledger
        The record of queries and lessons.

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
    >>> bool(committee.estimator_.score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        estimator: Any,
        pool: Any,
        *,
        start: str = "kmeans",
        n_initial: int = 50,
        batch_size: int = 10,
        strategy: str | Function = "margin",
        pool_fraction: float = 1.0,
        diversity: int | str = "auto",
        audit: float = 0.0,
        warm_start: bool = False,
        final: BoostingClassifier | None = None,
        classes: Any = None,
        log: str | os.PathLike[str] | None = None,
        random_state: int = 0,
        verbose: int = 0,
    ):
        self.estimator = default_committee() if estimator is None else estimator
        check_committee(self.estimator)
        if final is None and not isinstance(self.estimator, BoostingClassifier):
            final = estimator_class("gd-mcboost")()
        self.final = None if final is None else _checked_final(final)
        self.home: BoostingClassifier = self.estimator if self.final is None else self.final
        with storage_options(self.home.storage_options):
            self.pool = Pool(pool, self.home.categorical_features)
        warn_about(self.pool.source, self.home.missing_chunks)
        if start not in STARTS:
            raise DataError(f"start is {start!r}, expected one of {', '.join(map(repr, STARTS))}.")
        self.start = start
        self.n_initial = _whole("n_initial", n_initial)
        self.batch_size = _whole("batch_size", batch_size)
        self.diversity = diversity if diversity == "auto" else _whole("diversity", diversity)
        if not callable(strategy) and strategy not in STRATEGIES:
            raise DataError(
                f"strategy is {strategy!r}, expected one of {', '.join(map(repr, STRATEGIES))}, or a function of probabilities, "
                "members and rows."
            )
        self.strategy = strategy
        self.warm_start = bool(warm_start)
        if self.warm_start and not isinstance(self.estimator, BoostingClassifier):
            raise DataError(
                f"``warm_start=True``, but the committee is a {type(self.estimator).__name__}, which has no rounds to keep. Pass "
                "one of distboost's estimators, or ``warm_start=False``."
            )
        if not (isinstance(pool_fraction, (int, float, np.number)) and 0 < pool_fraction <= 1):
            raise DataError(
                f"``pool_fraction`` is {pool_fraction!r}, expected a number above 0 and at most 1."
            )
        self.pool_fraction = float(pool_fraction)
        if not (isinstance(audit, (int, float, np.number)) and 0 <= audit <= 1):
            raise DataError(f"``audit`` is {audit!r}, expected a number of 0 to 1.")
        self.audit = float(audit)
        self.classes = None if classes is None else np.unique(checked_labels(classes))
        if self.classes is not None and len(self.classes) < 2:
            raise DataError(f"classes are {self.classes.tolist()}. Pass at least 2.")
        if self.batch_size > self.pool.n_rows:
            raise DataError(
                f"``batch_size`` is {batch_size}, but {self.pool.place} has {self.pool.n_rows} rows. Ask for fewer at once."
            )
        self.random_state = _whole("random_state", random_state, 0)
        self.verbose = verbose
        self.phases: Phases | None = None  # of a loop that shows them
        self.ledger = Ledger(self.pool.n_rows, self._header(), None if log is None else url_of(log, "log"))
        if self.pool.names is not None:
            check_same(self.ledger.notes.get("feature_names"), self.pool.names.tolist(), "pool")
            self.ledger.note("feature_names", self.pool.names.tolist())
        self._trainer = CommitteeTrainer(
            self.estimator,
            self.home,
            self.pool,
            self.ledger,
            warm_start=self.warm_start,
            random_state=self.random_state,
        )
        self._final_trainer = CommitteeTrainer(self.home, self.home, self.pool, self.ledger, calibrated=True)
        # A search that skips rows, or asks members, cannot use the scores of the whole pool.
        uses_scores = self.strategy in ("margin", "entropy")
        cache_scores = self.warm_start and self.pool_fraction == 1 and uses_scores
        self._search = PoolSearch(self.pool, self.home, cache_scores=cache_scores)

    def _header(self) -> dict[str, Any]:
        """Return the header of the log: everything that decides which rows are asked for."""
        return {
            "pool": [self.pool.n_rows, self.pool.n_features],
            **description_of(self.estimator),
            "final": None if self.final is None else description_of(self.final),
            "start": self.start,
            "n_initial": self.n_initial,
            "batch_size": self.batch_size,
            "strategy": name_of(self.strategy),
            "pool_fraction": self.pool_fraction,
            "diversity": self.diversity,
            "audit": self.audit,
            "warm_start": self.warm_start,
            "classes": None if self.classes is None else self.classes.tolist(),
            "random_state": self.random_state,
        }

    # State.

    @property
    def labelled_(self) -> np.ndarray:
        """The rows that were taught, in the order of teaching, (n_labelled,) int64."""
        return np.array(self.ledger.rows, np.int64)

    @property
    def labels_(self) -> np.ndarray:
        """Their labels, (n_labelled,)."""
        return np.array(self.ledger.labels)

    @property
    def asked_(self) -> np.ndarray:
        """The rows of the last query that were not taught yet, int64."""
        return np.array(self.ledger.asked, np.int64)

    @property
    def n_queries_(self) -> int:
        """The number of queries."""
        return self.ledger.n_queries

    @property
    def n_open_(self) -> int:
        """The number of rows of the pool that were neither taught nor asked for."""
        return self.pool.n_rows - len(self.ledger.rows) - len(self.ledger.asked)

    @property
    def has_committee_(self) -> bool:
        """Whether the labels suffice to train a committee."""
        return self._trainer.can_train

    @property
    def estimator_(self) -> Any:
        """The committee, trained with all labels so far."""
        return self._trainer.committee(quiet=bool(self.verbose))  # one progress bar is enough

    @property
    def model_(self) -> BoostingClassifier:
        """The final model, trained with all labels so far."""
        trainer = self._trainer if self.final is None else self._final_trainer
        model: BoostingClassifier = trainer.committee(quiet=bool(self.verbose))
        return model

    def teach(self, rows: Any, labels: Any) -> QueryByCommittee:
        """Record labels. The committee is trained with them before the next query.

        Parameters
        ----------
        rows : array-like of shape (n,), int
            Any rows of the pool that were not taught before, asked for or not.
        labels : array-like of shape (n,)
            Numbers or text.

        Returns
        -------
        self

        Raises
        ------
        distboost.errors.DataError
            If a row or a label is invalid. Nothing of the call is recorded then.
        distboost.errors.StoreError
            If the log cannot be written. Nothing of the call is recorded then.
        """
        self.ledger.teach(rows, labels)
        return self

    # Queries.

    def query(self, n: int | None = None) -> np.ndarray:
        """Return the rows whose labels would be the most useful.

        No row is returned twice. A row that is not taught stays in `asked_`; it can be taught at any time.

        Parameters
        ----------
        n : int or None, default=None
            Number of rows. None: `batch_size`, or `n_initial` while nothing was taught; fewer if the pool has no more.

        Returns
        -------
        rows : ndarray of shape (n,), int64
            Numbers of rows, the most useful first. Ties go to the row that comes first in the pool.

        Raises
        ------
        distboost.errors.DataError
            If the pool has no row left or fewer than `n`, or a row has an infinite value.
        distboost.errors.ClusterError
            If the cluster does not answer. The query does not count then.
        """
        n = self._size(n)
        none = np.zeros(0, np.int64)
        if self.start == "kmeans" and not self.ledger.rows and not self.ledger.asked:
            rows, audit = self._central(n), none
        elif self.strategy == RANDOM or not self.has_committee_:
            rows = audit = self._random(n, none)
        else:
            n_audit = self._audit_size(n)
            rows = self._most_useful(n - n_audit) if n_audit < n else none
            audit = self._random(n_audit, rows)
            rows = np.concatenate([rows, audit])
        self.ledger.ask(rows, audit)
        return rows

    def _random(self, n: int, others: np.ndarray) -> np.ndarray:
        """Return n rows at random that were not asked for and are not among others."""
        taken = np.sort(np.concatenate([self.ledger.excluded(), others]))
        return random_rows(self.pool.n_rows, taken, self._draw(QUERY), n)

    def _audit_size(self, n: int) -> int:
        """Return how many of n rows are drawn at random: as many as keep their share of all rows."""
        before = len(self.ledger.rows) + len(self.ledger.asked)
        shares = [int(self.audit * asked + 1e-9) for asked in (before, before + n)]
        return shares[1] - shares[0]

    def advice(self) -> Advice:
        """Return what the labels so far tell: the error, labels that may be wrong, and what to do next.

        It takes ten fits of the final model.

        Returns
        -------
        advice : Advice
        """
        return advised(Evidence.of(self._final_trainer, self.ledger, self.random_state), self.audit)

    def _size(self, n: int | None) -> int:
        """Return the number of rows to ask for."""
        left = self.n_open_
        if left == 0:
            raise DataError(
                f"no row is left to ask for: {len(self.ledger.rows)} of the {self.pool.n_rows} rows of {self.pool.place} were "
                f"taught, {len(self.ledger.asked)} were asked for."
            )
        first = n is None and not self.ledger.rows
        wanted = self.n_initial if first else self.batch_size if n is None else _whole("n", n)
        if wanted > left and (n is not None or (first and not self.ledger.asked)):
            raise DataError(
                f"``{'n_initial' if first else 'n'}`` is {wanted}, but only {left} rows of {self.pool.place} are left to ask "
                f"for. Ask for at most {left}."
            )
        return min(wanted, left)

    def _draw(self, stream: int) -> np.uint64:
        return key(self.random_state, stream, self.ledger.n_queries)

    def _central(self, n: int) -> np.ndarray:
        """Return the rows of a sample nearest to the centres of n clusters, in this order."""
        size = min(max(START_ROWS, 4 * n), self.pool.n_rows)
        sample = random_rows(self.pool.n_rows, self.ledger.excluded(), self._draw(QUERY), size)
        with self.pool.runtime(self.home) as runtime:
            X = self.pool.take(sample, runtime, coded=True).data
        rows: np.ndarray = sample[central_rows(X, n, self.random_state)]
        return rows

    def _most_useful(self, n: int) -> np.ndarray:
        """Return the n rows of highest utility (algorithm 4, lines 4 to 6)."""
        diversity = (
            (AUTO_DIVERSITY if n > SMALL_BATCH else 1) if self.diversity == "auto" else int(self.diversity)
        )
        query = BlockQuery(
            committee=committee_of(self.estimator_),
            strategy=self.strategy,
            n_best=n * diversity,
            place=self.pool.place,
            draw=self._draw(QUERIED_PART),
            fraction=self.pool_fraction,
        )
        with phases_shown(self.verbose) if self.phases is None else nullcontext(self.phases) as phases:
            found = self._search.best(query, self.ledger.excluded(), phases)
        return (found if diversity == 1 else select_diverse(found, n)).rows

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
        """Query, ask an oracle and teach its answers, until a stopping criterion is met.

        The oracle is first asked for rows that earlier queries returned and that were not taught.

        Parameters
        ----------
        oracle : array-like of shape (n_rows,), zarr.Array, or callable
            The labels of all rows of the pool, or a function oracle(rows) -> labels that is called once per query.
        eval_set : (X, y) or None, default=None
            Rows outside the pool that the error is measured on after each run.
        target_error : float or None, default=None
            Stop when the error on the `eval_set` is at most this fraction.
        max_labels : int or None, default=None
            Stop when this many rows are taught, those taught before `run` included.
        stabilised : float or None, default=None
            Stop when the predictions for random rows of the pool no longer change: when the agreement (Cohen's kappa) of a
            committee with the one before, averaged over the last 3, is at least this. 0.99 is usual (Bloodgood & Vijay-Shanker,
            2009).
        callbacks : sequence of callables, default=()
            Each is called with the learning curve so far after each run. If one returns True, the loop stops.

        Returns
        -------
        curve : LearningCurve
            Its `outcome` says why the loop stopped: "target error", "label budget", "stabilised", "callback" or
            "pool exhausted".

        Raises
        ------
        distboost.errors.DataError
            If the oracle's answer is invalid. An exception of the oracle itself passes through. Either way the rows stay in
            `asked_`.
        """
        return run_labelling(
            self,
            oracle,
            StoppingCriteria(eval_set, target_error, max_labels, stabilised, as_callbacks(callbacks)),
        )

    def save(self, url: str | os.PathLike[str]) -> None:
        """Write the record of queries and lessons to a file; give its path as `log` to resume from it."""
        with storage_options(self.home.storage_options):
            publish(url_of(url, "url"), self.ledger.text().encode())


def _checked_final(final: Any) -> BoostingClassifier:
    if not isinstance(final, BoostingClassifier):
        raise DataError(
            f"final is a {type(final).__name__}, expected one of distboost's estimators, such as ``GDMCBoostClassifier()``."
        )
    check_committee(final)
    return final


def _whole(name: str, value: Any, least: int = 1) -> int:
    with suppress(TypeError):
        if not isinstance(value, bool) and (found := index(value)) >= least:
            return found
    raise DataError(f"``{name}`` is {value!r}, expected a whole number of at least {least}.")
