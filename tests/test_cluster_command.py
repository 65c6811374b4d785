"""`distboost cluster local`: what it starts and prints, how it ends, and what it says when a process cannot start."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from click import ClickException
from click.testing import CliRunner
from distributed import LocalCluster

from distboost.cli import main
from distboost.cli.cluster import _run
from distboost.cluster import local
from distboost.cluster.local import running, wait_for
from distboost.errors import ClusterError
from tests.programs import Program

DEADLINE = 60.0
COMMAND = "from distboost.cli import main; main()"


def started(*arguments: object, start=Program) -> tuple[Any, list[str]]:
    """The command, in a forked process or by `start`, and the lines that it prints when all workers can take work."""
    process = start(COMMAND, "cluster", "local", *arguments)
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith("Ctrl-C"):
            break
    return process, lines


def as_a_person_does(_: str, *arguments: object) -> subprocess.Popen:
    """Start the command in a process of its own."""
    command = [sys.executable, "-m", "distboost", *map(str, arguments)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


def ended(process: Any, number: int) -> int:
    """The exit code after a signal. No process is left."""
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 3  # the scheduler, a nanny and its worker
    process.send_signal(number)
    process.communicate(timeout=DEADLINE)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
    return process.returncode


def refused(*arguments: object) -> str:
    """What the command says when it fails, in one line."""
    result = CliRunner().invoke(main, ["cluster", "local", *map(str, arguments)])
    assert result.exit_code in (1, 2), result.output
    assert "Traceback (most recent call last):\n" not in result.output
    return " ".join(result.stderr.split())


def test_what_is_printed_leads_to_workers_with_the_given_limits(tmp_path):
    process, lines = started(
        "--workers",
        2,
        "--threads",
        3,
        "--memory-limit",
        "700MiB",
        "--scratch",
        tmp_path,
        start=as_a_person_does,
    )
    [address] = re.findall(
        r"scheduler at (tcp://127\.0\.0\.1:\d+), workers: 2, each with 3 threads and 700.00 MiB", lines[0]
    )
    [command] = [line for line in lines if line.startswith("  distboost train")]
    assert f"--scheduler {address} --set scratch={tmp_path}" in command
    program = "\n".join(line.strip() for line in lines[lines.index("In Python:") + 1 : -2])
    found: dict = {}
    exec(program, found)
    with found["client"] as client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        assert [(each["nthreads"], each["memory_limit"]) for each in workers] == 2 * [(3, 700 * 2**20)]
        assert all(each["local_directory"].startswith(f"{tmp_path}/") for each in workers)
    assert ended(process, signal.SIGINT) == 0
    assert not list(tmp_path.iterdir())


def test_a_plain_kill_ends_the_cluster():
    process, _ = started("--workers", 1)
    assert ended(process, signal.SIGTERM) == 128 + signal.SIGTERM


def test_it_ends_with_an_error_when_the_scheduler_does():
    process, _ = started("--workers", 1)
    [scheduler] = [p for p in psutil.Process(process.pid).children() if "scheduler" in p.cmdline()]
    scheduler.kill()
    _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert "Error: scheduler ended with code -9. The end of its log:" in stderr


def test_a_worker_that_cannot_start(tmp_path, monkeypatch):
    broken = 'import os, sys\nif "worker" in sys.orig_argv:\n    print("broken for the test", flush=True), os._exit(3)'
    (tmp_path / "sitecustomize.py").write_text(broken)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    error = refused("--workers", 1)
    assert "worker-0 ended with code 3. The end of its log: broken for the test" in error


def test_workers_that_do_not_come_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "wait_for", lambda look, workers, _, late: wait_for(look, workers, 0.5, late))
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as scheduler,
        running(["sh", "-c", "echo not yet; exec sleep 60"], tmp_path / "worker-0.log", os.environ) as worker,
        pytest.raises(ClusterError, match=r"2 workers did not start within 60 s\. Start fewer.*\nnot yet"),
    ):
        local._wait_for_workers(scheduler.scheduler_address, 2, [worker], None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--memory-limit", "plenty"], "'plenty' is no number of bytes. Pass one such as 2GB"),
        (["--memory-limit", "0"], "'0' is no number of bytes"),
        (["--workers", "0"], "0 is not in the range x>=1"),
        (["--scratch", "/nowhere"], "Directory '/nowhere' does not exist"),
        (
            ["--workers", "1", "--", "no-such-program"],
            "'no-such-program' cannot be run: there is no such program",
        ),
    ],
)
def test_bad_options(arguments, said):
    assert said in refused(*arguments)


def test_a_program_that_the_system_refuses(tmp_path):
    program = tmp_path / "program"
    program.write_text("neither a script nor machine code")
    program.chmod(0o755)
    with pytest.raises(ClickException, match=r"cannot be run: Exec format error\."):
        _run((str(program),), SimpleNamespace(environment=dict))


def test_memory_and_cores_are_divided_among_the_workers(monkeypatch):
    """What the commands are told; the test of what is printed asks workers that run."""
    commands = []
    monkeypatch.setattr(local, "running", lambda command, *_: nullcontext(commands.append(command)))
    monkeypatch.setattr(local, "_address", lambda *_: "tcp://127.0.0.1:1")
    monkeypatch.setattr(local, "_wait_for_workers", lambda *_: None)
    monkeypatch.setattr(local, "MEMORY_LIMIT", 3 * 2**30)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with local.local_cluster(3) as cluster:
        assert (cluster.memory_limit, cluster.n_threads) == (2**30, 1)
    _, *workers = commands
    options = [dict(pairwise(command)) for command in workers]
    assert [(each["--memory-limit"], each["--nthreads"]) for each in options] == 3 * [(str(2**30), "1")]


def test_certificates_without_their_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.delitem(sys.modules, "distboost.cluster.certificates", raising=False)
    result = CliRunner().invoke(main, ["cluster", "certificates", str(tmp_path / "tls")])
    assert result.exit_code == 1
    assert "Run: pip install 'distboost[tls]'" in result.stderr
    assert not (tmp_path / "tls").exists()
