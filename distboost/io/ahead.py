"""Have the system load files into its cache before they are read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

STEP = (
    2**17
)  # bytes: the system may ignore what a single request asks for beyond its own limit, which is 128 KiB by default


def load_ahead(file: int, offset: int, n_bytes: int) -> None:
    """Ask the system to load a part of an open file, without waiting for it. Nothing happens if the system cannot do this."""
    if not hasattr(os, "posix_fadvise"):
        return
    with suppress(OSError):  # whoever reads the file will get the error
        for first in range(offset, offset + n_bytes, STEP):
            os.posix_fadvise(file, first, min(STEP, offset + n_bytes - first), os.POSIX_FADV_WILLNEED)


def load_file_ahead(path: Path) -> None:
    """Ask the system to load a file."""
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        load_ahead(file.fileno(), 0, os.fstat(file.fileno()).st_size)


def n_loaded() -> int:
    """Return how many units of 512 bytes this process has read from disks so far. Reads from the system's cache do not count.

    0 where the system does not tell, as on Windows.
    """
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock
