"""Active learning: what to label next, by a person, over days; and what it would bring, if labels are known."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import click

from distboost.cli.options import (
    Group,
    check_folder,
    check_writable,
    cluster_options,
    overwrite_option,
    parameters_option,
    parse_parameters,
    path_option,
    with_parameters,
)
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


@click.group(cls=Group)
def active() -> None:
    """Label the rows of a pool that teach the most.

    'ask' writes a CSV file of rows, a person fills in the labels, 'tell' reads them, and so on; a log keeps it all.
    """


def _choosing(command: Callable) -> Callable:
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
        command = click.option(option, type=kind, help=_with_default(text, name))(command)
    return command


def _with_default(text: str, name: str) -> str:
    """Not click's default: what is not given is as the log says."""
    return f"{text} (default: {DEFAULTS[name]})."


def _algorithm(command: Callable) -> Callable:
    return click.option(
        "--algorithm", type=click.Choice(ALGORITHMS), help=f"What the committee is (default: {ALGORITHM})."
    )(command)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


_log = path_option("--log", "Log of what was asked and told.")


@active.command()
@path_option("--log", "Log of what was asked and told; begun if it is not there.")
@path_option("--out", "CSV file to write: columns row, label (empty) and the row's values.")
@path_option("--x", "The pool, (rows, features). The log keeps this and the other settings.", required=False)
@_algorithm
@click.option(
    "--strategy", type=click.Choice(STRATEGIES), help=_with_default("Which rows are asked for", "strategy")
)
@click.option("--classes", metavar="A,B,C", help="The labels that there are; any other is refused.")
@_choosing
@parameters_option
@click.option("--more", is_flag=True, help="Ask for a further batch although rows are open.")
@click.option("--no-features", is_flag=True, help="Leave the values out.")
@click.option("--overwrite", is_flag=True, help="Replace the file at --out, whatever it is.")
@cluster_options
def ask(
    log: str,
    out: str,
    x: str | None,
    algorithm: str | None,
    classes: str | None,
    parameters: tuple[str, ...],
    more: bool,
    no_features: bool,
    overwrite: bool,
    scheduler: str | None,
    tls: str | None,
    workers: int | None,
    **choosing: Any,
) -> None:
    """Write rows for a person to label: those that are open, or else a further batch."""
    from distboost.cli.connection import connect
    from distboost.cli.labels_csv import parse_classes, write_labels_csv

    _check_place(out, log)
    if not overwrite:
        _check_untold(out, log)
    given = _given(choosing | {"classes": None if classes is None else parse_classes(classes)})
    with connect(scheduler, workers, tls) as client:
        learner = _learner(log, x, algorithm, parse_parameters(parameters), client, given)
        n_open = len(learner.asked_)
        if more or not n_open:
            learner.query()
        rows = learner.asked_
        values, names = (None, ()) if no_features else _values(learner, rows)
    write_labels_csv(out, rows.tolist(), values, names)
    note = f", {n_open} of them asked before" if n_open else ""
    click.echo(
        f"{len(rows)} rows to label in {out}{note}. Then: distboost active tell --log {log} --labels {out}"
    )


def _check_place(path: str, log: str) -> None:
    check_folder(path)
    if os.path.realpath(path) == os.path.realpath(log):
        raise click.ClickException(f"{path} is the log: it would be lost. Give another path to write to.")


def _values(learner: Any, rows: Any) -> tuple[Any, list[str]]:
    """The values of some rows of the pool, and the names of the features: the array's attribute feature_names, or x0, x1, ..."""
    pool = learner.pool
    with pool.runtime(learner.estimator) as runtime:
        values = pool.take(rows, runtime)
    names = pool.source.array.attrs.get("feature_names")
    if isinstance(names, list) and len(names) == pool.n_features:
        return values, [str(name) for name in names]
    return values, [f"x{feature}" for feature in range(pool.n_features)]


def _check_untold(out: str, log: str) -> None:
    """Raises if there is a file whose labels would be lost."""
    from distboost.active.ledger import Ledger, read_header
    from distboost.cli.labels_csv import parse_labels, read_labels_csv
    from distboost.errors import DataError

    try:
        filled = _filled(read_labels_csv(out))
    except FileNotFoundError:
        return
    except DataError as error:
        raise DataError(f"there is another file at --out: {error} Or add --overwrite.") from error
    known: dict[int, Any] = {}
    if filled and read_header(log) is not None:
        ledger = Ledger.from_log(log)
        known = dict(zip(ledger.rows, ledger.labels, strict=True))
        earlier = _earlier(ledger)
        filled = {
            row: text
            for row, text in filled.items()
            if row not in known or parse_labels({row: text}, earlier, out)[row] != known[row]
        }
    if filled:
        raise DataError(
            f"{out} has {len(filled)} labels that were not told, such as {_first(filled)}. Tell them first: distboost active "
            f"tell --log {log} --labels {out}; or write elsewhere, or add --overwrite."
        )


def _filled(texts: dict[int, str]) -> dict[int, str]:
    return {row: text for row, text in texts.items() if text}


def _first(labels: dict[int, Any]) -> str:
    row = min(labels)
    return f"{labels[row]!r} for row {row}"


def _earlier(ledger: Any) -> list[Any]:
    """Labels that tell of what kind labels are."""
    return ledger.header["classes"] or ledger.labels


def _learner(
    log: str,
    x: str | None,
    algorithm: str | None,
    parameters: dict[str, Any],
    client: Any,
    given: dict[str, Any],
) -> Any:
    """The learner of a log, or a new one whose log is begun."""
    from distboost.active import resume
    from distboost.active.from_log import begin
    from distboost.active.ledger import read_header
    from distboost.errors import DataError

    header = read_header(log)
    if header is None:
        if x is None:
            raise DataError(f"there is no log at {log} yet: give the pool with --x, and it is begun.")
        estimator = _new(algorithm or ALGORITHM, parameters)
        estimator.client = client
        return begin(estimator, x, log, **given)
    if algorithm not in (None, header["algorithm"]):
        raise DataError(
            f"the log {log} is of {header['algorithm']}, not of {algorithm}. Leave --algorithm out, or begin a new log."
        )
    _new(header["algorithm"], parameters)
    return resume(log, x, client=client, parameters=parameters, **given)


def _new(algorithm: str, parameters: dict[str, Any]) -> Any:
    """An estimator with these parameters; raises if one cannot be."""
    from distboost.errors import DataError
    from distboost.estimators.factory import estimator

    if algorithm not in ALGORITHMS:
        raise DataError(
            f"the log is of the algorithm {algorithm!r:.100}, expected one of {', '.join(ALGORITHMS)}."
        )
    return with_parameters(estimator(algorithm)(), parameters)


@active.command()
@_log
@path_option("--labels", "CSV file with columns row and label. Rows whose label is empty stay open.")
@path_option("--eval-x", "Features of rows to measure the committee's error on, now.", required=False)
@path_option("--eval-y", "Labels of those rows.", required=False)
@cluster_options
def tell(
    log: str,
    labels: str,
    eval_x: str | None,
    eval_y: str | None,
    scheduler: str | None,
    tls: str | None,
    workers: int | None,
) -> None:
    """Read the labels that a person filled in.

    Labels are whole numbers, numbers or text, as --classes and those told before are; of the first file, whole numbers if all
    are. To tell a file twice does no harm.
    """
    from distboost.active.ledger import Ledger
    from distboost.cli.labels_csv import parse_labels, read_labels_csv
    from distboost.cli.text import visible

    if (eval_x is None) != (eval_y is None):
        raise click.UsageError("--eval-x and --eval-y go together.")
    if eval_x is None and (scheduler or workers or tls):
        raise click.UsageError(
            "--scheduler, --tls and --workers say where the error is measured: give --eval-x and --eval-y, too, or none of "
            "them."
        )
    ledger = Ledger.from_log(log)
    known = parse_labels(_filled(read_labels_csv(labels)), _earlier(ledger), labels)
    new = _new_labels(ledger, known, labels)
    unseen = sorted(set(new.values()) - set(ledger.labels)) if ledger.labels else []
    ledger.teach(list(new), list(new.values()))
    said = f"{len(new)} labels told, {len(ledger.labels)} in all; {len(ledger.asked)} rows are open."
    if unseen:
        said += f" New classes: {', '.join(map(visible, unseen))}."
    click.echo(said)
    if eval_x is not None and eval_y is not None:
        _say_error(log, eval_x, eval_y, scheduler, workers, tls)


def _new_labels(ledger: Any, known: dict[int, Any], place: str) -> dict[int, Any]:
    """Those of the labels that were not told before; raises if one is of a row that was not asked for, or was told otherwise."""
    from distboost.errors import DataError

    told, asked = dict(zip(ledger.rows, ledger.labels, strict=True)), set(ledger.asked)
    for row, label in known.items():
        if row in told and told[row] != label:
            raise DataError(
                f"{place} labels row {row} as {label!r}, but it was told as {told[row]!r}, which stays. Correct the file; "
                "nothing of it was told."
            )
        if row not in told and row not in asked:
            raise DataError(
                f"{place} labels row {row}, which was not asked for. Is it the file of another log? Nothing of it was told."
            )
    return {row: label for row, label in known.items() if row not in told}


def _say_error(log: str, x: str, y: str, scheduler: str | None, workers: int | None, tls: str | None) -> None:
    from distboost.active import resume
    from distboost.cli.connection import connect
    from distboost.prediction.streamed import confusion

    with connect(scheduler, workers, tls) as client:
        found = confusion(resume(log, client=client).estimator_, x, y, client)
    click.echo(f"error {1 - found.accuracy:.2%} on {int(found.counts.sum())} rows")


@active.command()
@_log
def status(log: str) -> None:
    """Show what was asked and told, and the settings."""
    from distboost.active.ledger import Ledger
    from distboost.cli.show_active import print_ledger

    print_ledger(Ledger.from_log(log), log)


@active.command("model")
@_log
@path_option("--model", "Model file to write, for predict and evaluate.")
@overwrite_option
@cluster_options
def write_model(
    log: str, model: str, overwrite: bool, scheduler: str | None, tls: str | None, workers: int | None
) -> None:
    """Train the committee on what was told, and write it to a file."""
    from distboost.active import resume
    from distboost.cli.connection import connect
    from distboost.cli.show import digest

    _check_place(model, log)
    check_writable(model, overwrite)
    with connect(scheduler, workers, tls) as client:
        learner = resume(log, client=client)
        committee = learner.estimator_
    committee.save(model)
    click.echo(f"{committee.n_iter_} rounds on {len(learner.labelled_)} labels")
    click.echo(f"{model} sha256 {digest(model)}")


def _strategies(ctx: click.Context, option: click.Parameter, value: str) -> list[str]:
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name not in STRATEGIES or names.count(name) > 1:
            raise click.BadParameter(
                f"{name!r} in {value!r}: give some of {', '.join(STRATEGIES)}, each once, with commas between."
            )
    return names


def _picture(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Raises now rather than after hours if the picture cannot be drawn."""
    from importlib.util import find_spec

    if value is None:
        return None
    if os.path.splitext(value)[1] not in (".png", ".svg", ".pdf"):
        raise click.BadParameter(f"{value} is no .png, .svg or .pdf.")
    if find_spec("matplotlib") is None:
        raise click.BadParameter(
            "pictures need matplotlib, which is not installed: pip install 'distboost[plots]'."
        )
    return value


@active.command()
@path_option("--x", "The pool, (rows, features).")
@path_option("--y", "Its labels, (rows,).")
@path_option("--eval-x", "Features of rows to measure the error on.")
@path_option("--eval-y", "Labels of those rows.")
@_algorithm
@click.option(
    "--strategies",
    default="margin,random",
    show_default=True,
    metavar="A,B",
    callback=_strategies,
    help=f"Of: {', '.join(STRATEGIES)}.",
)
@click.option(
    "--repeats", type=click.IntRange(min=1), default=10, show_default=True, help="Runs of each, seed by seed."
)
@click.option("--max-labels", type=click.IntRange(min=1), help="End each run with so many labels.")
@click.option("--target-error", type=float, help="End each run at this error, a fraction such as 0.05.")
@_choosing
@parameters_option
@path_option("--json", "File of the curves to write.", required=False)
@click.option("--plot", type=click.Path(), callback=_picture, help="Picture to write: .png, .svg or .pdf.")
@overwrite_option
@cluster_options
def simulate(
    x: str,
    y: str,
    eval_x: str,
    eval_y: str,
    algorithm: str | None,
    strategies: list[str],
    repeats: int,
    max_labels: int | None,
    target_error: float | None,
    parameters: tuple[str, ...],
    json: str | None,
    plot: str | None,
    overwrite: bool,
    scheduler: str | None,
    tls: str | None,
    workers: int | None,
    **choosing: Any,
) -> None:
    """Measure, where labels are known, how the error falls with their number."""
    from distboost.active import learning_curves, plot_curves
    from distboost.cli.connection import connect
    from distboost.cli.show_active import print_curves

    plot = None if plot is None else os.path.abspath(plot)
    for path in filter(None, (json, plot)):
        check_writable(path, overwrite)
    estimator = _new(algorithm or ALGORITHM, parse_parameters(parameters))
    with connect(scheduler, workers, tls) as client:
        estimator.client = client
        curves = learning_curves(
            estimator,
            x,
            y,
            (eval_x, eval_y),
            strategies=strategies,
            n_repeats=repeats,
            target_error=target_error,
            max_labels=max_labels,
            verbose=int(sys.stdout.isatty()),
            **_given(choosing),
        )
    if json is not None:
        _write_curves(json, curves)
    print_curves(curves, target_error)
    if plot is not None:
        plot_curves(curves, plot, target_error=target_error)


def _write_curves(path: str, curves: dict[str, list]) -> None:
    import json

    from distboost.io.publishing import publish

    found = {
        strategy: [
            {
                "n_labelled": curve.n_labelled.tolist(),
                "error": curve.error.tolist(),
                "seconds": curve.seconds.tolist(),
                "outcome": curve.outcome,
            }
            for curve in repeats
        ]
        for strategy, repeats in curves.items()
    }
    publish(path, json.dumps(found, indent=1).encode())
