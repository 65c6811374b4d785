"""Cells of cubes: those that have a label, and what is read at some of them.

A row is a cell. Its number is its position in C order among the cells that have a label, whatever the chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from distboost.data.checks import missing_labels
from distboost.data.memory import returned_when_freed
from distboost.data.source import load


class Slot(NamedTuple):
    """Where the values of a box belong.

    Attributes
    ----------
    axes : tuple of (int or None)
        The dimension of the cube along each axis of the box; None: the box has one item along this axis.
    feature_axis : int or None
        The axis along which the box has features.
    columns : tuple of int
        The first of the columns that it has, and the last one + 1.
    """

    axes: tuple[int | None, ...]
    feature_axis: int | None
    columns: tuple[int, int]


@dataclass(frozen=True)
class Cells:
    """The cells of some rows.

    Attributes
    ----------
    positions : ndarray of shape (n_rows,), int64
        In C order, ascending.
    dims : tuple of str
    shape : tuple of int
        Of the cube, without its features.
    """

    positions: np.ndarray
    dims: tuple[str, ...]
    shape: tuple[int, ...]

    def tiles(self, size: Sequence[int]) -> np.ndarray:
        """Return the number of each row's tile, (n_rows,) int64: tiles have `size` cells along each dimension."""
        at = np.unravel_index(self.positions, self.shape)
        grid = [-(-length // step) for length, step in zip(self.shape, size, strict=True)]
        places = tuple(along // step for along, step in zip(at, size, strict=True))
        return np.ravel_multi_index(places, grid)


@returned_when_freed()
def labelled_cells(
    part: Any, axes: tuple[int | None, ...], marks: tuple[Any, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells of a box that have a label, (n,) int64 in its C order, and their labels, (n,).

    `axes` are as in a `Slot`; `marks` stand for no label, as do missing values.
    """
    values = load(part)[tuple(0 if axis is None else slice(None) for axis in axes)]
    values = values.transpose(np.argsort([axis for axis in axes if axis is not None])).reshape(-1)
    absent = missing_labels(values)
    for mark in marks:
        absent |= np.asarray(values == mark)
    found = np.flatnonzero(~absent)
    return found, values[found]


@returned_when_freed()
def values_at(at: np.ndarray, slots: tuple[Slot, ...], dtype: np.dtype, *parts: Any) -> np.ndarray:
    """Return the values of all columns at some cells, (n, n_columns) of `dtype`.

    Parameters
    ----------
    at : ndarray of shape (n_dims, n), int64
        The cells: positions along each dimension, from the first cell of the boxes.
    slots : tuple of Slot
    dtype : numpy.dtype
    parts : parts of sources, one for each slot
    """
    out = np.empty((at.shape[1], max(slot.columns[1] for slot in slots)), dtype)
    for slot, part in zip(slots, parts, strict=True):
        out[:, slice(*slot.columns)] = _values_at(load(part), slot, at)
    return out


def whole_box(shape: tuple[int, ...], slots: tuple[Slot, ...], dtype: np.dtype, *parts: Any) -> np.ndarray:
    """Return the values of all columns at the cells of a box of this shape, (*shape, n_columns) of `dtype`."""
    at = np.indices(shape, np.int32, sparse=True)
    out = np.empty((*shape, max(slot.columns[1] for slot in slots)), dtype)
    for slot, part in zip(slots, parts, strict=True):
        out[..., slice(*slot.columns)] = _values_at(load(part), slot, at)
    return out


def _values_at(values: np.ndarray, slot: Slot, at: Any) -> np.ndarray:
    """Return the values of a slot's columns at some cells, (*shape of `at`, n_columns)."""
    axes = list(slot.axes)
    if slot.feature_axis is None:
        values = values[..., np.newaxis]
    else:
        values = np.moveaxis(values, slot.feature_axis, -1)
        del axes[slot.feature_axis]
    found: np.ndarray = values[tuple(0 if axis is None else at[axis] for axis in axes)]
    return found
