"""Where model files are written and read: paths, URLs, folders that are missing, places that fail."""

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import distboost
from distboost import GDMCBoostClassifier
from distboost.errors import StoreError


@pytest.fixture(scope="module")
def model(blobs):
    return GDMCBoostClassifier(n_estimators=3, max_depth=3).fit(*blobs)


def test_files_by_url(blobs, model):
    X, _ = blobs
    model.save("memory://models/m")
    np.testing.assert_array_equal(distboost.load("memory://models/m").scores(X), model.scores(X))


def test_a_file_is_replaced_whole(blobs, model, tmp_path):
    file = tmp_path / "small.model"
    model.save(file)
    GDMCBoostClassifier(n_estimators=1, max_depth=1).fit(*blobs).save(file)
    assert distboost.load(file).n_iter_ == 1
    assert [p.name for p in file.parent.iterdir()] == ["small.model"]


def test_the_folder_of_a_new_file_is_missing(model, tmp_path):
    with pytest.raises(
        StoreError, match=r"cannot write .*missing/model: the folder .*missing does not exist"
    ):
        model.save(tmp_path / "missing" / "model")


@pytest.mark.parametrize("way", ["cat_file", "pipe_file"])
def test_a_url_that_fails_for_a_moment(way, model, monkeypatch):
    """Reads and writes are tried again; those that always fail are errors of distboost."""
    failures = [ConnectionResetError("no answer")]
    model.save("memory://model-file/of-before")
    whole = getattr(MemoryFileSystem, way)

    def failing(self, *args, **kwargs):
        if failures:
            raise failures[0] if len(failures) > 5 else failures.pop()
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, way, failing)
    monkeypatch.setattr("distboost.io.retry.FIRST_WAIT", 0.0)
    model.save("memory://model-file/of-before")
    assert distboost.load("memory://model-file/of-before").n_iter_ == 3
    assert not failures
    failures += 6 * [ConnectionResetError("no answer")]
    access = distboost.load if way == "cat_file" else model.save
    with pytest.raises(StoreError, match=r"memory://.* cannot be (read|written): .*tried up to 6 times"):
        access("memory://model-file/of-before")
