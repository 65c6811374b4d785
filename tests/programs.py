"""Programs in processes of their own, forked from one that has imported everything: importing takes seconds.

Each is like one of `python -c`: it has signals, standard streams, exit functions and an exit status of its own. Only the
interpreter is not taken apart at the end, which takes as long as importing.
"""

from __future__ import annotations

import atexit
import gc
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
_MOST_BYTES = 2**17  # of a request
WARM = "tests.warm"
_SERVER = "import sys, tests.programs; tests.programs.serve(int(sys.argv[1]), sys.argv[2])"


class Program:
    """A running program, with what tests use of subprocess.Popen.

    Parameters
    ----------
    program : str
        Python, with its arguments in sys.argv[1:].
    stdin, stdout, stderr : int
        A descriptor, subprocess.PIPE or subprocess.DEVNULL.
    environment : mapping
        Variables beside those of this process.
    folder : Path or None, default=None
        Where it runs; None: where this process is.
    new_session : bool
        Whether signals for a whole terminal are not for us.
    imported : str
        The module of this folder that the process has imported which the program is forked from.
    """

    def __init__(
        self,
        program: str,
        *arguments: object,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        new_session: bool = False,
        imported: str = WARM,
    ):
        self.returncode: int | None = None
        self._said: dict[Any, str] = {}
        self._status, status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stdin, first = _stream(stdin, "w")
        self.stdout, second = _stream(stdout, "r")
        self.stderr, third = _stream(stderr, "r")
        request = {
            "program": program,
            "arguments": [str(argument) for argument in arguments],
            "environment": dict(environment or {}),
            "folder": str(folder or os.getcwd()),
            "new_session": new_session,
        }
        with _LOCK:
            descriptors = [first, second, third, status.fileno()]
            socket.send_fds(_server(imported), [json.dumps(request).encode()], descriptors)
        status.close()
        for ours, descriptor in ((stdin, first), (stdout, second), (stderr, third)):
            if ours < 0:
                os.close(descriptor)
        self.pid = int(self._status.recv(16))

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                status = self._status.recv(16)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0) from None
            self.returncode = int(status)
            self._status.close()
        return self.returncode

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """What it wrote on both streams by its end; again the same. A program that takes longer is killed."""
        try:
            return self._communicate(input, timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def _communicate(self, input: str | None, timeout: float | None) -> tuple[str, str]:
        streams = [stream for stream in (self.stdout, self.stderr) if stream not in (None, *self._said)]

        def read(stream: Any) -> None:
            self._said[stream] = stream.read()

        readers = [threading.Thread(target=read, args=(stream,), daemon=True) for stream in streams]
        for reader in readers:
            reader.start()
        if self.stdin is not None and not self.stdin.closed:
            with suppress(BrokenPipeError):
                self.stdin.write(input or "")
                self.stdin.flush()
            with suppress(BrokenPipeError):
                self.stdin.close()
        for reader, stream in zip(readers, streams, strict=True):
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            stream.close()
        self.wait(timeout)
        return self._said.get(self.stdout, ""), self._said.get(self.stderr, "")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _stream(how: int, mode: str) -> tuple[Any, int]:
    """Our end as a text file, if there is one, and the descriptor of theirs."""
    if how == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    if how != subprocess.PIPE:
        return None, how
    reading, writing = os.pipe()
    ours, theirs = (reading, writing) if mode == "r" else (writing, reading)
    return open(ours, mode), theirs


# The process that others are forked from.

_LOCK = threading.Lock()


@cache
def _server(imported: str) -> socket.socket:
    """A connection to it; it ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wait: Callable[[float], object]
    if imported == WARM:  # workers are forked from such a process, too: that is one for both
        process = multiprocessing.get_context("forkserver").Process(target=_serve_as_worker, args=(theirs,))
        process.start()
        wait = process.join
    else:
        command = [sys.executable, "-c", _SERVER, str(theirs.fileno()), imported]
        wait = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=ROOT, start_new_session=True
        ).wait
    theirs.close()

    def close() -> None:
        ours.close()
        wait(10)

    atexit.register(close)
    return ours


def _serve_as_worker(connection: socket.socket) -> None:
    os.setsid()
    sys.argv[:] = ["-c"]
    serve(connection.detach(), WARM)


def serve(descriptor: int, imported: str) -> None:
    """Forks a process for each request, until this one's parent ends."""
    import_module(imported)
    connection = socket.socket(fileno=descriptor)
    gc.freeze()  # forked processes do not copy the memory of what they only look at
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, _MOST_BYTES, 4)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not request:
            os._exit(0)
        if not os.fork():
            connection.close()
            *streams, status = descriptors
            _watch(streams, status)
            _execute(_prepared(streams, **json.loads(request)))
        for each in descriptors:
            os.close(each)


def _watch(streams: list[int], status: int) -> None:
    """Forks the process of the program and returns there; here, reports its number and how it ends."""
    process = os.fork()
    if not process:
        os.close(status)
        return
    for each in streams:
        os.close(each)
    os.write(status, str(process).encode())
    ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    sign = 1 if ended.si_code == os.CLD_EXITED else -1
    with suppress(BrokenPipeError):
        os.write(status, str(sign * ended.si_status).encode())
    os.read(status, 1)  # until then nobody else can have its number
    os.waitpid(process, 0)
    os._exit(0)


def _prepared(
    streams: list[int],
    program: str,
    arguments: list[str],
    environment: dict[str, str],
    folder: str,
    new_session: bool,
) -> CodeType:
    """Makes this process look like a new one."""
    if new_session:
        os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    sys.argv[1:] = arguments
    for number, (name, descriptor) in enumerate(zip(("stdin", "stdout", "stderr"), streams, strict=True)):
        os.dup2(descriptor, number)
        os.close(descriptor)
        stream = open(  # noqa: SIM115
            number,
            "w" if number else "r",
            closefd=False,
            buffering=1 if number == 2 or os.isatty(number) else -1,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    return compile(program, "<string>", "exec")


def _execute(program: CodeType) -> NoReturn:
    """Ends as the interpreter would."""
    status: object = 0
    try:
        exec(program, {"__name__": "__main__"})
    except SystemExit as ended:
        status = ended.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
    except BaseException as error:  # noqa: BLE001 (as the interpreter does)
        sys.excepthook(type(error), error, error.__traceback__)
        status = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    if status == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status if isinstance(status, int) else int(status is not None))
