"""A scheduler and workers on this machine, started by the plain `dask scheduler` and `dask worker` commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import psutil
from dask.utils import parse_bytes
from distributed import Client
from distributed.system import MEMORY_LIMIT

from distboost.cluster.security import tls_security
from distboost.errors import ClusterError

# Seconds.
STOP_DEADLINE = 10.0
INTERVAL = 0.1  # between two looks

Found = TypeVar("Found")


class Process(NamedTuple):
    """A process that runs, and the file that it logs to."""

    running: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise ClusterError if it has ended."""
        code = self.running.poll()
        if code is not None:
            raise ClusterError(f"{self.log.stem} ended with code {code}. {self.last_words()}")

    def last_words(self) -> str:
        """Return the end of its log, for messages."""
        lines = self.log.read_text(errors="replace").splitlines()[-10:]
        return "\n".join(["The end of its log:", *lines])


@contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str], stop_deadline: float = STOP_DEADLINE
) -> Iterator[Process]:
    """Run a command, which logs to a file; end it with the processes that it has started."""
    with log.open("wb") as output:
        # Its own session: Ctrl-C is for us, and we end what we started.
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=dict(environment),
        )
    try:
        yield Process(started, log)
    finally:
        _end(started, stop_deadline)


def _end(process: subprocess.Popen[bytes], deadline: float) -> None:
    """Ask the process to end, then end whatever of it is left."""
    family = []
    with suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(deadline)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()  # psutil knows a process by its pid and start time: never another one's
    process.kill()
    process.wait()


def wait_for(
    look: Callable[[], Found | None],
    processes: Sequence[Process],
    deadline: float,
    late: Callable[[], str],
    interval: float = INTERVAL,
) -> Found:
    """Look again and again until there is something, and return it.

    Raises
    ------
    ClusterError
        If one of the processes ends; after `deadline` seconds, with the message that `late` returns.
    """
    until = time.monotonic() + deadline
    while (found := look()) is None:
        for process in processes:
            process.check()
        if time.monotonic() > until:
            raise ClusterError(late())
        time.sleep(interval)
    return found


REQUIRE_ENCRYPTION = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}

START_DEADLINE = 60.0  # seconds


@dataclass(frozen=True)
class RunningCluster:
    """A scheduler and its workers.

    Attributes
    ----------
    address : str
        That of the scheduler.
    n_workers, n_threads, memory_limit : int
        The workers; threads and bytes of each.
    tls : Path or None
        The folder of its certificates.
    processes : tuple of Process
        The scheduler, then the workers.
    """

    address: str
    n_workers: int
    n_threads: int
    memory_limit: int
    tls: Path | None
    processes: tuple[Process, ...]

    def check(self) -> None:
        """Raise ClusterError if one of the processes has ended."""
        for process in self.processes:
            process.check()

    def environment(self) -> dict[str, str]:
        """Return the variables by which `Client()` in another process finds the cluster."""
        found = {"DASK_SCHEDULER_ADDRESS": self.address}
        if self.tls is not None:
            client = tls_security(self.tls)
            settings = {
                "CA_FILE": client.tls_ca_file,
                "CLIENT__CERT": client.tls_client_cert,
                "CLIENT__KEY": client.tls_client_key,
            }
            found |= {f"DASK_DISTRIBUTED__COMM__TLS__{name}": value for name, value in settings.items()}
            found |= REQUIRE_ENCRYPTION
        return found


@contextmanager
def local_cluster(
    n_workers: int,
    n_threads: int | None = None,
    memory_limit: int | str | None = None,
    tls: Path | None = None,
    scratch: Path | None = None,
) -> Iterator[RunningCluster]:
    """Start a scheduler and workers; yield them when all workers can take work, and end them afterwards, also on errors.

    Parameters
    ----------
    n_workers : int
    n_threads : int or None, default=None
        Threads per worker; None: the cores divided by the workers.
    memory_limit : int, str or None, default=None
        Bytes per worker, such as "2GB"; None: the memory of this machine divided by the workers.
    tls : Path or None, default=None
        A folder of certificates; None: without encryption.
    scratch : Path or None, default=None
        The folder for what workers write, such as rows that do not fit in memory; None: the system's temporary one.

    Raises
    ------
    ClusterError
        If a process ends before all have started, or they take longer than a minute.
    """
    n_threads = n_threads or max(1, (os.cpu_count() or 1) // n_workers)
    limit = int(MEMORY_LIMIT // n_workers if memory_limit is None else parse_bytes(memory_limit))
    with (
        tempfile.TemporaryDirectory(prefix="distboost-cluster-", dir=scratch) as name,
        ExitStack() as stack,
    ):
        folder = Path(name)
        file = folder / "scheduler.json"  # the scheduler writes its address into it, workers read it
        encryption, environment = ([], {}) if tls is None else (_encryption(tls), REQUIRE_ENCRYPTION)
        scheduler = ["scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
        worker = ["worker", "--nthreads", str(n_threads), "--memory-limit", str(limit)]
        # A worker without a scheduler ends itself, should nobody be left to end it.
        worker += ["--local-directory", str(folder), "--death-timeout", "60"]
        processes = [
            stack.enter_context(
                _dask([*command, *encryption, "--scheduler-file", str(file)], environment, folder / label)
            )
            for label, command in [("scheduler", scheduler)]
            + [(f"worker-{i}", worker) for i in range(n_workers)]
        ]
        address = _address(file, processes)
        _wait_for_workers(address, n_workers, processes, tls)
        yield RunningCluster(address, n_workers, n_threads, limit, tls, tuple(processes))


def _encryption(tls: Path) -> list[str]:
    """Options of `dask scheduler` and `dask worker`."""
    client = tls_security(tls)
    certificates = ["--tls-cert", client.tls_client_cert, "--tls-key", client.tls_client_key]
    return ["--protocol", "tls", "--tls-ca-file", client.tls_ca_file, *certificates]


def _dask(arguments: list[str], environment: dict[str, str], path: Path) -> AbstractContextManager[Process]:
    """Run a `dask` command, which logs to a file beside `path`."""
    command = [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", "--no-dashboard"]
    return running(command, path.with_suffix(".log"), {**os.environ, **environment})


def _address(file: Path, processes: list[Process]) -> str:
    """Return the address in the file of the scheduler, once it is there."""

    def look() -> str | None:
        with suppress(OSError, ValueError, KeyError):  # not there, or half written
            return str(json.loads(file.read_text())["address"])
        return None

    return wait_for(
        look,
        processes,
        START_DEADLINE,
        lambda: f"the scheduler did not start within {START_DEADLINE:.0f} s. {processes[0].last_words()}",
    )


def _wait_for_workers(address: str, n_workers: int, processes: list[Process], tls: Path | None) -> None:
    security = None if tls is None else tls_security(tls)
    try:
        client = Client(address, timeout=START_DEADLINE, set_as_default=False, security=security)
    except OSError as error:
        raise ClusterError(
            f"the scheduler that was started at {address} does not answer: {error}. {processes[0].last_words()}",
            where=address,
        ) from error
    with client:
        wait_for(
            lambda: len(client.scheduler_info(n_workers=-1)["workers"]) >= n_workers or None,
            processes,
            START_DEADLINE,
            lambda: (
                f"{n_workers} workers did not start within {START_DEADLINE:.0f} s. Start fewer, or start them with more memory. "
                f"{processes[-1].last_words()}"
            ),
        )
