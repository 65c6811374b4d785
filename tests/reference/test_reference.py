"""The reference beside distboost, on rows of so few values that distboost's thresholds are all there are."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import distboost
from distboost import baselines
from tests.reference.__main__ import SYSTEMS, main
from tests.reference.trees import Table

ROUNDS = 6
STUMPS, TREES = {"max_depth": 1}, {"max_depth": 2}
MODELS = {
    "one-vs-all": baselines.OneVsAllAdaBoostClassifier(**STUMPS),
    "adaboost-mh": baselines.AdaBoostMHClassifier(**STUMPS),
    "cd-mcboost": distboost.CDMCBoostClassifier(**STUMPS),
    "adaboost-m1": baselines.AdaBoostM1Classifier(**TREES),
    "samme": baselines.SAMMEClassifier(**TREES),
    "adaboost-mm": distboost.AdaBoostMMClassifier(**TREES),
    "adaboost-mm-edge": distboost.AdaBoostMMClassifier(strategy="fixed", edge=0.1, **TREES),
    "gd-mcboost-codeword": distboost.GDMCBoostClassifier(leaf="codeword", **TREES),
    "gd-mcboost-direction": distboost.GDMCBoostClassifier(leaf="direction", **TREES),
    "gamble": distboost.GAMBLEClassifier(max_depth=None, max_leaf_nodes=15),
    "rebel": distboost.REBELClassifier(**STUMPS),
    "stagewise": distboost.StagewiseBoostClassifier(learning_rate=0.5, nu=1e-9),
    "samme-stumps": baselines.SAMMEClassifier(**STUMPS),
}


def drawn(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_classes)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 300)])
    return np.round(np.eye(n_classes, 5)[y] + 0.5 * rng.normal(size=(len(y), 5)), 1), y


@pytest.mark.parametrize("n_classes", [3, 7])
@pytest.mark.parametrize("name", SYSTEMS)
def test_scores_are_those_of_distboost(name, n_classes):
    X, y = drawn(n_classes)
    n = 200
    model = MODELS[name].set_params(n_estimators=ROUNDS, calibration=None, n_jobs=1).fit(X[:n], y[:n])
    expected = list(islice(SYSTEMS[name].scores(Table(X[:n], X[n:]), y[:n], n_classes), ROUNDS))
    assert model.n_iter_ == len(expected) == (0 if (name, n_classes) == ("adaboost-m1", 7) else ROUNDS)
    for ours, reference in zip(model.staged_scores(X), expected, strict=True):
        tolerance = 1e-7 if name == "stagewise" else 1e-9  # its coefficients are the end of an iteration
        assert_allclose(ours, reference, rtol=tolerance, atol=tolerance)


def test_reference_imports_nothing_of_distboost():
    files = [file for file in Path(__file__).parent.glob("*.py") if file != Path(__file__)]
    assert len(files) == 7
    assert not [
        file.name
        for file in files
        if any(f"{word} distboost" in file.read_text() for word in ("import", "from"))
    ]


def test_command_prints_the_test_error():
    result = CliRunner().invoke(main, ["--system", "rebel", "--data", "iris", "--rounds", "2"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("rebel, iris, 2 rounds, last: ")
