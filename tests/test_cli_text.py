"""Names and labels of somebody's are shown as they are, and do nothing else: to a terminal, to a page, or to a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import zlib

import numpy as np
import pandas as pd
import pytest
import zarr
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from distboost import GAMBLEClassifier
from distboost.cli import main
from distboost.cli.labels_csv import read_labels_csv, write_labels_csv
from distboost.errors import DataError
from distboost.io.text import visible
from tests.pages import Page

SHOWN = {
    "plain text": "plain text",
    "ä 中 🙂": "ä 中 🙂",
    "[/]": "[/]",
    "[bold red]x[/bold red]": "[bold red]x[/bold red]",
    "[link=file:///etc/passwd]x": "[link=file:///etc/passwd]x",
    ":bomb:": ":bomb:",
    "a\\": "a\\",
    "\x1b[31mred": "\\x1b[31mred",
    "\x1b]0;title\x07": "\\x1b]0;title\\x07",
    "\x9b31m": "\\x9b31m",
    "a\rb": "a\\rb",
    "a\nb": "a\\nb",
    "a\tb": "a\\tb",
    "a\x00b": "a\\x00b",
    "a\x08b\x7f": "a\\x08b\\x7f",
    "user\u202egpj.exe": "user\\u202egpj.exe",
    "a\u2066b\u2069\u200f": "a\\u2066b\\u2069\\u200f",
    "a\u2028b\u2029\u0085": "a\\u2028b\\u2029\\x85",
    "a\U000e0041": "a\\U000e0041",
    "\ufeffa": "\\ufeffa",
    "\ud800": "\\ud800",
    "می\u200cخواهم": "می\u200cخواهم",
    "👩\u200d🔬": "👩\u200d🔬",
}


@pytest.mark.parametrize("text", SHOWN)
def test_visible(text):
    assert visible(text) == SHOWN[text]


@given(st.text())
def test_any_text_is_one_line(text):
    assert visible(text).isprintable() or set(visible(text)) & set("\u200c\u200d") or not text.isascii()
    assert len(visible(text).splitlines()) <= 1
    visible(text).encode()


LABELS = ["[/]", "[bold]x[/bold]", "\x1b[31mred\x07", "a\r\nb", "\u202eevil", "<script>alert(1)</script>"]
NAMES = [
    "[/blink]",
    "\x1b]0;title\x07",
    "=cmd|' /C calc'!A0",
    "a\nb",
    "\u202ex",
    "-1;+1",
    ":bomb:",
    'say "row","label"',
]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """Nothing is cut off."""
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """A folder: a model of strange labels and names, and its rows."""
    folder = tmp_path_factory.mktemp("[b]strange[b]")
    y = np.arange(60) % len(LABELS)
    X = np.random.default_rng(0).normal(size=(60, len(NAMES)))
    X[:, : len(LABELS)] += 3 * np.eye(len(LABELS))[y]
    labels = np.array(LABELS)[y]
    GAMBLEClassifier(n_estimators=6, n_jobs=1, class_weight={"[/]": 2.0}).fit(
        pd.DataFrame(X, columns=NAMES), labels
    ).save(folder / "model")
    zarr.create_array(str(folder / "x"), data=X, chunks=(20, 8)).attrs["feature_names"] = NAMES
    zarr.create_array(str(folder / "y"), data=labels.astype(np.dtypes.StringDType()), chunks=(20,))
    return folder


def run(*arguments, fails=False):
    """The output, in which nothing acts on a terminal."""
    done = CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == fails, done.output
    for line in done.output.split("\n"):
        assert visible(line) == line
    return done.output


def test_inspect(strange):
    found = run("inspect", strange / "model")
    for text in (*LABELS, *NAMES[:4]):
        assert visible(text) in found
    assert "class_weight={'[/]': 2.0}" in found


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_evaluate(strange, tmp_path):
    at = ["--model", strange / "model", "--x", strange / "x", "--y", strange / "y"]
    found = run("evaluate", *at, "--report", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    page = Page(text)
    for label in LABELS:
        assert found.count(visible(label)) >= 2
        assert any(shown.startswith(visible(label)[:79]) for shown in page.texts)
    assert sum(tag == "script" for tag, _ in page.elements) == 1  # its own
    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_errors(strange, tmp_path):
    y = np.array(["\x1b[31m[/]\n", "b", "c"] * 20)
    zarr.create_array(str(tmp_path / "y"), data=y.astype(np.dtypes.StringDType()), chunks=(20,))
    at = ["--model", strange / "model", "--x", strange / "x", "--y", tmp_path / "y"]
    assert "Error: no label in " in run("evaluate", *at, fails=True)
    (tmp_path / "\x1b[2J").write_text("")
    assert "\\x1b[2J" in run("inspect", tmp_path / "\x1b[2J", fails=True)


def test_active(strange, tmp_path):
    log, sheet = tmp_path / "log", tmp_path / "sheet.csv"
    run(
        "active",
        "ask",
        "--log",
        log,
        "--x",
        strange / "x",
        "--out",
        sheet,
        "--set",
        "n_estimators=2",
        "--n-initial",
        12,
    )
    lines = list(csv.reader(io.StringIO(sheet.read_text(), newline="")))
    assert lines[0][:2] == ["row", "label"]
    assert [line for line in lines[0] if line.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
    assert len({len(line) for line in lines}) == 1
    for number, line in enumerate(lines[1:]):
        line[1] = ["[/]", "\x1b[31mred", "\u202eevil"][number % 3]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";").writerows(lines)
    sheet.write_text(text.getvalue())
    assert "12 labels told, 12 in all" in run("active", "tell", "--log", log, "--labels", sheet)
    found = run("active", "status", "--log", log)
    for label in ("[/]", "\\x1b[31mred", "\\u202eevil"):
        assert label in found
    run("active", "ask", "--log", log, "--out", sheet, "--batch-size", 10)
    rows = [line.split(",")[0] for line in sheet.read_text().splitlines()[1:]]
    sheet.write_text(f"row,label\n{rows[0]},\x1b[2Jnew [/] class\n")
    assert "New classes: \\x1b[2Jnew [/] class." in run("active", "tell", "--log", log, "--labels", sheet)
    sheet.write_text(f"row,label\n{rows[1]},[/]\n{rows[1]},\x1b[2J\n")
    assert "\\x1b[2J" in run("active", "tell", "--log", log, "--labels", sheet, fails=True)


def test_status_of_a_stranger(strange, tmp_path):
    """Whatever is noted of a pool."""
    log = tmp_path / "log"
    run("active", "ask", "--log", log, "--x", strange / "x", "--out", tmp_path / "sheet.csv")
    text = json.dumps({"note": {"pool": "[/]\x1b[2J\r/pool"}})
    log.write_text(log.read_text() + f"{zlib.crc32(text.encode()):08x} {text}\n")
    assert "[/]\\x1b[2J\\r/pool" in run("active", "status", "--log", log)


# Sheets.

FORMULAS = ["=1+1", "+1", "-x", "@SUM(A1)", "\t=1", "\r=1", "a;=1", 'a,"=1"', "a; -1", "\uff1d1", " =1"]


@pytest.mark.parametrize("name", FORMULAS)
def test_no_cell_is_a_formula(name, tmp_path):
    """Wherever a spreadsheet sees the ends of cells."""
    path = tmp_path / "sheet.csv"
    write_labels_csv(str(path), [3], np.array([[-0.5]]), [name])
    for delimiter in ",;\t":
        for quotes in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            header = next(
                csv.reader(io.StringIO(path.read_text(), newline=""), delimiter=delimiter, quoting=quotes)
            )
            assert [
                cell
                for cell in header
                if cell.strip(" \"'").startswith(tuple("=+-@\uff1d\t\r")) and "'" not in cell
            ] == []
    assert path.read_text().endswith("\n3,,-0.5\n")


WORDS = st.sampled_from(["row", "label", "row,label", "row;label", '"', ";"])
names = st.lists(
    st.text(max_size=12) | st.text(",;\t\"'\r\n =rowlabe", max_size=12) | WORDS, min_size=1, max_size=5
)


@given(
    names,
    st.sampled_from(",;\t"),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.booleans(),
)
def test_any_names_are_read_again(tmp_path_factory, names, delimiter, quoting, mark):
    """As they were written, and as a spreadsheet writes them when a person has filled in the labels."""
    path = tmp_path_factory.mktemp("sheets") / "sheet.csv"
    write_labels_csv(str(path), [5, 7], np.zeros((2, len(names))), names)
    assert read_labels_csv(str(path)) == {5: "", 7: ""}
    lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    assert len(lines) == 3
    lines[1][1], lines[2][1] = "a;b", "c,\td"
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=quoting).writerows(lines)
    path.write_bytes(text.getvalue().encode("utf-8-sig" if mark else "utf-8"))
    assert read_labels_csv(str(path)) == {5: "a;b", 7: "c,\td"}


def test_columns_in_another_order(tmp_path):
    path = tmp_path / "sheet.csv"
    for text in (
        "name;label;row\nx,y,z;b;3\n",
        "label,a;b;c,row\nb,1,3\n",
        '"a,b";"row";"label"\n1;3;b\n',
        "row\tlabel\r\n3\tb\r\n",
    ):
        path.write_text(text, newline="")
        assert read_labels_csv(str(path)) == {3: "b"}
    path.write_text("line;label\n1;2\n")
    with pytest.raises(DataError, match=r"has the columns \['line', 'label'\], expected 'row' and 'label'"):
        read_labels_csv(str(path))
