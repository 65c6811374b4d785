"""Jobs that run in processes of their own, forked as importing takes longest, and may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

# Each line tells of a job, which `do` does.
_SERVE = """
import os, sys
for line in sys.stdin:
    process = os.fork()
    if not process:
        os.dup2(2, 1)
        do(line)
        os._exit(0)
    print(process, flush=True)
    sys.stdin.readline()  # until then nobody else can have its number
    print(os.waitpid(process, 0)[1], flush=True)
"""


class Forks:
    """Runs jobs one after another.

    Parameters
    ----------
    program : str
        Python that imports what jobs need, and defines do(line).
    """

    def __init__(self, program: str):
        self._server = subprocess.Popen(
            [sys.executable, "-c", program + _SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, line: str, kill_after: float | None = None) -> bool:
        """Whether the job came to its end; it may be killed after so many seconds, or kill itself."""
        self._tell(line)
        process = int(self._server.stdout.readline())
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(process, signal.SIGKILL)
        self._tell("")
        status = int(self._server.stdout.readline())
        assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL, status
        return status == 0

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait(10)
        self._server.stdout.close()

    def _tell(self, line: str) -> None:
        self._server.stdin.write(line + "\n")
        self._server.stdin.flush()
