"""Clusters with TLS: real processes that speak with certificates of the command, and those that they refuse."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import stat
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dask.array as da
import numpy as np
import psutil
import pytest
import zarr
from click.testing import CliRunner, Result
from distributed import Client

from distboost import GDMCBoostClassifier
from distboost.cli import main
from distboost.cli.connection import CONNECT_DEADLINE
from distboost.cluster.certificates import Authority
from distboost.cluster.local import local_cluster
from distboost.cluster.security import tls_security
from distboost.errors import ClusterError
from tests.failing import error_of
from tests.programs import Program

FILES = ("ca.pem", "cert.pem", "key.pem")
SLACK = 20.0  # seconds that a refusal may take beside the deadline, on a busy machine


def certificates(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["cluster", "certificates", *map(str, arguments)])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder that the command makes."""
    folder = tmp_path_factory.mktemp("made") / "certificates"
    done = certificates(folder, "--name", "node1.example", "--name", "10.0.0.1")
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(scope="module")
def authority():
    """The command keeps the key of none."""
    return Authority()


@pytest.fixture(scope="module")
def tls(authority, tmp_path_factory):
    """A folder of certificates."""
    folder = tmp_path_factory.mktemp("tls")
    authority.issue(folder)
    return folder


@pytest.fixture(scope="module")
def address(tls):
    """A scheduler with two workers; all their processes have ended afterwards."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    with local_cluster(2, n_threads=1, tls=tls) as cluster:
        started = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
        assert len(started) >= 5  # the scheduler, two nannies and their workers
        yield cluster.address
    _, alive = psutil.wait_procs(started, timeout=10)
    assert not alive


@pytest.fixture(scope="module")
def client(address, tls):
    with Client(address, security=tls_security(tls), timeout=20, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    folder = tmp_path_factory.mktemp("data")
    for name, values in zip("xy", blobs, strict=True):
        zarr.create_array(folder / name, data=values, chunks=(50, *values.shape[1:]))
    return folder


def trained(data, n_estimators=6):
    return GDMCBoostClassifier(n_estimators=n_estimators).fit(f"{data}/x", f"{data}/y")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: object) -> str:
    """What says why a command failed; it came in time."""
    started = time.monotonic()
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert time.monotonic() - started < CONNECT_DEADLINE + SLACK
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    return error_of(result.stderr)


def train(data, path, *arguments: object) -> tuple:
    rows = ("--x", data / "x", "--y", data / "y", "--model", path)
    return ("train", "--algorithm", "gd-mcboost", *rows, "--set", "n_estimators=6", *arguments)


# the certificates


def test_files(made):
    assert sorted(path.name for path in made.iterdir()) == sorted(
        FILES
    )  # the authority's key is none of them
    assert stat.S_IMODE((made / "key.pem").stat().st_mode) == 0o600


def test_certificates_pass_strict_checks(made):
    """As other programs check them, host names included."""
    server, client = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        ssl.create_default_context(cafile=made / "ca.pem"),
    )
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    server.load_cert_chain(made / "cert.pem", made / "key.pem")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="10.0.0.1")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ours.version() == "TLSv1.3"
    names = {"localhost", "node1.example", "127.0.0.1", "10.0.0.1"}
    assert {name for _, name in ours.getpeercert()["subjectAltName"]} == names


def test_nothing_is_replaced_unless_told(tmp_path):
    (tmp_path / "key.pem").write_text("somebody's")
    done = certificates(tmp_path)
    assert done.exit_code == 1
    assert f"{tmp_path}/key.pem" in done.stderr
    assert "--force" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["key.pem"]
    assert (tmp_path / "key.pem").read_text() == "somebody's"
    (tmp_path / "key.pem").chmod(0o644)
    assert certificates(tmp_path, "--force").exit_code == 0
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    tls_security(tmp_path)  # its files fit together


# the same as in process


def test_train_by_python(client, data, saved):
    model = GDMCBoostClassifier(n_estimators=6)
    model.client = client
    model.fit(f"{data}/x", f"{data}/y")
    assert saved(model) == saved(trained(data))


def test_commands(address, tls, data, tmp_path, saved):
    there = ("--scheduler", address, "--tls", tls)
    path, expected = tmp_path / "model", trained(data)
    assert "2 Dask workers" in run(*train(data, path, *there))
    assert path.read_bytes() == saved(expected)
    run("predict", "--model", path, "--x", data / "x", "--out", tmp_path / "labels", *there)
    labels = expected.predict(zarr.open_array(data / "x")[:])
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "labels")[:], labels)
    accuracy = np.mean(labels == zarr.open_array(data / "y")[:])
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": address}))
    assert f"accuracy {accuracy:.4f}" in run(
        "evaluate", "--model", path, "--x", data / "x", "--y", data / "y", "--scheduler-file", file, "--tls", tls,
        "--wait-workers", 2,
    )  # fmt: skip
    run("bin", "--x", data / "x", "--y", data / "y", "--out", tmp_path / "store", *there)
    assert saved(GDMCBoostClassifier(n_estimators=6).fit(str(tmp_path / "store"))) == saved(expected)


def test_predict_on_a_dask_array(client, data, blobs):
    X, _ = blobs
    model = trained(data)
    lazy = model.predict_proba(da.from_array(X, chunks=(60, -1)))
    found = client.compute(lazy).result(timeout=60)
    np.testing.assert_array_equal(found, model.predict_proba(X))


def test_resume_from_a_checkpoint(address, tls, data, tmp_path, saved):
    class StoppedError(Exception):
        pass

    def stop(progress):
        if progress.round == 12:
            raise StoppedError

    path = tmp_path / "model"
    half = GDMCBoostClassifier(n_estimators=15, callbacks=[stop], checkpoint=f"{path}.checkpoint")
    with pytest.raises(StoppedError):
        half.fit(f"{data}/x", f"{data}/y")
    assert os.path.exists(f"{path}.checkpoint")
    run(*train(data, path, "--resume", "--scheduler", address, "--tls", tls, "--set", "n_estimators=15"))
    assert path.read_bytes() == saved(trained(data, n_estimators=15))


def runs(pid: int) -> bool:
    try:
        # Ended, but not yet noticed by its parent.
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("encrypted", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_program_that_the_local_cluster_runs(encrypted, made):
    """It needs to know nothing of certificates, which are those of the command; the cluster ends with it, as it does."""
    program = (
        "import os, psutil; from distributed import Client\n"
        "with Client(timeout=20) as client:\n"
        "    assert len(client.nthreads()) == 1\n"
        "    print(client.scheduler.address, client.submit(sum, [1, 2]).result(timeout=20))\n"
        "print(*(p.pid for p in psutil.Process(os.getppid()).children(recursive=True) if p.pid != os.getpid()))\n"
        "raise SystemExit(3)"
    )
    certificates = ["--tls", made] if encrypted else []
    command = ["cluster", "local", "--workers", 1, *certificates, "--", sys.executable, "-c", program]
    process = Program("from distboost.cli import main; main()", *command)
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 3, said + errors
    protocol = "tls" if encrypted else "tcp"
    assert re.search(rf"^{protocol}://127\.0\.0\.1:\d+ 3$", said, re.MULTILINE)
    pids = [int(pid) for pid in said.splitlines()[-1].split()]
    assert len(pids) >= 3  # the scheduler, the nanny, and its worker
    assert not [pid for pid in pids if runs(pid)]


# who is refused


def test_plaintext_client(address, data, tmp_path):
    plain = address.replace("tls://", "tcp://")
    error = refused(*train(data, tmp_path / "model", "--scheduler", plain))
    assert f"no Dask scheduler answers at {plain}" in error
    assert "with --tls FOLDER" in error
    with pytest.raises(OSError, match=f"remote={plain}"):
        Client(plain, timeout=5)


def greeting(address: str, tls: Path, certificate: bool) -> bytes:
    """What a server says at first to a stranger, who may show a certificate."""
    context = ssl.create_default_context(cafile=tls / "ca.pem")
    if certificate:
        context.load_cert_chain(tls / "cert.pem", tls / "key.pem")
    host, port = address.removeprefix("tls://").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=host) as encrypted,
    ):
        return encrypted.recv(1)


def test_nobody_takes_a_client_without_certificate(client, tls):
    known = client.sync(client.scheduler.identity, n_workers=-1)
    workers = known["workers"]
    addresses = [known["address"], *workers, *(worker["nanny"] for worker in workers.values())]
    assert len(addresses) == 5
    for address in addresses:
        assert len(greeting(address, tls, certificate=True)) == 1
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            greeting(address, tls, certificate=False)


@pytest.mark.parametrize("whose", ["another authority's", "expired", "not yet valid"])
def test_certificate(whose, authority, tls, address, data, tmp_path):
    if whose == "another authority's":
        Authority().issue(tmp_path)
        # It trusts the scheduler: it is the scheduler that must not trust it.
        (tmp_path / "ca.pem").write_bytes((tls / "ca.pem").read_bytes())
    else:
        start = datetime.now(UTC) + timedelta(days=-2 if whose == "expired" else 2)
        authority.issue(tmp_path, days=1, start=start)
    error = refused(*train(data, tmp_path / "model", "--scheduler", address, "--tls", tmp_path))
    assert f"no Dask scheduler answers at {address}" in error
    assert f"is {tmp_path}/cert.pem one?" in error


def test_scheduler_of_another_authority(address, data, tmp_path):
    Authority().issue(tmp_path)
    error = refused(*train(data, tmp_path / "model", "--scheduler", address, "--tls", tmp_path))
    assert f"is {tmp_path}/cert.pem one?" in error


def test_scheduler_with_an_expired_certificate(data, tmp_path):
    authority = Authority()
    authority.issue(tmp_path / "expired", days=1, start=datetime.now(UTC) - timedelta(days=2))
    with (
        pytest.raises(ClusterError, match=r"Timed out|TLS certificate does not match|ended with code"),
        local_cluster(1, n_threads=1, tls=tmp_path / "expired"),
    ):
        pass


def test_options_that_do_not_fit(tls, data, tmp_path):
    path = tmp_path / "model"
    assert "tls://host:8786" in refused(*train(data, path, "--tls", tls))
    assert "tls://host:8786" in refused(*train(data, path, "--scheduler", "tcp://127.0.0.1:9", "--tls", tls))
    (tmp_path / "ca.pem").write_bytes((tls / "ca.pem").read_bytes())
    error = refused(*train(data, path, "--scheduler", "tls://127.0.0.1:9", "--tls", tmp_path))
    assert f"certificates in {tmp_path}" in error
    assert "cert.pem" in error
