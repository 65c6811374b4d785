"""System calls that fail, in a process of its own: what passes is tried again, what stays is an error that says where."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import errno, logging, os, sys
from pathlib import Path
import numpy as np
import distboost
from distboost.io import retry
from distboost.training import memory_plan
from distboost.errors import StoreError

logging.basicConfig(stream=sys.stdout, format="%(message)s")
retry.FIRST_WAIT = 0.001
memory_plan.PROCESS_BYTES = 0
folder = Path(sys.argv[1])
rng = np.random.default_rng(0)
X, y = rng.normal(size=(3000, 4)), rng.integers(0, 3, 3000)


def fault(call, first, times, path):
    os.environ["FAULT"] = f"{call} {errno.EIO} {first} {times} {path}"


def files(store):
    return {f.relative_to(store): f.read_bytes() for f in Path(store).rglob("*") if f.is_file()}


def fitted(store, callback):
    model = distboost.GDMCBoostClassifier(
        calibration=None, n_estimators=3, max_depth=2, n_jobs=1, memory_limit=260_000, scratch=str(folder), callbacks=[callback]
    ).fit(store)
    assert model.memory_plan_.streamed
    model.save(folder / "model")
    return (folder / "model").read_bytes()
"""

WRITES = """
from distboost.data import ingest
ingest.BLOCK_ROWS = 500
expected = distboost.bin(X, y, str(folder / "expected"))
for call, path in (("fsync", "store"), ("write", "store/bins/c"), ("rename", "store/zarr.json"), ("rename", "store/bins/c")):
    for first in (1, 2, 3):
        place = folder / f"{call}{len(path)}{first}" / "store"
        fault(call, first, 1, path)
        distboost.bin(X, y, str(place))
        assert files(place) == files(expected), (call, first)
    place = folder / f"{call}{len(path)}" / "store"
    fault(call, 2, 1000, path)
    try:
        distboost.bin(X, y, str(place))
        raise AssertionError("written")
    except StoreError as error:
        print("REFUSED", error)
    assert not list(place.rglob("*.partial"))
    fault("no call", 1, 1, "nowhere")
    distboost.bin(X, y, str(place))
    assert files(place) == files(expected), call
"""

READS = """
from distboost.data import ingest
SCRATCH = "(deleted)"  # files without names
ingest.BLOCK_ROWS = 500
store = distboost.bin(X, y, str(folder / "store"))
expected = fitted(store, lambda progress: None)
for call, path, times in (("preadv", "store/bins/c/5", 2), ("preadv", SCRATCH, 2), ("pwrite", SCRATCH, 2)):
    fault(call, 2, times, path)
    assert fitted(store, lambda progress: None) == expected, call
    fault(call, 1, 1000, path)
    try:
        fitted(store, lambda progress: None)
        raise AssertionError("trained")
    except StoreError as error:
        print("REFUSED", error)
"""


@pytest.fixture(scope="module")
def failing_calls(tmp_path_factory):
    """A library that makes system calls fail."""
    compiler, source = shutil.which("cc"), Path(__file__).with_name("failing_calls.c")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler here, or not Linux")
    library = tmp_path_factory.mktemp("failing") / "failing_calls.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], timeout=60, check=True)
    return str(library)


def _child(program, library, folder):
    environment = {**os.environ, "LD_PRELOAD": library}
    done = subprocess.run(
        [sys.executable, "-c", CHILD + program, str(folder)],
        env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    refused = [line for line in done.stdout.splitlines() if line.startswith("REFUSED")]
    return done.stdout, refused


def test_writes_and_renames_that_fail(failing_calls, tmp_path):
    """The nth, once: the store is the same. From then on: an error, nothing half written, and later the same command goes on."""
    said, refused = _child(WRITES, failing_calls, tmp_path)
    assert said.count("attempt 2 of 6") >= 10
    assert len(refused) == 4
    for line in refused:
        assert re.search(r"store/\S+ cannot be written: OSError: \[Errno 5\].*Check the disk", line)


def test_reads_of_streamed_rows_that_fail(failing_calls, tmp_path):
    said, refused = _child(READS, failing_calls, tmp_path)
    assert said.count("attempt 2 of 6") >= 3
    bins, read, written = refused
    assert re.search(
        r"chunk bins/c/5/0, rows 2500 to 2999 of the binned store .* cannot be read: OSError: \[Errno 5\]",
        bins,
    )
    assert re.search(
        rf"bytes \d+ to \d+ of a scratch file in {tmp_path} cannot be read: OSError: \[Errno 5\]", read
    )
    assert re.search(
        rf"bytes \d+ to \d+ of a scratch file in {tmp_path} cannot be written: OSError: \[Errno 5\]",
        written,
    )
