"""One fit of one library in a process of its own, so that its memory can be told; in turns with others, if wanted.

The process reads a line of JSON from stdin, and writes lines of JSON: ``{"ready": bytes}`` when data and libraries are
loaded, with the memory taken so far; ``{"seconds": [...]}`` at every pause, after which it waits for a line on stdin; and at
the end the peak of the memory, the seconds after each round and, if they are asked for, the test accuracies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.datasets import Split

ROOT = Path(__file__).parents[2]
WARM_CLASSES = 4


class Racer:
    """The process, seen from outside."""

    def __init__(self, process: subprocess.Popen):
        self.process = process

    def read(self) -> dict[str, Any]:
        """The next thing that it says."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"A fit ended with status {self.process.wait()}.")
        return json.loads(line)

    def go(self) -> dict[str, Any]:
        """Lets it continue until its next pause, or its end."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.read()

    def end(self) -> None:
        """Waits until it has ended, after its last fit."""
        self.process.wait()


@contextmanager
def racer(**job: Any) -> Iterator[Racer]:
    """The process of a job of `main`, loaded and waiting for `go`; it is ended with the context."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.racer"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    try:
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        found = Racer(process)
        yield found
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def save(split: Split, folder: Path) -> str:
    """Where `main` finds the data."""
    for name, array in split._asdict().items():
        np.save(folder / f"{name}.npy", array)
    return str(folder)


def load(folder: str) -> Split:
    return Split(*(np.load(Path(folder) / f"{name}.npy") for name in Split._fields))


def main() -> None:
    """A job: contender, n_threads, setting, data, n_rounds, accuracies; pause, the rounds between two pauses, or repeats."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print

    def say(**values: Any) -> None:
        out.write(json.dumps(values) + "\n")
        out.flush()

    job = json.loads(sys.stdin.readline())
    from tests.benchmarks.contenders import contender
    from tests.benchmarks.memory import peak_resident, resident

    def pause(seconds: list[float]) -> None:
        if len(seconds) % job["pause"] == 0:
            say(seconds=seconds)
            sys.stdin.readline()

    warnings.filterwarnings("ignore")
    fitted = contender(job["contender"], job["n_threads"], **job["setting"])
    split, n_rounds = load(job["data"]), job["n_rounds"]
    X = np.random.default_rng(0).normal(size=(100 * WARM_CLASSES, 4)).astype(split.X.dtype)
    fitted.fit(X, np.arange(len(X)) % WARM_CLASSES, 2)  # loads libraries, compiles
    fitted.pause = pause if job.get("pause") else None
    before = resident()
    say(ready=before)
    for number in range(job.get("repeats", 1)):
        sys.stdin.readline()
        seconds = fitted.fit(split.X, split.y, n_rounds).tolist()
        peak, found = peak_resident(), None
        if job["accuracies"] and number == 0:
            found = fitted.accuracies(split.X_test, split.y_test, n_rounds).tolist()
        say(before=before, peak=peak, seconds=seconds, accuracies=found)


if __name__ == "__main__":
    main()
