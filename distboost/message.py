"""Marks in messages: what a front end words in its own way.

Marked are parameters with or without a value, ``scratch`` and ``max_bins=64``, names of data such as ``eval_set X``, names of
estimators, and remedies that have a name, ``connect|Connect a new one``.
"""

from __future__ import annotations

import re

MARK = re.compile(r"``(?:(\w+)\|)?(.*?)``", re.DOTALL)


class Message(str):
    """A message in Python's words. `marked` has the marks, for other front ends."""

    marked: str

    def __new__(cls, text: str) -> Message:
        """Make a message of a text with marks, or of another message."""
        marked = getattr(text, "marked", text)
        message = super().__new__(cls, MARK.sub(r"\2", marked))
        message.marked = marked
        return message
