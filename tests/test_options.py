"""The options that compress the residuals by which trees are chosen: the same model anywhere, and who accepts them."""

from __future__ import annotations

import random
from contextlib import nullcontext

import dask.array as da
import numpy as np
import pytest

import distboost
from distboost import GDMCBoostClassifier, baselines, registry
from distboost.data import ingest
from distboost.errors import DataError
from distboost.estimators import fitting
from distboost.estimators.factory import estimator
from distboost.runtime.cluster import owners
from distboost.training import memory_plan
from distboost.training.training import Training
from tests.runtime.simulated import SimulatedRuntime
from tests.runtime.simulated_machines import Trouble

COMMON = {"n_estimators": 5, "max_depth": 4, "max_bins": 32, "random_state": 5}
OPTIONS = {
    "sketch": {"sketch": 3},
    "bits": {"statistic_bits": 4},
    "both, of some rows": {"sketch": 2, "statistic_bits": 3, "subsample": 0.7},
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 5))
    y = np.clip(X[:, 0] * 2 + X[:, 1] * X[:, 2] + 4, 0, 7).astype(int)
    X[rng.random(X.shape) < 0.03] = np.nan
    return X, y, rng.choice([0.0, 0.4, 1.0, 2.0], 900)


@pytest.fixture(scope="module")
def expected(data):
    """The models of one thread."""
    return {name: GDMCBoostClassifier(n_jobs=1, **COMMON, **how).fit(*data) for name, how in OPTIONS.items()}


ANY_OPTION = pytest.mark.parametrize("name", OPTIONS)


def fitted(name, data, client=None, **more):
    model = GDMCBoostClassifier(**{**COMMON, **OPTIONS[name], **more})
    model.client = client
    return model.fit(*data)


@ANY_OPTION
def test_threads_and_chunks(name, data, expected):
    lazy = [da.from_array(a, chunks=(117, *a.shape[1:])) for a in data]
    for model in (
        fitted(name, data, n_jobs=2),
        fitted(name, data, n_jobs=3),
        fitted(name, lazy, n_jobs=2),
    ):
        assert model.digest() == expected[name].digest()


@ANY_OPTION
def test_resumed(name, data, expected, tmp_path):
    kept = {"checkpoint": str(tmp_path / "kept")}
    fitted(name, data, n_estimators=2, **kept)
    model = GDMCBoostClassifier(**COMMON, **OPTIONS[name], **kept).fit(*data, resume=True)
    assert model.digest() == expected[name].digest()
    for other in (
        {"sketch": 4},
        {"sketch": None, "statistic_bits": 5},
        {"sketch": None, "statistic_bits": None},
    ):
        model.set_params(**other)
        with pytest.raises(DataError, match=r"was made with (sketch|statistic_bits)="):
            model.fit(*data, resume=True)


@pytest.mark.parametrize("exchanged", [False, True])
@ANY_OPTION
def test_lost_workers(name, exchanged, data, expected, monkeypatch):
    monkeypatch.setattr(owners, "exchange_pays", lambda n_bytes, n_workers: exchanged)
    lost = 0
    for seed in range(4):
        runtime = SimulatedRuntime(seed, Trouble.any(random.Random(seed)))
        monkeypatch.setattr(
            fitting, "open_runtime", lambda *_, runtime=runtime, **_named: nullcontext(runtime)
        )
        assert fitted(name, data).digest() == expected[name].digest()
        lost += sum(event.what.startswith(("killed", "frozen")) for event in runtime.workers.story)
    assert lost


@pytest.mark.parametrize(
    ("name", "n"),
    [("both, of some rows", 3), *(pytest.param(name, 2, marks=pytest.mark.soak) for name in OPTIONS)],
)
def test_workers(name, n, data, expected, clients):
    assert fitted(name, data, clients[n]).digest() == expected[name].digest()


@ANY_OPTION
def test_streamed(name, data, expected, monkeypatch, tmp_path):
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 50)
    store = distboost.bin(*data[:2], str(tmp_path / "store"), sample_weight=data[2], max_bins=32)
    model = fitted(name, (store,), memory_limit=150_000, n_jobs=1)
    assert model.memory_plan_.streamed > 0
    assert model.digest() == expected[name].digest()


# What they are for.


def test_models_without_options_are_those_of_before(data):
    model = GDMCBoostClassifier(**COMMON).fit(*data)
    assert not {"sketch", "statistic_bits"} & model.learned_.parameters.keys()
    assert OPTIONS["bits"].items() <= fitted("bits", data).learned_.parameters.items()


def test_loaded(expected, tmp_path):
    expected["both, of some rows"].save(tmp_path / "model")
    loaded = distboost.load(tmp_path / "model")
    assert (loaded.sketch, loaded.statistic_bits) == (2, 3)


def test_rows_that_are_rounded_to_nothing_are_not_visited(data, monkeypatch):
    """But they count in the leaves: the step is exact."""
    visited = {}
    for bits in (None, 16, 2):
        run, rows = Training.run, []
        monkeypatch.setattr(
            Training, "run", lambda *given, run=run, rows=rows: (rows.append(given[1]), run(*given))[1]
        )
        model = GDMCBoostClassifier(n_estimators=20, max_depth=3, statistic_bits=bits).fit(*data[:2])
        monkeypatch.undo()
        visited[bits] = rows[0].passes()["histogram"]
        assert (np.diff(model.train_loss_) < 0).all()
    assert visited[2] < 0.8 * visited[16]
    assert visited[16] <= visited[None]


def test_gains_of_a_sketch_estimate_those_of_all_residuals(data):
    X, y, _ = data
    exact = GDMCBoostClassifier(n_estimators=1, max_depth=1).fit(X, y).learned_.ensemble.gains()[1]
    estimates = [
        GDMCBoostClassifier(n_estimators=1, max_depth=1, sketch=5, random_state=seed)
        .fit(X, y)
        .learned_.ensemble.gains()[1]
        for seed in range(30)
    ]
    assert np.mean(estimates) == pytest.approx(exact.item(), rel=0.4)  # of noisy ones, the largest wins


def test_many_classes():
    rng = np.random.default_rng(0)
    n, K = 4000, 1000
    y = np.arange(n) % K
    X = np.column_stack([y % 10, y // 10 % 10, y // 100]) + rng.normal(scale=0.05, size=(n, 3))
    model = GDMCBoostClassifier(n_estimators=3, max_depth=6, max_bins=32, sketch=6).fit(X, y)
    assert (np.diff(model.train_loss_) < 0).all()
    plans = [
        distboost.plan(GDMCBoostClassifier(sketch=sketch), 20_000, 20, K, n_threads=1)
        for sketch in (None, 6, 14)
    ]
    histograms = [next(part.n_bytes for part in plan.parts if part.name == "histograms") for plan in plans]
    # 1001, 7 and 15 channels, in fours
    assert histograms[0] / 1004 == histograms[1] / 8 == histograms[2] / 16


# Who accepts them.

ACCEPTS = {"sketch": {"gd-mcboost", "gradboost"}, "statistic_bits": {"gd-mcboost"}}


@pytest.mark.parametrize("algorithm", registry.ALGORITHMS)
@pytest.mark.parametrize("option", ACCEPTS)
def test_others_refuse_them(algorithm, option, blobs):
    model = estimator(algorithm)(n_estimators=2, n_jobs=1, **{option: 2})
    if algorithm in ACCEPTS[option]:
        assert model.fit(*blobs).n_iter_ == 2
        return
    with pytest.raises(
        DataError, match=f"{option}=2, but {type(model).__name__} does not accept it.*{option}=None"
    ):
        model.fit(*blobs)


def test_codewords_refuse_them(blobs):
    for how in ({"sketch": 2}, {"statistic_bits": 4}):
        with pytest.raises(DataError, match="leaf='direction'"):
            GDMCBoostClassifier(leaf="codeword", **how).fit(*blobs)


@pytest.mark.parametrize("sketch", [3, 100])
def test_as_many_numbers_as_classes(sketch, blobs):
    with pytest.raises(DataError, match=f"sketch={sketch}, but the data have 3 classes.* at most 2"):
        GDMCBoostClassifier(sketch=sketch).fit(*blobs)
    with pytest.raises(DataError, match="at most 2"):
        distboost.plan(GDMCBoostClassifier(sketch=sketch), 100, 4, 3)


@pytest.mark.parametrize(
    "how", [{"sketch": 0}, {"sketch": 1.5}, {"statistic_bits": 1}, {"statistic_bits": 17}]
)
def test_invalid_values(how, blobs):
    with pytest.raises(ValueError, match=next(iter(how))):
        GDMCBoostClassifier(**how).fit(*blobs)


def test_a_flag_is_a_sketch_of_one_number(blobs):
    made = [GDMCBoostClassifier(n_estimators=2, sketch=k, calibration=None).fit(*blobs) for k in (True, 1)]
    np.testing.assert_array_equal(made[0].scores(blobs[0]), made[1].scores(blobs[0]))


def test_gradboost_learns_from_a_sketch(data):
    X, y, _ = data
    model = baselines.GradBoostClassifier(n_estimators=10, sketch=3).fit(X, y)
    assert (np.diff(model.train_loss_) < 0).all()


@pytest.mark.parametrize("how", [{"sketch": 2}, {"statistic_bits": 4}])
def test_rows_drawn_by_weight_refuse_them(how, blobs):
    with pytest.raises(DataError, match="but sampling is 'weight'"):
        GDMCBoostClassifier(subsample=0.5, sampling="weight", **how).fit(*blobs)
