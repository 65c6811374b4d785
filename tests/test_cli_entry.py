"""How the command line begins and ends: its version, its help, Ctrl-C; and what the package says of itself."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import distboost
from distboost.cli import main
from distboost.cli.help import NOT_ON_THE_COMMAND_LINE, parameters_of
from distboost.cli.options import INTERRUPTED
from distboost.estimators.factory import estimator
from distboost.model.checkpoint import is_checkpoint, rounds_at
from distboost.registry import ALGORITHMS
from tests.programs import Program

ROOT = Path(__file__).parent.parent


def said(*words: str, code: int = 0) -> str:
    """The output of a command, without line breaks."""
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def module(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "distboost", *words], capture_output=True, text=True, timeout=60, check=False
    )


def test_the_version():
    assert said("--version") == f"distboost, version {distboost.__version__}"
    assert module("--version").stdout == f"distboost, version {distboost.__version__}\n"


def test_the_module_is_the_command():
    assert module("--help").stdout.startswith("Usage: python -m distboost [OPTIONS] COMMAND")
    failed = module("inspect", "/none")
    assert failed.returncode == 1
    assert failed.stderr.startswith("Error: ")


# The parameters of algorithms.


@pytest.mark.parametrize("name", ALGORITHMS)
def test_help_lists_all_parameters(name):
    """With their defaults, and a line about each."""
    shown = said("train", "--algorithm", name, "--help")
    defaults = estimator(name)().get_params(deep=False) | {"checkpoint": "MODEL.checkpoint", "verbose": 1}
    listed = parameters_of(name)
    assert {parameter.name for parameter in listed} == defaults.keys() - NOT_ON_THE_COMMAND_LINE
    for parameter in listed:
        assert f" {parameter.name}={defaults[parameter.name]} " in shown
        assert parameter.about.endswith("."), parameter
        assert len(parameter.about) > 8


def test_help_of_an_algorithm_is_found_wherever_it_stands():
    expected = said("train", "--algorithm", "gamble", "--help")
    assert "max_leaf_nodes=31" in expected
    for words in (
        ("--help", "--algorithm", "gamble"),
        ("-h", "--algorithm=gamble"),
        ("--algorithm=gamble", "-h"),
    ):
        assert said("train", *words) == expected


@pytest.mark.parametrize("command", [["train"], ["plan"], ["active", "ask"], ["active", "simulate"]])
def test_help_without_an_algorithm_says_how_to_see_its_parameters(command):
    shown = said(*command, "--help")
    assert f"{' '.join(command)} --algorithm NAME --help' lists the parameters of an algorithm" in shown
    assert ", ".join(ALGORITHMS) in re.sub(r"- (?=\w)", "-", shown)
    assert "Parameters of gamble" in said(*command, "--algorithm", "gamble", "--help")


def test_an_algorithm_that_there_is_not():
    assert "'gambel' is not one of 'cd-mcboost'" in said("train", "--algorithm", "gambel", "--help", code=2)


def test_commands_without_algorithms_have_no_such_help():
    assert "--algorithm NAME" not in said("predict", "--help")


# Ctrl-C.


@pytest.mark.parametrize(
    "place",
    ["distboost.cli.options.check_writable", "distboost.cli.options.PathOrUrl.convert"],
    ids=["in a command", "while options are read"],
)
def test_ctrl_c_ends_with_its_exit_code(place, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupt)
    monkeypatch.setattr("distboost.cli.train.check_writable", interrupt)
    result = CliRunner().invoke(
        main, ["train", "--algorithm", "gamble", "--x", "x", "--y", "y", "--model", "m"]
    )
    assert result.exit_code == INTERRUPTED == 130
    assert result.stderr == "\nAborted!\n"


TRAIN = """
import sys, numpy as np, zarr
from distboost.cli import main
rng, folder = np.random.default_rng(0), sys.argv[1]
zarr.create_array(f"{folder}/x", data=rng.normal(size=(500, 4)))
zarr.create_array(f"{folder}/y", data=rng.integers(0, 3, 500))
main(["train", "--algorithm", "gamble", "--x", f"{folder}/x", "--y", f"{folder}/y", "--model", f"{folder}/m",
      "--set", "n_estimators=1000000", "--set", "checkpoint_every=1"])
"""


def test_ctrl_c_during_a_training(tmp_path):
    """A short message, no traceback, and a checkpoint that loads."""
    process = Program(TRAIN, tmp_path)
    for line in process.stdout:
        if "1/1000000 rounds" in line:
            break
    while not is_checkpoint(f"{tmp_path}/m.checkpoint") or rounds_at(f"{tmp_path}/m.checkpoint") < 4:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert "Traceback" not in errors
    assert f"Interrupted. The same command with --resume resumes from {tmp_path}/m.checkpoint." in errors
    assert not (tmp_path / "m").exists()
    assert distboost.load(f"{tmp_path}/m.checkpoint").n_iter_ >= 4


# What the package says of itself.


def test_make_help_lists_all_targets():
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    shown = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=20, check=True
    ).stdout
    [phony] = re.findall(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text())
    assert set(re.findall(r"(?m)^  make (\S+) +\S", shown)) == set(phony.split())


def test_the_package_has_its_addresses():
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= urls.keys()
    for url in urls.values():
        assert url.startswith("https://github.com/distboost/distboost")
        _, _, path = url.partition("/main/")
        assert not path or (ROOT / path).exists()
