"""What distboost uses of Dask beyond its public interface: each test says what breaks if a release of Dask changes it."""

from __future__ import annotations

import inspect

import dask.array as da
import numpy as np
import pytest
from dask._task_spec import Alias, GraphNode, convert_legacy_graph
from distributed import Client, WorkerPlugin
from distributed.scheduler import TaskState
from distributed.shuffle._core import P2PBarrierTask

from distboost.runtime.cluster.monitor import find_unrunnable
from tests.faults.crews import until


@pytest.fixture(scope="module")
def client():
    """Of a scheduler and a worker in this process."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0", set_as_default=False
    ) as client:
        yield client


def test_a_worker_takes_handlers_and_plugins(client):
    """Sessions answer through a handler that is added to a running worker, and close through a plugin."""

    def check(dask_worker):
        assert isinstance(dask_worker.handlers, dict), "Worker.handlers is no dict: sessions cannot answer"
        assert isinstance(dask_worker.plugins, dict), "Worker.plugins is no dict: sessions are never closed"
        assert dask_worker.state.nthreads == 1, "WorkerState.nthreads: sessions do not know their threads"
        assert isinstance(dask_worker.local_directory, str), (
            "Worker.local_directory: streamed rows have no place"
        )
        manager = dask_worker.memory_manager
        assert hasattr(manager, "memory_limit"), "the memory plan does not know a worker's limit"
        assert hasattr(manager, "memory_spill_fraction"), "the memory plan does not know when Dask spills"
        return dask_worker.loop.asyncio_loop is not None

    assert all(client.run(check).values())
    found = list(inspect.signature(WorkerPlugin.transition).parameters)
    assert found[:4] == ["self", "key", "start", "finish"], (
        "WorkerPlugin.transition: sessions are never closed"
    )
    assert list(inspect.signature(WorkerPlugin.teardown).parameters) == ["self", "worker"]


def test_a_handler_that_was_added_is_called(client):
    """The client calls it through the scheduler, by its name in the worker's handlers."""

    async def answer(number):
        return {"value": number + 1}

    def install(dask_worker):
        dask_worker.handlers.setdefault("canary", answer)

    client.run(install)
    [worker] = client.scheduler_info()["workers"]
    message = {"op": "canary", "number": 1}
    reply = client.sync(client.scheduler.proxy, worker=worker, msg=message)
    assert reply == {"value": 2}, (
        "Scheduler.proxy does not reach handlers of workers: no question is answered"
    )
    assert client.direct_to_workers in (False, None), "Client.direct_to_workers: messages take another way"


def test_the_scheduler_describes_its_workers(client):
    """The monitor lists them and finds out which are leaving."""
    identity = client.sync(client.scheduler.identity, n_workers=-1)
    [info] = identity["workers"].values()
    assert info["nthreads"] == 1, "the monitor does not know how many threads a worker has"
    assert info["status"] == "running", "the monitor does not know whether a worker is leaving"


def test_the_scheduler_describes_the_metrics_of_its_workers(client):
    """Among them those that a running worker was given."""

    def install(dask_worker):
        dask_worker.metrics = {**dask_worker.metrics, "canary": lambda worker: 7}

    client.run(install)

    def is_described() -> bool:
        [info] = client.sync(client.scheduler.identity, n_workers=-1)["workers"].values()
        return info["metrics"].get("canary") == 7

    until(is_described, "Worker.metrics in heartbeats: nobody hears that workers compile kernels")


def test_the_scheduler_tells_which_tasks_cannot_run(client):
    """A task that no worker may run has the state no-worker, and those that need it are waiting."""

    def states(*keys, dask_scheduler=None):
        return [dask_scheduler.tasks[key].state for key in keys if key in dask_scheduler.tasks]

    lost = client.submit(sum, [1], workers=["tcp://127.0.0.1:9"], key="lost")
    loose = client.submit(sum, [2], workers=["tcp://127.0.0.1:9"], allow_other_workers=True, key="loose")
    waiting = client.submit(abs, lost, key="waiting")
    known = ["no-worker", "waiting"]
    until(
        lambda: client.run_on_scheduler(states, "lost", "waiting") == known, "tasks have the states expected"
    )
    assert client.run_on_scheduler(find_unrunnable, "waiting") == ("lost", False), (
        "TaskState.dependencies or loose_restrictions: a training run would wait for rows that are lost"
    )
    assert loose.result() == 2
    missing = [
        name
        for name in ("key", "state", "dependencies", "loose_restrictions")
        if not hasattr(TaskState, name)
    ]
    assert not missing, f"TaskState has lost {missing}: tasks that cannot run are not found"
    scheduler = client.cluster.scheduler
    assert len(scheduler.running) == 1, "Scheduler.running: tasks seem stuck while no worker is there"
    client.cancel([lost, waiting])


def test_the_names_of_arguments():
    """The names of arguments that distboost passes to Dask."""
    assert {"workers", "allow_other_workers", "optimize_graph"} <= {
        *inspect.signature(Client.compute).parameters
    }
    assert {"workers", "hash"} <= {*inspect.signature(Client.scatter).parameters}
    assert {"pure", "retries", "key"} <= {*inspect.signature(Client.submit).parameters}


def test_rechunking_peer_to_peer_is_recognised(client):
    """Such arrays are refused: each part of them computes the whole."""
    array = da.from_array(np.zeros((4, 4)), chunks=(4, 1)).rechunk((1, 4), method="p2p")
    tasks = array.__dask_graph__().to_dict().values()
    assert any(isinstance(task, P2PBarrierTask) for task in tasks), (
        "P2PBarrierTask: arrays that Dask rechunks peer to peer are not refused any more, and are computed for each part"
    )


def test_the_tasks_of_a_graph_can_be_renamed():
    """Parts of an array are computed one by one under names of their own."""
    array = da.ones((4, 2), chunks=(2, 2)) + 1
    graph = convert_legacy_graph(dict(array.__dask_graph__()))
    assert all(isinstance(task, GraphNode) for task in graph.values())
    assert all(task.dependencies <= graph.keys() for task in graph.values()), (
        "GraphNode.dependencies: parts of an array lack tasks"
    )
    names = {key: ("renamed", *key) if isinstance(key, tuple) else f"{key}-renamed" for key in graph}
    tasks = {names[key]: task.substitute(names, key=names[key]) for key, task in graph.items()}
    ends = [names[array.name, block, 0] for block in range(2)]
    tasks |= {("apart", block, 0): Alias(("apart", block, 0), end) for block, end in enumerate(ends)}
    apart = da.Array(tasks, "apart", array.chunks, meta=array._meta)
    np.testing.assert_array_equal(apart.compute(scheduler="sync"), np.full((4, 2), 2.0))


def test_unknown_sizes_of_chunks_can_be_set():
    array = da.from_array(np.arange(4.0), chunks=2)
    array = array[array > 0]
    assert np.isnan(array.shape[0])
    array._chunks = ((1, 2),)
    assert array.shape == (3,), "Array._chunks: the rows of arrays of unknown length are not counted"
