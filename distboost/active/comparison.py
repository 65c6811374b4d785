"""Strategies compared where all labels are known: the learning curves of each, over several repeats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sklearn.base import clone

from distboost.active.curve import LearningCurve
from distboost.active.query import QueryByCommittee
from distboost.errors import ArgumentError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.subclasses import adjusted
from distboost.io.progress import bar


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

    Returns
    -------
    curves : dict of str to list of LearningCurve
        One curve per run, by strategy.

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
        raise ArgumentError(
            f"strategies is {strategies!r:.100}, expected a list of strategies: ['margin', 'random']."
        )
    curves: dict[str, list[LearningCurve]] = {strategy: [] for strategy in strategies}
    trials = [(repeat, strategy) for repeat in range(n_repeats) for strategy in strategies]

    def measured(strategy: str, seed: int) -> LearningCurve:
        learner = QueryByCommittee(estimator, pool, strategy=strategy, random_state=seed, **parameters)
        if client is not None:
            learner.home.client = client
        return learner.run(oracle, eval_set=eval_set, target_error=target_error, max_labels=max_labels)

    if not verbose:
        for repeat, strategy in trials:
            curves[strategy].append(measured(strategy, random_state + repeat))
        return curves
    if isinstance(estimator, BoostingClassifier):  # one bar is enough
        client = estimator.client if client is None else client
        estimator = adjusted(clone(estimator), verbose=0)
    with bar("learning curves", len(trials)) as draw:
        for number, (repeat, strategy) in enumerate(trials):
            draw(number, f"{strategy}, repeat {repeat + 1}")
            curves[strategy].append(measured(strategy, random_state + repeat))
        draw(len(trials))
    return curves
