"""Cells in a made microscope image, from a few strokes.

    python -m examples.pixels --out pixels
    python -m examples.pixels --size 1024 --picture docs/images/pixels.png

Writes an image as OME-Zarr, with channels, two levels and a label image of strokes, as if somebody had painted them in a viewer.
Adds features of each pixel's surroundings, trains GD-MCBoost on the painted pixels, and draws the classes of all.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import xarray as xr
import zarr
from scipy.ndimage import gaussian_filter, gaussian_gradient_magnitude, gaussian_laplace

from distboost import GDMCBoostClassifier

CHANNELS = ["nuclei", "membrane"]
CLASSES = ["background", "cytoplasm", "nucleus"]
COLOURS = ["#6f8fbf", "#4c8f6f", "#e0a03b"]
CHUNK = 128
AXES = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
FILTERS = {"smooth": gaussian_filter, "edge": gaussian_gradient_magnitude, "blob": gaussian_laplace}
SCALES = (1.0, 3.0)  # of the filters, in pixels


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=320, help="pixels of a side")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument(
        "--out", type=Path, default=Path("pixels"), help="folder for the image and the result"
    )
    parser.add_argument("--picture", type=Path, help="where to draw the result")
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    image, truth = made(options.size)
    painted = strokes(truth)
    place = options.out / "image.zarr"
    write_image(place, image, {"strokes": painted})

    # The channels alone: a level of the image and a label image, by their paths. The label 0 is the background of OME-Zarr.
    model = GDMCBoostClassifier(n_estimators=options.rounds, max_depth=4, nodata=0)
    alone = model.fit(str(place / "0"), str(place / "labels/strokes/0")).predict(str(place / "0"))
    # What surrounds a pixel tells more: filters make further features.
    around = surroundings(image)
    found = model.fit(around, str(place / "labels/strokes/0")).predict(around)
    found.to_dataset(name="classes").to_zarr(options.out / "classes.zarr", consolidated=False)
    print(f"{(painted > 0).mean():.2%} of the pixels are painted")
    for name, classes in (("channels", alone), ("channels and filters", found)):
        print(f"accuracy on all pixels, {name}: {(classes.values == truth).mean():.1%}")
    if options.picture is not None:
        draw(options.picture, image, {"strokes": painted, "classes": found.values, "truth": truth})


def made(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an image, (channel, y, x) uint16, and the true class of each pixel, (y, x): numbers from 1."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:size, :size]
    truth = np.ones((size, size), np.uint8)
    bodies, nuclei, rims = np.zeros((3, size, size))
    for cy, cx in rng.uniform(0, size, (max(size**2 // 2500, 8), 2)):
        angle, long, short = rng.uniform(0, np.pi), rng.uniform(16, 24), rng.uniform(11, 16)
        u = (x - cx) * np.cos(angle) + (y - cy) * np.sin(angle)
        v = (y - cy) * np.cos(angle) - (x - cx) * np.sin(angle)
        away = np.hypot(u / long, v / short)
        bodies = np.maximum(bodies, away < 1)
        rims = np.maximum(rims, np.exp(-(((away - 1) / 0.12) ** 2)))
        nuclei = np.maximum(nuclei, np.hypot(u / long, v / short) < 0.45)
    truth[bodies > 0], truth[nuclei > 0] = 2, 3
    light = [gaussian_filter(nuclei, 1.5) + 0.12 * bodies, 0.7 * rims + 0.25 * bodies]
    channels = [rng.poisson(60 + 240 * one) + rng.normal(0, 12, one.shape) for one in light]
    return np.clip(np.stack(channels), 0, 2**16 - 1).astype(np.uint16), truth


def strokes(truth: np.ndarray) -> np.ndarray:
    """Return a few strokes of each class, (y, x) uint8; 0 where nothing is painted."""
    rng = np.random.default_rng(2)
    painted = np.zeros_like(truth)
    for label in range(1, len(CLASSES) + 1):
        inside = gaussian_filter((truth == label).astype(float), 2) > 0.8
        places = np.argwhere(inside)
        for y, x in places[rng.choice(len(places), 12)]:
            line = np.s_[y : y + 2, max(x - 6, 0) : x + 6]
            painted[line] = np.where(truth[line] == label, label, painted[line])
    return painted


def write_image(place: Path, image: np.ndarray, labels: dict[str, np.ndarray]) -> None:
    """Write an image of two levels as OME-Zarr 0.5, with label images."""
    group = zarr.create_group(str(place))
    _write_levels(group, image, AXES)
    ome = group.attrs.asdict()["ome"]
    group.attrs["ome"] = ome | {"omero": {"channels": [{"label": name} for name in CHANNELS]}}
    within = group.create_group("labels", attributes={"ome": {"version": "0.5", "labels": [*labels]}})
    for name, values in labels.items():
        _write_levels(within.create_group(name), values, AXES[1:])


def _write_levels(group: zarr.Group, values: np.ndarray, axes: list[dict[str, str]]) -> None:
    levels = []
    for level, step in enumerate((1, 2)):
        some = values[..., ::step, ::step]
        chunks = (1, CHUNK, CHUNK)[-some.ndim :]
        names = [axis["name"] for axis in axes]
        group.create_array(str(level), data=some, chunks=chunks, dimension_names=names)
        scale = [1.0] * (some.ndim - 2) + [float(step)] * 2
        levels.append({"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": scale}]})
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": levels}]}


def surroundings(image: np.ndarray) -> xr.Dataset:
    """Return the channels and filters of them, each a variable."""
    found = {}
    for name, channel in zip(CHANNELS, image.astype(np.float32), strict=True):
        found[name] = channel
        for kind, function in FILTERS.items():
            for scale in SCALES:
                found[f"{name} {kind} {scale:g}"] = function(channel, scale)
    return xr.Dataset({name: (("y", "x"), values) for name, values in found.items()})


def draw(path: Path, image: np.ndarray, rasters: dict[str, np.ndarray]) -> None:
    """Draw the image, and rasters of classes by their titles."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(9, 9.4), layout="constrained")
    first, *others = figure.subplots(2, 2).flat
    nuclei, membrane = (np.clip((one - 60.0) / 200, 0, 1) for one in image)
    first.imshow(np.stack([nuclei, membrane, nuclei], axis=-1))
    first.set_title("image")
    for axis, (title, numbers) in zip(others, rasters.items(), strict=True):
        known = np.ma.masked_outside(numbers, 1, len(CLASSES))
        if title == "strokes":
            axis.imshow(nuclei, "gray", vmax=1.5)
        axis.imshow(known, ListedColormap(COLOURS), vmin=1, vmax=len(CLASSES), interpolation="none")
        axis.set_title(title)
    for axis in (first, *others):
        axis.set(xticks=[], yticks=[])
    patches = [Patch(facecolor=colour, label=name) for name, colour in zip(CLASSES, COLOURS, strict=True)]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(CLASSES), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=75)


if __name__ == "__main__":
    main()
