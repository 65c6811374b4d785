"""Large data sets that the benchmarks make themselves: the same values on every machine, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from examples.make_large import Spheres
from tests.benchmarks.datasets import Split

BLOCK_ROWS = 4096  # rows drawn together: another number gives other data
SIDE, BORDER, CELL = (
    28,
    2,
    4,
)  # pixels of an image, of its empty border, and of a cell that smooth fields interpolate
SHIFT = 4  # images are moved by 0 .. SHIFT pixels in each direction
MODES = 8  # prototypes of a class of images
CENTRES = 3  # of a class of the mixture
SPREAD = 1.0  # of the centres, in standard deviations of the rows around them

Rows = tuple[np.ndarray, np.ndarray]


class Size(NamedTuple):
    train: int
    test: int


def spheres(size: Size, n_features: int, n_classes: int = 10) -> Split:
    """Shells of a standard normal distribution in ten dimensions, of equal probability; further features are noise."""
    return _split(*Spheres(n_features, n_classes=n_classes).rows(0, sum(size)), size)


def images(size: Size, n_classes: int = 10) -> Split:
    """Grey images (uint8) of which half of the pixels are 0: moved and distorted prototypes, several for each class."""
    prototypes = _smooth(_random(0, 0).integers(-128, 128, (n_classes, MODES, *[_nodes(SIDE + SHIFT)] * 2)))
    prototypes = prototypes[..., : SIDE + SHIFT, : SIDE + SHIFT]
    threshold = _threshold(next(_blocks(1, partial(_fields, prototypes)))[0])
    return _split(*_all(sum(size), lambda number: _grey(*_fields(prototypes, number), threshold)), size)


def mixture(size: Size, n_features: int = 50, n_classes: int = 100) -> Split:
    """Normal distributions around some centres of each class."""
    centres = SPREAD * _random(0, 0).standard_normal((n_classes, CENTRES, n_features), np.float32)

    def block(number: int) -> Rows:
        random = _random(1, number)
        y = random.integers(n_classes, size=BLOCK_ROWS)
        chosen = centres[y, random.integers(CENTRES, size=BLOCK_ROWS)]
        return chosen + random.standard_normal((BLOCK_ROWS, n_features), np.float32), y

    return _split(*_all(sum(size), block), size)


MADE: dict[str, tuple[Callable[[Size], Split], Size]] = {
    "spheres-10": (partial(spheres, n_features=10), Size(1_000_000, 100_000)),
    "spheres-64": (partial(spheres, n_features=64), Size(1_000_000, 100_000)),
    "images": (images, Size(60_000, 10_000)),
    "mixture": (mixture, Size(200_000, 50_000)),
}


def made(name: str, size: Size | None = None) -> Split:
    """A data set of its usual size, or of another."""
    make, usual = MADE[name]
    return make(size or usual)


# Blocks of rows.


def _random(stream: int, block: int) -> np.random.Generator:
    # The upper words of the counter identify the stream and the block, the lower ones count the draws.
    return np.random.Generator(np.random.Philox(key=0, counter=[0, 0, stream, block]))


def _blocks(n_rows: int, block: Callable[[int], Rows]) -> Iterator[Rows]:
    return (block(number) for number in range(-(-n_rows // BLOCK_ROWS)))


def _all(n_rows: int, block: Callable[[int], Rows]) -> Rows:
    X, y = (np.concatenate(parts)[:n_rows] for parts in zip(*_blocks(n_rows, block), strict=True))
    return X, y


def _split(X: np.ndarray, y: np.ndarray, size: Size) -> Split:
    y = y.astype(np.int64)
    return Split(X[: size.train], y[: size.train], X[size.train :], y[size.train :])


# Images. All arithmetic is of whole numbers, so that no machine rounds differently.


def _nodes(n_pixels: int) -> int:
    return -(-n_pixels // CELL) + 1


def _smooth(nodes: np.ndarray) -> np.ndarray:
    """Fields that interpolate between nodes, which are CELL pixels apart; (2 CELL)² times their values."""
    at = np.arange((nodes.shape[-1] - 1) * CELL)
    cell, weight = at // CELL, 2 * (at % CELL) + 1
    for axis in (-2, -1):
        shape = [1] * nodes.ndim
        shape[axis] = len(at)
        w = weight.reshape(shape)
        nodes = nodes.take(cell, axis) * (2 * CELL - w) + nodes.take(cell + 1, axis) * w
    return nodes


def _fields(prototypes: np.ndarray, number: int) -> Rows:
    """What the pixels of a block's images show before the threshold, and their classes."""
    n_classes, random = len(prototypes), _random(1, number)
    y = random.integers(n_classes, size=BLOCK_ROWS)
    mode = random.integers(MODES, size=BLOCK_ROWS)
    left, top = random.integers(SHIFT + 1, size=(2, BLOCK_ROWS))
    windows = np.lib.stride_tricks.sliding_window_view(prototypes, (SIDE, SIDE), axis=(-2, -1))
    distortion = _smooth(random.integers(-128, 128, (BLOCK_ROWS, *[_nodes(SIDE)] * 2), np.int32))
    noise = random.integers(-2048, 2048, (BLOCK_ROWS, SIDE, SIDE), np.int32)
    return windows[y, mode, top, left] + distortion + noise, y


def _inside(fields: np.ndarray) -> np.ndarray:
    return fields[:, BORDER:-BORDER, BORDER:-BORDER]


def _threshold(fields: np.ndarray) -> int:
    """Half of all pixels, those of the border included, are at most this."""
    inner = np.sort(_inside(fields), axis=None)
    n_zeros = fields.size // 2 - (fields.size - inner.size)
    return int(inner[n_zeros])


def _grey(fields: np.ndarray, y: np.ndarray, threshold: int) -> Rows:
    pixels = np.zeros(fields.shape, np.uint8)
    _inside(pixels)[:] = np.clip((_inside(fields) - threshold) >> 6, 0, 255)
    return pixels.reshape(len(pixels), -1), y
