"""A training run that is killed at any point goes on from its checkpoint to the same bytes."""

import json

import numpy as np
import pytest

import distboost
from distboost.model.checkpoint import is_checkpoint
from tests.checkpoints.trainings import EVERY, TRAININGS, fitted, made
from tests.forked import Forks
from tests.moments import Moment

# Each line tells of a run, which runs in a process of its own: forked, for importing takes longest. The process kills itself
# at its n-th renaming of a file, before or after it, or after a round on a cluster.
SERVER = f"""
import json, os, signal
import numpy as np
from distributed import Client
from distboost.estimators.factory import estimator

def train(algorithm, parameters, data, checkpoint, kill=None, resume=False, address=None, last=None):
    arrays = np.load(data)
    replace, renamed = os.replace, []
    def counted(beside, path):
        renamed.append(path)
        if kill is not None and len(renamed) == kill // 2 + 1 and kill % 2 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(beside, path)
        if kill is not None and len(renamed) == kill // 2 + 1:
            os.kill(os.getpid(), signal.SIGKILL)
    os.replace = counted
    model = estimator(algorithm)(calibration=None, n_jobs=1, checkpoint=checkpoint, checkpoint_every={EVERY}, **parameters)
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

    def run(self, training, checkpoint, kill=None, resume=False, address=None, last=None) -> bool:
        """Whether the training came to its end.

        `kill` is the point in its writes where it is killed, or a moment; `last` the round on the cluster at `address`.
        """
        if isinstance(kill, Moment):
            return self.forks.run(self._told(training, checkpoint), kill)
        return self.forks.run(
            self._told(training, checkpoint, kill=kill, resume=resume, address=address, last=last)
        )

    def moments(self, training, checkpoint, functions, seed) -> list[Moment]:
        return self.forks.moments(self._told(training, checkpoint), functions, seed)

    def _told(self, training, checkpoint, **more):
        algorithm, parameters = TRAININGS[training]
        told = {"algorithm": algorithm, "parameters": parameters, "data": self.data}
        return json.dumps({**told, "checkpoint": str(checkpoint), **more})


@pytest.fixture(scope="module")
def trainings(problem, tmp_path_factory):
    data = tmp_path_factory.mktemp("data") / "problem.npz"
    np.savez(data, X=problem[0], y=problem[1], Xt=problem[2], yt=problem[3])
    found = Trainings(data)
    return found


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


SLOW = {"notes", "a tree for each class", "early stopping"}  # beside the others, which have these, too


@pytest.mark.parametrize(
    "training", [pytest.param(name, marks=[pytest.mark.soak] * (name in SLOW)) for name in TRAININGS]
)
def test_a_killed_run_resumes_to_the_same_bytes(training, trainings, wholes, problem, tmp_path, saved):
    content, n_renamed = wholes(training)
    rng = np.random.default_rng(11)
    points = sorted({0, 1, 2, 3, *rng.choice(2 * n_renamed, 4, replace=False).tolist()})
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


WRITING = ["distboost.io.files:write_durably"]
REPLACING = ["distboost.model.checkpoint:Checkpoint.write", "distboost.model.checkpoint:_remove"]


@pytest.mark.parametrize(
    ("training", "functions"),
    [
        ("early stopping", WRITING),
        pytest.param("corrective, early stopping", WRITING + REPLACING, marks=pytest.mark.soak),
    ],
    ids=["segments are added", "segments are replaced"],
)
def test_killed_at_any_line_that_writes(training, functions, trainings, wholes, problem, tmp_path, saved):
    """In one of the writes: its file is then empty, whole under another name, or there; nothing written before is lost."""
    content, _ = wholes(training)
    moments = trainings.moments(training, tmp_path / "whole", functions, seed=5)
    assert len(moments) > 7 * len(functions)
    for number, moment in enumerate(moments):
        folder = tmp_path / f"{number}"
        assert not trainings.run(training, folder, moment)
        n_written = (moment.call - 1) // (2 if moment.function in WRITING else 1)  # a segment and a manifest
        resume = is_checkpoint(str(folder))
        if resume or n_written:
            earlier = distboost.load(folder)
            assert earlier.n_iter_ >= n_written * EVERY or earlier.outcome_ != "rounds", moment
        model = fitted(made(training, checkpoint=folder), problem, resume)
        assert saved(model) == content == saved(distboost.load(folder)), moment


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


def test_a_finished_run_that_was_not_marked_finished(problem, tmp_path, saved):
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
