"""Numbers with their units, and text from untrusted files, made safe for a terminal, an HTML page or a CSV file."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

# Unicode categories of control characters, format and direction marks, surrogates, line and paragraph separators: they are
# invisible, and change how other text appears.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # some scripts and emoji need them


def visible(value: Any) -> str:
    """Return the text of a value in one line, with invisible characters escaped as in Python literals."""
    return "".join(
        repr(letter)[1:-1] if unicodedata.category(letter) in _UNSEEN and letter not in _JOINERS else letter
        for letter in str(value)
    )


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
    '2 MB'
    """
    return megabytes(math.ceil(n_bytes / 1e6) * 1e6)


def amount(number: float, unit: str) -> str:
    """Format a number of units; bytes in the largest unit that is not above it.

    >>> amount(1_234_567, "bytes"), amount(999, "bytes"), amount(2.5e12, "bytes"), amount(1234567.8, "rows")
    ('1.2 MB', '999 bytes', '2.5 TB', '1,234,568 rows')
    """
    if unit == "bytes":
        for power, name in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
            if number >= 10**power:
                return f"{number / 10**power:.{1 if number < 100 * 10**power else 0}f} {name}"
    return f"{number:,.{1 if 0 < number < 10 and number != int(number) else 0}f} {unit}"


def duration(seconds: float) -> str:
    """Format a time.

    >>> [duration(n) for n in (0.002, 3.21, 45.2, 150, 7200, 100_000)]
    ['2 ms', '3.2 s', '45 s', '2 min 30 s', '2 h 0 min', '27 h 46 min']
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s"
