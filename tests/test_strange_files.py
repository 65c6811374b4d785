"""What is no file where one is expected: nothing hangs, nothing takes all memory, and nothing of the system is replaced."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tracemalloc

import numpy as np
import pytest
from click.testing import CliRunner

import distboost
from distboost import GAMBLEClassifier
from distboost.active.ledger import Ledger
from distboost.cli import main
from distboost.cli.labels_csv import read_labels_csv
from distboost.errors import CheckpointError, DataError, ModelFormatError, StoreError
from distboost.model.checkpoint import MANIFEST
from tests.programs import Program

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no devices here")

DEADLINE = 60


def a_pipe(path):
    os.mkfifo(path)


def an_endless_device(path):
    path.symlink_to("/dev/zero")


def a_terminal(path):
    path.symlink_to("/dev/tty")


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


STRANGE = [a_pipe, an_endless_device, a_terminal, a_socket]


@pytest.fixture(scope="module")
def rows():
    y = np.arange(60) % 3
    return np.random.default_rng(0).normal(size=(60, 3)) + np.eye(3)[y], y


@pytest.fixture
def folder(rows, tmp_path, monkeypatch):
    """A checkpoint of two segments. The working directory, as a socket's path must be short."""
    monkeypatch.chdir(tmp_path)
    GAMBLEClassifier(n_estimators=4, n_jobs=1, checkpoint="c", checkpoint_every=2).fit(*rows)
    return tmp_path / "c"


def replaced(path, make):
    path.unlink()
    os.chdir(path.parent)
    make(type(path)(path.name))
    return path


LOAD = """
import sys, distboost
for path in sys.argv[1:]:
    try:
        distboost.load(path)
    except distboost.errors.ModelFormatError as error:
        print(error)
"""


def test_a_pipe_does_not_hang(folder):
    """In a process that ends: one that hangs is ended."""
    segment = replaced(next(folder.glob("rounds-0*")), a_pipe)
    a_pipe(folder / "model")
    process = Program(LOAD, folder, folder / "model")
    try:
        of_checkpoint, of_model = process.communicate(timeout=DEADLINE)[0].splitlines()
    finally:
        process.kill()
    assert f"{segment.name} is a pipe, not a regular file" in of_checkpoint
    assert f"{folder}/model is a pipe, not a regular file" in of_model


@pytest.mark.parametrize("make", STRANGE)
@pytest.mark.parametrize("name", [MANIFEST, "rounds-0-2*"])
def test_checkpoints(make, name, folder):
    path = replaced(next(folder.glob(name)), make)
    with pytest.raises(ModelFormatError, match=rf"{path.name} is a (pipe|device|socket), not a regular file"):
        distboost.load(folder)


@pytest.mark.parametrize("name", [MANIFEST, "rounds-0-2*"])
def test_folders_in_a_checkpoint(name, folder, rows):
    path = next(folder.glob(name))
    path.unlink()
    path.mkdir()
    with pytest.raises(ModelFormatError, match=rf"{path.name} is a folder, not a file of a checkpoint"):
        distboost.load(folder)
    with pytest.raises(ModelFormatError, match=rf"{path.name} is a folder"):
        GAMBLEClassifier(n_estimators=6, checkpoint=folder).fit(*rows, resume=True)


@pytest.mark.parametrize("make", STRANGE)
def test_models(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(type(tmp_path)("model"))
    with pytest.raises(ModelFormatError, match=r"model is a (pipe|device|socket), not a regular file"):
        distboost.load(tmp_path / "model")
    done = CliRunner().invoke(main, ["inspect", str(tmp_path / "model")])
    assert done.exit_code == 1
    assert "not a regular file" in done.output


def test_a_segment_larger_than_its_manifest_says(folder):
    """Vast, and of no blocks on disk: no more is read than the manifest tells of."""
    path = next(folder.glob("rounds-0-2*"))
    with path.open("r+b") as file:
        file.truncate(2**40)
    tracemalloc.start()
    with pytest.raises(
        ModelFormatError, match=r"rounds-0-2.* \(more than \d+ bytes\) was truncated or altered"
    ):
        distboost.load(folder)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 2**23


@pytest.mark.parametrize("make", STRANGE)
def test_logs_and_sheets(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(type(tmp_path)("strange"))
    with pytest.raises(StoreError, match=r"strange is a (pipe|device|socket), not a regular file"):
        Ledger.from_log(tmp_path / "strange")
    with pytest.raises(DataError, match=r"strange is a (pipe|device|socket), not a regular file"):
        read_labels_csv(str(tmp_path / "strange"))


# Writing.


@pytest.fixture
def null(tmp_path):
    """A device of our own, where the administrator may make one; or the system's, which others may not replace."""
    try:
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices cannot be made here")
    return tmp_path / "null"


def test_a_device_is_not_replaced(null, rows, tmp_path):
    model = GAMBLEClassifier(n_estimators=2, n_jobs=1).fit(*rows)
    (tmp_path / "link").symlink_to(null)
    a_pipe(tmp_path / "pipe")
    for path, what in (
        (null, "device"),
        (tmp_path / "link", "device"),
        (tmp_path / "pipe", "pipe"),
        (tmp_path, "folder"),
    ):
        before = os.lstat(path)
        with pytest.raises(StoreError, match=rf"cannot write {path}: it is a {what}, which is not replaced"):
            model.save(path)
        assert os.lstat(path).st_ino == before.st_ino
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "null", "pipe"]


def test_a_device_is_refused_before_the_run(null, tmp_path):
    done = CliRunner().invoke(
        main,
        [
            "train",
            "--algorithm",
            "gamble",
            "--x",
            str(tmp_path / "x"),
            "--y",
            str(tmp_path / "y"),
            "--model",
            str(null),
        ],
    )
    assert done.exit_code == 1
    assert (
        done.output
        == f"Error: cannot write {null}: it is a device, which is not replaced.\nPass the path of a file.\n"
    )
    assert stat.S_ISCHR(null.stat().st_mode)


def test_a_link_is_replaced_and_its_target_stays(rows, tmp_path):
    model = GAMBLEClassifier(n_estimators=2, n_jobs=1).fit(*rows)
    (tmp_path / "first").write_text("other")
    for target in ("first", "nowhere"):
        (tmp_path / "link").symlink_to(target)
        model.save(tmp_path / "link")
        assert not (tmp_path / "link").is_symlink()
        assert distboost.load(tmp_path / "link").n_iter_ == 2
        (tmp_path / "link").unlink()
    assert (tmp_path / "first").read_text() == "other"
    assert not (tmp_path / "nowhere").exists()


def test_a_checkpoint_replaces_no_device(null, rows, tmp_path):
    folder = tmp_path / "c"
    folder.mkdir()
    shutil.move(null, folder / MANIFEST)
    with pytest.raises(
        CheckpointError, match=rf"cannot write {folder}/{MANIFEST}: it is a device, which is not replaced"
    ):
        GAMBLEClassifier(n_estimators=2, checkpoint=folder).fit(*rows)
    assert stat.S_ISCHR((folder / MANIFEST).stat().st_mode)
