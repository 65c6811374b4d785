"""Text that comes from files, made fit for a terminal, a page or a sheet."""

from __future__ import annotations

import unicodedata
from typing import Any

from rich.console import Console

# Controls, marks that change the direction of what follows, halves of characters, ends of lines and of paragraphs: they would
# not be seen, but change what is.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # of which words of some languages, and emoji, are made


def visible(value: Any) -> str:
    """The text of a value in one line, whose every character is seen: others are written as in Python's literals."""
    return "".join(
        repr(letter)[1:-1] if unicodedata.category(letter) in _UNSEEN and letter not in _JOINERS else letter
        for letter in str(value)
    )


def console() -> Console:
    """A terminal that prints what it is given: square brackets and colons are what they are."""
    return Console(markup=False, emoji=False)
