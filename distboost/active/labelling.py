"""The labelling loop: query, ask the oracle, teach, until a stopping criterion is met."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.metrics import accuracy_score

from distboost.active.advice import kappa
from distboost.active.curve import LearningCurve, Point
from distboost.active.pool import sampled_rows, take_rows
from distboost.active.strategies import name_of
from distboost.data.checks import load_labels
from distboost.data.source import warn_about
from distboost.errors import ArgumentError, DataError
from distboost.inputs.choose import adapter_of
from distboost.io.phases import Phases
from distboost.io.progress import SHORT, display
from distboost.kernels.random import STOP_SET, key
from distboost.runtime.local import LocalRuntime
from distboost.training.loop import one_stops

if TYPE_CHECKING:
    from distboost.active.query import QueryByCommittee

TARGET_ERROR = "target error"
LABEL_BUDGET = "label budget"
STABILISED = "stabilised"
EXHAUSTED = "pool exhausted"
CALLBACK = "callback"

STOP_ROWS = 2000  # of the pool, whose predictions successive committees are compared on
STOP_WINDOW = 3  # agreements that are averaged


class StoppingCriteria(NamedTuple):
    """When the loop stops: the parameters of `QueryByCommittee.run`."""

    eval_set: tuple[Any, Any] | None
    target_error: float | None
    max_labels: int | None
    stabilised: float | None
    callbacks: tuple[Callable[[LearningCurve], Any], ...]

    def check(self) -> None:
        """Raise DataError if a criterion is out of range, or cannot be measured."""
        if self.eval_set is not None and not (
            isinstance(self.eval_set, tuple | list) and len(self.eval_set) == 2
        ):
            raise DataError(
                f"``eval_set`` is a {type(self.eval_set).__name__}, expected rows and their labels: ``eval_set=(X, y)``."
            )
        if self.target_error is not None and self.eval_set is None:
            raise DataError(
                f"``target_error={self.target_error}`` needs rows to measure it on: pass ``eval_set=(X, y)``."
            )
        if self.target_error is not None and not (
            isinstance(self.target_error, Real) and 0 <= self.target_error < 1
        ):
            raise DataError.expected("``target_error``", self.target_error, "a fraction: 0.05 is 5 %")
        if self.stabilised is not None and not (
            isinstance(self.stabilised, Real) and 0 < self.stabilised <= 1
        ):
            raise DataError.expected(
                "stabilised", self.stabilised, "an agreement above 0 and at most 1, such as 0.99"
            )
        if self.max_labels is not None and not (
            hasattr(self.max_labels, "__index__") and self.max_labels >= 1
        ):
            raise DataError.expected("``max_labels``", self.max_labels, "a whole number of at least 1")
        for callback in self.callbacks:
            if not callable(callback):
                raise DataError(
                    f"callbacks has {callback!r:.100}, which is not callable.",
                    remedy="Pass functions that take a LearningCurve.",
                    where="callbacks",
                    value=callback,
                )


def as_callbacks(callbacks: Any) -> tuple[Callable[[LearningCurve], Any], ...]:
    """Return the callbacks of a loop; raise ArgumentError if they are no list."""
    if not isinstance(callbacks, Iterable):
        raise ArgumentError.expected("callbacks", callbacks, "a list of functions of a LearningCurve")
    return tuple(callbacks)


def run_labelling(learner: QueryByCommittee, oracle: Any, criteria: StoppingCriteria) -> LearningCurve:
    """Run the loop of Huang 2009, algorithm 4. Departure: it stops for other reasons than an exhausted pool, too."""
    criteria.check()
    ask = _as_function(oracle, learner)
    measure = _CurveRecorder(learner, criteria)
    curve = LearningCurve(name_of(learner.strategy))
    with _progress_shown(learner, criteria) as show:
        measure(curve)
        while not curve.outcome:
            show(curve)
            rows = _next_rows(learner, criteria.max_labels)
            learner.teach(rows, _answers(ask, rows))
            measure(curve)
        show(curve)
    return curve


def _next_rows(learner: QueryByCommittee, max_labels: int | None) -> np.ndarray:
    """Return the rows that still have no answer, or else those of a new query."""
    n_left = None if max_labels is None else max_labels - len(learner.labelled_)
    if len(asked := learner.asked_of()):
        return asked[:n_left]
    usual = learner.batch_size if len(learner.labelled_) else learner.n_initial
    return learner.query(n_left if n_left is not None and n_left < min(usual, learner.n_open_) else None)


class _CurveRecorder:
    """Trains the committee, adds a point to the curve, and sets the curve's outcome when a criterion is met."""

    def __init__(self, learner: QueryByCommittee, criteria: StoppingCriteria):
        self.learner, self.criteria = learner, criteria
        self.evaluation = None
        if criteria.eval_set is not None:
            self.evaluation = _evaluation(*criteria.eval_set, learner.home.missing_chunks)
        self.stop_set: Any = None
        self.stopped = False  # by a callback
        self.previous: np.ndarray | None = None  # predictions of the last committee, (STOP_ROWS,) or fewer
        self.agreement: deque[float] = deque(maxlen=STOP_WINDOW)

    def __call__(self, curve: LearningCurve) -> None:
        learner = self.learner
        if learner.has_committee_:
            started = time.perf_counter()
            committee = learner.model_
            seconds = time.perf_counter() - started
            curve.points.append(Point(len(learner.labelled_), self._error(committee), seconds))
            if self.criteria.stabilised is not None:
                self._compare(committee)
            self.stopped = one_stops(self.criteria.callbacks, curve)
        curve.outcome = self._outcome(curve)

    def _error(self, committee: Any) -> float | None:
        if self.evaluation is None:
            return None
        X, y = self.evaluation
        predicted = np.asarray(committee.predict(X))
        if (predicted.dtype.kind == "U") != (y.dtype.kind == "U"):
            raise DataError(
                f"the labels of the ``eval_set``, such as {y[0]!r}, are not of the kind that was taught, such as "
                f"{predicted[0]!r}.",
                value=y[0],
            )
        return 1 - float(accuracy_score(y, predicted))

    def _compare(self, committee: Any) -> None:
        """Add the agreement of this committee with the one before on a stop set (Bloodgood & Vijay-Shanker 2009, section 3)."""
        if self.stop_set is None:
            pool = self.learner.pool
            draw = key(self.learner.random_state, STOP_SET)
            with pool.runtime(self.learner.home) as runtime:
                rows = sampled_rows(pool, np.zeros(0, np.int64), draw, STOP_ROWS)
                self.stop_set = pool.take(rows, runtime)
        predicted = committee.predict(self.stop_set)
        if self.previous is not None:
            self.agreement.append(kappa(predicted, self.previous))
        self.previous = predicted

    def _outcome(self, curve: LearningCurve) -> str:
        criteria, learner = self.criteria, self.learner
        error = curve.points[-1].error if curve.points else None
        if criteria.target_error is not None and error is not None and error <= criteria.target_error:
            return TARGET_ERROR
        if criteria.max_labels is not None and len(learner.labelled_) >= criteria.max_labels:
            return LABEL_BUDGET
        full = len(self.agreement) == STOP_WINDOW
        if criteria.stabilised is not None and full and np.mean(self.agreement) >= criteria.stabilised:
            return STABILISED
        if not learner.n_open_ and not len(learner.asked_of()):
            return EXHAUSTED
        return CALLBACK if self.stopped else ""


def _evaluation(X: Any, y: Any, missing_chunks: str) -> tuple[Any, np.ndarray]:
    """Return the evaluation rows, as they are, and their labels (n,) in memory."""
    of_y = adapter_of(y, "eval_set y").column()
    warn_about(of_y, missing_chunks)
    labels = of_y.loaded()
    if labels.dtype == object:
        labels = np.array(labels.tolist())
    n = adapter_of(X, "eval_set X").features().n_rows
    if labels.shape != (n,) or not n:
        raise DataError(
            f"the ``eval_set`` has {n} rows and labels of shape {labels.shape}: expected one for each.",
            value=n,
        )
    return X, load_labels(labels, "``eval_set y``", 0)


def _as_function(oracle: Any, learner: QueryByCommittee) -> Callable[[np.ndarray], Any]:
    """Return a function that gives the labels of rows."""
    if callable(oracle):
        function: Callable[[np.ndarray], Any] = oracle
        return function
    source, n_rows = adapter_of(oracle, "oracle").column(), learner.pool.n_rows
    warn_about(source, learner.home.missing_chunks)
    if source.shape != (n_rows,):
        raise DataError(
            f"{source.place} has labels of shape {source.shape}, but the pool has {n_rows} rows: pass one for each, or a "
            "function of rows.",
            where=source.place,
        )
    labels = source.array
    if labels is not None:
        return lambda rows: labels[rows]
    return lambda rows: take_rows(source, rows, LocalRuntime(1))


def _answers(ask: Callable[[np.ndarray], Any], rows: np.ndarray) -> Any:
    """Return the oracle's labels. What the oracle itself raises passes through."""
    labels = ask(rows)
    if np.ndim(labels) != 1 or len(labels) != len(rows):
        raise DataError(
            f"the oracle was asked for {len(rows)} rows and answered with labels of shape {np.shape(labels)}. It must "
            "return one label for each."
        )
    return labels


@contextmanager
def _progress_shown(
    learner: QueryByCommittee, criteria: StoppingCriteria
) -> Iterator[Callable[[LearningCurve], None]]:
    """Yield a function that draws the progress bar; it draws nothing unless the learner is verbose."""
    if not learner.verbose:
        yield lambda curve: None
        return
    most = min(criteria.max_labels or learner.pool.n_rows, learner.pool.n_rows)
    with display(f"{type(learner.estimator).__name__}, {name_of(learner.strategy)}", least=SHORT) as shown:
        draw, learner.phases = shown.bar(most), Phases(shown.phase)

        def show(curve: LearningCurve) -> None:
            error = curve.points[-1].error if curve.points else None
            draw(len(learner.labelled_), "labels" + ("" if error is None else f", error {error:.2%}"))

        try:
            yield show
        finally:
            learner.phases = None
