"""What holds for every algorithm of the registry, in each of its variants: a new one is tested by its line there."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone

import distboost
from distboost import registry
from distboost.cli import main
from distboost.data import ingest
from distboost.data.dataset import RawDataset
from distboost.errors import DataError
from distboost.estimators.parameters import algorithm_of, growth_limits
from distboost.rows.sums import Reduction
from distboost.runtime import gathered, tally
from distboost.runtime.local import LocalRuntime
from distboost.training import memory_plan as memory
from distboost.trees import grower
from distboost.trees.grower import SplitRules, TreeGrower
from tests.algorithms.subjects import CORRECTIVE, MOST_ROUNDS, ROUNDS, SUBJECTS, VARIANTS, Subject, sampled


def others(F: np.ndarray, y: np.ndarray) -> np.ndarray:
    """F[i, k] - F[i, y_i] for the K - 1 other classes."""
    n, K = F.shape
    differences = F - F[np.arange(n), y][:, None]
    return differences[y[:, None] != np.arange(K)].reshape(n, K - 1)


def own(F: np.ndarray, y: np.ndarray) -> np.ndarray:
    return F[np.arange(len(F)), y]


def signs(F: np.ndarray, y: np.ndarray) -> np.ndarray:
    """+1 for the row's class, -1 for the others."""
    return np.where(y[:, None] == np.arange(F.shape[1]), 1.0, -1.0)


def mcboost_loss(model, F, y):
    if model.loss == "softmax":
        return (logsumexp(F, axis=1) - own(F, y)).mean()
    if model.loss == "logistic":
        return np.log(2) + np.logaddexp(0, others(F, y)).sum(axis=1).mean()
    return 1 + np.exp(others(F, y) / 2).sum(axis=1).mean()


def game_loss(model, F, y):
    if model.strategy == "os-zero-one":
        return (others(F, y) >= 0).any(axis=1).mean()
    eta = model.eta if model.strategy == "os-exponential" else 1.0
    return np.exp(eta * others(F, y)).sum(axis=1).mean()


def large_margin_loss(model, F, y):
    margins = np.column_stack([np.zeros(len(F)), others(F, y)])
    return logsumexp(margins) if model.loss == "exponential" else np.logaddexp(0, margins).sum()


def binary_loss(model, F, y):
    return np.exp(-signs(F, y) * F).mean()


# The loss of each algorithm, from the scores of the rows. What a column of AdaBoost.MO loses cannot be told from them.
LOSSES = {
    "cd-mcboost": mcboost_loss,
    "gd-mcboost": mcboost_loss,
    "adaboost-mm": game_loss,
    "stagewise": large_margin_loss,
    "gamble": lambda model, F, y: np.exp(-own(F, y) / (F.shape[1] - 1)).mean(),
    "rebel": lambda model, F, y: np.exp(-signs(F, y) * F).sum(axis=1).mean() / 2,
    "one-vs-all": binary_loss,
    "adaboost-m1": lambda model, F, y: np.exp(-own(F, y)).mean(),
    "adaboost-mh": binary_loss,
    "adaboost-m2": lambda model, F, y: np.exp(others(F, y) / 2).sum(axis=1).mean(),
    "adaboost-mr": lambda model, F, y: np.exp(others(F, y) / 2).sum(axis=1).mean(),
    "logitboost": lambda model, F, y: (logsumexp(F, axis=1) - own(F, y)).mean(),
    "aoso-logitboost": lambda model, F, y: (logsumexp(F, axis=1) - own(F, y)).mean(),
    "adaboost-ecc": lambda model, F, y: np.exp(others(F, y) / 2).sum(axis=1).mean(),
    "samme": lambda model, F, y: np.exp(-own(F, y)).mean(),
    "samme-r": lambda model, F, y: np.exp(-own(F, y) / (F.shape[1] - 1)).mean(),
    "gentle-adaboost": binary_loss,
    "jointboost": binary_loss,
    "gradboost": lambda model, F, y: (logsumexp(F, axis=1) - own(F, y)).mean(),
    "multiboost": large_margin_loss,
    "structboost": lambda model, F, y: np.maximum(0, 1 + others(F, y).max(axis=1)).mean(),
}


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@pytest.fixture(scope="module")
def problem():
    """4 classes in 5 features, a twentieth of the values missing, a tenth of the labels wrong; rows sorted by class."""
    rng = np.random.default_rng(1)
    y = np.sort(rng.integers(0, 4, 320))
    X = np.round(2 * np.eye(4, 5)[y] + 0.8 * rng.normal(size=(320, 5)), 2)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.where(rng.random(320) < 0.1, rng.integers(0, 4, 320), y)
    test = np.arange(320) % 3 == 0
    return Problem(X[~test], y[~test], X[test], y[test])


@pytest.fixture(scope="module", params=SUBJECTS, ids=str)
def subject(request):
    return request.param


@pytest.fixture(scope="module")
def model(subject, problem):
    """Trained in this process by one thread on arrays in memory."""
    X, y, *evaluation = problem
    return subject.make().fit(X, y, eval_set=tuple(evaluation))


@pytest.fixture(scope="module")
def content(model, tmp_path_factory):
    """The model's file."""
    return file_of(model, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def on_some(subject, problem, tmp_path_factory):
    """(parameters, model, file) of a model each of whose rounds sees some rows and features only."""
    X, y, *evaluation = problem
    parameters = sampled(subject)
    fitted = subject.make(**parameters).fit(X, y, eval_set=tuple(evaluation))
    return parameters, fitted, file_of(fitted, tmp_path_factory.mktemp("model"))


def file_of(model, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def test_variants_are_of_the_registry():
    assert set(VARIANTS) <= set(registry.ALGORITHMS)
    assert set(LOSSES) <= set(registry.ALGORITHMS)


def test_estimators_are_found_before_anything_else_is():
    program = (
        "from distboost import registry\nfrom distboost.estimators import factory\n"
        "for name in reversed(registry.ALGORITHMS):\n"
        "    assert factory.estimator(name).algorithm_name == name"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


# Learning


def test_learns(subject, model, problem):
    chance = 3 / 4
    if "one-point" in subject.variant:
        # Such a similarity tells the surroundings of one row from all others: a few rows' worth in each round.
        assert model.train_loss_[-1] < model.train_loss_[0]
        return
    assert model.train_error_[-1] < 0.6 * chance
    assert 1 - model.score(problem.X_test, problem.y_test) < 0.75 * chance


def test_losses_and_errors_are_those_of_the_scores(subject, model, problem):
    sets = ((problem.X, problem.y, "train"), (problem.X_test, problem.y_test, "eval"))
    for X, y, kind in sets:
        losses, errors = getattr(model, f"{kind}_loss_"), getattr(model, f"{kind}_error_")
        assert losses.shape == errors.shape == (model.n_iter_,)
        for t, F in enumerate(model.staged_scores(X)):
            if subject.algorithm in CORRECTIVE and t < model.n_iter_ - 1:
                continue  # stages are partial sums of the final coefficients
            assert errors[t] == (F.argmax(axis=1) != y).mean()
            if subject.algorithm in LOSSES:
                assert losses[t] == pytest.approx(LOSSES[subject.algorithm](model, F, y), rel=1e-9)


def test_stages_end_with_the_scores(model, problem):
    stages = list(model.staged_scores(problem.X_test))
    assert len(stages) == model.n_iter_ == model.best_iteration_
    assert_array_equal(stages[-1], model.scores(problem.X_test))
    assert_array_equal(list(model.staged_predict(problem.X_test))[-1], model.predict(problem.X_test))


def test_probabilities(model, problem):
    for X in (problem.X, problem.X_test):
        P = model.predict_proba(X)
        assert P.shape == (len(X), 4)
        assert (P >= 0).all()
        assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
        assert_array_equal(own(P, model.predict(X)), P.max(axis=1))


def test_probabilities_of_scores_of_any_size(subject, model):
    """Of a thousand rounds and more, all of which may have said "not this class"."""
    F = np.array(
        [[-2e3] * 4, [2e3] * 4, [-2e3, -1e3, -3e3, -1.5e3], [0.0, 1e3, -1e3, 500.0], [40.0, 50.0, -40.0, 0.0]]
    )
    F = np.abs(F) if subject.settings.get("strategy", "").startswith("os") else F  # numbers of votes
    P = algorithm_of(model, 4).probabilities(F)
    assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    assert_allclose(P[:2], 1 / 4)
    assert_array_equal(own(P, F.argmax(axis=1)), P.max(axis=1))


def test_the_learning_rate_is_honoured(subject, problem):
    """Half the rate gives half the scores in the first round, before votes; else it is refused."""
    half, whole = (subject.make(n_estimators=1, learning_rate=rate) for rate in (0.5, 1.0))
    assert whole.fit(problem.X, problem.y).scores(problem.X).any()
    if subject.algorithm in CORRECTIVE or getattr(half, "strategy", "adaptive") != "adaptive":
        with pytest.raises(DataError, match=r"learning_rate is 0\.5"):
            half.fit(problem.X, problem.y)
        return
    smaller, G = (sums_of(model, problem.X) for model in (half.fit(problem.X, problem.y), whole))
    assert_array_equal(smaller, G / 2)


def sums_of(model, X) -> np.ndarray:
    """The sums over the weak learners, from which the scores of the classes are decoded."""
    ensemble = model.learned_.ensemble
    G = np.zeros((len(X), ensemble.n_scores))
    ensemble.adder(X, 0, ensemble.per_round)(0, ensemble.per_round, G)
    return G


def test_float32_scores(subject, model, problem):
    single = subject.make(score_dtype="float32").fit(problem.X, problem.y)
    assert_allclose(single.train_loss_, model.train_loss_[: single.n_iter_], rtol=1e-3)
    assert single.score(problem.X, problem.y) == pytest.approx(model.score(problem.X, problem.y), abs=0.05)


# Weights


def test_whole_weights_are_repeated_rows(subject, problem, tmp_path):
    X, y, *_ = problem
    # The row that a similarity tells from all others is told from its copies, too.
    most = 1 if subject.settings.get("weak_learner") == "similarity" else 3
    weights = np.random.default_rng(2).integers(0, 1 + most, len(y))
    weighted = subject.make().fit(X, y, sample_weight=weights)
    repeated = subject.make().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_array_equal(weighted.scores(X), repeated.scores(X))
    assert file_of(weighted, tmp_path) == file_of(repeated, tmp_path)


def test_class_weights_are_weights_of_the_rows(subject, problem):
    X, y, *_ = problem
    of_class = {0: 1.0, 1: 2.5, 2: 0.5, 3: 1.0}
    by_class = subject.make(class_weight=of_class).fit(X, y)
    by_row = subject.make().fit(X, y, sample_weight=[of_class[k] for k in y])
    assert_array_equal(by_class.scores(X), by_row.scores(X))
    assert_array_equal(by_class.train_loss_, by_row.train_loss_)
    balanced = len(y) / (4 * np.bincount(y))
    by_class = subject.make(class_weight="balanced").fit(X, y)
    by_row = subject.make().fit(X, y, sample_weight=balanced[y])
    assert_array_equal(by_class.scores(X), by_row.scores(X))


# Labels


def test_labels_of_text(subject, model, problem, tmp_path):
    names = np.array(["ash", "birch", "cedar", "elm"])
    X, y, X_test, y_test = problem
    named = subject.make().fit(X, names[y], eval_set=(X_test, names[y_test]))
    assert named.classes_.tolist() == names.tolist()
    assert_array_equal(named.scores(X_test), model.scores(X_test))
    assert_array_equal(named.predict(X_test), names[model.predict(X_test)])
    file_of(named, tmp_path)
    assert_array_equal(distboost.load(tmp_path / "model").predict(X_test), named.predict(X_test))


# Stopping and going on


def test_early_stopping_keeps_the_best_round(subject, problem, tmp_path):
    X, y, X_test, _ = problem
    noise = np.random.default_rng(4).integers(0, 4, len(X_test))
    stopped = subject.make(n_estimators=MOST_ROUNDS, early_stopping_rounds=3)
    stopped.fit(X, y, eval_set=(X_test, noise))
    best = int(np.argmin(stopped.eval_error_)) + 1
    assert stopped.outcome_ == "early stopping"
    assert (stopped.best_iteration_, stopped.n_iter_) == (best, best + 3)
    assert len(list(stopped.staged_scores(X_test))) == best
    assert 1 - stopped.score(X_test, noise) == pytest.approx(stopped.eval_error_.min())
    if not plays_known_rounds(subject):
        shorter = subject.make(n_estimators=best).fit(X, y)
        assert_array_equal(stopped.scores(X_test), shorter.scores(X_test))
    file_of(stopped, tmp_path)
    again = distboost.load(tmp_path / "model")
    assert (again.n_iter_, again.best_iteration_, again.outcome_) == (best + 3, best, "early stopping")


def plays_known_rounds(subject: Subject) -> bool:
    """The optimal strategy for the 0-1 loss depends on the number of rounds to come."""
    return subject.settings.get("strategy") == "os-zero-one"


def test_a_resumed_training_is_the_uninterrupted_one(subject, model, content, problem, tmp_path):
    X, y, *evaluation = problem
    part = subject.make(n_estimators=2).fit(X, y, eval_set=tuple(evaluation))
    part.save(tmp_path / "part")
    for earlier in (part, distboost.load(tmp_path / "part")):
        earlier.set_params(n_estimators=ROUNDS, n_jobs=1)
        if plays_known_rounds(subject):
            with pytest.raises(DataError, match="n_estimators"):
                earlier.fit(X, y, eval_set=tuple(evaluation), resume=True)
        else:
            earlier.fit(X, y, eval_set=tuple(evaluation), resume=True)
            assert file_of(earlier, tmp_path) == content


def test_a_run_on_some_rows_resumes_from_a_checkpoint(subject, problem, on_some, tmp_path):
    X, y, *evaluation = problem
    parameters, _, expected = on_some

    def die(progress):
        if progress.round == 3:
            raise KeyboardInterrupt

    url = tmp_path / "checkpoint"
    interrupted = subject.make(checkpoint=url, checkpoint_every=2, callbacks=[die], **parameters)
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X, y, eval_set=tuple(evaluation))
    assert distboost.load(url).n_iter_ == 2
    resumed = subject.make(checkpoint=url, **parameters).fit(X, y, eval_set=tuple(evaluation), resume=True)
    assert file_of(resumed, tmp_path) == expected == file_of(distboost.load(url), tmp_path)


# Keeping


def test_save_and_load(subject, model, content, problem, tmp_path):
    (tmp_path / "first").write_bytes(content)
    loaded = distboost.load(tmp_path / "first")
    assert type(loaded) is type(model)
    assert file_of(loaded, tmp_path) == content
    run_parameters = {"n_jobs"}
    for name, value in model.get_params().items():
        assert name in run_parameters or loaded.get_params()[name] == value, name
    for method in ("predict", "predict_proba", "scores", "decision_function"):
        assert_array_equal(getattr(loaded, method)(problem.X_test), getattr(model, method)(problem.X_test))
    learned = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert not hasattr(loaded, "memory_plan_")  # that is of the training
    # What was learned is in the file, which is compared above.
    for name in learned - {"memory_plan_", "runtime_", "training_record_", "learned_"}:
        np.testing.assert_equal(getattr(loaded, name), getattr(model, name))


def test_pickle_and_clone(subject, model, content, problem, tmp_path):
    again = pickle.loads(pickle.dumps(model))
    assert file_of(again, tmp_path) == content
    assert_array_equal(again.predict_proba(problem.X_test), model.predict_proba(problem.X_test))
    fresh = clone(model)
    assert not hasattr(fresh, "classes_")
    assert fresh.get_params() == model.get_params()
    X, y, *evaluation = problem
    assert file_of(fresh.fit(X, y, eval_set=tuple(evaluation)), tmp_path) == content


# The same model, wherever and however it is trained


@pytest.fixture(scope="module")
def arrays(problem, tmp_path_factory):
    """The problem's rows in a folder, in chunks that do not agree; some chunks lack some of the classes."""
    folder = tmp_path_factory.mktemp("data")
    rows = {
        "x": (problem.X, (37, 2)),
        "y": (problem.y, (50,)),
        "ex": (problem.X_test, (200, 5)),
        "ey": (problem.y_test, (9,)),
    }
    for name, (values, chunks) in rows.items():
        zarr.create_array(folder / name, data=values, chunks=chunks, config={"write_empty_chunks": True})
    assert any(len(np.unique(problem.y[first : first + 37])) < 4 for first in range(0, len(problem.y), 37))
    return folder


@pytest.fixture(scope="module")
def urls(arrays):
    """The arguments of fit."""
    return {"X": f"{arrays}/x", "y": f"{arrays}/y", "eval_set": (f"{arrays}/ex", f"{arrays}/ey")}


def test_chunks_and_threads_change_nothing(subject, content, problem, urls, tmp_path):
    assert file_of(subject.make(n_jobs=2).fit(**urls), tmp_path) == content
    X, y, *evaluation = problem
    lazy = da.from_array(X, chunks=(71, 3)), da.from_array(y, chunks=100)
    assert file_of(subject.make().fit(*lazy, eval_set=tuple(evaluation)), tmp_path) == content


def test_draws_do_not_depend_on_chunks(subject, problem, on_some, urls, tmp_path):
    X, y, *evaluation = problem
    parameters, first, expected = on_some
    assert file_of(subject.make(**parameters, n_jobs=2).fit(**urls), tmp_path) == expected
    other = subject.make(**{**parameters, "random_state": 4}).fit(X, y, eval_set=tuple(evaluation))
    assert not np.array_equal(other.train_loss_, first.train_loss_)


FEWER = [pytest.param(n, marks=pytest.mark.soak) for n in (1, 2)]  # have less to add up than three


@pytest.mark.parametrize("workers", [*FEWER, 3])
def test_workers_change_nothing(subject, workers, content, urls, clients, tmp_path):
    model = subject.make()
    model.client = clients[workers]
    assert file_of(model.fit(**urls), tmp_path) == content


@pytest.mark.parametrize("some", [False, True], ids=["all rows", "some rows"])
def test_rounds_begun_by_the_update_before_are_the_same(
    subject, some, content, on_some, problem, tmp_path, monkeypatch
):
    """Their statistics and the histogram of their root are those of a round that asks for them."""
    X, y, *evaluation = problem
    parameters, _, expected = on_some if some else ({}, None, content)
    monkeypatch.setattr(TreeGrower, "next_root", lambda self, statistic: None)
    assert file_of(subject.make(**parameters).fit(X, y, eval_set=tuple(evaluation)), tmp_path) == expected


def test_the_gain_that_is_named_is_that_of_the_first_tree(subject, problem, monkeypatch):
    """A cluster's client compiles its search in advance. Without a tree, there is none to compile."""
    gains = []

    def recorded(gain, *arguments):
        gains.append(gain)
        return SplitRules(gain, *arguments)

    monkeypatch.setattr(grower, "SplitRules", recorded)
    model = subject.make(n_estimators=1).fit(problem.X, problem.y)
    assert algorithm_of(model, 2).gain is (gains[0] if gains else None)


# Rows on disk

FEW_ROWS, FEW_BINS = 37, 16  # of a block, of a feature: then little memory is too little


@pytest.fixture
def little_memory(monkeypatch):
    """Little memory is a limit: none is reckoned for the libraries, nor to read the raw rows (16 MB at the least)."""
    monkeypatch.setattr(ingest, "BLOCK_ROWS", FEW_ROWS)
    monkeypatch.setattr(memory, "PROCESS_BYTES", 0)
    monkeypatch.setattr(memory.MemoryPlan, "for_ingest", None)
    monkeypatch.setattr(RawDataset, "least_ingest", lambda *arguments: 0)
    # As if the sums did not stay in the cache: then few rows of a node wait for those of other blocks.
    monkeypatch.setattr(tally, "CACHED_TILES", 0)
    monkeypatch.setattr(gathered, "room_bytes", lambda like: 2**16)


def task_of(model, n_rows: int, weighted: bool) -> memory.Task:
    size = np.dtype(model.score_dtype).itemsize
    return memory.Task(
        algorithm_of(model, 4),
        growth_limits(model),
        n_rows,
        5,
        model.max_bins,
        size,
        weighted,
        n_rounds=model.n_estimators,
    )


def test_streaming_changes_nothing(subject, problem, little_memory, tmp_path):
    """All rows on disk, and their places in the tree: training rows with an evaluation set; all but 100, with the places in
    memory: weighted rows, some of them absent, of which each round sees some, with early stopping."""
    X, y, *evaluation = problem
    weights = np.random.default_rng(5).integers(0, 4, len(y)).astype(float)
    plain: dict[str, Any] = {"max_bins": FEW_BINS, "n_estimators": 4}
    weighted = {**plain, "class_weight": {0: 1.5, 1: 1, 2: 1, 3: 0.5}, "early_stopping_rounds": 2} | sampled(
        subject
    )
    scratch = tmp_path / "scratch"
    for parameters, w, resident in ((plain, None, 0), (weighted, weights, 100)):
        near = subject.make(**parameters).fit(X, y, w, eval_set=tuple(evaluation))
        expected = file_of(near, tmp_path)
        task = task_of(near, len(X) + len(evaluation[0]), w is not None)
        histograms, sums = (part.n_bytes for part in near.memory_plan_.parts[1:3])
        rows = resident * task.row_bytes + (task.n_rows - resident) * memory.ORDER_BYTES if resident else 0
        limit = int(histograms + sums + 2 * task.streamed_block_bytes + rows)
        far = subject.make(memory_limit=limit, scratch=scratch, **parameters)
        far.fit(X, y, w, eval_set=tuple(evaluation))
        assert (far.memory_plan_.resident, far.memory_plan_.streamed) == (resident, task.n_rows - resident)
        assert far.memory_plan_.n_bytes <= limit
        assert file_of(far, tmp_path) == expected
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("weighted", [False, True])
def test_the_memory_plan_counts_what_is_kept_of_a_row_and_summed(subject, weighted, problem, monkeypatch):
    """After two rounds: what a block holds, but for what all blocks share, and the sums of the largest reduction."""
    placed = []
    place = LocalRuntime.place
    monkeypatch.setattr(
        LocalRuntime, "place", lambda *arguments: placed.append(place(*arguments)) or placed[-1]
    )
    reduced = [0]
    initial = Reduction.initial

    def counted(self, n_leaves, n_classes):
        found = initial(self, n_leaves, n_classes)
        reduced.append(found.sums.size)
        return found

    monkeypatch.setattr(Reduction, "initial", counted)
    X, y, *_ = problem
    weights = np.arange(len(y)) % 3.0 if weighted else None
    model = subject.make(calibration=None, n_estimators=2, **sampled(subject)).fit(X, y, weights)
    [rows] = placed
    kept = 0
    for block in rows.shard.blocks:
        arrays = [block.bins, block.labels, block.values, *block.buffers.values()]
        arrays += [block.weights, block.present] if weighted else []
        kept += sum(array.nbytes for array in arrays if array is not None)
    task = task_of(model, len(y), weighted)
    assert 0 < kept <= task.row_bytes * len(y)
    assert 8 * max(reduced) <= task.reduction_bytes


def test_command_line(subject, content, arrays, tmp_path):
    path = tmp_path / "model"
    arguments = ["train", "--algorithm", subject.algorithm, "--x", arrays / "x", "--y", arrays / "y", "--model", path,
                 "--eval-x", arrays / "ex", "--eval-y", arrays / "ey"]  # fmt: skip
    for name, value in subject.parameters.items():
        arguments += ["--set", f"{name}={json.dumps(value)}"]
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    assert path.read_bytes() == content
