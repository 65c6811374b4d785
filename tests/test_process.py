"""What distboost changes in its process, and how a user keeps it from that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from distboost.process import EFFECTS
from tests.programs import Program

PROGRAM = """
import atexit, ctypes, os, signal, sys
called = []
atexit.register = lambda function, *arguments: called.append("exit")
os.register_at_fork = lambda **hooks: called.append("fork")
from threadpoolctl import threadpool_info
import numpy
from distboost import process

process._mallopt = process._malloc_trim = lambda *arguments: called.append("malloc")
process.return_large_arrays(True)
process.return_large_arrays(False)
process.trim_heap()
process.clean_up_on_sigterm(lambda: None)
if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
    called.append("sigterm")
process.leave_sigterm()
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
process.end_promptly.__wrapped__()
process.after_fork(lambda: None)
process.ThreadpoolController = lambda: called.append("blas") or type(
    "Limits", (), {"limit": lambda self, **limits: self, "restore_original_limits": lambda self: None}
)()
with process._SingleBlas()():
    pass
print(*sorted(set(called)))
"""


@pytest.mark.parametrize("left", [(), *((effect,) for effect in EFFECTS), ("malloc", "blas")], ids=str)
def test_effects_can_be_left_alone(left):
    process = Program(PROGRAM, environment={"DISTBOOST_LEAVE": ",".join(left)})
    found, errors = process.communicate(timeout=60)
    assert errors == ""
    assert set(found.split()) == {*EFFECTS} - {*left}


def test_other_names_are_refused():
    process = Program(
        "from distboost.process import trim_heap\ntrim_heap()", environment={"DISTBOOST_LEAVE": "mallok"}
    )
    _, errors = process.communicate(timeout=60)
    assert "DISTBOOST_LEAVE has 'mallok'. Set it to some of malloc, sigterm" in errors


def test_the_page_has_all_effects():
    page = (Path(__file__).parents[1] / "docs" / "process.md").read_text()
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == EFFECTS
