"""The console on which commands print."""

from __future__ import annotations

from rich.console import Console

LEAST_WIDTH = 60  # columns: on a narrower terminal, lines wrap, rather than that numbers are cut off


def console() -> Console:
    """Return a console that prints text literally: square brackets and colons are no markup."""
    found = Console(markup=False, emoji=False)
    found.width = max(found.width, LEAST_WIDTH)
    return found
