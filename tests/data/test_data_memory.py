"""What ingest does to the C library's thresholds, and what it leaves of them."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from distboost.data.memory import HUGE_PAGE, empty, returned_when_freed, zeros
from distboost.process import LARGE, thresholds

MMAP, TRIM = -3, -1


@pytest.mark.parametrize(
    ("environment", "during", "afterwards"),
    [
        ({}, {MMAP: LARGE}, {MMAP: 2**25, TRIM: 2**26}),
        ({"MALLOC_TRIM_THRESHOLD_": "65536"}, {MMAP: LARGE}, {MMAP: 2**25}),  # Dask's nannies
        ({"MALLOC_MMAP_THRESHOLD_": "4194304"}, {MMAP: LARGE}, {MMAP: 2**22}),
        ({"MALLOC_MMAP_THRESHOLD_": "65536"}, {}, {}),
        ({"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=0x400000"}, {MMAP: LARGE}, {MMAP: 2**22}),
        (
            {"GLIBC_TUNABLES": "glibc.malloc.check=1:glibc.malloc.trim_threshold=1"},
            {MMAP: LARGE},
            {MMAP: 2**25},
        ),
        ({"MALLOC_MMAP_THRESHOLD_": "many"}, {MMAP: LARGE}, {MMAP: 2**25, TRIM: 2**26}),
    ],
    ids=str,
)
def test_settings_of_the_environment_are_restored(environment, during, afterwards):
    found = thresholds(environment)
    assert dict(found.during) == during
    assert dict(found.afterwards) == afterwards


CHUNKS = """
import ctypes, sys
from distboost.data.memory import returned_when_freed
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def is_mapped(size):
    # The size of a chunk, in front of it, has a bit for this.
    address = c.malloc(size)
    flags = ctypes.c_size_t.from_address(address - ctypes.sizeof(ctypes.c_size_t)).value
    c.free(address)
    return int(flags & 2 > 0)
def mapped():
    return [is_mapped(mib << 20) for mib in (2, 8, 31, 40)]
with returned_when_freed():
    print(*mapped())
print(*mapped())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="another C library")
@pytest.mark.parametrize(
    ("settings", "afterwards"),
    [
        ({}, "0 0 0 1"),
        ({"MALLOC_MMAP_THRESHOLD_": str(4 << 20)}, "0 1 1 1"),
        ({"MALLOC_MMAP_THRESHOLD_": str(1 << 16)}, "1 1 1 1"),
    ],
    ids=["none", "4 MiB", "64 KiB"],
)
def test_large_arrays_are_mapped_during_ingest(settings, afterwards):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", CHUNKS],
        env={**environment, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["1 1 1 1", afterwards]


HUGE = "hg"  # the flag of memory for which huge pages were asked


def flagged_bytes(array):
    """How many bytes of an array, by whole pages of 4 KiB, lie in memory for which huge pages were asked."""
    first, end = array.ctypes.data, array.ctypes.data + array.nbytes
    found, area = 0, (0, 0)
    with open("/proc/self/smaps") as file:
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                area = tuple(int(bound, 16) for bound in words[0].split("-"))
            elif words[0] == "VmFlags:" and HUGE in words:
                found += max(min(end, area[1]) - max(first, area[0]), 0)
    return found


@pytest.mark.skipif(
    not os.path.exists("/sys/kernel/mm/transparent_hugepage"), reason="this system has no huge pages"
)
@pytest.mark.parametrize("make", [zeros, empty])
@pytest.mark.parametrize("n_bytes", [2 * HUGE_PAGE, 5 * HUGE_PAGE // 2, 3 * HUGE_PAGE - 8])
def test_large_arrays_fill_huge_pages(make, n_bytes):
    array = make((n_bytes // 8,), np.float64)
    whole = n_bytes // HUGE_PAGE * HUGE_PAGE
    assert whole - HUGE_PAGE <= flagged_bytes(array) <= whole  # one less if the system begins elsewhere
    assert not array.any()
    array[:] = 1.0
    assert array.sum() == n_bytes // 8


@pytest.mark.parametrize("shape", [(), (0, 3), (7, 2), (HUGE_PAGE // 4, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64])
def test_zeros(shape, dtype):
    array = zeros(shape, dtype)
    assert (array.shape, array.dtype) == (shape, dtype)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not array.any()


def test_memory_is_used_again_for_an_array_of_its_size():
    with returned_when_freed():
        first = empty((LARGE,), np.uint8)
        address = first.ctypes.data
        del first
        assert empty((LARGE // 8,), np.int64).ctypes.data == address
        assert empty((LARGE + 8,), np.uint8).ctypes.data != address
