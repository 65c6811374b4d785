"""The command that serves the page on which people label."""

from __future__ import annotations

import getpass
from typing import Any

import click

from distboost.cli.active_options import (
    STRATEGIES,
    algorithm_option,
    given_options,
    learner_of,
    new_estimator,
    query_options,
    with_default,
)
from distboost.cli.options import Command, parameters_option, parse_parameters, path_option

LOCAL = ("127.0.0.1", "localhost", "::1")


@click.command(
    cls=Command,
    example="""
distboost active serve --log work.log --x data.zarr/x --classes cat,dog
""",
)
@path_option("--log", "Log of the work; created if it does not exist.")
@path_option(
    "--x",
    "The pool, (rows, features): zarr, or Parquet. The log records this and the other settings.",
    required=False,
)
@click.option("--people", metavar="A,B,C", help="Who labels (default: you). Each gets a URL.")
@path_option(
    "--show", "CSV or Parquet file with a line for each row: texts, links, pictures.", required=False
)
@click.option(
    "--image", metavar="HxW[x3]|PATH", help="Show rows as images: their own values, or those of an array."
)
@path_option("--guidelines", "Text file that stays on the page.", required=False)
@click.option(
    "--guess",
    type=click.Choice(["after", "before", "never"]),
    default="after",
    show_default=True,
    help="Show what the model takes a row for after the answer, before it, or never.",
)
@click.option(
    "--hours",
    type=click.FloatRange(0, 10**5, min_open=True),
    default=1.0,
    show_default=True,
    help="How long rows are kept for a person.",
)
@click.option(
    "--port", type=click.IntRange(0, 2**16 - 1), default=8765, show_default=True, help="Where the page is."
)
@click.option(
    "--host",
    default=LOCAL[0],
    show_default=True,
    help="Address to listen at. Others than this machine's are not encrypted.",
)
@algorithm_option
@click.option(
    "--strategy", type=click.Choice(STRATEGIES), help=with_default("Which rows are asked for", "strategy")
)
@click.option("--classes", metavar="A,B,C", help="The valid labels; any other is refused.")
@query_options
@parameters_option
def serve(
    *,
    log: str,
    x: str | None,
    people: str | None,
    show: str | None,
    image: str | None,
    guidelines: str | None,
    guess: str,
    hours: float,
    port: int,
    host: str,
    algorithm: str | None,
    final: str | None,
    classes: str | None,
    parameters: tuple[str, ...],
    **choosing: Any,
) -> None:
    """Label on a page in the browser, alone or as a team.

    The command prints a URL for each person, and serves until Ctrl-C. Everything is in the log: other commands work beside it.
    """
    from distboost.cli.labels_csv import parse_classes
    from distboost.serving.server import Page
    from distboost.serving.server import serve as serve_page

    settings = choosing | {
        "classes": None if classes is None else parse_classes(classes),
        "final": None if final is None else new_estimator(final, {}),
    }
    learner = learner_of(
        log,
        x,
        algorithm,
        False,
        parameters=parse_parameters(parameters),
        client=None,
        given=given_options(settings),
    )
    names = [getpass.getuser()] if people is None else [name.strip() for name in people.split(",")]
    page = Page(names, show=show, image=image, guidelines=guidelines, guess=guess, hours=hours)

    def ready(urls: dict[str, str]) -> None:
        if host not in LOCAL:
            click.echo(
                f"Whoever reaches {host} can read what is sent: put a proxy with TLS before it.", err=True
            )
        for name, url in urls.items():
            click.echo(f"{name}: {url}")

    serve_page(learner, log, page, port=port, host=host, ready=ready)
