"""The commands of active learning, for a person who labels rows over days."""

from __future__ import annotations

import os
from typing import Any

import click

from distboost.cli.active_log import export, import_labels, show_log, withdraw
from distboost.cli.active_options import (
    STRATEGIES,
    algorithm_option,
    given_options,
    learner_of,
    new_estimator,
    person_option,
    query_options,
    with_default,
)
from distboost.cli.active_serve import serve
from distboost.cli.options import (
    ClusterOptions,
    Group,
    check_writable,
    cluster_options,
    overwrite_option,
    parameters_option,
    parse_parameters,
    path_option,
)
from distboost.cli.simulate import simulate
from distboost.io.files import check_folder


@click.group(
    cls=Group,
    example="""
distboost active ask --log work.log --x data.zarr/x --out ask.csv
distboost active tell --log work.log --labels ask.csv
distboost active model --log work.log --model committee.dboost
""",
)
def active() -> None:
    """Label the rows of a pool that teach the most.

    'ask' writes rows to a CSV file, a person fills in their labels, 'tell' reads them, and so on. A log records everything.
    """


for _command in (simulate, import_labels, export, withdraw, show_log, serve):
    active.add_command(_command)

_log = path_option("--log", "Log of the work.")


@active.command(
    example="""
distboost active ask --log work.log --x data.zarr/x --out ask.csv \\
    --classes cat,dog
"""
)
@path_option("--log", "Log of the work; created if it does not exist.")
@path_option("--out", "CSV file to write: columns row, label (empty) and the row's values.")
@path_option(
    "--x",
    "The pool, (rows, features): zarr, or Parquet. The log records this and the other settings.",
    required=False,
)
@algorithm_option
@click.option(
    "--strategy", type=click.Choice(STRATEGIES), help=with_default("Which rows are asked for", "strategy")
)
@click.option("--classes", metavar="A,B,C", help="The valid labels; any other is refused.")
@query_options
@parameters_option
@person_option
@click.option("--hours", type=float, help="How long rows are kept for the person of --by (default: 1).")
@click.option(
    "--overlap",
    type=click.FloatRange(0, 1),
    help="Share of the rows that somebody else has labelled, for a second opinion (default: 0).",
)
@click.option("--conflicts", is_flag=True, help="Ask for the rows on which people differ.")
@click.option("--more", is_flag=True, help="Ask for another batch even if rows are open.")
@click.option("--extend", is_flag=True, help="Take up rows that were appended to the pool.")
@click.option("--no-features", is_flag=True, help="Write no values of the rows.")
@click.option("--overwrite", is_flag=True, help="Replace the file at --out, whatever it contains.")
@cluster_options
def ask(
    *,
    log: str,
    out: str,
    x: str | None,
    algorithm: str | None,
    final: str | None,
    classes: str | None,
    parameters: tuple[str, ...],
    by: str | None,
    hours: float | None,
    overlap: float | None,
    conflicts: bool,
    more: bool,
    extend: bool,
    no_features: bool,
    overwrite: bool,
    cluster: ClusterOptions,
    **choosing: Any,
) -> None:
    """Write rows for a person to label: the open ones, or else another batch.

    With --by, they are this person's, and nobody else gets them for an hour.
    """
    from distboost.cli.connection import connect
    from distboost.cli.labels_csv import parse_classes, write_labels_csv
    from distboost.io.progress import on_stderr

    leasing = given_options({"hours": hours, "overlap": overlap, "conflicts": conflicts or None})
    if leasing and by is None:
        raise click.UsageError(f"--{min(leasing)} goes with --by.")
    _check_place(out, log)
    if not overwrite:
        _check_untold(out, log)
    given = given_options(
        choosing
        | {
            "classes": None if classes is None else parse_classes(classes),
            "final": None if final is None else new_estimator(final, {}),
        }
    )
    with connect(cluster) as client, on_stderr():
        learner = learner_of(
            log, x, algorithm, extend, parameters=parse_parameters(parameters), client=client, given=given
        )
        learner.verbose = 1
        n_open = len(learner.asked_of(by))
        if (more or not n_open) and by is None:
            learner.query()
        elif more or conflicts or not n_open:
            learner.lease(by=by, **leasing)
        rows = learner.asked_of(by)
        values, names = (None, ()) if no_features else _values(learner, rows)
    write_labels_csv(out, rows.tolist(), values, names, learner.ledger.opinions if conflicts else None)
    note = f", {n_open} of them asked before" if n_open else ""
    click.echo(
        f"{len(rows)} rows to label in {out}{note}. Then: distboost active tell --log {log} --labels {out}"
    )


def _check_place(path: str, log: str) -> None:
    check_folder(path)
    if os.path.realpath(path) == os.path.realpath(log):
        raise click.ClickException(f"{path} is the log, and would be overwritten. Choose another path.")


def _values(learner: Any, rows: Any) -> tuple[Any, list[str]]:
    """Return the values of rows of the pool, and the names of the features: x0, x1, ..., if they have none."""
    pool = learner.pool
    with pool.runtime(learner.home) as runtime:
        values = pool.take(rows, runtime).data
    unnamed = [f"x{feature}" for feature in range(pool.n_features)]
    return values, unnamed if pool.names is None else pool.names.tolist()


def _check_untold(out: str, log: str) -> None:
    """Raise DataError if writing to `out` would lose labels."""
    from distboost.active.ledger import Ledger, read_header
    from distboost.cli.answers import untold
    from distboost.cli.labels_csv import read_labels_csv
    from distboost.errors import DataError

    try:
        filled = _filled(read_labels_csv(out))
    except FileNotFoundError:
        return
    except DataError as error:
        raise DataError(
            f"the file at --out is not one that 'ask' wrote: {error} Choose another path, or add --overwrite."
        ) from error
    if filled and read_header(log) is not None:
        filled = untold(Ledger.from_log(log), filled, out)
    if filled:
        raise DataError(
            f"{out} has {len(filled)} labels that were not told, such as {_first(filled)}.",
            remedy=f"Tell them first: distboost active tell --log {log} --labels {out}; or pass another --out, or add "
            "--overwrite.",
        )


def _filled(texts: dict[int, str]) -> dict[int, str]:
    return {row: text for row, text in texts.items() if text}


def _first(labels: dict[int, Any]) -> str:
    row = min(labels)
    return f"{labels[row]!r} for row {row}"


@active.command(example="distboost active tell --log work.log --labels ask.csv")
@_log
@path_option("--labels", "CSV file with the columns row and label. Rows without a label stay open.")
@person_option
@click.option("--correct", is_flag=True, help="Replace labels that differ from those told before.")
@path_option("--eval-x", "Features of rows to measure the committee's error on.", required=False)
@path_option("--eval-y", "Labels of those rows.", required=False)
@cluster_options
def tell(
    *,
    log: str,
    labels: str,
    by: str | None,
    correct: bool,
    eval_x: str | None,
    eval_y: str | None,
    cluster: ClusterOptions,
) -> None:
    """Read the labels that a person filled in.

    Labels are whole numbers, numbers or text, like --classes and earlier labels. The labels of a first file are whole numbers if
    all can be read as such, else text. "?" says that the person cannot tell, "-" that nobody shall be asked again, perhaps with a
    reason: "- blurred"; unless they are classes. Telling a file twice is harmless.
    """
    from distboost.active.ledger import Ledger
    from distboost.cli.answers import record
    from distboost.cli.labels_csv import read_labels_csv

    if (eval_x is None) != (eval_y is None):
        raise click.UsageError("--eval-x and --eval-y go together.")
    if eval_x is None and cluster.given():
        raise click.UsageError(
            f"{' and '.join(cluster.given())}: only to measure the error. Pass --eval-x and --eval-y, too, or none of them."
        )
    click.echo(record(Ledger.from_log(log), _filled(read_labels_csv(labels)), labels, by=by, correct=correct))
    if eval_x is not None and eval_y is not None:
        _say_error(log, eval_x, eval_y, cluster)


def _say_error(log: str, x: str, y: str, cluster: ClusterOptions) -> None:
    from distboost.active import resume
    from distboost.cli.connection import connect
    from distboost.estimators.evaluating import confusion

    with connect(cluster) as client:
        found = confusion(resume(log, client=client).model_, x, y, client=client)
    click.echo(f"error {1 - found.accuracy:.2%} on {int(found.counts.sum())} rows")


@active.command(example="distboost active status --log work.log")
@_log
def status(log: str) -> None:
    """Show the settings of a log, and how many rows were asked for and labelled."""
    from distboost.active.ledger import Ledger
    from distboost.cli.show_active import print_ledger

    print_ledger(Ledger.from_log(log), log)


@active.command(example="distboost active advise --log work.log")
@_log
@cluster_options
def advise(log: str, cluster: ClusterOptions) -> None:
    """Estimate the error without a test set, find labels that may be wrong, and say what to do next."""
    from distboost.active import resume
    from distboost.cli.connection import connect
    from distboost.cli.show_active import print_advice

    with connect(cluster) as client:
        print_advice(resume(log, client=client).advice())


@active.command("model", example="distboost active model --log work.log --model committee.dboost")
@_log
@path_option("--model", "Model file to write, for predict and evaluate.")
@overwrite_option
@cluster_options
def write_model(log: str, model: str, overwrite: bool, cluster: ClusterOptions) -> None:
    """Train the final model on all labels, and write it to a file."""
    from distboost.active import resume
    from distboost.cli.connection import connect
    from distboost.cli.show import digest

    _check_place(model, log)
    check_writable(model, overwrite)
    with connect(cluster) as client:
        learner = resume(log, client=client)
        final = learner.model_
    final.save(model)
    click.echo(f"{final.n_iter_} rounds on {len(learner.labelled_)} labels")
    click.echo(f"{model} sha256 {digest(model)}")
