"""`distboost active simulate`: learning curves where the labels are known."""

from __future__ import annotations

import json

import numpy as np
import pytest

import distboost
from distboost.active import LearningCurve, learning_curves
from distboost.active.curve import Point
from distboost.cli.show_active import print_curves
from tests.active.commands import fail, run, simulate


def test_simulate(data, tmp_path, blobs):
    X, y = blobs
    files = ("--json", tmp_path / "curves.json", "--plot", tmp_path / "curve.svg")
    pytest.importorskip("matplotlib")
    output = run(
        *simulate(
            data,
            "--repeats",
            2,
            "--max-labels",
            24,
            "--target-error",
            0.2,
            "--strategies",
            "margin,entropy",
            *files,
        )
    )
    estimator = distboost.GAMBLEClassifier(n_estimators=6, max_leaf_nodes=3)
    expected = learning_curves(estimator, X[:160], y[:160], (X[160:], y[160:]), n_initial=12, batch_size=4, audit=0.1,
                               strategies=("margin", "entropy"), n_repeats=2, max_labels=24, target_error=0.2)  # fmt: skip
    found = json.loads((tmp_path / "curves.json").read_text())
    assert list(found) == ["margin", "entropy", "settings", "versions"]
    assert [curve["seed"] for curve in found["entropy"]] == [0, 1]
    assert (found["settings"]["batch_size"], found["settings"]["max_labels"]) == (4, 24)
    assert found["settings"]["parameters"]["max_leaf_nodes"] == 3
    assert found["settings"]["x"] == str(data / "x")
    assert found["versions"]["distboost"] == distboost.__version__
    for strategy, repeats in expected.items():
        for curve, known in zip(found[strategy], repeats, strict=True):
            assert curve["n_labelled"] == known.n_labelled.tolist()
            assert curve["error"] == known.error.tolist()
            assert curve["outcome"] == known.outcome
        reached = sum(curve.labels_to(0.2) is not None for curve in repeats)
        mean = np.mean([100 * curve.error[-1] for curve in repeats])
        [row] = [line for line in output.splitlines() if strategy in line]
        assert f"{mean:.2f} ±" in row
        assert f"{reached} of 2" in row
    assert "</svg>" in (tmp_path / "curve.svg").read_text()


def test_in_several_processes(data, tmp_path):
    """The curves are the same."""
    found = []
    for jobs in (1, 2):
        path = tmp_path / f"{jobs}.json"
        options = ("--repeats", 2, "--max-labels", 20, "--json", path, "--jobs", jobs, "--random-state", 3)
        run(*simulate(data, *options))
        found.append(json.loads(path.read_text()))
        for curve in (*found[-1]["margin"], *found[-1]["random"]):
            assert len(curve.pop("seconds")) == 3
    assert found[0] == found[1]
    assert [curve["seed"] for curve in found[0]["margin"]] == [3, 4]


def test_an_error_of_another_process(data):
    assert "160" in fail(*simulate(data, "--n-initial", "161", "--jobs", 2))


def test_runs_that_miss_the_target_count_with_all_of_their_labels(capsys):
    good = LearningCurve("margin", [Point(10, 0.5, 1.0), Point(20, 0.1, 1.0)])
    bad = LearningCurve("margin", [Point(10, 0.5, 1.0), Point(40, 0.3, 1.0)])
    print_curves({"margin": [good, bad]}, target_error=0.2)
    assert "1 of 2" in (shown := capsys.readouterr().out)
    assert "≥ 30" in shown
    print_curves({"margin": [good, good]}, target_error=0.2)
    assert "20 ± 0" in capsys.readouterr().out


@pytest.mark.parametrize(("option", "name"), [("--json", "curves.json"), ("--plot", "curve.svg")])
def test_curves_that_are_there_are_not_replaced(data, tmp_path, option, name):
    """Which is seen before anything is measured."""
    (tmp_path / name).write_text("an earlier one")
    short = simulate(data, "--repeats", 1, "--max-labels", 16, option, tmp_path / name)
    if option == "--plot":
        pytest.importorskip("matplotlib")
    assert f"there is a file at {tmp_path / name} already" in fail(*short)
    assert (tmp_path / name).read_text() == "an earlier one"
    run(*short, "--overwrite")
    assert (tmp_path / name).read_text() != "an earlier one"


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (("--strategies", "margin,best"), "'best'", 2),
        (("--strategies", "margin,margin"), "'margin'", 2),
        (("--plot", "curve.txt"), "curve.txt", 2),
        (("--json", "/none/curves.json"), "/none", 1),
        (("--set", "n_estimators=0"), "n_estimators", 1),
        (("--target-error", "5"), "fraction", 1),
        (("--n-initial", "161"), "160", 1),
        (("--pool-fraction", "0"), "--pool-fraction", 1),
        (("--random-state", "-1"), "--random-state", 1),
        (("--workers", "1", "--scheduler", "tcp://127.0.0.1:9"), "exclude", 1),
        (("--workers", "1", "--jobs", "2"), "--jobs", 1),
    ],
)
def test_simulations_that_cannot_be_right(data, options, message, code):
    assert message in fail(*simulate(data, *options), code=code)
