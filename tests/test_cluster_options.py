"""Where a command runs: a scheduler's address, its file, or Dask's configuration; and how many workers it waits for."""

from __future__ import annotations

import json
import os
import time
from types import SimpleNamespace

import dask
import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from distributed import LocalCluster

import distboost
from distboost.cli import connection, main
from distboost.cli.connection import address_in, connect
from distboost.cli.options import ClusterOptions
from distboost.errors import ClusterError
from distboost.runtime.cluster import monitor
from tests.failing import error_of

NOBODY = "tcp://127.0.0.1:9"


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    folder = tmp_path_factory.mktemp("data")
    for name, values in zip("xy", map(np.asarray, blobs), strict=True):
        zarr.create_array(folder / name, data=values, chunks=(60, *values.shape[1:]))
    return folder


@pytest.fixture(scope="module")
def address():
    """A scheduler with a worker, in this process."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def file(tmp_path):
    """file(address): the path of a scheduler's file, as `dask scheduler --scheduler-file` writes it."""

    def write(address: str) -> str:
        path = tmp_path / "scheduler.json"
        path.write_text(json.dumps({"type": "Scheduler", "address": address, "workers": {}}))
        return str(path)

    return write


def options_for(command: str, data, folder) -> tuple[str, ...]:
    rows = ("--x", str(data / "x"), "--y", str(data / "y"))
    if command == "bin":
        return ("bin", *rows, "--out", str(folder / "store"))
    model = ("--model", str(folder / "model"), "--set", "n_estimators=2")
    return ("train", "--algorithm", "gamble", *rows, *model)


def fail(*arguments: object) -> str:
    """What a command that fails says, with an error at the end."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    assert error_of(result.stderr)
    return result.stderr


@pytest.mark.parametrize("how", ["address", "file", "variable", "configuration"])
def test_each_way_leads_to_the_scheduler(how, address, file, data, tmp_path, monkeypatch):
    options, said, settings = (), "", {}
    if how == "address":
        options = ("--scheduler", address)
    elif how == "file":
        options = ("--scheduler-file", file(address))
        said = f"Using the Dask cluster at {address}, named by the file {tmp_path}/scheduler.json."
    elif how == "variable":
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address)
        settings = {"scheduler_address": dask.config.collect_env()["scheduler_address"]}  # as on import
        said = f"Using the Dask cluster at {address}, named by DASK_SCHEDULER_ADDRESS."
    else:
        settings = {"scheduler-address": address}
        said = (
            f"Using the Dask cluster at {address}, named by scheduler-address in the configuration of Dask."
        )
    with dask.config.set(settings):
        result = CliRunner().invoke(
            main, [*options_for("train", data, tmp_path), *options, "--wait-workers", "1"]
        )
    assert result.exit_code == 0, result.output
    assert f"on 1 Dask workers with 1 threads ({address})" in result.stderr
    assert said in result.stderr
    assert distboost.load(tmp_path / "model").n_iter_ == 2


def test_an_option_counts_more_than_the_configuration(address):
    with (
        dask.config.set({"scheduler-address": NOBODY}),
        connect(ClusterOptions(scheduler=address)) as client,
    ):
        assert client.scheduler.address == address


@pytest.mark.parametrize("setting", [None, ""])
def test_without_any_setting_a_command_runs_in_its_process(setting):
    with dask.config.set({"scheduler-address": setting}), connect(ClusterOptions()) as client:
        assert client is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scheduler", NOBODY, "--scheduler-file", "f"), "--scheduler and --scheduler-file exclude each other"),
        (("--scheduler-file", "f", "--workers", 2), "--scheduler-file and --workers exclude each other"),
        (("--workers", 2, "--wait-workers", 2), "leave --wait-workers out"),
        (("--wait-workers", 2), "--wait-workers 2 is for a cluster: pass --scheduler, --scheduler-file or DASK_"),
        (("--workers", 2, "--tls", "."), "such as tls://host:8786; its address is not given: --workers"),
        (("--tls", "."), "such as tls://host:8786; its address is not given"),
        (("--scheduler", ""), "--scheduler is empty"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options, message, data, tmp_path):
    assert message in fail(*options_for("bin", data, tmp_path), *options)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("where", ["file", "configuration"])
def test_certificates_for_a_plain_address(where, file, data, tmp_path):
    options = ("--scheduler-file", file(NOBODY)) if where == "file" else ()
    name = f"the file {file(NOBODY)}" if where == "file" else "scheduler-address in the configuration of Dask"
    with dask.config.set({"scheduler-address": NOBODY}):
        error = fail(*options_for("bin", data, tmp_path), *options, "--tls", tmp_path)
    assert f"its address is {NOBODY}, named by {name}." in error


@pytest.mark.parametrize("where", ["file", "configuration"])
def test_no_scheduler_at_the_address(where, file, data, tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "CONNECT_DEADLINE", 0.5)
    options = ("--scheduler-file", file(NOBODY)) if where == "file" else ()
    with dask.config.set({"scheduler-address": None if options else NOBODY}):
        error = fail(*options_for("bin", data, tmp_path), *options)
    assert f"no Dask scheduler answers at {NOBODY}, named by " in error
    assert ("scheduler.json" if options else "scheduler-address") in error


# files


def test_a_file_that_is_written_meanwhile(file, tmp_path, monkeypatch, capsys):
    """It is waited for, also while it is incomplete."""
    path = tmp_path / "scheduler.json"
    steps = iter([lambda: path.touch(), lambda: path.write_text('{"addr'), lambda: file(NOBODY)])
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: next(steps)())
    monkeypatch.setattr(connection, "time", clock)
    assert address_in(str(path)) == NOBODY
    assert capsys.readouterr().err == f"Waiting for the scheduler file {path}.\n"


def test_a_file_that_does_not_come(data, tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "FILE_DEADLINE", 0.2)
    path = tmp_path / "none.json"
    error = fail(*options_for("bin", data, tmp_path), "--scheduler-file", path)
    assert f"Waiting for the scheduler file {path}." in error
    assert f"there is no scheduler file {path} (waited 0 s).\nPass the file that 'dask scheduler" in error


@pytest.mark.parametrize("content", [b"", b"tcp://127.0.0.1:9", b'{"address": "tcp:', b"\xff\xfe\x00", b"[" * 99999,
                                     b"[1]", b"{}", b'{"address": 8786}', b'{"address": ""}'])  # fmt: skip
def test_a_file_of_another_kind(content, tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "UNFINISHED_DEADLINE", 0.0)
    path = tmp_path / "scheduler.json"
    path.write_bytes(content)
    with pytest.raises(ClusterError, match=rf"{path} is no scheduler file: .*Pass the file that 'dask sch"):
        address_in(str(path))


def test_what_is_no_file(tmp_path):
    with pytest.raises(ClusterError, match=rf"{tmp_path} cannot be read: Is a directory\. Check the path"):
        address_in(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ClusterError, match=r"pipe is a pipe, not a regular file"):
        address_in(str(tmp_path / "pipe"))


# --wait-workers


def test_too_few_workers(address, data, tmp_path, monkeypatch):
    monkeypatch.setattr(monitor, "WAIT_DEADLINE", 0.3)
    for command in ("bin", "train"):
        error = fail(*options_for(command, data, tmp_path), "--scheduler", address, "--wait-workers", 3)
        assert f"waiting for workers at {address}: 1 of 3 are there (waited 0 s of at most 0 s)" in error
        assert f"Error: the scheduler at {address} had 1 of 3 workers after 0 s.\nStart more" in error
    assert [*tmp_path.iterdir()] == []
    with (
        connect(ClusterOptions(scheduler=address)) as client,
        pytest.raises(ClusterError, match="had 1 of 2 workers"),
    ):
        distboost.bin(f"{data}/x", f"{data}/y", f"{tmp_path}/store", wait_for_workers=2, client=client)


def test_in_this_process_there_are_no_workers_to_wait_for(data, blobs, tmp_path, saved):
    """The parameter decides nothing that is learned, and no file has it."""
    alone, waiting = (
        distboost.GAMBLEClassifier(calibration=None, n_estimators=2, wait_for_workers=n) for n in (None, 5)
    )
    assert saved(waiting.fit(*blobs)) == saved(alone.fit(*blobs))
    store = distboost.bin(f"{data}/x", f"{data}/y", f"{tmp_path}/store", wait_for_workers=5)
    assert saved(waiting.fit(store)) == saved(alone.fit(f"{data}/x", f"{data}/y"))


def test_no_number_of_workers(data, tmp_path):
    with pytest.raises(ValueError, match="'wait_for_workers' parameter of GAMBLEClassifier"):
        distboost.GAMBLEClassifier(calibration=None, wait_for_workers=0).validate()
    with pytest.raises(ValueError, match="The 'wait_for_workers' parameter of bin must be"):
        distboost.bin(f"{data}/x", f"{data}/y", f"{tmp_path}/store", wait_for_workers=0)
