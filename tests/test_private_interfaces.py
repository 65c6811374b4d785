"""What distboost uses of scikit-learn and zarr beyond their public interfaces: a release that changes it fails here.

`runtime/test_dask_internals.py` does the same for Dask.
"""

from __future__ import annotations

import inspect
from numbers import Integral, Real

import numpy as np
import pytest
import zarr
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight
from zarr.core.array import AsyncArray
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.core.group import GroupMetadata
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, MemoryStore, StorePath, WrapperStore, ZipStore

from distboost.algorithms.constraints import (
    Interval,
    Options,
    RealNotInt,
    StrOptions,
    as_of_sklearn,
    validate_parameters,
)

# scikit-learn.


class Constrained(BaseEstimator):
    _parameter_constraints = {  # noqa: RUF012 (as scikit-learn reads it)
        "rate": as_of_sklearn([Interval(Real, 0, 10, closed="right")]),
        "features": as_of_sklearn(
            [Interval(RealNotInt, 0, 1, closed="right"), Interval(Integral, 1, None, closed="left")]
        ),
        "jobs": as_of_sklearn([Options(Integral, {-1}), None]),
        "weight": as_of_sklearn([dict, StrOptions({"balanced"})]),
        "seed": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(self, rate=1.0, features=1.0, jobs=None, weight="balanced", seed=0, verbose=0):
        self.rate, self.features, self.jobs = rate, features, jobs
        self.weight, self.seed, self.verbose = weight, seed, verbose


def test_scikit_learn_validates_parameters():
    for allowed in ({}, {"rate": 10}, {"features": 3}, {"jobs": -1}, {"weight": {0: 2.0}}, {"seed": None}):
        Constrained(**allowed)._validate_params()
    for refused in (
        {"rate": 0}, {"rate": 10.5}, {"features": 1.5}, {"features": 0}, {"jobs": -2}, {"weight": "equal"}, {"seed": "x"},
        {"verbose": "loud"},
    ):  # fmt: skip
        [name] = refused
        with pytest.raises(ValueError, match=f"The '{name}' parameter of Constrained must be"):
            Constrained(**refused)._validate_params()


def test_scikit_learn_validates_the_parameters_of_functions():
    allowed = {"size": [Interval(Integral, 1, None, closed="left"), None], "whole": ["boolean"]}
    validate_parameters(allowed, {"size": None, "whole": True}, "function")
    with pytest.raises(ValueError, match="The 'size' parameter of function must be"):
        validate_parameters(allowed, {"size": 0, "whole": True}, "function")
    with pytest.raises(ValueError, match="The 'whole' parameter of function must be"):
        validate_parameters(allowed, {"size": 1, "whole": "yes"}, "function")


def test_the_options_of_a_text_are_known():
    """The documentation's tests compare them."""
    assert as_of_sklearn([StrOptions({"a", "b"})])[0].options == {"a", "b"}


def test_scikit_learn_checks_weights():
    X = np.zeros((2, 1))
    np.testing.assert_array_equal(_check_sample_weight([1, 2], X, dtype=np.float64), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        _check_sample_weight([1, 2, 3], X, dtype=np.float64)


# zarr.


@pytest.fixture
def array():
    array = zarr.create_array(MemoryStore(), name="a", shape=(4, 2), chunks=(2, 2), dtype="f8")
    array[:] = np.arange(8.0).reshape(4, 2)
    return array


def test_zarr_runs_coroutines_of_stores(array):
    assert sync(array.store.exists("a/zarr.json"))


def test_the_keys_of_chunks(array):
    key = f"{array.path}/{array.metadata.encode_chunk_key((1, 0))}"
    assert sync(array.store.exists(key)), "metadata.encode_chunk_key: chunks seem missing"


def test_an_array_is_made_of_metadata_and_a_store(array):
    """Checked reads, absolute paths and unpublished predictions do this."""
    inner = array.async_array
    other = zarr.Array(AsyncArray(inner.metadata, StorePath(array.store, array.path), inner.config))
    np.testing.assert_array_equal(other[:], array[:])
    assert list(inspect.signature(StorePath).parameters)[:2] == ["store", "path"]


def test_metadata_are_written_by_hand(array):
    """Predictions are published by their metadata, binned stores by their group's."""
    prototype = default_buffer_prototype()
    content = array.metadata.to_buffer_dict(prototype)["zarr.json"].to_bytes()
    store = MemoryStore()
    for key in (
        key for key in array.store._store_dict if key.startswith("a/") and not key.endswith("zarr.json")
    ):
        sync(store.set(key.removeprefix("a/"), array.store._store_dict[key]))
    sync(store.set("zarr.json", prototype.buffer.from_bytes(content)))
    np.testing.assert_array_equal(zarr.open_array(store, mode="r")[:], array[:])
    (group,) = GroupMetadata(attributes={"x": 1}, zarr_format=3).to_buffer_dict(prototype).values()
    store = MemoryStore()
    sync(store.set("zarr.json", group))
    assert dict(zarr.open_group(store, mode="r").attrs) == {"x": 1}


def test_a_store_may_wrap_another(array):
    """Checked reads are such a store: all bytes of an array come through `get` and `get_partial_values`."""
    asked = []

    class Watched(WrapperStore):
        async def get(self, key, prototype, byte_range=None):
            asked.append(key)
            return await self._store.get(key, prototype, byte_range)

    wrapped = Watched(array.store)
    assert wrapped._store is array.store
    assert isinstance(wrapped._with_store(array.store), Watched), (
        "_with_store: wrapped stores lose their kind"
    )
    zarr.open_array(wrapped, path="a", mode="r")[:]
    assert {"a/c/0/0", "a/c/1/0"} <= {*asked}, "zarr reads chunks past the store's get: no read is checked"
    for name, parameters in (
        ("get", ["key", "prototype", "byte_range"]),
        ("get_partial_values", ["prototype", "key_ranges"]),
    ):
        assert list(inspect.signature(getattr(WrapperStore, name)).parameters)[1:] == parameters


def test_stores_name_their_places(tmp_path):
    store = LocalStore(tmp_path)
    assert store.root == tmp_path
    assert ZipStore(tmp_path / "a.zip", mode="w").path == tmp_path / "a.zip"
    remote = FsspecStore.from_url("memory://canary", read_only=False)
    sync(remote.set("k", default_buffer_prototype().buffer.from_bytes(b"12")))
    found = sync(remote.fs._find(remote.path, detail=True))
    assert [info["size"] for info in found.values()] == [2], "fs._find: listings have no sizes"
    sync(remote.fs._pipe_file(f"{remote.path}/l", b"123"))
    assert sync(remote.get("l", default_buffer_prototype())).to_bytes() == b"123"


def test_local_stores_are_written_by_set_or_set_sync():
    """`DurableStore` replaces both: a third way would skip its checks."""
    writes = {name for name in vars(LocalStore) if name.startswith("set") or name == "_put"}
    assert writes <= {"set", "set_sync", "set_if_not_exists"}, f"LocalStore also writes by {sorted(writes)}"


def test_buffers_are_bytes():
    assert isinstance(default_buffer_prototype(), BufferPrototype)
    buffer = default_buffer_prototype().buffer.from_bytes(b"123")
    assert isinstance(buffer, Buffer)
    assert (len(buffer), buffer.to_bytes(), bytes(buffer.as_buffer_like())) == (3, b"123", b"123")
