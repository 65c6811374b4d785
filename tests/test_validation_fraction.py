"""`validation_fraction`: rows that a training run leaves out are its evaluation rows."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

import distboost
from distboost import GDMCBoostClassifier, REBELClassifier
from distboost.active import QueryByCommittee
from distboost.baselines import MultiBoostClassifier
from distboost.data import ingest
from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.data.dataset import RawDataset
from distboost.errors import DataError
from distboost.estimators.fitting import held_out
from distboost.estimators.parameters import algorithm_of, growth_limits
from distboost.kernels.digest import uniforms_of
from distboost.runtime.local import LocalRuntime
from distboost.training import memory_plan


def make(**parameters):
    return GDMCBoostClassifier(
        **{"n_estimators": 8, "max_depth": 3, "validation_fraction": 0.25, "n_jobs": 1, **parameters}
    )


@pytest.fixture(scope="module")
def rows():
    """Rows of few values, so that bins are the values, and bin edges follow from any part of the rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (600, 5)).astype(float)
    y = (X @ rng.normal(size=(5, 3)) + rng.gumbel(size=(600, 3))).argmax(axis=1)
    return X, y


@pytest.mark.parametrize(
    "model",
    [
        make(),
        make(n_estimators=40, early_stopping_rounds=3),
        make(class_weight="balanced", eval_metric="log_loss"),
        make(subsample=0.5),
        MultiBoostClassifier(n_estimators=3, validation_fraction=0.25),
        REBELClassifier(n_estimators=3, weak_learner="similarity", validation_fraction=0.25),
    ],
    ids=["plain", "early stopping", "class weights", "drawn", "corrective", "similarities"],
)
def test_held_out_rows_equal_an_eval_set(model, rows, assert_same_model):
    X, y = rows
    w = np.ones(len(y))
    if model.class_weight == "balanced":
        w = (len(y) / (3 * np.bincount(y)))[y]
    judged = uniforms_of(X.astype(np.uint8)) >= 0.75
    assert 100 < judged.sum() < 200
    found = model.fit(X, y)
    other = type(model)(**{**model.get_params(), "validation_fraction": None, "class_weight": None})
    other.fit(X[~judged], y[~judged], w[~judged], eval_set={"validation": (X[judged], y[judged], w[judged])})
    if model.class_weight is None:
        assert_same_model(found, other)
        assert found.calibration_ == other.calibration_
    assert list(found.eval_history_) == ["validation"]
    for name, values in other.eval_history_["validation"].items():
        np.testing.assert_allclose(found.eval_history_["validation"][name], values, rtol=1e-9)
    assert found.outcome_ == other.outcome_
    assert found.best_iteration_ == other.best_iteration_


def test_one_model_on_any_runtime(rows, clients, tmp_path, monkeypatch):
    X, y = rows
    expected = make().fit(X, y).digest()
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 40)
    assert make().fit(X, y).digest() == expected
    urls = [str(tmp_path / name) for name in "xy"]
    for url, array in zip(urls, (X, y), strict=True):
        zarr.create_array(url, data=array, chunks=(64, *array.shape[1:]))
    model = make()
    model.client = clients[3]
    assert model.fit(*urls).digest() == expected
    distboost.bin(*urls, tmp_path / "binned")
    assert make().fit(tmp_path / "binned").digest() == expected


def test_streamed(rows, monkeypatch):
    X, y = (np.concatenate([part] * 5) for part in rows)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 37)
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(memory_plan.MemoryPlan, "for_ingest", None)
    monkeypatch.setattr(RawDataset, "least_ingest", lambda *arguments: 0)
    near = make(max_bins=16).fit(X, y)
    histograms, sums = (part.n_bytes for part in near.memory_plan_.parts[1:3])
    task = memory_plan.Task(algorithm_of(near, 3), growth_limits(near), len(X), 5, 16, 8, False, n_rounds=8)
    far = make(max_bins=16, memory_limit=int(histograms + sums + 2 * task.streamed_block_bytes)).fit(X, y)
    assert far.memory_plan_.streamed > 2000
    assert far.digest() == near.digest()


def test_a_row_of_weight_two_is_two_rows(rows, assert_same_model):
    X, y = rows
    w = np.random.default_rng(0).integers(0, 4, len(y))
    weighted, repeated = make().fit(X, y, w), make().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_same_model(weighted, repeated)
    assert weighted.calibration_ == repeated.calibration_
    np.testing.assert_array_equal(weighted.eval_error_, repeated.eval_error_)


def test_resumed(rows, tmp_path):
    X, y = rows
    whole = make().fit(X, y)
    model = make(n_estimators=3, checkpoint=tmp_path / "c").fit(X, y)
    assert distboost.load(tmp_path / "c").validation_fraction == 0.25
    assert make(checkpoint=tmp_path / "c").fit(X, y, resume=True).digest() == whole.digest()
    for other in (0.2, None):
        with pytest.raises(DataError, match=rf"validation_fraction=0\.25, not {other}"):
            model.set_params(validation_fraction=other).fit(X, y, resume=True)


def test_all_classes_are_learned(rows):
    X, y = rows
    bins, labels = X.astype(np.uint8), y.astype(np.int32)
    alone = np.flatnonzero(uniforms_of(bins) >= 0.75)[0]
    labels[alone] = 3  # the only row of its class
    part = BinnedSet(lambda: BinnedRows(0, bins, labels, np.ones(len(y))), [()], [len(y)])
    work = LocalRuntime(1)
    try:
        learn, judge = held_out(part, 0.25, 4, work)
    finally:
        work.close()
    assert 3 in learn.function(*learn.calls[0]).labels
    assert 3 not in judge.function(*judge.calls[0]).labels
    assert sum(learn.sizes) + sum(judge.sizes) == len(y)
    y = labels.astype(int)
    assert np.isfinite(make().fit(X, y).predict_proba(X)).all()


def test_no_row_is_left_out():
    X, y = np.repeat(np.arange(2.0), 20)[:, None], np.repeat(np.arange(2), 20)
    with pytest.raises(DataError, match=r"validation_fraction=0\.01 leaves out none of 40 rows.*larger"):
        make(validation_fraction=0.01).fit(X, y)
    with pytest.raises(DataError, match=r"validation_fraction=0\.99 leaves out none of 40 rows.*smaller"):
        make(validation_fraction=0.99).fit(X, y)


def test_a_committee_learns_from_all_labels(rows):
    with pytest.raises(DataError, match="a committee learns from all labels"):
        QueryByCommittee(make(), rows[0])
