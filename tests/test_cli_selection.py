"""The commands `cross-validate` and `search`: the results of the functions, as tables and as JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import distboost
from distboost.cli import main
from distboost.selection import search as searching
from tests.test_cli import fail, run

GD = ("--algorithm", "gd-mcboost", "--set", "n_estimators=4", "--folds", 3)


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    """A folder with arrays, and a binned store of them."""
    X, y = map(np.asarray, blobs)
    folder = tmp_path_factory.mktemp("data")
    arrays = {"x": X, "y": y, "weights": 1 + np.arange(len(y)) % 3, "groups": np.arange(len(y)) // 8}
    for name, values in arrays.items():
        zarr.create_array(str(folder / name), data=values, chunks=(50, *values.shape[1:]))
    distboost.bin(f"{folder}/x", f"{folder}/y", f"{folder}/store")
    return folder


@pytest.fixture
def make():
    return distboost.GDMCBoostClassifier(n_estimators=4)


def said(*arguments):
    """What a command that succeeds prints to stdout, and to stderr."""
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def wrong_usage(*arguments):
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


def without_times(found):
    return {name: values for name, values in found.items() if "time" not in name}


def test_cross_validation_is_that_of_the_function(data, make):
    rows = (
        "--x",
        data / "x",
        "--y",
        data / "y",
        "--sample-weight",
        data / "weights",
        "--groups",
        data / "groups",
    )
    options = (*GD, *rows, "--metrics", "f1_macro, log_loss", "--random-state", 2, "--curves")
    stdout, stderr = said("cross-validate", *options, "--json")
    expected = distboost.cross_validate(
        make, f"{data}/x", f"{data}/y", 3, ["f1_macro", "log_loss"], groups=f"{data}/groups",
        sample_weight=f"{data}/weights", random_state=2, return_curves=True
    )  # fmt: skip
    found = json.loads(stdout)
    assert without_times(found) == without_times(json.loads(expected.to_json()))
    assert found["test_f1_macro"] == expected["test_f1_macro"].tolist()
    assert np.shape(found["curve_error"]) == (3, 4)
    assert "cross-validation: 3/3 f1_macro" in stderr


def test_cross_validation_as_a_table(data, make):
    stdout, _ = said("cross-validate", *GD, "--x", data / "store", "--curves", "--memory-limit", "2GB")
    found = distboost.cross_validate(make, f"{data}/store", folds=3, return_curves=True)
    lines = [line.replace("│", " ").split() for line in stdout.splitlines()]
    for fold, (accuracy, loss) in enumerate(zip(found["test_accuracy"], found["test_log_loss"], strict=True)):
        assert [str(fold), f"{accuracy:.4f}", f"{loss:.4f}", "4"] in [cells[:4] for cells in lines]
    assert ["mean", f"{found['test_accuracy'].mean():.4f}", f"{found['test_log_loss'].mean():.4f}"] in lines
    errors = found["curve_error"].mean(axis=0)
    assert f"least mean error {errors.min():.4f} after round {errors.argmin() + 1} of 4" in stdout


def test_a_search_is_that_of_the_function(data, make, tmp_path):
    path = tmp_path / "best.dboost"
    space = ("--space", "max_depth=1,3", "--space", "leaf=direction,codeword")
    options = (*GD, "--x", data / "x", "--y", data / "y", *space, "--scoring", "neg_log_loss")
    stdout, stderr = said("search", *options, "--json", "--model", path)
    expected = distboost.search(
        make,
        {"max_depth": [1, 3], "leaf": ["direction", "codeword"]},
        f"{data}/x",
        f"{data}/y",
        3,
        "neg_log_loss",
    )
    found, theirs = json.loads(stdout), json.loads(expected.to_json())
    assert without_times(found.pop("cv_results")) == without_times(theirs.pop("cv_results"))
    assert without_times(found) == without_times(theirs)
    assert distboost.load(path).digest() == expected.best_estimator_.digest() in stderr
    assert "search: 12/12 " in stderr
    assert f"there is a file at {path} already" in fail("search", *options, "--model", path)
    run("search", *options, "--model", path, "--overwrite")


def test_a_search_as_a_table(data):
    stdout, _ = said(
        "search", *GD, "--x", data / "store", "--space", '{"max_depth": [1, 2, 3]}', "--halving", 2
    )
    rows = [line.replace("│", " ").split() for line in stdout.splitlines()]
    ranks = [row for row in rows if row and row[0] in ("1", "2", "3")]
    assert [row[4] for row in ranks] == ["4", "4", "2"]  # rounds
    assert rows[-1] == ["best:", "--set", f"max_depth={ranks[0][1]}"]


def test_of_many_settings_the_best_are_printed(data):
    few = ("--algorithm", "gd-mcboost", "--set", "n_estimators=1", "--folds", 2, "--x", data / "store")
    values = ",".join(str(0.01 * n) for n in range(1, 23))
    stdout, _ = said("search", *few, "--space", f"learning_rate={values}")
    assert "The best 20 of 22 settings; --json prints all." in stdout
    stdout, _ = said("search", *few, "--space", f"learning_rate={values}", "--n-iter", 3)
    assert "settings; --json" not in stdout


def test_a_search_continues_from_its_checkpoint(data, tmp_path, monkeypatch):
    options = (
        "search",
        *GD,
        "--x",
        data / "store",
        "--space",
        "max_depth=1,2",
        "--checkpoint",
        tmp_path / "kept",
        "--json",
    )
    first, _ = said(*options)
    monkeypatch.setattr(searching, "tried", None)  # nothing is trained again
    again, _ = said(*options)
    assert json.loads(again) == json.loads(first)


def test_on_new_workers(data, make):
    options = (*GD, "--x", data / "store", "--space", "max_depth=1,2", "--json")
    near, _ = said("search", *options)
    far, _ = said("search", *options, "--workers", 1)
    assert without_times(json.loads(far)["cv_results"]) == without_times(json.loads(near)["cv_results"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--space", "max_depth"), "--space 'max_depth' is not of the form NAME=A,B,..."),
        (("--space", "max_depth=1", "--space", "max_depth=2"), "--space gives max_depth twice"),
        (("--space", '{"max_depth": [1]}', "--space", "l2=1"), "--space is given as JSON and again"),
        (("--space", '{"max_depth": [1'), "--space begins as JSON, but is none"),
        (("--space", '[{"max_depth": 1}]'), "--space has a part that is no JSON object of lists"),
        (("--space", "l2=1", "--memory-limit", "2GB", "--set", "memory_limit=1GB"), "is given twice"),
    ],
)
def test_wrong_options(options, message, data):
    assert message in wrong_usage("search", *GD, "--x", data / "store", *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--space", "depth=1,2"), "unknown parameter 'depth' in --space. Valid are: calibration,"),
        (("--space", "max_depth=0,1"), "--set max_depth of gd-mcboost must be"),
        (
            ("--space", "early_stopping_rounds=3"),
            "--set early_stopping_rounds=3, but the only other rows are",
        ),
        (("--space", "max_bins=9"), "was made with --set max_bins=255, not 9"),
        (("--space", "l2=1", "--scoring", "log_loss"), "scoring is 'log_loss', expected one of accuracy,"),
    ],
)
def test_settings_that_cannot_be_tried(options, message, data):
    assert message in fail("search", *GD, "--x", data / "store", *options)


def test_rounds_that_depend_on_all_rounds_are_not_halved(data):
    votes = (
        "--set",
        "strategy=os-zero-one",
        "--set",
        "edge=0.1",
        "--space",
        "max_depth=1,2,3",
        "--halving",
        2,
    )
    error = fail("search", "--algorithm", "adaboost-mm", "--x", data / "store", *votes)
    assert "depends on the number of all rounds. Leave --halving out." in error


def test_values_of_a_space():
    from distboost.cli.selection import _space

    assert _space(("leaf=direction,codeword", "max_depth=2,null", 'class_weight=[null, {"a": 2}]')) == [
        {"leaf": ["direction", "codeword"], "max_depth": [2, None], "class_weight": [None, {"a": 2}]}
    ]
    assert _space(('[{"max_depth": [1]}, {"l2": [0.5]}]',)) == [{"max_depth": [1]}, {"l2": [0.5]}]
