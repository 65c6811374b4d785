"""Trees are the same if threads share the nodes of a level."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost import AdaBoostMMClassifier, GDMCBoostClassifier
from distboost.runtime import tally as tally_module
from distboost.runtime.tally import Tally


@pytest.fixture
def shared_levels(monkeypatch):
    """Let threads share the nodes of all levels that have several. The fixture is the list of their numbers of nodes."""
    monkeypatch.setattr(tally_module, "ENTRIES_PER_THREAD", 1)
    monkeypatch.setattr(tally_module, "NODES_PER_THREAD", 1)
    levels = []
    add_by_node = Tally._add_by_node

    def noted(self, *arguments):
        levels.append(len(self._nodes))
        add_by_node(self, *arguments)

    monkeypatch.setattr(Tally, "_add_by_node", noted)
    return levels


@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        GDMCBoostClassifier(calibration=None, n_estimators=4, max_depth=5),
        GDMCBoostClassifier(calibration=None, n_estimators=4, max_depth=5, categorical_features=[1]),
        GDMCBoostClassifier(calibration=None, n_estimators=4, max_depth=5, subsample=0.7, sampling="weight"),
        AdaBoostMMClassifier(calibration=None, n_estimators=4, max_depth=4),
    ],
    ids=["plain", "categorical", "sampled", "wide"],
)
def test_threads_share_the_nodes_of_a_level(model, n_threads, blobs, shared_levels):
    X, y = blobs
    X = np.column_stack([X[:, 0], np.digitize(X[:, 1], [-1, 0, 1, 2]), X[:, 2:]])
    weights = np.arange(1, len(y) + 1) % 4
    alone = model.set_params(n_jobs=1).fit(X, y, weights).scores(X)
    assert not shared_levels
    assert_array_equal(model.set_params(n_jobs=n_threads).fit(X, y, weights).scores(X), alone)
    assert max(shared_levels) >= 4
