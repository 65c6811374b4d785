"""Packages that only some functions need: the extras of distboost, which docs/install.md lists."""

from __future__ import annotations

from distboost.errors import MissingPackageError


def install_command(extra: str) -> str:
    """Return the command that adds an extra where distboost is installed, from wherever it came."""
    return f"pip install 'distboost[{extra}]'"


def missing(what: str, package: str, extra: str) -> MissingPackageError:
    """Return the error of a function that needs a package."""
    return MissingPackageError(
        f"{what} needs {package}, which is not installed.", remedy=f"Run: {install_command(extra)}"
    )
