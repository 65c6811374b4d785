"""The command line. Commands import slow modules when they run, so that `--help` is quick."""

from distboost.cli.commands import main

__all__ = ["main"]
