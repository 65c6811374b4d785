"""Where a command runs: its output in any encoding, to any reader, and Python without docstrings."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

from distboost import GAMBLEClassifier
from distboost.cli import main
from distboost.cli.text import LEAST_WIDTH
from distboost.io import progress
from distboost.registry import ALGORITHMS

ENCODINGS = ["ascii", "latin-1", "utf-8"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder: rows, labels and a model, with names that few encodings have."""
    folder = tmp_path_factory.mktemp("data")
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 3)) + 2 * np.eye(3)[y]
    labels = np.array(["rosé", "中", "blå"])[y]
    zarr.create_array(folder / "x", data=X).attrs["feature_names"] = ["größe", "±", "x"]
    zarr.create_array(folder / "y", data=labels.astype(np.dtypes.StringDType()))
    GAMBLEClassifier(n_estimators=3).fit(str(folder / "x"), str(folder / "y")).save(folder / "model")
    return folder


def commands(data):
    return {
        "cross-validate": ["--algorithm", "gamble", "--x", data / "x", "--y", data / "y", "--set", "n_estimators=2"],
        "evaluate": ["--model", data / "model", "--x", data / "x", "--y", data / "y"],
        "inspect": [data / "model"],
    }  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("command", ["cross-validate", "evaluate", "inspect"])
def test_all_is_written_in_any_encoding(command, encoding, data):
    done = CliRunner(charset=encoding).invoke(main, [command, *map(str, commands(data)[command])])
    assert done.exit_code == 0, done.output
    expected = {"cross-validate": "± deviation", "evaluate": "中", "inspect": "größe"}[command]
    if encoding == "ascii":
        expected = expected.replace("±", "+-")
    assert expected.encode(encoding, "backslashreplace") in done.stdout_bytes


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_progress_in_any_encoding(encoding, monkeypatch):
    """Of a call from Python, whose standard output is not ours."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    with progress.display("中") as shown:
        shown.bar()(1, "0.5 ± 0.1")
    stream.flush()
    assert "中 0.5".encode(encoding, "backslashreplace").split()[0] in stream.buffer.getvalue()
    assert sys.stdout is stream


def test_a_reader_that_leaves_changes_nothing(data, monkeypatch, capfd):
    """Such as `head`. Later output goes nowhere, and the interpreter finds nothing that it cannot write."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended:
            main(["inspect", str(data / "model")])
        assert ended.value.code == 0
    assert capfd.readouterr().err == ""


def test_no_streams_at_all(data, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", *map(str, commands(data)["evaluate"])])
    assert ended.value.code == 0


def test_no_number_is_cut_off_on_a_narrow_terminal(data, monkeypatch):
    monkeypatch.setenv("COLUMNS", "3")
    done = CliRunner().invoke(main, ["inspect", str(data / "model")])
    assert "rounds" in done.output
    assert max(map(len, done.output.splitlines())) <= LEAST_WIDTH


WITHOUT_DOCSTRINGS = f"""
import click
from click.testing import CliRunner
from distboost.cli import main

def check(command, *words):
    done = CliRunner().invoke(main, [*words, "--help"])
    assert done.exit_code == 0, (words, done.exception)
    for name, own in getattr(command, "commands", {{}}).items():
        check(own, *words, name)

assert check.__doc__ is None and not __debug__
check(main)
for name in {ALGORITHMS!r}:
    check(None, "train", "--algorithm", name)
"""


FITTED = """
import numpy as np
import distboost

X = np.random.default_rng(0).normal(size=(90, 4))
y = (X[:, 0] * 2).astype(int) % 3
for name in ("GDMCBoostClassifier", "GAMBLEClassifier", "REBELClassifier"):
    model = getattr(distboost, name)(n_estimators=2).fit(X, y)
    print(model.digest(), distboost.evaluate(model, X, y)["log_loss"])
"""


def test_numba_with_compilation_switched_off(capsys):
    """Whoever covers or debugs functions of their own with Numba has the same models."""
    switched_off = subprocess.run(
        [sys.executable, "-c", FITTED], capture_output=True, text=True, timeout=200, check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    ).stdout  # fmt: skip
    exec(FITTED, {})
    assert switched_off == capsys.readouterr().out != ""


def test_help_without_docstrings():
    """Every command's, and the parameters of every algorithm."""
    done = subprocess.run(
        [sys.executable, "-OO", "-c", WITHOUT_DOCSTRINGS], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
