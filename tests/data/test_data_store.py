"""The binned store: rows binned once, trained on many times, and never trusted blindly."""

import gc
import re
import shutil
import weakref
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.data import ingest
from distboost.data.store.store import BinnedStore
from distboost.errors import BinnedStoreError, DataError

BLOCK = 60  # rows: 240 make four blocks, of which the first holds the first class alone if they are sorted


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(ingest, "BLOCK_ROWS", BLOCK)


@pytest.fixture
def store(blobs, tmp_path):
    """The path of a store of the blobs, sorted by label."""
    X, y = blobs
    order = np.argsort(y, kind="stable")
    return distboost.bin(X[order], y[order], str(tmp_path / "store"))


MODELS = pytest.mark.parametrize(
    "make",
    [
        lambda **p: GDMCBoostClassifier(calibration=None, n_estimators=3, **p),
        lambda **p: GAMBLEClassifier(calibration=None, n_estimators=3, **p),
    ],
    ids=["gd-mcboost", "gamble"],
)
WEIGHTS = {
    "no weights": None,
    "whole weights": lambda rng, n: rng.integers(0, 4, n),
    "fractions": lambda rng, n: rng.choice([0.0, 0.3, 1.9], n),
}


@MODELS
@pytest.mark.pairwise
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("parameters", [{}, {"max_bins": 16}, {"class_weight": "balanced"}], ids=str)
def test_training_from_a_store_is_training_from_the_data(make, weights, parameters, blobs, saved, tmp_path):
    X, y = blobs
    w = None if weights is None else weights(np.random.default_rng(1), len(y))
    path = distboost.bin(
        X, y, str(tmp_path / "store"), sample_weight=w, max_bins=parameters.get("max_bins", 255)
    )
    expected = saved(make(**parameters).fit(X, y, sample_weight=w))
    assert saved(make(**parameters).fit(path)) == expected


@pytest.mark.parametrize(
    "labels", [np.array(["b", "a", "cc"]), np.array([2.0, -1.0, 7.0]), np.array([3, 2, 900])]
)
def test_classes_keep_their_type(labels, blobs, saved, tmp_path):
    X, y = blobs
    path = distboost.bin(X, labels[y], str(tmp_path / "store"))
    assert saved(GDMCBoostClassifier(calibration=None, n_estimators=2).fit(path)) == saved(
        GDMCBoostClassifier(calibration=None, n_estimators=2).fit(X, labels[y])
    )


def test_a_store_of_dask_arrays_is_that_of_arrays(blobs, saved, tmp_path):
    X, y = blobs
    a = distboost.bin(X, y, str(tmp_path / "a"))
    b = distboost.bin(da.from_array(X, chunks=(37, 2)), da.from_array(y, chunks=90), str(tmp_path / "b"))
    for name in ("bins", "labels", "weights", "edges", "edge_offsets"):
        np.testing.assert_array_equal(zarr.open_array(f"{a}/{name}")[:], zarr.open_array(f"{b}/{name}")[:])
    assert saved(GDMCBoostClassifier(calibration=None, n_estimators=2).fit(a)) == saved(
        GDMCBoostClassifier(calibration=None, n_estimators=2).fit(b)
    )


def test_the_original_data_are_not_needed(blobs, tmp_path):
    X, y = blobs
    zarr.create_array(str(tmp_path / "x"), data=np.asarray(X))
    path = distboost.bin(str(tmp_path / "x"), y, str(tmp_path / "store"))
    shutil.rmtree(tmp_path / "x")
    assert GDMCBoostClassifier(calibration=None, n_estimators=2).fit(Path(path)).n_features_in_ == 4


# What is wrong with a store is an error, whatever it is.


def chunk_of(store, array, block):
    found = [f for f in (Path(store) / array / "c").rglob("*") if f.is_file()]
    return next(f for f in found if f.relative_to(Path(store) / array / "c").parts[0] == str(block))


def assert_refused(store, rows):
    """Names the rows, the store and the remedy."""
    with pytest.raises(
        BinnedStoreError,
        match=rf"rows {rows} of the binned store .*{re.escape(str(store))}.*Bin the data again",
    ):
        GDMCBoostClassifier(calibration=None, n_estimators=2).fit(store)


ROWS = {0: "0 to 59", 1: "60 to 119", 3: "180 to 239"}


@pytest.mark.parametrize("array", ["bins", "labels", "weights"])
@pytest.mark.parametrize("block", ROWS)
def test_flipped_byte(array, block, store):
    chunk = chunk_of(store, array, block)
    content = bytearray(chunk.read_bytes())
    for position in (0, len(content) // 2, len(content) - 1):
        flipped = content.copy()
        flipped[position] ^= 0x10
        chunk.write_bytes(flipped)
        assert_refused(store, ROWS[block])


@pytest.mark.parametrize("array", ["bins", "labels", "weights"])
@pytest.mark.parametrize("block", ROWS)
def test_missing_chunk(array, block, store):
    """Also where the chunk held nothing but zarr's fill value."""
    chunk_of(store, array, block).unlink()
    assert_refused(store, ROWS[block])


@pytest.mark.parametrize("array", ["bins", "labels", "weights"])
def test_truncated_chunk(array, store):
    chunk = chunk_of(store, array, 1)
    chunk.write_bytes(chunk.read_bytes()[:-3])
    assert_refused(store, ROWS[1])


def test_chunks_swapped(store):
    """Each is intact by itself."""
    a, b = chunk_of(store, "bins", 0), chunk_of(store, "bins", 1)
    content = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(content)
    assert_refused(store, r"\d+ to \d+")


@pytest.mark.parametrize("array", ["edges", "edge_offsets"])
def test_edges_missing(array, store):
    for chunk in (Path(store) / array / "c").rglob("*"):
        if chunk.is_file():
            chunk.unlink()
    with pytest.raises(BinnedStoreError, match=r"edges .*Bin the data again"):
        GDMCBoostClassifier(calibration=None, n_estimators=2).fit(store)


@pytest.mark.parametrize("array", ["edges", "edge_offsets"])
def test_edges_flipped(array, store):
    (chunk,) = [f for f in (Path(store) / array / "c").rglob("*") if f.is_file()]
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(BinnedStoreError, match="Bin the data again"):
        GDMCBoostClassifier(calibration=None, n_estimators=2).fit(store)


def test_binning_that_was_interrupted(blobs, tmp_path):
    """The manifest is the last thing written: without it there is no store."""
    X, y = blobs
    left = iter(range(6))  # chunks that can be read: all once, to find the edges, and two more

    def read(block):
        if next(left, None) is None:
            raise RuntimeError("the power went")
        return block

    failing = da.from_array(X, chunks=(BLOCK, 4)).map_blocks(read, meta=np.empty((0, 4)))
    with pytest.raises(RuntimeError, match="the power went"):
        distboost.bin(failing, y, str(tmp_path / "store"))
    assert (tmp_path / "store").exists()
    with pytest.raises(BinnedStoreError, match=r"interrupted before the manifest was written.*distboost bin"):
        GDMCBoostClassifier().fit(str(tmp_path / "store"))


def test_a_group_that_is_not_a_store(tmp_path):
    zarr.create_group(str(tmp_path / "group"))
    with pytest.raises(BinnedStoreError, match="is not a binned store"):
        GDMCBoostClassifier().fit(str(tmp_path / "group"))


@pytest.mark.parametrize("kind", ["array", "group", "nothing"])
def test_looking_for_a_store_keeps_nothing_alive(kind, tmp_path):
    """Neither the caller's arrays nor its folders wait for the garbage collector."""
    if kind != "nothing":
        getattr(zarr, f"create_{kind}")(
            str(tmp_path / "data"), **({"data": np.zeros(3)} if kind == "array" else {})
        )

    class Held:
        pass

    def look():
        held = Held()
        BinnedStore.is_at(tmp_path / "data")
        return weakref.ref(held)

    gc.disable()
    try:
        assert look()() is None
    finally:
        gc.enable()


def test_a_store_of_a_later_version(store):
    group = zarr.open_group(store)
    group.attrs["distboost-binned"] = {**group.attrs["distboost-binned"], "version": 99}
    with pytest.raises(BinnedStoreError, match=r"has version 99, expected 3\. Bin the data again"):
        GDMCBoostClassifier().fit(store)


def test_a_manifest_that_was_altered(store):
    """It fits in all else: the weight of a class is another."""
    group = zarr.open_group(store)
    manifest = dict(group.attrs["distboost-binned"])
    (n_rows, *rest), *others = manifest["class_scans"]
    group.attrs["distboost-binned"] = {**manifest, "class_scans": [[n_rows + 1, *rest], *others]}
    with pytest.raises(BinnedStoreError, match="the checksum of its manifest is"):
        GDMCBoostClassifier(calibration=None, n_estimators=2).fit(store)


def test_a_store_of_other_bins(store):
    with pytest.raises(DataError, match=r"made with max_bins=255, not 64\. .*max_bins=255"):
        GDMCBoostClassifier(max_bins=64).fit(store)


def test_a_store_of_fewer_bins(blobs, tmp_path):
    store = distboost.bin(*blobs, str(tmp_path / "store"), max_bins=64)
    with pytest.raises(DataError, match=r"made with max_bins=64, not 255\. .*max_bins=64"):
        GDMCBoostClassifier().fit(store)


def test_blocks_that_are_read_together(store):
    found = BinnedStore.open(store)
    how = found.profile(255, 0, None), found.own_weights(3, None), 1, False
    one, three = found.binned(*how), found.binned(*how, at_once=3)
    assert (one.sizes, three.sizes) == ([60] * 4, [180, 60])
    for _ in range(2):  # the second time without zarr
        first, last = (three.function(*call) for call in three.calls)
        for name in ("bins", "labels", "weights"):
            together = [getattr(rows, name) for rows in (first, last)]
            single = [one.function(*call) for call in one.calls]
            np.testing.assert_array_equal(
                np.concatenate(together), np.concatenate([getattr(rows, name) for rows in single])
            )
    assert (first.first, last.first) == (0, 180)
    assert first.files == tuple(file for rows in single[:3] for file in rows.files)

    chunk = chunk_of(store, "bins", 1)
    chunk.write_bytes(chunk.read_bytes()[::-1])
    with pytest.raises(BinnedStoreError, match="chunk bins/c/1/0, rows 60 to 119 of the binned store"):
        three.function(*three.calls[0]).in_memory()


def test_nothing_is_overwritten(blobs, tmp_path):
    path = tmp_path / "store"
    zarr.create_array(str(path), data=np.arange(3))
    with pytest.raises(DataError, match=r"there is something at .*store.* already\. Choose another place"):
        distboost.bin(*blobs, str(path))
    np.testing.assert_array_equal(zarr.open_array(str(path))[:], np.arange(3))
