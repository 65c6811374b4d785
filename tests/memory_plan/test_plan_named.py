"""The limit that an error names suffices, whatever is refused: the arrays, the rows, the process that leads."""

from __future__ import annotations

import numpy as np
import pytest
import zarr
from dask.utils import parse_bytes
from hypothesis import given
from hypothesis import strategies as st

import distboost
from distboost import registry
from distboost.errors import LimitError
from distboost.estimators.factory import estimator
from distboost.estimators.parameters import algorithm_of
from distboost.training import memory_plan, staging
from distboost.training.training import Training
from distboost.trees.grower import GrowthLimits
from tests.memory_plan.plans import named

N = 20_000
LEARNERS = [*((name, {}) for name in registry.ALGORITHMS), ("rebel", {"weak_learner": "similarity"})]


class PlannedError(Exception):
    """Raised in place of the rounds."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """stored(K): paths of an array of features, of one with labels of K classes, and of their binned store."""
    found = {}

    def made(n_classes):
        if n_classes not in found:
            folder = tmp_path_factory.mktemp("rows")
            x, y = str(folder / "x"), str(folder / "y")
            X = np.random.default_rng(0).integers(0, 90, (N, 12)).astype("f4")
            zarr.create_array(x, data=X, chunks=(N, 4))
            zarr.create_array(y, data=np.arange(N) % n_classes, chunks=(N // 2,))
            found[n_classes] = x, y, distboost.bin(x, y, str(folder / "bins"), keep_values=True)
        return found[n_classes]

    return made


@pytest.mark.parametrize(("name", "parameters"), LEARNERS, ids=str)
def test_a_limit_is_refused_once(name, parameters, stored, monkeypatch):
    """From arrays whose labels nobody has read yet, from a binned store, with evaluation rows, for few and many threads."""
    n_classes = 10 if name == "adaboost-mo" else 26  # its trees are 2^(K - 1) - 1 in each round
    x, y, store = stored(n_classes)
    monkeypatch.setattr(Training, "run", _raise)
    weights = np.linspace(0.1, 3, N)
    for rows, n_jobs in (((x, y), 4), ((x, y, weights, (x, y)), 1), ((store,), 2)):
        model = estimator(name)(n_estimators=2, memory_limit="300MB", n_jobs=n_jobs, **parameters)
        with pytest.raises(LimitError) as refused:
            model.fit(*rows)
        with pytest.raises(PlannedError):
            model.set_params(memory_limit=named(refused)).fit(*rows)


def _raise(*_):
    raise PlannedError


@pytest.mark.parametrize("learner", ["tree", "similarity"])
def test_a_training_ends_within_the_limit_that_was_named(learner, stored):
    """Its second training, for probabilities, too."""
    x, y, _ = stored(10)
    model = distboost.REBELClassifier(n_estimators=2, weak_learner=learner)
    with pytest.raises(LimitError) as refused:
        model.set_params(memory_limit="300MB").fit(x, y)
    model.set_params(memory_limit=named(refused)).fit(x, y)
    assert model.calibration_ is not None


def test_workers_have_a_limit_that_was_named(stored, clients):
    x, y, _ = stored(26)
    model = distboost.GDMCBoostClassifier(n_estimators=2, max_depth=6)
    model.client = clients[2]
    with pytest.raises(LimitError) as refused:
        model.set_params(memory_limit="200MB").fit(x, y)
    model.set_params(memory_limit=named(refused)).fit(x, y)
    assert model.memory_plan_.leader_bytes <= model.memory_plan_.limit


@given(
    learner=st.sampled_from([learner for learner in LEARNERS if learner[0] != "adaboost-mo"]),
    n_rows=st.integers(2, 10**6),
    n_features=st.integers(1, 300),
    n_classes=st.integers(2, 60),
    depth=st.integers(1, 9),
    weighted=st.booleans(),
    processes=st.integers(1, 12),
    threads=st.integers(1, 8),
    few_bins=st.integers(2, 255),
    fewer=st.floats(0.1, 1),
)
def test_the_limit_suffices_for_all_plans_that_follow(
    learner, n_rows, n_features, n_classes, depth, weighted, processes, threads, few_bins, fewer
):
    """Those for 2 classes, for the bins that are found, and for a part of the rows."""
    where = {"n_processes": processes, "n_threads": threads, "on_cluster": processes > 1}
    model = estimator(learner[0])(**learner[1])

    def planned(limit, n_classes=n_classes, n_rows=n_rows, n_bins=None):
        task = memory_plan.Task(
            algorithm_of(model, n_classes),
            GrowthLimits(max_depth=depth),
            n_rows,
            n_features,
            255,
            8,
            weighted,
            n_bins,
        )
        return memory_plan.plan_memory(task, limit, **where, leader_limit=limit)

    with pytest.raises(LimitError) as refused:
        planned(10**6)
    enough, n_bins = parse_bytes(named(refused)), n_features * (min(few_bins, n_rows) + 1)
    part = max(int(fewer * n_rows), 2)
    for found in (
        planned(enough, 2),
        planned(enough),
        planned(enough, n_bins=n_bins),
        planned(enough, n_rows=part, n_bins=n_bins),
    ):
        assert found.n_bytes <= enough
        assert found.leader_bytes <= enough


def test_labels_that_do_not_fit_into_the_limit_are_not_counted(stored, monkeypatch):
    x, y, _ = stored(26)
    monkeypatch.setattr(staging, "COUNTING_BYTES", 0)
    with pytest.raises(LimitError, match=r"at least 2 classes take [\d,]+ MB or more.* to that or more,"):
        distboost.GDMCBoostClassifier(memory_limit="10MB").fit(x, y)


def test_workers_that_spill_early_are_told_what_they_need():
    """To raise memory_limit would not help."""
    task = memory_plan.Task(
        algorithm_of(distboost.GDMCBoostClassifier(), 3), GrowthLimits(max_depth=2), 10**4, 9, 255, 8
    )

    def planned(limit, leader_limit):
        return memory_plan.plan_memory(task, limit, 2, 1, on_cluster=True, leader_limit=leader_limit)

    for leader_limit in (None, 10**9):
        with pytest.raises(LimitError, match=r"Dask worker may use 200 MB.*Start workers") as refused:
            planned(2 * 10**8, leader_limit)
        assert planned(parse_bytes(named(refused)), leader_limit).streamed == 0
    with pytest.raises(
        LimitError, match="memory_limit is 350 MB per process, but the process that calls fit"
    ):
        planned(3 * 10**8, 35 * 10**7)


def test_a_limit_is_read_as_it_is_named():
    assert memory_plan.parse_limit("1,330 MB") == 1_330_000_000
    with pytest.raises(LimitError, match="1,5GB"):
        memory_plan.parse_limit("1,5GB")
