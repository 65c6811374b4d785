"""A training that is killed at any point goes on from its checkpoint to the same bytes."""

import json
import time

import numpy as np
import pytest

import distboost
from distboost.model.checkpoint import is_checkpoint
from tests.checkpoints.trainings import EVERY, TRAININGS, fitted, made
from tests.forked import Forks

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
