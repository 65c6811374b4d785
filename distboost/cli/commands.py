"""The commands."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Any

import click

from distboost.cli.active import active
from distboost.cli.options import (
    Group,
    PathOrUrl,
    check_writable,
    cluster_options,
    overwrite_option,
    parameters_option,
    parse_parameters,
    path_option,
    with_parameters,
)
from distboost.registry import ALGORITHMS


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="distboost", prog_name="distboost")
def main() -> None:
    """Multiclass boosting on zarr arrays, in this process or on a Dask cluster.

    Arrays are given by path or URL, such as data.zarr/x or s3://bucket/data.zarr/x.
    """


main.add_command(active)


@main.command()
@click.option(
    "--algorithm", type=click.Choice(ALGORITHMS), help="What to train. With --resume: the model's own."
)
@path_option("--x", "Features, (rows, features); or a store that 'distboost bin' wrote, which needs no --y.")
@path_option("--y", "Labels, (rows,).", required=False)
@path_option("--model", "Model file to write.")
@path_option("--sample-weight", "Weights of the rows, (rows,).", required=False)
@path_option("--eval-x", "Features of rows to measure loss and error on after each round.", required=False)
@path_option("--eval-y", "Labels of those rows.", required=False)
@cluster_options
@parameters_option
@click.option(
    "--resume",
    is_flag=True,
    help="Go on from MODEL.checkpoint, which an interrupted training leaves, or else from the model file.",
)
@click.option(
    "--overwrite", is_flag=True, help="Train anew, and replace the model file, or the rounds of a checkpoint."
)
def train(
    algorithm: str | None,
    x: str,
    y: str | None,
    model: str,
    sample_weight: str | None,
    eval_x: str | None,
    eval_y: str | None,
    scheduler: str | None,
    tls: str | None,
    workers: int | None,
    parameters: tuple[str, ...],
    resume: bool,
    overwrite: bool,
) -> None:
    """Train a model and write it to a file."""
    if (eval_x is None) != (eval_y is None):
        raise click.UsageError("--eval-x and --eval-y go together.")
    if resume and overwrite:
        raise click.UsageError(
            "--resume goes on from what is there, --overwrite replaces it: give the one or the other."
        )
    check_writable(model, overwrite or resume, ", or --resume to go on from it")
    estimator = _estimator(algorithm, model, parse_parameters(parameters), resume, overwrite)
    from distboost.cli.connection import connect
    from distboost.cli.show import digest
    from distboost.model.checkpoint import is_checkpoint, remove

    _tell_where()
    started = time.perf_counter()
    eval_set = None if eval_x is None else (eval_x, eval_y)
    try:
        with connect(scheduler, workers, tls) as client:
            estimator.client = client
            estimator.fit(x, y, sample_weight=sample_weight, eval_set=eval_set, resume=resume)
    except KeyboardInterrupt:
        if estimator.checkpoint is not None and is_checkpoint(estimator.checkpoint):
            click.echo(
                f"Interrupted. The same command with --resume goes on from {estimator.checkpoint}.", err=True
            )
        raise
    estimator.save(model)
    if not resume or estimator.checkpoint == _checkpoint(model):
        remove(_checkpoint(model))
    click.echo(_outcome(estimator, time.perf_counter() - started))
    click.echo(f"{model} sha256 {digest(model)}")


def _estimator(
    algorithm: str | None, model: str, parameters: dict[str, Any], resume: bool, overwrite: bool
) -> Any:
    """The estimator to fit: a new one, or the one to go on with."""
    from distboost.estimators import factory

    parameters = {"checkpoint": _checkpoint(model), "verbose": int(sys.stdout.isatty()), **parameters}
    checkpoint = parameters["checkpoint"]
    if resume:
        return _earlier(algorithm, model, checkpoint, parameters)
    if algorithm is None:
        raise click.UsageError(f"Missing option '--algorithm'. Choose from: {', '.join(ALGORITHMS)}.")
    estimator = with_parameters(factory.estimator(algorithm)(), parameters)
    for place in {_checkpoint(model), checkpoint} - {None} if not overwrite else ():
        _check_no_rounds(place)
    return estimator


def _earlier(algorithm: str | None, model: str, checkpoint: str | None, parameters: dict[str, Any]) -> Any:
    """What a checkpoint holds, or else the model file; raises if it is of other work."""
    from distboost.estimators.factory import load
    from distboost.model.checkpoint import is_checkpoint

    place = checkpoint if checkpoint is not None and is_checkpoint(checkpoint) else model
    estimator = load(place)
    if algorithm not in (None, estimator.algorithm_name):
        raise click.UsageError(f"{place} is a model of {estimator.algorithm_name}, not of {algorithm}.")
    changed = with_parameters(estimator, parameters)._changed_since(estimator)
    if changed is not None:
        name, theirs, mine = changed
        raise click.ClickException(
            f"{place} was made with {name}={theirs!r}, not {mine!r}. Leave --set {name}=... out to go on from it, or train anew "
            "with --overwrite instead of --resume."
        )
    return estimator


def _check_no_rounds(checkpoint: str) -> None:
    """Raises if a checkpoint would be replaced."""
    from distboost.model.checkpoint import rounds_at

    rounds = rounds_at(checkpoint)
    if rounds:
        raise click.ClickException(
            f"{checkpoint} holds {rounds} rounds of an earlier training: add --resume to go on from them, or --overwrite to "
            "train anew and replace them."
        )


def _checkpoint(model: str) -> str:
    return f"{model}.checkpoint"


def _tell_where() -> None:
    """Shows what the core logs: where training runs."""
    _show_log("distboost")


class _Echo(logging.Handler):
    """Prints what is logged, wherever errors go at that time."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


def _show_log(name: str) -> None:
    log = logging.getLogger(name)
    if not any(isinstance(handler, _Echo) for handler in log.handlers):
        log.addHandler(_Echo())
    log.setLevel(logging.INFO)


def _outcome(estimator: Any, seconds: float) -> str:
    rounds = f"{estimator.n_iter_} rounds in {seconds:.1f} s"
    if estimator.outcome_ != "rounds":
        rounds += f" (ended by: {estimator.outcome_})"
    if not estimator.n_iter_:
        return rounds
    text = f"{rounds}: loss {estimator.train_loss_[-1]:.6g}, training error {estimator.train_error_[-1]:.2%}"
    if hasattr(estimator, "eval_error_"):
        text += f", evaluation error {estimator.eval_error_[estimator.best_iteration_ - 1]:.2%}"
        if estimator.best_iteration_ != estimator.n_iter_:
            text += f" after the best round, {estimator.best_iteration_}"
    return text


@main.command()
@path_option("--model", "Model file, or checkpoint.")
@path_option("--x", "Features, (rows, features).")
@path_option("--out", "Zarr array to write: one label per row, or one probability per row and class.")
@click.option("--proba", is_flag=True, help="Write class probabilities.")
@click.option(
    "--overwrite", is_flag=True, help="Replace the array at --out, or what is left of another prediction."
)
@cluster_options
def predict(
    model: str,
    x: str,
    out: str,
    proba: bool,
    overwrite: bool,
    scheduler: str | None,
    tls: str | None,
    workers: int | None,
) -> None:
    """Predict the rows of an array into another, chunk by chunk.

    Nobody can open the array at --out before it is complete. An interrupted prediction is gone on with by the same command.
    """
    from distboost.cli.connection import connect
    from distboost.estimators.factory import load
    from distboost.prediction.streamed import write_predictions

    estimator = load(model)
    with connect(scheduler, workers, tls) as client:
        array = write_predictions(
            estimator,
            x,
            out,
            proba=proba,
            overwrite=overwrite,
            client=client,
            verbose=int(sys.stdout.isatty()),
        )
    click.echo(f"{array.shape[0]} {'rows of probabilities' if proba else 'labels'} in {out}")


@main.command()
@path_option("--model", "Model file, or checkpoint.")
@path_option("--x", "Features, (rows, features).")
@path_option("--y", "True labels, (rows,).")
@path_option("--report", "HTML file to write.", required=False)
@overwrite_option
@cluster_options
def evaluate(
    model: str,
    x: str,
    y: str,
    report: str | None,
    overwrite: bool,
    scheduler: str | None,
    tls: str | None,
    workers: int | None,
) -> None:
    """Compare a model's predictions with true labels."""
    from distboost.cli.connection import connect
    from distboost.cli.show import print_evaluation
    from distboost.estimators.factory import load
    from distboost.prediction.streamed import confusion

    if report is not None:
        check_writable(report, overwrite)
    estimator = load(model)
    with connect(scheduler, workers, tls) as client:
        found = confusion(estimator, x, y, client, verbose=int(sys.stdout.isatty()))
    print_evaluation(found)
    if report is not None:
        from distboost.cli.report import write_report

        write_report(report, estimator, found, f"{os.path.basename(model)} on {os.path.basename(x)}")
        click.echo(f"report in {report}")


def _size(ctx: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """Bytes given as a text such as 2GB."""
    from dask.utils import parse_bytes

    try:
        return None if value is None else parse_bytes(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no size such as 500MB.") from error


@main.command("bin")
@path_option("--x", "Features, (rows, features).")
@path_option("--y", "Labels, (rows,).")
@path_option("--sample-weight", "Weights of the rows, (rows,).", required=False)
@path_option("--out", "Binned store to write; give it as --x to 'distboost train'.")
@click.option(
    "--max-bins", type=click.IntRange(2, 255), default=255, show_default=True, help="Most bins of a feature."
)
@click.option(
    "--random-state", type=int, default=0, show_default=True, help="Seed of the sample that sets bin edges."
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    callback=_size,
    help="Memory that binning may take in each process, such as 500MB.",
)
@click.option("--keep-values", is_flag=True, help="Store the values too: REBEL's similarities need them.")
@cluster_options
def bin_rows(
    x: str,
    y: str,
    sample_weight: str | None,
    out: str,
    max_bins: int,
    random_state: int,
    memory_limit: int | None,
    keep_values: bool,
    scheduler: str | None,
    tls: str | None,
    workers: int | None,
) -> None:
    """Bin once, train many times.

    A store of the same data that is complete is left as it is; one that was interrupted is gone on with.
    """
    from distboost.cli.connection import connect
    from distboost.data.store.store import BinnedStore
    from distboost.training.binning import bin

    _show_log("distboost.data")
    with connect(scheduler, workers, tls) as client:
        bin(
            x,
            y,
            out,
            sample_weight=sample_weight,
            max_bins=max_bins,
            random_state=random_state,
            memory_limit=memory_limit,
            keep_values=keep_values,
            client=client,
        )
    store = BinnedStore.open(out)
    click.echo(f"{store.n_rows} rows of {store.n_features} features binned in {out}")


@main.command()
@click.option("--algorithm", type=click.Choice(ALGORITHMS), required=True, help="What to train.")
@path_option(
    "--x", "Features, (rows, features), or a binned store: only their sizes are read.", required=False
)
@click.option("--rows", type=click.IntRange(min=1), help="Rows, if there is no array yet.")
@click.option("--features", type=click.IntRange(min=1), help="Features, if there is no array yet.")
@click.option("--classes", type=click.IntRange(min=2), help="Classes; a binned store knows them.")
@click.option("--memory-limit", metavar="BYTES", help="Of each process, such as 2GB.")
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Dask workers; without it, one process."
)
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Of the process, or of each worker.")
@click.option("--weighted", is_flag=True, help="There are sample weights.")
@click.option(
    "--set", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter, such as max_depth=4."
)
def plan(
    algorithm: str,
    x: str | None,
    rows: int | None,
    features: int | None,
    classes: int | None,
    memory_limit: str | None,
    workers: int | None,
    threads: int | None,
    weighted: bool,
    parameters: tuple[str, ...],
) -> None:
    """Show what memory a training would take, and what would stream from disk."""
    from distboost.cli.show import print_plan
    from distboost.estimators.factory import estimator
    from distboost.training.staging import plan, sizes

    if x is not None:
        if rows is not None or features is not None:
            raise click.UsageError("--x has its own sizes: leave --rows and --features out, or --x.")
        rows, features, known = sizes(x)
        if None not in (classes, known) and classes != known:
            raise click.UsageError(
                f"the store at {x} has {known} classes, not {classes}: leave --classes out."
            )
        classes = classes or known
    if rows is None or features is None:
        raise click.UsageError("Give an array with --x, or its sizes with --rows and --features.")
    if classes is None:
        raise click.UsageError(
            "Missing option '--classes': how many there are is not known before labels are read."
        )
    given = parse_parameters(parameters)
    if memory_limit is not None and "memory_limit" in given:
        raise click.UsageError("the limit is given twice: by --memory-limit and by --set memory_limit=...")
    model = with_parameters(
        estimator(algorithm)(), {**given, "memory_limit": memory_limit or given.get("memory_limit")}
    )
    print_plan(plan(model, rows, features, classes, n_workers=workers, n_threads=threads, weighted=weighted))


@main.command()
@click.argument("model", type=PathOrUrl())
def inspect(model: str) -> None:
    """Show what is in a model file or a checkpoint."""
    from distboost.cli.show import print_model
    from distboost.estimators.factory import load

    print_model(load(model), model)
