"""What happens to a run if one of three workers is killed or stopped: ``python -m tests.benchmarks.kill_a_worker measure``.

distboost, xgboost.dask and lightgbm.dask train on the same rows and receive the same signal after a third of the rounds,
without any settings for such cases. Every training is a process with its own Dask cluster. Its nannies restart workers that die;
with ``--no-nannies``, workers stay dead.
The benchmark records what the caller of the fit sees and when; a training run without an outcome before the deadline "hangs".
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import click
import dask.array as da
import numpy as np
import psutil
import zarr
from distributed import Client, LocalCluster, wait
from rich.console import Console
from rich.table import Table

from tests.benchmarks.datasets import official
from tests.benchmarks.rivals import RoundTimes

ROOT = Path(__file__).parents[2]
N_WORKERS = 3
VICTIM = 1  # not the first, which in both rivals is the one that returns the model
DEPTH = 6

BEGIN_DEADLINE = 120.0  # seconds until the round at which the signal is sent
END_DEADLINE = 300.0  # of a training run that nobody disturbs
POLL = 0.02


class Outcome(NamedTuple):
    """What the caller saw: the digest of a model, an error, or neither in time."""

    seconds: float  # since the signal; of an undisturbed training, since its process began
    digest: str | None
    error: str | None

    def __str__(self) -> str:
        if self.digest is None and self.error is None:
            return f"hangs (for {self.seconds:.0f} s, then ended)"
        return f"{self.error or 'finished'} ({self.seconds:.1f} s)"


# What is trained, in its own process. Each returns what is compared byte for byte.


def distboost(client: Client, x: Any, y: Any, n_rounds: int, times: RoundTimes) -> bytes:
    from distboost import GDMCBoostClassifier

    model = GDMCBoostClassifier(
        calibration=None,
        n_estimators=n_rounds,
        max_depth=DEPTH,
        callbacks=[lambda progress: times.note(progress.round)],
    )
    model.client = client
    model.fit(x, y)
    with tempfile.NamedTemporaryFile() as file:
        model.save(file.name)
        return Path(file.name).read_bytes()


def xgboost(client: Client, x: Any, y: Any, n_rounds: int, times: RoundTimes) -> bytes:
    from xgboost import dask as on_dask

    parameters = {
        "objective": "multi:softprob",
        "num_class": 26,
        "tree_method": "hist",
        "max_depth": DEPTH,
        "nthread": 1,
    }
    data = on_dask.DaskQuantileDMatrix(client, x, y)
    found = on_dask.train(client, parameters, data, n_rounds, callbacks=[times])
    return bytes(found["booster"].save_raw("ubj"))


def lightgbm(client: Client, x: Any, y: Any, n_rounds: int, times: RoundTimes) -> bytes:
    from lightgbm.dask import DaskLGBMClassifier

    model = DaskLGBMClassifier(
        n_estimators=n_rounds, max_depth=DEPTH, num_leaves=2**DEPTH, client=client, verbose=-1
    )
    model.fit(x, y, callbacks=[times])
    return model.booster_.model_to_string().encode()


class Library(NamedTuple):
    train: Callable[..., bytes]
    package: str


LIBRARIES = {
    "distboost": Library(distboost, "distboost"),
    "xgboost.dask": Library(xgboost, "xgboost-cpu"),
    "lightgbm.dask": Library(lightgbm, "lightgbm"),
}


@click.group()
def main() -> None:
    """Kill a worker in the middle of a training run."""


@main.command(hidden=True)
@click.argument("name", type=click.Choice(list(LIBRARIES)))
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("n_rounds", type=int)
@click.argument("nannies", type=bool)
def train(name: str, folder: Path, n_rounds: int, nannies: bool) -> None:
    """A training run: writes the workers' processes, the rounds and the outcome into the folder."""
    library, split = LIBRARIES[name], official("letter")
    with _cluster(folder, nannies) as cluster, Client(cluster) as client:
        client.wait_for_workers(N_WORKERS)
        pids = dict(sorted(client.run(os.getpid).items()))
        _publish(folder / "workers", list(pids.values()))
        x, y = (_stored(rows, f"{folder}/{rows.ndim}.zarr") for rows in (split.X, split.y))
        if name != "distboost":  # which reads zarr itself
            x, y = _spread(client, x, list(pids)), _spread(client, y, list(pids))
        try:
            model = library.train(client, x, y, n_rounds, RoundTimes(str(folder)))
            _publish(folder / "outcome", {"digest": hashlib.sha256(model).hexdigest()})
        except Exception as error:  # noqa: BLE001 (the outcome that is measured)
            # XGBoost's messages have addresses.
            message = " ".join(str(error).partition("Stack trace")[0].split())
            _publish(folder / "outcome", {"error": f"{type(error).__name__}: {message}"})


@contextmanager
def _cluster(folder: Path, nannies: bool) -> Iterator[LocalCluster]:
    """Workers in processes of their own, with nannies or without."""
    options = {"threads_per_worker": 1, "dashboard_address": None, "local_directory": str(folder)}
    if nannies:
        with LocalCluster(n_workers=N_WORKERS, **options) as cluster:
            yield cluster
        return
    with LocalCluster(n_workers=0, **options) as cluster:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
        command += ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
        workers = [subprocess.Popen(command) for _ in range(N_WORKERS)]
        try:
            yield cluster
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def _stored(rows: np.ndarray, path: str) -> str:
    zarr.create_array(path, data=rows, chunks=(-(-len(rows) // N_WORKERS), *rows.shape[1:]))
    return path


def _spread(client: Client, path: str, workers: list[str]) -> da.Array:
    """A stored array's chunks, one in the memory of each worker; others may read them again."""
    chunks = da.from_zarr(path).blocks
    held = [
        client.persist(chunks[i], workers=[worker], allow_other_workers=True)
        for i, worker in enumerate(workers)
    ]
    wait(held)
    return da.concatenate(held)


def _publish(path: Path, value: Any) -> None:
    """Whoever sees the file sees all of it."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(value))
    part.rename(path)


# What is done to it.


@main.command()
@click.option("--library", "names", type=click.Choice(list(LIBRARIES)), multiple=True, help="Default: all.")
@click.option(
    "--signal",
    "signals",
    type=click.Choice(["SIGKILL", "SIGSTOP"]),
    multiple=True,
    default=("SIGKILL", "SIGSTOP"),
    show_default=True,
    help="What one worker is sent.",
)
@click.option(
    "--patience",
    type=float,
    default=120.0,
    show_default=True,
    help="Seconds until a training run is said to hang.",
)
@click.option("--rounds", "n_rounds", type=click.IntRange(min=3), default=300, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Of each signal.")
@click.option("--nannies/--no-nannies", default=True, show_default=True, help="Restart workers that die.")
def measure(
    names: tuple[str, ...],
    signals: tuple[str, ...],
    patience: float,
    n_rounds: int,
    repeats: int,
    nannies: bool,
) -> None:
    """Trains twice undisturbed, then with each of the signals, and shows what the caller sees."""
    console = Console(width=130)
    table = Table("library", "undisturbed", "the same model again", *signals, show_lines=True)
    for name in names or LIBRARIES:
        whole, again = (run(name, n_rounds, None, END_DEADLINE, nannies) for _ in range(2))
        if whole.digest is None:
            raise click.ClickException(f"{name} does not train undisturbed: {whole}.")
        cells = [
            "\n".join(
                _cell(run(name, n_rounds, signal.Signals[each], patience, nannies), whole)
                for _ in range(repeats)
            )
            for each in signals
        ]
        package = LIBRARIES[name].package
        table.add_row(
            f"{name} {_version(package)}",
            f"{n_rounds} rounds ({whole.seconds:.1f} s)",
            "yes" if again.digest == whole.digest else "no",
            *cells,
        )
    console.print(table)
    console.print(
        f"Python {platform.python_version()}, dask {version('dask')}, distributed {version('distributed')}; letter, "
        f"{N_WORKERS} workers with a thread each on {os.cpu_count()} processors, "
        f"{'with' if nannies else 'without'} nannies"
    )


def _version(package: str) -> str:
    import distboost

    return distboost.__version__ if package == "distboost" else version(package)


def _cell(found: Outcome, whole: Outcome) -> str:
    if found.digest is None:
        return str(found)
    same = "the same model" if found.digest == whole.digest else "another model"
    return f"{found}, {same}"


def run(
    name: str, n_rounds: int, disturbance: signal.Signals | None, patience: float, nannies: bool = True
) -> Outcome:
    """One run, and what its caller sees within so many seconds of the signal."""
    with (
        tempfile.TemporaryDirectory() as place,
        _process("train", name, place, str(n_rounds), str(nannies)) as process,
    ):
        folder, since = Path(place), time.monotonic()
        if disturbance is not None:
            third = n_rounds // 3
            if not _until(lambda: _n_rounds(folder) >= third, BEGIN_DEADLINE):
                raise TimeoutError(f"{name} had not reached round {third} within {BEGIN_DEADLINE:.0f} s.")
            os.kill(json.loads((folder / "workers").read_text())[VICTIM], disturbance)
            since = time.monotonic()
        file = folder / "outcome"
        _until(lambda: file.exists() or process.poll() is not None, patience)
        seconds = time.monotonic() - since
        if file.exists():
            found = json.loads(file.read_text())
            return Outcome(seconds, found.get("digest"), found.get("error"))
        ended = process.poll()
        return Outcome(seconds, None, None if ended is None else f"the caller's process ended with {ended}")


def _n_rounds(folder: Path) -> int:
    """Rounds that the fastest process has done."""
    return max((file.read_text().count("\n") for file in folder.glob("rounds-*")), default=0)


def _until(true: Callable[[], bool], deadline: float) -> bool:
    """Whether it came true in time."""
    end = time.monotonic() + deadline
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(POLL)
    return True


@contextmanager
def _process(*arguments: str) -> Iterator[subprocess.Popen]:
    """This module in a process of its own, ended with all that it started, be that stopped."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.kill_a_worker", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid)
            for member in [family, *family.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    member.kill()  # the parents first: a nanny would start its worker again
        process.wait()


if __name__ == "__main__":
    main()
