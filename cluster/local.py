"""A scheduler and workers on this machine, started by the plain `dask scheduler` and `dask worker` commands.

As a program (from the project's folder), until Ctrl-C:

    python -m cluster.local --workers 2

or for as long as another command runs, which finds the cluster by `dask.distributed.Client()`:

    python -m cluster.local --workers 2 -- python my_training.py

With `--tls FOLDER` all of it speaks TLS, with the certificates that `python -m cluster.certificates FOLDER` makes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
from distributed import Client

from distboost.cli.connection import tls_security

REQUIRE_ENCRYPTION = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}

START_DEADLINE = 60.0  # seconds
STOP_DEADLINE = 10.0


@contextmanager
def processes(n_workers: int, n_threads: int | None = None, tls: Path | None = None) -> Iterator[str]:
    """The address of a new scheduler with so many workers, each with its share of the cores; ended afterwards, also on errors.

    Parameters
    ----------
    n_workers : int
    n_threads : int or None, default=None
        Threads per worker; None: the cores divided by the workers.
    tls : Path or None, default=None
        A folder of certificates; None: without encryption.
    """
    n_threads = n_threads or max(1, (os.cpu_count() or 1) // n_workers)
    with tempfile.TemporaryDirectory(prefix="dask-local-") as name, ExitStack() as stack:
        folder = Path(name)
        file = folder / "scheduler.json"  # the scheduler writes its address into it, workers read it
        scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
        worker = ["worker", "--host", "127.0.0.1", "--nthreads", str(n_threads)]
        # A worker without a scheduler ends itself, should nobody be left to end it.
        worker += ["--local-directory", str(folder), "--death-timeout", "60"]
        encryption, environment = ([], {}) if tls is None else (_encryption(tls), REQUIRE_ENCRYPTION)
        started = []
        for label, command in [
            ("scheduler", scheduler),
            *((f"worker-{i}", worker) for i in range(n_workers)),
        ]:
            log = folder / f"{label}.log"
            arguments = [*command, *encryption, "--scheduler-file", str(file)]
            started.append((stack.enter_context(_process(arguments, environment, log)), log))
        address = _address(file, started)
        _wait_for_workers(address, n_workers, started, tls)
        yield address


def _encryption(tls: Path) -> list[str]:
    """Options of `dask scheduler` and `dask worker`."""
    client = tls_security(tls)
    certificates = ["--tls-cert", client.tls_client_cert, "--tls-key", client.tls_client_key]
    return ["--protocol", "tls", "--tls-ca-file", client.tls_ca_file, *certificates]


def _configuration(address: str, tls: Path | None) -> dict[str, str]:
    """The environment in which `Client()` finds the cluster."""
    found = {"DASK_SCHEDULER_ADDRESS": address}
    if tls is not None:
        client = tls_security(tls)
        settings = {
            "CA_FILE": client.tls_ca_file,
            "CLIENT__CERT": client.tls_client_cert,
            "CLIENT__KEY": client.tls_client_key,
        }
        found |= {f"DASK_DISTRIBUTED__COMM__TLS__{name}": value for name, value in settings.items()}
        found |= REQUIRE_ENCRYPTION
    return found


@contextmanager
def _process(arguments: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen]:
    """A `dask` command, ended with the processes it started."""
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    with log.open("wb") as output:
        # Its own session: Ctrl-C is for us, and we end what we started.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **environment},
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen) -> None:
    """Asks the process to end, then ends whatever of it is left."""
    family = []
    with suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_DEADLINE)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()  # psutil knows a process by its pid and start time: never another one's
    process.kill()
    process.wait(STOP_DEADLINE)


def _address(file: Path, started: list[tuple[subprocess.Popen, Path]]) -> str:
    deadline = time.monotonic() + START_DEADLINE
    while time.monotonic() < deadline:
        _check_alive(started)
        with suppress(OSError, ValueError, KeyError):  # not there, or half written
            return json.loads(file.read_text())["address"]
        time.sleep(0.1)
    raise TimeoutError(f"no scheduler within {START_DEADLINE:.0f} s. {_last_words(started[0][1])}")


def _wait_for_workers(
    address: str, n_workers: int, started: list[tuple[subprocess.Popen, Path]], tls: Path | None
) -> None:
    given = None if tls is None else tls_security(tls)
    with Client(address, timeout=START_DEADLINE, set_as_default=False, security=given) as client:
        try:
            client.wait_for_workers(n_workers, timeout=START_DEADLINE)
        except TimeoutError as error:
            _check_alive(started)
            raise TimeoutError(f"not {n_workers} workers within {START_DEADLINE:.0f} s.") from error


def _check_alive(started: list[tuple[subprocess.Popen, Path]]) -> None:
    for process, log in started:
        if process.poll() is not None:
            raise RuntimeError(f"{log.stem} ended with code {process.returncode}. {_last_words(log)}")


def _last_words(log: Path) -> str:
    return "The end of its log:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-10:])


def main() -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, help="per worker; default: the cores divided by the workers")
    parser.add_argument(
        "--tls", type=lambda folder: Path(folder).absolute(), metavar="FOLDER", help="certificates"
    )
    parser.add_argument("command", nargs="*", help="what to run, after --")
    options = parser.parse_args()
    # A plain kill ends the cluster too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with processes(options.workers, options.threads, options.tls) as address:
        print(f"scheduler at {address}, {options.workers} workers", flush=True)
        if options.command:
            return subprocess.run(
                options.command, env={**os.environ, **_configuration(address, options.tls)}
            ).returncode
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
