"""Learning curves as a picture."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distboost.active.curve import LearningCurve
from distboost.errors import ArgumentError
from distboost.io.options import url_of
from distboost.io.packages import check_axes, no_matplotlib


def plot_curves(
    curves: Mapping[str, Sequence[LearningCurve]],
    path: str | os.PathLike[str] | None = None,
    *,
    target_error: float | None = None,
    title: str = "",
    ax: Any = None,
) -> Any:
    """Draw the mean error against the number of labels, one line per strategy, and shade its standard deviation between runs.

    Parameters
    ----------
    curves : dict of str to list of LearningCurve
        As from `learning_curves`.
    path : str or path, optional
        Picture file to write: png, svg or pdf.
    target_error : float, optional
        A horizontal line marks it.
    title : str, optional
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    distboost.errors.MissingPackageError
        If matplotlib is not installed.
    distboost.errors.ArgumentError
        If `curves` is not a dict, or `ax` is not axes.
    """
    if not isinstance(curves, Mapping):
        raise ArgumentError.expected(
            "curves", curves, "lists of learning curves by strategy, as `learning_curves` returns them"
        )
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise no_matplotlib() from error
    if ax is None:
        ax = Figure(figsize=(6.4, 4), layout="constrained").add_subplot()
    check_axes(ax)
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
        ax.figure.savefig(url_of(path, "path"), dpi=150)
    return ax
