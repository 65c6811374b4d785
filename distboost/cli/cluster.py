"""The commands that start a cluster on this machine, and make certificates for any."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distboost.cli.options import Group
from distboost.cluster.security import CA_FILE, CERTIFICATE_FILE, DAYS, KEY_FILE, tls_security

if TYPE_CHECKING:
    from distboost.cluster.local import RunningCluster

INTERVAL = 0.5  # seconds between two looks at the processes

_folder = click.Path(exists=True, file_okay=False, writable=True, resolve_path=True, path_type=Path)


@click.group(
    cls=Group,
    example="""
distboost cluster local --workers 4
""",
)
def cluster() -> None:
    """Start a Dask cluster on this machine, or make certificates for one of any kind."""


@cluster.command(
    example="""
distboost cluster local --workers 4 -- \\
    distboost train --x data.zarr/x --y data.zarr/y --model model.dboost
"""
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=2,
    metavar="N",
    help="Worker processes.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads of each worker (default: the cores divided by the workers).",
)
@click.option(
    "--memory-limit",
    metavar="BYTES",
    callback=lambda context, option, value: _bytes(value),
    help="Memory of each worker, such as 2GB (default: that of this machine divided by the workers).",
)
@click.option(
    "--tls", type=_folder, metavar="FOLDER", help="Certificates, made by 'distboost cluster certificates'."
)
@click.option(
    "--scratch",
    type=_folder,
    metavar="FOLDER",
    help="Where workers write rows that do not fit in memory (default: the system's temporary folder).",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def local(
    *,
    workers: int,
    threads: int | None,
    memory_limit: int | None,
    tls: Path | None,
    scratch: Path | None,
    command: tuple[str, ...],
) -> None:
    """Start a scheduler and workers on this machine, until Ctrl-C.

    With a COMMAND after --, the cluster ends when the command does, and the exit code is the command's. `Client()` and
    distboost in it find the cluster without being told the address.

    Ctrl-C ends the cluster with the exit code 0; while it starts, with 130.
    """
    from distboost.cluster.local import local_cluster

    if command and shutil.which(command[0]) is None:
        raise click.ClickException(f"{command[0]!r} cannot be run: there is no such program.")
    with _ended_by_kill(), local_cluster(workers, threads, memory_limit, tls, scratch) as running:
        if command:
            sys.exit(_run(command, running))
        click.echo(_invitation(running, scratch))
        with suppress(KeyboardInterrupt):
            while True:
                running.check()
                time.sleep(INTERVAL)
        click.echo("Ending the cluster.", err=True)


def _bytes(text: str | None) -> int | None:
    from dask.utils import parse_bytes

    if text is None:
        return None
    with suppress(ValueError):
        if (found := parse_bytes(text)) > 0:
            return int(found)
    raise click.BadParameter(f"{text!r} is no number of bytes. Pass one such as 2GB or 512MiB.")


@contextmanager
def _ended_by_kill() -> Iterator[None]:
    """Make a plain `kill` leave this context as an exit does, so that the processes end, too."""

    def leave(number: int, _: Any) -> None:
        sys.exit(128 + number)

    earlier = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _run(command: tuple[str, ...], running: RunningCluster) -> int:
    """Run a command that finds the cluster; return its exit code, as a shell does."""
    try:
        process = subprocess.Popen(command, env={**os.environ, **running.environment()})
    except OSError as error:
        raise click.ClickException(f"{command[0]!r} cannot be run: {error.strerror}.") from error
    try:
        code = _finished(process)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return code if code >= 0 else 128 - code


def _finished(process: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return process.wait()
        except (
            KeyboardInterrupt
        ):  # the terminal sent it to the command, too, which may have to save something
            continue


def _invitation(running: RunningCluster, scratch: Path | None) -> str:
    """Return what to type elsewhere in order to use a cluster."""
    from dask.utils import format_bytes

    address, threads = running.address, f"{running.n_threads} thread{'s' if running.n_threads > 1 else ''}"
    options, security = f"--scheduler {address}", ""
    if running.tls is not None:
        files = tls_security(running.tls)
        options += f" --tls {running.tls}"
        security = (
            f', security=Security(tls_ca_file="{files.tls_ca_file}", tls_client_cert="{files.tls_client_cert}", '
            f'tls_client_key="{files.tls_client_key}", require_encryption=True)'
        )
    if scratch is not None:
        options += f" --set scratch={scratch}"
    return f"""\
scheduler at {address}, workers: {running.n_workers}, each with {threads} and {format_bytes(running.memory_limit)}

From another terminal:
  distboost train {options} --x DATA.zarr/x --y DATA.zarr/y --model MODEL.dboost
In Python:
  from distributed import Client{", Security" if security else ""}
  client = Client("{address}"{security})

Ctrl-C ends the cluster."""


@cluster.command(
    example="""
distboost cluster certificates certificates --name scheduler.example.org
"""
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST_OR_IP",
    help="A machine of the cluster, beside localhost. Dask takes the certificate on any; other programs may compare.",
)
@click.option("--days", type=click.IntRange(1, 3650), default=DAYS, help="How long it is valid.")
@click.option("--force", is_flag=True, help="Replace the certificates that are there.")
def certificates(folder: Path, names: tuple[str, ...], days: int, force: bool) -> None:
    """Make the certificates of a cluster: FOLDER/ca.pem, cert.pem and key.pem."""
    from datetime import UTC, datetime, timedelta

    from distboost.cluster.certificates import NAMES, Authority

    files = [folder / name for name in (CA_FILE, CERTIFICATE_FILE, KEY_FILE)]
    there = [str(file) for file in files if file.exists()]
    if there and not force:
        raise click.ClickException(
            f"{', '.join(there)}: there already, perhaps in use by a cluster. Choose another folder, or replace with --force."
        )
    Authority().issue(folder, (*NAMES, *names), days)
    until = datetime.now(UTC) + timedelta(days=days)
    click.echo(f"{', '.join(map(str, files))}: valid until {until:%Y-%m-%d}")
    click.echo(f"Copy the folder to every machine; {files[-1]} is secret.")
