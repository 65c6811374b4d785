"""Cross-validation: each fold is judged by a model that has learned from the others, the same anywhere."""

from __future__ import annotations

import dask.array
import numpy as np
import pytest
import zarr

import distboost
from distboost import AdaBoostMMClassifier, GDMCBoostClassifier, REBELClassifier, cross_validate
from distboost.baselines import MultiBoostClassifier
from distboost.data import ingest
from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.data.dataset import RawDataset
from distboost.data.folds import ByClass, folds_by_class, folds_by_group
from distboost.errors import DataError
from distboost.estimators.parameters import algorithm_of, growth_limits
from distboost.inputs.choose import adapter_of
from distboost.runtime.local import LocalRuntime
from distboost.selection import ground
from distboost.training import memory_plan

SEED = 4


def make(**parameters):
    return GDMCBoostClassifier(**{"n_estimators": 4, "max_depth": 3, **parameters})


@pytest.fixture(scope="module")
def data():
    """(X, y): 400 rows with few values: all occur in every fold, so the edges of some folds are those of all rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (400, 4)).astype(float)
    y = np.array(["a", "b", "c"])[(X[:, 0] + X[:, 1] > 4).astype(int) + (X[:, 2] > rng.integers(0, 5, 400))]
    return X, y


def folds_of(y, n_folds, weights=None, seed=SEED):
    classes, codes = np.unique(y, return_inverse=True)
    rows = BinnedRows(0, np.zeros((len(y), 1), np.uint8), codes.astype(np.int32), np.ones(len(y)))
    if weights is not None:
        rows = rows._replace(weights=weights)
    return ByClass(seed, n_folds, np.zeros(len(classes), np.int64))(rows)


def results_of(found):
    return {name: values.tolist() for name, values in found.items() if name.startswith(("test", "curve"))}


# What it computes


@pytest.mark.parametrize(
    "estimator",
    [
        make,
        lambda: make(calibration=None),
        lambda: make(class_weight="balanced"),
        lambda: make(class_weight={"a": 0, "c": 2.5}),
        lambda: make(subsample=0.7, score_dtype="float32"),
        lambda: MultiBoostClassifier(n_estimators=1),
        lambda: AdaBoostMMClassifier(n_estimators=5, strategy="os-exponential", edge=0.1),
        lambda: REBELClassifier(n_estimators=1, weak_learner="similarity"),
    ],
    ids=[
        "default",
        "uncalibrated",
        "balanced",
        "of-classes",
        "subsample",
        "corrective",
        "votes",
        "similarities",
    ],
)
def test_a_fold_is_a_fit_of_the_others(estimator, data, assert_same_model):
    X, y = data
    found = cross_validate(estimator(), X, y, 3, random_state=SEED, return_estimator=True)
    folds = folds_of(y, 3)
    for fold in range(3):
        learn, judge = folds != fold, folds == fold
        model = estimator().fit(X[learn], y[learn])
        assert_same_model(found["estimator"][fold], model)
        assert found["estimator"][fold].calibration_ == model.calibration_
        expected = distboost.evaluate(model, X[judge], y[judge])
        assert found["test_accuracy"][fold] == expected["accuracy"]
        assert found["test_log_loss"][fold] == expected["log_loss"]
        assert found["n_iter"][fold] == model.n_iter_


def test_metrics_and_weights(data):
    X, y = data
    weights = np.random.default_rng(1).uniform(0, 2000, len(y)) * (np.arange(len(y)) % 5 > 0)
    names = ["f1_macro", "auc_ovr", "brier"]
    options = {"metrics": names, "sample_weight": weights, "random_state": SEED, "return_estimator": True}
    found = cross_validate(make(), X, y, 4, **options)
    folds = folds_of(y, 4, weights)
    for fold, model in enumerate(found["estimator"]):
        judge = folds == fold
        expected = distboost.evaluate(model, X[judge], y[judge], weights[judge])
        for name in names:
            assert found[f"test_{name}"][fold] == pytest.approx(expected[name], rel=1e-12)


def test_no_second_training_without_probabilities(data):
    found = cross_validate(make(), *data, 2, metrics="accuracy", return_estimator=True)
    assert [model.calibration_ for model in found["estimator"]] == [None, None]
    assert "test_log_loss" not in found


def test_curves(data):
    X, y = data
    found = cross_validate(make(eval_metric="log_loss"), X, y, 3, return_curves=True)
    assert found["curve_error"].shape == found["curve_loss"].shape == found["curve_log_loss"].shape == (3, 4)
    np.testing.assert_allclose(found["curve_error"][:, -1], 1 - found["test_accuracy"], rtol=1e-12)
    plain = cross_validate(make(), X, y, 3)
    np.testing.assert_array_equal(found["test_accuracy"], plain["test_accuracy"])


def test_curves_of_unequal_length(data):
    def stop(progress):
        stop.rounds += 1
        return stop.rounds == 2  # in the first fold

    stop.rounds = 0
    found = cross_validate(make(callbacks=[stop]), *data, 2, metrics="accuracy", return_curves=True)
    np.testing.assert_array_equal(found["n_iter"], [2, 4])
    np.testing.assert_array_equal(np.isnan(found["curve_error"]), [[False, False, True, True], [False] * 4])


def test_the_estimator_stays_as_it_is(data, tmp_path):
    model = make(checkpoint=tmp_path / "kept")
    found = cross_validate(model, *data, 2, metrics="accuracy")
    assert not hasattr(model, "classes_")
    assert not (tmp_path / "kept").exists()
    assert repr(found).splitlines()[2].startswith("test_accuracy  0.")


# Folds


@pytest.mark.parametrize("step", [1, 7, 500])
@pytest.mark.parametrize("n_folds", [2, 5, 255])
def test_folds_do_not_depend_on_blocks(step, n_folds):
    rng = np.random.default_rng(0)
    labels = rng.choice(4, 500, p=[0.6, 0.3, 0.09, 0.01]).astype(np.int32)
    weights = rng.integers(0, 3, 500).astype(float)
    bins = np.zeros((500, 1), np.uint8)
    calls = [(a,) for a in range(0, 500, step)]

    def block(a):
        return BinnedRows(a, *(array[a : a + step] for array in (bins, labels, weights)))

    part = BinnedSet(block, calls, [min(step, 500 - a) for (a,) in calls])
    work = LocalRuntime(2)
    try:
        numberings = folds_by_class(part, n_folds, SEED, 4, work)
    finally:
        work.close()
    found = np.concatenate([of(block(*call)) for of, call in zip(numberings, calls, strict=True)])
    present = weights > 0
    np.testing.assert_array_equal(found[present], folds_of(labels, n_folds, weights)[present])
    for label in range(4):
        counts = np.bincount(found[present & (labels == label)], minlength=n_folds)
        assert len(counts) == n_folds
        assert counts.max() - counts.min() <= 1


def test_folds_are_random():
    y = np.zeros(9999, int)
    folds = folds_of(y, 3)
    pairs = np.bincount(3 * folds[:-1] + folds[1:], minlength=9)
    assert (pairs > 300).all()  # also of neighbours
    assert 0.2 < (folds == folds_of(y, 3, seed=SEED + 1)).mean() < 0.5


def group_folds(groups, n_folds, step=400):
    part = BinnedSet(None, [], [min(step, 400 - a) for a in range(0, 400, step)])
    work = LocalRuntime(2)
    try:
        found = folds_by_group(part, adapter_of(groups, "groups").column(), n_folds, SEED, work)
    finally:
        work.close()
    return np.concatenate([numbering(None) for numbering in found])


@pytest.mark.parametrize("kind", ["numbers", "text", "dates", "zarr", "dask"])
def test_a_group_is_in_one_fold(kind, data, tmp_path):
    X, y = data
    groups = np.arange(400) % 13
    if kind == "text":
        groups = np.array([f"patient {n}" for n in groups])
    if kind == "dates":
        groups = groups.astype("datetime64[D]")
    given = groups
    if kind == "zarr":
        given = str(tmp_path / "groups")
        zarr.create_array(given, data=groups, chunks=(50,))
    if kind == "dask":
        given = dask.array.from_array(groups, chunks=70)
    folds = group_folds(given, 4)
    np.testing.assert_array_equal(folds, group_folds(given, 4, step=33))
    of_group = [np.unique(folds[groups == group]).tolist() for group in np.unique(groups)]
    assert sorted(np.bincount(np.concatenate(of_group)).tolist()) == [
        3,
        3,
        3,
        4,
    ]  # so each group is in one fold
    found = cross_validate(
        make(calibration=None), X, y, 4, metrics="accuracy", groups=given, random_state=SEED
    )
    for fold, accuracy in enumerate(found["test_accuracy"]):
        model = make(calibration=None).fit(X[folds != fold], y[folds != fold])
        assert accuracy == model.score(X[folds == fold], y[folds == fold])


def test_the_seed_and_the_order_of_rows_decide(data):
    X, y = data
    folds = [folds_of(y, 3, seed=seed) for seed in (0, 1)]
    assert (folds[0] != folds[1]).any()
    found = [
        results_of(cross_validate(make(calibration=None), X, y, 3, random_state=seed)) for seed in (0, 0, 1)
    ]
    assert found[0] == found[1] != found[2]


# The same everywhere


@pytest.mark.parametrize("grouped", [False, True])
def test_the_same_on_any_runtime(grouped, data, clients, tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 64)
    X, y = data
    options = {"folds": 2, "random_state": SEED, "return_curves": True}
    parameters = {}
    if grouped:
        parameters["calibration"] = None
        options["groups"] = np.arange(400) % 7
    expected = results_of(cross_validate(make(**parameters), X, y, **options))
    codes = np.unique(y, return_inverse=True)[1]
    urls = [str(tmp_path / name) for name in "xy"]
    for url, array in zip(urls, (X, codes), strict=True):
        zarr.create_array(url, data=array, chunks=(60, *array.shape[1:]))
    assert results_of(cross_validate(make(**parameters), *urls, **options)) == expected
    store = distboost.bin(*urls, str(tmp_path / "store"))
    for n in (2,) if grouped else (3,):
        model = make(**parameters)
        model.client = clients[n]
        assert results_of(cross_validate(model, store, **options)) == expected


def test_streamed(data, monkeypatch):
    X, y = (np.concatenate([part] * 3) for part in data)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 37)
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(memory_plan.MemoryPlan, "for_ingest", None)
    monkeypatch.setattr(RawDataset, "least_ingest", lambda *arguments: 0)
    near = make(calibration=None, max_depth=1, max_bins=16).fit(X, y)
    histograms, sums = (part.n_bytes for part in near.memory_plan_.parts[1:3])
    task = memory_plan.Task(algorithm_of(near, 3), growth_limits(near), len(X), 4, 16, 8, False, n_rounds=4)
    limit = int(histograms + sums + 2 * task.streamed_block_bytes)
    placed = []
    place = LocalRuntime.place
    monkeypatch.setattr(LocalRuntime, "place", lambda *given: placed.append(given[3]) or place(*given))
    far = cross_validate(make(calibration=None, max_depth=1, max_bins=16, memory_limit=limit), X, y, 2)
    assert len(placed) == 2
    assert all(allotment.resident < 500 for allotment in placed)
    assert results_of(far) == results_of(
        cross_validate(make(calibration=None, max_depth=1, max_bins=16), X, y, 2)
    )


# Bad input


def test_rows_are_binned_once(data, monkeypatch):
    written = []
    write = ground.write_store
    monkeypatch.setattr(
        ground, "write_store", lambda *given, **named: written.append(given) or write(*given, **named)
    )
    cross_validate(make(calibration=None), *data, 4, metrics="accuracy")
    assert len(written) == 1


def test_bad_input(data):
    X, y = data
    with pytest.raises(TypeError, match="estimator is of type str"):
        cross_validate("gd-mcboost", X, y)
    with pytest.raises(ValueError, match="learning_rate"):
        cross_validate(make(learning_rate=-1), X, y)
    for folds in (1, 256, 2.5):
        with pytest.raises(ValueError, match=f"folds is {folds}, expected a whole number from 2 to 255"):
            cross_validate(make(), X, y, folds)
    with pytest.raises(ValueError, match="metrics has 'confusion', which is not a number"):
        cross_validate(make(), X, y, metrics=["confusion"])
    with pytest.raises(ValueError, match="metrics is 3, expected a list of names"):
        cross_validate(make(), X, y, metrics=3)
    with pytest.raises(ValueError, match="metrics has 'acuracy', expected some of 'accuracy', "):
        cross_validate(make(), X, y, metrics=["acuracy"])
    with pytest.raises(ValueError, match="metrics is empty"):
        cross_validate(make(), X, y, metrics=[])
    with pytest.raises(DataError, match="early_stopping_rounds=2, but the only other rows"):
        cross_validate(make(early_stopping_rounds=2), X, y)
    with pytest.raises(DataError, match=r"validation_fraction=0\.1, but .* those of the folds"):
        cross_validate(make(validation_fraction=0.1), X, y)
    with pytest.raises(DataError, match="groups has 400 rows, but X has 300"):
        cross_validate(make(), X[:300], y[:300], groups=y)
    with pytest.raises(DataError, match="groups has 3 different values, but each of the 5 folds"):
        cross_validate(make(), X, y, groups=y)
    with pytest.raises(DataError, match="the others have rows of 1 classes"):
        cross_validate(make(), X[y != "c"], y[y != "c"], 2, groups=y[y != "c"])
    with pytest.raises(DataError, match="fold 2 of 5 has 0 rows"):
        cross_validate(make(), [[0], [1], [2], [3]], [0, 0, 1, 1], random_state=1)
