"""Format sizes in messages."""

from __future__ import annotations

import math


def megabytes(n_bytes: float) -> str:
    """Format a number of bytes in MB of 10^6 bytes.

    >>> megabytes(1_234_567), megabytes(2.5e9), megabytes(4_000)
    ('1.2 MB', '2,500 MB', '0.004 MB')
    """
    number = n_bytes / 1e6
    return f"{number:,.0f} MB" if number >= 100 else f"{number:.2g} MB" if number < 10 else f"{number:.1f} MB"


def megabytes_up(n_bytes: float) -> str:
    """Format a number of bytes in whole MB, rounded up: a limit of that size suffices.

    >>> megabytes_up(1_234_567)
    '2.0 MB'
    """
    return megabytes(math.ceil(n_bytes / 1e6) * 1e6)
