"""Workers that compile kernels: the client's progress and callbacks say so."""

from __future__ import annotations

import dask
import pytest
from distributed import Client, LocalCluster

import distboost
from distboost.io.phases import Phase, Phases
from distboost.runtime.cluster.compilation import METRIC, CompilationWatch

TOLD = Phase("compile on workers", 0, None, "kernels", 0.0)
LINE = "workers compile kernels (once per installation)\n"


@pytest.fixture
def cold(tmp_path, monkeypatch):
    """The client of two workers that find no compiled kernels. They are not forked: a process that is has loaded them."""
    # Not by Dask's configuration of environments: Dask would set them in this process, too, and leave them there.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_workers_with_an_empty_cache_are_said_to_compile_by_the_first_call_alone(
    cold, blobs, tmp_path, capsys
):
    """Binning: it has few kernels, and watches the workers as training does."""
    said = []
    for name in "ab":
        distboost.bin(*blobs, str(tmp_path / name), client=cold, verbose=1)
        said.append(capsys.readouterr().out.count(LINE))
    assert said == [1, 0]


def described(**numbers: int) -> dict:
    """What a scheduler says of workers that have compiled so many kernels; -1: they have not reported any number."""
    return {name: {"metrics": {} if n < 0 else {METRIC: n}} for name, n in numbers.items()}


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([described(a=-1, b=-1), described(a=0, b=1)], True),
        ([described(a=-1), described(a=0, b=0), described(a=0, b=2)], True),
        ([described(a=7), described(a=0), described(a=1)], True),  # it was started again
        ([described(a=7), described(a=7), described(a=0)], False),
        ([described(a=-1), {"a": {}}, described(a=-1, b=4)], False),
    ],
)
def test_workers_are_compared_with_what_they_had_compiled_before(looks, told):
    heard: list[Phase] = []
    watch = CompilationWatch(Phases(heard.append))
    for workers in looks:
        watch.look(workers)
    assert not heard  # by the thread that waits for the workers, not by the one that looks
    watch.tell()
    watch.tell()
    assert heard == [TOLD] * told
