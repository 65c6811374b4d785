"""A worker whose cable is pulled: no connection is closed, nothing arrives."""

from __future__ import annotations

import os
import re
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


@pytest.fixture
def run(namespaces, tmp_path):
    """run(*how): what the program of cut_off.py, called so, leaves: the model's file and the log."""

    def files(*how: object) -> tuple[bytes, str]:
        kind, *others = map(str, how)
        program = [*APART, sys.executable, "-m", "tests.faults.cut_off", kind, str(tmp_path), *others]
        done = subprocess.run(program, capture_output=True, text=True, timeout=200, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        return (tmp_path / "model").read_bytes(), (tmp_path / "log").read_text()

    return files


@pytest.mark.timeout(110)
def test_a_worker_is_cut_off(run, data, tmp_path):
    """For a while, after which it takes part again, and for good."""
    expected = fit(TRAININGS["long"], data, None, tmp_path / "expected")
    content, log = run("all")
    assert content == expected
    assert log.count("no response for 3 s") == 2


CUTS = [
    (n, how, question, fan_out)
    for n in (2, 3)
    for how in ("silent", "refused")
    for question in (
        1,
        2,
        7,
        8,
        9,
    )  # of the first tree or of one amid others: about its root or a later level
    for fan_out in (8, 1)
    if fan_out == 8 or (n == 3 and question in (1, 8))
]
CUTS = [pytest.param(*case, marks=[pytest.mark.soak] * (case != (3, "silent", 8, 8))) for case in CUTS]


@pytest.mark.timeout(220)
@pytest.mark.parametrize(("n_workers", "how", "question", "fan_out"), CUTS)
def test_two_workers_are_cut_off_from_each_other(n_workers, how, question, fan_out, run, data, tmp_path):
    """Without a sign, or so that each attempt is refused: one counts as lost for a tree, then the coordinator adds histograms."""
    expected = fit(TRAININGS["levels"], data, None, tmp_path / "expected")
    content, log = run("each other", n_workers, how, question, fan_out)
    assert content == expected
    stage = "update" if question == 7 else "histogram"  # the root of the next tree goes with the update
    found = re.findall(r"is lost at '(\w+)' of round (\d+) \((.*)\)", log)
    if "no response" not in log:  # as on a machine that is busy
        assert found[0] == (stage, str((question - 1) // 3 + 1), "another worker cannot reach it")
    assert log.count("their histograms go through this process") == 1


@pytest.mark.soak
@pytest.mark.timeout(220)
@pytest.mark.parametrize("how", ["silent", "refused"])
def test_a_relay_cannot_reach_the_next_worker(how, run, data, tmp_path):
    """Each time, the question is asked again directly; after a few, relays are not used any more."""
    expected = fit(TRAININGS["levels"], data, None, tmp_path / "expected")
    content, log = run("a relay", how)
    assert content == expected
    assert log.count("a relayed question is asked again directly") == 3
    assert log.count("from now on, this process asks each of them itself") == 1
