"""Compiled kernels with an installation and a home that are read-only, as in a container: each time in processes of their own."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from tests.kernels.kernel_programs import PACKAGE, TOLD, TWO_TYPES, WEIGHTS

# It shows what the package logs.
PROGRAM = f"import logging\nlogging.basicConfig(level=logging.INFO)\n{WEIGHTS}"


def mount(*words: object) -> str:
    """The command; the checkout may lie in a folder with a space."""
    return shlex.join(["mount", *map(str, words)])


@pytest.fixture
def run(with_mounts, tmp_path):
    """run(...): what a program found and said that can write neither to the package nor to the home, after further commands."""
    home = tmp_path / "home"
    home.mkdir()

    def run(*commands: str, program: str = PROGRAM, **environment: object) -> tuple[dict, str]:
        mounts = [
            mount("--bind", PACKAGE, PACKAGE),
            mount("-o", "remount,bind,ro", PACKAGE),
            mount("-t", "tmpfs", "-o", "ro", "tmpfs", home),
            "unset XDG_CACHE_HOME",
        ]
        ours = {"HOME": home, "PYTHONPATH": PACKAGE.parent, "NUMBA_CACHE_DIR": ""}
        given = {name: str(value) for name, value in (ours | environment).items()}
        done = with_mounts([*mounts, *commands], program, **given)
        return json.loads(done.stdout), done.stderr

    return run


def hidden(folder: Path) -> str:
    """The command that hides the kernels that were compiled in the checkout."""
    return mount("-t", "tmpfs", "-o", "ro", "tmpfs", folder)


COMPILED = PACKAGE / "kernels" / "__pycache__"


def test_kernels_are_kept_among_temporary_files(run, tmp_path):
    """In a folder that nobody else can read, and only the first process compiles."""
    found, said = run(hidden(COMPILED), TMPDIR=tmp_path)
    assert (found["loaded"], found["compiled"]) == (0, 1)
    folder = tmp_path / f"distboost-kernels-{os.geteuid()}"
    assert said.count(f"compiled kernels are kept in {folder}") == 1
    assert folder.stat().st_mode & 0o777 == 0o700
    found, said = run(hidden(COMPILED), TMPDIR=tmp_path)
    assert (found["loaded"], found["compiled"]) == (1, 0)
    assert TOLD not in said


def _linked(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to("elsewhere")


def _of_others(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, os.geteuid() + 1, -1)


def _writable_by_all(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


@pytest.mark.parametrize("make", [_linked, _of_others, _writable_by_all])
def test_a_folder_that_others_may_write_to_is_not_used(run, make, tmp_path):
    folder = tmp_path / f"distboost-kernels-{os.geteuid()}"
    make(folder)
    found, said = run(hidden(COMPILED), TMPDIR=tmp_path)
    assert (found["weight"], found["loaded"], found["compiled"]) == (1, 0, 1)
    assert said.count(TOLD) == 1
    assert not [*folder.iterdir()]


def test_without_any_writable_folder_a_warning_says_what_to_do(run, tmp_path):
    found, said = run(hidden(COMPILED), program=TWO_TYPES, TMPDIR=tmp_path / "home")
    assert (found["weight"], found["loaded"], found["compiled"]) == (1, 0, 2)
    assert said.count(TOLD) == 1
    assert "Set NUMBA_CACHE_DIR to a writable folder" in said


def test_kernels_that_came_with_the_installation_are_loaded(run, with_mounts, tmp_path):
    """Though no folder is writable, nothing is compiled, and nothing is said."""
    compiled = tmp_path / "compiled"
    compiled.mkdir()
    bound = mount("--bind", compiled, COMPILED)
    with_mounts([bound], WEIGHTS, NUMBA_CACHE_DIR="", PYTHONPATH=str(PACKAGE.parent))
    found, said = run(bound, mount("-o", "remount,bind,ro", COMPILED), TMPDIR=tmp_path / "home")
    assert (found["loaded"], found["compiled"], said) == (1, 0, "")


def test_kernels_that_came_with_an_image_are_loaded(run, with_mounts, tmp_path):
    """From a NUMBA_CACHE_DIR that was writable when the image was built."""
    compiled = tmp_path / "compiled"
    with_mounts([], WEIGHTS, NUMBA_CACHE_DIR=str(compiled), PYTHONPATH=str(PACKAGE.parent))
    read_only = mount("--bind", compiled, compiled), mount("-o", "remount,bind,ro", compiled)
    found, said = run(hidden(COMPILED), *read_only, TMPDIR=tmp_path / "home", NUMBA_CACHE_DIR=compiled)
    assert (found["loaded"], found["compiled"], said) == (1, 0, "")
