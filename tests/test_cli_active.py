"""Active learning on the command line, with real files and, where it matters, real processes."""

from __future__ import annotations

import csv
import inspect
import json
import re
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from distributed import LocalCluster

import distboost
from distboost.active import QueryByCommittee, learning_curves, resume
from distboost.active.strategies import STRATEGIES
from distboost.cli import active_options, main
from tests.programs import Program

NAMES = np.array(["blue", "green", "red"])
SMALL = ("--n-initial", 12, "--batch-size", 4, "--set", "n_estimators=6", "--set", "max_leaf_nodes=3")


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    """A folder with a pool x of 160 rows, its labels y, the others as eval-x and eval-y, and names of features."""
    X, y = blobs
    folder = tmp_path_factory.mktemp("data")
    arrays = {"x": X[:160], "y": y[:160], "eval-x": X[160:], "eval-y": y[160:]}
    for name, values in arrays.items():
        zarr.create_array(folder / name, data=values, chunks=(30, *values.shape[1:]))
    named = zarr.create_array(folder / "named", data=X[:160].astype("f4"), chunks=(30, 4))
    named.attrs["feature_names"] = ["length", "width", "height", "row"]
    return folder


@pytest.fixture
def files(tmp_path):
    """The options --log and --out of a new log."""
    return ("--log", tmp_path / "labels.log", "--out", tmp_path / "ask.csv")


def run(*arguments: object) -> str:
    """The output of a command that succeeds."""
    result = CliRunner().invoke(main, ["active", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments: object, code: int = 1) -> str:
    """The error of a command that fails: one line."""
    result = CliRunner().invoke(main, ["active", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    return result.stderr.splitlines()[-1]


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


# What is written here a second time, so that --help is quick


def test_strategies_and_defaults_are_those_of_the_library():
    assert active_options.STRATEGIES == STRATEGIES
    parameters = inspect.signature(QueryByCommittee).parameters
    defaults = {name: parameters[name].default for name in active_options.DEFAULTS}
    assert defaults == active_options.DEFAULTS


# Ask and tell


def test_ask_and_tell_as_in_python(data, files, blobs, tmp_path, saved):
    """Rows, labels and model are those of the same work done in Python."""
    y = NAMES[blobs[1]]
    log, out, rows = begun(data, files)
    estimator = distboost.GAMBLEClassifier(n_estimators=6, max_leaf_nodes=3)
    learner = QueryByCommittee(estimator, f"{data}/x", n_initial=12, batch_size=4)
    for _ in range(3):
        rows = learner.query()
        assert asked(out) == rows.tolist()
        learner.teach(rows, y[rows])
        label(out, y)
        assert "0 rows are open" in run("tell", "--log", log, "--labels", out)
        run("ask", *files)
    write = ("model", "--log", log, "--model", tmp_path / "model")
    run(*write)
    assert (tmp_path / "model").read_bytes() == saved(learner.estimator_)
    (tmp_path / "model").write_bytes(b"another")
    assert f"there is a file at {tmp_path / 'model'} already" in fail(*write)
    assert (tmp_path / "model").read_bytes() == b"another"
    run(*write, "--overwrite")
    assert (tmp_path / "model").read_bytes() == saved(learner.estimator_)


def test_values_are_written_to_look_at(data, files, blobs):
    X = blobs[0]
    _, out, rows = begun(data, files)
    lines = sheet(out)
    assert lines[0] == ["row", "label", "x0", "x1", "x2", "x3"]
    assert {line[1] for line in lines[1:]} == {""}
    values = np.array([[float(cell or "nan") for cell in line[2:]] for line in lines[1:]])
    np.testing.assert_array_equal(values, X[rows])


def test_features_have_the_names_that_the_array_has(data, files, blobs):
    """Even if one is named as our column is; and a number of 32 bits is written as one."""
    run("ask", *files, "--x", data / "named", *SMALL)
    lines = sheet(files[3])
    assert lines[0] == ["row", "label", "length", "width", "height", "row"]
    values = np.array([[np.float32(cell or "nan") for cell in line[2:]] for line in lines[1:]])
    np.testing.assert_array_equal(values, blobs[0][asked(files[3])].astype("f4"))
    assert max(len(line[2]) for line in lines[1:]) <= 13
    label(files[3], blobs[1])
    assert "12 labels told" in run("tell", "--log", files[1], "--labels", files[3])


def test_wide_pools_without_values(data, files):
    begun(data, files, "--no-features")
    assert {len(line) for line in sheet(files[3])} == {2}


def test_open_rows_are_written_again(data, files, blobs, tmp_path):
    log, out, rows = begun(data, files)
    out.unlink()  # lost
    assert "12 of them asked before" in run("ask", *files)
    assert asked(out) == rows
    label(out, blobs[1], 9)
    assert "9 labels told, 9 in all; 3 rows are open" in run("tell", "--log", log, "--labels", out)
    run("ask", *files)
    assert asked(out) == rows[9:]
    assert "7 rows to label" in run("ask", *files, "--more")
    assert asked(out)[:3] == rows[9:]
    assert len(set(asked(out)) | set(rows)) == 12 + 4


def test_labels_filled_in_are_not_overwritten(data, files, blobs):
    log, out, _ = begun(data, files)
    label(out, blobs[1], 2)
    before = out.read_bytes(), log.read_bytes()
    error = fail("ask", *files, "--more")
    assert "2 labels that were not told" in error
    assert "--overwrite" in error
    assert (out.read_bytes(), log.read_bytes()) == before  # nothing was asked either
    run("tell", "--log", log, "--labels", out)
    run("ask", *files)  # all of them are told: nothing is lost
    label(out, blobs[1], 1)
    run("ask", *files, "--overwrite")
    assert {line[1] for line in sheet(out)[1:]} == {""}


def test_a_label_changed_after_it_was_told_is_not_overwritten(data, files, blobs):
    log, out, _ = begun(data, files)
    label(out, blobs[1])
    run("tell", "--log", log, "--labels", out)
    label(out, 1 + blobs[1])
    assert "12 labels that were not told" in fail("ask", *files)


@pytest.mark.parametrize("content", [b"my notes\n", b"\xff\xfe\x00", b""])
def test_other_files_are_not_overwritten(data, files, content):
    files[3].write_bytes(content)
    assert str(files[3]) in fail("ask", *files, "--x", data / "x", *SMALL)
    assert files[3].read_bytes() == content
    assert not files[1].exists()


def test_the_log_is_not_written_over(data, files):
    log, _, _ = begun(data, files)
    before = log.read_bytes()
    assert "is the log" in fail("ask", "--log", log, "--out", log, "--overwrite")
    assert "is the log" in fail("model", "--log", log, "--model", log)
    assert log.read_bytes() == before


def test_telling_twice_is_harmless(data, files, blobs):
    log, out, _ = begun(data, files)
    label(out, blobs[1], 5)
    run("tell", "--log", log, "--labels", out)
    before = log.read_bytes()
    assert "0 labels told, 5 in all; 7 rows are open" in run("tell", "--log", log, "--labels", out)
    assert log.read_bytes() == before
    label(out, blobs[1])
    assert "7 labels told, 12 in all; 0 rows are open" in run("tell", "--log", log, "--labels", out)


def test_tell_measures_the_committee(data, files, blobs):
    log, out, _ = begun(data, files)
    label(out, blobs[1])
    evaluation = ("--eval-x", data / "eval-x", "--eval-y", data / "eval-y")
    output = run("tell", "--log", log, "--labels", out, *evaluation)
    committee = resume(log).estimator_
    error = 1 - committee.score(blobs[0][160:], blobs[1][160:])
    assert f"error {error:.2%} on 80 rows" in output
    assert "go together" in fail("tell", "--log", log, "--labels", out, *evaluation[:2], code=2)


def test_status(data, files, blobs):
    log, out, rows = begun(data, files, "--classes", "0,1,2,7", "--set", "n_jobs=1")
    label(out, blobs[1], 10)
    run("tell", "--log", log, "--labels", out)
    before = log.read_bytes()
    output = run("status", "--log", log)
    assert log.read_bytes() == before
    for fact in (
        "160 of 4 features",
        "12 in 1 batches",
        "2 asked and not told",
        "gamble",
        "batch_size=4",
        "n_jobs=1",
    ):
        assert fact in " ".join(output.split())
    counts = np.bincount(blobs[1][rows[:10]], minlength=8)
    for name in (0, 1, 2, 7):
        assert any(line.split()[1:4:2] == [str(name), str(counts[name])] for line in output.splitlines()), (
            output
        )


# Labels are text in a file


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
def test_a_label_of_another_kind_than_those_before(data, files, taught, good, bad):
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


def test_classes_decide_of_what_kind_labels_are(data, files):
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


# What goes wrong: nothing is taught


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


def test_a_label_that_was_told_otherwise(data, files):
    log, out, rows = begun(data, files)
    run("tell", "--log", log, "--labels", write(out, {rows[0]: "a"}))
    before = log.read_bytes()
    error = fail("tell", "--log", log, "--labels", write(out, {rows[1]: "a", rows[0]: "b"}))
    assert f"row {rows[0]} as 'b'" in error
    assert "'a'" in error
    assert log.read_bytes() == before


def test_no_log(data, files, tmp_path):
    assert "--x" in fail("ask", *files)
    for command in (
        ("tell", "--labels", tmp_path / "ask.csv"),
        ("status",),
        ("model", "--model", tmp_path / "m"),
    ):
        assert "no log of labels" in fail(*command, "--log", files[1])
    assert not files[1].exists()


def test_no_committee_yet(data, files, tmp_path):
    log, _, _ = begun(data, files)
    assert "at least 2 classes" in fail("model", "--log", log, "--model", tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--strategy", "random"), "'margin', not 'random'"),
        (("--batch-size", 5), "batch_size is 4, not 5"),
        (("--set", "n_estimators=7"), "n_estimators is 6, not 7"),
        (("--algorithm", "rebel"), "belongs to gamble, not to rebel"),
        (("--classes", "a,b"), "classes is None, not ['a', 'b']"),
        (("--set", "n_estimatorz=7"), "unknown parameter"),
        (("--x", "eval-x"), "pool is [160, 4], not [80, 4]"),
        (("--x", "none"), "no zarr array"),
    ],
)
def test_a_log_of_other_work(data, files, options, message):
    log, _, _ = begun(data, files)
    before = log.read_bytes()
    options = (options[0], data / options[1]) if options[0] == "--x" else options
    assert message in fail("ask", *files, *options)
    assert log.read_bytes() == before


def test_the_pool_may_be_elsewhere_and_the_estimator_run_otherwise(data, files, blobs, tmp_path):
    log, _, rows = begun(data, files, "--set", "n_jobs=1")
    zarr.create_array(tmp_path / "moved", data=blobs[0][:160])
    run("ask", *files, "--x", tmp_path / "moved", "--set", "n_jobs=2")
    before = log.read_bytes()
    learner = resume(log)
    assert str(tmp_path / "moved") in learner.pool.place
    assert learner.estimator.n_jobs == 2
    assert learner.asked_.tolist() == rows
    assert log.read_bytes() == before  # what is known is not noted again


@pytest.mark.parametrize("content", [b"hello", b"hello\nworld\n", b"{}", b"\x89PNG\r\n\x1a\n\x00"])
def test_another_file_than_a_log(data, files, content):
    """It is left as it is, in particular one that has no end of a line, as a log that was cut off has none."""
    files[1].write_bytes(content)
    for command in (("ask", *files, "--x", data / "x", *SMALL), ("status", "--log", files[1])):
        assert "no log of labels" in fail(*command)
    assert files[1].read_bytes() == content


def test_a_log_of_python_says_no_place(blobs, files):
    estimator = distboost.GAMBLEClassifier(n_estimators=3)
    QueryByCommittee(estimator, blobs[0], n_initial=5, log=files[1]).query()
    assert "does not say where its pool is" in fail("ask", *files)


def test_an_interrupted_beginning_is_begun_again(data, files):
    log, out, rows = begun(data, files)
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0][:-20])
    run("ask", *files, "--x", data / "x", *SMALL)
    assert asked(out) == rows


def test_everything_was_asked(data, files, tmp_path, blobs):
    zarr.create_array(tmp_path / "few", data=blobs[0][:12])
    log, out, _ = files[1], files[3], run("ask", *files, "--x", tmp_path / "few", *SMALL)
    assert "no row is left" in fail("ask", *files, "--more")
    label(out, blobs[1])
    run("tell", "--log", log, "--labels", out)
    assert "12 of the 12 rows" in fail("ask", *files)


# Processes


# The process kills itself as soon as the log knows what is asked.
KILLED = """
import os, signal
from distboost.active import ledger
append = ledger.LabelLog.append
def killing(log, record):
    append(log, record)
    with open(log.path, "rb") as file:
        if b'"asked"' in file.read():
            os.kill(os.getpid(), signal.SIGKILL)
ledger.LabelLog.append = killing
"""
# Ctrl-C while a committee is trained.
INTERRUPTED = """
import os, signal
from distboost.runtime.shard import Shard
update, n_updates = Shard.update, 0
def interrupting(*arguments):
    global n_updates
    n_updates += 1
    if n_updates == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return update(*arguments)
Shard.update = interrupting
"""


def process(*arguments: object, before: str = "") -> tuple[int, str]:
    """The exit status, and what was said on the standard error."""
    done = Program(f"{before}\nfrom distboost.cli import main; main()", "active", *arguments)
    _, errors = done.communicate(timeout=60)
    return done.returncode, errors


def test_killed_between_ask_and_tell(data, tmp_path, blobs):
    """Killed as soon as the log knows what is asked, the CSV file or not: no row is lost, and the end is the same."""
    y = blobs[1]

    def work(folder: Path, kill: bool) -> bytes:
        folder.mkdir()
        files = ("--log", folder / "labels.log", "--out", folder / "ask.csv")
        log, out = files[1], files[3]
        begin = ("ask", *files, "--x", data / "x", *SMALL)
        if kill:
            status, errors = process(*begin, before=KILLED)
            assert status == -signal.SIGKILL, errors
            with open(log, "ab") as file:  # and so did one that was about to say more
                file.write(b'0123abcd {"tau')
            status, errors = process("ask", *files)
            assert status == 0, errors
        else:
            run(*begin)
        label(out, y)
        run("tell", "--log", log, "--labels", out)
        run("ask", *files)
        return out.read_bytes()

    assert work(tmp_path / "killed", True) == work(tmp_path / "whole", False)


def test_control_c(data, tmp_path):
    status, errors = process(
        *simulate(data, "--repeats", 10000, "--json", tmp_path / "json"), before=INTERRUPTED
    )
    assert status == 130, errors
    assert errors.strip().splitlines()[-1] == "Aborted!"
    assert "/distboost/" not in errors  # Python tells of a destructor of others that was interrupted
    assert not (tmp_path / "json").exists()


def test_on_a_scheduler(data, files, blobs, tmp_path):
    log, out, _ = begun(data, files)
    label(out, blobs[1])
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        where = ("--scheduler", cluster.scheduler_address)
        evaluation = ("--eval-x", data / "eval-x", "--eval-y", data / "eval-y")
        far = run("tell", "--log", log, "--labels", out, *evaluation, *where)
        log_here = tmp_path / "here.log"
        log_here.write_bytes(log.read_bytes())
        run("ask", *files, *where)
        run("model", "--log", log, "--model", tmp_path / "far", *where)
    assert (
        far.splitlines()[-1] == run("tell", "--log", log_here, "--labels", out, *evaluation).splitlines()[-1]
    )
    run("ask", "--log", log_here, "--out", tmp_path / "here.csv")
    assert out.read_bytes() == (tmp_path / "here.csv").read_bytes()
    run("model", "--log", log_here, "--model", tmp_path / "here")
    assert (tmp_path / "far").read_bytes() == (tmp_path / "here").read_bytes()


# Where labels are known


def simulate(data, *more: object) -> tuple:
    arrays = (word for name in ("x", "y", "eval-x", "eval-y") for word in (f"--{name}", data / name))
    return ("simulate", *arrays, *SMALL, *more)


def test_simulate(data, tmp_path, blobs):
    X, y = blobs
    files = ("--json", tmp_path / "curves.json", "--plot", tmp_path / "curve.svg")
    pytest.importorskip("matplotlib")
    output = run(
        *simulate(
            data,
            "--repeats",
            2,
            "--max-labels",
            24,
            "--target-error",
            0.2,
            "--strategies",
            "margin,votes",
            *files,
        )
    )
    estimator = distboost.GAMBLEClassifier(n_estimators=6, max_leaf_nodes=3)
    expected = learning_curves(estimator, X[:160], y[:160], (X[160:], y[160:]), n_initial=12, batch_size=4,
                               strategies=("margin", "votes"), n_repeats=2, max_labels=24, target_error=0.2)  # fmt: skip
    found = json.loads((tmp_path / "curves.json").read_text())
    assert list(found) == ["margin", "votes"]
    for strategy, repeats in expected.items():
        for curve, known in zip(found[strategy], repeats, strict=True):
            assert curve["n_labelled"] == known.n_labelled.tolist()
            assert curve["error"] == known.error.tolist()
            assert curve["outcome"] == known.outcome
        reached = sum(curve.labels_to(0.2) is not None for curve in repeats)
        mean = np.mean([100 * curve.error[-1] for curve in repeats])
        [row] = [line for line in output.splitlines() if strategy in line]
        assert f"{mean:.2f} ±" in row
        assert f"{reached} of 2" in row
    assert "</svg>" in (tmp_path / "curve.svg").read_text()


@pytest.mark.parametrize(("option", "name"), [("--json", "curves.json"), ("--plot", "curve.svg")])
def test_curves_that_are_there_are_not_replaced(data, tmp_path, option, name):
    """Which is seen before anything is measured."""
    (tmp_path / name).write_text("an earlier one")
    short = simulate(data, "--repeats", 1, "--max-labels", 16, option, tmp_path / name)
    if option == "--plot":
        pytest.importorskip("matplotlib")
    assert f"there is a file at {tmp_path / name} already" in fail(*short)
    assert (tmp_path / name).read_text() == "an earlier one"
    run(*short, "--overwrite")
    assert (tmp_path / name).read_text() != "an earlier one"


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (("--strategies", "margin,best"), "'best'", 2),
        (("--strategies", "margin,margin"), "'margin'", 2),
        (("--plot", "curve.txt"), "curve.txt", 2),
        (("--json", "/none/curves.json"), "/none", 1),
        (("--set", "n_estimators=0"), "n_estimators", 1),
        (("--target-error", "5"), "fraction", 1),
        (("--n-initial", "161"), "160", 1),
        (("--pool-fraction", "0"), "pool_fraction", 1),
        (("--random-state", "-1"), "random_state", 1),
        (("--workers", "1", "--scheduler", "tcp://127.0.0.1:9"), "exclude", 1),
    ],
)
def test_simulations_that_cannot_be_right(data, options, message, code):
    assert message in fail(*simulate(data, *options), code=code)


def test_the_recipe_of_the_documentation_works(tmp_path, monkeypatch):
    """Block by block: that of the shell in this process, and that which stands for a person."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs/active-learning.md").read_text()
    recipe = page[page.index("## On the command line") :]
    commands = []
    for kind, block in re.findall(r"^```(python|bash)\n(.*?)^```$", recipe, re.MULTILINE | re.DOTALL):
        if kind == "python":
            exec(block, {})
            continue
        for line in block.splitlines():
            program, *arguments = shlex.split(line, comments=True)
            if "simulate" in arguments:  # as it is, it takes half a minute
                arguments += ["--repeats", "1", "--max-labels", "60"]
            result = CliRunner().invoke(main, arguments)
            assert result.exit_code == 0, result.output
            assert program == "distboost"
            commands.append(arguments[1])
    assert commands == ["ask", "tell", "ask", "status", "model", "--model", "simulate"]
    assert resume("digits.log").labelled_.shape == (50,)
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
