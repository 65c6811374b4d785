"""A small cube with spatial structure, and a raster of labels on some of its cells."""

import numpy as np
import xarray as xr

SHAPE = (30, 40)
LABELS = (1.0, 2.0, 3.0)


def dataset():
    rng = np.random.default_rng(5)
    rows, columns = np.meshgrid(np.arange(SHAPE[0]), np.arange(SHAPE[1]), indexing="ij")
    field = np.sin(rows / 5) + np.cos(columns / 7)
    values = {
        "blue": field + rng.normal(0, 0.3, SHAPE),
        "nir": np.where(columns > 20, field, -field) + rng.normal(0, 0.3, SHAPE),
        "slope": rows + rng.normal(0, 2, SHAPE),
    }
    values["nir"][3:6, 3:9] = np.nan
    return xr.Dataset(
        {name: (("y", "x"), one.astype(np.float32)) for name, one in values.items()},
        {"y": 5_000_000.0 - 10 * np.arange(SHAPE[0]), "x": 400_000.0 + 10 * np.arange(SHAPE[1])},
    )


def labels():
    truth = 1 + (dataset()["blue"] > 0).astype(float) + (dataset()["slope"] > 20)
    some = np.random.default_rng(7).random(SHAPE) < 0.4
    return truth.where(xr.DataArray(some, dims=("y", "x"))).rename("cover")


def stacked(data, y):
    """The rows with a label of the stacked table, and their labels."""
    table = data.to_dataarray("feature").transpose(*y.dims, "feature").values.reshape(-1, len(data))
    kept = y.values.reshape(-1)
    return table[kept == kept], kept[kept == kept]


def written(data, path, zarr_format=3, chunks=(8, 16)):
    """Write as xarray does, and return the path."""
    found = data.to_dataset() if isinstance(data, xr.DataArray) else data
    encoding = {
        name: {"chunks": (2, *chunks)[-one.ndim :]} for name, one in found.data_vars.items() if one.ndim > 1
    }
    found.to_zarr(path, zarr_format=zarr_format, encoding=encoding, consolidated=False)
    return str(path)
