"""What the tests of `distboost active` share: commands in this process, and the files that people fill in."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from distboost.cli import main
from tests.failing import error_of

SMALL = (
    "--algorithm",
    "gamble",
    "--n-initial",
    12,
    "--batch-size",
    4,
    "--set",
    "n_estimators=6",
    "--set",
    "max_leaf_nodes=3",
)


def run(*arguments: object) -> str:
    """The output of a command that succeeds."""
    result = CliRunner().invoke(main, ["active", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments: object, code: int = 1) -> str:
    """The error of a command that fails."""
    result = CliRunner().invoke(main, ["active", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return error_of(result.stderr)


def sheet(path: Path) -> list[list[str]]:
    with open(path, newline="") as file:
        return list(csv.reader(file))


def asked(path: Path) -> list[int]:
    return [int(line[0]) for line in sheet(path)[1:]]


def write(path: Path, labels: dict[int, object], header: str = "row,label") -> Path:
    path.write_text("\n".join([header, *(f"{row},{label}" for row, label in labels.items())]) + "\n")
    return path


def label(path: Path, y: np.ndarray, n: int | None = None) -> None:
    """What a person does: fills in the first n labels."""
    lines = sheet(path)
    for line in lines[1:][:n]:
        line[1] = str(y[int(line[0])])
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(lines)


def begun(data, files, *more: object) -> tuple[Path, Path, list[int]]:
    """A log with 12 rows asked for: its path, that of the CSV file, and the rows."""
    run("ask", *files, "--x", data / "x", *SMALL, *more)
    return files[1], files[3], asked(files[3])


def simulate(data, *more: object) -> tuple:
    arrays = (word for name in ("x", "y", "eval-x", "eval-y") for word in (f"--{name}", data / name))
    return ("simulate", *arrays, *SMALL, *more)
