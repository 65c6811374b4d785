"""Learning curves: the error against the number of labels, as numbers and as a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from distboost.errors import DataError
from distboost.io.progress import bar


class Point(NamedTuple):
    """The committee after a training.

    Attributes
    ----------
    n_labelled : int
        Rows it was trained on.
    error : float or None
        On the evaluation rows, as a fraction.
    seconds : float
        That the training took.
    """

    n_labelled: int
    error: float | None
    seconds: float


@dataclass
class LearningCurve:
    """What `QueryByCommittee.run` measured.

    Attributes
    ----------
    strategy : str
    points : list of Point
        After each training.
    outcome : str
        Why it ended; empty while it runs.
    """

    strategy: str
    points: list[Point] = field(default_factory=list)
    outcome: str = ""

    @property
    def n_labelled(self) -> np.ndarray:
        """Rows taught, (n_points,)."""
        return np.array([point.n_labelled for point in self.points], np.int64)

    @property
    def error(self) -> np.ndarray:
        """Errors on the evaluation rows as fractions, (n_points,); NaN where none were given."""
        return np.array([math.nan if point.error is None else point.error for point in self.points])

    @property
    def seconds(self) -> np.ndarray:
        """That each training took, (n_points,)."""
        return np.array([point.seconds for point in self.points])

    def labels_to(self, error: float) -> int | None:
        """The least number of labels with which the error was at most this; None if it never was."""
        reached = np.flatnonzero(self.error <= error)
        return int(self.n_labelled[reached[0]]) if len(reached) else None

    def error_at(self, n_labels: np.ndarray) -> np.ndarray:
        """The error of the last committee with at most so many labels, as `n_labels`; NaN before the first and after the last."""
        place = np.searchsorted(self.n_labelled, n_labels, side="right") - 1
        known = (place >= 0) & (n_labels <= self.n_labelled.max(initial=-1))
        return np.where(known, np.append(self.error, math.nan)[place], math.nan)


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
    **parameters: Any,
) -> dict[str, list[LearningCurve]]:
    """How the error falls with the number of labels, by strategy: that of a committee that chooses beside one that does not.

    Parameters
    ----------
    estimator, pool, **parameters
        As for `QueryByCommittee`.
    oracle, eval_set, target_error, max_labels
        As for `QueryByCommittee.run`.
    strategies : sequence of str, default=("margin", "random")
    n_repeats : int, default=10
        Of each strategy; repeat i has the seed random_state + i, and so the same initial rows for each strategy.
    random_state : int, default=0
    verbose : int, default=0
        1: a progress bar over the repeats.

    Returns
    -------
    curves : dict of str to list of LearningCurve

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
    from distboost.active.query import QueryByCommittee

    curves: dict[str, list[LearningCurve]] = {strategy: [] for strategy in strategies}
    trials = [(repeat, strategy) for repeat in range(n_repeats) for strategy in strategies]

    def measured(strategy: str, seed: int) -> LearningCurve:
        learner = QueryByCommittee(estimator, pool, strategy=strategy, random_state=seed, **parameters)
        return learner.run(oracle, eval_set=eval_set, target_error=target_error, max_labels=max_labels)

    if not verbose:
        for repeat, strategy in trials:
            curves[strategy].append(measured(strategy, random_state + repeat))
        return curves
    client, estimator = estimator.client, clone(estimator).set_params(verbose=0)  # one bar is enough
    estimator.client = client
    with bar("learning curves", len(trials)) as draw:
        for number, (repeat, strategy) in enumerate(trials):
            draw(number, f"{strategy}, repeat {repeat + 1}")
            curves[strategy].append(measured(strategy, random_state + repeat))
        draw(len(trials))
    return curves


def plot_curves(
    curves: Mapping[str, Sequence[LearningCurve]],
    path: str | os.PathLike | None = None,
    *,
    target_error: float | None = None,
    title: str = "",
    ax: Any = None,
) -> Any:
    """Draws the mean error against the number of labels, one line a strategy, with the spread between repeats.

    Parameters
    ----------
    curves : dict of str to list of LearningCurve
        As from `learning_curves`.
    path : str or path, optional
        A picture to write: png, svg or pdf.
    target_error : float, optional
        Drawn as a line.
    title : str, optional
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    distboost.errors.DataError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DataError(
            "pictures need matplotlib, which is not installed: pip install 'distboost[plots]'."
        ) from error
    if ax is None:
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        ax = figure.add_subplot()
    for strategy, repeats in curves.items():
        measured = [curve for curve in repeats if len(curve.points)]
        if not measured:
            continue
        ends = [(int(curve.n_labelled[0]), int(curve.n_labelled[-1])) for curve in measured]
        n = np.unique(np.concatenate([curve.n_labelled for curve in measured]))
        n = n[(n >= max(a for a, _ in ends)) & (n <= min(b for _, b in ends))]
        errors = 100 * np.array([curve.error_at(n) for curve in measured])
        mean, std = errors.mean(axis=0), errors.std(axis=0)
        (line,) = ax.plot(n, mean, label=f"{strategy} ({len(measured)})" if len(measured) > 1 else strategy)
        if len(measured) > 1:
            ax.fill_between(n, mean - std, mean + std, color=line.get_color(), alpha=0.2, linewidth=0)
    if target_error is not None:
        ax.axhline(100 * target_error, color="grey", linestyle="--", linewidth=1, label="target")
    ax.set(xlabel="labels", ylabel="error on the evaluation rows, %", title=title)
    ax.set_ylim(bottom=0)
    ax.legend()
    if path is not None:
        ax.figure.savefig(os.fspath(path), dpi=150)
    return ax
