"""Active learning on the command line, with real files: rows are asked for, labels told, and the work is that done in Python."""

from __future__ import annotations

import inspect

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distboost
from distboost.active import QueryByCommittee, resume
from distboost.active.strategies import STRATEGIES
from distboost.cli import active_options
from tests.active.commands import SMALL, asked, begun, fail, label, run, sheet

NAMES = np.array(["blue", "green", "red"])


def test_strategies_and_defaults_are_those_of_the_library():
    """But for the audit: who labels on the command line has no test set."""
    assert active_options.STRATEGIES == STRATEGIES
    parameters = inspect.signature(QueryByCommittee).parameters
    defaults = {name: parameters[name].default for name in active_options.DEFAULTS}
    assert defaults | {"audit": 0.1} == defaults | active_options.OWN_DEFAULTS == active_options.DEFAULTS


def test_ask_and_tell_as_in_python(data, files, blobs, tmp_path, saved):
    """Rows, labels and model are those of the same work done in Python."""
    y = NAMES[blobs[1]]
    log, out, rows = begun(data, files)
    estimator = distboost.GAMBLEClassifier(n_estimators=6, max_leaf_nodes=3)
    learner = QueryByCommittee(estimator, f"{data}/x", n_initial=12, batch_size=4, audit=0.1)
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
    told = run("tell", "--log", files[1], "--labels", files[3])
    assert "12 labels told" in told
    assert "Classes: 0, 1, 2" in told


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


def test_labels_are_not_overwritten_though_the_log_is_gone(data, files, blobs):
    log, out, _ = begun(data, files)
    label(out, blobs[1], 2)
    log.unlink()
    before = out.read_bytes()
    assert "2 labels that were not told" in fail("ask", *files, "--x", data / "x", *SMALL)
    assert out.read_bytes() == before
    assert not log.exists()


def test_a_label_changed_after_tell_is_not_overwritten(data, files, blobs):
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


def test_a_pool_of_parquet(data, files, blobs, tmp_path):
    """Its columns are named; the log knows where it is."""
    X, y = blobs
    table = pa.table({name: pa.array(X[:160, d], from_pandas=True) for d, name in enumerate("abcd")})
    pq.write_table(table, tmp_path / "pool.parquet", row_group_size=30)
    run("ask", *files, "--x", tmp_path / "pool.parquet", *SMALL)
    out = files[3]
    assert sheet(out)[0] == ["row", "label", *"abcd"]
    label(out, y)
    run("tell", "--log", files[1], "--labels", out)
    run("ask", *files)
    estimator = distboost.GAMBLEClassifier(n_estimators=6, max_leaf_nodes=3)
    learner = QueryByCommittee(estimator, f"{data}/x", n_initial=12, batch_size=4)
    rows = learner.query()
    assert asked(out) == learner.teach(rows, y[rows]).query().tolist()
