"""Zarr arrays of the user: chunks that are missing or cannot be read, and paths that lead nowhere."""

import re
import warnings

import numpy as np
import pytest
import zarr

from distboost.errors import DataError, MissingChunkError, StoreError
from tests.bad_input.forms import N, to_zarr


@pytest.fixture
def holed(data, tmp_path):
    """(X, y) in zarr with two chunks of X gone."""
    x, y = to_zarr(data[0], tmp_path / "x"), to_zarr(data[1], tmp_path / "y")
    for key in ("1/0", "3/0"):
        (tmp_path / "x" / "c" / key).unlink()
    return x, y


HOLES = r"2 chunks of X \(.*x\) are not in the store and read as the fill value 0\.0: c/1/0, c/3/0\."


def test_missing_chunks_are_warned_of(model, holed):
    with pytest.warns(UserWarning, match=rf"{HOLES}.*If these are not, write them again"):
        model.fit(*holed)


def test_missing_chunks_are_refused(model, holed):
    with pytest.raises(
        MissingChunkError, match=rf"{HOLES} Write them, or allow this with missing_chunks='warn'"
    ):
        model.set_params(missing_chunks="error").fit(*holed)
    assert not hasattr(model, "classes_")


def test_missing_chunks_are_ignored_in_silence(model, holed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(missing_chunks="ignore").fit(*holed)


def test_missing_chunks_read_by_path(model, holed, tmp_path):
    with pytest.raises(MissingChunkError, match=HOLES):
        model.set_params(missing_chunks="error").fit(str(tmp_path / "x"), tmp_path / "y")


@pytest.mark.parametrize(("name", "argument"), [("y", "y"), ("w", "sample_weight")])
def test_missing_chunks_of_labels_and_weights(model, data, name, argument, tmp_path):
    X, y = data
    arrays = {"y": to_zarr(y, tmp_path / "y"), "w": to_zarr(np.ones(N), tmp_path / "w")}
    (tmp_path / name / "c" / "2").unlink()
    with pytest.raises(
        MissingChunkError, match=rf"1 chunks of {argument} \(.*\) are not in the store.*: c/2\."
    ):
        model.set_params(missing_chunks="error").fit(X, arrays["y"], sample_weight=arrays["w"])


def test_missing_chunks_of_the_eval_set(model, data, holed):
    with pytest.raises(MissingChunkError, match=r"2 chunks of eval_set X \(.*: c/1/0, c/3/0\."):
        model.set_params(missing_chunks="error").fit(*data, eval_set=holed)


def test_many_missing_chunks_are_counted_and_some_named(model, data, tmp_path):
    x = zarr.create_array(str(tmp_path / "x"), shape=(N, 4), chunks=(10, 4), dtype="f8", fill_value=-1)
    x[:100] = data[0][:100]
    with pytest.raises(
        MissingChunkError,
        match=r"14 chunks .* fill value -1\.0: c/10/0, c/11/0, c/12/0, c/13/0, c/14/0, \.\.\.",
    ):
        model.set_params(missing_chunks="error").fit(x, data[1])


@pytest.mark.parametrize(
    "layout",
    [
        {"chunks": (60, 3), "zarr_format": 2},
        {"chunks": (60, 3)},
        {"chunks": (20, 2), "shards": (60, 4)},
        {"chunks": (60, 4), "chunk_key_encoding": {"name": "v2", "separator": "."}},
    ],
    ids=["format 2", "two chunks of columns", "shards", "other keys"],
)
@pytest.mark.parametrize("nested", [False, True], ids=["array", "in a group"])
def test_no_chunk_is_missing_from_a_whole_array(model, data, layout, nested, tmp_path):
    path = {"store": str(tmp_path / "s")}
    if nested:
        zarr.create_group(path["store"])
        path["name"] = "deep/x"
    x = zarr.create_array(**path, shape=(N, 4), dtype="f8", **layout)
    x[...] = data[0]
    model.set_params(missing_chunks="error").fit(x, data[1])
    x[60:120] = x.fill_value  # zarr leaves chunks of nothing but the fill value out
    with pytest.raises(MissingChunkError, match=r"chunks of X \("):
        model.fit(x, data[1])


@pytest.mark.parametrize(
    "damage",
    [lambda c: c[:10], lambda c: b"", lambda c: b"\xff" * len(c)],
    ids=["truncated", "empty", "overwritten"],
)
def test_unreadable_chunk(model, data, damage, tmp_path):
    x, y = to_zarr(data[0], tmp_path / "x"), to_zarr(data[1], tmp_path / "y")
    chunk = tmp_path / "x" / "c" / "2" / "0"
    chunk.write_bytes(damage(chunk.read_bytes()))
    with pytest.raises(
        StoreError, match=r"rows \d+ to \d+ of X \(.*x\) cannot be read: .*Write the damaged chunk again"
    ) as error:
        model.fit(x, y)
    first, last = map(int, re.search(r"rows (\d+) to (\d+)", str(error.value)).groups())
    assert first <= 100
    assert last >= 149


def test_unreadable_chunk_of_labels(model, data, tmp_path):
    y = to_zarr(data[1], tmp_path / "y")
    chunk = tmp_path / "y" / "c" / "2"
    chunk.write_bytes(chunk.read_bytes()[:5])
    with pytest.raises(StoreError, match=r"rows \d+ to \d+ of y \(.*y\) cannot be read"):
        model.fit(data[0], y)


def test_a_path_where_nothing_is(model, data, tmp_path):
    with pytest.raises(
        DataError, match=r"X: there is no zarr array at '.*nowhere'.*Pass the path or URL of an array"
    ):
        model.fit(str(tmp_path / "nowhere"), data[1])
    with pytest.raises(DataError, match=r"y: there is no zarr array at"):
        model.fit(data[0], str(tmp_path / "nowhere"))


def test_a_path_of_something_else(model, data, tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / "folder").mkdir()
    for name, said in (
        ("table.csv", r"\(a file; an array is a folder\)\. .* A table is given as a data frame"),
        ("folder", r"\(a folder without an array's zarr\.json\)\. Pass the path"),
    ):
        with pytest.raises(DataError, match=rf"X: there is no zarr array at '.*{name}' {said}"):
            model.fit(str(tmp_path / name), data[1])


def test_the_path_of_a_group(model, data, tmp_path):
    zarr.create_group(str(tmp_path / "group"))
    with pytest.raises(DataError, match=r"X: '.*group' is a zarr group without arrays"):
        model.fit(str(tmp_path / "group"), data[1])
