"""What ingest does to the C library's thresholds, and what it leaves of them."""

import ctypes
import os
import subprocess
import sys

import pytest

from distboost.data.memory import LARGE, thresholds

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
