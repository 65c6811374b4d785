"""What is done to the product on a worker while it runs there: calls are counted, and in one of them something happens.

All workers count together, so that it is known which call is the seventh, whoever makes it.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def _always(call: tuple) -> bool:
    return True


@dataclass(frozen=True)
class Stage:
    """A function of the product.

    Attributes
    ----------
    place : str
        "module:name" or "module:Class.name".
    is_meant : callable
        Whether a call with some arguments is meant.
    """

    place: str
    is_meant: Callable[[tuple], bool] = _always

    def found(self) -> tuple[Any, str, Callable]:
        """Where the function is kept, its name there, and itself."""
        module, path = self.place.split(":")
        owner: Any = importlib.import_module(module)
        *classes, name = path.split(".")
        for each in classes:
            owner = getattr(owner, each)
        return owner, name, getattr(owner, name)


@dataclass(frozen=True)
class Trap:
    """The call in which a worker is struck.

    Attributes
    ----------
    number : int
        Of the call, from 1; 0: every one.
    after : bool
        When its work is done, but not answered; or before it is begun.
    what : int, Exception or callable
        The signal that strikes a process, what is raised, or what is called on the worker.
    whom : int or None
        The process; None: the worker's own.
    """

    number: int
    after: bool = False
    what: int | Exception | Callable[[], None] = signal.SIGKILL
    whom: int | None = None


_undisturbed: list[tuple[Any, str, Callable]] = []


def set_up(folder: str, stages: Mapping[str, Stage], traps: Mapping[str, Trap | Collection[Trap]]) -> None:
    """Counts the calls of the stages, and lays traps in some: one, or some of different calls."""
    take_down()
    for name, stage in stages.items():
        owner, attribute, function = stage.found()
        _undisturbed.append((owner, attribute, function))
        laid = traps.get(name, ())
        laid = (laid,) if isinstance(laid, Trap) else laid
        setattr(owner, attribute, _watched(function, stage, Path(folder) / name, laid))


def take_down() -> None:
    while _undisturbed:
        setattr(*_undisturbed.pop())


def _watched(function: Callable, stage: Stage, tally: Path, laid: Collection[Trap]) -> Callable:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        if not stage.is_meant(arguments):
            return function(*arguments, **options)
        number = _count(tally)
        struck = [trap for trap in laid if trap.number in (0, number)]
        for trap in struck:
            if not trap.after:
                _strike(trap, tally)
        answer = function(*arguments, **options)
        for trap in struck:
            if trap.after:
                _strike(trap, tally)
        return answer

    return call


def _count(tally: Path) -> int:
    """A number for this call that no other has: where its mark lies in a file that all append to."""
    file = os.open(tally, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, b".")
        return os.lseek(file, 0, os.SEEK_CUR)
    finally:
        os.close(file)


def _strike(trap: Trap, tally: Path) -> None:
    """Leaves a note of who is struck."""
    with open(tally.with_suffix(".struck"), "a") as note:
        note.write(f"{os.getpid()}\n")
        note.flush()
        os.fsync(note.fileno())
    if isinstance(trap.what, Exception):
        raise trap.what
    if callable(trap.what):
        trap.what()
        return
    os.kill(trap.whom or os.getpid(), trap.what)


def counted(folder: Path, name: str) -> int:
    """The calls so far."""
    tally = folder / name
    return tally.stat().st_size if tally.exists() else 0


def struck(folder: Path, name: str) -> list[int]:
    """The processes that a trap in this stage has struck."""
    return [int(line) for line in (folder / name).with_suffix(".struck").read_text().split()]
