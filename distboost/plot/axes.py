"""What the pictures share."""

from __future__ import annotations

from typing import Any

from distboost.io.packages import check_axes, no_matplotlib

GREY = "0.45"
BLUE = "#3b6ea5"
LONGEST_NAME = 40


def pyplot() -> Any:
    """Return matplotlib.pyplot; raise MissingPackageError if it is not installed."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise no_matplotlib() from error
    return pyplot


def axes_of(ax: Any, width: float, height: float) -> Any:
    """Return the axes; if there are none, those of a new figure of this size in inches."""
    plt = pyplot()
    if ax is None:
        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    check_axes(ax)
    return ax


def tidy(ax: Any, grid: str) -> None:
    """Leave out what carries no data, and draw light lines across one axis, "x" or "y"."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(axis=grid, color="0.9", linewidth=0.8)


def shortened(name: Any) -> str:
    """Return a name that is not too long for a picture, with dollar signs that matplotlib draws rather than reads as formulas.

    >>> shortened("a" * 50) == "a" * 39 + "…"
    True
    """
    text = str(name)
    short = text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"
    return short.replace("$", r"\$")
