"""The commands that judge an algorithm by cross-validation, and that search for its parameters."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from distboost.cli.options import (
    ClusterOptions,
    Command,
    algorithm_option,
    categorical_option,
    check_known,
    check_writable,
    cluster_options,
    cube_options,
    memory_limit_option,
    overwrite_option,
    parameters_option,
    parse_parameters,
    parsed_value,
    path_option,
    with_memory_limit,
    with_parameters,
)


def _data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is trained on which rows: the command gets an `estimator`, and the `data` as arguments."""

    @wraps(command)
    def with_data(
        algorithm: str,
        parameters: tuple[str, ...],
        memory_limit: str | None,
        categorical: list[Any] | None,
        cube: dict[str, Any],
        x: str,
        **options: Any,
    ) -> Any:
        from distboost.estimators import factory

        given = with_memory_limit(parse_parameters(parameters), memory_limit) | cube
        if categorical is not None:
            given["categorical_features"] = categorical
        estimator = with_parameters(factory.estimator(algorithm)(), given)
        names = ("y", "sample_weight", "groups", "tile_size", "folds", "random_state")
        data = {"X": x, **{name: options.pop(name) for name in names}}
        if data["tile_size"] is not None and data["groups"] is None:
            data["groups"] = "tiles"
        return command(estimator=estimator, data=data, **options)

    decorated: Callable[..., Any] = with_data
    for option in (
        cluster_options,
        parameters_option,
        memory_limit_option,
        categorical_option,
        cube_options,
        click.option(
            "--random-state",
            type=click.IntRange(min=0),
            default=0,
            help="Seed of the folds, and of settings that are drawn.",
        ),
        click.option(
            "--folds",
            type=click.IntRange(2, 255),
            default=5,
            help="Each is left out of a training run, and judges it.",
        ),
        click.option(
            "--tile-size",
            type=click.IntRange(min=1),
            metavar="CELLS",
            help="Groups are tiles of a cube, of so many cells along each dimension.",
        ),
        path_option("--groups", "Groups of the rows, (rows,): each is in one fold.", required=False),
        path_option("--sample-weight", "Weights of the rows, (rows,).", required=False),
        path_option("--y", "Labels, (rows,).", required=False),
        path_option(
            "--x", "Features, (rows, features); or a store that 'distboost bin' wrote, which needs no --y."
        ),
        algorithm_option(),
    ):
        decorated = option(decorated)
    return decorated


def _names(ctx: click.Context, option: click.Parameter, value: str) -> list[str]:
    return [name.strip() for name in value.split(",")]


@click.command(
    "cross-validate",
    cls=Command,
    example="""
distboost cross-validate --x data.zarr/x --y data.zarr/y --folds 3 \\
    --set n_estimators=50
""",
)
@_data_options
@click.option(
    "--metrics",
    default="accuracy,log_loss",
    metavar="A,B",
    callback=_names,
    help="Names of metrics of 'distboost evaluate --json' that are numbers.",
)
@click.option(
    "--curves", is_flag=True, help="Judge after each round, too, and say after which the mean error is least."
)
@click.option("--json", "as_json", is_flag=True, help="Print the results of each fold as JSON.")
def cross_validate(
    *,
    estimator: Any,
    data: dict[str, Any],
    metrics: list[str],
    curves: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """Judge an algorithm by rows that it has not learned from.

    All rows are binned once. Each fold is left out of one run, and judges it.
    """
    from distboost.cli.connection import connect
    from distboost.cli.show_selection import print_cross_validation
    from distboost.io.progress import on_stderr
    from distboost.selection import validation

    with connect(cluster) as client, on_stderr():
        estimator.client = client
        found = validation.cross_validate(estimator, metrics=metrics, return_curves=curves, verbose=1, **data)
    if as_json:
        click.echo(found.to_json())
    else:
        print_cross_validation(found)


@click.command(
    cls=Command,
    example="""
distboost search --x data.zarr/x --y data.zarr/y --set n_estimators=27 \\
    --space max_depth=3,6 --space learning_rate=0.3,1 --halving 3
""",
)
@_data_options
@click.option(
    "--space",
    "spaces",
    multiple=True,
    required=True,
    metavar="NAME=A,B,...",
    help="Values of a parameter to try, such as max_depth=2,4,6. May be repeated: all combinations are tried. Or a JSON "
    "object of lists by name, or a JSON list of such objects.",
)
@click.option(
    "--scoring",
    default="accuracy",
    help="Metric to maximise; losses have neg_ before their names, such as neg_log_loss.",
)
@click.option("--n-iter", type=click.IntRange(min=1), metavar="N", help="Try N settings, drawn at random.")
@click.option(
    "--halving",
    type=click.IntRange(min=2),
    metavar="N",
    help="Train all settings for few rounds; the best of N goes on with N times as many, and so on.",
)
@path_option(
    "--checkpoint",
    "Folder for results of finished runs: the same command continues after these.",
    required=False,
)
@path_option("--model", "Model file to write: the best setting, trained on all rows.", required=False)
@overwrite_option
@click.option("--json", "as_json", is_flag=True, help="Print the results of all settings as JSON.")
def search(
    *,
    estimator: Any,
    data: dict[str, Any],
    spaces: tuple[str, ...],
    scoring: str,
    n_iter: int | None,
    halving: int | None,
    checkpoint: str | None,
    model: str | None,
    overwrite: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """Find the parameters whose models are best on rows that they have not learned from.

    Each setting is judged by cross-validation on the same folds. All rows are binned once. --set gives parameters that all
    settings share.
    """
    from distboost.cli.connection import connect
    from distboost.cli.show import digest
    from distboost.cli.show_selection import print_search
    from distboost.io.progress import on_stderr
    from distboost.selection.search import search as find

    space = _space(spaces)
    for grid in space:
        check_known(estimator, grid, "--space")
    if model is not None:
        check_writable(model, overwrite)
    with connect(cluster) as client, on_stderr():
        estimator.client = client
        found = find(
            estimator,
            space,
            scoring=scoring,
            n_iter=n_iter,
            halving=halving,
            refit=model is not None,
            checkpoint=checkpoint,
            verbose=1,
            **data,
        )
    if as_json:
        click.echo(found.to_json())
    else:
        print_search(found)
    if model is not None:
        found.best_estimator_.save(model)
        click.echo(f"{model} sha256 {digest(model)}", err=as_json)


def _space(texts: tuple[str, ...]) -> list[dict[str, list[Any]]]:
    """Return the lists of values by name that --space gives: one mapping of them, or those of a JSON text."""
    if texts[0].lstrip().startswith(("{", "[")):
        if len(texts) > 1:
            raise click.UsageError(
                "--space is given as JSON and again: pass one JSON list of objects, or NAME=A,B,... for each parameter."
            )
        return _json_space(texts[0])
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not (equals and name and values) or name.lstrip().startswith(("{", "[")):
            raise click.UsageError(f"--space {text!r} is not of the form NAME=A,B,... .")
        if name in found:
            raise click.UsageError(f"--space gives {name} twice: give all of its values at once.")
        whole = parsed_value(values)
        found[name] = whole if isinstance(whole, list) else [parsed_value(one) for one in values.split(",")]
    return [found]


def _json_space(text: str) -> list[dict[str, list[Any]]]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--space begins as JSON, but is none: {error}.") from None
    grids = found if isinstance(found, list) else [found]
    for grid in grids:
        if not isinstance(grid, dict) or not all(isinstance(values, list) for values in grid.values()):
            raise click.UsageError(
                '--space has a part that is no JSON object of lists, such as {"max_depth": [2, 4]}.'
            )
    return grids
