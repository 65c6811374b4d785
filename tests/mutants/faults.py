"""Faults: the fixed list, and what a fault does to a file."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIST = HERE / "faults.toml"

# The promises of the README's "What is guaranteed".
PROMISES = ("same model", "whole weights", "lossless bins", "checked files", "data only")


class DoesNotApplyError(Exception):
    """The fragment that a fault replaces is not in the file exactly once."""


@dataclass(frozen=True)
class Fault:
    """One change to one file.

    Attributes
    ----------
    name : str
        What the fault does.
    file : str
        Path from the top of the repository.
    old, new : str
        A fragment that is in the file exactly once, and what takes its place.
    tests : tuple of str
        Arguments of pytest: the tests that must fail.
    promise : str or None
        The promise that the fault breaks.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    promise: str | None = None

    def applied(self, source: str) -> str:
        """The source of the file with the fault; raises DoesNotApplyError if the fragment is not there once."""
        n = source.count(self.old)
        if n != 1:
            raise DoesNotApplyError(
                f"{self.name}: {self.file} has the fragment {self.old!r} {n} times, not once"
            )
        return source.replace(self.old, self.new)

    def apply(self, root: Path) -> None:
        """Makes the fault in the tree at `root`."""
        path = root / self.file
        path.write_bytes(self.applied(path.read_bytes().decode()).encode())


def listed(path: Path = LIST) -> list[Fault]:
    """The faults of the fixed list, in its order."""
    with open(path, "rb") as file:
        entries = tomllib.load(file)["fault"]
    return [Fault(**{**entry, "tests": tuple(shlex.split(entry["tests"]))}) for entry in entries]


def chosen(faults: list[Fault], names: list[str]) -> list[Fault]:
    """The faults whose name or file contains one of the names; all, if no name is given."""
    return [
        fault
        for fault in faults
        if not names or any(name in fault.name or name in fault.file for name in names)
    ]
