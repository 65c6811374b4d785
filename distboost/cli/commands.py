"""The command line's entry point, and the commands that fit into a screen."""

from __future__ import annotations

import os
from typing import Any

import click

import distboost
from distboost.cli.active import active
from distboost.cli.cluster import cluster
from distboost.cli.compiling import compile_
from distboost.cli.options import (
    ClusterOptions,
    Group,
    PathOrUrl,
    algorithm_option,
    categorical_option,
    check_writable,
    cluster_options,
    cube_options,
    feature_dim_option,
    memory_limit_option,
    overwrite_option,
    parse_parameters,
    path_option,
    show_log,
    with_memory_limit,
    with_parameters,
)
from distboost.cli.selection import cross_validate, search
from distboost.cli.train import train
from distboost.process import end_promptly


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    example="""
distboost train --x data.zarr/x --y data.zarr/y --model model.dboost
distboost evaluate --model model.dboost --x data.zarr/x --y data.zarr/y
""",
)
@click.version_option(distboost.__version__, prog_name="distboost")
def main() -> None:
    """Multiclass boosting on zarr arrays, in this process or on a Dask cluster.

    Arrays are given by path or URL, such as data.zarr/x or s3://bucket/data.zarr/x.
    """
    end_promptly()


main.add_command(active)
main.add_command(cluster)
main.add_command(compile_)
main.add_command(cross_validate)
main.add_command(search)
main.add_command(train)


@main.command(example="distboost predict --model model.dboost --x data.zarr/x --out labels.zarr")
@path_option("--model", "Model file, or checkpoint.")
@path_option("--x", "Features, (rows, features).")
@path_option("--out", "Zarr array to write: one label per row, or one probability per row and class.")
@feature_dim_option
@click.option("--proba", is_flag=True, help="Write class probabilities.")
@click.option(
    "--overwrite", is_flag=True, help="Replace the array at --out, or the remains of another prediction."
)
@cluster_options
def predict(
    *,
    model: str,
    x: str,
    out: str,
    feature_dim: str | None,
    proba: bool,
    overwrite: bool,
    cluster: ClusterOptions,
) -> None:
    """Predict an array into another one, chunk by chunk.

    The array at --out cannot be opened before it is complete. The same command resumes an interrupted prediction.
    """
    from distboost.cli.connection import connect
    from distboost.estimators.factory import load
    from distboost.estimators.validation import check_names
    from distboost.estimators.writing import write_predictions

    show_log("distboost.prediction")  # says where it continues
    estimator = load(model).set_params(feature_dim=feature_dim)
    check_names(estimator, x)
    with connect(cluster) as client:
        array = write_predictions(
            estimator,
            x,
            out,
            proba=proba,
            overwrite=overwrite,
            client=client,
            verbose=1,
        )
    shape = array.shape[1:] if proba and array.ndim > 2 else array.shape[:1] if proba else array.shape
    n = " x ".join(map(str, shape))
    click.echo(f"{n} {'rows of probabilities' if proba else 'labels'} in {out}")


@main.command(
    example="""
distboost evaluate --model model.dboost --x data.zarr/x --y data.zarr/y \\
    --report report.html
"""
)
@path_option("--model", "Model file, or checkpoint.")
@path_option("--x", "Features, (rows, features).")
@path_option("--y", "True labels, (rows,).")
@path_option("--sample-weight", "Weights of the rows, (rows,).", required=False)
@path_option("--report", "Self-contained HTML page to write, with all metrics and charts.", required=False)
@path_option(
    "--events",
    "Log of the model's training, of 'distboost train --events': the report shows times and memory from it.",
    required=False,
)
@click.option("--json", "as_json", is_flag=True, help="Print all metrics of distboost.evaluate as JSON.")
@overwrite_option
@cube_options
@cluster_options
def evaluate(
    *,
    model: str,
    x: str,
    y: str,
    sample_weight: str | None,
    report: str | None,
    events: str | None,
    as_json: bool,
    overwrite: bool,
    cube: dict[str, Any],
    cluster: ClusterOptions,
) -> None:
    """Compare a model's predictions with true labels."""
    from distboost.cli.connection import connect
    from distboost.cli.show import print_evaluation
    from distboost.estimators.evaluating import confusion
    from distboost.estimators.evaluating import evaluate as judge
    from distboost.estimators.factory import load
    from distboost.io.progress import on_stderr
    from distboost.reporting.report import report as write

    if report is not None:
        check_writable(report, overwrite)
    elif events is not None:
        raise click.UsageError("--events is for the page of --report: pass --report, too.")
    estimator = load(model).set_params(**cube)
    with connect(cluster) as client, on_stderr():
        estimator.client, verbose = client, 1
        if report is not None:
            title = f"{os.path.basename(model)} on {os.path.basename(x)}"
            found = write(estimator, x, y, report, sample_weight, title=title, events=events, verbose=verbose)
        elif as_json:
            found = judge(estimator, x, y, sample_weight, verbose=verbose)
        else:
            return print_evaluation(confusion(estimator, x, y, sample_weight, verbose=verbose))
    if as_json:
        click.echo(found.to_json())
    else:
        print_evaluation(found.found)
    if report is not None:
        click.echo(f"report in {report}", err=as_json)


@main.command(
    "bin",
    example="""
distboost bin --x data.zarr/x --y data.zarr/y --out binned.zarr
distboost train --x binned.zarr --model model.dboost
""",
)
@path_option("--x", "Features, (rows, features).")
@path_option("--y", "Labels, (rows,).")
@path_option("--sample-weight", "Weights of the rows, (rows,).", required=False)
@path_option("--out", "Binned store to write; pass it as --x to 'distboost train'.")
@click.option(
    "--max-bins",
    type=click.IntRange(2, 255),
    default=255,
    help="Maximum number of bins per feature.",
)
@click.option("--random-state", type=int, default=0, help="Seed of the sample that sets bin edges.")
@memory_limit_option
@categorical_option
@click.option("--keep-values", is_flag=True, help="Store the values too: REBEL's similarities need them.")
@cube_options
@cluster_options
def bin_rows(
    *,
    x: str,
    y: str,
    sample_weight: str | None,
    out: str,
    max_bins: int,
    random_state: int,
    memory_limit: str | None,
    categorical: list[int | str] | None,
    keep_values: bool,
    cube: dict[str, Any],
    cluster: ClusterOptions,
) -> None:
    """Bin once, train many times.

    A complete store of the same data is left as it is. The same command resumes an interrupted one.
    """
    from distboost.cli.connection import connect
    from distboost.data.store.store import BinnedStore
    from distboost.training.binning import bin

    show_log("distboost.data")
    with connect(cluster) as client:
        bin(
            x,
            y,
            out,
            sample_weight=sample_weight,
            max_bins=max_bins,
            random_state=random_state,
            categorical_features="from_dtype" if categorical is None else categorical,
            memory_limit=memory_limit,
            keep_values=keep_values,
            **cube,
            verbose=1,
            client=client,
        )
    store = BinnedStore.open(out)
    click.echo(f"{store.n_rows} rows of {store.n_features} features binned in {out}")


@main.command(
    example="""
distboost plan --rows 10000000 --features 50 --classes 20 --memory-limit 8GB
"""
)
@algorithm_option()
@path_option(
    "--x", "Features, (rows, features), or a binned store: only their sizes are read.", required=False
)
@click.option("--rows", type=click.IntRange(min=1), help="Number of rows, if there is no array yet.")
@click.option("--features", type=click.IntRange(min=1), help="Number of features, if there is no array yet.")
@click.option(
    "--classes", type=click.IntRange(min=2), help="Number of classes, unless --x is a binned store."
)
@memory_limit_option
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Dask workers; without it, one process."
)
@click.option(
    "--threads", type=click.IntRange(min=1), metavar="N", help="Threads of the process, or of each worker."
)
@click.option("--weighted", is_flag=True, help="Plan for sample weights.")
@click.option(
    "--set", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter, such as max_depth=4."
)
def plan(
    *,
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
    """Show how much memory a training run would use, and what would stream from disk."""
    from distboost.cli.show import print_plan
    from distboost.estimators.factory import estimator
    from distboost.estimators.plan import plan
    from distboost.io.storage import local_path
    from distboost.training.staging import sizes

    known = None  # the classes of a binned store
    if x is not None:
        if rows is not None or features is not None:
            raise click.UsageError("--x gives the sizes: leave out --rows and --features, or --x.")
        rows, features, known = sizes(x)
        if None not in (classes, known) and classes != known:
            raise click.UsageError(
                f"the store at {x} has {known} classes, not {classes}: leave --classes out."
            )
        classes = classes or known
    if rows is None or features is None:
        raise click.UsageError("Pass an array with --x, or its sizes with --rows and --features.")
    if classes is None:
        raise click.UsageError(
            "Missing option '--classes': without labels, the number of classes is unknown."
        )
    given = with_memory_limit(parse_parameters(parameters), memory_limit)
    model = with_parameters(estimator(algorithm)(), given)
    remote = None if x is None or known is None else local_path(x) is None
    found = plan(
        model,
        rows,
        features,
        classes,
        n_workers=workers,
        n_threads=threads,
        weighted=weighted,
        remote=remote,
    )
    print_plan(found)


@main.command(example="distboost inspect model.dboost")
@click.argument("model", type=PathOrUrl())
def inspect(model: str) -> None:
    """Show the content of a model file or a checkpoint."""
    from distboost.cli.show import print_model
    from distboost.estimators.factory import load

    print_model(load(model), model)
