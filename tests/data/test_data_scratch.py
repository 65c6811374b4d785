"""A scratch file that cannot be read, or whose disk is full."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from distboost.errors import StoreError
from distboost.io import retry
from distboost.runtime.streaming.scratch import Scratch
from tests.data.disturbed import UNREADABLE

pytestmark = pytest.mark.usefixtures("short_waits")


@pytest.fixture
def scratch(tmp_path):
    found = Scratch(str(tmp_path))
    yield found
    found.close()


def redirect(scratch, path, flags):
    """Lets the scratch files be another file; returns what puts that right."""
    other = os.open(path, flags)
    ours = [file.fileno() for file in scratch._files]
    kept = [os.dup(file) for file in ours]
    for file in ours:
        os.dup2(other, file)
    os.close(other)

    def put_right():
        for file, original in zip(ours, kept, strict=True):
            os.dup2(original, file)
            os.close(original)

    return put_right


@pytest.mark.skipif(not UNREADABLE.exists(), reason="no /proc here")
@pytest.mark.parametrize("to_change", [False, True])
def test_scratch_that_cannot_be_read(scratch, tmp_path, repaired, log, to_change):
    extent = scratch.write(np.arange(100))
    repair = redirect(scratch, UNREADABLE, os.O_RDONLY)
    with pytest.raises(
        StoreError, match=rf"bytes 0 to 799 of a scratch file in {tmp_path} cannot be read: .*Check the"
    ):
        scratch.read(extent, to_change)
    assert log.text.count("attempt") == retry.ATTEMPTS - 1
    repaired(repair)
    np.testing.assert_array_equal(scratch.read(extent, to_change), np.arange(100))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_scratch_on_a_full_disk(scratch, tmp_path, log):
    first = scratch.write(np.arange(100))
    repair = redirect(scratch, "/dev/full", os.O_RDWR)
    with pytest.raises(StoreError, match=rf"the disk of {tmp_path} is full: .*scratch=") as raised:
        scratch.write(np.arange(200))
    assert raised.value.__cause__.__cause__.errno == errno.ENOSPC
    assert "attempt" not in log.text
    repair()
    second = scratch.write(np.arange(200))
    np.testing.assert_array_equal(scratch.read(first), np.arange(100))
    np.testing.assert_array_equal(scratch.read(second), np.arange(200))
