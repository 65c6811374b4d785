"""Have the system load files into its cache before they are read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def load_ahead(file: int, offset: int = 0, n_bytes: int = 0) -> None:
    """Begin to load some bytes of an open file, 0: all that follow, without waiting for them, if the system can do this."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, offset, n_bytes, os.POSIX_FADV_WILLNEED)


def load_file_ahead(path: Path) -> None:
    """Begin to load a file. If that fails, whoever reads it later says why."""
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        load_ahead(file.fileno())


def n_loaded() -> int:
    """Return how many blocks this process has loaded from disks so far: what it reads from the system's cache does not count.

    0 where the system does not tell, as on Windows.
    """
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock
