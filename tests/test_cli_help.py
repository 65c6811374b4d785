"""The help of the command line: whole summaries, examples that run, and what is trained by default."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import distboost
from distboost.cli import main

LABELS = np.array(["cat", "dog"], dtype=np.dtypes.StringDType())


def walk(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    for part, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, f"{name} {part}".strip())


COMMANDS = dict(walk(main))
# What must have run before.
FIRST = {
    "predict": "train",
    "evaluate": "train",
    "inspect": "train",
    "active tell": "active ask",
    "active status": "active ask",
    "active log": "active tell",
    "active export": "active tell",
    "active import": "active export",
    "active withdraw": "active tell",
    "active advise": "active tell",
    "active model": "active tell",
}


def run(*words: str) -> str:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return result.output


def calls(example: str) -> list[list[str]]:
    """The arguments of each command of an example."""
    lines = example.replace("\\\n", " ").strip().splitlines()
    found = [shlex.split(line) for line in lines]
    assert {program for program, *_ in found} == {"distboost"}
    return [words for _, *words in found]


def follow(name: str, done: set[str]) -> None:
    """Run an example, once, after what it needs; label the rows that it asks for."""
    if name in done:
        return
    done.add(name)
    if name in FIRST:
        follow(FIRST[name], done)
    for words in calls(COMMANDS[name].example):
        shorter = ["--repeats", "1", "--max-labels", "40"] if "simulate" in words else []
        if "withdraw" in words:  # those that were asked for
            words[-1] = ",".join(line.split(",")[0] for line in Path("ask.csv").read_text().splitlines()[1:3])
        run(*words, *shorter)
        if words[:2] == ["active", "ask"]:
            label(Path("ask.csv"))


def label(path: Path) -> None:
    labels = zarr.open_array("data.zarr/y", mode="r")[:]
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *([row, labels[int(row)], *rest] for row, _, *rest in rows)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for store, n in {"data.zarr": 200, "test.zarr": 60}.items():
        X = rng.normal(size=(n, 4))
        zarr.create_array(tmp_path / store / "x", data=X)
        y = zarr.create_array(tmp_path / store / "y", shape=(n,), chunks=(n,), dtype=LABELS.dtype)
        y[:] = LABELS[(X[:, 0] + rng.normal(size=n) > 0).astype(int)]
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_that_fits(name):
    shown = run(*name.split(), "--help").splitlines()
    lines = COMMANDS[name].example.strip().splitlines()
    first = shown.index(f"  {lines[0]}")
    assert shown[first - 1 : first + len(lines)] == ["Example:", *(f"  {line}" for line in lines)]
    assert max(map(len, lines)) <= 76


GROUPS = [name for name, command in COMMANDS.items() if isinstance(command, click.Group)]
ENDLESS = [
    *(name for name in COMMANDS if name.startswith("cluster")),
    "active serve",
]  # they run until Ctrl-C
ALONE = [name for name in [*GROUPS, "bin"] if name not in ENDLESS]  # they write what others write, too
OTHERS = COMMANDS.keys() - {*ALONE, *ENDLESS}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("names", [*([name] for name in ALONE), OTHERS], ids=[*ALONE, "others"])
def test_examples_run(names, folder):
    """Those of most commands one after another in one folder."""
    done: set[str] = set()
    for name in sorted(names):
        follow(name, done)


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_examples_are_understood(name):
    for words in calls(COMMANDS[name].example):
        command: click.Command = main
        while isinstance(command, click.Group):
            part, *words = words
            command = command.commands[part]
        command.make_context(name, words)


@pytest.mark.parametrize("name", GROUPS)
def test_summaries_are_whole(name):
    shown = " ".join(run(*name.split(), "--help").split())
    for part, command in COMMANDS[name].commands.items():
        summary = command.help.partition("\n\n")[0]
        assert f"{part} {' '.join(summary.split())}" in shown


@pytest.mark.parametrize("name", ["train", "plan", "cross-validate", "search"])
def test_help_says_what_is_trained_by_default(name):
    shown = " ".join(run(name, "--help").split())
    assert re.search(r"--algorithm NAME What to train\. +\[default: \(?gd-mcboost", shown)


def test_without_an_algorithm_gd_mcboost_is_trained(folder):
    rows = ("--x", "data.zarr/x", "--y", "data.zarr/y", "--set", "n_estimators=2")
    run("train", *rows, "--model", "model")
    assert isinstance(distboost.load("model"), distboost.GDMCBoostClassifier)


def test_a_resumed_training_keeps_its_algorithm(folder):
    rows = ("--x", "data.zarr/x", "--y", "data.zarr/y", "--model", "model")
    run("train", "--algorithm", "gamble", *rows, "--set", "n_estimators=2")
    run("train", "--resume", *rows, "--set", "n_estimators=4")
    assert isinstance(distboost.load("model"), distboost.GAMBLEClassifier)
    assert distboost.load("model").n_iter_ == 4
