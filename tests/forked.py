"""Jobs in processes of their own, which may be killed."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress

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

    def run(self, line: str, kill_after: float | None = None) -> bool:
        """Whether the job came to its end; it may be killed after so many seconds, or kill itself."""
        process = Program(self._program, line, stdout=subprocess.DEVNULL)
        if kill_after is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(kill_after)
            process.kill()
        _, errors = process.communicate(timeout=_DEADLINE)
        assert process.returncode in (0, -signal.SIGKILL), errors
        return process.returncode == 0
