"""Binning that is killed, twice at once, or out of room: nothing half-written is trusted, and the same command goes on."""

import filecmp
import shutil
import subprocess
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr

import distboost
from distboost import GDMCBoostClassifier
from distboost.data import ingest
from distboost.data.ingest_plan import least_memory
from distboost.errors import DataError, StoreError
from distboost.inputs.choose import dataset_of
from distboost.training.memory_plan import while_reading
from tests import disks
from tests.forked import Forks
from tests.programs import Program

BLOCK = 500
N, D = 20_000, 6

# A command in a process of its own. It kills itself before it renames the n-th of some files, and notes how many these were. Each
# line is a part of their paths, n, the place of the note, and the arguments of the command.
SERVER = f"""
import os, signal
from distboost.cli.commands import main
from distboost.data import ingest
ingest.BLOCK_ROWS = {BLOCK}
replace, renamed = os.replace, []
def counted(*places):
    if part in str(places[1]):
        renamed.append(places)
    if len(renamed) == last:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*places)
os.replace = counted
def do(line):
    global part, last
    part, number, note, *arguments = line.split()
    last = int(number)
    try:
        main(arguments)
    finally:
        with open(note, "w") as file:
            file.write(str(len(renamed)))
"""


@pytest.fixture
def commands():
    return Forks(SERVER)


@pytest.fixture
def arrays(tmp_path):
    rng = np.random.default_rng(0)
    for name, values, chunks in (
        ("x", rng.normal(size=(N, D)), (3000, 2)),
        ("y", rng.integers(0, 3, N), (5000,)),
        ("w", rng.integers(0, 3, N).astype(float), (7000,)),
    ):
        zarr.create_array(str(tmp_path / name), data=values, chunks=chunks)
    return tmp_path


def assert_same_files(a, b):
    def compare(found):
        assert not found.left_only
        assert not found.right_only
        assert filecmp.cmpfiles(found.left, found.right, found.common_files, shallow=False)[1:] == ([], [])
        for below in found.subdirs.values():
            compare(below)

    compare(filecmp.dircmp(a, b))


class Binning:
    """`distboost bin` of the arrays, and how it ends undisturbed."""

    def __init__(self, arrays, commands, options):
        self.commands, self.undisturbed, self._note = commands, arrays / "undisturbed", arrays / "note"
        self._command = (
            f"{self._note} bin --x {arrays}/x --y {arrays}/y --sample-weight {arrays}/w --out {{}} {options}"
        )
        assert self.run(self.undisturbed)
        self.n_files = int(self._note.read_text())

    def run(self, store, number=0, part="/", kill=None) -> bool:
        """Whether it came to its end; it may be killed before it renames a file, or at a moment."""
        return self.commands.run(f"{part} {number} {self._command.format(store)}", kill)

    def moments(self, store, functions, seed):
        return self.commands.moments(f"/ 0 {self._command.format(store)}", functions, seed)


@pytest.fixture(params=["whole blocks", "bands"])
def binning(request, arrays, commands, monkeypatch):
    monkeypatch.setattr(ingest, "BLOCK_ROWS", BLOCK)
    return Binning(
        arrays, commands, "" if request.param == "whole blocks" else f"--memory-limit {_least(arrays)}"
    )


def test_killed_again_and_again(binning, tmp_path):
    """Before it writes anything, while it writes labels, twice while it writes bins, and before it writes the manifest."""
    store = tmp_path / "store"
    for part, number, state in (
        ("zarr.json", 1, "nothing"),
        ("labels/c/", 2, "begun"),
        ("bins/c/", 4, "scanned"),
        ("bins/c/", 4, "scanned"),
    ):
        assert not binning.run(store, number, part)
        assert _state(store) == state
    assert binning.run(store)
    assert_same_files(store, binning.undisturbed)
    shutil.rmtree(store)
    assert not binning.run(store, binning.n_files)
    assert _state(store) == "scanned"
    assert binning.run(store)
    assert_same_files(store, binning.undisturbed)


@pytest.mark.soak
def test_killed_at_any_line_that_writes(binning, tmp_path):
    """In one of the writes: its file is then empty, whole under another name, or there."""
    # With this seed, also while the manifest is being written.
    moments = binning.moments(tmp_path / "whole", ["distboost.io.files:write_durably"], seed=6)
    assert len(moments) > 7
    states = set()
    for number, moment in enumerate(moments):
        store = tmp_path / f"{number}"
        assert not binning.run(store, kill=moment)
        states.add(_state(store))
        assert binning.run(store)
        assert_same_files(store, binning.undisturbed)
    assert len(states) >= 2, states


def _least(arrays) -> int:
    data = dataset_of(*(str(arrays / name) for name in "xyw"))
    return while_reading(on_cluster=False) + least_memory(*data.sources, max_bins=255, block=BLOCK)


def _state(store: Path) -> str:
    if not (store / "zarr.json").exists():
        return "nothing"
    attributes = zarr.open_group(str(store), mode="r").attrs
    if "distboost-binned" in attributes:
        return "complete"
    return "scanned" if "classes" in attributes["distboost-unfinished"] else "begun"


def test_finished_blocks_are_kept_and_damaged_ones_are_not(blobs, tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 60)
    X, y = map(np.asarray, blobs)
    zarr.create_array(str(tmp_path / "x"), data=X, chunks=(60, 4))
    arguments = (str(tmp_path / "x"), y, str(tmp_path / "store"))
    distboost.bin(*arguments, memory_limit=10**9)
    shutil.copytree(tmp_path / "store", tmp_path / "expected")
    _unfinish(tmp_path / "store")
    chunks = [tmp_path / "store" / "bins" / "c" / str(i) / "0" for i in range(4)]
    chunks[1].unlink()
    damaged = bytearray(chunks[2].read_bytes())
    damaged[7] ^= 1
    chunks[2].write_bytes(damaged)
    (tmp_path / "store" / "bins" / "c" / "1" / "0.abc.partial").write_bytes(b"half")
    before = [chunk.stat().st_mtime_ns if chunk.exists() else 0 for chunk in chunks]
    distboost.bin(*arguments, memory_limit=10**9)
    assert_same_files(tmp_path / "store", tmp_path / "expected")
    written = [chunk.stat().st_mtime_ns != time for chunk, time in zip(chunks, before, strict=True)]
    assert written[0] == written[3] or not written[0]
    assert written[1]
    assert written[2]


def _unfinish(store):
    """Takes the manifest away, as if binning had been interrupted before it."""
    group = zarr.open_group(str(store))
    manifest = dict(group.attrs["distboost-binned"])
    del manifest["checksums"]
    group.attrs.put({"distboost-unfinished": manifest})


# Reuse.


@pytest.fixture
def few(blobs, tmp_path):
    """(x, y, store): paths of arrays, and of a store of them."""
    X, y = map(np.asarray, blobs)
    paths = [str(tmp_path / name) for name in ("x", "y", "store")]
    zarr.create_array(paths[0], data=X, chunks=(60, 4))
    zarr.create_array(paths[1], data=y, chunks=(60,))
    distboost.bin(*paths)
    return paths


def _times(store):
    return {f: f.stat().st_mtime_ns for f in Path(store).rglob("*")}


def test_a_complete_store_is_used_as_it_is(few, caplog):
    before = _times(few[2])
    with caplog.at_level("INFO", logger="distboost.data"):
        distboost.bin(*few)
    assert "complete and was made from the same data" in caplog.text
    assert _times(few[2]) == before


@pytest.mark.parametrize(
    "change",
    [{"max_bins": 16}, {"random_state": 1}, {"keep_values": True}, {"sample_weight": np.ones(240)}],
    ids=lambda change: next(iter(change)),
)
def test_a_store_made_otherwise_is_refused(change, few):
    with pytest.raises(DataError, match=r"a binned store of other data or parameters at '.*store' already"):
        distboost.bin(*few, **change)


def test_a_store_of_data_written_again_is_refused(few):
    zarr.open_array(few[0])[60:120] = 0.5
    with pytest.raises(DataError, match=r"a binned store of other data or parameters"):
        distboost.bin(*few)


def test_an_unfinished_store_of_other_data_is_refused(few):
    _unfinish(few[2])
    zarr.open_array(few[1])[0] = 2
    with pytest.raises(
        DataError, match=r"an unfinished store of other data or parameters at '.*store' already"
    ):
        distboost.bin(*few)


@pytest.mark.parametrize("form", ["numpy", "dask"])
def test_the_same_values_in_memory_are_the_same_data(form, blobs, tmp_path):
    def arrays(X):
        return (X, blobs[1]) if form == "numpy" else (da.from_array(X, chunks=(60, 4)), blobs[1])

    distboost.bin(*arrays(np.array(blobs[0])), str(tmp_path / "store"))
    distboost.bin(*arrays(np.array(blobs[0])), str(tmp_path / "store"))
    with pytest.raises(DataError, match="other data"):
        distboost.bin(*arrays(np.array(blobs[0]) + 1), str(tmp_path / "store"))


def test_data_that_will_not_do_leave_the_place_free(few, tmp_path):
    place = str(tmp_path / "another")
    zarr.open_array(few[0])[7, 2] = np.inf
    with pytest.raises(DataError, match="row 7, column 2"):
        distboost.bin(few[0], few[1], place)
    zarr.open_array(few[0])[7, 2] = 1.0
    assert (
        GDMCBoostClassifier(calibration=None, n_estimators=1)
        .fit(distboost.bin(few[0], few[1], place))
        .n_iter_
        == 1
    )


def test_a_folder_with_other_things_is_refused(few, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("all of it")
    with pytest.raises(DataError, match="there is something at"):
        distboost.bin(few[0], few[1], str(tmp_path / "folder"))
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot make the folder"):
        distboost.bin(few[0], few[1], str(tmp_path / "file"))


def test_data_that_change_meanwhile(blobs, tmp_path):
    """The arrays are written to while they are read: the store is not completed."""
    X, y = map(np.asarray, blobs)
    zarr.create_array(str(tmp_path / "y"), data=y, chunks=(60,))

    def disturb(block):
        zarr.open_array(str(tmp_path / "y"))[0] = 1
        return block

    x = da.from_array(X, chunks=(60, 4)).map_blocks(disturb, meta=np.empty((0, 4)))
    with pytest.raises(DataError, match="was changed or removed while it was being read"):
        distboost.bin(x, str(tmp_path / "y"), str(tmp_path / "store"))


TWO = """
import sys, distboost
from distboost.data import ingest
ingest.BLOCK_ROWS = 500
print("ready", flush=True)
sys.stdin.readline()
try:
    distboost.bin(*sys.argv[1:])
    print("done")
except distboost.errors.DataError as error:
    print(error)
"""


def test_two_processes_at_once(arrays):
    """One writes; the other is refused, or finds the store complete."""
    places = [str(arrays / name) for name in ("x", "y", "store")]
    pair = [Program(TWO, *places, stdin=subprocess.PIPE) for _ in range(2)]
    for process in pair:
        assert process.stdout.readline() == "ready\n"
    for process in pair:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate()[0].strip() for process in pair]
    assert "done" in said
    other = said[1 - said.index("done")]
    assert other == "done" or "another process is writing to" in other
    assert GDMCBoostClassifier(calibration=None, n_estimators=1).fit(places[2]).n_iter_ == 1


# A full disk.


@pytest.fixture
def disk(tmp_path):
    """A disk of 4 MiB."""
    with disks.small_disk(tmp_path / "disk", "4m") as place:
        yield place


def test_a_disk_too_small(disk):
    X, y = np.zeros((70_000, 100), np.uint8), np.arange(70_000) % 2
    with pytest.raises(
        StoreError,
        match=r"no room for the store '.*disk/store': it takes about \d{8} bytes in total, and \d{7} are free",
    ):
        distboost.bin(X, y, str(disk / "store"))
    assert not (disk / "store").exists()


def test_a_disk_that_fills_up(disk, tmp_path, monkeypatch):
    """Others write to it meanwhile. What has been written is kept, and with room again binning goes on."""
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 2000)
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 200, (20_000, 100)).astype(np.uint8), np.arange(20_000) % 2
    seen = []

    def fill(block):
        seen.append(len(block))
        if sum(seen) > 30_000:  # all rows once to scan them; then a few blocks
            with (disk / "filler").open("ab", buffering=0) as file:
                try:
                    while file.write(bytes(4096)):
                        pass
                except OSError:
                    pass
        return block

    x = da.from_array(X, chunks=(2000, 100)).map_blocks(fill, meta=np.empty((0, 100), np.uint8), name="x")
    block_by_block = while_reading(on_cluster=False) + least_memory(
        *dataset_of(x, y, None).sources, max_bins=255, block=2000
    )
    with pytest.raises(
        StoreError,
        match=r"no room for the store '.*disk/store': it takes about \d{7} bytes in total, and \d+ are",
    ):
        distboost.bin(x, y, str(disk / "store"), memory_limit=block_by_block)
    assert list((disk / "store" / "bins").glob("c/*/0"))
    assert not list((disk / "store").rglob("*.partial"))
    (disk / "filler").unlink()
    seen.clear()
    store = distboost.bin(x, y, str(disk / "store"), memory_limit=block_by_block)
    assert sum(seen) < 20_000  # scanned before, and binned in part
    expected = distboost.bin(X, y, str(tmp_path / "expected"))
    for name in ("bins", "labels", "weights", "edges"):
        found = [zarr.open_array(f"{place}/{name}")[:] for place in (store, expected)]
        np.testing.assert_array_equal(*found)
