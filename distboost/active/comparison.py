"""Strategies compared where all labels are known: the learning curves of each, over several repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import starmap
from typing import Any

from joblib import Parallel, delayed
from sklearn.base import clone

from distboost.active.curve import LearningCurve
from distboost.active.query import QueryByCommittee
from distboost.errors import ArgumentError, DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.parameters import adjusted
from distboost.io.options import StorageOptions, options_in_force, storage_options
from distboost.io.progress import bar
from distboost.threads import available_cores


def learning_curves(
    estimator: Any,
    pool: Any,
    oracle: Any,
    eval_set: tuple[Any, Any],
    *,
    strategies: Sequence[str] = ("margin", "random"),
    n_repeats: int = 10,
    target_error: float | None = None,
    max_labels: int | None = None,
    random_state: int = 0,
    verbose: int = 0,
    client: Any = None,
    jobs: int = 1,
    **parameters: Any,
) -> dict[str, list[LearningCurve]]:
    """Measure how the error falls with the number of labels, for each strategy.

    Parameters
    ----------
    estimator, pool, **parameters
        As for `QueryByCommittee`.
    oracle, eval_set, target_error, max_labels
        As for `QueryByCommittee.run`.
    strategies : sequence of str, default=("margin", "random")
    n_repeats : int, default=10
        Runs of each strategy. Run i has the seed random_state + i, so its initial rows are the same for all strategies.
    random_state : int, default=0
        Seed of the first run.
    verbose : int, default=0
        1: a progress bar over the runs.
    client : distributed.Client or None, default=None
        The cluster that scores the pool. None: that of the final model, or of the committee.
    jobs : int, default=1
        Runs that are measured at the same time, each in a process of this machine. The curves are the same.

    Returns
    -------
    curves : dict of str to list of LearningCurve
        One curve per run, by strategy, with its `settings`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GAMBLEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> curves = learning_curves(GAMBLEClassifier(n_estimators=10), X[::2], y[::2], (X[1::2], y[1::2]),
    ...                          n_initial=10, n_repeats=2, max_labels=30)
    >>> [curve.n_labelled.tolist() for curve in curves["margin"]]
    [[10, 20, 30], [10, 20, 30]]
    """
    if isinstance(strategies, str) or not isinstance(strategies, Iterable):
        raise ArgumentError.expected("strategies", strategies, "a list of strategies: ['margin', 'random']")
    if jobs > 1 and client is not None:
        raise DataError(
            f"``jobs={jobs}``, but a cluster scores the pool.", remedy="Pass ``jobs=1``, or no cluster."
        )
    if verbose and isinstance(estimator, BoostingClassifier):  # one bar is enough
        client = estimator.client if client is None else client
        estimator = adjusted(clone(estimator), verbose=0)
    curves: dict[str, list[LearningCurve]] = {strategy: [] for strategy in strategies}
    trials = [(repeat, strategy) for repeat in range(n_repeats) for strategy in strategies]
    measured = partial(
        _measured,
        (estimator, pool, parameters),
        (oracle, eval_set, target_error, max_labels),
        client=client,
        options=options_in_force(),
        n_threads=max(available_cores() // jobs, 1) if jobs > 1 else None,
    )
    calls = ((strategy, random_state + repeat) for repeat, strategy in trials)
    with bar("learning curves", len(trials)) if verbose else nullcontext(_draw_nothing) as draw:
        found = starmap(measured, calls) if jobs == 1 else _in_processes(measured, calls, jobs)
        for number, (repeat, strategy) in enumerate(trials):
            draw(number, f"{strategy}, repeat {repeat + 1}")
            curves[strategy].append(next(found))
        draw(len(trials))
    return curves


def _measured(
    work: tuple[Any, Any, dict[str, Any]],
    run: tuple[Any, Any, float | None, int | None],
    strategy: str,
    seed: int,
    *,
    client: Any,
    options: StorageOptions,
    n_threads: int | None,
) -> LearningCurve:
    """Return the curve of one run: of a learner (estimator, pool, parameters) that asks the oracle, on so many threads."""
    (estimator, pool, parameters), (oracle, eval_set, target_error, max_labels) = work, run
    with storage_options(options):
        learner = QueryByCommittee(estimator, pool, strategy=strategy, random_state=seed, **parameters)
        if client is not None:
            learner.home.client = client
        if n_threads is not None and learner.home.n_jobs == -1:
            learner.home.n_jobs = n_threads
        curve = learner.run(oracle, eval_set=eval_set, target_error=target_error, max_labels=max_labels)
        curve.settings = {
            name: value
            for name, value in learner.ledger.header.items()
            if name not in ("distboost", "version")
        }
        return curve


def _in_processes(
    function: Callable[..., LearningCurve], calls: Iterable[tuple[Any, ...]], jobs: int
) -> Iterator[LearningCurve]:
    """Yield function(*call) for each call, in order, computed in so many processes of this machine."""
    found: Iterator[LearningCurve] = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(function)(*call) for call in calls
    )
    return found


def _draw_nothing(*_: Any) -> None:
    """Stand for the function of a progress bar that is not shown."""
