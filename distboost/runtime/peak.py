"""The most memory that a process has used."""

from __future__ import annotations

import sys


def peak_bytes() -> int | None:
    """Return the most memory that this process has used since it began; None where the system does not tell, as on Windows."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
