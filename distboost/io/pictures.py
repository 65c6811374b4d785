"""What every picture checks before it is drawn."""

from __future__ import annotations

from typing import Any

from distboost.errors import ArgumentError, MissingPackageError
from distboost.io.packages import missing


def no_matplotlib() -> MissingPackageError:
    """Return the error of all that draws, without matplotlib."""
    return missing("a picture", "matplotlib", "plots")


def check_axes(ax: Any) -> None:
    """Raise ArgumentError unless `ax` looks like axes of matplotlib."""
    if not hasattr(ax, "set_axis_off"):
        raise ArgumentError.expected("ax", ax, "axes of matplotlib, such as plt.subplots()[1], or None")
