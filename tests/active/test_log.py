"""The log: what is in it, and what may be wrong with it."""

from __future__ import annotations

import json
import os
import resource
import threading
from pathlib import Path

import numpy as np
import pytest

from distboost import GDMCBoostClassifier
from distboost.active import resume
from distboost.errors import DataError, StoreError
from tests.active.sessions import asked, committee, learner, state


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def test_a_line_for_whatever_happens(problem, log, clock):
    X, y = problem
    found = learner(X, log=log)
    rows = found.query().tolist()
    found.teach(rows, y[rows])
    header, first, second = [json.loads(line[9:]) for line in log.read_text().splitlines()]
    assert header["pool"] == [300, 6]
    assert header["algorithm"] == "gamble"
    assert first == {"asked": rows, "at": 1.8e9}
    assert second == {"taught": {"rows": rows, "labels": y[rows].tolist()}, "at": 1.8e9}


@pytest.mark.parametrize(
    "labels",
    [[3, 1], [True, False], ["β\n", 'a"\u2028'], [2.0, 1.0], [2**60 + 1, 3], np.array([7, 250], np.uint8)],
    ids=str,
)
def test_labels_of_every_kind_come_back(labels, problem, log, tmp_path):
    found = learner(problem[0], log=log).teach([2, 1], labels)
    found.save(tmp_path / "saved")
    for again in (learner(problem[0], log=log), learner(problem[0], log=tmp_path / "saved")):
        assert again.labels_.tolist() == found.labels_.tolist() == list(labels)
        assert again.labels_.dtype == found.labels_.dtype
        assert again.query().tolist() == learner(problem[0]).teach([2, 1], labels).query().tolist()


def test_saved_is_the_log(problem, log, tmp_path, clock):
    found = learner(problem[0], log=log)
    asked(found, problem[1])
    found.save(f"file://{tmp_path}/saved")
    assert (tmp_path / "saved").read_bytes() == log.read_bytes()
    without = learner(problem[0])
    asked(without, problem[1])
    without.save(tmp_path / "without")
    assert (tmp_path / "without").read_bytes() == log.read_bytes()


def test_a_log_is_continued(problem, log):
    X, y = problem
    whole = learner(X)
    expected = asked(whole, y, 4)
    for i in range(4):  # an object for each query
        assert asked(learner(X, log=log), y, 1) == expected[i : i + 1]
    assert state(learner(X, log=log)) == state(whole)


def test_the_folder_is_made(problem, tmp_path):
    learner(problem[0], log=tmp_path / "a" / "b" / "log")
    assert (tmp_path / "a" / "b" / "log").exists()


# Of other work.

OTHERS = {
    "seed": ({"random_state": 1}, r"its random_state is 0, not 1"),
    "start": ({"start": "random"}, r"its start is 'kmeans', not 'random'"),
    "classes": ({"classes": [0, 1]}, r"its classes is None, not \[0, 1\]"),
    "algorithm": (
        {"estimator": GDMCBoostClassifier()},
        r"its algorithm is 'gamble', not 'gd-mcboost'",
    ),
    "parameters": (
        {"estimator": committee(7)},
        r"its n_estimators is 3, not 7",
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_of_other_work(kind, problem, log):
    asked(learner(problem[0], log=log), problem[1], 1)
    content = log.read_bytes()
    parameters, message = OTHERS[kind]
    with pytest.raises(
        DataError, match=rf"the log .*log belongs to other work: {message}\. Set it to that, or begin a new"
    ):
        learner(problem[0], log=log, **parameters)
    assert log.read_bytes() == content


def test_of_another_pool(problem, log):
    learner(problem[0], log=log)
    with pytest.raises(DataError, match=r"belongs to other work: its pool is \[300, 6\], not \[299, 6\]"):
        learner(problem[0][:-1], log=log)


def test_where_it_runs_is_not_what_it_does(problem, log):
    learner(problem[0], log=log)
    learner(problem[0], committee(n_jobs=2, verbose=1, client=object()), verbose=1, log=log)


# Damaged.


def test_a_damaged_line(problem, log):
    """Any byte of a line that is not the last one."""
    asked(learner(problem[0], log=log), problem[1], 2)
    content = log.read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == 10]
    assert len(ends) == 5
    rng = np.random.default_rng(0)
    for line, (first, end) in enumerate(zip([0, *ends], ends, strict=False), 1):
        for place in {first, first + 9, *rng.integers(first, end - 1, 4).tolist()}:
            damaged = bytearray(content)
            damaged[place] ^= 1
            log.write_bytes(damaged)
            with pytest.raises(
                StoreError, match=rf"line {line} of .*log is damaged, .*Restore it from a copy, or"
            ):
                learner(problem[0], log=log)
            assert log.read_bytes() == damaged


@pytest.mark.parametrize(
    "content", [b"my notes", b"my notes\n", b"\nmy notes\n", b"{}", b"\x00" * 40, b"0 {}\n", b"PK\x03\x04"]
)
def test_a_file_that_is_not_a_log_stays(content, problem, log):
    log.write_bytes(content)
    with pytest.raises(StoreError, match=r"line 1 of .*log is damaged, or this is no log of labels"):
        learner(problem[0], log=log)
    with pytest.raises(StoreError if b"\n" in content else DataError, match="no log of labels"):
        resume(log, problem[0])
    assert log.read_bytes() == content


def test_a_header_that_was_not_finished(problem, log):
    learner(problem[0], log=log)
    content = log.read_bytes()
    for n in (0, 1, 8, 9, 60, len(content) - 1):
        log.write_bytes(content[:n])
        learner(problem[0], log=log)
        assert log.read_bytes() == content


# Written by another.


def test_one_of_several_writers_at_once_succeeds(problem, log):
    X, y = problem
    learner(X, log=log)
    for round in range(5):
        found = [learner(X, log=log) for _ in range(6)]
        together, said = threading.Barrier(6), []

        def teach(one, round=round, together=together, said=said):
            together.wait()
            try:
                one.teach([round], y[[round]])
            except DataError as error:
                said.append(str(error))

        threads = [threading.Thread(target=teach, args=(one,)) for one in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(said) == 5
        assert learner(X, log=log).labelled_.tolist() == list(range(round + 1))


def test_a_second_writer_waits(problem, log):
    fcntl = pytest.importorskip("fcntl")
    found = learner(problem[0], log=log)
    thread = threading.Thread(target=found.query)
    with open(log, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        assert found.n_queries_ == 0
    thread.join(30)
    assert found.n_queries_ == 1


# Disks.


@pytest.fixture
def largest_file():
    """largest_file(bytes): no file of this process may be larger; None: as before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(n: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft if n is None else n, hard))

    yield limit
    limit(None)


@pytest.mark.parametrize("room", [0, 1, 30])
def test_a_line_that_does_not_fit(room, problem, log, largest_file):
    """Some of it does: that is taken back. Nothing was asked, or taught."""
    X, y = problem
    found = learner(X, log=log)
    rows = found.query()
    before, content = state(found), log.read_bytes()
    for call in (found.query, lambda: found.teach(rows, y[rows])):
        largest_file(len(content) + room)
        with pytest.raises(
            StoreError, match=r"the log .*log cannot be written: .*File too large.*Nothing of this was k"
        ):
            call()
        largest_file(None)
        assert state(found) == before
        assert log.read_bytes() == content
        assert state(learner(X, log=log)) == before
    found.teach(rows, y[rows])
    assert state(learner(X, log=log)) == state(found)


def test_a_log_that_does_not_even_begin(problem, log, largest_file):
    largest_file(10)
    with pytest.raises(StoreError, match=r"the log .*log cannot be written: .*File too large"):
        learner(problem[0], log=log)
    largest_file(None)
    assert log.read_bytes() == b""
    learner(problem[0], log=log).query()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc here")
def test_a_folder_that_cannot_be_written_to(problem):
    """Where nobody may make a file, not even the administrator."""
    with pytest.raises(
        StoreError, match=r"the log /proc/self/log cannot be written: .*Nothing of this was kept"
    ):
        learner(problem[0], log="/proc/self/log")


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write anywhere")
def test_a_file_that_may_not_be_written(problem, log):
    found = learner(problem[0], log=log)
    log.chmod(0o400)
    with pytest.raises(StoreError, match=r"the log .*log cannot be written: .*Permission denied"):
        found.query()
    assert found.n_queries_ == 0
    log.chmod(0o600)
    assert len(found.query()) == 20


def test_a_folder_as_a_log_is_refused(problem, tmp_path):
    with pytest.raises(StoreError, match=r"the log .* cannot be read: IsADirectoryError.*Pass a file"):
        learner(problem[0], log=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(
        StoreError, match=r"the log .*file/log cannot be (read|written): .*(Not a directory|exists)"
    ):
        learner(problem[0], log=tmp_path / "file" / "log")
