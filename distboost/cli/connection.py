"""Connect a command to the cluster that it runs on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import click

from distboost.cli import interrupt
from distboost.cli.options import ClusterOptions, log_shown
from distboost.cluster.security import tls_security
from distboost.errors import ClusterError

# Seconds.
CONNECT_DEADLINE = 8.0
START_DEADLINE = 60.0
FILE_DEADLINE = 60.0  # to wait for the file of a scheduler, which may be starting
UNFINISHED_DEADLINE = 2.0  # to wait for the rest of it
FILE_INTERVAL = 0.1  # between two looks

VARIABLE = "DASK_SCHEDULER_ADDRESS"  # sets scheduler-address in Dask's configuration


class Scheduler(NamedTuple):
    """A scheduler to connect to."""

    address: str
    named_by: str = ""  # for messages; "" if the address was given

    def __str__(self) -> str:
        from distboost.io.text import visible

        return visible(f"{self.address}, named by {self.named_by}" if self.named_by else self.address)


@contextmanager
def connect(options: ClusterOptions) -> Iterator[Any]:
    """Yield a client of the cluster that the options or Dask's configuration name, or None for this process.

    Raises
    ------
    ValueError
        If the options do not fit together.
    distboost.errors.ClusterError
        If there is no scheduler, or there are fewer workers than wanted.
    """
    _check_places(options)
    if options.workers:
        with _started(options.workers) as client:
            yield client
        return
    scheduler = _scheduler(options)
    if scheduler is None:
        yield None
        return
    if scheduler.named_by:
        click.echo(f"Using the Dask cluster at {scheduler}.", err=True)
    with _connected(scheduler, tls_security(options.tls) if options.tls else None) as client:
        if options.wait_workers:
            _wait_for_workers(client, options.wait_workers)
        yield client


def _check_places(options: ClusterOptions) -> None:
    """Raise ValueError if several options say where to run."""
    places = [name for name in options.given() if name in ("--scheduler", "--scheduler-file", "--workers")]
    if len(places) > 1:
        raise ValueError(f"{' and '.join(places)} exclude each other: pass one of them.")
    if options.scheduler == "":
        raise ValueError("--scheduler is empty. Pass an address such as tcp://host:8786, or leave it out.")
    if options.workers and options.tls:
        raise _no_use_for_tls(options.tls, "not given: --workers starts one without TLS")
    if options.workers and options.wait_workers:
        raise ValueError("--workers N waits for its N workers by itself: leave --wait-workers out.")


def _scheduler(options: ClusterOptions) -> Scheduler | None:
    """Return the scheduler that the options name, or else Dask's configuration; None if neither does."""
    found = None
    if options.scheduler is not None:
        found = Scheduler(options.scheduler)
    elif options.scheduler_file is not None:
        path = os.path.abspath(os.path.expanduser(options.scheduler_file))
        found = Scheduler(address_in(path), f"the file {path}")
    else:
        found = _configured()
    if options.tls and (found is None or not found.address.startswith("tls://")):
        raise _no_use_for_tls(options.tls, found or "not given")
    if options.wait_workers and found is None:
        raise ValueError(
            f"--wait-workers {options.wait_workers} is for a cluster: pass --scheduler, --scheduler-file or {VARIABLE}, or leave "
            "it out to run in this process."
        )
    return found


def _no_use_for_tls(folder: str, place: object) -> ValueError:
    return ValueError(
        f"--tls {folder} is for a scheduler at an address such as tls://host:8786; its address is {place}."
    )


def _configured() -> Scheduler | None:
    """Return the scheduler that Dask's configuration names, which `Client()` would connect to."""
    import dask

    address = dask.config.get("scheduler-address", None)
    if not address:
        return None
    by_variable = os.environ.get(VARIABLE) == str(address)
    return Scheduler(
        str(address), VARIABLE if by_variable else "scheduler-address in the configuration of Dask"
    )


def address_in(path: str) -> str:
    """Return the address in the file of a scheduler, once there is one; raise ClusterError if there is not."""
    from distboost.io.files import read_local

    told, deadline = False, time.monotonic() + FILE_DEADLINE
    while True:
        try:
            return _parsed(read_local(path, kind=ClusterError))
        except FileNotFoundError:
            problem = f"there is no scheduler file {path} (waited {FILE_DEADLINE:.0f} s)"
        except OSError as error:
            raise ClusterError(
                f"the scheduler file {path} cannot be read: {error.strerror}.",
                remedy="Check the path and its permissions.",
                where=path,
            ) from error
        except (ValueError, RecursionError) as error:  # a scheduler may be writing it
            problem = f"{path} is no scheduler file: {error}"
            deadline = min(deadline, time.monotonic() + UNFINISHED_DEADLINE)
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{problem}.",
                remedy="Pass the file that 'dask scheduler --scheduler-file FILE' writes, or its address with --scheduler.",
            )
        if not told:
            click.echo(f"Waiting for the scheduler file {path}.", err=True)
        told = True
        time.sleep(FILE_INTERVAL)


def _parsed(content: bytes) -> str:
    """Return the address in the content of a scheduler file; raise ValueError if there is none."""
    found = json.loads(content)
    address = found.get("address") if isinstance(found, dict) else None
    if not isinstance(address, str) or not address:
        raise ValueError("it names no address")
    return address


def _wait_for_workers(client: Any, wanted: int) -> None:
    from distboost.runtime.cluster.runtime import ClusterRuntime

    with log_shown("distboost"):
        ClusterRuntime(client, wait_for_workers=wanted).close()


@contextmanager
def _connected(scheduler: Scheduler, security: Any) -> Iterator[Any]:
    from distributed import Client

    try:
        client = Client(scheduler.address, timeout=CONNECT_DEADLINE, security=security)
    except Exception as error:  # a server that is no scheduler may cause any error
        reason = str(error) or repr(error.__cause__)
        raise ClusterError(
            f"no Dask scheduler answers at {scheduler} (waited up to {CONNECT_DEADLINE:.0f} s: {reason}).",
            remedy="Check the address and the network, or start one with 'dask scheduler'; or run on this machine with "
            f"--workers N. {_hint(scheduler.address, security)}",
        ) from error
    with client:
        yield client


def _hint(address: str, security: Any) -> str:
    """Return a hint on TLS: a scheduler that refuses a connection just closes it, without a reason."""
    if not address.startswith("tls://"):
        return "A scheduler that uses TLS answers only at tls://..., with --tls FOLDER."
    if security is None:
        return "Without --tls FOLDER, the certificates come from Dask's configuration (distributed.comm.tls)."
    return (
        "A scheduler that uses TLS accepts only unexpired certificates of its own authority: "
        f"is {security.tls_client_cert} one?"
    )


@contextmanager
def _started(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    n_threads = max(1, (os.cpu_count() or 1) // n_workers)
    # No dashboard. The scheduler still serves its health page, on any free port, as 8787 may be taken.
    quiet = {
        "dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": False},
        "preload": [interrupt.__name__],
    }
    with ExitStack() as stack:
        with interrupt.interrupts_deferred():
            local = stack.enter_context(
                LocalCluster(n_workers=n_workers, threads_per_worker=n_threads, **quiet)
            )
            client = stack.enter_context(Client(local, timeout=CONNECT_DEADLINE))
        with _quiet_end(local):
            _wait_for_start(client, n_workers)
            yield client


def _wait_for_start(client: Any, n_workers: int) -> None:
    try:
        client.wait_for_workers(n_workers, timeout=START_DEADLINE)
    except TimeoutError as error:
        raise ClusterError(
            f"{n_workers} worker processes did not start within {START_DEADLINE:.0f} s.",
            remedy="Start fewer with --workers, or leave it out to run in this process.",
        ) from error


@contextmanager
def _quiet_end(local: Any) -> Iterator[None]:
    """If the context is left by an error or Ctrl-C, let the workers say nothing about what they leave undone."""
    try:
        yield
    except BaseException:
        for worker in local.workers.values():
            interrupt.quieten(worker.pid)
        raise
