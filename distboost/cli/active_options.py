"""Options and defaults that the commands of active learning share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from distboost.cli.options import with_parameters
from distboost.registry import ALGORITHMS

# As in distboost.active, which takes seconds to import.
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
    """Options that say what is asked, as QueryByCommittee has them."""
    whole = click.IntRange(min=1)
    for name, kind, text in (
        ("random_state", int, "Seed of all random choices"),
        ("diversity", whole, "Choose each batch from so many times as many rows, unlike each other"),
        ("pool_fraction", float, "Score this part of the pool, another one for each batch"),
        ("batch_size", whole, "Rows of each further batch"),
        ("n_initial", whole, "Rows of the first batch, drawn at random"),
    ):
        option = "--" + name.replace("_", "-")
        command = click.option(option, type=kind, help=with_default(text, name))(command)
    return command


def with_default(text: str, name: str) -> str:
    """Not click's default: what is not given is as the log says."""
    return f"{text} (default: {DEFAULTS[name]})."


def algorithm_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--algorithm", type=click.Choice(ALGORITHMS), help=f"What the committee is (default: {ALGORITHM})."
    )(command)


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def new_estimator(algorithm: str, parameters: dict[str, Any]) -> Any:
    """An estimator with these parameters; raises if one cannot be."""
    from distboost.errors import DataError
    from distboost.estimators.factory import estimator

    if algorithm not in ALGORITHMS:
        raise DataError(
            f"the log is of the algorithm {algorithm!r:.100}, expected one of {', '.join(ALGORITHMS)}."
        )
    return with_parameters(estimator(algorithm)(), parameters)
