"""Steps that are too large: the model is one of numbers, or there is an error that says so."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.base import clone

import distboost
from distboost import CDMCBoostClassifier
from distboost.errors import LimitError
from distboost.probabilities.second_training import Extent

NAMES = ["AdaBoostMM", "CDMCBoost", "GAMBLE", "GDMCBoost", "REBEL", "StagewiseBoost"]


@pytest.fixture(scope="module")
def noise():
    """Labels that have little to do with the features: there are always rows to be wrong about."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 3)), rng.integers(0, 3, 150)


@pytest.mark.pairwise
@pytest.mark.parametrize("subsample", [1.0, 0.3])
@pytest.mark.parametrize("learning_rate", [3.0, 10.0])
@pytest.mark.parametrize("name", NAMES)
def test_the_largest_steps(name, learning_rate, subsample, noise):
    """Warnings are errors here: of overflows, too."""
    X, y = noise
    losses = []
    model = getattr(distboost, f"{name}Classifier")(
        n_estimators=60, learning_rate=learning_rate, subsample=subsample, calibration=None, n_jobs=1,
        callbacks=[lambda progress: losses.append(progress.train_loss)],
    )  # fmt: skip
    found = [losses]
    try:
        model.fit(X, y)
    except LimitError as error:
        refusal = str(error)
    else:
        refusal = ""
        found += [model.feature_importances_, model.scores(X), model.predict_proba(X)]
    assert all(np.isfinite(numbers).all() for numbers in found)
    if refusal or (name in ("CDMCBoost", "StagewiseBoost") and (learning_rate, subsample) == (10.0, 0.3)):
        assert refusal.startswith(f"after round {len(losses) + 1} the loss")
        assert refusal.endswith(f"a smaller learning_rate than {learning_rate}.")


def test_what_came_before_an_overshoot_is_kept(noise, tmp_path):
    model = CDMCBoostClassifier(
        learning_rate=10.0, subsample=0.3, checkpoint=tmp_path / "kept", checkpoint_every=1
    )
    with pytest.raises(LimitError, match="overshoot") as refused:
        model.fit(*noise)
    last = int(re.search(r"after round (\d+)", str(refused.value))[1])
    assert len(distboost.load(tmp_path / "kept").train_loss_) == last - 1


@pytest.mark.parametrize("learning_rate", [10.1, 1e6, float("inf")])
@pytest.mark.parametrize("name", NAMES)
def test_a_rate_that_enlarges_steps_without_end_is_refused(name, learning_rate, noise):
    with pytest.raises(ValueError, match=r"'learning_rate' parameter .* in the range"):
        getattr(distboost, f"{name}Classifier")(learning_rate=learning_rate).fit(*noise)


def test_a_second_training_that_diverges_leaves_the_model_without_a_calibration(monkeypatch):
    monkeypatch.setattr(Extent, "of", lambda weight, n_rounds: Extent(0.5, n_rounds))
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(1000, 3)), rng.integers(0, 3, 1000)
    model = CDMCBoostClassifier(n_estimators=60, learning_rate=10.0, subsample=0.3, n_jobs=1)
    with pytest.warns(UserWarning, match=r"not calibrated: in the second training, after round \d+ the loss"):
        model.fit(*noise)
    assert model.calibration_ is None
    model = clone(model).set_params(calibration="temperature")
    with pytest.raises(LimitError, match="after round"):
        model.fit(*noise)
    assert model.n_iter_ == 60  # the training itself is kept
