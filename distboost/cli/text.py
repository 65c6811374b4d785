"""The console on which commands print."""

from __future__ import annotations

from rich.console import Console


def console() -> Console:
    """Return a console that prints text literally: square brackets and colons are no markup."""
    return Console(markup=False, emoji=False)
