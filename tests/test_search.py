"""Searches for parameters: scikit-learn's results, successive halving, and searches that were killed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zarr
from scipy.stats import uniform
from sklearn.model_selection import GridSearchCV

import distboost
from distboost import AdaBoostMMClassifier, cross_validate, search
from distboost.data import ingest
from distboost.errors import CheckpointError, DataError
from distboost.selection import ground
from distboost.selection import search as searching
from distboost.selection.search import rungs_of
from tests.forked import Forks
from tests.test_cross_validation import SEED, data, folds_of, make  # noqa: F401 (data: a fixture)

SPACE = [{"max_depth": [1, 2], "learning_rate": [0.1, 1.0]}, {"max_leaf_nodes": [3]}]
TIMES = {f"{kind}_{name}_time" for kind in ("mean", "std") for name in ("fit", "score")}


def scores_of(found):
    return {
        name: values if name == "params" else values.tolist()
        for name, values in found.cv_results_.items()
        if name not in TIMES
    }


@pytest.fixture
def trials(monkeypatch):
    """The trainings of a search: the parameters that it asked for, and the rounds that were there before."""
    found = []
    tried = searching.tried

    def counted(model, *given, earlier=None):
        found.append((model.max_depth, model.n_estimators, 0 if earlier is None else earlier.n_rounds))
        return tried(model, *given, earlier=earlier)

    monkeypatch.setattr(searching, "tried", counted)
    return found


# What it finds


def test_the_results_are_those_of_scikit_learn(data, assert_same_model):  # noqa: F811
    X, y = data
    found = search(make(), SPACE, X, y, 3, random_state=SEED)
    folds = folds_of(y, 3)
    splits = [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(3)]
    theirs = GridSearchCV(make(), SPACE, cv=splits).fit(X, y)
    ours = found.cv_results_
    assert set(theirs.cv_results_) == set(ours) - {"n_rounds"}
    for name, values in theirs.cv_results_.items():
        if name in TIMES:
            assert (ours[name] >= 0).all()
        elif name.startswith("param"):
            np.testing.assert_array_equal(ours[name], values)
        else:
            np.testing.assert_allclose(ours[name], values, rtol=1e-12, err_msg=name)
    assert ours["param_max_depth"].mask.tolist() == [False] * 4 + [True]
    assert found.best_params_ == theirs.best_params_
    assert found.best_score_ == pytest.approx(theirs.best_score_, rel=1e-12)
    assert_same_model(found.best_estimator_, theirs.best_estimator_)
    assert found.best_estimator_.calibration_ == theirs.best_estimator_.calibration_
    assert repr(found).splitlines()[1].startswith("   1  0.")


def test_losses_are_minimised(data):  # noqa: F811
    found = search(make(), {"max_depth": [1, 3]}, *data, 3, "neg_log_loss", refit=False)
    for n, depth in enumerate((1, 3)):
        expected = cross_validate(make(max_depth=depth), *data, 3)["test_log_loss"]
        splits = [found.cv_results_[f"split{fold}_test_score"][n] for fold in range(3)]
        np.testing.assert_array_equal(splits, -expected)
    assert found.best_index_ == np.argmax(found.cv_results_["mean_test_score"])
    assert found.best_estimator_ is None


def test_settings_are_drawn(data):  # noqa: F811
    space = {"learning_rate": uniform(0.1, 0.9)}
    found, again = (search(make(), space, *data, 2, n_iter=3, refit=False, random_state=5) for _ in range(2))
    assert len({setting["learning_rate"] for setting in found.cv_results_["params"]}) == 3
    assert scores_of(found) == scores_of(again)


def test_rows_are_binned_once_for_each_number_of_bins(data, monkeypatch):  # noqa: F811
    written = []
    write = ground.write_store
    monkeypatch.setattr(
        ground, "write_store", lambda *given, **named: written.append(given[2]) or write(*given, **named)
    )
    search(make(), {"max_bins": [4, 16], "max_depth": [1, 2]}, *data, 2, refit=False)
    assert sorted(written) == [4, 16]


def test_names_of_features(data):  # noqa: F811
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=list("pqrs"))
    found = search(make(), {"max_depth": [1]}, frame, y, 2)
    assert found.best_estimator_.feature_names_in_.tolist() == list("pqrs")


def test_the_same_on_a_cluster(data, clients, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 64)
    X, y = data
    codes = np.unique(y, return_inverse=True)[1]
    near = search(make(), {"max_depth": [1, 3]}, X, codes, 2)
    for name, array in (("x", X), ("y", codes)):
        zarr.create_array(str(tmp_path / name), data=array, chunks=(60, *array.shape[1:]))
    model = make()
    model.client = clients[2]
    far = search(model, {"max_depth": [1, 3]}, str(tmp_path / "x"), str(tmp_path / "y"), 2)
    assert scores_of(far) == scores_of(near)
    assert far.best_estimator_.digest() == near.best_estimator_.digest()
    assert "2 Dask workers" in far.best_estimator_.runtime_


# Successive halving


def test_rungs():
    assert [tuple(rung) for rung in rungs_of(12, 3)] == [(12, 9), (4, 3), (2, 1)]
    assert [tuple(rung) for rung in rungs_of(2, 2)] == [(2, 1)]
    assert [tuple(rung) for rung in rungs_of(5, 2)] == [(5, 4), (3, 2), (2, 1)]
    assert [rung.rounds(20) for rung in rungs_of(12, 3)] == [3, 7, 20]


def test_the_best_settings_continue(data, trials):  # noqa: F811
    space = {"max_depth": [1, 2, 3, 4, 5]}
    whole = search(make(n_estimators=8), space, *data, 2, refit=False)
    trials.clear()
    found = search(make(n_estimators=8), space, *data, 2, halving=2)
    rounds = found.cv_results_["n_rounds"].tolist()
    assert sorted(rounds) == [2, 2, 4, 8, 8]
    assert [n - before for _, n, before in trials] == [2] * 10 + [2] * 6 + [4] * 4  # none from zero
    for n in np.flatnonzero(np.array(rounds) == 8):
        for fold in range(2):
            name = f"split{fold}_test_score"
            assert found.cv_results_[name][n] == whole.cv_results_[name][n]
    assert rounds[found.best_index_] == 8
    order = np.argsort(found.cv_results_["rank_test_score"], kind="stable")
    assert np.array(rounds)[order].tolist() == [8, 8, 4, 2, 2]
    few = search(make(n_estimators=2), space, *data, 2, refit=False).cv_results_["mean_test_score"]
    left_out = np.array(rounds) == 2
    assert few[left_out].max() <= few[~left_out].min()
    assert found.best_estimator_.n_iter_ == 8


# Searches that were killed

SERVER = """
import os, signal
import numpy as np
from distboost import GDMCBoostClassifier, search
from distboost.selection import search as searching

def do(line):
    data, folder, last, halving = line.split("|")
    arrays, left = np.load(data), [int(last)]
    tried = searching.tried
    def counted(*given, **more):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return tried(*given, **more)
    searching.tried = counted
    model = GDMCBoostClassifier(n_estimators=4, max_depth=3, n_jobs=1)
    search(model, {"max_depth": [1, 2, 3]}, arrays["X"], arrays["y"], 2, halving=int(halving) or None, checkpoint=folder)
"""


@pytest.mark.parametrize(("last", "halving"), [(4, None), (0, None), (7, 2)])
def test_a_killed_search_continues(last, halving, data, trials, tmp_path):  # noqa: F811
    X, y = data
    options = {"space": {"max_depth": [1, 2, 3]}, "halving": halving}
    whole = search(make(), X=X, y=y, folds=2, **options)
    n_trials = len(trials)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    folder = tmp_path / "kept"
    assert not Forks(SERVER).run(f"{tmp_path / 'data.npz'}|{folder}|{last}|{halving or 0}")
    trials.clear()
    found = search(make(), X=X, y=y, folds=2, checkpoint=folder, **options)
    assert len(trials) == n_trials - last
    assert scores_of(found) == scores_of(whole)
    assert found.best_estimator_.digest() == whole.best_estimator_.digest()
    trials.clear()
    assert scores_of(search(make(), X=X, y=y, folds=2, checkpoint=folder, **options)) == scores_of(whole)
    assert not trials


def test_results_count_for_the_same_rows_folds_and_parameters(data, trials, tmp_path):  # noqa: F811
    X, y = data
    options = {"folds": 2, "checkpoint": tmp_path, "refit": False}
    search(make(), {"max_depth": [1, 2]}, X, y, **options)
    trials.clear()
    search(make(), {"max_depth": [2, 3]}, X, y, **options)
    assert [depth for depth, *_ in trials] == [3, 3]
    y2 = np.roll(y, 1)
    for changed in (
        lambda: search(make(), {"max_depth": [2]}, X + (X == 1) / 2, y, **options),
        lambda: search(make(), {"max_depth": [2]}, X, y2, **options),
        lambda: search(make(), {"max_depth": [2]}, X, y, random_state=1, **options),
        lambda: search(make(), {"max_depth": [2]}, X, y, groups=np.arange(400) % 7, **options),
        lambda: search(make(), {"max_depth": [2]}, X, y, sample_weight=np.arange(400) % 3, **options),
        lambda: search(make(), {"max_depth": [2]}, X, y, scoring="f1_macro", **options),
        lambda: search(make(n_estimators=3), {"max_depth": [2]}, X, y, **options),
    ):
        trials.clear()
        changed()
        assert len(trials) == 2


def test_a_line_that_was_cut_off_is_done_again(data, trials, tmp_path):  # noqa: F811
    options = {"folds": 2, "checkpoint": tmp_path, "refit": False}
    whole = search(make(), {"max_depth": [1]}, *data, **options)
    file = tmp_path / "trials.jsonl"
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + second[:-9])
    trials.clear()
    assert scores_of(search(make(), {"max_depth": [1]}, *data, **options)) == scores_of(whole)
    assert len(trials) == 1
    assert [json.loads(line)["fold"] for line in file.read_bytes().splitlines()] == [0, 1]
    file.write_bytes(first + b'{"key": "x"}\n')
    with pytest.raises(CheckpointError, match=r"line 2 of .*trials.jsonl is not a result of a search"):
        search(make(), {"max_depth": [1]}, *data, **options)


# Bad input


def test_bad_input(data, trials):  # noqa: F811
    with pytest.raises(ValueError, match=r"scoring is 'log_loss', expected one of accuracy, .*neg_log_loss"):
        search(make(), {"max_depth": [1]}, *data, scoring="log_loss")
    with pytest.raises(ValueError, match=r"scoring is \['accuracy'\], expected one of accuracy"):
        search(make(), {"max_depth": [1]}, *data, scoring=["accuracy"])
    with pytest.raises(ValueError, match="halving is 1, expected a whole number of at least 2"):
        search(make(), {"max_depth": [1]}, *data, halving=1)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        search(make(), {"depth": [1]}, *data)
    with pytest.raises(ValueError, match="learning_rate"):
        search(make(), {"learning_rate": [0.1, -1]}, *data)
    with pytest.raises(DataError, match="early_stopping_rounds=1"):
        search(make(), {"early_stopping_rounds": [None, 1]}, *data)
    with pytest.raises(ValueError, match="space has no settings"):
        search(make(), [], *data)
    fixed = AdaBoostMMClassifier(strategy="os-zero-one", edge=0.1)
    with pytest.raises(DataError, match="depends on the number of all rounds"):
        search(fixed, {"max_depth": [1, 2, 3]}, *data, halving=2)
    store = distboost.bin(*data, "memory://rows")
    with pytest.raises(DataError, match="was made with max_bins=255, not 16"):
        search(make(), {"max_bins": [255, 16]}, store)
    assert not trials


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_iter": 0}, "n_iter is 0, expected a whole number of at least 1"),
        ({"random_state": None}, "random_state is None, expected a whole number"),
        ({"space": {"learning_rate": uniform(0.1, 0.9)}}, "a distribution of learning_rate.*Pass n_iter"),
        ({"space": [{"learning_rate": uniform(0.1, 0.9)}]}, "a distribution of learning_rate.*Pass n_iter"),
    ],
)
def test_what_a_search_cannot_draw_is_refused(given, message, data):  # noqa: F811
    with pytest.raises(ValueError, match=message):
        search(make(), **{"space": SPACE, **given}, X=data[0], y=data[1])


def test_a_space_of_fewer_settings_than_n_iter_is_tried_as_a_whole(data):  # noqa: F811
    found = search(make(n_estimators=1), {"max_depth": [1, 2]}, *data[:2], folds=2, n_iter=5, refit=False)
    assert {setting["max_depth"] for setting in found.cv_results_["params"]} == {1, 2}
