"""The demonstration, short."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import zarr

from examples import demo
from tests.scripts import run_example


def run(*arguments: str) -> subprocess.CompletedProcess:
    """Runs Python in the project's folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_demo(tmp_path):
    """Arrays and models of an earlier run are in the way of nobody."""
    group = demo.write_arrays(tmp_path)
    zarr.create_array(f"{group}/predicted", data=np.arange(3))
    for name in ("cluster", "alone"):
        (tmp_path / f"{name}.dboost").write_text("of an earlier run")
    done = run_example("demo", "--rounds", "3", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    digests = re.findall(r"sha256 ([0-9a-f]{64})", done.stdout)
    assert len(digests) == 2
    assert digests[0] == digests[1]
    assert float(re.search(r"test accuracy +([\d.]+)%", done.stdout)[1]) > 60


def runs(pid: int) -> bool:
    try:
        # Ended, but not yet noticed by its parent.
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_local_cluster_ends_with_its_command(tmp_path):
    program = (
        "import os, psutil; from distributed import Client\n"
        "with Client(timeout=20) as client:\n"
        "    assert len(client.nthreads()) == 1\n"
        "print(*(p.pid for p in psutil.Process(os.getppid()).children(recursive=True) if p.pid != os.getpid()))\n"
        "raise SystemExit(3)"
    )
    done = run("-m", "cluster.local", "--workers", "1", "--", sys.executable, "-c", program)
    assert done.returncode == 3, done.stdout + done.stderr
    pids = [int(pid) for pid in done.stdout.splitlines()[-1].split()]
    assert len(pids) >= 3  # the scheduler, the nanny, and its worker
    assert not [pid for pid in pids if runs(pid)]
