"""Runs tests in copies of the repository, each with one fault."""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.mutants.faults import Fault

# What no test reads. Folders named __pycache__ are copied: the machine code of kernels lies there, and is used where neither
# the kernel's file nor any that it may call is changed.
LEFT_OUT = (
    ".git", ".venv", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", "*.egg-info", "build", "dist", "demo-data",
)  # fmt: skip

CAUGHT, SURVIVED, OUT_OF_TIME, NOT_JUDGED = "caught", "survived", "out of time", "not judged"
PASSED, FAILED, INTERRUPTED = 0, 1, 2  # exit codes of pytest


class Tests(NamedTuple):
    """How a run of pytest ended."""

    code: int | None  # None: it was ended at the limit
    seconds: float
    output: str

    @property
    def failed(self) -> str:
        """The first test that failed, or what went wrong."""
        found = re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", self.output, re.M)
        last = self.output.strip().rpartition("\n")[2]
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

    def __init__(self, root: Path, folder: Path, limit: float = 600.0):
        self.root, self.folder, self.limit = root, folder, limit
        self.base = folder / "base"
        self._running: set[subprocess.Popen] = set()
        shutil.copytree(root, self.base, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        # Without a fault, for tests that have failed with one: what they write there must not be copied.
        self.control = folder / "control"
        shutil.copytree(self.base, self.control, symlinks=True)

    def judged(self, faults: list[Fault], jobs: int, seconds: float = math.inf) -> Iterator[Verdict]:
        """The verdicts, as they come; after so many seconds, no fault is begun."""
        end = time.monotonic() + seconds

        def judge(number: int, fault: Fault) -> Verdict | None:
            return self.verdict(number, fault) if time.monotonic() < end else None

        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(judge, number, fault) for number, fault in enumerate(faults)]
            try:
                for future in as_completed(futures):
                    verdict = future.result()
                    if verdict is not None:
                        yield verdict
            finally:
                self._end_all(pool)

    def _end_all(self, pool: ThreadPoolExecutor) -> None:
        """Ends what runs: after an interrupt, nobody waits for it."""
        pool.shutdown(wait=False, cancel_futures=True)
        for process in [*self._running]:
            _end(process)

    def verdict(self, number: int, fault: Fault) -> Verdict:
        """Makes one fault in a copy, and runs its tests there."""
        copy = self.folder / f"{number}"
        shutil.copytree(self.base, copy, symlinks=True)
        try:
            fault.apply(copy)
            done = self.tests(copy, ("-x", *fault.tests))
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        if done.code is None:
            return Verdict(fault, OUT_OF_TIME, done.seconds, f"no verdict within {self.limit:.0f} s")
        # INTERRUPTED: the tests cannot even be collected.
        if done.code in (FAILED, INTERRUPTED) or done.code < 0:
            if "::" in done.failed and self.tests(self.control, (done.failed,)).code != PASSED:
                return Verdict(fault, NOT_JUDGED, done.seconds, f"fails without the fault: {done.failed}")
            return Verdict(fault, CAUGHT, done.seconds, done.failed)
        state = SURVIVED if done.code == PASSED else NOT_JUDGED
        return Verdict(fault, state, done.seconds, done.failed)

    def tests(self, copy: Path, arguments: Iterable[str], limit: float | None = None) -> Tests:
        """Runs pytest in a copy."""
        scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=copy))
        environment = {**os.environ, "PYTHONPATH": str(copy), "TMPDIR": str(scratch), "COLUMNS": "200"}
        # Python would take a faulty file that is as long and as old as the right one for the same.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        environment.pop("NUMBA_CACHE_DIR", None)  # beside the sources, each copy has a cache of its own
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not soak", "--tb=line", *arguments
        ]  # fmt: skip
        started = time.monotonic()
        process = subprocess.Popen(
            command, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
        self._running.add(process)
        code: int | None
        try:
            output, _ = process.communicate(timeout=self.limit if limit is None else limit)
            code = process.returncode
        except subprocess.TimeoutExpired:
            _end(process)
            output, code = process.communicate()[0], None
        finally:
            _end(process)
            self._running.discard(process)
            shutil.rmtree(scratch, ignore_errors=True)  # a copy must not have the sockets that tests leave
        return Tests(code, time.monotonic() - started, output)


def _end(process: subprocess.Popen) -> None:
    """Ends whatever is left of a run: tests start processes of their own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
