"""The demonstration, short."""

import re

import numpy as np
import zarr

from examples import demo
from tests.scripts import run_example


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
