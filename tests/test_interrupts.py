"""Ctrl-C at any moment of a command: one line, and nothing of the workers that it has started."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from distboost.cli.options import INTERRUPTED
from tests.programs import Program

DEADLINE = 60.0

# Its main thread waits after the interrupt has come where Python loses exceptions.
LOST = """
import gc, os, signal, time
from distboost.cli import main, train

def interrupt(*_):
    gc.callbacks.clear()
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10):
        pass

def wait(*_):
    gc.callbacks.append(interrupt)
    gc.collect()
    time.sleep(50)

train.check_writable = wait
main(["train", "--algorithm", "gamble", "--x", "x", "--y", "y", "--model", "m"])
"""

CONNECT = """
import logging, time
from distboost.cli import connection, main
from distboost.cli.options import ClusterOptions
from distboost.cli.commands import main

@main.command(example="distboost wait")
def wait():
    with connection.connect(ClusterOptions(workers=2)):
        print("connected", flush=True)
        try:
            time.sleep(50)
        finally:
            logging.getLogger("distributed").error("a task ended")
            logging.getLogger("asyncio").error("a task ended")

main(["wait"])
"""


def assert_aborted(process: Program) -> None:
    _, errors = process.communicate(timeout=DEADLINE)
    assert errors == "\nAborted!\n"
    assert process.returncode in (INTERRUPTED, -signal.SIGINT)


def test_an_interrupt_is_not_lost():
    """Dask has Python call it for each collection of garbage."""
    assert_aborted(Program(LOST))


@pytest.mark.parametrize("times", [1, 3])
def test_while_workers_start(times):
    process = Program(CONNECT, new_session=True)
    deadline = time.monotonic() + DEADLINE
    while not _started_processes(process):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    _interrupt(process, times)
    assert_aborted(process)


@pytest.mark.parametrize("times", [1, 3])
def test_while_workers_work(times):
    process = Program(CONNECT, new_session=True)
    assert process.stdout.readline() == "connected\n"
    _interrupt(process, times)
    assert_aborted(process)


def _started_processes(process: Program) -> list[psutil.Process]:
    return [
        child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())
    ]


def _interrupt(process: Program, times: int) -> None:
    """As a terminal does: the whole group of processes."""
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)  # some impatience
