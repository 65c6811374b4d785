"""The tools that measure memory and times in the benchmarks."""

import subprocess
import sys
import time

import pytest

from tests.benchmarks.children import Cap, run
from tests.benchmarks.memory import MemoryWatch

KERNEL = {"job": "kernel", "n_rows": 200_000, "n_features": 64, "n_classes": 5, "repeats": 1}


def test_watch_sees_what_children_take():
    # The parent takes little; its child 200 MB, until its input ends.
    child = "import sys; x = bytearray(b'x') * 200_000_000; sys.stdin.read()"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    command, last = [sys.executable, "-c", program], time.monotonic() + 30
    kinds = ("rss", "pss", "anonymous", "data")
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process, MemoryWatch(process.pid) as watch:
        while min(map(watch.peak, kinds)) < 200e6 and time.monotonic() < last:
            time.sleep(0.05)
        process.stdin.close()
        process.wait()
    peaks = watch.process_peaks()
    assert len(peaks) == 2
    assert peaks[process.pid] < 50e6
    for kind in kinds:
        assert 200e6 < watch.peak(kind) < 300e6
    assert watch.peak(stop=watch.readings[0].time - 1) == 0
    times = [reading.time for reading in watch.readings]
    assert times == sorted(times)
    assert times[-1] <= time.monotonic()


def test_job_is_marked_and_measured():
    outcome = run({**KERNEL, "repeats": 5})  # long enough to be seen at its largest
    assert outcome.failure == "", outcome.errors
    assert [mark["mark"] for mark in outcome.marks][-1] == "done"
    assert outcome.first("pass")["n_threads"] == 1
    exact, seen = outcome.first("done")["peak_resident"], outcome.memory.peak()
    assert 0.5 * exact < seen < 1.02 * exact  # the kernel's own count lags a little


@pytest.mark.parametrize(
    ("cap", "timeout", "failure"), [(Cap(150_000_000), 60, "Memory"), (None, 0.2, "in time")]
)
def test_job_that_does_not_end_well(cap, timeout, failure):
    outcome = run({**KERNEL, "n_rows": 10_000_000}, cap, timeout)
    assert failure in outcome.failure
    assert outcome.first("done") == {}
    assert outcome.memory.peak() < 1e9
