"""Faults, and the functions that must not have any."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIST = HERE / "functions.toml"

# The promises of "What is guaranteed" (docs/guarantees.md).
PROMISES = ("same model", "whole weights", "lossless bins", "checked files", "data only")


@dataclass(frozen=True)
class Fault:
    """A file with a fault.

    Attributes
    ----------
    name : str
        Where it is, and what was changed.
    file : str
        Path from the top of the repository.
    old, new : str
        The content of the file.
    tests : tuple of str
        Arguments of pytest: the tests that must fail.
    promise : str or None
        The promise that the fault may break.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    promise: str | None = None

    def apply(self, root: Path) -> None:
        """Makes the fault in the tree at `root`, whose files may be links."""
        (root / self.file).unlink()
        (root / self.file).write_text(self.new)


@dataclass(frozen=True)
class Function:
    """A function of the list.

    Attributes
    ----------
    file : str
        Path from the top of the repository.
    name : str
        With the names of the classes and functions around it, such as "Tally.finish".
    tests : tuple of str
        Arguments of pytest: the tests that must notice a change of it.
    promise : str or None
        The promise that rests on it.
    """

    file: str
    name: str
    tests: tuple[str, ...]
    promise: str | None = None


def listed(path: Path = LIST) -> list[Function]:
    """The functions of the list, in its order."""
    with open(path, "rb") as file:
        entries = tomllib.load(file)["function"]
    return [Function(**{**entry, "tests": tuple(shlex.split(entry["tests"]))}) for entry in entries]
