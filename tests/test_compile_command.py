"""`distboost compile`: kernels that are there before the first fit."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from distboost.cli import main


def run(*words: str):
    return CliRunner().invoke(main, ["compile", *words])


@pytest.mark.timeout(300)
@pytest.mark.soak
def test_a_second_run_finds_all_kernels(tmp_path):
    words = "--algorithm", "gd-mcboost", "--out", str(tmp_path / "kernels")
    first, second = run(*words), run(*words)
    assert int(re.search(r"gd-mcboost: (\d+) kernels", first.output)[1]) > 20
    assert "gd-mcboost: 0 kernels" in second.output
    assert [*(tmp_path / "kernels").rglob("*.nbc")]


def test_an_algorithm_that_is_unknown():
    assert "is not one of" in run("--algorithm", "none").output


def test_a_process_that_fails_is_said(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    found = run("--algorithm", "gd-mcboost")
    assert found.exit_code == 1
    assert "gd-mcboost: " in found.output
