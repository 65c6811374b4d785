"""Models that are not fitted, or fitted to other data."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from distboost.errors import DataError, DistboostError, LimitError, MissingChunkError, StoreError
from tests.bad_input.forms import N


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "scores", "decision_function", "staged_predict"]
)
def test_asking_before_fitting(model, data, method):
    with pytest.raises(NotFittedError):
        list(getattr(model, method)(data[0]))


def test_saving_before_fitting(model, tmp_path):
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_resuming_before_fitting(model, data):
    with pytest.raises(
        (NotFittedError, DistboostError), match=r"resume=True .*not fitted|resume=True.*checkpoint"
    ):
        model.fit(*data, resume=True)


def test_resuming_on_other_classes(model, data):
    X, y = data
    model.fit(X, y)
    with pytest.raises(DataError, match=r"trained on 4 features .*classes \[0, 1, 2\].*classes \[0, 1, 5\]"):
        model.fit(X, np.where(y == 2, 5, y), resume=True)
    assert model.classes_.tolist() == [0, 1, 2]


def test_resuming_on_other_features(model, data):
    X, y = data
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"4 features|3 features"):
        model.fit(X[:, :3], y, resume=True)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "scores", "decision_function"])
def test_predicting_with_other_features(model, data, stored, method):
    X, y = data
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features.*, but .* expecting 4 features"):
        getattr(model, method)(stored(X[:, :3], "x"))


@pytest.mark.parametrize("n_dimensions", [1, 3])
def test_predicting_with_other_dimensions(model, data, stored, n_dimensions):
    X, y = data
    model.fit(X, y)
    given = X[:, 0] if n_dimensions == 1 else X[:, :, None]
    message = rf"Expected 2D array|array with dim 3|X has {n_dimensions} dimensions \(its shape is \(240,.* expecting 2: rows"
    with pytest.raises(DataError, match=message):
        model.predict(stored(given, "x"))


def test_predicting_from_infinite_values(model, data, stored):
    X, y = data
    model.fit(X, y)
    X[137, 2] = np.inf
    with pytest.raises(ValueError, match=r"X.* contains infinity|infinite"):
        np.asarray(model.predict(stored(X, "x")))


def test_predicting_with_fewer_staged_features(model, data):
    X, y = data
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features.*, but .* expecting 4 features"):
        next(model.staged_scores(X[:, :3]))


def test_a_failed_fit_leaves_the_model_as_it_was(model, data):
    X, y = data
    before = model.fit(X, y).scores(X)
    with pytest.raises(DataError):
        model.fit(X, np.zeros(N, int))
    np.testing.assert_array_equal(model.scores(X), before)


def test_errors_travel():
    """An error raised on a worker process arrives as itself."""
    import pickle

    for cls in (DataError, LimitError, MissingChunkError, StoreError):
        error = pickle.loads(pickle.dumps(cls("what and where")))
        assert type(error) is cls
        assert isinstance(error, DistboostError)
        assert str(error) == "what and where"
