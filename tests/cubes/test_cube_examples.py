"""The examples of cubes: they run, and find what they show."""

import re

import numpy as np
import xarray as xr

from tests.scripts import run_example


def accuracies(done):
    assert done.returncode == 0, done.stderr
    return [float(found) for found in re.findall(r": (\d+\.\d)%", done.stdout)]


def test_land_cover(tmp_path):
    done = run_example(
        "land_cover",
        "--size",
        "200",
        "--rounds",
        "10",
        "--out",
        str(tmp_path),
        "--picture",
        str(tmp_path / "map.png"),
    )
    assert min(accuracies(done)) > 75
    cover = xr.open_zarr(tmp_path / "map.zarr", consolidated=False, mask_and_scale=False)["cover"]
    image = xr.open_zarr(tmp_path / "image.zarr", consolidated=False)
    assert cover.attrs["flag_values"] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(cover.values == 255, np.isnan(image["nir"].values))
    assert (tmp_path / "map.png").stat().st_size > 10_000


def test_pixels(tmp_path):
    done = run_example(
        "pixels",
        "--size",
        "160",
        "--rounds",
        "10",
        "--out",
        str(tmp_path),
        "--picture",
        str(tmp_path / "pixels.png"),
    )
    alone, filtered = accuracies(done)
    assert 60 < alone < filtered
    assert (tmp_path / "pixels.png").stat().st_size > 10_000
