"""The command that measures learning curves where all labels are known."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from distboost.cli.active_options import (
    EXTRA_TREES,
    OWN_DEFAULTS,
    STRATEGIES,
    algorithm_option,
    given_options,
    new_estimator,
    query_options,
)
from distboost.cli.options import (
    ClusterOptions,
    Command,
    check_writable,
    cluster_options,
    overwrite_option,
    parameters_option,
    parse_parameters,
    path_option,
)
from distboost.io.packages import no_matplotlib


def _strategies(ctx: click.Context, option: click.Parameter, value: str) -> list[str]:
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name not in STRATEGIES or names.count(name) > 1:
            raise click.BadParameter(
                f"{name!r} in {value!r}: pass some of {', '.join(STRATEGIES)}, each once, separated by commas."
            )
    return names


def _picture(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Raise an error early, before hours of work, if the picture cannot be drawn."""
    from importlib.util import find_spec

    if value is None:
        return None
    if os.path.splitext(value)[1] not in (".png", ".svg", ".pdf"):
        raise click.BadParameter(f"{value} is not a .png, .svg or .pdf file.")
    if find_spec("matplotlib") is None:
        raise click.BadParameter(str(no_matplotlib()))
    return value


@click.command(
    cls=Command,
    example="""
distboost active simulate --x data.zarr/x --y data.zarr/y \\
    --eval-x test.zarr/x --eval-y test.zarr/y --repeats 3 --max-labels 200
""",
)
@path_option("--x", "The pool, (rows, features).")
@path_option("--y", "Labels of the pool, (rows,).")
@path_option("--eval-x", "Features of rows to measure the error on.")
@path_option("--eval-y", "Labels of those rows.")
@algorithm_option
@click.option(
    "--strategies",
    default="margin,random",
    metavar="A,B",
    callback=_strategies,
    help=f"Of: {', '.join(STRATEGIES)}.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=10,
    help="Runs of each strategy, each with its own seed.",
)
@click.option("--max-labels", type=click.IntRange(min=1), help="Stop each run at this many labels.")
@click.option("--target-error", type=float, help="Stop each run at this error, a fraction such as 0.05.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    help="Runs measured at the same time, each in a process of this machine.",
)
@query_options
@parameters_option
@path_option(
    "--json", "JSON file to write: the curves, their seeds, all settings, and versions.", required=False
)
@click.option(
    "--plot", type=click.Path(), callback=_picture, help="Picture file to write: .png, .svg or .pdf."
)
@overwrite_option
@cluster_options
def simulate(
    *,
    x: str,
    y: str,
    eval_x: str,
    eval_y: str,
    algorithm: str | None,
    final: str | None,
    strategies: list[str],
    repeats: int,
    max_labels: int | None,
    target_error: float | None,
    jobs: int,
    parameters: tuple[str, ...],
    json: str | None,
    plot: str | None,
    overwrite: bool,
    cluster: ClusterOptions,
    **choosing: Any,
) -> None:
    """Measure how the error falls with the number of labels, on data whose labels are known."""
    from distboost.active import learning_curves, plot_curves
    from distboost.cli.connection import connect
    from distboost.cli.show_active import print_curves

    plot = None if plot is None else os.path.abspath(plot)
    for path in filter(None, (json, plot)):
        check_writable(path, overwrite)
    estimator = new_estimator(algorithm or EXTRA_TREES, parse_parameters(parameters))
    model = None if final is None else new_estimator(final, {})
    stops: dict[str, Any] = {"target_error": target_error, "max_labels": max_labels}
    with connect(cluster) as client:
        curves = learning_curves(
            estimator,
            x,
            y,
            (eval_x, eval_y),
            strategies=strategies,
            n_repeats=repeats,
            verbose=int(sys.stdout.isatty()),
            client=client,
            jobs=jobs,
            final=model,
            **stops,
            **(OWN_DEFAULTS | given_options(choosing)),
        )
    if json is not None:
        _write_curves(json, curves, {"x": x, "y": y, "eval_x": eval_x, "eval_y": eval_y, **stops})
    print_curves(curves, target_error)
    if plot is not None:
        plot_curves(curves, plot, target_error=target_error)


def _write_curves(path: str, curves: dict[str, list[Any]], settings: dict[str, Any]) -> None:
    """Write the curves by strategy, with their seeds, and beside them all settings and versions."""
    import json
    import platform
    from importlib.metadata import version

    import distboost
    from distboost.io.files import publish

    found: dict[str, Any] = {
        strategy: [
            {
                "seed": curve.settings["random_state"],
                "n_labelled": curve.n_labelled.tolist(),
                "error": curve.error.tolist(),
                "seconds": curve.seconds.tolist(),
                "outcome": curve.outcome,
            }
            for curve in repeats
        ]
        for strategy, repeats in curves.items()
    }
    common = next(iter(curves.values()))[0].settings.items()
    own = ("strategy", "random_state")
    found["settings"] = {name: value for name, value in common if name not in own} | settings
    found["versions"] = {
        "distboost": distboost.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scikit-learn")},
    }
    publish(path, json.dumps(found, indent=1).encode())
