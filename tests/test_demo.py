"""The demonstration, short."""

import re
import subprocess
import sys
from pathlib import Path


def test_demo(tmp_path):
    command = [sys.executable, "-m", "examples.demo", "--rounds", "3", "--folder", str(tmp_path)]
    # Twice: arrays and models of an earlier run are in the way of nobody. A cold compiler needs most of the first.
    for _ in range(2):
        done = subprocess.run(
            command,
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    digests = re.findall(r"sha256 ([0-9a-f]{64})", done.stdout)
    assert len(digests) == 2
    assert digests[0] == digests[1]
    assert float(re.search(r"test accuracy +([\d.]+)%", done.stdout)[1]) > 60
