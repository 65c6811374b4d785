"""Runs pytest in forks of this process, which has imported the libraries: pytest begins in a second instead of seven.

Each line of its input is a folder, a limit of seconds and the arguments of pytest; each of its output the exit code, the seconds
and what pytest has printed.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import numba
import pytest.__main__
from hypothesis import Phase, settings

# What nearly all tests import. Nothing of the package, nor of its tests: forks import these from the copy.
LIBRARIES = (
    "hypothesis.extra.numpy", "dask.array", "distributed", "scipy.sparse", "scipy.special",
    "scipy.optimize", "sklearn.utils.estimator_checks", "sklearn.model_selection", "zarr", "pandas", "xarray", "click.testing",
    "rich.console", "rich.table", "rich.progress", "jinja2", "narwhals", "safetensors.numpy", "fsspec", "tenacity",
)  # fmt: skip


def pytest_sessionstart():
    """Let hypothesis find an example that fails, and not look for the smallest."""
    phases = {*Phase} - {Phase.shrink, Phase.explain}
    settings.register_profile("unshrunk", settings.default, phases=phases)
    settings.load_profile("unshrunk")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    """Keep the order of the files, and take one case of each of their tests before a second: this module is a plugin."""
    files = [*dict.fromkeys(item.path for item in items)]
    cases, places = Counter(), {}
    for item in items:
        test = item.nodeid.partition("[")[0]
        places[item] = files.index(item.path), cases[test]
        cases[test] += 1
    yield
    items.sort(key=places.get)


def run(folder: str, limit: float, arguments: list[str]) -> tuple[int | None, float, str]:
    """Runs pytest in a folder; the code is None if it was ended at the limit."""
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="scratch-", dir=folder, ignore_cleanup_errors=True) as scratch,
        tempfile.TemporaryFile() as output,
    ):
        process = os.fork()
        if not process:
            try:
                _become(folder, scratch, output.fileno(), arguments)
            finally:
                os._exit(pytest.ExitCode.INTERNAL_ERROR)
        try:
            done = status = 0
            while not done and time.monotonic() - started < limit:
                time.sleep(0.02)
                done, status = os.waitpid(process, os.WNOHANG)
        finally:  # tests start processes of their own
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
        if not done:
            os.waitpid(process, 0)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return os.waitstatus_to_exitcode(status) if done else None, time.monotonic() - started, text


def _become(folder: str, scratch: str, output: int, arguments: list[str]) -> NoReturn:
    """Goes on as `python -m pytest` in a folder."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(stream, number)
    os.chdir(folder)
    os.environ.update(PYTHONPATH=folder, TMPDIR=scratch)
    tempfile.tempdir = None
    sys.path[0] = folder
    sys.argv = [pytest.__main__.__file__, *arguments]
    plugin, sys.modules["__main__"] = sys.modules["__main__"], pytest.__main__
    code = pytest.main(arguments, [plugin])
    sys.stdout.flush()
    os._exit(code)


def main() -> None:
    """Answers until its input ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    numba.njit(lambda x: x)(0)  # loads what it compiles with
    gc.freeze()  # no fork copies memory to look for garbage there
    for line in sys.stdin:
        print(json.dumps(run(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
