"""Binned stores where arrays are expected: raw values are used where they suffice; else the error says what to give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import distboost
from distboost import GDMCBoostClassifier
from distboost.cli import main
from distboost.errors import BinnedStoreError, DataError


def model(**parameters):
    return GDMCBoostClassifier(n_estimators=3, calibration=None, **parameters)


@pytest.fixture(scope="module")
def stores(tmp_path_factory, blobs):
    """A folder of x, y, a store of their bins, and one that has the values."""
    folder = tmp_path_factory.mktemp("stores")
    X, y = map(np.asarray, blobs)
    zarr.create_array(str(folder / "x"), data=X, chunks=(60, 4))
    zarr.create_array(str(folder / "y"), data=y, chunks=(60,))
    distboost.bin(X, y, str(folder / "bins"))
    distboost.bin(X, y, str(folder / "values"), keep_values=True)
    return folder


@pytest.fixture(scope="module")
def fitted(blobs):
    return model().fit(*blobs)


def test_a_store_has_its_own_labels(stores, blobs):
    for store in ("bins", "values"):
        for given in (f"{stores}/{store}", stores / store):
            with pytest.raises(DataError, match=r"X: '.*' is a binned store, .*pass it alone, without y"):
                model().fit(given, blobs[1])
        with pytest.raises(
            DataError, match=r"eval_set X: '.*' is a binned store, .*pass it alone, without y"
        ):
            model().fit(*blobs, eval_set=(f"{stores}/{store}", blobs[1]))


@pytest.mark.parametrize("store", ["bins", "values"])
def test_a_store_is_an_evaluation_set(store, stores, blobs):
    place = f"{stores}/{store}"
    expected = model().fit(*blobs, eval_set=blobs).eval_loss_
    for training in (blobs, (f"{stores}/bins",)):
        for given in (place, Path(place), (place, None), [place], {"eval": place}):
            np.testing.assert_array_equal(model().fit(*training, eval_set=given).eval_loss_, expected)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "scores", "decision_function"])
def test_prediction_of_a_store_with_values(method, stores, blobs, fitted):
    expected = getattr(fitted, method)(np.asarray(blobs[0]))
    np.testing.assert_array_equal(getattr(fitted, method)(f"{stores}/values").compute(), expected)


def test_staged_prediction_of_a_store_with_values(stores, blobs, fitted):
    place = f"{stores}/values"
    for lazy, at_once in (
        (fitted.staged_scores(place), fitted.staged_scores(blobs[0])),
        (fitted.staged_predict(place), fitted.staged_predict(blobs[0])),
    ):
        for found, expected in zip(lazy, at_once, strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(found.compute(), expected)


def test_evaluation_on_a_store_with_values(stores, blobs, fitted):
    place, y = f"{stores}/values", blobs[1]
    assert fitted.score(place, y) == fitted.score(*blobs)
    assert str(distboost.evaluate(fitted, place, y)) == str(distboost.evaluate(fitted, *blobs))


def test_prediction_needs_values(stores, blobs, fitted):
    place = f"{stores}/bins"
    for use in (
        lambda: fitted.predict(place),
        lambda: next(fitted.staged_scores(place)),
        lambda: fitted.score(place, blobs[1]),
        lambda: distboost.evaluate(fitted, place, blobs[1]),
    ):
        with pytest.raises(DataError, match=r"has bins but no raw values, .*keep_values=True"):
            use()


def test_removed_values_are_not_fill_values(stores, blobs, fitted, tmp_path):
    place = distboost.bin(*blobs, str(tmp_path / "store"), keep_values=True)
    (tmp_path / "store/values/c/0/0").unlink()
    with pytest.raises(BinnedStoreError, match="array values lacks 1 chunks"):
        fitted.predict(place)


def test_labels_are_needed_to_judge(stores, fitted):
    with pytest.raises(DataError, match="y is None: pass one label per row"):
        fitted.score(f"{stores}/values", None)


def test_the_command_predicts_a_store(stores, blobs, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    arguments = ["predict", "--model", f"{tmp_path}/model", "--out", f"{tmp_path}/out"]
    done = CliRunner().invoke(main, [*arguments, "--x", f"{stores}/values"])
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(zarr.open_array(f"{tmp_path}/out")[:], fitted.predict(blobs[0]))
