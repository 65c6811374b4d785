"""The command line. Whatever is slow to import is imported inside the commands, so that `--help` is quick."""

from distboost.cli.commands import main

__all__ = ["main"]
