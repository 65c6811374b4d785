"""Land cover of a made satellite image, from labels on 2 % of it.

    python -m examples.land_cover --out land-cover
    python -m examples.land_cover --size 2000 --picture docs/images/land_cover.png

Makes an image of eight bands in tiles of zarr, with labels in small patches, as if somebody had drawn them. Trains GD-MCBoost on
the labelled pixels, which are read tile by tile; judges it by folds of pixels and by folds of tiles; writes the map, and a
picture of it beside the truth.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import xarray as xr

import distboost
from distboost import GDMCBoostClassifier

CLASSES = ["water", "meadow", "field", "forest", "rock", "snow"]
COLOURS = ["#3b76af", "#a8cf6f", "#e3c567", "#2f6b3a", "#8c8279", "#f2f4f7"]
# The mean reflectance of each class in each band.
BANDS = {
    "blue": [0.08, 0.05, 0.09, 0.03, 0.14, 0.80],
    "green": [0.07, 0.09, 0.12, 0.05, 0.16, 0.82],
    "red": [0.05, 0.06, 0.16, 0.03, 0.19, 0.83],
    "edge": [0.04, 0.22, 0.22, 0.15, 0.21, 0.80],
    "nir": [0.03, 0.42, 0.28, 0.30, 0.24, 0.75],
    "swir1": [0.02, 0.24, 0.31, 0.14, 0.30, 0.12],
    "swir2": [0.01, 0.12, 0.25, 0.07, 0.27, 0.08],
}
TILE = 128


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=384, help="pixels of a side")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("land-cover"), help="folder for image, labels, map")
    parser.add_argument("--picture", type=Path, help="where to draw the map beside the truth")
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    image, labels, truth = made(options.size)
    chunks = {"encoding": {name: {"chunks": (TILE, TILE)} for name in image.data_vars}}
    image.to_zarr(options.out / "image.zarr", consolidated=False, **chunks)
    labels.to_dataset(name="cover").to_zarr(options.out / "labels.zarr", consolidated=False)
    X, y = str(options.out / "image.zarr"), str(options.out / "labels.zarr/cover")

    model = GDMCBoostClassifier(n_estimators=options.rounds, max_depth=4, nodata=0)
    for name, groups in (("pixels", {}), ("tiles", {"groups": "tiles", "tile_size": 64})):
        found = distboost.cross_validate(model, X, y, folds=3, metrics=["accuracy"], **groups)
        print(f"accuracy by folds of {name}: {found['test_accuracy'].mean():.1%}")
    cover = model.fit(X, y).predict(X)
    cover.to_dataset(name="cover").to_zarr(options.out / "map.zarr", consolidated=False)
    seen = cover.values != cover.attrs["_FillValue"]
    share = float((labels > 0).mean())
    print(
        f"accuracy on all pixels: {(cover.values == truth)[seen].mean():.1%}, learned from {share:.1%} of them"
    )
    if options.picture is not None:
        draw(
            options.picture,
            image,
            {f"labels on {share:.1%}": labels.values, "map": cover.values, "truth": truth},
        )


def made(size: int) -> tuple[xr.Dataset, xr.DataArray, np.ndarray]:
    """Return the image, labels on 2 % of it (0: none), and the true classes, (size, size): numbers from 1."""
    rng = np.random.default_rng(3)
    height, moisture, light = (field(rng, size, reach) for reach in (0.25, 0.12, 0.3))
    truth = np.select(
        [height < -0.9, height > 1.7, height > 1.15, moisture > 0.45, moisture < -0.45],
        [1, 6, 5, 4, 3],
        2,
    ).astype(np.uint8)
    values = {"height": 400 + 600 * (height + 0.05 * rng.normal(size=(size, size)))}
    for name, means in BANDS.items():
        shade = 1 + 0.25 * light + 0.12 * field(rng, size, 0.02)
        values[name] = np.array(means)[truth - 1] * shade + 0.03 * rng.normal(size=(size, size))
    cloud = field(rng, size, 0.08) > 2.4  # without data
    coords = {"y": 5_200_000.0 - 10 * np.arange(size), "x": 600_000.0 + 10 * np.arange(size)}
    bands = {name: np.where(cloud, np.nan, one).astype(np.float32) for name, one in values.items()}
    image = xr.Dataset(
        {name: (("y", "x"), one, {"grid_mapping": "crs"}) for name, one in bands.items()}, coords
    ).assign_coords(crs=((), 0, {"grid_mapping_name": "transverse_mercator", "crs_wkt": "EPSG:32632"}))
    labels = np.zeros((size, size), np.uint8)
    side = max(size // 100, 4)
    for y, x in rng.integers(0, size - side, (round(0.02 * size**2 / side**2), 2)):
        labels[y : y + side, x : x + side] = truth[y : y + side, x : x + side]
    return image, xr.DataArray(labels, coords, ("y", "x")), truth


def field(rng: np.random.Generator, size: int, reach: float) -> np.ndarray:
    """Return a smooth random field, (size, size), of mean 0 and variance 1, whose hills are `reach` of a side wide."""
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(size), np.fft.rfftfreq(size), indexing="ij"))
    smooth = np.exp(-((frequency * reach * size) ** 2))
    found = np.fft.irfft2(np.fft.rfft2(rng.normal(size=(size, size))) * smooth, (size, size))
    return (found - found.mean()) / found.std()


def draw(path: Path, image: xr.Dataset, rasters: dict[str, np.ndarray]) -> None:
    """Draw the image, and rasters of classes by their titles."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(9, 9.4), layout="constrained")
    first, *others = figure.subplots(2, 2).flat
    colour = np.stack([image[name].values for name in ("red", "green", "blue")], axis=-1)
    first.imshow(np.clip(np.nan_to_num(colour, nan=1) * 3, 0, 1))
    first.set_title("image")
    for axis, (title, numbers) in zip(others, rasters.items(), strict=True):
        known = np.ma.masked_outside(numbers, 1, len(CLASSES))
        axis.imshow(known, ListedColormap(COLOURS), vmin=1, vmax=len(CLASSES), interpolation="none")
        axis.set_title(title)
    for axis in (first, *others):
        axis.set(xticks=[], yticks=[])
    patches = [
        Patch(facecolor=colour, edgecolor="grey", label=name)
        for name, colour in zip(CLASSES, COLOURS, strict=True)
    ]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(CLASSES), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=75)


if __name__ == "__main__":
    main()
