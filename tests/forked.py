"""Jobs in processes of their own, which may be killed."""

from __future__ import annotations

import json
import signal
import subprocess

from tests.moments import Moment, one_of_each_line
from tests.programs import Program

_DEADLINE = 60.0


class Forks:
    """Runs jobs one after another.

    Parameters
    ----------
    program : str
        Python that imports what jobs need, and defines do(line).
    """

    def __init__(self, program: str):
        self._program = f"{program}\nimport sys\ndo(sys.argv[1])"
        self._watched = f"{program}\nimport sys, tests.moments\ntests.moments.run(do, *sys.argv[1:])"

    def run(self, line: str, kill: Moment | None = None) -> bool:
        """Whether the job came to its end; it may be killed at a moment, or kill itself."""
        told = () if kill is None else (json.dumps([[kill.function], kill]),)
        process = Program(self._watched if told else self._program, line, *told, stdout=subprocess.DEVNULL)
        _, errors = process.communicate(timeout=_DEADLINE)
        assert process.returncode in (0, -signal.SIGKILL), errors
        return process.returncode == 0

    def moments(self, line: str, functions: list[str], seed: int) -> list[Moment]:
        """For each line of these functions that the job runs, one of the calls in which it does, chosen by the seed."""
        process = Program(self._watched, line, json.dumps([functions, None]))
        said, errors = process.communicate(timeout=_DEADLINE)
        assert process.returncode == 0, errors
        return one_of_each_line(json.loads(said.splitlines()[-1]), seed)
