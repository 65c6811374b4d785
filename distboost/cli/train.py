"""The command that trains a model, or resumes an interrupted training."""

from __future__ import annotations

import time
from typing import Any

import click

from distboost.cli.options import (
    ALGORITHM,
    ClusterOptions,
    Command,
    PathOrUrl,
    algorithm_option,
    categorical_option,
    check_writable,
    cluster_options,
    cube_options,
    parameters_option,
    parse_parameters,
    path_option,
    show_log,
    with_parameters,
)
from distboost.io.files import check_folder


class _Train(Command):
    defaults = {"checkpoint": "MODEL.checkpoint", "verbose": 1}  # noqa: RUF012 (a mapping that nothing changes)


@click.command(
    cls=_Train,
    example="""
distboost train --x data.zarr/x --y data.zarr/y --model model.dboost \\
    --set n_estimators=200
""",
)
@algorithm_option(default=None, show_default=f"{ALGORITHM}; with --resume, that of the model")
@path_option("--x", "Features, (rows, features); or a store that 'distboost bin' wrote, which needs no --y.")
@path_option("--y", "Labels, (rows,).", required=False)
@path_option("--model", "Model file to write.")
@path_option("--sample-weight", "Weights of the rows, (rows,).", required=False)
@path_option(
    "--eval-x",
    "Features of rows to evaluate after each round; or a binned store, without --eval-y.",
    required=False,
)
@path_option("--eval-y", "Labels of those rows.", required=False)
@click.option(
    "--eval",
    "evaluations",
    multiple=True,
    metavar="NAME=X,Y[,WEIGHTS]",
    help="Rows to evaluate after each round, under a name, or NAME=STORE. May be repeated; the last set stops early.",
)
@path_option(
    "--events",
    "File of JSON lines to add a line to when the rounds begin, after each round and at the end.",
    required=False,
)
@categorical_option
@cube_options
@cluster_options
@parameters_option
@click.option(
    "--resume",
    is_flag=True,
    help="Resume from MODEL.checkpoint, which an interrupted training leaves, or else from the model file.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Train from scratch; replace the model file and the rounds of a checkpoint.",
)
def train(
    *,
    algorithm: str | None,
    x: str,
    y: str | None,
    model: str,
    sample_weight: str | None,
    eval_x: str | None,
    eval_y: str | None,
    evaluations: tuple[str, ...],
    events: str | None,
    categorical: list[Any] | None,
    cube: dict[str, Any],
    cluster: ClusterOptions,
    parameters: tuple[str, ...],
    resume: bool,
    overwrite: bool,
) -> None:
    """Train a model and write it to a file."""
    eval_set = _eval_set(eval_x, eval_y, evaluations)
    if resume and overwrite:
        raise click.UsageError(
            "--resume continues from an earlier run, --overwrite replaces it: pass the one or the other."
        )
    check_writable(model, overwrite or resume, ", or --resume to continue its training")
    named = {} if categorical is None else {"categorical_features": categorical}
    given = parse_parameters(parameters) | named | cube
    estimator = _estimator(algorithm, model, given, resume, overwrite)
    if events is not None:
        from distboost.training.events import EventLog

        check_folder(events)
        estimator.set_params(callbacks=[EventLog(events)])
    from distboost.cli.connection import connect
    from distboost.cli.show import digest
    from distboost.model.checkpoint import is_checkpoint, remove

    show_log("distboost")  # says where training runs
    started = time.perf_counter()
    try:
        with connect(cluster) as client:
            estimator.client = client
            estimator.fit(x, y, sample_weight=sample_weight, eval_set=eval_set, resume=resume)
    except KeyboardInterrupt:
        if estimator.checkpoint is not None and is_checkpoint(estimator.checkpoint):
            click.echo(
                f"Interrupted. The same command with --resume resumes from {estimator.checkpoint}.", err=True
            )
        raise
    estimator.save(model)
    if not resume or estimator.checkpoint == _checkpoint(model):
        remove(_checkpoint(model))
    click.echo(_outcome(estimator, time.perf_counter() - started))
    click.echo(f"{model} sha256 {digest(model)}")


def _eval_set(eval_x: str | None, eval_y: str | None, evaluations: tuple[str, ...]) -> Any:
    """Return the `eval_set` of `fit` that the options name."""
    if eval_x is None and eval_y is not None:
        raise click.UsageError("--eval-y needs --eval-x, the rows that it labels.")
    if not evaluations:
        return eval_x if eval_y is None else (eval_x, eval_y)
    if eval_x is not None:
        raise click.UsageError("pass either --eval-x and --eval-y, or --eval NAME=X,Y for each set.")
    found = {}
    for text in evaluations:
        name, _, places = text.partition("=")
        parts = places.split(",")
        if not name or len(parts) > 3 or not all(parts):
            raise click.UsageError(
                f"--eval {text!r} is not of the form NAME=X,Y or NAME=X,Y,WEIGHTS or NAME=STORE."
            )
        if name in found:
            raise click.UsageError(f"--eval gives two sets the name {name!r}.")
        given = [PathOrUrl().convert(part, None, None) for part in parts]
        found[name] = given[0] if len(given) == 1 else tuple(given)
    return found


def _estimator(
    algorithm: str | None, model: str, parameters: dict[str, Any], resume: bool, overwrite: bool
) -> Any:
    """Return the estimator to fit: a new one, or the one to resume."""
    from distboost.estimators import factory

    parameters = {"checkpoint": _checkpoint(model), "verbose": 1, **parameters}
    checkpoint = parameters["checkpoint"]
    if resume:
        return _earlier(algorithm, model, checkpoint, parameters)
    estimator = with_parameters(factory.estimator(algorithm or ALGORITHM)(), parameters)
    for place in {_checkpoint(model), checkpoint} - {None} if not overwrite else ():
        _check_no_rounds(place)
    return estimator


def _earlier(algorithm: str | None, model: str, checkpoint: str | None, parameters: dict[str, Any]) -> Any:
    """Load the checkpoint, or else the model file; raise if its algorithm or parameters differ."""
    from distboost.estimators.factory import load
    from distboost.estimators.resuming import changed_parameter
    from distboost.model.checkpoint import is_checkpoint

    place = checkpoint if checkpoint is not None and is_checkpoint(checkpoint) else model
    try:
        estimator = load(place)
    except FileNotFoundError as error:
        raise click.ClickException(
            f"there is nothing to resume from: no model at {model}, and no complete checkpoint at {checkpoint}. A run that "
            "was interrupted before its first checkpoint starts again without --resume."
        ) from error
    if algorithm not in (None, estimator.algorithm_name):
        raise click.UsageError(f"{place} is a model of {estimator.algorithm_name}, not of {algorithm}.")
    changed = changed_parameter(with_parameters(estimator, parameters), estimator.learned_)
    if changed is not None:
        name, theirs, mine = changed
        raise click.ClickException(
            f"{place} was made with {name}={theirs!r}, not {mine!r}. Leave --set {name}=... out to resume from it, or train "
            "from scratch with --overwrite instead of --resume."
        )
    return estimator


def _check_no_rounds(checkpoint: str) -> None:
    """Raise if a checkpoint would be replaced."""
    from distboost.model.checkpoint import rounds_at

    rounds = rounds_at(checkpoint)
    if rounds:
        raise click.ClickException(
            f"{checkpoint} has {rounds} rounds of an earlier run. Add --resume to continue from them, or --overwrite to "
            "train from scratch and replace them."
        )


def _checkpoint(model: str) -> str:
    return f"{model}.checkpoint"


def _outcome(estimator: Any, seconds: float) -> str:
    rounds = f"{estimator.n_iter_} rounds in {seconds:.1f} s"
    if estimator.outcome_ != "rounds":
        rounds += f" (ended by: {estimator.outcome_})"
    if not estimator.n_iter_:
        return rounds
    text = f"{rounds}: loss {estimator.train_loss_[-1]:.6g}, training error {estimator.train_error_[-1]:.2%}"
    for name, metrics in getattr(estimator, "eval_history_", {}).items():
        best = {metric: values[estimator.best_iteration_ - 1] for metric, values in metrics.items()}
        text += f", {'evaluation' if name == 'eval' else name} error {best.pop('error'):.2%}"
        del best["loss"]
        text += "".join(f", {metric} {value:.6g}" for metric, value in best.items())
    if estimator.best_iteration_ != estimator.n_iter_:
        text += f" after round {estimator.best_iteration_}, the best one, with which the model ends"
    return text
