"""`training_record_`: what a call of fit took, which no model file holds."""

from __future__ import annotations

import pickle
import time

import pytest

import distboost
from distboost import GDMCBoostClassifier
from distboost.rows.messages import Rows
from distboost.runtime.base import peak_bytes


def make(**parameters):
    return GDMCBoostClassifier(**{"n_estimators": 4, "max_depth": 2, "calibration": None, **parameters})


def test_what_a_fit_took(blobs):
    began = time.perf_counter()
    model = make(callbacks=[lambda progress: time.sleep(0.02)]).fit(*blobs)
    passed = time.perf_counter() - began
    found = model.training_record_
    assert found.runtime == model.runtime_
    assert found.n_rounds == 4
    assert 4 * 0.02 < found.round_seconds <= found.seconds <= passed
    assert found.rounds_per_second == pytest.approx(4 / found.round_seconds)
    assert 50e6 < found.peak_bytes <= peak_bytes()
    assert (found.worker_peak_bytes, found.workers_lost) == ((), 0)
    model.callbacks = None
    assert pickle.loads(pickle.dumps(model)).training_record_ == found


def test_a_resumed_training_counts_its_own_rounds(blobs):
    model = make().fit(*blobs).set_params(n_estimators=7).fit(*blobs, resume=True)
    assert model.training_record_.n_rounds == 3


def test_on_a_cluster(blobs, clients):
    model = make()
    model.client = clients[2]
    found = model.fit(*blobs).training_record_
    assert len(found.worker_peak_bytes) == 2
    assert min(found.worker_peak_bytes) > 50e6
    assert found.workers_lost == 0


def test_lost_workers_are_counted(blobs, monkeypatch):
    monkeypatch.setattr(Rows, "workers_lost", 3)
    assert make().fit(*blobs).training_record_.workers_lost == 3


def test_a_model_file_holds_no_record(blobs, tmp_path):
    model = make().fit(*blobs)
    model.save(tmp_path / "m")
    again = distboost.load(tmp_path / "m")
    assert not hasattr(again, "training_record_")
    assert again.digest() == model.digest() == make().fit(*blobs).digest()
