"""Text from untrusted files, made safe for a terminal, an HTML page or a CSV file."""

from __future__ import annotations

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
