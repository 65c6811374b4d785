"""The help of commands and of groups of commands."""

from __future__ import annotations

import sys
from typing import Any

import click


class WithExample(click.Command):
    """A command or a group whose help has an example, and whose summary is never cut off.

    Attributes
    ----------
    example : str
        Lines to type as they stand, of at most 76 characters each.
    """

    def __init__(self, *args: Any, example: str, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.example = example

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and the example."""
        super().format_help_text(ctx, formatter)
        with formatter.section("Example"):
            for line in self.example.strip().splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")

    def get_short_help_str(self, limit: int = sys.maxsize) -> str:
        """Return the whole first sentence of the help."""
        return super().get_short_help_str(sys.maxsize)
