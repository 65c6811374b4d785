"""Moments at which a process is killed: lines of Python, in calls that are counted, since the machine's speed must not matter."""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NamedTuple


class Moment(NamedTuple):
    """Before a line of a function, written "module:name", is run in the n-th call; lines are numbered from that of the def."""

    function: str
    line: int
    call: int


def one_of_each_line(runs: dict[str, dict[str, list[int]]], seed: int) -> list[Moment]:
    """For each line one of the calls: the first and the last, which are unlike the others, as likely as any other."""
    chance = random.Random(seed)
    return [
        Moment(function, int(line), chance.choice((calls[0], calls[-1], chance.choice(calls))))
        for function, lines in runs.items()
        for line, calls in lines.items()
    ]


def run(do: Callable[[str], object], line: str, told: str) -> None:
    """Does a job in this process, and prints which lines it ran in which calls; `told` are the functions, and when to kill."""
    functions, kill = json.loads(told)
    runs = _watched(functions, kill and Moment(*kill))
    try:
        do(line)
    finally:
        print(json.dumps(runs, default=sorted))


def _watched(functions: Iterable[str], kill: Moment | None) -> dict[str, dict[int, set[int]]]:
    """The lines that this process runs from now on; it kills itself at the moment."""
    names = {inspect.unwrap(pkgutil.resolve_name(name)).__code__: name for name in functions}
    runs: dict[str, dict[int, set[int]]] = {name: {} for name in names.values()}
    n_calls = dict.fromkeys(runs, 0)
    lock = threading.Lock()

    def at_call(frame: FrameType, _: str, __: Any) -> Any:
        name = names.get(frame.f_code)
        if name is None:
            return None
        with lock:
            n_calls[name] += 1
            call = n_calls[name]

        def at_line(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                line = frame.f_lineno - frame.f_code.co_firstlineno
                if kill == (name, line, call):
                    os.kill(os.getpid(), signal.SIGKILL)
                with lock:
                    runs[name].setdefault(line, set()).add(call)
            return at_line

        return at_line

    threading.settrace(at_call)
    sys.settrace(at_call)
    return runs
