"""Trainings in fresh processes, whose memory and times are measured from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from statistics import median
from typing import IO, Any, NamedTuple

from tests.benchmarks.memory import MemoryGroup, MemoryWatch, memory_group

ROOT = Path(__file__).parents[2]
STACK_KIB = 2048


class Cap(NamedTuple):
    """A hard limit in bytes: of a new control group within `group`, or else of each process's address space for data."""

    n_bytes: int
    group: Path | None = None

    def __str__(self) -> str:
        return "cgroup" if self.group else "RLIMIT_DATA"


@dataclass
class Outcome:
    """What a training run marked, the memory it took, and how it ended."""

    marks: list[dict]
    memory: MemoryWatch
    status: int  # of the process: negative for a signal
    errors: str  # the end of what it wrote to stderr
    group_peak: int | None = None
    group_kills: int = 0
    timed_out: bool = False
    rounds: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.rounds = [mark["time"] for mark in self.all("round")]

    @property
    def failure(self) -> str:
        """Why there is no model; empty if there is one."""
        if self.status == 0:
            return ""
        if self.timed_out:
            return "killed: it did not end in time"
        if self.group_kills:
            return "killed at the limit"
        if self.status < 0:
            return f"killed by {signal.Signals(-self.status).name}"
        return self.errors.strip().splitlines()[-1] if self.errors.strip() else f"exit status {self.status}"

    @property
    def pid(self) -> int:
        return self.memory.pid

    def all(self, name: str) -> list[dict]:
        """The marks of this name."""
        return [mark for mark in self.marks if mark["mark"] == name]

    def first(self, name: str) -> dict:
        """The first mark of this name; {} if there is none."""
        return next(iter(self.all(name)), {})

    def time(self, name: str) -> float:
        """When it was first marked; inf if never."""
        return self.first(name).get("time", float("inf"))

    def per_round(self) -> float:
        """The median time of a round; NaN before the second has ended. The first one's beginning cannot be seen."""
        steps = [b - a for a, b in zip(self.rounds, self.rounds[1:], strict=False)]
        return median(steps) if steps else float("nan")

    def ingest(self) -> float:
        """Seconds before the first round."""
        return self.rounds[0] - self.time("fit") - self.per_round() if self.rounds else float("nan")

    def total(self) -> float:
        """Seconds of the whole fit; NaN if it did not end."""
        return self.time("end") - self.time("fit") if self.first("end") else float("nan")

    def peak(self, kind: str = "rss", above: str | None = None) -> int:
        """The peak of the fit, less what was taken when `above` was marked."""
        peak = self.memory.peak(kind, self.time("fit"), self.time("end"))
        return peak - (self.level(kind, above) if above else 0)

    def level(self, kind: str, name: str) -> int:
        """The memory at the last reading before the mark."""
        readings = [r for r in self.memory.readings if r.time <= self.time(name)]
        return getattr(readings[-1], kind) if readings else 0

    def promised(self) -> int | None:
        """What the plan said that the process with the most rows takes; None before it is known."""
        return self.first("plan").get("n_bytes")

    def rows_in_memory(self) -> str:
        plan = self.first("plan")
        if not plan:
            return "unknown"
        return f"{100 * plan['resident'] / (plan['resident'] + plan['streamed']):.0f} %"

    def as_json(self) -> dict[str, Any]:
        kinds = ("rss", "pss", "anonymous", "data")
        return {
            "failure": self.failure,
            "seconds": {
                "ingest": _known(self.ingest()),
                "round": _known(self.per_round()),
                "fit": _known(self.total()),
            },
            "peak": {kind: self.peak(kind) for kind in kinds},
            "idle": {kind: self.level(kind, "idle") for kind in kinds},
            "warm": {kind: self.level(kind, "warm") for kind in kinds},
            "process_peaks": self.memory.process_peaks(),
            "group_peak": self.group_peak,
            "timeline": self.memory.timeline(),
            "marks": self.marks,
        }


def _known(number: float) -> float | None:
    """JSON has no NaN."""
    return number if isfinite(number) else None


def run(job: dict, cap: Cap | None = None, timeout: float = 3600.0) -> Outcome:
    """Runs a job of `trainee` to its end, or to its violent one."""
    with ExitStack() as stack:
        errors = stack.enter_context(tempfile.TemporaryFile("w+"))
        group = stack.enter_context(
            memory_group(cap.group, cap.n_bytes) if cap and cap.group else nullcontext()
        )
        scratch = stack.enter_context(tempfile.TemporaryDirectory(dir=job.get("folder")))
        process = stack.enter_context(_process(_limits(cap, group), {**job, "scratch": scratch}, errors))
        memory = stack.enter_context(MemoryWatch(process.pid))
        timer = threading.Timer(timeout, process.kill)
        timer.start()
        marks = list(_marks(process.stdout))
        status = process.wait()
        timed_out = not timer.is_alive()
        timer.cancel()
        memory.end_survivors()
        errors.seek(0)
        outcome = Outcome(marks, memory, status, errors.read()[-3000:], timed_out=timed_out)
        if group is not None:
            outcome.group_peak, outcome.group_kills = group.peak(), group.kills()
    return outcome


def _limits(cap: Cap | None, group: MemoryGroup | None) -> list[str]:
    """What goes before a command: a shell that limits itself and then becomes the command."""
    if group is not None:
        return ["sh", "-c", 'echo 0 > "$0" && exec "$@"', str(group.members)]
    if cap is not None:
        # Address space of stacks counts as data, used or not: 8 MiB for each of a few dozen threads would be much of it.
        return ["sh", "-c", f'ulimit -s {STACK_KIB} && ulimit -d "$0" && exec "$@"', str(cap.n_bytes // 1024)]
    return []


@contextmanager
def _process(limits: list[str], job: dict, errors: IO[str]) -> Iterator[subprocess.Popen]:
    """The trainee, ended with all that it started."""
    process = subprocess.Popen(
        [*limits, sys.executable, "-m", "tests.benchmarks.trainee"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    try:
        process.stdin.write(json.dumps(job))
        process.stdin.close()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _marks(lines: IO[str]) -> Iterator[dict]:
    """The marks; a line that was cut off by the process's end is none."""
    for line in lines:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return
