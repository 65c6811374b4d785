"""Packages that only some functions need, the extras of distboost, which docs/install.md lists; what every picture checks."""

from __future__ import annotations

from typing import Any

from distboost.errors import ArgumentError, MissingPackageError


def install_command(extra: str) -> str:
    """Return the command that adds an extra where distboost is installed, from wherever it came."""
    return f"pip install 'distboost[{extra}]'"


def missing(what: str, package: str, extra: str) -> MissingPackageError:
    """Return the error of a function that needs a package."""
    return MissingPackageError(
        f"{what} needs {package}, which is not installed.", remedy=f"Run: {install_command(extra)}"
    )


def no_matplotlib() -> MissingPackageError:
    """Return the error of all that draws, without matplotlib."""
    return missing("a picture", "matplotlib", "plots")


def check_axes(ax: Any) -> None:
    """Raise ArgumentError unless `ax` looks like axes of matplotlib."""
    if not hasattr(ax, "set_axis_off"):
        raise ArgumentError.expected("ax", ax, "axes of matplotlib, such as plt.subplots()[1], or None")
