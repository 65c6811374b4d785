"""Dask arrays on a cluster: whatever they share with each other, and with what their owner computes beside."""

from __future__ import annotations

import logging

import dask
import dask.array as da
import numpy as np
import pytest
from dask import delayed
from distributed import Client, LocalCluster

import distboost
from distboost import GDMCBoostClassifier
from distboost.errors import DataError
from tests.active.sessions import committee, learner

N, CHUNK = 600, 150
PART, MANY = 100, 65_536  # rows of a block: a part of a chunk, many chunks


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def consistent(client, caplog):
    """The scheduler, which is in this process, has met with no two tasks of one name, and is well afterwards."""
    with caplog.at_level(logging.WARNING, "distributed"):
        yield
        assert client.submit(sum, [1, 2], pure=False).result(timeout=10) == 3
    assert "Detected different" not in caplog.text
    assert "Traceback" not in caplog.text


def drawn():
    return da.random.default_rng(3).normal(size=(N, 4), chunks=(CHUNK, 4))


def mapped():
    rows = da.from_array(np.random.default_rng(3).normal(size=(N, 4)), chunks=(CHUNK, 4))
    return rows.map_blocks(lambda block: block + 1).map_blocks(lambda block: block * 2 - 2)


def delays():
    def make(seed):
        return np.random.default_rng(seed).normal(size=(CHUNK, 4))

    return da.concatenate(
        [da.from_delayed(delayed(make)(seed), (CHUNK, 4), float) for seed in range(N // CHUNK)]
    )


def masked(x):
    return x[x[:, 0] > -0.5]


def halved(x):
    return x[::2]


def centred(x):
    """Each chunk depends on all others."""
    return (x - x.mean(axis=0)) / x.std(axis=0)


def in_columns(x):
    return x.rechunk((200, 2))


def model(client=None, **parameters):
    made = GDMCBoostClassifier(**{"calibration": None, "n_estimators": 2, "max_depth": 2, **parameters})
    made.client = client
    return made


def labels(x):
    return (x[:, 1] + x[:, 2] > 0).astype(int) + (x[:, 3] > 1)


def weights(x):
    return abs(x[:, 0]) + 0.5


def values(*arrays):
    """In memory, computed here."""
    return dask.compute(*arrays, scheduler="synchronous")


def expected(X, y, w=None, eval_set=None, **parameters):
    X, y, *w = values(X, y, *([] if w is None else [w]))
    return model(n_jobs=1, **parameters).fit(
        X, y, *w, eval_set=None if eval_set is None else values(*eval_set)
    )


@pytest.mark.parametrize(
    ("make", "derived", "block", "calibration"),
    [
        (drawn, masked, PART, "auto"),
        (delays, centred, MANY, None),
        (mapped, in_columns, MANY, None),
        pytest.param(mapped, in_columns, PART, "auto", marks=pytest.mark.soak),
        pytest.param(drawn, masked, MANY, "auto", marks=pytest.mark.soak),
        pytest.param(mapped, masked, MANY, "auto", marks=pytest.mark.soak),
    ],
)
def test_x_and_y_share_tasks(make, derived, block, calibration, client, assert_same_model, monkeypatch):
    """Labels, weights and evaluation rows are made of the same array, and the training is done twice."""
    monkeypatch.setattr("distboost.data.ingest.BLOCK_ROWS", block)

    def arrays():
        """The same tasks each time."""
        x = derived(make())
        return x, labels(x), weights(x), (halved(make()), labels(halved(make())))

    alone = expected(*arrays(), calibration=calibration)
    for _ in range(2):
        x, y, w, evaluation = arrays()
        there = model(client, calibration=calibration).fit(x, y, w, eval_set=evaluation)
        assert_same_model(there, alone)
        np.testing.assert_array_equal(there.eval_loss_, alone.eval_loss_)


def test_beside_what_the_user_computes(client, assert_same_model):
    """What is persisted and computed before, meanwhile and afterwards has the same tasks."""
    x = masked(drawn())
    y = labels(x)
    alone = expected(x, y)
    before = client.persist(x)
    meanwhile = []

    def compute(progress):
        meanwhile.append(client.compute([x.sum(), y.sum(), (x * y[:, None]).mean()]))

    assert_same_model(model(client, callbacks=[compute]).fit(x, y), alone)
    assert_same_model(model(client).fit(before, y), alone)
    assert_same_model(model(client).fit(before, labels(before)), alone)
    predicted = alone.predict(x).compute()
    np.testing.assert_array_equal(predicted, alone.predict(values(x)[0]))
    assert [client.gather(found)[0] for found in meanwhile] == pytest.approx([values(x)[0].sum()] * 2)


def test_persisted_arrays_that_nobody_else_holds(client, assert_same_model):
    x = client.persist(drawn())
    there = model(client).fit(x, labels(x))
    assert_same_model(there, expected(drawn(), labels(drawn())))
    assert_same_model(model(client).fit(client.persist(drawn()), client.persist(labels(drawn()))), there)


def test_the_cluster_can_be_restarted(client, assert_same_model):
    x = masked(drawn())
    y = labels(x)
    there = model(client).fit(x, y)
    client.restart(timeout=60)
    assert_same_model(model(client).fit(x, y), there)


def test_a_store_and_a_pool(client, assert_same_model, tmp_path):
    """The same array is binned, and again, and asked for its most useful rows."""
    x = masked(drawn())
    y = labels(x)
    stores = [distboost.bin(x, y, str(tmp_path / "store"), client=client) for _ in range(2)]
    assert_same_model(model(client).fit(stores[1]), expected(x, y))
    X, Y = values(x, y)
    found = []
    for pool, where in ((X, None), (x, client)):
        asked = learner(pool, committee(client=where), strategy="entropy")
        asked.teach(range(40), Y[:40])
        found.append(asked.query().tolist())
    assert found[0] == found[1]


def test_the_callers_array_is_left_as_it_is(client):
    """The sizes of its chunks are found for the training alone."""
    x = masked(drawn())
    model(client).fit(x, labels(x))
    assert np.isnan(x.shape[0])


def test_peer_to_peer(client, assert_same_model):
    """Whoever computes a part of such an array computes all that is shuffled with it."""
    x, y = drawn().rechunk((400, 2), method="p2p"), np.arange(N) % 3
    with pytest.raises(
        DataError, match=r"X is rechunked or shuffled peer to peer.*method='tasks', or persist"
    ):
        model(client).fit(x, y)
    assert_same_model(model(client).fit(client.persist(x), y), expected(drawn(), da.from_array(y)))
