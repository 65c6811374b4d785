"""Options and functions that the commands share: paths, parameters, the cluster, and the display of errors."""

from __future__ import annotations

import ast
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import click

from distboost.cli.help import NOT_ON_THE_COMMAND_LINE, WithExample, asked_algorithm, write_parameters
from distboost.cli.interrupt import end_quietly, quiet_interrupts
from distboost.io.files import check_folder
from distboost.io.output import all_is_written
from distboost.registry import ALGORITHMS

EXPECTED = (ValueError, TypeError, OSError, ImportError, RuntimeError)  # every DistboostError is one of these


STORAGE_VARIABLE = "DISTBOOST_STORAGE_OPTIONS"

INTERRUPTED = 130  # exit code after Ctrl-C, as in shells

ALGORITHM = "gd-mcboost"  # what is trained without --algorithm


class Command(WithExample):
    """A command that shows an error as one line, without --debug.

    Attributes
    ----------
    defaults : mapping
        The defaults of --set that differ from those of the estimators.
    """

    defaults: Mapping[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if any(isinstance(param.type, PathOrUrl) for param in self.params):
            self.params.append(_storage_option())
        self.params.append(
            click.Option(
                ["--debug"], is_flag=True, expose_value=False, callback=_set_debug, help="Show tracebacks."
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the algorithm for the help, which is shown before options behind it are read."""
        if self._takes_parameters and not set(ctx.help_option_names).isdisjoint(args):
            ctx.meta["algorithm"] = asked_algorithm(self, ctx, args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the parameters for --set at the end of the help."""
        super().format_epilog(ctx, formatter)
        if self._takes_parameters:
            write_parameters(formatter, ctx.command_path, ctx.meta.get("algorithm"), self.defaults)

    @property
    def _takes_parameters(self) -> bool:
        return {"algorithm", "parameters"} <= {option.name for option in self.params}

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a distboost error becomes a message without a traceback."""
        from distboost.errors import DistboostError

        with warnings.catch_warnings():
            # Warnings are for the user: without the source line that Python adds.
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            try:
                return super().invoke(ctx)
            except click.exceptions.Exit:
                raise
            except (DistboostError, *EXPECTED) as error:
                if ctx.meta.get("debug"):
                    raise
                raise click.ClickException(_said(error) or type(error).__name__) from error


class Group(WithExample, click.Group):
    """A group of such commands and of further groups."""

    command_class = Command
    group_class = type

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line; whatever it says can be written, and after Ctrl-C nobody else says anything."""
        with quiet_interrupts(), all_is_written():
            return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command of the group; Ctrl-C ends it with a short message, also while its options are read."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            end_quietly()
            click.echo("\nAborted!", err=True)
            ctx.exit(INTERRUPTED)


def _storage_option() -> click.Option:
    return click.Option(
        ["--storage-options"],
        multiple=True,
        metavar="NAME=VALUE",
        expose_value=False,
        callback=_use_storage_options,
        help="An option of the file systems of all URLs, such as anon=true, or a JSON object of several. May be repeated. Others "
        f"may see the arguments of a command: pass secrets as a JSON object in the variable {STORAGE_VARIABLE}.",
    )


def _use_storage_options(ctx: click.Context, _: click.Parameter, texts: Any) -> None:
    """Open all URLs of the command with these options."""
    from distboost.io.options import storage_options

    found: dict[str, Any] = {}
    for text in filter(None, [os.environ.get(STORAGE_VARIABLE), *texts]):
        name, equals, value = text.partition("=")
        if text.lstrip().startswith("{"):
            found |= _json_object(text)
        elif equals and name:
            found[name] = parsed_value(value)
        else:
            raise click.BadParameter("one of them is neither of the form NAME=VALUE nor a JSON object.")
    if found:
        ctx.with_resource(storage_options(found))


def _json_object(text: str) -> dict[str, Any]:
    """Return what a JSON object holds. The error does not quote it: it may have secrets."""
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"one of them begins as a JSON object, but is none: {error}.") from None
    return found


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta["debug"] = value


def _show_warning(message: Warning | str, *_: Any) -> None:
    click.echo(f"Warning: {_said(message)}", err=True)


def _said(message: Any) -> str:
    """Return a message in the command line's words, the remedy in a line of its own. Control characters are escaped."""
    from distboost.cli.words import in_options
    from distboost.errors import DistboostError
    from distboost.io.text import visible

    said = next(iter(getattr(message, "args", ())), message)
    parts = [message.what, message.remedy or ""] if isinstance(message, DistboostError) else [said]
    lines = (" ".join(in_options(getattr(part, "marked", str(part))).split()) for part in parts)
    return "\n".join(visible(line) for line in lines if line)


class PathOrUrl(click.ParamType):  # type: ignore[type-arg]  # generic since Click 8.4
    """A path or URL. Paths become absolute, as workers need not share the working directory."""

    name = "path or URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a URL as it is, a path as an absolute one."""
        text: str = value
        return text if "://" in value or "::" in value else os.path.abspath(os.path.expanduser(value))


class Features(click.ParamType):  # type: ignore[type-arg]
    """Numbers or names of features, with commas between them."""

    name = "0,3 or names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """Return a list of numbers if all are numbers, else of texts."""
        if not isinstance(value, str):
            return list(value)
        parts = [part.strip() for part in value.split(",")]
        return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else parts


def categorical_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that names the features whose values are categories."""
    return click.option(
        "--categorical",
        type=Features(),
        help="Features whose values are categories: numbers or names, such as 0,3.",
    )(function)


def feature_dim_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that names the dimension of the features of a cube."""
    return click.option(
        "--feature-dim",
        metavar="NAME",
        help="Dimension of the features of a cube, such as band; without it, each variable of a group is a feature.",
    )(function)


def cube_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for cubes; the command gets those that were given as one argument, `cube`."""

    @wraps(command)
    def with_cube(*arguments: Any, feature_dim: str | None, nodata: str | None, **options: Any) -> Any:
        given = {"feature_dim": feature_dim, "nodata": None if nodata is None else parsed_value(nodata)}
        cube = {name: value for name, value in given.items() if value is not None}
        return command(*arguments, cube=cube, **options)

    nodata = click.option(
        "--nodata", metavar="LABEL", help="Label of the cells of a cube that have none, such as 0."
    )
    return feature_dim_option(nodata(with_cube))


def path_option(name: str, text: str, required: bool = True) -> Callable[..., Any]:
    """Return an option that takes a path or URL."""
    return click.option(name, type=PathOrUrl(), required=required, help=text)


@dataclass(frozen=True)
class ClusterOptions:
    """The options that say where a command runs.

    Attributes
    ----------
    scheduler : str or None
        The address of a Dask scheduler.
    scheduler_file : str or None
        The path of a file that a Dask scheduler wrote.
    tls : str or None
        The folder of the certificates for the connection to the scheduler.
    workers : int or None
        The number of worker processes to start on this machine.
    wait_workers : int or None
        The number of workers to wait for.
    """

    scheduler: str | None = None
    scheduler_file: str | None = None
    tls: str | None = None
    workers: int | None = None
    wait_workers: int | None = None

    def given(self) -> list[str]:
        """Return the names of the options that were given, as on the command line."""
        return [f"--{name.replace('_', '-')}" for name, value in vars(self).items() if value is not None]


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where a command runs; it gets them as one argument, `cluster`."""

    @wraps(command)
    def with_cluster(*arguments: Any, **options: Any) -> Any:
        cluster = ClusterOptions(**{field.name: options.pop(field.name) for field in fields(ClusterOptions)})
        return command(*arguments, cluster=cluster, **options)

    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the Dask cluster of this scheduler, such as tcp://host:8786 (default: the one that Dask's configuration "
        "names, such as DASK_SCHEDULER_ADDRESS; else in this process).",
    )
    scheduler_file = click.option(
        "--scheduler-file",
        type=click.Path(),
        metavar="FILE",
        help="Run on the cluster of the scheduler that wrote this file ('dask scheduler --scheduler-file FILE').",
    )
    tls = click.option(
        "--tls",
        type=click.Path(exists=True, file_okay=False),
        metavar="FOLDER",
        help="Certificates for a scheduler at tls://..., made by 'distboost cluster certificates': ca.pem, cert.pem, key.pem.",
    )
    workers = click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Run on N worker processes of this machine.",
    )
    wait_workers = click.option(
        "--wait-workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Begin when N workers of the cluster can take work; an error after 10 minutes.",
    )
    return scheduler(scheduler_file(wait_workers(tls(workers(with_cluster)))))


def algorithm_option(text: str = "What to train.", **how: Any) -> Callable[..., Any]:
    """Return the option --algorithm."""
    how = {"default": ALGORITHM} | how
    return click.option("--algorithm", type=click.Choice(ALGORITHMS), metavar="NAME", help=text, **how)


def parameters_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --set, whose values `parse_parameters` reads."""
    return click.option(
        "--set",
        "parameters",
        multiple=True,
        metavar="NAME=VALUE",
        help="A parameter, such as n_estimators=200 or leaf=codeword. May be repeated; the last value of a name counts.",
    )(command)


def parse_parameters(texts: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters given as name=value. The value is JSON, else a Python literal, else text."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--set {text!r} is not of the form name=value.")
        found[name] = parsed_value(value)
    return found


def parsed_value(text: str) -> Any:
    """Return what a text stands for: JSON, "none" in any case, else a Python literal, else the text itself."""
    if text.lower() == "none":
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text


def with_parameters(estimator: Any, parameters: dict[str, Any]) -> Any:
    """Set parameters of an estimator; raise if one is unknown or invalid."""
    check_known(estimator, parameters, "--set")
    estimator.set_params(**parameters).validate()
    return estimator


def check_known(estimator: Any, names: Iterable[str], option: str) -> None:
    """Raise if one of the names that an option gives is no parameter of the estimator."""
    known = [name for name in estimator.get_params(deep=False) if name not in NOT_ON_THE_COMMAND_LINE]
    for name in names:
        if name not in known:
            raise click.ClickException(
                f"unknown parameter {name!r} in {option}. Valid are: {', '.join(known)}."
            )


def memory_limit_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --memory-limit, which `with_memory_limit` adds to the parameters of an estimator."""
    return click.option(
        "--memory-limit",
        metavar="BYTES",
        help="Memory that each process may use, libraries included, such as 2GB.",
    )(command)


def with_memory_limit(parameters: dict[str, Any], limit: str | None) -> dict[str, Any]:
    """Return the parameters of --set with that of --memory-limit; raise if the limit is given twice."""
    if limit is None:
        return parameters
    if "memory_limit" in parameters:
        raise click.UsageError(
            "The memory limit is given twice: by --memory-limit and by --set memory_limit=..."
        )
    return {**parameters, "memory_limit": limit}


def overwrite_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --overwrite, for `check_writable`."""
    return click.option("--overwrite", is_flag=True, help="Replace existing files.")(command)


def check_writable(path: str, overwrite: bool, or_else: str = "") -> None:
    """Raise an error early, before hours of work, if a file cannot be written, or exists and must not be replaced."""
    check_folder(path)
    from distboost.io.storage import exists

    if not overwrite and exists(path):
        raise click.ClickException(
            f"there is a file at {path} already: choose another place, or add --overwrite to replace it{or_else}."
        )


class _Echo(logging.Handler):
    """Prints log messages to the stderr of the moment, which a test or a caller may replace."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(_said(self.format(record)), err=True)


def show_log(name: str) -> None:
    """Show the messages of a logger of the library."""
    log = logging.getLogger(name)
    if not any(isinstance(handler, _Echo) for handler in log.handlers):
        log.addHandler(_Echo())
    log.setLevel(logging.INFO)


@contextmanager
def log_shown(name: str) -> Iterator[None]:
    """Show the messages of a logger of the library within the context."""
    log = logging.getLogger(name)
    handlers, level = log.handlers.copy(), log.level
    show_log(name)
    try:
        yield
    finally:
        log.handlers[:] = handlers
        log.setLevel(level)
