"""The command line for a team: whose rows, corrections, and labels from and for other programs."""

from __future__ import annotations

import csv
import json
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import zarr

from distboost.active import resume
from tests.active.commands import SMALL, asked, begun, fail, label, run, sheet, write


def ask(files, by, tmp_path, *more):
    out = tmp_path / f"{by}.csv"
    run("ask", "--log", files[1], "--out", out, "--by", by, *more)
    return out


def test_two_people(data, files, blobs, tmp_path):
    log, y = files[1], blobs[1]
    ann = ask(files, "ann", tmp_path, "--x", data / "x", *SMALL)
    bob = ask(files, "bob", tmp_path, "--hours", 8, "--more")
    assert len({*asked(ann), *asked(bob)}) == 24
    assert asked(ask(files, "ann", tmp_path)) == asked(ann)
    label(bob, y, 5)
    run("tell", "--log", log, "--labels", bob, "--by", "bob")
    label(ann, y)
    run("tell", "--log", log, "--labels", ann, "--by", "ann")
    assert asked(ask(files, "bob", tmp_path)) == asked(bob)
    found = resume(log)
    assert sorted(found.labelled_.tolist()) == sorted(
        asked(ann) + [row for row in found.labelled_ if row not in asked(ann)]
    )
    assert len(found.labelled_) == 17
    status = " ".join(run("status", "--log", log).split())
    assert "17, 5 by bob, 12 by ann" in status
    assert "--hours goes with --by" in fail("ask", *files, "--hours", 3, code=2)


def test_a_label_is_corrected_and_withdrawn(data, files, blobs):
    log, out, rows = begun(data, files)
    run("tell", "--log", log, "--labels", write(out, {rows[0]: 1, rows[1]: 2}), "--by", "ann")
    write(out, {rows[0]: 0, rows[2]: 1})
    error = fail("tell", "--log", log, "--labels", out, "--by", "bob")
    assert f"row {rows[0]} as 0, but its label is already 1 by 'ann' at " in error
    assert "--correct" in error
    said = run("tell", "--log", log, "--labels", out, "--by", "bob", "--correct")
    assert "1 labels told, 1 corrected, 3 in all" in said
    assert resume(log).labels_.tolist() == [0, 2, 1]
    run("withdraw", "--log", log, "--rows", f"{rows[1]},{rows[2]}", "--by", "ann")
    assert resume(log).labelled_.tolist() == [rows[0]]
    assert "--rows is 'x'" in fail("withdraw", "--log", log, "--rows", "x")
    lines = run("log", "--log", log).splitlines()
    assert [line.split("  ")[1:] for line in lines[-3:]] == [
        ["bob", f"taught 1 rows: {rows[2]} as 1"],
        ["bob", f"corrected 1 rows: {rows[0]} as 0"],
        ["ann", f"withdrawn 2 rows: {rows[1]}, {rows[2]}"],
    ]


def test_rows_that_nobody_can_tell(data, files, tmp_path):
    log, out, rows = begun(data, files)
    write(out, {rows[0]: "a", rows[1]: "?", rows[2]: "-", rows[3]: "- blurred, torn"})
    out.write_text(out.read_text().replace("- blurred, torn", '"- blurred, torn"'))
    said = run("tell", "--log", log, "--labels", out, "--by", "ann")
    assert "1 labels told, 2 skipped, 1 unsure, 1 in all; 8 rows are open" in said
    before = log.read_bytes()
    assert "0 labels told, 1 in all" in run("tell", "--log", log, "--labels", out, "--by", "ann")
    assert log.read_bytes() == before
    ledger = resume(log).ledger
    assert ledger.skipped == {rows[2]: "", rows[3]: "blurred, torn"}
    assert ledger.undecided == {rows[1]: {"ann"}}
    run("ask", *files)  # all of the file was told
    assert asked(out) == rows[4:]
    assert "blurred, torn" in run("log", "--log", log)


def test_such_labels_that_are_classes(data, files):
    log, out, rows = begun(data, files, "--classes", "?,-,+")
    run("tell", "--log", log, "--labels", write(out, {rows[0]: "?", rows[1]: "-"}))
    assert resume(log).labels_.tolist() == ["?", "-"]


def test_an_invalid_file_records_nothing(data, files):
    log, out, rows = begun(data, files, "--classes", "a,b")
    run("tell", "--log", log, "--labels", write(out, {rows[0]: "a"}))
    before = log.read_bytes()
    write(out, {rows[1]: "b", rows[2]: "?", rows[0]: "c"})
    assert "none of the classes" in fail("tell", "--log", log, "--labels", out, "--correct")
    assert log.read_bytes() == before


def test_settings_change_and_the_pool_grows(data, files, blobs, tmp_path):
    array = zarr.create_array(tmp_path / "pool", data=blobs[0][:100], chunks=(30, 4))
    log = files[1]
    run("ask", *files, "--x", tmp_path / "pool", *SMALL)
    label(files[3], blobs[1], 2)
    run("tell", "--log", log, "--labels", files[3])
    run("ask", *files, "--more", "--batch-size", 7, "--strategy", "random")
    assert len(asked(files[3])) == 10 + 7
    array.append(blobs[0][100:160])
    assert "distboost active ask --extend" in fail("ask", *files, "--more")
    run("ask", *files, "--extend", "--more")
    status = " ".join(run("status", "--log", log).split())
    assert "160 of 4 features" in status
    assert "batch_size=7" in status
    assert "extended 160" in run("log", "--log", log)


def test_rows_that_two_people_label(data, files, tmp_path):
    log, out, rows = begun(data, files, "--by", "ann", "--classes", "a,b")
    run("tell", "--log", log, "--labels", write(out, dict(zip(rows, "ab" * 6, strict=True))), "--by", "ann")
    bob = tmp_path / "bob.csv"
    assert "--overlap goes with --by" in fail("ask", "--log", log, "--out", bob, "--overlap", 1, code=2)
    run("ask", "--log", log, "--out", bob, "--by", "bob", "--overlap", 1)
    again = asked(bob)
    assert set(again) <= set(rows)
    labels = dict(zip(again, "baaa", strict=True))
    said = run("tell", "--log", log, "--labels", write(bob, labels), "--by", "bob")
    assert "0 labels told, 4 second opinions, 12 in all" in said
    before = log.read_bytes()
    run("tell", "--log", log, "--labels", bob, "--by", "bob")
    run("ask", "--log", log, "--out", bob, "--by", "bob")  # all of the file was told
    assert log.read_bytes().startswith(before)
    known = resume(log).ledger
    differ = [row for row in rows if row in labels and known.labelled[row] != labels[row]]
    assert known.conflicts == differ
    status = " ".join(run("status", "--log", log).split())
    assert "ann and bob: kappa" in status
    assert "on 4 rows" in status
    assert "people differ" in status
    carol = tmp_path / "carol.csv"
    run("ask", "--log", log, "--out", carol, "--by", "carol", "--conflicts")
    assert asked(carol) == differ
    assert sheet(carol)[1][2].startswith("ann: ")
    run(
        "tell",
        "--log",
        log,
        "--labels",
        write(carol, dict.fromkeys(differ, "b")),
        "--by",
        "carol",
        "--correct",
    )
    assert resume(log).ledger.conflicts == []
    assert "people differ" not in run("status", "--log", log)
    assert "no row on which people differ" in fail(
        "ask", "--log", log, "--out", carol, "--by", "carol", "--conflicts"
    )


# Other programs.


@pytest.mark.parametrize("kind", ["csv", "parquet", "json"])
def test_exported_labels_are_imported(kind, data, files, blobs, tmp_path):
    log, out, rows = begun(data, files)
    write(out, dict(zip(rows, np.array(["a b", "c", "007"])[blobs[1][rows]], strict=True)))
    run("tell", "--log", log, "--labels", out, "--by", "ann")
    exported = tmp_path / f"labels.{kind}"
    assert "12 labels in" in run("export", "--log", log, "--out", exported)
    assert "already" in fail("export", "--log", log, "--out", exported)
    other = tmp_path / "other.log"
    run(
        "ask", "--log", other, "--out", tmp_path / "other.csv", "--x", data / "x", *SMALL, "--random-state", 5
    )
    assert "12 labels told" in run("import", "--log", other, "--labels", exported, "--by", "bob")
    found = resume(other)
    assert (
        dict(zip(found.labelled_.tolist(), found.labels_.tolist(), strict=True))
        == resume(log).ledger.labelled
    )
    before = other.read_bytes()
    run("import", "--log", other, "--labels", exported)
    assert other.read_bytes() == before


def test_what_is_exported(data, files, tmp_path):
    log, out, rows = begun(data, files)
    run("tell", "--log", log, "--labels", write(out, {rows[0]: "=x", rows[1]: "b"}), "--by", "ann")
    for kind in ("csv", "parquet", "json"):
        run("export", "--log", log, "--out", tmp_path / f"l.{kind}")
    with open(tmp_path / "l.csv", newline="") as file:
        sheet = list(csv.DictReader(file))
    table = pyarrow.parquet.read_table(tmp_path / "l.parquet").to_pylist()
    objects = json.loads((tmp_path / "l.json").read_text())
    assert table == objects
    assert [(entry["row"], entry["label"], entry["by"]) for entry in objects] == [
        (rows[0], "=x", "ann"),
        (rows[1], "b", "ann"),
    ]
    assert objects[0]["at"].startswith("20")
    assert [line["label"] for line in sheet] == ["'=x", "b"]


def task(row, *choices, name="row", **more):
    results = [
        {"type": "choices", "from_name": "c", "to_name": "t", "value": {"choices": [c]}} for c in choices
    ]
    return {
        "id": 1,
        "data": {name: row, "text": "t"},
        "annotations": [{"result": results, "completed_by": 1, **more}],
    }


def test_label_studio(data, files, tmp_path):
    log, _, _ = begun(data, files)
    path = tmp_path / "project.json"
    path.write_text(
        json.dumps([task(3, "cat"), task(150, "dog"), task(9), task(4, "cat", was_cancelled=True)])
    )
    run("import", "--log", log, "--labels", path, "--by", "ann")
    assert resume(log).ledger.labelled == {3: "cat", 150: "dog"}
    path.write_text(json.dumps([task(3, "cat", "dog")]))
    assert "row 3 as 'dog'" in fail("import", "--log", log, "--labels", path, "--correct").replace(
        "labels ", ""
    )


@pytest.mark.parametrize("form", ["zarr", "parquet", "numbers"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "json", "tasks.json"])
def test_labels_by_key(kind, form, data, files, tmp_path):
    log, _, _ = begun(data, files)
    keys = [5 * row for row in range(160)] if form == "numbers" else [f"case {row}" for row in range(160)]
    at = tmp_path / ("keys.parquet" if form == "parquet" else "keys")
    if form == "parquet":
        pyarrow.parquet.write_table(pa.table({"x": keys, "Case": keys}), at, row_group_size=30)
    else:
        zarr.create_array(at, data=np.array(keys, None if form == "numbers" else "T"), chunks=(30,))
    labels = {keys[150]: "a", keys[3]: "b"}
    path = tmp_path / f"labels.{kind}"
    if kind == "csv":
        write(path, labels, "Case,label")
    elif kind == "parquet":
        pyarrow.parquet.write_table(pa.table({"Case": [*labels], "label": [*labels.values()]}), path)
    elif kind == "json":
        path.write_text(json.dumps([{"Case": key, "label": label} for key, label in labels.items()]))
    else:
        path.write_text(json.dumps([task(key, label, name="Case") for key, label in labels.items()]))
    given = ("import", "--log", log, "--labels", path)
    assert "2 labels told" in run(*given, "--key", "Case", "--keys", at)
    assert resume(log).ledger.labelled == {150: "a", 3: "b"}
    assert "--key and --keys go together" in fail(*given, "--key", "Case", code=2)


def test_keys_that_cannot_be(data, files, tmp_path):
    log, _, _ = begun(data, files)
    path, before = write(tmp_path / "labels.csv", {"a": 1, "z": 2}, "id,label"), log.read_bytes()
    keys = {
        "few": (["a", "z"], "has 2 keys, but the pool has 160 rows"),
        "twice": (["z", "a", *"z" * 158], "rows 0 and 2 of .*twice have the key 'z'"),
        "none": (["a", *"b" * 159], "labels 'z' and 0 others that are no keys"),
    }
    for name, (values, message) in keys.items():
        zarr.create_array(tmp_path / name, data=np.array(values, "T"))
        assert re.search(
            message, fail("import", "--log", log, "--labels", path, "--key", "id", "--keys", tmp_path / name)
        )
    pyarrow.parquet.write_table(pa.table({"x": [1]}), tmp_path / "k.parquet")
    assert "but no 'id'" in fail(
        "import", "--log", log, "--labels", path, "--key", "id", "--keys", tmp_path / "k.parquet"
    )
    assert "expected 'name' and 'label'" in fail(
        "import", "--log", log, "--labels", path, "--key", "name", "--keys", tmp_path / "few"
    )
    assert log.read_bytes() == before


FILES = {
    "no columns.parquet": (pa.table({"x": [1]}), "expected 'row' and 'label'"),
    "no.parquet": (b"PAR1", "is not a Parquet file"),
    "no.json": (b"{", "is not JSON of labels"),
    "number.json": (b"3", "is not JSON of labels"),
    "tasks.json": (b'[{"annotations": [{"result": [{"type": "choices"}]}]}]', "is not JSON of labels"),
    "other.json": (b'[{"row": "x", "label": 1}]', "expected its number in the pool"),
    "outside.json": (b'[{"row": 160, "label": 1}]', "row 160, which is not in the pool"),
    "nested.json": (b'[{"row": 1, "label": ["a"]}, {"row": 1, "label": 2}]', "Keep one"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_imported(name, data, files, tmp_path):
    log, _, _ = begun(data, files)
    content, message = FILES[name]
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        pyarrow.parquet.write_table(content, tmp_path / name)
    before = log.read_bytes()
    assert message in fail("import", "--log", log, "--labels", tmp_path / name)
    assert log.read_bytes() == before
    assert "no file of labels" in fail(
        "import", "--log", log, "--labels", tmp_path / f"none{os.path.splitext(name)[1]}"
    )
