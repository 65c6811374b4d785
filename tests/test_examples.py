"""The papers' tables: the quick part of each script, and pages that say what was measured."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts import run_example

ROOT = Path(__file__).parents[1]
SCRIPTS = ("saberian_vasconcelos", "mukherjee_schapire", "paisitkriangkrai", "huang", "appel_perona")


@pytest.fixture
def quick(tmp_path):
    """quick(script, *options): (what it prints, its figures)."""

    def measured(script: str, *options: str) -> tuple[str, dict]:
        file = tmp_path / "figures.json"
        done = run_example(f"papers/{script}", "--quick", "--json", str(file), *options)
        assert done.returncode == 0, done.stderr
        return done.stdout, json.loads(file.read_text())

    return measured


def check_shape(script: str, printed: str, figures: dict) -> None:
    """Each table has its header, and one line and one list of figures for each of its methods."""
    lines = printed.splitlines()
    tables = importlib.import_module(f"examples.papers.{script}").TABLES
    assert list(figures) == [table.name for table in tables]
    for table in tables:
        assert list(figures[table.name]) == list(table.quick)
        for dataset, methods in figures[table.name].items():
            assert list(methods) == list(table.methods)
            for name, repeats in methods.items():
                assert [len(values) for values in repeats] == [len(table.columns)]
                assert sum(line.startswith(f"| {dataset} | {name} |") for line in lines) >= 1


def test_saberian_vasconcelos(quick):
    printed, figures = quick("saberian_vasconcelos")
    check_shape("saberian_vasconcelos", printed, figures)
    (accuracy,) = figures["table_2"]["satimage"]["GD-MCBoost, direction"][0]
    assert accuracy > 70


def test_mukherjee_schapire(quick):
    printed, figures = quick("mukherjee_schapire")
    check_shape("mukherjee_schapire", printed, figures)
    (error,) = figures["figure_2"]["vowel"]["AdaBoost.MM"][0]
    assert error < 70


def test_paisitkriangkrai(quick):
    printed, figures = quick("paisitkriangkrai")
    check_shape("paisitkriangkrai", printed, figures)
    (error,) = figures["table_I"]["iris"]["exponential, nu=1e-09"][0]
    assert error < 15


def test_huang(quick):
    printed, figures = quick("huang")
    check_shape("huang", printed, figures)
    after_10_rounds = figures["figure_5.1"]["pendigits"]["14 leaves"][0][0]
    assert after_10_rounds < 20


def test_appel_perona(quick):
    printed, figures = quick("appel_perona")
    check_shape("appel_perona", printed, figures)
    (error,) = figures["figure_8"]["vowel"]["REBEL, two-point"][0]
    assert error < 50


@pytest.mark.soak
def test_workers_change_no_figure(quick, tmp_path):
    """As the pages say to run it: in a process of its own."""
    options = ("--table", "figure_5.2")
    file = tmp_path / "on_workers.json"
    command = ["-m", "examples.papers.huang", "--quick", *options, "--workers", "2", "--json", str(file)]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(file.read_text()) == quick("huang", *options)[1]


def test_only_whole_tables_are_kept():
    done = run_example("papers/huang", "--write", "--quick")
    assert done.returncode == 2
    assert "--write keeps whole tables" in done.stderr


def test_plot_without_matplotlib_says_how_to_install_it(monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):  # another test may have imported both
        monkeypatch.setitem(sys.modules, name, None)
    done = run_example("papers/appel_perona", "--plot")
    assert done.returncode == 1
    assert "pip install '.[plots]'" in done.stderr


@pytest.mark.parametrize("script", ["saberian_vasconcelos", "huang", "appel_perona"])
def test_pictures(script, tmp_path):
    done = run_example(f"papers/{script}", "--quick", "--plot", str(tmp_path))
    assert done.returncode == 0, done.stderr
    tables = importlib.import_module(f"examples.papers.{script}").TABLES
    pictures = {table.picture.file for table in tables if table.picture}
    assert {path.name for path in tmp_path.iterdir()} == pictures
    assert all((ROOT / "docs" / "images" / name).exists() for name in pictures)


def test_nothing_is_missing(tmp_path):
    file = tmp_path / "figures.json"
    done = run_example("papers/huang", "--missing", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert not any(json.loads(file.read_text()).values())


@pytest.mark.parametrize("script", SCRIPTS)
def test_pages_are_made_of_the_committed_figures(script):
    from examples.papers import common

    module = importlib.import_module(f"examples.papers.{script}")
    assert (common.PAGES / f"{script}.md").read_text() == common.page(script, module.__doc__, module.TABLES)


def test_letter_report(tmp_path):
    done = run_example("letter_report", "--rounds", "2", "--out", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr
    assert "<title>Letter recognition</title>" in (tmp_path / "report.html").read_text()


def test_cells(tmp_path):
    done = run_example(
        "cells", "--cells", "1200", "--genes", "200", "--types", "4", "--rounds", "10", "--memory-limit", "1GB",
        "--out", str(tmp_path), "--picture", str(tmp_path / "cells.png"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split("accuracy ")[1].split("%")[0]) > 50
    assert (tmp_path / "cells.png").stat().st_size > 1000
