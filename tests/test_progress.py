"""The progress of a training run: lines where the output is no terminal, numbers on any terminal, the best round at the end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from itertools import pairwise
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.io import progress
from tests.faults.crews import until
from tests.programs import Program

TRAIN = """
import numpy as np
from distboost import GAMBLEClassifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(300, 4)), rng.integers(0, 3, 300)
model = GAMBLEClassifier(n_estimators=50, early_stopping_rounds=3, calibration=None, verbose=1)
model.fit(X[:200], y[:200], eval_set={"valid": (X[200:], y[200:])})
print("best", model.best_iteration_, "of", model.n_iter_, f"{model.train_loss_[-1]:.4g}", f"{model.train_error_[-1]:.2%}")
"""


def test_a_pipe_gets_lines_without_control_characters(blobs, capsys, monkeypatch):
    """Also where rich would take it for a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    model = GAMBLEClassifier(n_estimators=4, calibration=None, verbose=1).fit(*blobs, eval_set=blobs)
    said = capsys.readouterr().out
    assert said.isascii()
    assert "\x1b" not in said
    assert "\r" not in said
    lines = [line for line in said.splitlines() if " rounds, " in line]
    assert len(lines) == 4
    for number, line in enumerate(lines, 1):
        loss, error = model.train_loss_[number - 1], model.train_error_[number - 1]
        assert line.startswith(
            f"GAMBLEClassifier: {number}/4 rounds, loss {loss:.4g}, error {error:.2%}, eval error {error:.2%}"
        )


def test_a_pipe_gets_at_most_ten_lines_and_sees_the_loss_move(capsys):
    X, y = load_iris(return_X_y=True)
    GDMCBoostClassifier(n_estimators=100, max_depth=3, learning_rate=0.2, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 10
    losses = [found[1] for line in lines if (found := re.search(r"rounds, loss (\S+),", line))]
    assert len(losses) == len(set(losses)) == 5
    assert f"{float(losses[-1]):.4g}" == "1"  # so many digits are the same


def test_early_stopping_names_the_best_round(capsys):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 3, 300)
    model = GAMBLEClassifier(n_estimators=50, early_stopping_rounds=3, calibration=None, verbose=1)
    model.fit(X[:200], y[:200], eval_set=(X[200:], y[200:]))
    last = capsys.readouterr().out.splitlines()[-1]
    assert model.outcome_ == "early stopping"
    assert last == (
        f"GAMBLEClassifier: stopped early after round {model.n_iter_}: round {model.best_iteration_} is the best"
    )


@pytest.mark.parametrize("width", [24, 50, 100])
def test_a_terminal_keeps_the_numbers(width):
    """However narrow it is: numbers wrap, and none is cut off."""
    shown = on_terminal(width, TRAIN)
    best = re.search(r"best (\d+) of (\d+) (\S+) (\S+)\s*$", shown)
    assert best, shown
    flat = re.sub(r"\s+", "", shown)
    assert f"stoppedearlyafterround{best[2]}:round{best[1]}isthebest" in flat
    last = re.findall(rf"{best[2]}/50rounds,loss([\d.]+),error{best[4]},validerror", flat)[-1]
    assert f"{float(last):.4g}" == best[3]
    assert "…" not in shown
    assert ("GAMBLEClassifier" in shown) == (width >= progress.NARROW)


# What tells programs how wide a terminal is, beside the terminal.
WIDTHLESS = "import os\nfor name in ('COLUMNS', 'LINES'): os.environ.pop(name, None)\n"


def on_terminal(width: int, program: str) -> str:
    """The output of a program on a terminal of this width, without its control sequences."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = Program(WIDTHLESS + program, stdout=theirs, environment={"TERM": "xterm"})
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 2**16):
            shown += part
    except OSError:  # the terminal's other end is closed
        pass
    finally:
        os.close(ours)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_reader_that_has_gone_does_not_end_a_training(tmp_path):
    process = Program(f"{TRAIN.rpartition('print')[0]}\nmodel.save({str(tmp_path / 'model')!r})")
    assert process.stdout.readline().startswith("GAMBLEClassifier: ")
    process.stdout.close()
    with process.stderr as stream:
        errors = stream.read()
    assert process.wait(100) == 0, errors
    assert (tmp_path / "model").exists()
    assert "Traceback" not in errors


def test_lines_have_an_interval(capsys, monkeypatch):
    """The first and the following ones, as time passes; and the last numbers at the end."""
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.bar("predict", 100) as draw:
        for now in range(1, 14):
            draw(now, "rows")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["predict: 5/100 rows", "predict: 10/100 rows", "predict: 13/100 rows"]
    numbers = [int(re.search(r"\d+", line)[0]) for line in lines[:-1]]
    assert all(b - a == progress.LINE_INTERVAL for a, b in pairwise(numbers))


def test_no_number_is_said_twice(capsys):
    with progress.bar("predict", 2, interval=0.0) as draw:
        draw(1)
        draw(2, note="done early")
    assert capsys.readouterr().out.splitlines() == ["predict: 1/2", "predict: done early"]


# Notebooks.


@pytest.fixture
def cell(monkeypatch):
    """The outputs of a notebook's cell, each with all its states."""
    outputs: list[list[dict]] = []

    class Handle:
        def __init__(self, states):
            self._states = states

        def update(self, output, *, raw):
            assert raw
            self._states.append(output)

    def display(output, *, raw, display_id):
        assert raw
        assert display_id
        outputs.append([output])
        return Handle(outputs[-1])

    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    return outputs


def test_the_output_of_a_cell_ends_with_the_last_state(cell, capsys):
    with progress.bar("predict", 3) as draw:
        draw(2, "rows <1>")
        draw(3, "rows <1>", note="done [early]")
    [states] = cell
    note, bar, numbers = states[-1]["text/plain"].splitlines()
    assert (note, bar[:8], numbers) == ("done [early]", "predict ", "3/3 rows <1>")
    assert "done [early]\npredict " in states[-1]["text/html"]
    assert "rows &lt;1&gt;" in states[-1]["text/html"]
    assert capsys.readouterr().out == ""


def test_the_output_of_a_cell_is_replaced_while_work_is_done(cell, monkeypatch):
    monkeypatch.setattr(progress, "REFRESH_INTERVAL", 0.01)
    with progress.phases_shown(1) as phases, phases.begin("scan", 2, "rows") as advance:
        advance(1)
        until(lambda: cell and "scan 1 rows of 2 rows" in cell[0][-1]["text/plain"], "an output")
    [states] = cell
    assert states[-1] == {"text/plain": "", "text/html": ""}  # the phase was short


def test_a_cell_without_progress_has_no_output(cell):
    with progress.phases_shown(1):
        pass
    assert cell == []
