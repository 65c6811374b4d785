"""The help of commands and of groups of commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from distboost.registry import ALGORITHMS


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


NOT_ON_THE_COMMAND_LINE = {"callbacks"}  # Python functions


class Parameter(NamedTuple):
    """A parameter of an estimator, as its documentation describes it."""

    name: str
    default: Any
    kind: str
    about: str  # one sentence


def parameters_of(algorithm: str) -> list[Parameter]:
    """Return the parameters of an algorithm: its own first, then those that all share.

    They have no description where Python strips docstrings (``python -OO``).
    """
    from distboost.cli.words import in_options
    from distboost.estimators.factory import estimator

    made = estimator(algorithm)
    documented = {name: (kind, about) for name, kind, about in _documented(made.__doc__ or "")}
    own = made.algorithm.parameters()
    defaults = made().get_params(deep=False)
    names = dict.fromkeys([*own, *documented, *defaults])
    return [
        Parameter(name, defaults[name], kind, in_options(about.replace("`", "``")))
        for name in names
        if name in defaults and name not in NOT_ON_THE_COMMAND_LINE
        for kind, about in [documented.get(name, ("", ""))]
    ]


def _documented(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the type and the first sentence of each parameter that a numpydoc text documents."""
    section = text.partition("\nParameters\n")[2].partition("\nAttributes\n")[0]
    for names, kind, body in re.findall(r"(?m)^(\w+(?:, \w+)*) : (.*)\n((?:    .*\n?)*)", section):
        sentence = re.split(r"(?<=\.)\s(?=[A-Z\"`])", " ".join(body.split()), maxsplit=1)[0]
        for name in names.split(", "):
            yield name, re.sub(r",? default=.*", "", kind), sentence


def asked_algorithm(command: click.Command, ctx: click.Context, words: Sequence[str]) -> str | None:
    """Return the algorithm that a command line names, wherever --help stands in it; raise a usage error if there is none such."""
    found = None
    for word, following in zip(words, (*words[1:], None), strict=True):
        if word == "--algorithm":
            found = following
        elif word.startswith("--algorithm="):
            found = word.partition("=")[2]
    if found is None:
        return None
    [option] = [option for option in command.params if option.name == "algorithm"]
    value: str = option.type.convert(found, option, ctx)
    return value


def write_parameters(
    formatter: click.HelpFormatter, command: str, algorithm: str | None, defaults: Mapping[str, Any]
) -> None:
    """Write the parameters of an algorithm, or how to see them. `defaults` are those of the command that differ."""
    if algorithm is None:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(
                f"'{command} --algorithm NAME --help' lists the parameters of an algorithm for --set. NAME is one of "
                f"{', '.join(ALGORITHMS)}."
            )
        return
    with formatter.section(f"Parameters of {algorithm}, with their defaults, for --set"):
        formatter.write_dl(
            [
                (f"{name}={defaults.get(name, default)}", f"{about} [{kind}]" if kind else "")
                for name, default, kind, about in parameters_of(algorithm)
            ]
        )
