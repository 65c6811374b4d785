"""The importance of features as bars."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.inspecting import check_fitted, names_of, trees_of
from distboost.plot.axes import BLUE, axes_of, shortened, tidy


def importance(model: BoostingClassifier, *, most: int = 20, ax: Any = None) -> Any:
    """Draw the importance of the features: the share of each in the total gain of all splits.

    Parameters
    ----------
    model : fitted estimator
        Its weak learners are trees.
    most : int, default=20
        The largest number of features to draw, the most important ones.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    distboost.errors.DataError
        If no tree splits, or if the weak learners are similarities.
    distboost.errors.MissingPackageError
        If matplotlib is not installed.
    """
    check_fitted(model)
    features, gains = trees_of(model, "plot.importance").gains()
    if not gains.sum() > 0:
        raise DataError("no tree of the model has a split that gains anything, so no feature is important.")
    if not (isinstance(most, Integral) and most >= 1):
        raise DataError.expected("most", most, remedy="Pass the number of features to draw, 1 or more.")
    shares = gains / gains.sum()
    order = np.lexsort((features, -shares))[:most]
    names = names_of(model)
    ax = axes_of(ax, 7.0, 1.2 + 0.28 * len(order))
    bars = ax.barh(np.arange(len(order)), shares[order], height=0.7, color=BLUE)
    ax.bar_label(
        bars,
        ["< 0.1%" if share < 0.001 else f"{share:.1%}" for share in shares[order]],
        padding=4,
        fontsize=9,
    )
    ax.set_yticks(np.arange(len(order)), [shortened(names[d]) for d in features[order]])
    ax.invert_yaxis()
    ax.margins(x=0.1, y=0.02)
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.set_xlabel("share of the total gain")
    left_out = f", {len(order)} of {model.n_features_in_}" if len(order) < model.n_features_in_ else ""
    ax.set_title(f"Importance of features{left_out}")
    tidy(ax, "x")
    ax.tick_params(axis="y", length=0)
    return ax
