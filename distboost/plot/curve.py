"""The losses and metrics of each round as curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from distboost.errors import ArgumentError, DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.inspecting import check_fitted
from distboost.model.learned import ERROR, LOSS
from distboost.plot.axes import GREY, axes_of, shortened, tidy

_WIDE_RANGE = 50.0  # between the largest and the smallest value: shown on a logarithmic axis


def curves(model: BoostingClassifier, *, metric: str | None = None, ax: Any = None) -> Any:
    """Draw a metric of the training rows and of each evaluation set against the rounds.

    Parameters
    ----------
    model : fitted estimator
    metric : str or None, default=None
        "loss", "error", or one that `eval_metric` named; None: the one that tells the best round.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    distboost.errors.DataError
        If the model has no such metric.
    distboost.errors.MissingPackageError
        If matplotlib is not installed.
    """
    check_fitted(model)
    history = model.learned_.history
    metric = history.watch.metric if metric is None else metric
    found = _series(model, metric)
    ax = axes_of(ax, 7.0, 4.2)
    for number, (name, values) in enumerate(found.items()):
        is_training = name == "training"
        ax.plot(
            np.arange(1, len(values) + 1),
            values,
            label=shortened(name),
            color=GREY if is_training else f"C{number - ('training' in found)}",
            linewidth=1.8,
            marker="o" if len(values) == 1 else None,
        )
    if history.evaluations and model.best_iteration_:
        best = history.best_round()
        ax.axvline(best, color=GREY, linewidth=1, linestyle=":", zorder=0)
        ax.annotate(
            f"best round {best}", (best, 1), (4, -2), xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="left" if best < len(model.train_loss_) / 2 else "right", va="top", fontsize=9, color=GREY,
        )  # fmt: skip
    _scale(ax, metric, np.concatenate(list(found.values())))
    ax.set_xlabel("round")
    ax.set_ylabel(metric.replace("_", " "))
    ax.xaxis.get_major_locator().set_params(integer=True)
    if len(found) > 1:
        ax.legend(frameon=False)
    tidy(ax, "y")
    return ax


def _series(model: BoostingClassifier, metric: str) -> dict[str, np.ndarray]:
    """Return the values of each set of rows after each round, by the name of the set."""
    history = model.learned_.history
    if not isinstance(metric, str):
        raise ArgumentError.expected("metric", metric, "the name of a metric, or None")
    own = {LOSS: history.train_loss, ERROR: history.train_error}
    found = {"training": own[metric]} if metric in own else {}
    found |= {name: metrics[metric] for name, metrics in history.evaluations.items() if metric in metrics}
    if not found:
        known = [LOSS, ERROR, *history.watch.metrics]
        raise DataError(
            f"the model has no metric {metric!r}. It has {', '.join(map(repr, known))}.", value=metric
        )
    if not history.n_rounds:
        raise DataError("the model has no rounds, so there is nothing to draw. `outcome_` says why.")
    return {name: np.array(values) for name, values in found.items()}


def _scale(ax: Any, metric: str, values: np.ndarray) -> None:
    if metric == ERROR:
        ax.yaxis.set_major_formatter("{x:.3g}")
        ax.set_ylim(bottom=0)
    elif values.min() > 0 and values.max() > _WIDE_RANGE * values.min():
        ax.set_yscale("log")
