"""Processes that this one starts: each has a log, is waited for, and ends with all that it started."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import psutil

from distboost.errors import ClusterError

# Seconds.
STOP_DEADLINE = 10.0
INTERVAL = 0.1  # between two looks

Found = TypeVar("Found")


class Process(NamedTuple):
    """A process that runs, and the file that it logs to."""

    running: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise ClusterError if it has ended."""
        code = self.running.poll()
        if code is not None:
            raise ClusterError(f"{self.log.stem} ended with code {code}. {self.last_words()}")

    def last_words(self) -> str:
        """Return the end of its log, for messages."""
        lines = self.log.read_text(errors="replace").splitlines()[-10:]
        return "\n".join(["The end of its log:", *lines])


@contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str], stop_deadline: float = STOP_DEADLINE
) -> Iterator[Process]:
    """Run a command, which logs to a file; end it with the processes that it has started."""
    with log.open("wb") as output:
        # Its own session: Ctrl-C is for us, and we end what we started.
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=dict(environment),
        )
    try:
        yield Process(started, log)
    finally:
        _end(started, stop_deadline)


def _end(process: subprocess.Popen[bytes], deadline: float) -> None:
    """Ask the process to end, then end whatever of it is left."""
    family = []
    with suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(deadline)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()  # psutil knows a process by its pid and start time: never another one's
    process.kill()
    process.wait()


def wait_for(
    look: Callable[[], Found | None],
    processes: Sequence[Process],
    deadline: float,
    late: Callable[[], str],
    interval: float = INTERVAL,
) -> Found:
    """Look again and again until there is something, and return it.

    Raises
    ------
    ClusterError
        If one of the processes ends; after `deadline` seconds, with the message that `late` returns.
    """
    until = time.monotonic() + deadline
    while (found := look()) is None:
        for process in processes:
            process.check()
        if time.monotonic() > until:
            raise ClusterError(late())
        time.sleep(interval)
    return found
