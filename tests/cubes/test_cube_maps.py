"""Maps: predictions for the cells of a cube, with its coordinates."""

from itertools import product

import numpy as np
import pytest
import xarray as xr
import zarr
from click.testing import CliRunner

from distboost import GDMCBoostClassifier
from distboost.cli.commands import main
from distboost.data.result import OutputArray
from distboost.errors import DataError
from distboost.prediction import cubes
from tests.cubes.made import dataset, labels, stacked, written


def with_grid():
    """The cube with a grid mapping, and cells without any value."""
    cube = dataset()
    for one in cube.data_vars.values():
        one[20:25, 30:] = np.nan
        one.attrs["grid_mapping"] = "spatial_ref"
    return cube.assign_coords(spatial_ref=((), 0, {"crs_wkt": "PROJCS[...]", "epsg_code": 32632}))


@pytest.fixture(scope="module")
def model():
    return GDMCBoostClassifier(n_estimators=3).fit(with_grid(), labels())


@pytest.fixture(scope="module")
def expected(model):
    """The classes of all cells in the cube's order, and which cells have a value."""
    X = with_grid().to_dataarray("feature").transpose("y", "x", "feature").values.reshape(-1, 3)
    table = GDMCBoostClassifier(n_estimators=3).fit(*stacked(with_grid(), labels()))
    present = ~np.isnan(X).all(axis=1).reshape(30, 40)
    return table.predict(X).reshape(30, 40), table.predict_proba(X).reshape(30, 40, 3), present


CUBES = {
    "memory": lambda tmp: with_grid(),
    "dask": lambda tmp: with_grid().chunk(y=9, x=16),
    "path": lambda tmp: written(with_grid(), tmp / "x"),
    "other order": lambda tmp: with_grid()[["slope", "nir", "blue"]],
}


@pytest.mark.parametrize("kind", CUBES)
def test_a_map_has_the_classes_and_the_coordinates(kind, tmp_path, model, expected):
    classes, probabilities, present = expected
    cube = CUBES[kind](tmp_path)
    found = model.predict(cube)
    assert found.dims == ("y", "x")
    assert found.chunks is not None
    assert found.attrs["flag_values"] == [1, 2, 3]
    assert found.attrs["flag_meanings"] == "1.0 2.0 3.0"
    assert found.attrs["grid_mapping"] == "spatial_ref"
    assert found["spatial_ref"].attrs["epsg_code"] == 32632
    np.testing.assert_array_equal(found["y"], dataset()["y"])
    np.testing.assert_array_equal(found.values[present], classes[present])
    assert (found.values[~present] == found.attrs["_FillValue"]).all()
    found.to_dataset(name="cover").to_zarr(tmp_path / "written", consolidated=False)
    again = xr.open_zarr(tmp_path / "written", consolidated=False, mask_and_scale=False)["cover"]
    np.testing.assert_array_equal(again, found)
    proba = model.predict_proba(cube)
    assert proba.dims == ("y", "x", "class")
    assert proba["class"].values.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(proba.values[present], probabilities[present])
    assert np.isnan(proba.values[~present]).all()


def test_blocks_of_a_lazy_map_are_small(model, monkeypatch):
    whole = model.predict(with_grid()).values
    monkeypatch.setattr(cubes, "BLOCK_BYTES", 8 * 3 * 50)  # of 50 cells
    found = model.predict(with_grid())
    assert max(np.prod(shape) for shape in product(*found.chunks)) <= 50
    np.testing.assert_array_equal(found, whole)


def test_texts_have_numbers_in_a_map():
    names = np.array(["open water", "forest", "rock"])
    y = xr.where(labels().notnull(), names[labels().fillna(1).astype(int) - 1], "")
    model = GDMCBoostClassifier(n_estimators=2, nodata="").fit(dataset(), y)
    found = model.predict(dataset())
    assert found.attrs["flag_meanings"] == "forest open_water rock"
    assert found.dtype == np.uint8
    X, _ = stacked(dataset(), xr.zeros_like(labels()))
    names = model.classes_[found.values.reshape(-1)]
    np.testing.assert_array_equal(names, GDMCBoostClassifier(n_estimators=2).fit(*_texts(y)).predict(X))


def _texts(y):
    X, _ = stacked(dataset(), xr.zeros_like(labels()))
    return X[y.values.reshape(-1) != ""], y.values.reshape(-1)[y.values.reshape(-1) != ""]


def run(*arguments):
    found = CliRunner().invoke(main, [str(one) for one in arguments])
    assert found.exit_code == 0, found.output
    return found.output


def opened(path):
    return xr.open_zarr(path, consolidated=False, decode_coords="all", mask_and_scale=False)


def test_the_command_line_trains_and_maps(tmp_path, model, expected):
    classes, probabilities, present = expected
    x, y = written(with_grid(), tmp_path / "x"), written(labels(), tmp_path / "y")
    run("train", "--x", x, "--y", f"{y}/cover", "--model", tmp_path / "m", "--set", "n_estimators=3")
    run("predict", "--model", tmp_path / "m", "--x", x, "--out", tmp_path / "map")
    run("predict", "--model", tmp_path / "m", "--x", x, "--out", tmp_path / "proba", "--proba")
    found = xr.open_zarr(tmp_path / "map", decode_coords="all", mask_and_scale=False)
    np.testing.assert_array_equal(found["label"].values[present], classes[present])
    assert (found["label"].values[~present] == 255).all()
    for name in ("x", "y", "spatial_ref"):
        np.testing.assert_array_equal(found[name], opened(x)[name])
    assert found["spatial_ref"].attrs["epsg_code"] == 32632
    assert found["label"].attrs["_CRS"] == {"wkt": "PROJCS[...]"}
    assert found["label"].encoding["grid_mapping"] == "spatial_ref"
    proba = opened(tmp_path / "proba")["probability"].transpose("y", "x", "class")
    np.testing.assert_array_equal(proba.values[present], probabilities[present])


def test_an_interrupted_map_is_continued(tmp_path, model, expected, monkeypatch):
    classes, _, present = expected
    x = written(with_grid(), tmp_path / "x", chunks=(8, 16))
    model.save(tmp_path / "m")
    monkeypatch.setattr("distboost.prediction.cubes.BLOCK_BYTES", 1)  # each tile by itself
    write, begun = OutputArray.write_box, []

    def interrupted(result, start, values):
        begun.append(start)
        if len(begun) == 5:
            raise KeyboardInterrupt
        write(result, start, values)

    command = ["predict", "--model", tmp_path / "m", "--x", x, "--out", tmp_path / "map"]
    monkeypatch.setattr(OutputArray, "write_box", interrupted)
    assert CliRunner().invoke(main, [str(one) for one in command]).exit_code != 0
    with pytest.raises((KeyError, FileNotFoundError)):
        zarr.open_array(str(tmp_path / "map/label"), mode="r")
    assert not (tmp_path / "map/.zgroup").exists()
    before = len(begun)
    monkeypatch.setattr(
        OutputArray,
        "write_box",
        lambda result, start, values: begun.append(start) or write(result, start, values),
    )
    run(*command)
    assert 4 * 3 - before < len(begun) - before < 4 * 3
    np.testing.assert_array_equal(opened(tmp_path / "map")["label"].values[present], classes[present])


def test_a_map_of_other_features_is_not_continued(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(6, 6, 6)).astype("f4")
    x = zarr.create_array(str(tmp_path / "x"), data=X, chunks=(2, 2, 2), dimension_names=("a", "b", "c"))
    rows = X.reshape(6, -1).T
    fitted = GDMCBoostClassifier(n_estimators=3).fit(rows, rows[:, 0] > 0)
    fitted.save(tmp_path / "m")
    monkeypatch.setattr("distboost.prediction.cubes.BLOCK_BYTES", 1)
    command = ["predict", "--model", tmp_path / "m", "--x", tmp_path / "x", "--out", tmp_path / "map"]
    write = OutputArray.write_box

    def interrupted(result, start, values):
        write(result, start, values)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(OutputArray, "write_box", interrupted)
        begun = [str(one) for one in (*command, "--feature-dim", "a")]
        assert CliRunner().invoke(main, begun).exit_code != 0
    other = [str(one) for one in (*command, "--feature-dim", "c")]
    assert "unfinished prediction" in CliRunner().invoke(main, other).output
    run(*other, "--overwrite")
    expected = fitted.set_params(feature_dim="c").predict(x)
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "map/label"))[...], expected)


def test_the_command_line_names_the_option_for_the_dimension(tmp_path):
    X = np.random.default_rng(0).normal(size=(6, 6, 4)).astype("f4")
    zarr.create_array(str(tmp_path / "x"), data=X, dimension_names=("y", "x", "band"))
    rows = X.reshape(-1, 4)
    GDMCBoostClassifier(n_estimators=3).fit(rows, rows[:, 0] > 0).save(tmp_path / "m")
    command = ["predict", "--model", tmp_path / "m", "--x", tmp_path / "x", "--out", tmp_path / "map"]
    refused = CliRunner().invoke(main, [str(one) for one in command])
    assert refused.exit_code != 0
    assert "--feature-dim" in refused.output
    assert "--set" not in refused.output


def test_a_cube_of_other_features(model):
    with pytest.raises((DataError, ValueError), match="feature"):
        model.predict(dataset()[["blue", "nir"]])


def test_arrays_beside_a_cube_that_are_no_coordinates(tmp_path):
    group = zarr.create_group(str(tmp_path / "x"))
    values = dataset().to_dataarray("band").values
    group.create_array("r", data=values, dimension_names=("band", "y", "x"))
    group.create_array("y", data=np.arange(5.0))
    group.create_array("x", data=np.arange(7.0), dimension_names=("x",))
    bands = GDMCBoostClassifier(n_estimators=1, feature_dim="band").fit(
        str(tmp_path / "x/r"), labels().values
    )
    assert not bands.predict(str(tmp_path / "x/r")).coords
