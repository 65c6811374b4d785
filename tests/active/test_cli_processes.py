"""Commands of active learning in real processes: killed, interrupted, and on a scheduler."""

from __future__ import annotations

import signal
from pathlib import Path

from distributed import LocalCluster

from tests.active.commands import SMALL, begun, label, run, simulate
from tests.programs import Program

# The process kills itself as soon as the log knows what is asked.
KILLED = """
import os, signal
from distboost.active import ledger
append = ledger.LabelLog.append
def killing(log, *given):
    append(log, *given)
    with open(log.path, "rb") as file:
        if b'"asked"' in file.read():
            os.kill(os.getpid(), signal.SIGKILL)
ledger.LabelLog.append = killing
"""
# Ctrl-C while a committee is trained.
INTERRUPTED = """
import os, signal
from distboost.runtime.shard import Shard
update, n_updates = Shard.update, 0
def interrupting(*arguments):
    global n_updates
    n_updates += 1
    if n_updates == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return update(*arguments)
Shard.update = interrupting
"""


def process(*arguments: object, before: str = "") -> tuple[int, str]:
    """The exit status, and what was said on the standard error."""
    done = Program(f"{before}\nfrom distboost.cli import main; main()", "active", *arguments)
    _, errors = done.communicate(timeout=60)
    return done.returncode, errors


def test_killed_between_ask_and_tell(data, tmp_path, blobs):
    """Killed as soon as the log knows what is asked, the CSV file or not: no row is lost, and the end is the same."""
    y = blobs[1]

    def work(folder: Path, kill: bool) -> bytes:
        folder.mkdir()
        files = ("--log", folder / "labels.log", "--out", folder / "ask.csv")
        log, out = files[1], files[3]
        begin = ("ask", *files, "--x", data / "x", *SMALL)
        if kill:
            status, errors = process(*begin, before=KILLED)
            assert status == -signal.SIGKILL, errors
            with open(log, "ab") as file:  # and so did one that was about to say more
                file.write(b'0123abcd {"tau')
            status, errors = process("ask", *files)
            assert status == 0, errors
        else:
            run(*begin)
        label(out, y)
        run("tell", "--log", log, "--labels", out)
        run("ask", *files)
        return out.read_bytes()

    assert work(tmp_path / "killed", True) == work(tmp_path / "whole", False)


def test_control_c(data, tmp_path):
    status, errors = process(
        *simulate(data, "--repeats", 10000, "--json", tmp_path / "json"), before=INTERRUPTED
    )
    assert status == 130, errors
    assert errors == "\nAborted!\n"
    assert not (tmp_path / "json").exists()


def test_on_a_scheduler(data, files, blobs, tmp_path):
    log, out, _ = begun(data, files)
    label(out, blobs[1])
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        where = ("--scheduler", cluster.scheduler_address)
        evaluation = ("--eval-x", data / "eval-x", "--eval-y", data / "eval-y")
        far = run("tell", "--log", log, "--labels", out, *evaluation, *where)
        log_here = tmp_path / "here.log"
        log_here.write_bytes(log.read_bytes())
        run("ask", *files, *where)
        run("model", "--log", log, "--model", tmp_path / "far", *where)
    assert (
        far.splitlines()[-1] == run("tell", "--log", log_here, "--labels", out, *evaluation).splitlines()[-1]
    )
    run("ask", "--log", log_here, "--out", tmp_path / "here.csv")
    assert out.read_bytes() == (tmp_path / "here.csv").read_bytes()
    run("model", "--log", log_here, "--model", tmp_path / "here")
    assert (tmp_path / "far").read_bytes() == (tmp_path / "here").read_bytes()
