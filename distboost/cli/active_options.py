"""Options and defaults that the commands of active learning share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from distboost.cli.options import check_known, with_parameters
from distboost.registry import ALGORITHMS

# Copies of what distboost.active defines, which takes seconds to import.
STRATEGIES = ("margin", "entropy", "averaged-margin", "random")
STARTS = ("kmeans", "random")
EXTRA_TREES = "extra-trees"
DEFAULTS = {
    "strategy": "margin",
    "start": "kmeans",
    "n_initial": 50,
    "batch_size": 10,
    "pool_fraction": 1.0,
    "diversity": "auto",
    "audit": 0.1,
    "random_state": 0,
}
# Other than the library's: who labels over days has no test set, and 'advise' needs random rows to estimate the error.
OWN_DEFAULTS = {"audit": 0.1}
COMMITTEES = (EXTRA_TREES, *ALGORITHMS)


class Diversity(click.ParamType[Any]):
    """A whole number of at least 1, or "auto"."""

    name = "integer|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or "auto"."""
        return value if value == "auto" else click.IntRange(min=1).convert(value, param, ctx)


def query_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which rows are asked for: parameters of QueryByCommittee."""
    whole = click.IntRange(min=1)
    for name, kind, text in (
        ("random_state", int, "Seed of all random choices"),
        (
            "diversity",
            Diversity(),
            "Take this many times as many useful rows, and choose a diverse batch of them",
        ),
        ("pool_fraction", float, "Fraction of the pool to score, drawn again for each batch"),
        (
            "audit",
            click.FloatRange(0, 1),
            "Share of the rows that are drawn at random, for 'advise'",
        ),
        ("batch_size", whole, "Rows of every other batch"),
        ("n_initial", whole, "Rows of the first batch"),
        (
            "start",
            click.Choice(STARTS),
            "The first batch: rows nearest to centres of clusters, or random ones",
        ),
    ):
        option = "--" + name.replace("_", "-")
        command = click.option(option, type=kind, help=with_default(text, name))(command)
    return command


def with_default(text: str, name: str) -> str:
    """Return a help text with its default. It is not click's default, as the log decides what is not given."""
    return f"{text} (default: {DEFAULTS[name]})."


def person_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --by."""
    return click.option("--by", metavar="NAME", help="Who does this, for the log.")(command)


def rows_of_text(text: str) -> list[int]:
    """Return the numbers of a text 5,17."""
    from distboost.errors import DataError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise DataError(
            f"--rows is {text!r:.100}, expected numbers of rows, separated by commas.", value=text
        ) from error


def algorithm_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --algorithm and --final."""
    command = click.option(
        "--final",
        type=click.Choice(ALGORITHMS),
        help=f"Algorithm of the final model (default: that of the committee, or gd-mcboost with {EXTRA_TREES}).",
    )(command)
    return click.option(
        "--algorithm",
        type=click.Choice(COMMITTEES),
        help=f"Algorithm of the committee, which the parameters of --set belong to (default: {EXTRA_TREES}).",
    )(command)


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def new_estimator(algorithm: str, parameters: dict[str, Any]) -> Any:
    """Return an estimator with these parameters; raise if one is invalid."""
    from distboost.active.committee import default_committee
    from distboost.errors import DataError
    from distboost.estimators.factory import estimator

    if algorithm == EXTRA_TREES:
        made = default_committee()
        check_known(made, parameters, "--set")
        return made.set_params(**parameters)
    if algorithm not in ALGORITHMS:
        raise DataError(
            f"the log names the algorithm {algorithm!r:.100}, expected one of {', '.join(COMMITTEES)}.",
            value=algorithm,
        )
    return with_parameters(estimator(algorithm)(), parameters)


def learner_of(
    log: str,
    x: str | None,
    algorithm: str | None,
    extend: bool,
    *,
    parameters: dict[str, Any],
    client: Any,
    given: dict[str, Any],
) -> Any:
    """Return the learner of a log, or a new one with a new log."""
    from distboost.active import resume
    from distboost.active.from_log import begin
    from distboost.active.ledger import read_header
    from distboost.errors import DataError

    header = read_header(log)
    if header is None:
        if x is None:
            raise DataError(f"there is no log at {log} yet: pass the pool with --x to create it.", where=log)
        learner = begin(new_estimator(algorithm or EXTRA_TREES, parameters), x, log, **(OWN_DEFAULTS | given))
        learner.home.client = client
        return learner
    if algorithm not in (None, header["algorithm"]):
        raise DataError(
            f"the log {log} belongs to {header['algorithm']}, not to {algorithm}.",
            remedy="Leave --algorithm out, or begin a new log.",
            where=log,
        )
    new_estimator(header["algorithm"], parameters)
    return resume(log, x, client=client, parameters=parameters, extend=extend, **given)
