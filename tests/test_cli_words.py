"""Errors and warnings of commands speak of options, not of Python's parameters and calls."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import click
import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import distboost
from distboost import errors
from distboost.cli import main
from distboost.cli.help import parameters_of
from distboost.cli.words import OPTIONS, in_options
from distboost.errors import DataError, StoreError
from distboost.registry import ALGORITHMS, estimator_names
from tests.failing import error_of

PACKAGE = Path(distboost.__file__).parent
PARAMETERS = {parameter.name for name in ALGORITHMS for parameter in parameters_of(name)}
NAMES = {name for name in PARAMETERS | OPTIONS.keys() if "_" in name and " " not in name}
CLASSES = set(estimator_names(ALGORITHMS))
# What a command line does not have: `--set NAME`, values and quotations apart.
PYTHON = re.compile(
    rf"(?<!--set )(?<![\w/.'\"-])({'|'.join(sorted(NAMES))})\b(?!\.)"
    rf"|(?<!--set )(?<![\w-])({'|'.join(sorted(PARAMETERS))})=(?!=)"
    rf"|\b({'|'.join(CLASSES)})\b|\bfit\(|resume=|(?<![\w/.'\"\[(-])[Xy](?=[ :])"
)
# Python's own: no command reaches these messages, or they are about the user's Python code.
NOT_REACHED = {"plot", "export"}
NEVER_SAID = ("Persist with allow_other_workers", "The scores, (n", "The numbers of the tree")


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stderr


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    """A folder of arrays, of stores, and of a model."""
    folder = tmp_path_factory.mktemp("data")
    X, y = map(np.asarray, blobs)
    arrays = {
        "x": X, "y": y, "short": y[:7], "wide": np.ones((240, 9)), "flat": X[:, 0], "negative": np.full(240, -1.0),
        "one": np.ones(240, int), "infinite": np.where(np.isnan(X), np.inf, X),
    }  # fmt: skip
    for name, values in arrays.items():
        zarr.create_array(str(folder / name), data=values, chunks=(60, *values.shape[1:]))
    distboost.bin(X, y, str(folder / "store"), max_bins=64)
    distboost.bin(X + 0.5, y, str(folder / "other"))
    model = distboost.GDMCBoostClassifier(n_estimators=2, calibration=None).fit(X, y)
    model.save(folder / "model")
    return folder


def test_options_exist():
    def options(command):
        yield from (name for option in command.params for name in option.opts)
        for inner in getattr(command, "commands", {}).values():
            yield from options(inner)

    assert set(OPTIONS.values()) <= set(options(main))


TRAIN = ("train", "--algorithm", "gd-mcboost", "--model", "{tmp}/m", "--x", "{data}/x", "--y", "{data}/y")
BIN = ("bin", "--out", "{tmp}/s", "--x", "{data}/x", "--y", "{data}/y")
STORE = ("train", "--algorithm", "gd-mcboost", "--model", "{tmp}/m", "--x", "{data}/store")
EVALUATE = ("evaluate", "--model", "{data}/model", "--x", "{data}/x", "--y", "{data}/y")
PREDICT = ("predict", "--model", "{data}/model", "--out", "{tmp}/p", "--x", "{data}/x")
ERRORS = {
    (*TRAIN, "--x", "{data}/none"): "--x: there is no zarr array at",
    (*TRAIN, "--y", "{data}/none"): "--y: there is no zarr array at",
    (*TRAIN, "--y", "{data}/short"): "--x (.*) has 240 rows but --y (.*) has 7",
    (*TRAIN, "--y", "{data}/one"): "--y .*has only one class",
    (*TRAIN, "--x", "{data}/flat"): "--x (.*) has shape .*expected 2 dimensions",
    (*TRAIN, "--x", "{data}/infinite"): "--x (.*) contains an infinite value",
    (*TRAIN, "--x", "{data}/store"): "--x: .* is a binned store, .*without --y and --sample-weight",
    ("train", "--algorithm", "gamble", "--model", "{tmp}/m", "--x", "{data}/x"): "Error: --y is missing",
    (*TRAIN, "--sample-weight", "{data}/negative"): "--sample-weight (.*) ",
    (*TRAIN, "--eval-x", "{data}/wide", "--eval-y", "{data}/y"): "--eval-x (.*) has 9 features",
    (*TRAIN, "--eval-x", "{data}/x", "--eval-y", "{data}/short"): "--eval-x (.*) has 240 rows but --eval-y (.*) has 7",
    (*TRAIN, "--eval-x", "{data}/x"): "--eval-x has no labels. Pass --eval-x and --eval-y",
    (*TRAIN, "--eval-x", "{data}/other"): "Bin it with --keep-values",
    (*TRAIN, "--eval", "test={data}/wide,{data}/y"): "--eval 'test' (.*) has 9 features",
    (*TRAIN, "--eval", "test={data}/none,{data}/y"): "--eval 'test': there is no zarr array",
    (*TRAIN, "--set", "max_depth=deep"): "Error: --set max_depth of gd-mcboost must be",
    (*TRAIN, "--set", "memory_limit=plenty"): "--set memory_limit is 'plenty'",
    (*TRAIN, "--set", "memory_limit=1MB"): "--set memory_limit is 1 MB",
    (*TRAIN, "--set", "early_stopping_rounds=3"): "Pass --eval-x and --eval-y, or pass --set validation_fraction=0.1",
    (*TRAIN, "--set", "sampling=weight"): "such as --set subsample=0.2",
    (*TRAIN, "--set", "leaf=newton"): "Pass --set loss='softmax'",
    (*TRAIN, "--set", "sketch=40"): "--set sketch=40",
    (*TRAIN, "--set", "class_weight={{7: 2.0}}"): "--set class_weight names",
    (*TRAIN, "--set", "checkpoint_every=often"): "--set checkpoint_every is 'often'",
    ("train", "--resume", "--model", "{tmp}/none", "--x", "{data}/x", "--y", "{data}/y"): "no",
    (*STORE, "--sample-weight", "{data}/y"): "--sample-weight cannot be combined .*: distboost bin --sample-weight",
    STORE: "was made with --set max_bins=64, not 255. Pass --set max_bins=64",
    (*BIN, "--memory-limit", "plenty"): "--memory-limit is 'plenty'",
    (*BIN, "--memory-limit", "1MB"): "--memory-limit is 1 MB",
    (*BIN, "--random-state", -1): "--random-state of bin must be",
    (*PREDICT, "--x", "{data}/wide"): "--x (.*) has shape (.*), but the model expects rows of 4 features",
    (*PREDICT, "--x", "{data}/store"): "--x: the binned store .*bin that again with --keep-values",
    (*EVALUATE, "--x", "{data}/store"): "--x: the binned store",
    (*EVALUATE, "--y", "{data}/short"): "--x (.*) has 240 rows but --y",
    (*EVALUATE, "--sample-weight", "{data}/negative"): "--sample-weight",
    ("active", "simulate", "--x", "{data}/x", "--y", "{data}/short", "--eval-x", "{data}/x", "--eval-y", "{data}/y"): "7",
    ("active", "ask", "--log", "{tmp}/l", "--out", "{tmp}/o", "--x", "{data}/x", "--pool-fraction", 2): "--pool-fraction is 2",
    ("active", "ask", "--log", "{tmp}/l", "--out", "{tmp}/o", "--x", "{data}/x", "--algorithm", "gamble",
     "--set", "early_stopping_rounds=2"):
        "--set early_stopping_rounds=2",
}  # fmt: skip


@pytest.mark.parametrize("command", ERRORS, ids=lambda command: " ".join(map(str, command[-2:])))
def test_an_error_speaks_of_options(command, data, tmp_path):
    code, said = run(*(str(word).format(data=data, tmp=tmp_path) for word in command))
    assert code == 1, said
    error = error_of(said)
    expected = ERRORS[command].replace("(.*)", r"\(.*\)").replace("{{", "{")
    assert re.search(expected, error), error
    left = PYTHON.search(error.replace(str(data), "").replace(str(tmp_path), ""))
    assert not left, (left, error)


@pytest.mark.filterwarnings("default")
def test_warnings_speak_of_options(data, tmp_path):
    zarr.create_array(str(tmp_path / "gaps"), shape=(240, 4), chunks=(60, 4), dtype="f8")
    code, said = run(*(word.format(data=data, tmp=tmp_path) for word in PREDICT), "--x", tmp_path / "gaps")
    assert code == 0, said
    assert "Warning: 4 chunks of --x (file://" in said


def test_paths_and_quotations_stay():
    assert (
        in_options("``max_depth=3``, ``memory_limit``, ``eval_set 'a' X``")
        == "--set max_depth=3, --set memory_limit, --eval 'a'"
    )
    for text in (
        "there is no array at '/data/X/max_depth/y'.",
        "/data/sample_weight is a folder",
        "file:///eval_set/X.zarr/y cannot be read",
        "the label 'X' is none of 'y', 'eval_set'",
        'the class "X" is absent',
        "Leave --set max_depth=... out",
    ):
        assert in_options(text) == text


def test_an_error_has_pythons_words_and_keeps_its_fields_in_other_processes():
    made = StoreError(
        "``scratch`` is []: no.",
        remedy="Set ``scratch=...`` or ``group|group['x']``",
        where="scratch",
        value=[],
    )
    for error in (made, pickle.loads(pickle.dumps(made))):
        assert str(error) == "scratch is []: no. Set scratch=... or group['x']"
        assert (error.what, error.remedy) == ("scratch is []: no.", "Set scratch=... or group['x']")
        assert in_options(error.remedy.marked) == "Set --set scratch=... or "
        assert error.where == "scratch"
    assert made.value == []
    assert error.value == "[]"
    assert str(error.at("on worker 3")) == "scratch is []: no (on worker 3). Set scratch=... or group['x']"
    assert str(DataError("the label '`X`' of 'eval_set y'")) == "the label '`X`' of 'eval_set y'"


REMEDY = re.compile(
    r"[.?!)] (Pass|Set|Use|Check|Train|Correct|Remove|Restore|Choose|Rename|Copy|Repeat|Decode) "
)


def test_a_remedy_is_a_field():
    """No error says in its first argument what to do."""
    left = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {*vars(errors), "kind"} and node.args:
                left += [f"{file}:{node.lineno}"] if REMEDY.search(ast.unparse(node.args[0])) else []
    assert not left, left


def messages() -> dict[str, str]:
    """The texts in the library's code that are parts of messages, with {} for values."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        folder = file.relative_to(PACKAGE).parts[0]
        if folder in {"cli", "kernels", *NOT_REACHED}:
            continue
        tree = ast.parse(file.read_text())
        skipped = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, (ast.Expr, ast.JoinedStr))
            for inner in ast.walk(node)
            if inner is not node and (isinstance(node, ast.JoinedStr) or inner is node.value)
            and not (isinstance(node, ast.Expr) and not isinstance(inner, ast.Constant))
        }  # fmt: skip
        for node in ast.walk(tree):
            if node in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                text = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if text.count(" ") > 2 and "\n" not in text:
                found[f"{file.relative_to(PACKAGE)}:{node.lineno}"] = text
    return found


def test_no_message_of_the_library_keeps_pythons_words():
    """Also those that no test provokes, and those to come; nor do they name options themselves."""
    found = messages()
    assert len(found) > 300
    with click.Context(main.commands["train"]):
        left = {place: in_options(text) for place, text in found.items() if not text.startswith(NEVER_SAID)}
    left = {place: text for place, text in left.items() if PYTHON.search(text) or "--" in found[place]}
    assert not left, left


@pytest.fixture
def stored(tmp_path):
    """The arguments for stored rows, in a group whose arrays are named as parameters are."""
    group = zarr.create_group(str(tmp_path / "d.zarr"))
    group.create_array("X", data=np.eye(20))
    group.create_array("y", data=np.arange(20) % 2)
    group.create_array("one", data=np.ones(20, int))
    return ["--x", tmp_path / "d.zarr/X", "--y", tmp_path / "d.zarr/y", "--algorithm", "gd-mcboost"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "--set", "calibration=nothing"], "--set calibration of gd-mcboost must be"),
        (["train", "--categorical", "99"], "--categorical is [99]. Expected numbers of features"),
        (["cross-validate", "--metrics", "confusion"], "--metrics has 'confusion', which is not a number"),
        (["search", "--space", "max_depth=1", "--scoring", "none"], "--scoring is 'none', expected one of"),
    ],
)
def test_the_option_that_is_wrong_is_named(words, said, stored, tmp_path):
    model = ["--model", tmp_path / "m.dboost"] if words[0] == "train" else []
    code, shown = run(*words, *stored, *model)
    assert code == 1
    assert said in " ".join(shown.split())


def test_groups_that_do_not_differ_have_a_remedy(stored, tmp_path):
    _, shown = run("cross-validate", *stored, "--groups", tmp_path / "d.zarr/one", "--folds", "2")
    assert "--groups (" in shown
    assert "Pass groups that differ." in " ".join(shown.split())


def test_the_arrays_of_a_group_keep_their_names(stored, tmp_path):
    _, shown = run("train", "--model", tmp_path / "m.dboost", *stored, "--x", tmp_path / "d.zarr")
    assert "'X' (20, 20) float64" in shown
    assert "'y' (20,) int64" in shown
    assert "group[" not in shown


def test_none_may_be_written_in_small_letters(stored, tmp_path):
    options = ["--set", "calibration=none", "--set", "n_estimators=1", "--model", tmp_path / "m.dboost"]
    assert run("train", *stored, *options)[0] == 0
    assert distboost.load(tmp_path / "m.dboost").calibration is None


def test_a_model_file_that_is_not_there_is_named_with_the_remedy(stored, tmp_path):
    code, shown = run("evaluate", *stored[:4], "--model", tmp_path / "none.dboost")
    assert code == 1
    assert "there is no model file and no checkpoint at" in shown
    assert "[Errno" not in shown
