"""Logs that the commands of active learning are given: none, of other work, no logs, cut off, or with nothing left to ask."""

from __future__ import annotations

import json

import pytest
import zarr

import distboost
from distboost.active import QueryByCommittee, resume
from distboost.active.records import to_line
from tests.active.commands import SMALL, asked, begun, fail, label, run


def test_no_log(data, files, tmp_path):
    assert "--x" in fail("ask", *files)
    for command in (
        ("tell", "--labels", tmp_path / "ask.csv"),
        ("status",),
        ("model", "--model", tmp_path / "m"),
    ):
        assert "no log of labels" in fail(*command, "--log", files[1])
    assert not files[1].exists()


def test_a_strategy_that_is_gone(data, files):
    log, _, _ = begun(data, files)
    header, *others = log.read_text().splitlines()
    log.write_text("\n".join([to_line({**json.loads(header[9:]), "strategy": "votes"})[:-1], *others, ""]))
    assert "asks by votes" in (error := fail("ask", *files, "--more"))
    assert error.endswith("or one of these: --strategy")
    run("ask", *files, "--more", "--strategy", "margin")


def test_no_committee_yet(data, files, tmp_path):
    log, _, _ = begun(data, files)
    assert "at least 2 classes" in fail("model", "--log", log, "--model", tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--start", "random"), "'kmeans', not 'random'"),
        (("--n-initial", 5), "--n-initial is 12, not 5"),
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
