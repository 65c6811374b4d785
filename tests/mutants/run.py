"""Runs tests in copies of the repository, each with one fault."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from tests.mutants.faults import HERE, Fault

# What no test reads. Folders named __pycache__ are copied: the machine code of kernels lies there, and is used where neither
# the kernel's file nor any that it may call is changed.
LEFT_OUT = (
    ".git", ".venv", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", "*.egg-info", "build", "dist", "demo-data",
)  # fmt: skip

CAUGHT, SURVIVED, OUT_OF_TIME, NOT_JUDGED = "caught", "survived", "out of time", "not judged"
OPTIONS = (
    "-v", "-p", "no:cacheprovider", "-m", "not soak", "--tb=line", "-W", "ignore::pytest.PytestAssertRewriteWarning"
)  # fmt: skip
PASSED = 0  # exit code of pytest


class Tests(NamedTuple):
    """How a run of pytest ended."""

    code: int | None  # None: it was ended at the limit
    seconds: float
    output: str

    @property
    def failed(self) -> str:
        """The first test that failed, or what went wrong."""
        crash = re.search(r"^(\S.*::.*?) *Fatal Python error", self.output, re.M)
        found = crash or re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", self.output, re.M)
        last = self.output.strip().rpartition("\n")[2].strip("= ")
        return found[1] if found else last


class Verdict(NamedTuple):
    """What came of a fault."""

    fault: Fault
    state: str
    seconds: float = 0.0
    by: str = ""  # the test that caught it, or why there is no verdict


class Mutants:
    """Copies of a repository with faults.

    Parameters
    ----------
    root : Path
        The repository.
    folder : Path
        Where the copies are made.
    limit : float
        Seconds that the tests of one fault may take.
    """

    def __init__(self, root: Path, folder: Path, limit: float = 60.0):
        self.root, self.folder, self.limit = root, folder, limit
        self.base = folder / "base"
        self._own = threading.local()  # each job's process that runs pytest
        self._processes: list[subprocess.Popen] = []
        self._passed: set[tuple[str, ...]] = set()  # without a fault
        shutil.copytree(root, self.base, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)

    def judged(self, faults: list[Fault], jobs: int, seconds: float = math.inf) -> Iterator[Verdict]:
        """The verdicts, as they come; after so many seconds, no fault is begun."""
        end = time.monotonic() + seconds

        def judge(number: int, fault: Fault) -> Verdict | None:
            return self._verdict(number, fault) if time.monotonic() < end else None

        with ThreadPoolExecutor(jobs, initializer=self._start) as pool:
            futures = [pool.submit(judge, number, fault) for number, fault in enumerate(faults)]
            try:
                for future in as_completed(futures):
                    verdict = future.result()
                    if verdict is not None:
                        yield verdict
            finally:  # after an interrupt, nobody waits for what runs
                pool.shutdown(wait=False, cancel_futures=True)
                for process in self._processes:
                    process.terminate()
                    process.communicate()

    def _start(self) -> None:
        environment = {**os.environ, "COLUMNS": "200"}
        # Python would take a faulty file that is as long and as old as the right one for the same.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        environment.pop("NUMBA_CACHE_DIR", None)  # beside the sources, each copy has a cache of its own
        self._own.process = subprocess.Popen(
            [sys.executable, HERE / "forks.py"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        self._processes.append(self._own.process)

    def _verdict(self, number: int, fault: Fault) -> Verdict:
        """Makes one fault, and runs its tests."""
        done = self._tests(f"{number}", ("-x", *fault.tests), fault)
        if done.code is None:
            return Verdict(
                fault, OUT_OF_TIME, done.seconds, f"no test failed within {self.limit:g} s: {done.failed}"
            )
        if done.code == PASSED:
            return Verdict(fault, SURVIVED, done.seconds, done.failed)
        # A fault may be such that the tests cannot even be collected.
        again = (done.failed,) if "::" in done.failed else ("--collect-only", *fault.tests)
        if again not in self._passed:
            if self._tests(f"{number}-control", again).code != PASSED:
                return Verdict(fault, NOT_JUDGED, done.seconds, f"without the fault, too: {done.failed}")
            self._passed.add(again)
        return Verdict(fault, CAUGHT, done.seconds, done.failed)

    def _tests(self, name: str, arguments: Iterable[str], fault: Fault | None = None) -> Tests:
        """Runs pytest in a copy. Files that are not changed are links: whatever writes to them (caches) replaces them."""
        copy = self.folder / name
        shutil.copytree(self.base, copy, symlinks=True, copy_function=os.link)
        try:
            if fault is not None:
                fault.apply(copy)
            request = json.dumps([str(copy), self.limit, [*OPTIONS, *arguments]])
            print(request, file=self._own.process.stdin, flush=True)
            return Tests(*json.loads(self._own.process.stdout.readline()))
        finally:
            shutil.rmtree(copy, ignore_errors=True)
