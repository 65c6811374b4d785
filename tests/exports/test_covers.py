"""Covers: how many rows, of which weight, each leaf of a tree had in training."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.errors import ModelFormatError
from distboost.io.files import read_file, write_file
from distboost.model.checkpoint import MANIFEST, Manifest
from tests.algorithms.subjects import OF_SUMS, TREES
from tests.old_models.make import FOLDER, NAMES, rows


def leaves(arrays, tree, X):
    """The leaf of each row in one tree, naively."""
    first = arrays["roots"][tree]
    found = []
    for x in X:
        node = 0 if arrays["roots"][tree + 1] > first else ~0
        while node >= 0:
            value = x[arrays["feature"][first + node]]
            left = (
                arrays["missing_left"][first + node]
                if np.isnan(value)
                else value <= arrays["threshold"][first + node]
            )
            node = arrays["left" if left else "right"][first + node]
        found.append(arrays["value_offsets"][tree] + ~node)
    return np.array(found)


def counted(arrays, X, weights=None):
    """The total weight of the rows in each leaf of all trees."""
    n_trees = len(arrays["roots"]) - 1
    found = [np.bincount(leaves(arrays, tree, X), weights, len(arrays["values"])) for tree in range(n_trees)]
    return np.sum(found, axis=0)


def covers(model):
    arrays = model.learned_.ensemble.arrays()
    return arrays["leaf_rows"], arrays["leaf_weight"]


@pytest.mark.parametrize("subject", TREES, ids=str)
def test_leaves_count_their_rows(subject, problem):
    X, y = problem
    model = subject.make(calibration=None).fit(X, y)
    rows, weight = covers(model)
    assert_array_equal(rows, counted(model.learned_.ensemble.arrays(), X))
    assert_array_equal(weight, rows)


@pytest.mark.parametrize("subject", OF_SUMS, ids=str)
def test_weights_that_are_not_whole(subject, problem):
    X, y = problem
    w = np.random.default_rng(1).integers(1, 32, len(y)) / 32  # exact in the units of the histograms
    model = subject.make(calibration=None, class_weight={0: 2.0, 1: 0.5, 2: 1.0, 3: 1.0}).fit(X, y, w)
    rows, weight = covers(model)
    arrays, by_class = model.learned_.ensemble.arrays(), np.array([2.0, 0.5, 1.0, 1.0])
    assert_array_equal(rows, counted(arrays, X))
    # The largest weight is scaled to between 128 and 256.
    scale = model.learned_.ensemble.weight_scale
    assert 128 <= scale * (w * by_class[y]).max() <= 256
    assert_array_equal(weight, scale * counted(arrays, X, w * by_class[y]))
    assert model.to_dataframe().Weight[0] == (w * by_class[y]).sum()


def test_a_whole_weight_is_a_number_of_rows(problem):
    X, y = problem
    w = np.random.default_rng(1).integers(0, 4, len(y))
    rows, weight = covers(GAMBLEClassifier(n_estimators=4, calibration=None).fit(X, y, w))
    assert_array_equal(rows, weight)
    assert rows.sum() == 4 * w.sum()


@pytest.mark.parametrize("exponent", [-1030, -100, 100, 1000])
def test_weights_of_any_size(exponent, problem):
    X, y = problem
    w = np.ldexp(np.random.default_rng(1).integers(1, 32, len(y)) / 32, exponent)
    model = GAMBLEClassifier(n_estimators=3, calibration=None).fit(X, y, w)
    found = model.to_dataframe().Weight
    assert np.isfinite(found).all()
    if -900 <= exponent <= 900:
        assert found[0] == w.sum()


def test_earlier_rounds_take_the_unit_of_later_ones(problem, tmp_path):
    X, y = problem
    ensemble = GAMBLEClassifier(n_estimators=3, calibration=None).fit(X, y).learned_.ensemble
    before, weight = ensemble.copy(), ensemble.arrays()["leaf_weight"]
    ensemble.scale_weights(64.0)
    assert_array_equal(ensemble.arrays()["leaf_weight"], 64 * weight)
    assert_array_equal(before.arrays()["leaf_weight"], weight)
    assert (ensemble.part(0, 2).weight_scale, before.weight_scale) == (64.0, 1.0)


def test_files_keep_the_unit_of_the_weights(problem, tmp_path):
    X, y = problem
    model = GDMCBoostClassifier(n_estimators=3, calibration=None, class_weight="balanced").fit(X, y)
    assert model.learned_.ensemble.weight_scale != 1
    model.save(tmp_path / "model")
    again = distboost.load(tmp_path / "model")
    assert_array_equal(again.to_dataframe().Weight, model.to_dataframe().Weight)
    assert again.digest() == model.digest()
    header, arrays = read_file(str(tmp_path / "model"))
    for scale in (0.0, float("nan"), 2.0**1000, 1, "1"):
        write_file(str(tmp_path / "model"), {**header, "weight_scale": scale}, arrays)
        with pytest.raises(ModelFormatError, match="the scale of its weights is"):
            distboost.load(tmp_path / "model")


@pytest.mark.parametrize("sampling", ["uniform", "weight"])
def test_the_rows_that_a_tree_was_grown_on(sampling, problem):
    X, y = problem
    model = GDMCBoostClassifier(
        n_estimators=4, max_depth=2, subsample=0.5, sampling=sampling, calibration=None
    )
    rows, _ = covers(model.fit(X, y))
    of_trees = np.add.reduceat(rows, model.learned_.ensemble.arrays()["value_offsets"][:-1])
    assert (np.abs(of_trees - 75) < 25).all()
    assert rows.min() > 0


def test_threads_and_blocks_change_nothing(problem):
    X, y = problem
    w = np.random.default_rng(1).random(len(y))
    alone = GDMCBoostClassifier(n_estimators=3, calibration=None, n_jobs=1).fit(X, y, w)
    parts = [da.from_array(a, chunks=(40, *a.shape[1:])) for a in (X, y, w)]
    shared = GDMCBoostClassifier(n_estimators=3, calibration=None, n_jobs=2).fit(*parts)
    for mine, theirs in zip(covers(alone), covers(shared), strict=True):
        assert_array_equal(mine, theirs)


# Files.


def test_files_keep_them(problem, tmp_path):
    model = GDMCBoostClassifier(n_estimators=3, calibration=None).fit(*problem)
    model.save(tmp_path / "model")
    assert read_file(str(tmp_path / "model"))[0]["version"] == 3
    again = distboost.load(tmp_path / "model")
    for mine, theirs in zip(covers(model), covers(again), strict=True):
        assert_array_equal(mine, theirs)
    assert again.digest() == model.digest()


@pytest.mark.parametrize("version", [1, 2])
def test_models_of_earlier_files_have_no_covers_and_stay(version, tmp_path):
    file = FOLDER / f"{version}-gd-mcboost.model"
    model = distboost.load(file)
    assert not model.learned_.ensemble.has_covers
    model.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def test_rounds_added_to_an_earlier_model_have_none_either(tmp_path):
    model = distboost.load(FOLDER / "2-gd-mcboost.model").set_params(n_estimators=5)
    X, y = rows()
    model.fit(X[:40], NAMES[y[:40]], eval_set=(X[40:], NAMES[y[40:]]), resume=True)
    assert model.n_iter_ == 5
    assert not model.learned_.ensemble.has_covers
    model.save(tmp_path / "model")
    assert read_file(str(tmp_path / "model"))[0]["version"] == 2


def test_an_earlier_checkpoint_continues_without_them(problem, tmp_path):
    """All its segments agree: none of them has covers in the end."""
    X, y = problem
    made = {"calibration": None, "checkpoint": tmp_path / "kept", "checkpoint_every": 2}
    GDMCBoostClassifier(n_estimators=4, **made).fit(X, y)
    header, segments = Manifest.decoded((tmp_path / "kept" / MANIFEST).read_bytes(), "")
    del header["covers"]
    (tmp_path / "kept" / MANIFEST).write_bytes(Manifest(header, segments).encoded())
    model = GDMCBoostClassifier(n_estimators=6, **made).fit(X, y, resume=True)
    again = distboost.load(tmp_path / "kept")
    for one in (model, again):
        assert not one.learned_.ensemble.has_covers
    assert_array_equal(
        again.scores(X), GDMCBoostClassifier(n_estimators=6, calibration=None).fit(X, y).scores(X)
    )
    kept = [read_file(str(path))[1] for path in (tmp_path / "kept").glob("*.safetensors")]
    assert not any("leaf_rows" in arrays for arrays in kept)


DAMAGES = {
    "missing": lambda arrays: arrays.pop("leaf_weight"),
    "too few": lambda arrays: arrays.update(leaf_rows=arrays["leaf_rows"][:-1]),
    "another type": lambda arrays: arrays.update(leaf_rows=arrays["leaf_rows"].astype(np.int32)),
    "negative": lambda arrays: arrays["leaf_rows"].put(0, -1),
    "not a number": lambda arrays: arrays["leaf_weight"].put(0, np.nan),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_damaged(change, problem, tmp_path):
    GAMBLEClassifier(n_estimators=2, calibration=None).fit(*problem).save(tmp_path / "model")
    header, arrays = read_file(str(tmp_path / "model"))
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays)
    write_file(str(tmp_path / "model"), header, arrays)
    with pytest.raises(ModelFormatError, match="trees are damaged"):
        distboost.load(tmp_path / "model")


def test_a_strange_entry_of_the_header(problem, tmp_path):
    GAMBLEClassifier(n_estimators=2, calibration=None).fit(*problem).save(tmp_path / "model")
    header, arrays = read_file(str(tmp_path / "model"))
    write_file(str(tmp_path / "model"), {**header, "covers": 1}, arrays)
    with pytest.raises(ModelFormatError, match="its entry about covers is 1, not true"):
        distboost.load(tmp_path / "model")
