"""The client of a cluster loads its kernels while workers start. If they are not those that it needs later, nothing is gained."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from numba import typeof

import distboost
from distboost import AdaBoostMMClassifier, GDMCBoostClassifier
from distboost.data import edges
from distboost.data.edges import load_merge
from distboost.estimators import fitting
from distboost.kernels import binning, gains
from distboost.runtime.choose import IN_PROCESS, _background
from distboost.splits import tree_histograms as search
from distboost.splits.tree_histograms import load_search
from distboost.training import binning as bin_module

DEADLINE = 20.0


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows of features of many values, of few, and of many whole numbers."""
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=400), rng.integers(0, 3, 400), rng.integers(0, 99, 400)]
    return np.column_stack(columns), rng.integers(0, 3, 400)


def in_process(model):
    model.client = IN_PROCESS
    return model


@pytest.fixture
def called(monkeypatch):
    """called[kernel]: the types of the arguments that it was called with."""
    found: dict[str, set] = {}

    def recorded(name, kernel):
        def call(*arguments):
            found.setdefault(name, set()).add(tuple(map(typeof, arguments)))
            return kernel(*arguments)

        return call

    # The scan's view of the module is replaced, not the module: a kernel that is compiled now calls others of it.
    names = ("merge_distinct", "count_whole", "add_up_equal", "quantile_edges")
    view = {name: recorded(name, getattr(binning, name)) for name in names}
    monkeypatch.setattr(edges, "binning", SimpleNamespace(**view))
    by = search.best_splits_by
    monkeypatch.setattr(search, "best_splits_by", lambda gain: recorded(f"search by {gain!r}", by(gain)))
    return found


def test_the_kernels_that_are_loaded_are_those_of_a_training(called):
    load_merge()
    load_search(gains.DIRECTION)
    loaded = {name: types.copy() for name, types in called.items()}
    assert len(loaded) == 5
    in_process(GDMCBoostClassifier(calibration=None, n_estimators=2, max_depth=2, max_bins=20, n_jobs=1)).fit(
        *rows()
    )
    assert called == loaded


@pytest.fixture
def loads(monkeypatch):
    """What was loaded in which thread: "merge", or a gain."""
    found: list[tuple[object, str]] = []

    def load(what: object = "merge") -> None:
        found.append((what, threading.current_thread().name))

    for module in (fitting, bin_module):
        monkeypatch.setattr(module, "load_merge", load)
    monkeypatch.setattr(fitting, "load_search", load)
    return found


def test_a_client_loads_kernels_in_advance(loads, clients, tmp_path):
    X, y = rows()
    store = distboost.bin(X, y, str(tmp_path / "store"), client=clients[2])
    model = AdaBoostMMClassifier(calibration=None, n_estimators=1)
    model.client = clients[2]
    model.fit(X, y)
    model.fit(store)
    expected = ["merge", "merge", gains.CODEWORD, gains.CODEWORD]  # a store has bins already
    assert [what for what, _ in loads] == expected
    assert all(name.startswith("distboost-load") for _, name in loads)


def test_one_process_loads_nothing_in_advance(loads):
    in_process(AdaBoostMMClassifier(calibration=None, n_estimators=1)).fit(*rows())
    assert loads == []


def test_nothing_waits_for_what_is_not_needed_any_more():
    begun, may_end, done = threading.Event(), threading.Event(), []

    def first() -> None:
        begun.set()
        may_end.wait(DEADLINE)
        done.append("first")
        raise ValueError("is raised where the kernel is needed, too")

    with _background([first, lambda: done.append("second")]):
        assert begun.wait(DEADLINE)
    assert done == []
    may_end.set()
    thread = next(t for t in threading.enumerate() if t.name.startswith("distboost-load"))
    thread.join(DEADLINE)
    assert done == ["first"]
