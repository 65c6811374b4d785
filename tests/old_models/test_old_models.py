"""Model files of every format version load for ever, with the predictions that were stored beside them (see `make.py`)."""

import numpy as np
import pytest

import distboost
from tests.old_models.make import FOLDER, later, models

FILES = sorted(FOLDER.glob("*.model"))


def test_every_estimator_has_files_of_each_version():
    wanted = {f"{version}-{name}" for version in (1, 2, 3) for name, _ in models()}
    assert {file.stem for file in FILES} >= wanted | {f"3-{name}" for name, _ in later()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_old_model_predicts_as_it_did(file):
    version, _, name = file.stem.partition("-")
    model = distboost.load(file)
    with np.load(FOLDER / f"{version}.npz") as known:
        X = np.nan_to_num(known["X"]) if name == "similarity" else known["X"]
        np.testing.assert_array_equal(model.scores(X), known[f"{name} scores"])
        np.testing.assert_allclose(model.predict_proba(X), known[f"{name} probabilities"], rtol=1e-12)
        np.testing.assert_array_equal([model.train_loss_, model.eval_loss_], known[f"{name} losses"])
