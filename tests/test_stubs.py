"""Editors and type checkers see the estimators' parameters, types and documentation."""

import subprocess
import sys

import pytest

import distboost
from distboost.estimators.stubs import stubs


def test_stubs_are_those_that_the_generator_writes():
    for path, text in stubs().items():
        assert path.read_text() == text, "run: python -m distboost.estimators.stubs"


def test_stubs_name_all_that_is_public():
    text = next(text for path, text in stubs().items() if path.name == "__init__.pyi")
    for name in distboost.__all__:
        assert f"class {name}(" in text or f" as {name}\n" in text


@pytest.mark.timeout(300)
def test_mypy_sees_parameters(tmp_path):
    source = tmp_path / "use.py"
    source.write_text(
        "from distboost import GDMCBoostClassifier\n"
        "from distboost.baselines import SAMMEClassifier\n"
        "GDMCBoostClassifier(n_estimators=5, leaf='codeword', max_depth=None)\n"
        "GDMCBoostClassifier(leaf='leaf')\n"
        "GDMCBoostClassifier(depth=3)\n"
        "SAMMEClassifier(max_bins='many')\n"
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--no-site-packages",
        "--ignore-missing-imports",
        "--follow-imports=silent",
        str(source),
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert [line.split(":")[1] for line in found.splitlines() if ": error:" in line] == ["4", "5", "6"], found
