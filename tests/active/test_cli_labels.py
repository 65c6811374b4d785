"""Labels that people write into CSV files: what kinds they are, and files that cannot be right, of which nothing is taught."""

from __future__ import annotations

import pytest

from distboost.active import resume
from tests.active.commands import begun, fail, run, write


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "2", "1"], [1, 2, 1]),
        (["1.0", "-2", "0.00"], [1, -2, 0]),  # as spreadsheets write whole numbers beside gaps
        (["1", "2", "x"], ["1", "2", "x"]),
        (["01", "2", "3"], ["01", "2", "3"]),
        (["0.5", "1", "2"], ["0.5", "1", "2"]),
        (["nan", "None", "1e3"], ["nan", "None", "1e3"]),
        ([" a b ", '"c,d"', "ä"], ["a b", "c,d", "ä"]),
        (["1" * 30, "2", "3"], ["1" * 30, "2", "3"]),
    ],
)
def test_kinds_of_labels(data, files, texts, expected):
    log, out, rows = begun(data, files)
    write(out, dict(zip(rows, texts, strict=False)))
    run("tell", "--log", log, "--labels", out)
    found = resume(log)
    assert found.labels_.tolist() == expected
    assert found.labelled_.tolist() == rows[:3]


def test_labels_are_of_the_kind_of_those_before(data, files):
    log, out, rows = begun(data, files)
    write(out, {rows[0]: "1", rows[1]: "x"})
    run("tell", "--log", log, "--labels", out)
    write(out, {rows[2]: "7"})
    assert "New classes: 7" in run("tell", "--log", log, "--labels", out)
    assert resume(log).labels_.tolist() == ["1", "x", "7"]


@pytest.mark.parametrize(
    ("taught", "good", "bad"), [([1], "2", "2.5"), ([1.0], "2", "x"), ([True], "false", "2")]
)
def test_a_label_of_another_kind_than_earlier_ones(data, files, taught, good, bad):
    """Also than those that were taught in Python."""
    log, out, rows = begun(data, files)
    resume(log).teach(rows[:1], taught)
    before = log.read_bytes()
    error = fail("tell", "--log", log, "--labels", write(out, {rows[1]: good, rows[2]: bad}))
    assert f"row {rows[2]} as {bad!r}" in error
    assert "--classes" in error
    assert log.read_bytes() == before
    run("tell", "--log", log, "--labels", write(out, {rows[1]: good}))
    assert resume(log).labels_.tolist() == [*taught, {"2": 2, "false": False}[good]]


def test_declared_classes_set_the_kind_of_labels(data, files):
    log, out, rows = begun(data, files, "--classes", "1,2,x")
    write(out, {rows[0]: "1", rows[1]: "2"})
    run("tell", "--log", log, "--labels", out)
    assert resume(log).labels_.tolist() == ["1", "2"]
    before = log.read_bytes()
    error = fail("tell", "--log", log, "--labels", write(out, {rows[2]: "1", rows[3]: "3"}))
    assert f"'3' of row {rows[3]}" in error
    assert log.read_bytes() == before


def test_files_as_spreadsheets_write_them(data, files):
    """With a byte order mark, semicolons, other columns and capitals, empty lines, numbers of rows with a point."""
    log, out, rows = begun(data, files)
    lines = [
        "Label;comment;Row",
        f"blue;sure;{rows[0]}.0",
        ";;",
        f";later;{rows[1]}",
        f"red;{rows[2]};{rows[3]}",
    ]
    out.write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    run("tell", "--log", log, "--labels", out)
    found = resume(log)
    assert found.labelled_.tolist() == [rows[0], rows[3]]
    assert found.labels_.tolist() == ["blue", "red"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("row,name\n{0},a\n", "'row' and 'label'"),
        ("", "'row' and 'label'"),
        ("row,label\n{0},a\nzwei,b\n", "line 3"),
        ("row,label\n{0},a\n-1,b\n", "'-1'"),
        ("row,label\n{0},a\n{0},b\n", "Keep one"),
        ('row,label\n{0},"a\n', "not a CSV file"),
        ("row,label\n{0},a\n{unasked},b\n", "row {unasked}, which was not asked for"),
        ("row,label\n{0},a\n999999,b\n", "row 999999, which was not asked for"),
    ],
)
def test_files_that_cannot_be_right(data, files, content, message):
    log, out, rows = begun(data, files)
    unasked = min(set(range(160)) - set(rows))
    out.write_text(content.format(*rows, unasked=unasked))
    before = log.read_bytes()
    error = fail("tell", "--log", log, "--labels", out)
    assert message.format(unasked=unasked) in error
    assert str(out) in error
    assert log.read_bytes() == before


def test_no_file_of_labels(data, files, tmp_path):
    log, _, _ = begun(data, files)
    error = fail("tell", "--log", log, "--labels", tmp_path / "none.csv")
    assert f"there is no file of labels at {tmp_path / 'none.csv'}" in error


def test_a_label_that_contradicts_an_earlier_one(data, files):
    log, out, rows = begun(data, files)
    run("tell", "--log", log, "--labels", write(out, {rows[0]: "a"}))
    before = log.read_bytes()
    error = fail("tell", "--log", log, "--labels", write(out, {rows[1]: "a", rows[0]: "b"}))
    assert f"row {rows[0]} as 'b'" in error
    assert "'a'" in error
    assert log.read_bytes() == before
