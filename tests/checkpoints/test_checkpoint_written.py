"""What a checkpoint consists of while it is written, and that nothing half-written is ever read."""

import json
import os
import threading
import time

import numpy as np
import pytest

import distboost
from distboost import AdaBoostMMClassifier, GDMCBoostClassifier
from distboost.errors import DataError
from distboost.model.checkpoint import MANIFEST, is_checkpoint, remove
from tests.checkpoints.trainings import fitted, made, rounds

DEADLINE = 60.0


def test_each_write_adds_the_rounds_since_the_last(problem, tmp_path):
    seen = {}

    def look(progress):
        for entry in os.scandir(tmp_path / "c"):
            seen.setdefault(entry.name, set()).add((entry.inode(), entry.stat().st_mtime_ns))

    model = made("random counters", checkpoint=tmp_path / "c", checkpoint_every=4, callbacks=[look])
    fitted(model, problem)
    assert rounds(tmp_path / "c") == [(0, 4), (4, 8), (8, 12), (12, 14)]
    assert len(os.listdir(tmp_path / "c")) == 5
    for name, states in seen.items():
        assert len(states) == (3 if name == MANIFEST else 1)
    listed = json.loads((tmp_path / "c" / MANIFEST).read_text())["segments"]
    assert [(one["first"], one["last"]) for one in listed] == rounds(tmp_path / "c")
    for one in listed:
        assert one["n_bytes"] == (tmp_path / "c" / one["name"]).stat().st_size


def test_resuming_adds_to_the_segments_that_are_there(problem, tmp_path):
    fitted(made("notes", checkpoint=tmp_path / "c").set_params(n_estimators=5), problem)
    (first,) = (tmp_path / "c").glob("rounds*")
    inode = first.stat().st_ino
    for more, expected in ((8, [(0, 5), (5, 8)]), (12, [(0, 5), (5, 8), (8, 12)])):
        model = distboost.load(tmp_path / "c").set_params(n_estimators=more, checkpoint=tmp_path / "c")
        fitted(model, problem, resume=True)
        assert rounds(tmp_path / "c") == expected
    assert first.stat().st_ino == inode


def test_a_corrective_training_replaces_its_segment(problem, tmp_path):
    model = fitted(made("corrective", checkpoint=tmp_path / "c", checkpoint_every=1), problem)
    assert rounds(tmp_path / "c") == [(0, model.n_iter_)]


def test_seconds_or_rounds(problem, tmp_path):
    expected = {"0s": [(i, i + 1) for i in range(12)], "2 hours": [(0, 12)], 5: [(0, 5), (5, 10), (10, 12)]}
    for every, segments in expected.items():
        fitted(made("notes", checkpoint=tmp_path / f"{every}", checkpoint_every=every), problem)
        assert rounds(tmp_path / f"{every}") == segments


@pytest.mark.parametrize("every", ["soon", "10", "", "-5s", "1e999 s", 0, -1, 2.5, None])
def test_invalid_intervals(every, problem):
    with pytest.raises(ValueError, match=r"checkpoint_every.*(rounds|range|int)") as raised:
        fitted(made("notes", checkpoint_every=every), problem)
    if isinstance(every, str):
        assert isinstance(raised.value, DataError)
        assert repr(every) in str(raised.value)


def test_a_training_of_no_rounds(tmp_path, saved):
    model = GDMCBoostClassifier(checkpoint=tmp_path / "c").fit(np.zeros((6, 2)), [0, 1] * 3)
    assert model.n_iter_ == 0
    assert os.listdir(tmp_path / "c") == [MANIFEST]
    assert saved(distboost.load(tmp_path / "c")) == saved(model)


def test_another_training_is_replaced_as_a_whole(problem, tmp_path, saved):
    first = fitted(made("random counters", checkpoint=tmp_path / "c", checkpoint_every=3), problem)
    before = saved(first)

    def die(progress):
        assert saved(distboost.load(tmp_path / "c")) == before  # until there is another
        if progress.round == 3:
            raise KeyboardInterrupt

    replaced = r"the checkpoint .*c has 14 rounds of an earlier run, which this run .*resume=True"
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match=replaced) as told:
        fitted(made("notes", checkpoint=tmp_path / "c", callbacks=[die]), problem)
    assert [warning.filename for warning in told] == [fitted.__code__.co_filename]  # the line that called fit
    assert saved(distboost.load(tmp_path / "c")) == before
    with pytest.warns(UserWarning, match=replaced):
        model = fitted(made("notes", checkpoint=tmp_path / "c", checkpoint_every=8), problem)
    assert rounds(tmp_path / "c") == [(0, 8), (8, 12)]
    assert saved(distboost.load(tmp_path / "c")) == saved(model)
    with pytest.raises(DataError, match=r"the checkpoint .*c was made with max_depth=2, not 3"):
        fitted(
            AdaBoostMMClassifier(calibration=None, n_estimators=12, max_depth=3, checkpoint=tmp_path / "c"),
            problem,
            resume=True,
        )


def test_what_earlier_writers_left_is_removed_and_nothing_else(problem, tmp_path):
    folder = tmp_path / "c"
    folder.mkdir()
    segment = f"rounds-0-3-{16 * 'a'}.safetensors"
    strays = {segment, f"{segment}.{32 * 'b'}.part", f"{MANIFEST}.{32 * 'c'}.part"}
    mine = {"notes.txt", "rounds-of-golf.txt", "x.part", f"{segment}.bak"}
    for name in strays | mine:
        (folder / name).write_text(name)
    assert not is_checkpoint(str(folder))
    fitted(made("notes", checkpoint=folder), problem)
    left = {name for name in os.listdir(folder) if name != MANIFEST}
    assert not strays & left
    assert mine < left
    remove(str(folder))
    assert set(os.listdir(folder)) == mine
    for name in mine:
        (folder / name).unlink()
    remove(str(folder))
    assert not folder.exists()


def test_a_reader_sees_the_last_complete_checkpoint(problem, tmp_path):
    """Also while segments are replaced."""
    folder = tmp_path / "c"
    model = made("corrective", checkpoint=folder, checkpoint_every=1, callbacks=[lambda p: time.sleep(0.05)])
    training = threading.Thread(target=fitted, args=(model, problem))
    training.start()
    seen = []
    end = time.monotonic() + DEADLINE
    while training.is_alive():
        assert time.monotonic() < end
        if is_checkpoint(str(folder)):
            seen.append(distboost.load(folder).n_iter_)
        time.sleep(0.005)  # it would take the processor from the training
    training.join()
    assert seen == sorted(seen)
    assert len(set(seen)) > 2


def test_in_memory(problem, saved):
    url = "memory://checkpoints/c"
    model = fitted(made("notes", checkpoint=url, checkpoint_every=5), problem)
    assert saved(distboost.load(url)) == saved(model)
    remove(url)
    with pytest.raises(FileNotFoundError):
        distboost.load(url)
