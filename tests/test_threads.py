"""Threads that share out items."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter

import pytest

from distboost import threads as threads_module
from distboost.threads import Threads, useful_threads

DEADLINE = 20.0


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    with Threads(request.param) as found:
        yield found


def test_results_come_in_the_order_of_the_items(threads):
    for n in (0, 1, 2, 3, 50):
        assert threads.map(lambda i: i * i, range(n)) == [i * i for i in range(n)]


def test_every_thread_takes_items_the_calling_one_too():
    """Each item but the last waits until another is under way: so two threads must share them, two and two."""
    together = threading.Barrier(2)
    workers = Counter()

    def meet(item):
        together.wait(DEADLINE)
        workers[threading.get_ident()] += 1

    with Threads(2) as threads:
        threads.map(meet, range(16))
    assert sorted(workers.values()) == [8, 8]
    assert threading.get_ident() in workers


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), (2, 2), (3, 3), (7, 3), (None, 3)])
def test_calls_at_once(at_once, most):
    """So many wait for each other; no more are begun before a result is taken."""
    together, begun = threading.Barrier(most), []

    def items():
        for item in range(6):
            begun.append(item)
            yield item

    with Threads(3) as threads:
        found = threads.each(lambda item: (together.wait(DEADLINE), item)[1], items(), at_once)
        assert next(found) == 0
        assert len(begun) == (1 if most == 1 else most + 1)  # one more is drawn, to be begun next
        assert list(found) == [1, 2, 3, 4, 5]


def test_no_thread_waits_for_one_that_is_busy():
    """While one thread is busy with its item, the other does all the rest, whichever of them calls.

    Its result comes last, and stands where its item does.
    """
    for long in (0, 1):
        rest = threading.Semaphore(0)

        def work(item, long=long, rest=rest):
            if item == long:
                assert all(rest.acquire(timeout=DEADLINE) for _ in range(9))
            else:
                rest.release()
            return item

        with Threads(2) as threads:
            assert threads.map(work, range(10)) == list(range(10))


def test_a_single_item_wakes_nobody(threads):
    before = threading.active_count()
    assert threads.map(lambda item: threading.get_ident(), [0]) == [threading.get_ident()]
    assert threading.active_count() == before


def test_the_first_item_that_failed_says_what_went_wrong():
    """Both run at once; the later item fails first."""
    later = threading.Event()

    def fail(item):
        if item == 0:
            assert later.wait(DEADLINE)
        else:
            later.set()
        raise ValueError(item)

    with Threads(2) as threads, pytest.raises(ValueError, match=r"^0$"):
        threads.map(fail, range(2))


def test_after_a_failure_running_items_finish_and_none_begins():
    failed, begun, ended = threading.Event(), [], []

    def work(item):
        begun.append(item)
        if item == 1:
            failed.set()
            raise ValueError(item)
        assert failed.wait(DEADLINE)
        time.sleep(0.001)  # lets the thread that failed go on
        ended.append(item)

    n = 10_000  # the other thread may begin some before it is told
    with Threads(2) as threads, pytest.raises(ValueError, match=r"^1$"):
        threads.map(work, range(n))
    assert len(begun) < n
    assert set(ended) == set(begun) - {1}


def test_functions_may_map_too(threads):
    def table(n):
        return threads.map(lambda i: sum(threads.map(lambda j: i * j, range(n))), range(n))

    assert threads.map(table, range(6)) == [[i * sum(range(n)) for i in range(n)] for n in range(6)]


def test_several_threads_may_map_at_a_time(threads):
    found = {}

    def call(k):
        found[k] = [threads.map(lambda i: (k, i), range(20)) for _ in range(20)]

    callers = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(DEADLINE)
    assert found == {k: [[(k, i) for i in range(20)]] * 20 for k in range(4)}


def test_an_error_keeps_nothing_alive():
    """What a failed call worked on goes with its error: it may be most of the memory."""

    class Rows:
        pass

    def attempt(threads):
        rows = Rows()

        def fail(item):
            raise ValueError(item, rows is None)

        with pytest.raises(ValueError):  # noqa: PT011 (whichever)
            threads.map(fail, range(4))
        return weakref.ref(rows)

    gc.disable()
    try:
        with Threads(2) as threads:
            left = attempt(threads)
    finally:
        gc.enable()
    assert left() is None


def test_a_call_that_is_over_keeps_nothing_alive():
    """Nor do helpers that were never begun, as the pool's own thread is busy."""

    class Rows:
        pass

    busy, done = threading.Event(), threading.Event()
    with Threads(2) as threads:
        other = threading.Thread(
            target=threads.map, args=(lambda item: (busy.set(), done.wait(DEADLINE)), range(2))
        )
        other.start()
        assert busy.wait(DEADLINE)
        rows = Rows()
        left = weakref.ref(rows)
        found = threads.map(lambda item, rows=rows: rows, range(4))
        assert found == [rows] * 4
        del rows, found
        try:
            assert left() is None
        finally:
            done.set()
            other.join(DEADLINE)


INTERRUPTED = """
import os, signal, threading
from distboost.threads import Threads
other, interrupted = threading.Event(), threading.Event()
def work(item):
    os.write(1, b"begun\\n")
    if threading.current_thread() is threading.main_thread():
        other.wait(20)
        os.read(0, 1)  # interrupted here
    else:
        other.set()
        interrupted.wait(20)
    os.write(1, b"ended\\n")
def interrupt(*_):
    interrupted.set()
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, interrupt)
try:
    with Threads(2) as threads:
        threads.map(work, range(50))
except KeyboardInterrupt:
    os.write(1, b"interrupted\\n")
"""


def test_an_interrupt_waits_for_what_runs_only():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert [process.stdout.readline() for _ in range(2)] == ["begun\n", "begun\n"]
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
        process.wait()
    assert rest == "ended\ninterrupted\n"


def test_an_interrupt_while_the_others_are_waited_for(monkeypatch):
    """It is raised, once they have ended."""
    waits, wait = [], threads_module._wait_for_running

    def interrupted(helpers):
        waits.append(len(helpers))
        if len(waits) == 1:
            raise KeyboardInterrupt
        wait(helpers)

    monkeypatch.setattr(threads_module, "_wait_for_running", interrupted)
    with Threads(2) as threads:
        with pytest.raises(KeyboardInterrupt):
            threads.map(abs, range(4))
        assert waits == [1, 1]
        assert threads.map(abs, [-1, 2]) == [1, 2]


@pytest.mark.parametrize(("quota", "expected"), [(-1, None), (50_000, 1), (150_000, 2)])
def test_as_many_threads_as_a_container_has_time_for(quota, expected, in_container):
    """A quota of half a processor's time, and of one and a half."""
    files = {"cpu,cpuacct/cpu.cfs_quota_us": quota, "cpu,cpuacct/cpu.cfs_period_us": 100_000}
    found = in_container(files, "from distboost.threads import Threads; print(Threads().n)")
    cores = len(os.sched_getaffinity(0))
    assert int(found.stdout) == min(expected or cores, cores)


@pytest.mark.parametrize(
    ("n", "n_entries", "expected"), [(8, 0, 1), (8, 150, 2), (8, 340, 3), (8, 10_000, 8), (None, 10_000, 5)]
)
def test_little_work_takes_few_threads(n, n_entries, expected, monkeypatch):
    monkeypatch.setattr(threads_module, "ENTRIES_PER_THREAD", 100)
    monkeypatch.setattr(threads_module, "available_cores", lambda: 5)
    assert useful_threads(n, n_entries) == expected
