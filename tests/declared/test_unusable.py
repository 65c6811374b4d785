"""Dask collections that cannot be used are one DataError, before anything else happens."""

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from distributed import Client, LocalCluster

from distboost import GDMCBoostClassifier
from distboost.errors import DataError

N = 200
X = np.random.default_rng(0).normal(size=(N, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def clients():
    """Clients of two clusters."""
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with (
        LocalCluster(**options) as one,
        LocalCluster(**options) as other,
        Client(one, set_as_default=False) as first,
        Client(other, set_as_default=False) as second,
    ):
        yield first, second


def model(client=None):
    made = GDMCBoostClassifier(calibration=None, n_estimators=2)
    made.client = client
    return made


def rows():
    return da.from_array(X, chunks=(50, 3))


def test_sparse_labels():
    labels = da.from_array(Y[:, None], chunks=(50, 1)).map_blocks(scipy.sparse.csr_array, dtype=int)
    with pytest.raises(DataError, match=r"csr_array.*dense"):
        model().fit(X, labels)


@pytest.mark.parametrize(
    "collection",
    [
        dask.bag.from_sequence(X.tolist(), npartitions=2),
        dask.delayed(np.asarray)(X),
        dd.from_pandas(pd.Series(X[:, 0]), npartitions=2),
        da.from_delayed(dask.delayed(X.tolist)(), X.shape, float),
        da.from_delayed(dask.delayed(print)(), X.shape, float),
    ],
    ids=["bag", "delayed", "series", "lists", "nothing"],
)
def test_collections_without_rows(collection):
    with pytest.raises(DataError, match=r"X is of type|of X is a"):
        model().fit(collection, Y)


def test_rows_that_another_cluster_keeps(clients):
    first, second = clients
    kept = first.persist(rows())
    for reader in (second, None):
        with pytest.raises(DataError, match="X was persisted on the cluster at"):
            model(reader).fit(kept, da.from_array(Y, chunks=50))
    with pytest.raises(DataError, match=r"y|X"):
        model(first).fit(kept, second.persist(da.from_array(Y, chunks=50)))
    assert model(first).fit(kept, Y).digest() == model().fit(X, Y).digest()
    with Client(first.scheduler.address, set_as_default=False) as same_cluster:
        assert model(same_cluster).fit(kept, Y).digest() == model().fit(X, Y).digest()


def test_frames_that_another_cluster_keeps(clients):
    first, second = clients
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)
    kept = first.persist(frame)
    with pytest.raises(DataError, match="X was persisted on the cluster at"):
        model(second).fit(kept, Y)
    assert model(first).fit(kept, Y).digest() == model().fit(frame, Y).digest()


def test_rows_of_a_client_that_is_closed(clients):
    first, _ = clients
    with Client(first.scheduler.address, set_as_default=False) as passing:
        kept = passing.persist(rows())
    with pytest.raises(DataError, match=r"X was persisted with a client that is closed"):
        model(first).fit(kept, Y)
