"""Checkpoints: a training that is killed at any point goes on to the same bytes, and nothing half-written is ever read."""

import json
import os
import re
import shutil
import subprocess
import threading
import time

import numpy as np
import pytest

import distboost
from distboost import AdaBoostMMClassifier, GAMBLEClassifier, GDMCBoostClassifier, REBELClassifier
from distboost.baselines import MultiBoostClassifier
from distboost.errors import CheckpointError, DataError, ModelFormatError
from distboost.estimators.factory import estimator
from distboost.io.files import decoded, encoded
from distboost.io.storage import only_writer
from distboost.model.checkpoint import MANIFEST, _checksum, is_checkpoint, remove
from tests.forked import Forks

DEADLINE = 60.0

# What is carried from round to round: random counters, validation history, the best round, notes, values that are rewritten.
TRAININGS = {
    "random counters": ("gd-mcboost", {"n_estimators": 14, "subsample": 0.7, "max_features": 0.5}),
    "early stopping": ("gd-mcboost", {"n_estimators": 40, "max_depth": 2, "early_stopping_rounds": 6}),
    "notes": ("adaboost-mm", {"n_estimators": 12, "max_depth": 2}),
    "a tree for each class": ("one-vs-all", {"n_estimators": 12}),
    "similarities": ("rebel", {"n_estimators": 8, "weak_learner": "similarity"}),
    "corrective": ("multiboost", {"n_estimators": 10}),
    "corrective, early stopping": ("multiboost", {"n_estimators": 30, "early_stopping_rounds": 5}),
}
EVERY = 2

# Each line tells of a training, which runs in a process of its own: forked, for importing takes longest. The process kills itself
# at its n-th renaming of a file, before or after it, or after a round on a cluster.
SERVER = f"""
import json, os, signal
import numpy as np
from distributed import Client
from distboost.io import publishing
from distboost.estimators.factory import estimator

def train(algorithm, parameters, data, checkpoint, kill, resume, address, last):
    arrays = np.load(data)
    replace, renamed = os.replace, []
    def counted(beside, path):
        renamed.append(path)
        if kill is not None and len(renamed) == kill // 2 + 1 and kill % 2 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(beside, path)
        if kill is not None and len(renamed) == kill // 2 + 1:
            os.kill(os.getpid(), signal.SIGKILL)
    publishing.os.replace = counted
    model = estimator(algorithm)(n_jobs=1, checkpoint=checkpoint, checkpoint_every={EVERY}, **parameters)
    if address is not None:
        model.client = Client(address, set_as_default=False)
        model.callbacks = [lambda progress: progress.round == last and os.kill(os.getpid(), signal.SIGKILL)]
    model.fit(arrays["X"], arrays["y"], eval_set=(arrays["Xt"], arrays["yt"]), resume=resume)

def do(line):
    train(**json.loads(line))
"""


class Trainings:
    """Runs trainings that are killed."""

    def __init__(self, data):
        self.data = str(data)
        self.forks = Forks(SERVER)

    def run(
        self, training, checkpoint, kill=None, resume=False, kill_after=None, address=None, last=None
    ) -> bool:
        """Whether the training came to its end.

        `kill` is the point in its writes where it is killed, `kill_after` a time, `last` the round on the cluster at `address`.
        """
        algorithm, parameters = TRAININGS[training]
        told = {"algorithm": algorithm, "parameters": parameters, "data": self.data}
        told |= {"checkpoint": str(checkpoint), "kill": kill, "resume": resume}
        told |= {"address": address, "last": last}
        return self.forks.run(json.dumps(told), kill_after)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 5)) + 0.7 * np.eye(3, 5)[y]
    return X[:140], y[:140], X[140:], y[140:]


@pytest.fixture(scope="module")
def trainings(problem, tmp_path_factory):
    data = tmp_path_factory.mktemp("data") / "problem.npz"
    np.savez(data, X=problem[0], y=problem[1], Xt=problem[2], yt=problem[3])
    found = Trainings(data)
    return found


def made(training, **more):
    algorithm, parameters = TRAININGS[training]
    return estimator(algorithm)(n_jobs=1, **parameters, **more)


def fitted(model, problem, resume=False):
    X, y, Xt, yt = problem
    return model.fit(X, y, eval_set=(Xt, yt), resume=resume)


@pytest.fixture(scope="module")
def wholes(problem, tmp_path_factory):
    """wholes(training): the file of the uninterrupted training, and how often it renames a file."""
    known, path = {}, tmp_path_factory.mktemp("wholes") / "model"

    def whole(training):
        if training not in known:
            model = fitted(made(training), problem)
            model.save(path)
            known[training] = path.read_bytes(), 2 * (model.n_iter_ // EVERY) + 2
        return known[training]

    return whole


def rounds(folder):
    """First and last round of each segment that is there."""
    names = [re.match(r"rounds-(\d+)-(\d+)-", name) for name in os.listdir(folder)]
    return sorted((int(name[1]), int(name[2])) for name in names if name)


# Killed at any point.


SLOW = {"notes", "a tree for each class", "early stopping"}  # beside the others, which have these, too


@pytest.mark.parametrize(
    "training", [pytest.param(name, marks=[pytest.mark.soak] * (name in SLOW)) for name in TRAININGS]
)
def test_a_killed_training_goes_on_to_the_same_bytes(training, trainings, wholes, problem, tmp_path, saved):
    content, n_renamed = wholes(training)
    rng = np.random.default_rng(11)
    points = sorted({0, 1, 2, 3, *rng.choice(2 * n_renamed, 6, replace=False).tolist()})
    for kill in points:
        folder = tmp_path / f"{kill}"
        trainings.run(training, folder, kill)
        resume = is_checkpoint(str(folder))
        assert resume == (kill > 2)  # the first segment, then the first manifest
        if resume:
            earlier = distboost.load(folder)
            assert earlier.n_iter_ % EVERY == 0 or earlier.outcome_ != "rounds"
        model = fitted(made(training, checkpoint=folder, checkpoint_every=3), problem, resume)
        assert saved(model) == content == saved(distboost.load(folder))


def test_a_training_that_is_killed_again_and_again(trainings, wholes, tmp_path, saved):
    """Each attempt is killed after its first manifest, or before."""
    content, _ = wholes("random counters")
    done, attempts = False, 0
    while not done:
        done = trainings.run(
            "random counters", tmp_path / "c", 3 - attempts % 2, is_checkpoint(str(tmp_path / "c"))
        )
        attempts += 1
        assert attempts < 30
    assert attempts > 7
    assert saved(distboost.load(tmp_path / "c")) == content


def test_killed_at_any_time(trainings, wholes, problem, tmp_path, saved):
    content, _ = wholes("early stopping")
    started = time.monotonic()
    assert trainings.run("early stopping", tmp_path / "whole")
    seconds = time.monotonic() - started
    rng = np.random.default_rng(5)
    for i in range(4):
        folder = tmp_path / f"{i}"
        trainings.run("early stopping", folder, kill_after=rng.uniform(0.2, 1) * seconds)
        model = fitted(made("early stopping", checkpoint=folder), problem, is_checkpoint(str(folder)))
        assert saved(model) == content == saved(distboost.load(folder))


@pytest.mark.parametrize(("before", "after", "last"), [(1, 3, 7), (3, 1, 4)])
def test_on_a_cluster_of_another_size(
    before, after, last, clients, trainings, wholes, problem, tmp_path, saved
):
    content, _ = wholes("random counters")
    folder = tmp_path / "checkpoint"
    address = clients[before].scheduler.address
    assert not trainings.run("random counters", folder, address=address, last=last)
    assert distboost.load(folder).n_iter_ == last - last % EVERY
    model = made("random counters", checkpoint=folder)
    model.client = clients[after]
    assert saved(fitted(model, problem, resume=True)) == content == saved(distboost.load(folder))


def test_a_training_that_was_over_but_not_told_so(problem, tmp_path, saved):
    """Killed between the write after its last round and its end: it must not do another round."""
    whole = fitted(made("early stopping"), problem)
    assert whole.outcome_ == "early stopping"

    def die(progress):
        if progress.round == whole.n_iter_:
            raise KeyboardInterrupt

    folder = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fitted(made("early stopping", checkpoint=folder, checkpoint_every=1, callbacks=[die]), problem)
    assert distboost.load(folder).n_iter_ == whole.n_iter_
    model = fitted(made("early stopping", checkpoint=folder), problem, resume=True)
    assert saved(model) == saved(whole)


# What is written.


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
def test_intervals_that_are_none(every, problem):
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

    replaced = r"the checkpoint .*c has 14 rounds of an earlier training, which this training .*resume=True"
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match=replaced) as told:
        fitted(made("notes", checkpoint=tmp_path / "c", callbacks=[die]), problem)
    assert [warning.filename for warning in told] == [__file__]  # the line that called fit
    assert saved(distboost.load(tmp_path / "c")) == before
    with pytest.warns(UserWarning, match=replaced):
        model = fitted(made("notes", checkpoint=tmp_path / "c", checkpoint_every=8), problem)
    assert rounds(tmp_path / "c") == [(0, 8), (8, 12)]
    assert saved(distboost.load(tmp_path / "c")) == saved(model)
    with pytest.raises(DataError, match=r"the checkpoint .*c was made with max_depth=2, not 3"):
        fitted(
            AdaBoostMMClassifier(n_estimators=12, max_depth=3, checkpoint=tmp_path / "c"),
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


# What is in the way.


def test_a_file_in_the_way_is_told_before_the_data_are_read(tmp_path):
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


def test_nothing_to_go_on_from(problem, tmp_path):
    with pytest.raises(
        ValueError, match=rf"{re.escape(str(tmp_path / 'c'))} has no complete one.*without resume"
    ):
        fitted(made("notes", checkpoint=tmp_path / "c"), problem, resume=True)
    with pytest.raises(ModelFormatError, match="is a folder without a complete checkpoint"):
        distboost.load(tmp_path / "c")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place]
    if subprocess.run(command, capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("mounting is not permitted here")
    yield place
    subprocess.run(["umount", place], timeout=20, check=True)


def test_a_full_disk(small_disk, saved):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 5)), rng.integers(0, 10, 1000)
    folder = small_disk / "c"
    parameters = {"n_estimators": 60, "max_depth": 8, "checkpoint": folder, "checkpoint_every": 5}
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
        kept.scores(X), GDMCBoostClassifier(n_estimators=kept.n_iter_, max_depth=8).fit(X, y).scores(X)
    )
    subprocess.run(["mount", "-o", "remount,size=9m", small_disk], timeout=20, check=True)
    model = GDMCBoostClassifier(**parameters).fit(X, y, resume=True)
    assert saved(model) == saved(GDMCBoostClassifier(n_estimators=60, max_depth=8).fit(X, y))


# Damage.


@pytest.fixture
def folder(problem, tmp_path):
    """A checkpoint of three segments."""
    fitted(REBELClassifier(n_estimators=7, n_jobs=1, checkpoint=tmp_path / "c", checkpoint_every=3), problem)
    return tmp_path / "c"


def damaged(content, rng):
    """Cut short, lengthened, or with bytes changed."""
    way = rng.integers(4)
    if way == 0:
        return content[: rng.integers(len(content))]
    if way == 1:
        return content + rng.bytes(rng.integers(1, 20))
    changed = bytearray(content)
    for at in rng.integers(0, len(content), rng.integers(1, 4)):
        changed[at] ^= int(rng.integers(1, 256))
    return bytes(changed)


def test_damaged_files_are_told_by_name(folder, problem, saved):
    expected = saved(distboost.load(folder))
    rng = np.random.default_rng(1)
    for path in sorted(folder.iterdir()):
        content, told = path.read_bytes(), []
        for _ in range(100):
            path.write_bytes(damaged(content, rng))
            try:
                found = distboost.load(folder)
            except ModelFormatError as error:
                told.append(path.name in str(error))
            else:
                assert path.name == MANIFEST  # white space, which changes nothing
                assert saved(found) == expected
        assert len(told) > 80
        assert all(told)
        path.unlink()
        with pytest.raises(
            ModelFormatError, match=re.escape(path.name) if path.name != MANIFEST else "without a complete"
        ):
            distboost.load(folder)
        path.write_bytes(content)
    assert saved(distboost.load(folder)) == expected


def test_a_damaged_checkpoint_is_not_gone_on_from_but_replaced(folder, problem):
    path = next(folder.glob("rounds-3-*"))
    path.write_bytes(path.read_bytes()[:-1])
    model = REBELClassifier(n_estimators=7, n_jobs=1, checkpoint=folder)
    with pytest.raises(ModelFormatError, match=path.name):
        fitted(model, problem, resume=True)
    # The segment may be restored.
    with pytest.warns(UserWarning, match="has 7 rounds of an earlier training"):
        fitted(model, problem)
    assert rounds(folder) == [(0, 7)]
    (folder / MANIFEST).write_text("{")
    fitted(model, problem)
    assert distboost.load(folder).n_iter_ == 7


def segment(number, **items):
    return lambda found: found["segments"][number].update(items)


def header(**items):
    return lambda found: found["header"].update(items)


MANIFESTS = {
    "another format": lambda found: found.update(format="zip"),
    "another version": lambda found: found.update(version=2),
    "no segments": lambda found: found.pop("segments"),
    "segments that are a number": lambda found: found.update(segments=3),
    "fewer segments": lambda found: found["segments"].pop(),
    "segments in another order": lambda found: found["segments"].reverse(),
    "a segment twice": lambda found: found["segments"].append(found["segments"][-1]),
    "a million times": lambda found: found["segments"].extend(10**4 * found["segments"][:1]),
    "a gap": lambda found: found["segments"].pop(1),
    "a name that leads elsewhere": segment(1, name="../../secret"),
    "a name that is none": segment(1, name=["rounds"]),
    "another size": segment(1, n_bytes=10**18),
    "another digest": segment(1, sha256=64 * "0"),
    "a digest that leads elsewhere": segment(1, sha256="../../secret"),
    "other rounds": segment(0, last=2),
    "no rounds": segment(0, last=0),
    "rounds that are no number": segment(0, first=0.0),
    "negative rounds": segment(0, first=-1),
    "more of a segment": segment(0, more=1),
    "no header": lambda found: found.pop("header"),
    "a header that is a list": lambda found: found.update(header=[1]),
    "more rounds": header(rounds=8),
    "a huge number of rounds": header(rounds=10**18),
    "a negative number of rounds": header(rounds=-1),
    "rounds of another type": header(rounds="7"),
    "fewer features": header(n_features=1),
    "another algorithm": header(algorithm="rebel-2"),
    "a place to write to": lambda found: found["header"]["parameters"].update(checkpoint="/tmp/elsewhere"),
    "more classes": header(classes=[0, 1, 2, 3]),
    "no classes": lambda found: found["header"].pop("classes"),
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS)
def test_manifests_that_do_not_fit(change, folder):
    """With a checksum of their own: as someone meant to write them."""
    found = json.loads((folder / MANIFEST).read_text())
    change(found)
    found.pop("checksum")
    (folder / MANIFEST).write_text(json.dumps({**found, "checksum": _checksum(found)}))
    with pytest.raises(ModelFormatError, match=re.escape(str(folder))):
        distboost.load(folder)


def test_a_manifest_that_is_nested_deeply(folder):
    (folder / MANIFEST).write_text("[" * 10**6)
    with pytest.raises(ModelFormatError, match=MANIFEST):
        distboost.load(folder)


def test_a_segment_of_the_same_size(folder):
    """Whole in itself, with values of somebody else's: its digest is not that of the manifest."""
    path = next(folder.glob("rounds-0-3-*"))
    header, arrays = decoded(path.read_bytes(), "")
    arrays["values"] = arrays["values"] + 1.0
    changed = encoded(header, arrays)
    assert len(changed) == path.stat().st_size
    path.write_bytes(changed)
    with pytest.raises(ModelFormatError, match=path.name):
        distboost.load(folder)


def test_segments_of_another_training(folder, problem, tmp_path):
    """Whole, and listed as they are: but the trees of one model are not those of another."""
    other = tmp_path / "other"
    fitted(MultiBoostClassifier(n_estimators=7, n_jobs=1, checkpoint=other), problem)
    found, theirs = (json.loads((place / MANIFEST).read_text()) for place in (folder, other))
    found["segments"] = theirs["segments"]
    found.pop("checksum")
    (folder / MANIFEST).write_text(json.dumps({**found, "checksum": _checksum(found)}))
    shutil.copy(next(other.glob("rounds*")), folder)
    with pytest.raises(ModelFormatError, match=re.escape(str(folder))):
        distboost.load(folder)
