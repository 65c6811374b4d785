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
from numbers import Real
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
from distboost.active.ledger import Ledger, other_work
from distboost.active.lessons import Lessons
from distboost.active.pool import Pool, random_rows, sampled_rows
from distboost.active.pool_search import START_ROWS, BlockQuery, PoolSearch, central_rows
from distboost.active.records import SETTINGS, checked_labels
from distboost.active.seeds import as_recorded, read_seeds
from distboost.active.selection import select_distinct, select_diverse
from distboost.active.strategies import RANDOM, STRATEGIES, Function, committee_of, name_of
from distboost.data.source import warn_about
from distboost.errors import DataError, DistboostError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.factory import estimator as estimator_class
from distboost.estimators.validation import check_same
from distboost.io.files import publish
from distboost.io.options import storage_options, url_of
from distboost.io.phases import Phases
from distboost.io.progress import phases_shown
from distboost.kernels.random import QUERIED_PART, QUERY, key, uniforms

AUTO_CANDIDATES = 10  # for each row of a batch, so that near-copies leave some
STARTS = ("kmeans", "random")
MOST_HOURS = 10**5  # of a lease


def _setting(name: str, text: str) -> Any:
    """Return a property for a setting of the log."""

    def changed(learner: QueryByCommittee, value: Any) -> None:
        learner.ledger.set(name, learner._checked(name, value))

    return property(lambda learner: learner.ledger.settings[name], changed, doc=text)


class QueryByCommittee(Lessons):
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
    strategy : {"margin", "entropy", "averaged-margin", "random"} or callable, default="margin"
        Which rows to ask for: those with the smallest difference between the two largest scores (Huang 2009, algorithm 4), with
        the largest entropy of `predict_proba`, with the smallest mean of that difference over the committee's members, or random
        ones, as a control. A function strategy(probabilities, members, rows) of arrays (n, n_classes),
        (n_members, n, n_classes) and (n,) returns how useful the label of each row would be, (n,).
    pool_fraction : float, default=1.0
        The fraction of the pool that each query reads, scores and chooses from. Each query draws other chunks of the pool, or
        other rows if the pool is in memory or one chunk. "random" chooses from all rows.
    diversity : int or "auto", default="auto"
        Above 1: take `diversity` times as many of the most useful rows as are wanted, and choose from them rows that the
        committee scores as differently as possible. 1 is algorithm 4. "auto": the most useful rows, but none that the committee
        scores nearly as another of the batch, while 10 times as many have others; for GAMBLE, 1. "random" scores no rows, and
        ignores this.
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
        from it, in the state that its last process left. Several processes may work on one log. `batch_size`, `strategy`,
        `pool_fraction` and `diversity` may change, and so may the attributes of these names: the log records it.
    random_state : int, default=0
        The seed of all random choices.
    verbose : int, default=0
        1: `query` and `run` show their progress.

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
        self._given = pool
        self.pool = self._opened(pool)
        warn_about(self.pool.source, self.home.missing_chunks)
        self.start = _known_start(start)
        self.n_initial = _whole("n_initial", n_initial)
        self._function: Function | None = None
        given = zip(SETTINGS, (batch_size, strategy, pool_fraction, diversity, audit), strict=True)
        settings = {name: self._checked(name, value) for name, value in given}
        self.warm_start = bool(warm_start)
        if self.warm_start and not isinstance(self.estimator, BoostingClassifier):
            raise DataError(
                f"``warm_start=True``, but the committee is a {type(self.estimator).__name__}, which has no rounds to keep.",
                remedy="Pass one of distboost's estimators, or ``warm_start=False``.",
            )
        self.classes = None if classes is None else np.unique(checked_labels(classes))
        if self.classes is not None and len(self.classes) < 2:
            raise DataError(f"classes are {self.classes.tolist()}.", remedy="Pass at least 2.")
        self.random_state = _whole("random_state", random_state, 0)
        self.verbose = verbose
        self.phases: Phases | None = None  # of a loop that shows them
        self.ledger = self._opened_log(log, settings)
        self._trainer = CommitteeTrainer(
            self.estimator,
            self.home,
            self.pool,
            self.ledger,
            warm_start=self.warm_start,
            random_state=self.random_state,
        )
        self._final_trainer = CommitteeTrainer(self.home, self.home, self.pool, self.ledger, calibrated=True)
        self._search: PoolSearch | None = None
        self._searched_with: Any = None  # what the search depends on

    def _opened_log(self, log: str | os.PathLike[str] | None, settings: dict[str, Any]) -> Ledger:
        """Return the ledger; raise DataError if the log is that of other work."""
        ledger = Ledger(self._header(settings), None if log is None else url_of(log, "log"))
        if ledger.n_rows != self.pool.n_rows:
            raise other_work(
                url_of(log, "log"), "pool", self._shape(ledger.n_rows), self._shape(self.pool.n_rows)
            )
        for name, value in settings.items():
            ledger.set(name, value)
        if self.pool.names is not None:
            check_same(ledger.notes.get("feature_names"), self.pool.names.tolist(), "pool")
            ledger.note("feature_names", self.pool.names.tolist())
        return ledger

    def _header(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the header of the log: everything that decides which rows are asked for."""
        return {
            "pool": self._shape(self.pool.n_rows),
            **description_of(self.estimator),
            "final": None if self.final is None else description_of(self.final),
            "start": self.start,
            "n_initial": self.n_initial,
            **settings,
            "warm_start": self.warm_start,
            "classes": None if self.classes is None else self.classes.tolist(),
            "random_state": self.random_state,
        }

    def _shape(self, n_rows: int) -> list[int]:
        return [n_rows, self.pool.n_features]

    # Settings, which may change.

    batch_size: Any = _setting("batch_size", "R: the size of every query but the first.")
    pool_fraction: Any = _setting("pool_fraction", "The fraction of the pool that each query scores.")
    diversity: Any = _setting(
        "diversity", 'How many candidates are scored for each row of a batch, or "auto".'
    )

    audit: Any = _setting("audit", "The share of the rows that are drawn at random.")

    @property
    def strategy(self) -> Any:
        """Which rows to ask for."""
        name = self.ledger.settings["strategy"]
        if name in STRATEGIES:
            return name
        if self._function is None or name_of(self._function) != name:
            raise DataError(
                f"the log asks by {name} now, which is none of {', '.join(STRATEGIES)}.",
                remedy="Pass that function, or one of these: ``strategy=...``",
            )
        return self._function

    @strategy.setter
    def strategy(self, value: Any) -> None:
        self.ledger.set("strategy", self._checked("strategy", value))

    def _checked(self, name: str, value: Any) -> Any:
        """Return a setting as the log has it; raise DataError if it is invalid."""
        if name in ("pool_fraction", "audit"):
            return _number(name, value, 1, above=name == "pool_fraction")
        if name == "diversity":
            return value if value == "auto" else _whole(name, value)
        if name == "batch_size":
            if (n := _whole(name, value)) > self.pool.n_rows:
                raise DataError(
                    f"``batch_size`` is {value}, but {self.pool.place} has {self.pool.n_rows} rows.",
                    value=value,
                    remedy="Ask for fewer at once.",
                )
            return n
        if callable(value):
            self._function = value
        elif value not in STRATEGIES:
            raise DataError.expected(
                "strategy",
                value,
                f"one of {', '.join(map(repr, STRATEGIES))}, or a function of probabilities, "
                "members and rows",
            )
        return name_of(value)

    # The pool.

    def _opened(self, pool: Any) -> Pool:
        with storage_options(self.home.storage_options):
            return Pool(pool, self.home.categorical_features)

    def extend(self, pool: Any = None, by: str | None = None) -> QueryByCommittee:
        """Take up rows that were appended to the pool. They may be asked for from now on.

        Parameters
        ----------
        pool : as for `QueryByCommittee`, default=None
            The pool with all its rows, those before unchanged. None: the one that the learner was made with, such as a path, is
            opened again.
        by : str or None, default=None
            Who says so.

        Returns
        -------
        self

        Raises
        ------
        distboost.errors.DataError
            If the pool has fewer rows than before, or other features.
        """
        given = self._given if pool is None else pool
        grown = self._opened(given)
        if grown.n_features != self.pool.n_features:
            raise DataError(
                f"{grown.place} has {grown.n_features} features, but the pool has {self.pool.n_features}.",
                remedy="Append such rows.",
                where=grown.place,
                value=grown.n_features,
            )
        if grown.names is not None:
            check_same(self.ledger.notes.get("feature_names"), grown.names.tolist(), "pool")
        self.ledger.extend(grown.n_rows, by)
        self._given, self.pool, self._trainer.pool, self._final_trainer.pool = given, grown, grown, grown
        return self

    def _keep_up(self) -> None:
        """Open the pool again if somebody said that it has grown."""
        if self.pool.n_rows != self.ledger.n_rows:
            self.extend()

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
        """The rows that were asked for, of anybody, and have no answer yet, int64."""
        return np.array(self.ledger.asked, np.int64)

    def asked_of(self, by: str | None = None) -> np.ndarray:
        """Return those that this person was asked for; None: those that `query` returned, (n,) int64."""
        return np.array(self.ledger.asked_of(by), np.int64)

    @property
    def n_queries_(self) -> int:
        """The number of queries."""
        return self.ledger.n_queries

    @property
    def n_open_(self) -> int:
        """The number of rows of the pool that were neither taught nor asked for, nor skipped."""
        return self._n_open(None)

    def _n_open(self, by: str | None) -> int:
        return self.ledger.n_rows - len(self.ledger.excluded(by))

    @property
    def has_committee_(self) -> bool:
        """Whether the labels suffice to train a committee."""
        return self._trainer.can_train

    @property
    def estimator_(self) -> Any:
        """The committee, trained with all labels so far."""
        return self._trained(self._trainer)

    @property
    def model_(self) -> BoostingClassifier:
        """The final model, trained with all labels so far."""
        model: BoostingClassifier = self._trained(
            self._trainer if self.final is None else self._final_trainer
        )
        return model

    def _trained(self, trainer: CommitteeTrainer) -> Any:
        self._keep_up()
        return trainer.committee(quiet=bool(self.verbose))  # one progress bar is enough

    # Lessons.

    def record(self, kind: str, value: Any, by: str | None = None, **more: Any) -> Any:
        """Record an event in the log. The methods for each kind of event are those to call."""
        return self.ledger.record(kind, value, by, **more)

    def seed(self, X: Any, labels: Any, by: str | None = None) -> QueryByCommittee:
        """Record labelled rows from outside the pool, which the committee learns from, too.

        Parameters
        ----------
        X : anything that `fit` takes, of shape (n, n_features)
            If it is a path or URL, the log has that, and the array must stay; else the log has the values.
        labels : array-like of shape (n,)
        by : str or None, default=None
            Who says so.

        Returns
        -------
        self

        Raises
        ------
        distboost.errors.DataError
            If the features differ from those of the pool, a label is invalid, or there are more values than a log should hold.
        """
        seed = {"x": as_recorded(X, self.pool, self.home), "labels": checked_labels(labels).tolist()}
        read_seeds(seed, self.pool, self.home)  # raises DataError unless there is a label for each row
        self.ledger.seed(seed["x"], seed["labels"], by)
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
            Numbers of rows, the most useful first. The seed decides between rows of equal utility.

        Raises
        ------
        distboost.errors.DataError
            If the pool has no row left or fewer than `n`, or a row has an infinite value.
        distboost.errors.ClusterError
            If the cluster does not answer. The query does not count then.
        """
        return self._ask(n, None, None)

    def lease(
        self,
        n: int | None = None,
        by: str | None = None,
        *,
        hours: float = 1.0,
        overlap: float = 0.0,
        conflicts: bool = False,
    ) -> np.ndarray:
        """Return useful rows for one of several people. Nobody else gets them meanwhile.

        Parameters
        ----------
        n : int or None, default=None
            As for `query`.
        by : str
            Who gets them.
        hours : float, default=1.0
            Those that have no answer after this time come free: queries may return them again.
        overlap : float, default=0.0
            The share of the rows that one other person has labelled, drawn at random: this person gives a second opinion, which
            does not change the label. `advice` tells how far people agree.
        conflicts : bool, default=False
            True: return rows on which people differ, if there are any. `correct` settles them.

        Returns
        -------
        rows : ndarray of shape (n,), int64
            As for `query`; those with a label come last.

        Raises
        ------
        distboost.errors.DataError, distboost.errors.ClusterError
            As for `query`.
        """
        if by is None:
            raise DataError("by is None.", remedy="Pass the name of the person who gets the rows.")
        seconds = 3600 * _number("hours", hours, MOST_HOURS, above=True)
        overlap = _number("overlap", overlap, 1)
        self.ledger.update()
        if conflicts:
            second = self.ledger.conflicts_for(by)[:n]
            if not second:
                raise DataError(
                    f"there is no row on which people differ and that {by!r} may be asked for.", value=by
                )
        else:
            usual = self.batch_size if n is None else _whole("n", n)
            second = self._to_compare(_part_of(overlap, self.ledger.n_asked_of(by), usual), by)
            n = min(usual - len(second), self._n_open(by)) if second else n
        rows = np.zeros(0, np.int64) if second and (conflicts or not n) else self._ask(n, by, seconds)
        if second:
            more = self.ledger.ask(np.array(second, np.int64), rows[:0], by, seconds, again=second)
            rows = np.append(rows, np.array(more, np.int64))
        return rows

    def _to_compare(self, n: int, by: str) -> list[int]:
        """Return n random ones of the rows that one other person told, or all if there are fewer."""
        rows = self.ledger.told_by_one_other(by) if n else []
        draw = self._draw(QUERY)
        return sorted(rows, key=lambda row: float(uniforms(draw, row, 1)[0]))[:n]

    def ranked(self, n: int, n_more: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows that `query` would, without asking for them, and more rows at random, for when these are used up.

        Parameters
        ----------
        n, n_more : int
            At most so many.

        Returns
        -------
        rows, audit, more : ndarray of shape (n,), (n_audit,) and (n_more,), int64
            The most useful first; those of them that stand for the pool; and the others.
        """
        self.ledger.update()
        self._keep_up()
        rows, audit = self._found(min(n, self.n_open_), None)
        left = min(n_more, self.n_open_ - len(rows))
        taken = np.union1d(self.ledger.excluded(), rows)
        return rows, audit, sampled_rows(self.pool, taken, self._draw(QUERY), left)

    def _ask(self, n: int | None, by: str | None, seconds: float | None) -> np.ndarray:
        """Return rows for somebody. Those that others take during the search are replaced."""
        self.ledger.update()
        self._keep_up()
        n, rows = self._size(n, by), list[int]()
        while len(rows) < n and self._n_open(by):
            try:
                found, audit = self._found(n - len(rows), by)
            except Exception as error:
                with suppress(DistboostError):
                    self.ledger.fail(error, by)
                raise
            rows += self.ledger.ask(found, audit, by, seconds)
            self._keep_up()
        return np.array(rows, np.int64)

    def _found(self, n: int, by: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the n rows to ask for, as far as is known, and those of them that are drawn at random."""
        none = np.zeros(0, np.int64)
        if self.start == "kmeans" and self.ledger.is_new:
            return self._central(n), none
        if self.strategy == RANDOM or not self.has_committee_:
            rows = self._random(n, none, by)
            return rows, rows
        n_audit = self._audit_size(n)
        useful = self._most_useful(n - n_audit, by) if n_audit < n else none
        audit = self._random(n_audit, useful, by)
        return np.concatenate([useful, audit]), audit

    def _random(self, n: int, others: np.ndarray, by: str | None) -> np.ndarray:
        """Return n rows at random that this person may be asked for and that are not among others."""
        taken = np.union1d(self.ledger.excluded(by), others)
        return random_rows([(0, self.pool.n_rows)], taken, self._draw(QUERY), n)

    def _audit_size(self, n: int) -> int:
        """Return how many of n rows are drawn at random: as many as keep their share of all rows."""
        before = len(self.ledger.rows) + len(self.ledger.asked)
        return _part_of(self.audit, before, n)

    def advice(self) -> Advice:
        """Return what the labels so far tell: the error, labels that may be wrong, and what to do next.

        It takes five fits of the committee, and up to ten of the final model.

        Returns
        -------
        advice : Advice

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If labels of fewer than two classes were taught.
        """
        self._keep_up()
        evidence = Evidence.of(self._final_trainer, self._trainer, self.ledger, self.random_state)
        return advised(evidence, self.ledger)

    def _size(self, n: int | None, by: str | None) -> int:
        """Return the number of rows to ask for."""
        ledger, left = self.ledger, self._n_open(by)
        if left == 0:
            raise DataError(
                f"no row is left to ask for: {len(ledger.labelled)} of the {ledger.n_rows} rows of {self.pool.place} were "
                f"taught, {len(ledger.asked)} were asked for, {len(ledger.skipped)} skipped.",
                where=self.pool.place,
            )
        first = n is None and not ledger.labelled and not ledger.seeds
        wanted = self.n_initial if first else self.batch_size if n is None else _whole("n", n)
        if wanted > left and (n is not None or (first and ledger.is_new)):
            raise DataError(
                f"``{'n_initial' if first else 'n'}`` is {wanted}, but only {left} rows of {self.pool.place} are left to ask "
                "for.",
                remedy=f"Ask for at most {left}.",
                where=self.pool.place,
            )
        return int(min(wanted, left))

    def _draw(self, stream: int) -> np.uint64:
        return key(self.random_state, stream, self.ledger.n_queries)

    def _central(self, n: int) -> np.ndarray:
        """Return the rows of a sample nearest to the centres of n clusters, in this order."""
        size = min(max(START_ROWS, 4 * n), self.pool.n_rows)
        sample = sampled_rows(self.pool, self.ledger.excluded(), self._draw(QUERY), size)
        with self.pool.runtime(self.home) as runtime:
            X = self.pool.take(sample, runtime, coded=True).data
        rows: np.ndarray = sample[central_rows(X, n, self.random_state)]
        return rows

    def _most_useful(self, n: int, by: str | None) -> np.ndarray:
        """Return the n rows of highest utility (algorithm 4, lines 4 to 6)."""
        committee, diversity = committee_of(self.estimator_), self.diversity
        leaves_out_copies = diversity == "auto" and not committee.takes_first
        if diversity == "auto":
            diversity = AUTO_CANDIDATES if leaves_out_copies else 1
        query = BlockQuery(
            committee=committee,
            strategy=self.strategy,
            n_best=n * diversity,
            place=self.pool.place,
            draw=self._draw(QUERIED_PART),
            fraction=self.pool_fraction,
        )
        with phases_shown(self.verbose) if self.phases is None else nullcontext(self.phases) as phases:
            found = self._pool_search().best(query, self.ledger.excluded(by), phases)
        if leaves_out_copies:
            return select_distinct(found, n).rows
        return (found if diversity == 1 else select_diverse(found, n)).rows

    def _pool_search(self) -> PoolSearch:
        """Return the search of the pool as it is now."""
        # A search that skips rows, or asks members, cannot use the scores of the whole pool.
        uses_scores = self.strategy in ("margin", "entropy")
        cache_scores = self.warm_start and self.pool_fraction == 1 and uses_scores
        if self._search is None or self._searched_with != (self.pool, cache_scores):
            self._search = PoolSearch(self.pool, self.home, cache_scores=cache_scores)
            self._searched_with = (self.pool, cache_scores)
        return self._search

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


def _number(name: str, value: Any, most: float, *, above: bool = False) -> float:
    """Return a number of 0, or above it, to `most`."""
    found = float(value) if isinstance(value, Real) else np.nan
    if 0 <= found <= most and not (above and found == 0):
        return found
    raise DataError.expected(
        f"``{name}``", value, f"a number {'above 0 and at most' if above else 'of 0 to'} {most}"
    )


def _part_of(share: float, before: int, n: int) -> int:
    """Return how many of n more rows are of a kind that has this share of all."""
    first, last = (int(share * asked + 1e-9) for asked in (before, before + n))
    return last - first


def _known_start(start: str) -> str:
    if start not in STARTS:
        known = ", ".join(map(repr, STARTS))
        raise DataError.expected("start", start, f"one of {known}")
    return start


def _whole(name: str, value: Any, least: int = 1) -> int:
    with suppress(TypeError):
        if not isinstance(value, bool) and (found := index(value)) >= least:
            return found
    raise DataError.expected(f"``{name}``", value, f"a whole number of at least {least}")
