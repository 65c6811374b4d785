"""Rows of a cube: the cells that have a label, as the rows of the stacked table."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from distboost import GDMCBoostClassifier
from distboost.data.stored import ZarrPart
from distboost.errors import DataError, LimitError
from distboost.inputs.choose import adapter_of
from tests.cubes.made import LABELS, SHAPE, dataset, labels, stacked, written

DIMS = ("band", "y", "x")
NAMES = ["blue", "nir", "slope"]


def model(**parameters):
    return GDMCBoostClassifier(n_estimators=3, subsample=0.5, **parameters)


@pytest.fixture(scope="module")
def expected():
    X, y = stacked(dataset(), labels())
    return model().fit(X, y).digest()


def array(data=None):
    return (dataset() if data is None else data).to_dataarray("band")


def chosen(path):
    bands = xr.open_dataset(path, engine="zarr", consolidated=False)["r"]
    return xr.Dataset({name: bands.isel(band=n, drop=True) for n, name in enumerate(NAMES)})


# Each makes (X, y, parameters) in a folder.
CUBES = {
    "dataset": lambda tmp: (dataset(), labels(), {}),
    "dataset of dask": lambda tmp: (dataset().chunk(y=7, x=16), labels().chunk(y=11, x=5), {}),
    "array": lambda tmp: (array(), labels(), {"feature_dim": "band"}),
    "array, features last": lambda tmp: (array().transpose("y", "x", "band"), labels(), {"feature_dim": "band"}),
    "labels transposed": lambda tmp: (dataset(), labels().transpose("x", "y"), {}),
    "labels without coordinates": lambda tmp: (dataset(), labels().values, {}),
    "array of dask": lambda tmp: (array().chunk(band=2, y=9, x=8), labels(), {"feature_dim": "band"}),
    "path of a dataset": lambda tmp: (written(dataset(), tmp / "x"), written(labels(), tmp / "y") + "/cover", {}),
    "path, format 2": lambda tmp: (written(dataset(), tmp / "x", 2), written(labels(), tmp / "y", 2) + "/cover", {}),
    "opened from a path": lambda tmp: (
        xr.open_dataset(written(dataset(), tmp / "x"), engine="zarr", consolidated=False)[NAMES], labels(), {}
    ),
    "bands chosen from a path": lambda tmp: (chosen(written(array().rename("r"), tmp / "x")), labels(), {}),
    "path of an array": lambda tmp: (
        written(array().rename("r"), tmp / "x") + "/r", labels(), {"feature_dim": "band"}
    ),
    "whole labels and nodata": lambda tmp: (
        dataset(), labels().fillna(9).astype(np.int16), {"nodata": 9}
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CUBES)
def test_the_model_is_that_of_the_stacked_table(kind, tmp_path, expected):
    X, y, parameters = CUBES[kind](tmp_path)
    found = model(**parameters).fit(X, y)
    if kind == "whole labels and nodata":
        X, y = stacked(dataset(), labels())
        expected = model().fit(X, y.astype(np.int16)).digest()
    assert found.feature_names_in_.tolist() == NAMES
    names = found.__dict__.pop("feature_names_in_")
    assert len(names) == found.n_features_in_
    assert found.digest() == expected


def test_several_dimensions_and_a_feature_without_one_of_them(expected):
    season = xr.concat([dataset(), dataset() + 0.25], "time").assign(slope=dataset()["slope"])
    y = xr.concat([labels(), labels()[::-1].assign_coords(y=labels()["y"])], "time")
    found = model().fit(season, y)
    by_hand = model().fit(*stacked(season, y))
    del found.feature_names_in_
    assert found.digest() == by_hand.digest()


def test_weights_count_where_there_are_labels(tmp_path):
    w = xr.ones_like(labels()).where(labels().notnull()) * np.arange(1, 41)
    X, y = stacked(dataset(), labels())
    by_hand = model().fit(X, y, w.values[labels().notnull().values])
    found = model().fit(dataset(), labels(), w)
    del found.feature_names_in_
    assert found.digest() == by_hand.digest()


def test_tiles_without_a_label_are_not_read(tmp_path, monkeypatch):
    y = labels()
    y[:16] = np.nan
    y[:, 20:] = np.nan
    read = []
    own = ZarrPart._read_chunk
    monkeypatch.setattr(
        ZarrPart,
        "_read_chunk",
        lambda part, array, chunk: read.append((part, chunk)) or own(part, array, chunk),
    )
    monkeypatch.setattr("distboost.training.cubes.PIECE_BYTES", 1)  # each tile by itself
    monkeypatch.setattr("distboost.data.stored.PIECE_BYTES", 1)
    model().fit(written(dataset(), tmp_path / "x", chunks=(8, 10)), y)
    bounds = {(part.array.path, chunk) for part, chunk in read}
    assert len(read) == len(bounds) == 3 * 2 * 2
    assert all(rows[0] >= 16 and columns[1] <= 20 for _, (rows, columns) in bounds)


def test_evaluation_rows_and_metrics_are_those_of_the_table():
    X, y = stacked(dataset(), labels())
    cube = model().fit(dataset(), labels(), eval_set=(dataset(), labels()))
    table = model().fit(X, y, eval_set=(X, y))
    np.testing.assert_array_equal(cube.eval_loss_, table.eval_loss_)
    assert cube.score(dataset(), labels()) == table.score(X, y)


@pytest.mark.parametrize(
    ("X", "y", "parameters", "text"),
    [
        (dataset, lambda: labels().assign_coords(y=labels()["y"] + 1), {}, "differ along 'y'"),
        (dataset, lambda: labels()[:, :-1], {}, "cells along 'x'"),
        (dataset, lambda: labels().expand_dims(time=2), {}, "one value for each cell"),
        (dataset, lambda: labels().where(False), {}, "no cell of y has a label"),
        (array, labels, {}, "feature_dim='band'"),
        (array, labels, {"feature_dim": "bands"}, "'bands', the feature_dim"),
        (dataset, lambda: labels().values[1:], {}, "the shape"),
        (dataset, labels, {"feature_dim": "x"}, "each of which is a feature"),
        (lambda: dataset().assign(day=labels().astype("M8[s]")), labels, {}, "dates"),
        (lambda: dataset().assign(kind=labels().astype(str)), labels, {}, "texts"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_cube(X, y, parameters, text):
    with pytest.raises(DataError, match=text):
        model(**parameters).fit(X(), y())


def test_a_tile_that_does_not_fit(tmp_path):
    zeros = zarr.create_array(
        str(tmp_path / "x"), shape=(2, 20_000, 20_000), chunks=(1, 20_000, 20_000), dtype="f8",
        dimension_names=DIMS,
    )  # fmt: skip
    y = da.zeros((20_000, 20_000), chunks=(2000, 2000))
    with pytest.raises(LimitError, match="reading a tile"):
        model(feature_dim="band", memory_limit="600MB", missing_chunks="ignore").fit(
            zeros, xr.DataArray(y[:, :], dims=("y", "x")).where(lambda y: y.x < 2)
        )


def test_made_labels_are_few():
    assert 0 < labels().notnull().mean() < 1
    assert set(np.unique(labels().values[labels().notnull().values])) == set(LABELS)


def test_chunks_that_were_never_written_are_features_or_no_labels(tmp_path):
    cube = zarr.create_array(
        str(tmp_path / "x"),
        shape=(3, *SHAPE),
        chunks=(3, 30, 20),
        dtype="f4",
        fill_value=0,
        dimension_names=DIMS,
    )
    cube[..., :20] = dataset().to_dataarray("band").values[..., :20]
    cover = zarr.create_array(
        str(tmp_path / "y"), shape=SHAPE, chunks=(30, 10), dtype="u1", fill_value=0, dimension_names=DIMS[1:]
    )
    cover[:, :30] = labels().fillna(0).values[:, :30]
    with pytest.warns(UserWarning, match="1 chunks of X"):
        found = model(nodata=0, feature_dim="band").fit(cube, cover)
    assert found.training_record_.n_rows["train"] == np.count_nonzero(cover[...])


def test_marks_of_labels_that_are_missing(tmp_path):
    marked = labels().fillna(9).astype(np.uint8)
    expected = [1.0, 3.0]
    y = marked.assign_attrs(missing_value=np.array([2, 9], np.uint8))
    assert model().fit(dataset(), y).classes_.tolist() == expected
    # Stored 3 stands for 2, 2 for a missing label. Of a decoded label, that says nothing.
    stored = marked.where(marked < 9, 1).values + 1
    y = zarr.create_array(str(tmp_path / "y"), data=stored, chunks=(8, 16), dimension_names=DIMS[1:])
    y.attrs.update({"add_offset": -1.0, "_FillValue": 2})
    assert model().fit(dataset(), y).classes_.tolist() == [2.0, 3.0]
    y.attrs.clear()
    y.attrs["_FillValue"] = "none"
    with pytest.raises(DataError, match="_FillValue"):
        model().fit(dataset(), y)


@pytest.mark.parametrize("opened", [xr.open_dataset, xr.open_zarr], ids=["lazy", "dask"])
def test_packed_features_that_xarray_has_not_decoded(opened, tmp_path):
    packing = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 1.0, "_FillValue": -1}
    dataset().to_zarr(tmp_path / "x", consolidated=False, encoding=dict.fromkeys(NAMES, packing))
    options = {"consolidated": False} | ({"engine": "zarr"} if opened is xr.open_dataset else {})
    decoded, raw = (opened(tmp_path / "x", mask_and_scale=on, **options)[NAMES] for on in (True, False))
    assert "_FillValue" in raw["blue"].attrs
    expected = model().fit(decoded, labels())
    assert model().fit(raw, labels()).digest() == expected.digest()
    np.testing.assert_array_equal(expected.predict(raw), expected.predict(decoded))
    wrong = raw.assign(blue=raw["blue"].assign_attrs(scale_factor="none"))
    with pytest.raises(DataError, match="blue"):
        model().fit(wrong, labels())


def test_times_are_compared_whatever_their_units(tmp_path):
    times = np.array(["2020-01-01", "2020-01-02"], "M8[ns]")
    X = xr.DataArray(np.arange(12.0).reshape(2, 6), {"time": times}, ("time", "x")).to_dataset(name="v")
    y = xr.DataArray(np.arange(12).reshape(2, 6) % 2, {"time": times}, ("time", "x"), name="y")
    later = y.assign_coords(time=times + np.timedelta64(1, "D"))
    units = {"time": {"units": "hours since 2019-12-31"}}
    X.to_zarr(tmp_path / "x", consolidated=False)
    y.to_dataset().to_zarr(tmp_path / "y", consolidated=False, encoding=units)
    later.to_dataset().to_zarr(tmp_path / "later", consolidated=False)
    for given in (y, str(tmp_path / "y/y")):
        model().fit(str(tmp_path / "x"), given)
    for given in (later, str(tmp_path / "later/y")):
        with pytest.raises(DataError, match="differ along 'time'"):
            model().fit(str(tmp_path / "x"), given)


def test_labels_of_dask_stay_lazy():
    assert not adapter_of(dataset(), "X").aligned(da.zeros(SHAPE), "y").source.is_near


def test_workers_read_the_tiles(tmp_path, clients, expected):
    found = model()
    found.client = clients[2]
    found.fit(written(dataset(), tmp_path / "x"), labels().chunk(y=11, x=5))
    del found.feature_names_in_
    assert found.digest() == expected


def test_an_image_of_ome_zarr(tmp_path):
    bands = dataset().to_dataarray("c").values
    image = zarr.create_group(str(tmp_path / "image"))
    image.create_array("0", data=bands[None], chunks=(1, 1, 8, 16))
    axes = [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}, {"name": "y"}, {"name": "x"}]
    image.attrs["ome"] = {
        "multiscales": [{"axes": axes, "datasets": [{"path": "0"}]}],
        "omero": {"channels": [{"label": name} for name in NAMES]},
    }
    strokes = image.create_group("labels").create_group("strokes")
    strokes.create_array(
        "0", data=labels().fillna(0).values.astype(np.uint8)[None, None], chunks=(1, 1, 8, 16)
    )
    strokes.attrs["ome"] = {"multiscales": [{"axes": axes, "datasets": [{"path": "0"}]}]}
    level, of_labels = str(tmp_path / "image/0"), str(tmp_path / "image/labels/strokes/0")
    found = model(nodata=0).fit(level, of_labels)
    X, y = stacked(dataset(), labels())
    by_hand = model().fit(X, y.astype(np.uint8))
    assert found.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(found.predict(level).squeeze(), found.predict(dataset()))
    del found.feature_names_in_
    assert found.digest() == by_hand.digest()
