"""Options and defaults that the commands of active learning share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from distboost.cli.options import with_parameters
from distboost.registry import ALGORITHMS

# Copies of what distboost.active defines, which takes seconds to import.
STRATEGIES = ("margin", "entropy", "votes", "random")
DEFAULTS = {
    "strategy": "margin",
    "n_initial": 50,
    "batch_size": 10,
    "pool_fraction": 1.0,
    "diversity": 1,
    "random_state": 0,
}
ALGORITHM = "gamble"


def query_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which rows are asked for: parameters of QueryByCommittee."""
    whole = click.IntRange(min=1)
    for name, kind, text in (
        ("random_state", int, "Seed of all random choices"),
        ("diversity", whole, "Take this many times as many useful rows, and choose a diverse batch of them"),
        ("pool_fraction", float, "Fraction of the pool to score, drawn again for each batch"),
        ("batch_size", whole, "Rows of every other batch"),
        ("n_initial", whole, "Rows of the first batch, drawn at random"),
    ):
        option = "--" + name.replace("_", "-")
        command = click.option(option, type=kind, help=with_default(text, name))(command)
    return command


def with_default(text: str, name: str) -> str:
    """Return a help text with its default. It is not click's default, as the log decides what is not given."""
    return f"{text} (default: {DEFAULTS[name]})."


def algorithm_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --algorithm."""
    return click.option(
        "--algorithm",
        type=click.Choice(ALGORITHMS),
        help=f"Algorithm of the committee (default: {ALGORITHM}).",
    )(command)


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def new_estimator(algorithm: str, parameters: dict[str, Any]) -> Any:
    """Return an estimator with these parameters; raise if one is invalid."""
    from distboost.errors import DataError
    from distboost.estimators.factory import estimator

    if algorithm not in ALGORITHMS:
        raise DataError(
            f"the log names the algorithm {algorithm!r:.100}, expected one of {', '.join(ALGORITHMS)}."
        )
    return with_parameters(estimator(algorithm)(), parameters)
