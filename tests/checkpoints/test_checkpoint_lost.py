"""Files of a checkpoint that somebody removes while the training goes on: they are written again, or the training says so."""

import json
import shutil

import fsspec
import pytest

import distboost
from distboost.errors import CheckpointError
from distboost.estimators.factory import estimator
from distboost.io.storage import only_writer
from distboost.model.checkpoint import MANIFEST

TRAININGS = {
    "segments": ("gd-mcboost", {"max_depth": 2}),
    "notes": ("adaboost-mm", {}),
    "early stopping": ("gd-mcboost", {"n_estimators": 40, "max_depth": 2, "early_stopping_rounds": 4}),
    "corrective": ("multiboost", {}),
}


def fitted(training, problem, **more):
    algorithm, parameters = TRAININGS[training]
    X, y, Xt, yt = problem
    model = estimator(algorithm)(
        calibration=None, **{"n_estimators": 11, "n_jobs": 1, "checkpoint_every": 2, **parameters, **more}
    )
    return model.fit(X, y, eval_set=(Xt, yt))


def in_round(number, act):
    """A callback that acts in this round."""

    def told(progress):
        if progress.round == number:
            act()

    return [told]


def first_segment(folder):
    return min(folder.glob("rounds-*"), key=lambda path: int(path.name.split("-")[1]))


REMOVALS = {
    "all segments": lambda folder: [path.unlink() for path in folder.glob("rounds-*")],
    "the first segment": lambda folder: first_segment(folder).unlink(),
    "half of a segment": lambda folder: first_segment(folder).write_bytes(b"half"),
    "the manifest": lambda folder: (folder / MANIFEST).unlink(),
    "the folder": shutil.rmtree,
    "the folder, and it is made again": lambda folder: (shutil.rmtree(folder), folder.mkdir()),
}


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("training", TRAININGS)
def test_what_is_removed_is_written_again(training, removal, problem, tmp_path, saved):
    expected = saved(fitted(training, problem))
    folder = tmp_path / "c"
    model = fitted(
        training, problem, checkpoint=folder, callbacks=in_round(7, lambda: REMOVALS[removal](folder))
    )
    assert saved(model) == saved(distboost.load(folder)) == expected
    listed = json.loads((folder / MANIFEST).read_text())["segments"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [MANIFEST, *(one["name"] for one in listed)]
    )


def test_after_the_last_write_in_between(problem, tmp_path, saved):
    """Nothing new was learned since: what is written at the end names what is gone."""
    folder = tmp_path / "c"
    model = fitted(
        "segments",
        problem,
        checkpoint=folder,
        n_estimators=4,
        callbacks=in_round(4, lambda: REMOVALS["all segments"](folder)),
    )
    assert saved(distboost.load(folder)) == saved(model)


def test_resuming_after_the_folder_was_removed(problem, tmp_path, saved):
    folder = tmp_path / "c"
    fitted(
        "segments",
        problem,
        checkpoint=folder,
        n_estimators=8,
        callbacks=in_round(5, lambda: shutil.rmtree(folder)),
    )
    X, y, Xt, yt = problem
    algorithm, parameters = TRAININGS["segments"]
    model = estimator(algorithm)(calibration=None, n_estimators=11, n_jobs=1, checkpoint=folder, **parameters)
    assert saved(model.fit(X, y, eval_set=(Xt, yt), resume=True)) == saved(fitted("segments", problem))


def test_the_folder_that_takes_its_place_is_locked(problem, tmp_path):
    folder = tmp_path / "c"

    def taken():
        with pytest.raises(ValueError, match="another process is writing"), only_writer(str(folder)):
            pass

    told = [*in_round(4, lambda: shutil.rmtree(folder)), *in_round(8, taken)]
    fitted("segments", problem, checkpoint=folder, callbacks=told)


def test_a_folder_that_another_process_takes(problem, tmp_path):
    folder, held = tmp_path / "c", []

    def replace():
        shutil.rmtree(folder)
        held.append(only_writer(str(folder)))
        held[0].__enter__()

    with pytest.raises(CheckpointError, match=r"its folder was removed: .*another process is writing to"):
        fitted("segments", problem, checkpoint=folder, callbacks=in_round(4, replace))
    held[0].__exit__(None, None, None)
    assert list(folder.iterdir()) == []


def test_files_removed_as_soon_as_written(problem, tmp_path, monkeypatch):
    folder = tmp_path / "c"
    publish = distboost.model.checkpoint.publish

    def spoiled(url, content):
        publish(url, content)
        if url.endswith(MANIFEST):
            REMOVALS["all segments"](folder)

    monkeypatch.setattr(distboost.model.checkpoint, "publish", spoiled)
    with pytest.raises(CheckpointError, match=r"c is incomplete: in 5 attempts, another program removed"):
        fitted("segments", problem, checkpoint=folder)


def test_in_an_object_store(problem, saved):
    files = fsspec.filesystem("memory")

    def remove():
        for path in files.find("/lost"):
            files.rm_file(path)

    model = fitted("segments", problem, checkpoint="memory://lost", callbacks=in_round(7, remove))
    assert saved(distboost.load("memory://lost")) == saved(model)
