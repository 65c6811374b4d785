"""A worker whose cable is pulled: no connection is closed, nothing arrives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.trainings import TRAININGS, fit

ROOT = Path(__file__).parents[2]
APART = ["unshare", "--net", *(["--map-root-user"] if os.geteuid() else [])]
CABLE = "ip link add hub type bridge && ip link add left type veth peer name right"


@pytest.fixture
def namespaces():
    """Where this machine lets us make network namespaces."""
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(
                f"there is no {tool}: Debian has it in {'util-linux' if tool == 'unshare' else 'iproute2'}"
            )
    tried = subprocess.run(
        [*APART, "sh", "-c", CABLE], capture_output=True, text=True, timeout=10, check=False
    )
    if tried.returncode:
        pytest.skip(f"no network namespaces here: {tried.stderr.strip()}")


@pytest.mark.timeout(110)
def test_a_worker_is_cut_off(namespaces, data, tmp_path):
    """For a while, after which it takes part again, and for good."""
    expected = fit(TRAININGS["long"], data, None, tmp_path / "expected")
    program = [*APART, sys.executable, "-m", "tests.faults.cut_off", str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=100, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model").read_bytes() == expected
    assert (tmp_path / "log").read_text().count("no response for 3 s") == 2
