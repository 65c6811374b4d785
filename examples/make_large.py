"""Large data of any size, written chunk by chunk as zarr arrays x and y.

    python -m examples.make_large spheres --rows 4_200_000 --features 256 --classes 5 --out large.zarr
    python -m examples.make_large letters --rows 1_000_000 --out letters.zarr

The values of a row depend only on the seed and the row number, not on the number of rows, the chunks, the dtype or the threads.
Features beyond the informative ones are noise.
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import ClassVar

import click
import numpy as np
import zarr
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from scipy.stats import chi2

LETTER = Path(__file__).parent / "data" / "letter.npz"
BLOCK_ROWS = 4096  # rows drawn together: another number gives other data
NOISE_COLUMNS = 16  # features drawn together, likewise
CHUNK_VALUES, CHUNK_ROWS = 2**21, 65_536  # upper bounds of a default chunk: 8 MiB of float32


@dataclass(frozen=True)
class Maker(ABC):
    """Makes the rows of a data set, in any order."""

    n_features: int
    seed: int = 0

    n_informative: ClassVar[int]

    def __post_init__(self) -> None:
        if self.n_features < self.n_informative:
            raise ValueError(
                f"n_features is {self.n_features}, but {type(self).__name__} has {self.n_informative} informative "
                f"features. Ask for at least {self.n_informative}."
            )

    @abstractmethod
    def _informative(self, random: np.random.Generator, out: np.ndarray, labels: np.ndarray) -> None:
        """Fills the informative features and the labels of BLOCK_ROWS rows."""

    def _random(self, block: int, group: int) -> np.random.Generator:
        # Philox has a counter of 256 bits. The upper words identify block and group, the lower ones count the draws.
        return np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, group, block]))

    def block(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """(x, y) of one block: float32 (BLOCK_ROWS, n_features), int32 (BLOCK_ROWS,)."""
        x = np.empty((BLOCK_ROWS, self.n_features), np.float32)
        y = np.empty(BLOCK_ROWS, np.int32)
        self._informative(self._random(number, 0), x[:, : self.n_informative], y)
        for group, first in enumerate(range(self.n_informative, self.n_features, NOISE_COLUMNS), start=1):
            columns = x[:, first : first + NOISE_COLUMNS]
            # Draw the whole group even if fewer are needed, so that features do not depend on their number.
            noise = self._random(number, group).standard_normal((BLOCK_ROWS, NOISE_COLUMNS), np.float32)
            columns[:] = noise[:, : columns.shape[1]]
        return x, y

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """(x, y) of the rows start .. stop - 1."""
        x = np.empty((stop - start, self.n_features), np.float32)
        y = np.empty(stop - start, np.int32)
        for number in range(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS)):
            first = number * BLOCK_ROWS
            a, b = max(start, first), min(stop, first + BLOCK_ROWS)
            block_x, block_y = self.block(number)
            x[a - start : b - start] = block_x[a - first : b - first]
            y[a - start : b - start] = block_y[a - first : b - first]
        return x, y


@dataclass(frozen=True)
class Spheres(Maker):
    """Concentric spheres: classes are shells of a normal distribution in 10 dimensions, each as likely as the others."""

    n_classes: int = 5

    n_informative: ClassVar[int] = 10

    def _informative(self, random, out, labels):
        out[:] = random.standard_normal((BLOCK_ROWS, self.n_informative), np.float32)
        # The squared radius is chi-squared distributed: its quantiles bound shells of equal probability.
        cuts = chi2.ppf(np.arange(1, self.n_classes) / self.n_classes, self.n_informative)
        labels[:] = np.searchsorted(cuts, np.square(out, dtype=np.float64).sum(axis=1), side="right")


@dataclass(frozen=True)
class Letters(Maker):
    """The UCI letter data, enlarged: random rows of it, with normal noise added to each feature."""

    jitter: float = 0.5

    n_informative: ClassVar[int] = 16

    def _informative(self, random, out, labels):
        X, y = _letter()
        chosen = random.integers(len(y), size=BLOCK_ROWS)
        moved = random.standard_normal((BLOCK_ROWS, self.n_informative), np.float32)
        out[:] = X[chosen] + np.float32(self.jitter) * moved
        labels[:] = y[chosen]


@cache
def _letter() -> tuple[np.ndarray, np.ndarray]:
    with np.load(LETTER) as file:
        return file["X"].astype(np.float32), file["y"].astype(np.int32)


def write(
    maker: Maker,
    out: str | os.PathLike,
    n_rows: int,
    *,
    chunk_rows: int | None = None,
    chunk_columns: int | None = None,
    dtype: str = "float32",
    compress: bool = False,
    n_threads: int | None = None,
    advanced: Callable[[int, int], None] = lambda done, n_rows: None,
) -> Path:
    """Writes a data set: a zarr group with the arrays x and y.

    Parameters
    ----------
    maker : Maker
    out : path
        Must not exist. It appears when it is complete.
    n_rows : int
    chunk_rows : int or None, default=None
        None: 8 MiB of float32, at most 65,536 rows.
    chunk_columns : int or None, default=None
        Features per chunk; None: all.
    dtype : {"float32", "float64"}, default="float32"
    compress : bool, default=False
        Use zarr's default codec. Noise does not compress.
    n_threads : int or None, default=None
        None: one per core.
    advanced : callable
        Called with (rows written, n_rows) after each stripe.

    Returns
    -------
    out : Path
    """
    out = Path(out)
    if out.exists():
        raise FileExistsError(f"{out} exists. Remove it, or give another path.")
    unfinished = out.with_name(out.name + ".partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    chunk_columns = chunk_columns or maker.n_features
    chunk_rows = min(chunk_rows or default_chunk_rows(chunk_columns), n_rows)
    x, y = _arrays(maker, unfinished, n_rows, (chunk_rows, chunk_columns), dtype, compress)

    def write_stripe(start: int) -> int:
        stop = min(start + stripe, n_rows)
        x[start:stop], y[start:stop] = maker.rows(start, stop)
        return stop - start

    # Stripes are whole chunks, so that each chunk has one writer, and about a block or more, so that few blocks are drawn twice.
    stripe = chunk_rows * -(-BLOCK_ROWS // chunk_rows)
    done = 0
    for n in _unordered(write_stripe, range(0, n_rows, stripe), n_threads or os.cpu_count() or 1):
        done += n
        advanced(done, n_rows)
    unfinished.rename(out)
    return out


def default_chunk_rows(n_columns: int) -> int:
    """Rows of a chunk of at most 8 MiB."""
    return min(max(CHUNK_VALUES // n_columns, 1), CHUNK_ROWS)


def _arrays(
    maker: Maker, out: Path, n_rows: int, chunks: tuple[int, int], dtype: str, compress: bool
) -> tuple[zarr.Array, zarr.Array]:
    group = zarr.open_group(out, mode="w", attributes={"maker": type(maker).__name__, **asdict(maker)})
    create = partial(
        group.create_array,
        compressors="auto" if compress else None,
        config={"write_empty_chunks": True},  # else chunks with labels of class 0 only would be missing
    )
    x = create("x", shape=(n_rows, maker.n_features), chunks=chunks, dtype=dtype)
    return x, create("y", shape=(n_rows,), chunks=chunks[:1], dtype=np.int32)


def _unordered(function: Callable[[int], int], items: range, n_threads: int) -> Iterator[int]:
    """Yield function(item) for each, as they finish. At most n_threads run or wait at a time, because each holds memory."""
    waiting = iter(items)
    with ThreadPoolExecutor(n_threads) as pool:
        running: set[Future] = {pool.submit(function, item) for item in islice(waiting, n_threads)}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(function, item) for item in islice(waiting, len(finished))}
            yield from (future.result() for future in finished)


# The command line.


class RowCount(click.ParamType):
    """A number such as 4200000, 4_200_000 or 4.2e6."""

    name = "number"

    def convert(self, value, param, ctx):
        try:
            number = float(value)
        except ValueError:
            number = np.nan
        if not (number >= 1 and number == int(number)):
            self.fail(f"{value!r} is not a whole number of at least 1", param, ctx)
        return int(number)


_OPTIONS = (
    click.option("--rows", type=RowCount(), required=True, help="For example 4_200_000 or 4.2e6."),
    click.option("--out", type=click.Path(path_type=Path), required=True, help="The zarr group to write."),
    click.option("--chunk-rows", type=RowCount(), help="Rows per chunk; 8 MiB if not given."),
    click.option("--chunk-columns", type=RowCount(), help="Features per chunk; all if not given."),
    click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True),
    click.option("--compress", is_flag=True, help="Use zarr's default codec."),
    click.option("--threads", type=RowCount(), help="One per core if not given."),
    click.option("--overwrite", is_flag=True, help="Replace an existing group."),
    click.option("--seed", default=0, show_default=True),
)


def _options(command: Callable) -> Callable:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group(help=__doc__.partition("\n\n")[0])
def main() -> None:
    pass


@main.command()
@click.option("--features", type=RowCount(), default=Spheres.n_informative, show_default=True)
@click.option("--classes", type=click.IntRange(2), default=5, show_default=True)
@_options
def spheres(features: int, classes: int, seed: int, **options) -> None:
    """Concentric spheres in 10 features; the others are noise."""
    _write(Spheres, (features, seed, classes), **options)


@main.command()
@click.option("--features", type=RowCount(), default=Letters.n_informative, show_default=True)
@click.option("--jitter", type=click.FloatRange(0), default=Letters.jitter, show_default=True)
@_options
def letters(features: int, jitter: float, seed: int, **options) -> None:
    """Jittered copies of the UCI letter data (16 features, 26 classes); further features are noise."""
    _write(Letters, (features, seed, jitter), **options)


def _write(
    kind: type[Maker],
    parameters: tuple,
    rows: int,
    out: Path,
    threads: int | None,
    overwrite: bool,
    **options,
) -> None:
    try:
        maker = kind(*parameters)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    _make_room(out, overwrite)
    columns = (
        TextColumn(str(out)),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("", total=rows)
        write(
            maker,
            out,
            rows,
            n_threads=threads,
            advanced=lambda n, _: bar.update(task, completed=n),
            **options,
        )
    size = rows * maker.n_features * np.dtype(options["dtype"]).itemsize
    click.echo(f"{out}/x and {out}/y: {rows} rows of {maker.n_features} features, {size / 1e9:.2f} GB")


def _make_room(out: Path, overwrite: bool) -> None:
    if not out.exists():
        return
    if not overwrite:
        raise click.UsageError(f"{out} exists. Give --overwrite to replace it, or another --out.")
    if not (out / "zarr.json").is_file():
        raise click.UsageError(
            f"{out} exists and is not a zarr group, so it is not replaced. Give another --out."
        )
    shutil.rmtree(out)


if __name__ == "__main__":
    main()
