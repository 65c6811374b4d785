"""Disks and networks that fail.

Faults are real where this machine has them: damaged files, full disks, limits on files, links to a file that cannot be read. The
others are made by a store that fails, or by failing system calls.
"""

from pathlib import Path

import pytest
import zarr
from zarr.storage import LocalStore, WrapperStore

from distboost import GDMCBoostClassifier

BLOCK = 60
# Reading it where nothing is mapped, as at its beginning, is an I/O error.
UNREADABLE = Path("/proc/self/mem")


def model(**parameters):
    return GDMCBoostClassifier(calibration=None, n_estimators=3, max_depth=2, n_jobs=1, **parameters)


class FailingStore(WrapperStore):
    """A store of which some reads of one key fail: `times` of them, from the `first` on, with an error or with other bytes."""

    def __init__(self, store, key="", error=None, damage=None, first=1, times=10**9):
        super().__init__(store)
        self.fault = key, error, damage, range(first, first + times)
        self.reads = 0

    def _with_store(self, store):
        return self  # all reads are counted together

    async def get(self, key, prototype=None, byte_range=None):
        failing, error, damage, when = self.fault
        found = await super().get(key, prototype, byte_range)
        if key != failing:
            return found
        self.reads += 1
        if self.reads not in when:
            return found
        if error is not None:
            raise error
        return prototype.buffer.from_bytes(damage(found.to_bytes()))


def failing(path, **fault):
    return zarr.open_array(FailingStore(LocalStore(path), **fault), mode="r")


def unreadable(path):
    """Makes a file one that cannot be read; returns what puts that right."""
    if not UNREADABLE.exists():
        pytest.skip("no /proc here")
    kept = path.with_name("kept")
    path.rename(kept)
    path.symlink_to(UNREADABLE)
    return lambda: kept.replace(path)
