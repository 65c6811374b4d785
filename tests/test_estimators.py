"""What users rely on: stopping, resuming, weights, staged and lazy output."""

from __future__ import annotations

import doctest
import pickle
import re

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.baselines import AdaBoostM1Classifier, SAMMEClassifier
from distboost.errors import TrainingEndedWarning
from distboost.estimators.factory import estimator
from distboost.registry import ALGORITHMS

ESTIMATORS = [GDMCBoostClassifier, GAMBLEClassifier]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1200], y[:1200], X[1200:], y[1200:]


@pytest.fixture(params=ESTIMATORS, ids=lambda cls: cls.algorithm_name)
def make(request):
    return request.param


def saved(model, folder) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def test_learns(make, digits):
    X, y, Xt, yt = digits
    model = make(n_estimators=30).fit(X, y)
    assert model.score(Xt, yt) > 0.88
    assert model.n_iter_ == model.best_iteration_ == 30
    assert model.outcome_ == "rounds"
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[0] == 0  # a border pixel that is always empty


def test_gd_mcboost_loss_falls(digits):
    X, y, _, _ = digits
    for leaf in ("direction", "codeword"):
        model = GDMCBoostClassifier(n_estimators=30, leaf=leaf, max_depth=2).fit(X, y)
        assert (np.diff(model.train_loss_) < 0).all()


def adaboost(X, signs, n_rounds) -> np.ndarray:
    """Textbook AdaBoost with exhaustive stumps: the margin scores of the rows."""
    F = np.zeros(len(X))
    stumps = np.concatenate([np.where(x <= np.unique(x)[:-1, None], 1.0, -1.0) for x in X.T])
    for _ in range(n_rounds):
        w = np.exp(-signs * F)
        edges = stumps @ (w * signs) / w.sum()
        best = np.argmax(np.abs(edges))
        F += np.arctanh(edges[best]) * stumps[best]
    return F


def test_two_classes_with_codewords_are_adaboost():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 4)), 1)  # few enough values to be binned exactly
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=300) > 0.5).astype(int)
    model = GDMCBoostClassifier(n_estimators=15, leaf="codeword", max_depth=1).fit(X, y)
    assert_allclose(model.decision_function(X) / 2, adaboost(X, 2 * y - 1, 15), rtol=1e-9)


def test_gamble_of_one_round_has_bounded_scores(digits):
    X, y, _, _ = digits
    F = GAMBLEClassifier(n_estimators=1).fit(X, y).scores(X)
    assert_allclose(F.sum(axis=1), 0, atol=1e-9)
    assert np.abs(F).max() <= 10 * 9 * 2


def _file(model, folder) -> str:
    model.save(folder / "model")
    return str(folder / "model")


@pytest.mark.parametrize("boolean", [bool, np.bool_])
def test_callbacks_are_called_and_can_stop(boolean, make, digits):
    X, y, Xt, yt = digits
    seen = []
    model = make(n_estimators=20, callbacks=[seen.append, lambda progress: boolean(progress.round == 4)])
    model.fit(X, y, eval_set=(Xt, yt))
    assert [progress.round for progress in seen] == [1, 2, 3, 4]
    assert model.outcome_ == "callback"
    assert [progress.train_loss for progress in seen] == model.train_loss_.tolist()
    assert [progress.eval_error for progress in seen] == model.eval_error_.tolist()


def test_progress_bar(make, digits, capsys):
    X, y, _, _ = digits
    make(n_estimators=3, verbose=1).fit(X, y)
    assert "3/3" in capsys.readouterr().out


def test_a_run_of_other_parameters_does_not_resume_from_a_checkpoint(digits, tmp_path):
    X, y, _, _ = digits
    given = {"calibration": None, "n_estimators": 3, "subsample": 0.5, "checkpoint": tmp_path / "checkpoint"}
    GAMBLEClassifier(**given).fit(X, y)
    for other, said in (
        ({"subsample": 0.6}, r"subsample=0.5, not 0.6"),
        ({"n_estimators": 2}, "has 3 rounds, more than"),
    ):
        with pytest.raises(distboost.errors.DataError, match=said):
            GAMBLEClassifier(**given | other).fit(X, y, resume=True)


def test_a_checkpoint_of_another_algorithm(digits, tmp_path):
    X, y, _, _ = digits
    given = {"calibration": None, "n_estimators": 2, "max_depth": 2, "checkpoint": tmp_path / "checkpoint"}
    SAMMEClassifier(**given).fit(X, y)
    with pytest.raises(
        distboost.errors.ModelFormatError, match="model of the algorithm 'samme', not of 'adaboost-m1'"
    ):
        AdaBoostM1Classifier(**given).fit(X, y, resume=True)


def test_losses_of_any_magnitude_are_exact():
    """GAMBLE's loss with many classes: its bound on the next weights is hundreds of binary orders above them."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 200, 4000)
    X = np.c_[y % 10, y // 10] + 0.7 * rng.normal(size=(4000, 2))
    model = GAMBLEClassifier(n_estimators=4).fit(X, y)
    for loss, F in zip(model.train_loss_, model.staged_scores(X), strict=True):
        assert loss == pytest.approx(np.exp(-F[np.arange(4000), y] / 199).mean(), rel=1e-7, abs=0)


def test_no_split_ends_with_a_named_outcome():
    X, y = np.zeros((20, 2)), np.arange(20) % 2
    with pytest.warns(
        TrainingEndedWarning, match="ended as 'no split' after 0 of 100 rounds: no split lowers the loss"
    ):
        model = GDMCBoostClassifier().fit(X, y)
    assert model.outcome_ == "no split"
    assert_array_equal(model.predict(X), 0)


def test_missing_values_take_a_learned_side(make):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > 0).astype(int)
    X[y == 1, 0] = np.where(rng.random((y == 1).sum()) < 0.5, np.nan, X[y == 1, 0])
    model = make(n_estimators=5).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.predict([[np.nan, 0.0]]) == [1]
    # Training saw no missing value in feature 1: one may still come.
    assert np.isfinite(model.predict_proba([[0.5, np.nan]])).all()


def test_small_leaves_are_refused(digits):
    X, y, _, _ = digits
    for parameters in ({"min_samples_leaf": 200}, {"min_weight_fraction_leaf": 200 / 1200}):
        model = GDMCBoostClassifier(n_estimators=1, max_depth=None, **parameters).fit(X, y)
        _, sizes = np.unique(model.scores(X), axis=0, return_counts=True)
        assert len(sizes) > 1
        assert sizes.min() >= 200


def test_predictions_on_any_array_agree(make, digits, tmp_path):
    X, y, Xt, yt = digits
    names = np.array([f"digit {k}" for k in range(10)])
    model = make(n_estimators=5).fit(X, names[y])
    url = str(tmp_path / "x")
    zarr.create_array(url, data=Xt, chunks=(100, 30))
    lazy = da.from_array(Xt, chunks=(77, 64))
    for method in ("predict", "predict_proba", "scores", "decision_function"):
        expected = getattr(model, method)(Xt)
        for data in (url, zarr.open_array(url), lazy):
            got = getattr(model, method)(data)
            assert dask.is_dask_collection(got)
            assert got.shape == expected.shape
            assert got.dtype == expected.dtype
            assert_array_equal(got.compute(), expected)
    assert_array_equal(model.predict(pd.DataFrame(Xt)), model.predict(Xt))
    assert accuracy_score(names[yt], model.predict(Xt)) == model.score(Xt, names[yt])


def test_a_client_is_cloned_but_not_pickled(make, digits):
    X, y, Xt, _ = digits
    model = make(n_estimators=2).fit(X, y)
    model.client = object()
    assert clone(model).client is model.client
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    assert_array_equal(again.predict(Xt), model.predict(Xt))


def test_few_rows_are_trained_on_by_few_threads(digits, monkeypatch):
    X, y, _, _ = digits
    monkeypatch.setattr("distboost.threads.ENTRIES_PER_THREAD", X.size // 2)
    model = GDMCBoostClassifier(n_estimators=1, calibration=None, n_jobs=3).fit(X, y)
    assert model.runtime_ == "in this process with 2 threads"
    model.fit(X[:50], y[:50])
    assert model.runtime_ == "in this process with 1 thread"


def test_a_search_of_scikit_learn_trains_on_the_client_of_the_estimator(digits, clients):
    """Although it is not the current client."""
    X, y, _, _ = digits
    model = GDMCBoostClassifier(n_estimators=2, max_depth=2, calibration=None)
    model.client = clients[2]
    found = GridSearchCV(model, {"learning_rate": [1.0, 0.5]}, cv=2).fit(X, y)
    assert "on 2 Dask workers" in found.best_estimator_.runtime_
    model.client = None
    local = GridSearchCV(model, {"learning_rate": [1.0, 0.5]}, cv=2).fit(X, y)
    assert "in this process" in local.best_estimator_.runtime_
    assert_array_equal(found.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"])


def test_feature_names_are_kept_and_checked(digits, tmp_path):
    X, y, _, _ = digits
    frame = pd.DataFrame(X[:, 10:14], columns=list("abcd"))
    model = GDMCBoostClassifier(n_estimators=2).fit(frame, y)
    again = distboost.load(_file(model, tmp_path))
    assert again.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[list("dcba")])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_estimator_is_documented(name, blobs):
    """Each of its parameters and attributes once, and an example that runs."""
    cls = estimator(name)
    parameters, attributes = re.split(r"\n(?:Parameters|Attributes|Examples)\n-+\n", cls.__doc__)[1:3]
    assert sorted(entries(parameters)) == sorted(cls().get_params())
    named = pd.DataFrame(blobs[0], columns=list("abcd")), blobs[1]
    model = cls(n_estimators=2).fit(*named, eval_set=named)
    documented = entries(attributes)
    assert len(documented) == len(set(documented))
    for attribute in documented:
        assert hasattr(model, attribute)
    notes = {f"{note}_" for note in cls.algorithm.notes}
    assert notes <= set(documented)
    [example] = doctest.DocTestFinder(recurse=False).find(cls, name=cls.__name__)
    assert doctest.DocTestRunner().run(example).failed == 0


def entries(section: str) -> list[str]:
    """The names of a numpydoc section: two may share a line."""
    lines = re.findall(r"(?m)^((?:\w+, )*\w+) : ", section)
    return [name for line in lines for name in line.split(", ")]


@pytest.mark.parametrize("place", ["fitted model", "loaded model", "checkpoint"])
@pytest.mark.parametrize(
    "changed", [{"max_depth": 3}, {"learning_rate": 0.5}, {"early_stopping_rounds": 3}], ids=str
)
def test_other_parameters_start_again(changed, place, digits, tmp_path, request):
    """It would not be the model of an uninterrupted training; the fitted model stays what it was."""
    X, y, Xt, yt = digits
    model = GDMCBoostClassifier(n_estimators=3, max_depth=2, checkpoint=tmp_path / "c").fit(X, y)
    before = saved(model, tmp_path)
    if place == "loaded model":
        model = distboost.load(_file(model, tmp_path))
    elif place == "checkpoint":
        model = clone(model)
    model.set_params(n_estimators=5, **changed)
    [(name, value)] = changed.items()
    old = {"max_depth": 2}.get(name, GDMCBoostClassifier().get_params()[name])
    with pytest.raises(
        distboost.errors.DataError, match=rf"was made with {name}={old!r}, not {value!r}\. Set it to"
    ):
        model.fit(X, y, eval_set=(Xt, yt), resume=True)
    model.set_params(
        **{name: old}, n_jobs=1, verbose=0, checkpoint=None if place == "fitted model" else tmp_path / "c"
    )
    model.set_params(n_estimators=3).fit(X, y, resume=True)
    assert saved(model, tmp_path) == before


def test_the_threads_of_linear_algebra_change_nothing(tmp_path):
    """The coordinator solves for 120 coefficients in each round."""
    rng = np.random.default_rng(0)
    y = np.arange(2400) % 120
    X = rng.normal(size=(2400, 8)) + np.stack([y % 7, y % 11], 1).repeat(4, 1)
    files = []
    for n in (1, 2):
        with threadpool_limits(n, "blas"):
            files.append(saved(distboost.StagewiseBoostClassifier(n_estimators=6).fit(X, y), tmp_path))
    assert files[0] == files[1]


def test_a_loss_beyond_what_a_float_holds_is_infinite():
    X, y = np.repeat(np.eye(3), 20, axis=0), np.repeat(np.arange(3), 20)
    model = GAMBLEClassifier(n_estimators=60, learning_rate=10.0, calibration=None).fit(
        X, y, eval_set=(X, (y + 1) % 3)
    )
    assert model.eval_loss_[-1] == np.inf
    assert model.eval_error_[-1] == 1
    assert np.isfinite(model.train_loss_).all()


def test_parameters_are_checked_without_data():
    model = GAMBLEClassifier(n_estimators=3)
    assert model.validate() is model
    with pytest.raises(ValueError, match="'n_estimators' parameter of GAMBLEClassifier must be an int"):
        GAMBLEClassifier(n_estimators=0).validate()
