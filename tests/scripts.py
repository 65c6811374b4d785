"""Scripts that run in this process, as importing what they need takes longer than most of them."""

from __future__ import annotations

import io
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

EXAMPLES = Path(__file__).parents[1] / "examples"


class Done(NamedTuple):
    """How a script ended."""

    returncode: int
    stdout: str
    stderr: str


def run_example(name: str, *arguments: str) -> Done:
    """Runs examples/`name`.py as a main program, with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with mock.patch.object(sys, "argv", [name, *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        except SystemExit as ended:
            code = ended.code
    if isinstance(code, str):  # Python prints it
        return Done(1, out.getvalue(), err.getvalue() + code)
    return Done(int(code or 0), out.getvalue(), err.getvalue())
