"""What is in the way of a checkpoint: files, other trainings, nothing to go on from, a full disk."""

import errno
import re
import subprocess

import numpy as np
import pytest

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.errors import CheckpointError, DataError, ModelFormatError
from distboost.io.storage import only_writer
from distboost.model import checkpoint
from tests import disks
from tests.checkpoints.trainings import fitted, made


def test_a_file_in_the_way_is_refused_before_data_are_read(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in ("file", "file/below"):
        model = GAMBLEClassifier(checkpoint=tmp_path / place)
        with pytest.raises(DataError, match=rf"cannot make the folder .*{re.escape(str(tmp_path / place))}"):
            model.fit(f"{tmp_path}/nowhere/x", f"{tmp_path}/nowhere/y")
    assert (tmp_path / "file").read_text() == "mine"


def test_two_trainings_at_once(problem, tmp_path):
    with only_writer(str(tmp_path / "c")), pytest.raises(DataError, match="another process is writing to"):
        fitted(made("notes", checkpoint=tmp_path / "c"), problem)
    fitted(made("notes", checkpoint=tmp_path / "c"), problem)


def test_nothing_to_resume(problem, tmp_path):
    (tmp_path / "c").mkdir()
    with pytest.raises(
        ValueError, match=rf"{re.escape(str(tmp_path / 'c'))} has no complete one.*without resume"
    ):
        fitted(made("notes", checkpoint=tmp_path / "c"), problem, resume=True)
    with pytest.raises(ModelFormatError, match=r"is a folder without a complete checkpoint\.$"):
        distboost.load(tmp_path / "c")
    distboost.bin(*problem[:2], tmp_path / "store")
    with pytest.raises(ModelFormatError, match=r"a complete checkpoint\. It has zarr data, which"):
        distboost.load(tmp_path / "store")


def test_a_training_that_writes_nothing_leaves_no_folder(problem, tmp_path):
    """Unless it was there before."""
    (tmp_path / "before").mkdir()
    for name in ("new", "before"):
        with pytest.raises(ValueError, match="without resume"):
            fitted(made("notes", checkpoint=tmp_path / name), problem, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["before"]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    with disks.small_disk(tmp_path / "small", "1m") as place:
        yield place


def test_a_full_disk(small_disk, saved):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 5)), rng.integers(0, 10, 1000)
    folder = small_disk / "c"
    parameters = {
        "calibration": None,
        "n_estimators": 60,
        "max_depth": 8,
        "checkpoint": folder,
        "checkpoint_every": 5,
    }
    with pytest.raises(
        CheckpointError,
        match=r"small/c: \d+ bytes to .*No space left on device, \d+ bytes free.*Correct the cause",
    ):
        GDMCBoostClassifier(**parameters).fit(X, y)
    assert not list(folder.glob("*.part"))
    kept = distboost.load(folder)
    assert 10 <= kept.n_iter_ < 60
    assert kept.n_iter_ % 5 == 0
    np.testing.assert_array_equal(
        kept.scores(X),
        GDMCBoostClassifier(calibration=None, n_estimators=kept.n_iter_, max_depth=8).fit(X, y).scores(X),
    )
    subprocess.run(["mount", "-o", "remount,size=9m", small_disk], timeout=20, check=True)
    model = GDMCBoostClassifier(**parameters).fit(X, y, resume=True)
    assert saved(model) == saved(
        GDMCBoostClassifier(calibration=None, n_estimators=60, max_depth=8).fit(X, y)
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EIO, "Input/output error"), r"Input/output error"),
        (OSError(errno.ENOSPC, "No space left"), r"No space left, \d+ bytes free"),
        (OSError(errno.EDQUOT, "Quota exceeded"), r"Quota exceeded, \d+ bytes free"),
        (OSError("cut off"), r"cut off"),
        (RuntimeError("no answer"), r"RuntimeError: no answer"),
    ],
    ids=str,
)
def test_a_failed_write_names_its_cause(error, said, tmp_path):
    assert re.fullmatch(said, checkpoint._reason(error, str(tmp_path)))
    assert checkpoint._reason(error, "s3://bucket/c") == f"{type(error).__name__}: {error}"
