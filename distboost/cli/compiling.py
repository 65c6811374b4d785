"""The command that compiles kernels ahead, for images and machines whose file systems are read-only later."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from distboost.cli.options import Command
from distboost.registry import ALGORITHMS, PAPERS


@click.command(
    "compile",
    cls=Command,
    example="""
distboost compile --algorithm gd-mcboost
""",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to keep them in: set NUMBA_CACHE_DIR to it wherever distboost runs. It may be read-only then. "
    "Default: that of NUMBA_CACHE_DIR, or the installation.",
)
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    type=click.Choice([*ALGORITHMS]),
    help=f"Compile for this one. May be repeated. Default: {', '.join(PAPERS)}.",
)
def compile_(out: Path | None, algorithms: tuple[str, ...]) -> None:
    """Compile the kernels of algorithms ahead, so that no first fit waits for them.

    Each algorithm is fitted to a few rows, at its defaults. A kernel is machine code for the processor that compiles it:
    another kind of processor compiles its own.
    """
    from distboost.threads import available_cores

    environment = dict(os.environ)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        environment["NUMBA_CACHE_DIR"] = str(out.absolute())

    def compiled(algorithm: str) -> str:
        command = [sys.executable, "-m", "distboost.estimators.compiling", algorithm]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise click.ClickException(f"{algorithm}: {lines[-1] if lines else 'its process was killed.'}")
        n_kernels, seconds = done.stdout.split()
        return f"{algorithm}: {n_kernels} kernels in {seconds} s"

    with ThreadPoolExecutor(available_cores()) as pool:
        for said in pool.map(compiled, algorithms or PAPERS):
            click.echo(said)
    if out is not None:
        click.echo(f"They are in {out}: set NUMBA_CACHE_DIR={out.absolute()}")
